"""A first small job: whether the workers are what this machine is, and whether the server holds tables."""

from __future__ import annotations

import json
from typing import Any

from ...errors import GeodivError, UsageError
from ...grids.protocol import Grid
from .session import Session
from .shipping import by_value, shipped
from .workers import about, sampled, versions

TASKS = 8


def probe(session: Session, grid: Grid, patience: float) -> bool:
    """Whether the server holds tables when it is told to; an error when its workers would count otherwise.

    Raises
    ------
    UsageError
        No worker answers, packages differ in their version, or a worker puts a place into another cell.
    """
    spark = session.spark
    work = shipped(about, by_value((sampled, grid)))

    def asked() -> tuple[list[str], list[str]]:
        frame = spark.range(0, TASKS, 1, TASKS).mapInArrow(work, "said string").persist()
        try:
            return _words(frame), _words(frame)
        finally:
            frame.unpersist()

    def late() -> GeodivError:
        return UsageError(
            f"{session.name}: no worker answered in {patience:g} s. See that some are free and reach this machine."
        )

    said, again = session.job(asked, patience, late)
    _check(said, grid, session.name)
    return not set(said).isdisjoint(again)


def _words(frame: Any) -> list[str]:
    return sorted(frame.toArrow().column("said").to_pylist())


def _check(said: list[str], grid: Grid, name: str) -> None:
    here, cells = versions(), sampled(grid)
    for word in map(json.loads, said):
        there = word["versions"]
        lacking = [package for package, version in there.items() if not version]
        if lacking:
            raise UsageError(
                f"{name}: the workers lack {', '.join(lacking)}. Install the versions of this machine."
            )
        other = [f"{p} {there.get(p)} (here {v})" for p, v in here.items() if there.get(p) != v]
        if other:
            raise UsageError(
                f"{name}: the workers have other versions than this machine, and could put visits into other cells: "
                f"{', '.join(other)}. Install the same."
            )
        if word["cells"] != cells:
            raise UsageError(
                f"{name}: a worker puts a place into another cell than this machine does. "
                "See that both have the same PROJ data files."
            )
