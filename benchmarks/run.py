"""The benchmark: cities are made, everything is timed in one run, and the ratios are printed."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from city import write
from measure import Measured, measure

PACKAGES = ("geodiv", "numpy", "pandas", "pyarrow", "h3", "polars", "polars-h3")


def main() -> None:
    """Read the arguments, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("visits", nargs="*", default=["1e6"], help="sizes of the cities")
    parser.add_argument("--folder", type=Path, help="where the cities are kept; a temporary folder otherwise")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--pycanon", action="store_true", help="also time pyCANON, in an environment made for it"
    )
    parser.add_argument(
        "--small", action="store_true", help="1e5 visits once: does the benchmark run at all?"
    )
    parser.add_argument(
        "--write", type=Path, help="Markdown file to write the table to, above its first section"
    )
    given = parser.parse_args()
    if given.small:
        given.visits, given.repeats = ["1e5"], 1
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        rows = [row for size in given.visits for row in _city(folder, int(float(size)), given.repeats)]
        rows += _kernels(given.small, given.pycanon, Path(temporary))
    text = _table(rows)
    print(text)
    if given.write:
        found = given.write.read_text(encoding="utf-8") if given.write.exists() else ""
        kept = found[found.index("\n## ") :] if "\n## " in found else ""
        given.write.write_text(f"# Benchmarks\n\n{_machine()}\n\n{text}\n{kept}", encoding="utf-8")


def _city(folder: Path, visits: int, repeats: int) -> list[tuple[str, str, str]]:
    path = str(write(folder, visits))
    ours = measure("contenders", "geodiv", path, repeats=repeats)
    stages = ", ".join(f"{name} {ours.seconds[name]:.2f}" for name in ("tabulate", "enforce", "write"))
    rows = [(f"{visits:.0e} visits: enforce, Parquet to release.gpkg", _seconds(ours), stages)]
    if importlib.util.find_spec("polars_h3"):
        floor = measure("contenders", "floor", path, repeats=repeats)
        against = f"polars floor {floor.seconds['total']:.2f} s"
        rows.append(
            ("- against the polars floor", _ratio(ours.seconds["total"], floor.seconds["total"]), against)
        )
        rows.append(("- tabulate alone", _ratio(ours.seconds["tabulate"], floor.seconds["total"]), against))
    book = measure("contenders", "textbook", path)
    both = ours.seconds["tabulate"] + ours.seconds["score"]
    rows.append(
        ("- textbook code, tabulate + score", _ratio(book.seconds["total"], both), "times slower than geodiv")
    )
    slower = _ratio(book.seconds["score"], ours.seconds["score"])
    return [*rows, ("- textbook code, score alone", slower, "times slower than geodiv")]


def _kernels(small: bool, pycanon: bool, folder: Path) -> list[tuple[str, str, str]]:
    zones = "1e5" if small else "1e6"
    found = measure("contenders", "scoring", zones, "10")
    ratio = _ratio(found.seconds["geodiv"], found.seconds["numpy"])
    rows = [
        (f"score {zones} zones x 10 values against rings", _seconds(found, "geodiv"), f"{ratio} bare numpy")
    ]
    if pycanon:
        environment = folder / "pycanon"
        venv.create(environment, with_pip=True)
        python = str(environment / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "-q", "pycanon"], check=True)
        cells = "1500" if small else "15000"
        theirs = measure("contenders", "pycanon", cells, python=python)
        ours = measure("contenders", "closeness", cells)
        times = _ratio(theirs.seconds["pycanon"], ours.seconds["geodiv"])
        rows.append((f"t-closeness of {cells} cells, pyCANON", times, "times slower than geodiv"))
    return rows


def _seconds(found: Measured, stage: str = "total") -> str:
    return f"{found.seconds[stage]:.2f} s, peak {found.peak_mb:,.0f} MB"


def _ratio(a: float, b: float) -> str:
    return f"x {a / b:,.2f}"


def _table(rows: list[tuple[str, str, str]]) -> str:
    lines = ["| what | measured | beside it |", "|---|---|---|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def _machine() -> str:
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES if _has(name))
    return (
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}; {versions}. Medians; the "
        "ratios are taken within one run. `python benchmarks/run.py 1e6 1e7 --pycanon --write docs/benchmarks.md` "
        "writes this page."
    )


def _has(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
