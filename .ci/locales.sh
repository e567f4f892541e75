#!/usr/bin/env bash
# Locales other than C, really installed: Debian, as root.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! locale -a | grep -q tr_TR; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "not root on Debian: tests that need other locales are skipped where these are not installed"
    else
        apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends locales
        sed -i -E 's/^# (de_DE.UTF-8 UTF-8|tr_TR.UTF-8 UTF-8|de_DE ISO-8859-1)$/\1/' /etc/locale.gen
        locale-gen
    fi
fi
"${PYTHON:-python3}" -m pytest -q -rs tests/test_locales.py
