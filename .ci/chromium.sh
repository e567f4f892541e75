#!/usr/bin/env bash
# The partner Chromium: installs it (Debian, Ubuntu; as root) and opens maps and reports in it.
# $PYTHON is an interpreter with geodiv and its test extra; run from the top of the tree.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/again.sh

if ! command -v chromium >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    again apt-get update -qq
    again apt-get install -y -qq --no-install-recommends chromium poppler-utils >/dev/null
fi
chromium --version 2>/dev/null
"${PYTHON:-python3}" -m pytest -p no:cacheprovider tests/test_browser.py tests/test_plots.py -rs
