#!/usr/bin/env bash
# Locales other than C, really installed: Debian, as root.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/again.sh
if ! locale -a | grep -q tr_TR; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "not root on Debian: tests that need other locales are skipped where these are not installed"
    else
        export DEBIAN_FRONTEND=noninteractive
        again apt-get update -qq
        again apt-get install -y -qq --no-install-recommends locales >/dev/null
        sed -i -E 's/^# (de_DE.UTF-8 UTF-8|tr_TR.UTF-8 UTF-8|de_DE ISO-8859-1)$/\1/' /etc/locale.gen
        locale-gen
    fi
fi
"${PYTHON:-python3}" -m pytest -q -rs tests/test_locales.py
