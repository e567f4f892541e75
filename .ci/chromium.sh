#!/usr/bin/env bash
# The partner Chromium: installs it (Debian, Ubuntu; as root) and opens maps and reports in it.
# $PYTHON is an interpreter with geodiv and its test extra; run from the top of the tree.
set -euo pipefail

if ! command -v chromium >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    for try in 1 2 3 4; do
        if apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium poppler-utils >/dev/null; then break; fi
        if [ "$try" = 4 ]; then
            echo "Chromium cannot be installed here" >&2
            exit 1
        fi
        sleep $((try * 10))
    done
fi
chromium --version 2>/dev/null
"${PYTHON:-python3}" -m pytest -p no:cacheprovider tests/test_browser.py tests/test_plots.py -rs
