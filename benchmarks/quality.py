"""How much map is left: the ladder against what else one could do with the same cells, gates and visits.

Every way gives a plan, and every plan is held to the same: no published zone fails when it is counted again by the code
that verifies a release, and what is not published is safe as a group.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import h3
import numpy as np
import pandas as pd
from city import write
from scipy import sparse

import geodiv as gd
from geodiv.arrays import CSR, IntArray
from geodiv.course import Course
from geodiv.plan import Plan
from geodiv.remedies.residual import Rest, protect_residual
from geodiv.scores import Judge
from geodiv.tabulation import Tabulation
from geodiv.verify import verify

COLUMNS = (
    "coverage",
    "coverage_all",
    "zones per eligible cell",
    "cells per zone",
    "persons at the finest level",
    "bits lost: where",
    "what",
    "together",
)


def figures(table: Tabulation, policy: gd.Policy, plan: Plan) -> tuple[float, ...]:
    """The figures of the release of a plan, which must hold."""
    verify(table, policy, plan)
    eligible, persons, shown = table.persons >= policy.k_min, table.persons, ~plan.suppressed
    counts = table.recount(plan).take(np.flatnonzero(shown[plan.zones]))
    finest = (plan.level[plan.zones[shown[plan.zones]]] == plan.start).all(axis=1)
    where, what = bits(table, plan)
    return (
        float(persons[shown & eligible].sum() / max(persons[eligible].sum(), 1)),
        float(persons[shown].sum() / max(persons.sum(), 1)),
        len(counts.persons) / max(int(eligible.sum()), 1),
        float(counts.sizes.mean()) if len(counts.persons) else np.nan,
        float(counts.persons[finest].sum() / max(counts.persons.sum(), 1)),
        where,
        what,
        where + what,
    )


def bits(table: Tabulation, plan: Plan) -> tuple[float, float]:
    """Bits of a contribution's cell, and of its value, that the map does not tell; the mean over the attributes.

    The entropy of the cell given zone and label, and of the value given these and the cell. What is not published is
    one zone with one label.
    """
    where, what = [], []
    for attribute, space in enumerate(table.spaces):
        base = table.base.labels[attribute][0].tocoo()
        cell, value = base.coords
        up = np.stack(space.up)
        zone = np.where(plan.suppressed, -1, plan.zone)[cell]
        label = np.where(zone < 0, -1, up[plan.level[cell, attribute], value])
        n = pd.DataFrame({"zone": zone, "label": label, "cell": cell, "n": base.data.astype(float)})
        shown = n.groupby(["zone", "label"])["n"].transform("sum")
        inside = n.groupby(["zone", "label", "cell"])["n"].transform("sum")
        where.append((n["n"] * np.log2(shown / inside)).sum() / max(n["n"].sum(), 1))
        what.append((n["n"] * np.log2(inside / n["n"])).sum() / max(n["n"].sum(), 1))
    return float(np.mean(where)), float(np.mean(what))


def ladders(table: Tabulation, policy: gd.Policy, most: int) -> Iterator[tuple[str, Plan]]:
    """The whole ladder, and each remedy with nothing but suppression beside it; and zones as large as others make."""
    for remedies in ("recode merge suppress", "suppress", "recode suppress", "merge suppress"):
        own = replace(policy, ladder=tuple(remedies.split()))  # type: ignore[arg-type]
        yield remedies.replace(" ", " + "), gd.enforce(table, own).plan
    yield (
        f"recode + merge + suppress, {most} cells",
        gd.enforce(table, replace(policy, max_members=most)).plan,
    )


def blocks(table: Tabulation) -> tuple[str, int, list[IntArray]]:
    """The hierarchy over the cells: its name, the cells of its largest block, the block of each cell at two heights."""
    if table.grid.kind == "h3":
        ids = [h3.int_to_str(int(key)) for key in table.keys]
        resolution = h3.get_resolution(ids[0])
        parents = [[h3.cell_to_parent(i, resolution - up) for i in ids] for up in (1, 2)]
        return "H3 parents", 49, [np.unique(p, return_inverse=True)[1] for p in parents]
    points = np.array([(shape.centroid.x, shape.centroid.y) for shape in table.geometry()])
    side = table.grid.describe().get("size") or float(
        np.median([shape.area for shape in table.geometry()]) ** 0.5
    )
    squares = [points // (side * size) for size in (2, 4)]
    return "quadtree", 16, [np.unique(s, axis=0, return_inverse=True)[1].ravel() for s in squares]


def hierarchy(table: Tabulation, policy: gd.Policy, most: int, above: list[IntArray]) -> Plan:
    """Cells that fail go into their block, with all of its cells; a block that fails, into the next; two times.

    A block of more than `most` occupied cells is not made.
    """
    judge = Judge.of(table, policy)
    block = np.arange(len(table.cells))
    for blocks_ in above:
        sets = _members(block)
        passes = np.zeros(len(block), bool)
        passes[np.unique(block)] = judge.standing(table.count(sets)).clears
        small = np.bincount(blocks_)[blocks_] <= most
        within = np.isin(blocks_, np.unique(blocks_[~passes[block]])) & small
        first = np.full(int(blocks_.max()) + 1, len(block))
        np.minimum.at(first, blocks_, np.arange(len(block)))
        block = np.where(within, first[blocks_], block)
    sets = _members(block)
    standing = judge.standing(table.count(sets))
    levels = np.where(standing.clears[:, None], standing.lowest, judge.start)
    plan = table.start(judge.start).publish(sets, levels)
    course = Course.of(judge, plan.suppress(plan.zones[~standing.clears]))
    rows = course.published
    zones = course.situation.zones[rows]
    if not policy.residual:
        return course.plan
    return protect_residual(Rest.of(judge), course.plan, zones, course.standing.counts.take(rows))


def _members(block: IntArray) -> CSR:
    zones, row = np.unique(block, return_inverse=True)
    return CSR(
        sparse.coo_array((np.ones(len(block)), (row, np.arange(len(block)))), shape=(len(zones), len(block)))
    )


def ways(table: Tabulation, policy: gd.Policy) -> Iterator[tuple[str, gd.Policy, Plan]]:
    """Every way, the policy that it was held to, and its plan."""
    name, most, above = blocks(table)
    for called, plan in ladders(table, policy, most):
        yield called, policy, plan
    yield name, policy, hierarchy(table, policy, policy.max_members, above)
    yield f"{name}, {most} cells", policy, hierarchy(table, policy, most, above)


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
        for called, held, plan in ways(table, policy):
            found = " | ".join(f"{x:.3f}" for x in figures(table, held, plan))
            yield f"| {name} | {title} | {called} | {found} |"


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
    """The fixture city, a larger synthetic one, and any files given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--city", type=float, help="visits of the synthetic city; none unless given")
    parser.add_argument(
        "files", nargs="*", metavar="VISITS POLICY.toml", help="pairs of visits and their run"
    )
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| city | policy | way | " + " | ".join(COLUMNS) + " |")
    print("|---" * (len(COLUMNS) + 3) + "|")
    for name, table in tables(asked.city, asked.files):
        for line in report(name, table):
            print(line, flush=True)


def tables(visits: float | None, files: list[str]) -> Iterator[tuple[str, Tabulation]]:
    """Names and tables, one after the other."""
    yield from fixture()
    if visits:
        with tempfile.TemporaryDirectory() as folder:
            path = write(Path(folder), int(visits))
            yield f"synthetic, {int(visits):,}", gd.read_run(path.with_name("policy.toml")).tabulate(path)
    for path_, run in zip(files[::2], files[1::2], strict=True):
        yield Path(path_).stem, gd.read_run(run).tabulate(path_)


if __name__ == "__main__":
    main()
