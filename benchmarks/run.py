"""The benchmark: cities are made, everything is timed in one run, and the ratios are printed."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import math
import os
import platform
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from city import patches, write
from measure import Measured, in_turn, measure

BOOK = 10_000_000
"""Visits up to which the textbook code is waited for, and things are repeated."""
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
        rows, seconds = [], {}
        for size in given.visits:
            more, seconds[float(size)] = _city(folder, int(float(size)), given.repeats)
            rows += more
        rows += _growth(seconds) + _kernels(folder, given.small, given.repeats)
        rows += _pycanon(given.small, Path(temporary)) if given.pycanon else []
    text = _table(rows)
    print(text)
    if given.write:
        found = given.write.read_text(encoding="utf-8") if given.write.exists() else ""
        kept = found[found.index("\n## ") :] if "\n## " in found else ""
        given.write.write_text(f"# Benchmarks\n\n{_machine()}\n\n{text}\n{kept}", encoding="utf-8")


Row = tuple[str, str, str]


def _city(folder: Path, visits: int, repeats: int) -> tuple[list[Row], float]:
    """The rows of one city, and the seconds from visits to release."""
    path = str(write(folder, visits))
    repeats = repeats if visits <= BOOK else 1
    polars = importlib.util.find_spec("polars_h3") is not None
    ours, *floors = in_turn(
        ("contenders", "geodiv", path), *[("contenders", "floor", path)] * polars, repeats=repeats
    )
    stages = ", ".join(f"{name} {ours.seconds[name]:.2f}" for name in ("tabulate", "enforce", "write"))
    rows = [(f"{visits:.0e} visits: enforce, Parquet to release.gpkg", _seconds(ours), stages)]
    for floor in floors:
        against = (
            f"polars floor {floor.seconds['total']:.2f} s, {floor.seconds['total cpu']:.2f} s of processors"
        )
        rows.append(("- against the polars floor", _ratios(ours, "total", floor, "total"), against))
        rows.append(("- tabulate alone", _ratios(ours, "tabulate", floor, "total"), against))
    if visits <= BOOK:
        book = measure("contenders", "textbook", path)
        both = ours.seconds["tabulate"] + ours.seconds["score"]
        slower = "times slower than geodiv"
        said = f"{book.seconds['total']:.1f} s against {both:.2f} s; {slower}"
        rows.append(("- textbook code, tabulate + score", _ratio(book.seconds["total"], both), said))
        said = f"{book.seconds['score']:.1f} s against {ours.seconds['score']:.3f} s; {slower}"
        rows.append(("- textbook code, score alone", _ratios(book, "score", ours, "score"), said))
        said = "effective count and distance to the whole release, all that the textbook code scores"
        rows.append(("- the same, these two measures", _ratios(book, "score", ours, "two measures"), said))
    return rows, ours.seconds["total"]


def _growth(seconds: dict[float, float]) -> list[Row]:
    """The exponent of the time from the smallest city to the largest."""
    few, many = min(seconds), max(seconds)
    if few == many:
        return []
    exponent = math.log(seconds[many] / seconds[few]) / math.log(many / few)
    return [(f"growth from {few:.0e} to {many:.0e} visits", f"exponent {exponent:.2f}", "1 is in proportion")]


def _kernels(folder: Path, small: bool, repeats: int) -> list[Row]:
    zones, points, cells, most = ("1e5", "1e5", 1000, "1e3") if small else ("1e6", "1e7", 100_000, "1e5")
    found = measure("contenders", "scoring", zones, "10")
    ratio = _ratio(found.seconds["geodiv"], found.seconds["numpy"])
    rows = [
        (
            f"measures of {zones} zones x 10 values against rings",
            _seconds(found, "geodiv"),
            f"{ratio} bare numpy",
        )
    ]
    found = measure("contenders", "many_values", most, "500")
    extra = f"{found.seconds['extra MB']:,.0f} MB allocated at most, the scores included"
    rows.append((f"scores of {most} zones x 500 values", f"{found.seconds['score']:.2f} s", extra))
    found = measure("contenders", "remedies", str(patches(folder, cells)), repeats=repeats)
    failing = found.seconds["failing"] / found.seconds["cells"]
    rows.append(
        (
            f"ladder to its fixed point, {found.seconds['cells']:,.0f} cells, {failing:.0%} failing",
            f"{_ratios(found, 'fixed point', found, 'tabulate')} of tabulate",
            f"{found.seconds['fixed point']:.2f} s, tabulate {found.seconds['tabulate']:.2f} s; refining after it "
            f"{found.seconds['refining']:.2f} s",
        )
    )
    found = measure("contenders", "points", points, repeats=repeats)
    others = [
        f"{name} {_ratios(found, name, found, 'geodiv')}"
        for name in ("loop", "polars")
        if name in found.seconds
    ]
    rows.append(
        (f"H3 cells of {points} points, none twice", f"{found.seconds['geodiv']:.2f} s", "; ".join(others))
    )
    found = measure("contenders", "importing", repeats=max(repeats, 3))
    return [*rows, ("import geodiv", f"{found.seconds['total']:.3f} s", "nothing heavy is loaded")]


def _pycanon(small: bool, folder: Path) -> list[Row]:
    environment = folder / "pycanon"
    venv.create(environment, with_pip=True)
    python = str(environment / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", "pycanon"], check=True)
    cells = "1500" if small else "15000"
    theirs = measure("contenders", "pycanon", cells, python=python)
    ours = measure("contenders", "closeness", cells)
    times = _ratio(theirs.seconds["pycanon"], ours.seconds["geodiv"])
    said = f"{theirs.seconds['pycanon']:.1f} s against {1000 * ours.seconds['geodiv']:.2f} ms; times slower"
    return [(f"t-closeness of {cells} cells, pyCANON", times, said)]


def _seconds(found: Measured, stage: str = "total") -> str:
    return f"{found.seconds[stage]:.2f} s, peak {found.peak_mb:,.0f} MB"


def _ratio(a: float, b: float) -> str:
    return f"x {a / b:,.2f}"


def _ratios(one: Measured, stage: str, other: Measured, against: str) -> str:
    """By the clock, and by the seconds of all processors."""
    busy = one.seconds[f"{stage} cpu"] / other.seconds[f"{against} cpu"]
    return f"{_ratio(one.seconds[stage], other.seconds[against])} (processors {busy:,.2f})"


def _table(rows: list[Row]) -> str:
    lines = ["| what | measured | beside it |", "|---|---|---|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def _machine() -> str:
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES if _has(name))
    return (
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}; {versions}. The least of "
        "the repeats, taken in turn; ratios are by the clock, and in brackets by the seconds of all processors, "
        "work on the machine changes less. `python benchmarks/run.py 1e6 1e7 3e7 --pycanon --write "
        "docs/benchmarks.md` writes this table."
    )


def _has(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
