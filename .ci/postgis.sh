#!/usr/bin/env bash
# A PostgreSQL with PostGIS from Debian, which tests/test_postgis.py starts for itself; as root, otherwise what is there.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/again.sh

there() { # there: whether some version of the server has the extension
    compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null && compgen -G '/usr/share/postgresql/*/extension/postgis.control' >/dev/null
}

if ! there; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "not root on Debian, and no PostGIS: skipped" >&2
        exit 0
    fi
    export DEBIAN_FRONTEND=noninteractive
    again apt-get update -qq
    again apt-get install -y -qq --no-install-recommends postgresql postgis '^postgresql-[0-9]+-postgis-3$' >/dev/null
fi
cd "$WORK/test"
GEODIV_NEEDS_POSTGIS=1 "$PYTHON" -m pytest tests/test_postgis.py
