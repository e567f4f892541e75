"""Coverage of floors 1 to 5, lines and branches together: at least 95 % of every module.

    python ci/covered.py                       # the tests, without those that need QGIS, PostGIS or a browser
    python ci/covered.py tests/test_reference.py
    python ci/covered.py --report              # what was measured before
    GEODIV_NEEDS_SPARK=1 python ci/covered.py  # with the Spark engine, where pyspark, pysail and Java are installed

The floors are those that geodiv/__init__.py lists. Exit code 1 when a module has less.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
LEAST = 95.0
ELSEWHERE = ("browser", "qgis", "qgis_plugin", "postgis")


def floor_of(comment: str) -> dict[str, int]:
    """Floor of each top-level module or subpackage, from the comment in ``geodiv/__init__.py``."""
    floors, floor = {}, 0
    for number, names in re.findall(r"^#   (?:(\d) \w.*?\S)?  +(\w.+)$", comment, flags=re.M):
        floor = int(number or floor)
        floors |= dict.fromkeys(names.split(), floor)
    return floors


def main(arguments: list[str]) -> int:
    coverage = [sys.executable, "-m", "coverage"]
    if arguments != ["--report"]:
        tests = arguments or [f"--ignore=tests/test_{name}.py" for name in ELSEWHERE]
        if code := subprocess.run([*coverage, "run", "-m", "pytest", "-q", *tests], cwd=TREE).returncode:
            return code
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "coverage.json"
        subprocess.run([*coverage, "json", "-q", "-o", str(out)], cwd=TREE, check=True)
        files = json.loads(out.read_text())["files"]
    floors = floor_of((TREE / "geodiv/__init__.py").read_text())
    low, done, parts = [], 0, 0
    for name, found in sorted(files.items()):
        top = Path(name).with_suffix("").parts[1]
        if floors.get(top, 6) > 5:
            continue
        summary = found["summary"]
        done += summary["covered_lines"] + summary["covered_branches"]
        parts += summary["num_statements"] + summary["num_branches"]
        if summary["percent_covered"] < LEAST:
            low.append(name)
        if summary["percent_covered"] < 100:
            branches = [f"{a}->{b}" for a, b in found["missing_branches"]]
            print(
                f"{summary['percent_covered']:6.1f} %  {name}  {found['missing_lines']} {' '.join(branches)}"
            )
    print(f"{100 * done / parts:6.1f} %  floors 1 to 5")
    if low:
        print(f"below {LEAST:g} %: {', '.join(low)}")
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
