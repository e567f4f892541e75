#!/usr/bin/env bash
# What cannot be written to: root may write to read-only folders, so these tests are run once more without that right.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$(id -u)" != 0 ]; then
    echo "not root: the tests were run like this already"
    exit 0
fi
setpriv --bounding-set=-dac_override,-dac_read_search --inh-caps=-dac_override,-dac_read_search \
    "$PYTHON" -m pytest -rs -k "cannot_be_written or read_only" tests/test_crash.py tests/test_engines_duckdb.py |
    tee "$WORK/readonly.log"
if grep -q SKIPPED "$WORK/readonly.log"; then
    echo "expected that nothing is skipped" >&2
    exit 1
fi
