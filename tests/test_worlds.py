"""Random worlds: geodiv finds what the definitions say, as the oracle works them out in plain loops."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import oracles
import pandas as pd
import pytest
from hypothesis import given, settings
from strategies import World, worlds

import geodiv as gd

Row = dict[str, Any]
fewer = settings(max_examples=-(-settings.default.max_examples // 4))
"""A quarter of the examples of the profile: for laws that take a whole enforce or two."""


def null(value: Any) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))


def same(found: Any, expected: Any) -> bool:
    """Equal texts and integers, equal nulls, equal floats but for their last digits."""
    if null(found) or null(expected):
        return null(found) and null(expected)
    if isinstance(expected, str) or isinstance(found, str):
        return bool(found == expected)
    return math.isclose(float(found), float(expected), rel_tol=1e-9, abs_tol=1e-9)


def records(frame: pd.DataFrame) -> list[Row]:
    plain = pd.DataFrame(frame.drop(columns="geometry", errors="ignore"))
    return [{str(k): v for k, v in row.items()} for row in plain.astype(object).to_dict("records")]


def differing(where: str, found: list[Row], expected: list[Row], key: tuple[str, ...]) -> Iterator[str]:
    """What differs between two tables, over the columns of the expected one."""
    keys = [[tuple(row[k] for k in key) for row in rows] for rows in (found, expected)]
    if keys[0] != keys[1]:
        yield f"{where}: rows {keys[0]}, expected {keys[1]}"
        return
    for mine, theirs in zip(found, expected, strict=True):
        for column, value in theirs.items():
            if column not in mine:
                yield f"{where}: no column {column}"
            elif not same(mine[column], value):
                yield f"{where} {[theirs[k] for k in key]}: {column} {mine[column]!r}, expected {value!r}"


def table_of(world: World, engine: Any = "memory") -> gd.Tabulation:
    return gd.tabulate(
        world.visits_frame(),
        grid=world.grid(),
        person="person",
        attributes=world.attributes(),
        engine=engine,
    )


def partition(outcome: gd.Outcome) -> set[oracles.Zone]:
    """Zones of a plan; the levels of those not published, which nobody sees, are left out."""
    plan, cells = outcome.plan, outcome.table.cells
    zones = set()
    for zone in plan.zones:
        members = frozenset(cells[plan.zone == zone].tolist())
        dark = bool(plan.suppressed[zone])
        zones.add(oracles.Zone(members, () if dark else tuple(plan.level[zone].tolist()), dark))
    return zones


def pointless(world: World) -> bool:
    """Whether no occupied cell has a region, or no two have a weight: an error, since the ids cannot be meant."""
    occupied, rule = {visit[0] for visit in world.visits}, world.reference
    if rule["scope"] == "region":
        return occupied.isdisjoint(rule["regions"])
    if rule["scope"] == "weights":
        return all(occupied.isdisjoint(rule["weights"][cell]) for cell in occupied & set(rule["weights"]))
    return False


def differences(world: World, engine: Any = "memory") -> list[str]:
    """Everything that geodiv and the oracle see differently."""
    table, policy = table_of(world, engine), world.policy()
    if pointless(world):
        with pytest.raises(gd.PolicyError, match="the ids of the table's cells"):
            gd.score(table, policy)
        return []
    answer = oracles.tabulate(*world.oracle_input())
    key = ("cell_id", "attribute")
    found = list(differing("scores", records(gd.score(table, policy)), oracles.scores(answer), key))
    try:
        expected = oracles.enforce(answer)
    except oracles.NotConverged as stop:
        try:
            gd.enforce(table, policy, world.publication())
        except gd.NotConverged as mine:
            if set(mine.zones) != set(stop.zones):
                found.append(f"not converged: {sorted(mine.zones)}, expected {sorted(stop.zones)}")
            return found
        return [*found, f"converged, expected not: {stop.zones}"]
    try:
        outcome = gd.enforce(table, policy, world.publication())
    except gd.NotConverged as mine:
        return [*found, f"not converged: {mine.zones}, expected convergence in {expected.rounds}"]
    return [*found, *differing_outcomes(outcome, expected)]


def differing_outcomes(outcome: gd.Outcome, expected: oracles.Outcome) -> Iterator[str]:
    """What differs between the partitions, the scores beside them and the tables of the release."""
    shown = expected.published
    zones = {oracles.Zone(z.members, z.levels if z in shown else (), z not in shown) for z in expected.zones}
    if partition(outcome) != zones:
        mine = partition(outcome)
        yield f"zones: only found {sorted(map(str, mine - zones))}, only expected {sorted(map(str, zones - mine))}"
        return
    key = ("cell_id", "attribute")
    after = [
        r | {"zone_id": r["zone_id"] if r["final_remedy"] != "suppress" else None} for r in expected.scores
    ]
    yield from differing("scores after", records(outcome.scores), after, key)
    final = [{k: v for k, v in row.items() if k not in ("level", "remedy")} for row in expected.final_scores]
    yield from differing("final scores", records(outcome.final_scores), final, key)
    release = outcome.release
    yield from differing("cells", records(release.cells), expected.cells, ("cell_id",))
    yield from differing(
        "counts", records(release.counts), expected.counts, ("cell_id", "attribute", "value")
    )
    mix = ("attribute", "level", "value")
    levels = set(
        zip(release.reference["attribute"], release.reference["level"], strict=True)
    )  # of those it shows
    rows = [row for row in expected.reference if (row["attribute"], row["level"]) in levels]
    yield from differing("reference", records(release.reference), rows, mix)
    for name, value in expected.metadata.items():
        if release.metadata[name] != value:
            yield f"metadata: {name} {release.metadata[name]!r}, expected {value!r}"
    coverage = 0.0 if math.isnan(expected.coverage) else round(expected.coverage, 2)
    if release.metadata["coverage"] != coverage:
        yield f"coverage {release.metadata['coverage']}, expected {expected.coverage}"


@fewer
@given(world=worlds())
def test_geodiv_finds_what_the_definitions_say(world: World) -> None:
    assert differences(world) == []
