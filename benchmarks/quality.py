"""How much map is left: the ladder against what else one could do with the same cells, gates and visits."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import h3
import numpy as np
from scipy import sparse

import geodiv as gd
from geodiv.arrays import CSR, IntArray
from geodiv.scores import Judge, Standing
from geodiv.tabulation import Tabulation

COLUMNS = (
    "coverage",
    "coverage_all",
    "zones per eligible cell",
    "cells per zone",
    "persons at the finest level",
)


def figures(table: Tabulation, judge: Judge, standing: Standing, rows: IntArray) -> tuple[float, ...]:
    """The figures of a release that publishes these zones, each at its lowest passing levels."""
    eligible, persons = judge.references.eligible, table.persons
    cells = np.zeros(len(table.cells), bool)
    cells[standing.counts.members[rows].indices] = True
    kept = standing.counts.persons[rows]
    finest = (standing.lowest[rows] == judge.start).all(axis=1)
    return (
        float(persons[cells & eligible].sum() / max(persons[eligible].sum(), 1)),
        float(persons[cells].sum() / max(persons.sum(), 1)),
        len(rows) / max(int(eligible.sum()), 1),
        float(standing.counts.sizes[rows].mean()) if len(rows) else np.nan,
        float(kept[finest].sum() / max(kept.sum(), 1)),
    )


def ladders(table: Tabulation, policy: gd.Policy) -> Iterator[tuple[str, tuple[float, ...]]]:
    """The whole ladder, and each remedy with nothing but suppression beside it."""
    for ladder in (
        ["recode", "merge", "suppress"],
        ["suppress"],
        ["recode", "suppress"],
        ["merge", "suppress"],
    ):
        judge = Judge.of(table, replace(policy, ladder=tuple(ladder)))
        plan = gd.enforce(table, judge.policy).plan
        standing = judge.standing(table.recount(plan))
        yield (
            " + ".join(ladder),
            figures(table, judge, standing, np.flatnonzero(~plan.suppressed[plan.zones])),
        )


def parents(table: Tabulation, policy: gd.Policy) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Cells that fail go into their H3 parent, with all of its cells; a parent that fails, into its own; two times."""
    judge = Judge.of(table, replace(policy, residual=False))
    ids = [h3.int_to_str(int(key)) for key in table.keys]
    resolution = h3.get_resolution(ids[0])
    above = [
        np.unique([h3.cell_to_parent(i, resolution - up) for i in ids], return_inverse=True)[1]
        for up in (1, 2)
    ]
    yield "H3 parents", _blocks(table, judge, above)


def quadtree(table: Tabulation, policy: gd.Policy) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Squares that fail go into the block of four, then of sixteen."""
    judge = Judge.of(table, replace(policy, residual=False))
    x, y = np.array([(shape.bounds[0], shape.bounds[1]) for shape in table.geometry()]).T
    side = table.grid.describe()["size"]
    above = [
        np.unique(np.stack([x // (side * block), y // (side * block)]), axis=1, return_inverse=True)[
            1
        ].ravel()
        for block in (2, 4)
    ]
    yield "quadtree", _blocks(table, judge, above)


def _blocks(table: Tabulation, judge: Judge, above: list[IntArray]) -> tuple[float, ...]:
    block = np.arange(len(table.cells))
    for blocks in above:
        standing = judge.standing(table.count(_members(block)))
        passes = np.zeros(len(table.cells), bool)
        passes[np.unique(block)] = standing.clears
        lost = np.unique(blocks[~passes[block]])
        within = np.isin(blocks, lost)
        first = np.full(int(blocks.max()) + 1, len(block))
        np.minimum.at(first, blocks, np.arange(len(block)))
        block = np.where(within, first[blocks], block)
    standing = judge.standing(table.count(_members(block)))
    return figures(table, judge, standing, np.flatnonzero(standing.clears))


def _members(block: IntArray) -> CSR:
    zones, row = np.unique(block, return_inverse=True)
    return CSR(
        sparse.coo_array((np.ones(len(block)), (row, np.arange(len(block)))), shape=(len(zones), len(block)))
    )


def policies() -> Iterator[tuple[str, gd.Policy]]:
    """Five policies."""
    ring = gd.Ring(max_order=3, min_persons=30)
    yield "l 2", gd.Policy(l_min=2, incidence_max=0.9, reference=ring)
    yield "l 3, t .3", gd.Policy(l_min=3, t_max=0.3, reference=ring)
    yield "design", gd.Policy(l_min=3, t_max=0.3, shift_max=0.3, incidence_max=0.8, reference=ring)
    yield "strict", gd.Policy(k_min=20, l_min=4, t_max=0.25, shift_max=0.2, incidence_max=0.7, reference=ring)
    yield "global", gd.Policy(l_min=3, t_max=0.35, shift_max=0.3, incidence_max=0.8)


def report(name: str, table: Tabulation) -> Iterator[str]:
    """One line a policy and way."""
    for title, policy in policies():
        ways = [ladders, quadtree if table.grid.kind == "square" else parents]
        for way in ways:
            for called, found in way(table, policy):
                yield f"| {name} | {title} | {called} | " + " | ".join(f"{x:.3f}" for x in found) + " |"


def fixture() -> Iterator[tuple[str, Tabulation]]:
    """The fixture city in hexagons and in squares."""
    folder = Path(__file__).parent.parent / "fixtures"
    activity: Any = gd.Nominal(
        "poi_category", taxonomy=gd.Taxonomy.read(folder / "poi_taxonomy.csv"), missing=["", "Unknown"]
    )
    for name, grid in {
        "fixture, hexagons": gd.H3Grid(8),
        "fixture, squares": gd.SquareGrid(500, "EPSG:32631"),
    }.items():
        yield (
            name,
            gd.tabulate(
                str(folder / "visits.parquet"),
                grid=grid,
                person="person_id",
                attributes=[activity],
                on_bad_rows="skip",
            ),
        )


def main() -> None:
    """The fixture city, and any file given as PATH POLICY.toml."""
    warnings.simplefilter("ignore")
    tables = list(fixture())
    for path, run in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        tables.append((Path(path).stem, gd.read_run(run).tabulate(path)))
    print("| city | policy | way | " + " | ".join(COLUMNS) + " |")
    print("|---" * (len(COLUMNS) + 3) + "|")
    for name, table in tables:
        for line in report(name, table):
            print(line, flush=True)


if __name__ == "__main__":
    main()
