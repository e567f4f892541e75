#!/usr/bin/env bash
# The Spark engine on Sail, on a local Spark and on a standalone cluster of two workers; Java from Debian, as root.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/again.sh

if ! command -v java >/dev/null && [ -z "${JAVA_HOME:-}" ]; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "expected Java 17 for Spark, got none, and not root on Debian: install openjdk-17-jre-headless" >&2
        exit 1
    fi
    export DEBIAN_FRONTEND=noninteractive
    again apt-get update -qq
    again apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless >/dev/null
fi
# Sail 0.7 knows Spark up to 4.2
again "$PYTHON" -m pip install --quiet "pyspark[connect]>=4.1,<4.3" "pysail>=0.7,<0.8"
cd "$WORK/test"
export GEODIV_NEEDS_SPARK=1
"$PYTHON" -m pytest tests/test_engines.py -k "sail or standalone and (whole_run or several or 16_files)"
"$PYTHON" -m pytest tests/test_engines_spark.py
"$PYTHON" -m pytest tests/test_engines_cluster.py
