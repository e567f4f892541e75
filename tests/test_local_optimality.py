"""No single change of a final plan would still pass: publish a cell, split a zone, lower a level. By brute force."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, product
from typing import Any

import doggerton
import oracles
import pytest
from doggerton import FIXTURES
from hypothesis import given, settings
from oracles import Remedies, Zone
from strategies import World
from test_invariants import LONG, UNSHRUNK, WORLDS, releasing
from test_worlds import partition, table_of

import geodiv as gd


def changes(remedies: Remedies, shown: set[Zone]) -> Iterator[tuple[str, set[Zone]]]:
    """Every single change of a plan in which all zones pass, and the zones after it."""
    yield from publications(remedies, shown)
    yield from splits(remedies, shown)
    yield from lowerings(remedies, shown)


def publications(remedies: Remedies, shown: set[Zone]) -> Iterator[tuple[str, set[Zone]]]:
    """One cell that is not published, or two that touch, by themselves or with one or two zones, at any levels."""
    t, most = remedies.t, remedies.t.policy["max_members"]
    dark = set(t.persons) - {cell for zone in shown for cell in zone.members}
    merges = "merge" in t.policy["ladder"]
    for size, joined in product((1, 2), (0, 1, 2)) if merges else [(1, 0)]:
        for group, others in product(combinations(dark, size), combinations(shown, joined)):
            union = frozenset(group).union(*(zone.members for zone in others))
            whole = len(union) <= most and remedies.together(union) and remedies.together(frozenset(group))
            if whole and (zone := remedies.cleared(union)):
                yield f"publish {group} with {others}", shown - set(others) | {zone}


def splits(remedies: Remedies, shown: set[Zone]) -> Iterator[tuple[str, set[Zone]]]:
    """Any two connected parts of a zone, each at levels up to those of the zone."""
    for zone in shown:
        cells = sorted(zone.members)
        for size in range(1, len(cells) // 2 + 1):
            for part in map(frozenset, combinations(cells, size)):
                parts = [part, zone.members - part]
                if all(remedies.together(p) for p in parts):
                    for levels in product(lower(remedies, zone), repeat=2):
                        new = {Zone(p, level) for p, level in zip(parts, levels, strict=True)}
                        if all(remedies.passes(z) for z in new):
                            yield f"split {zone} into {new}", shown - {zone} | new


def lowerings(remedies: Remedies, shown: set[Zone]) -> Iterator[tuple[str, set[Zone]]]:
    """One zone at lower levels."""
    for zone in shown:
        for levels in lower(remedies, zone):
            finer = Zone(zone.members, levels)
            if levels != zone.levels and remedies.passes(finer):
                yield f"lower {zone} to {levels}", shown - {zone} | {finer}


def lower(remedies: Remedies, zone: Zone) -> list[tuple[int, ...]]:
    """The levels of a zone, and all below them that the policy allows."""
    at = zip(remedies.tried, zone.levels, strict=True)
    return list(product(*([h for h in tried if h <= level] for tried, level in at)))


def possible(remedies: Remedies, shown: set[Zone]) -> list[str]:
    """Single changes after which everything would still hold."""
    policy = remedies.t.policy
    guarded = policy["residual"] and "suppress" in policy["ladder"]
    return [
        what
        for what, after in changes(remedies, shown)
        if not guarded or published(after) == published(shown) or remedies.residual_passes(after)
    ]


def published(zones: Iterable[Zone]) -> set[str]:
    return {cell for zone in zones for cell in zone.members}


def judged(t: oracles.Table, shown: set[Zone]) -> Remedies:
    """The levels that remedies may write; with one level for all, only those of the plan."""
    if t.policy["recode_scope"] == "release" and shown:
        return Remedies(t, [[level] for level in next(iter(shown)).levels])
    return Remedies(t, oracles.levels_tried(t))


@settings(max_examples=WORLDS if LONG else 60, phases=UNSHRUNK)
@given(world=releasing())
def test_no_single_change_of_a_final_plan_would_pass(world: World) -> None:
    outcome = gd.enforce(table_of(world), world.policy())
    shown = {zone for zone in partition(outcome) if not zone.suppressed}
    assert possible(judged(oracles.tabulate(*world.oracle_input()), shown), shown) == []


CITIES: list[dict[str, Any]] = [
    {},
    {"max_members": 7},
    {"max_members": 4, "k_min": 20, "l_min": 4, "shift_max": 0.2},
    {"max_members": 3, "residual": False},
    {"max_members": 5, "ladder": ["merge", "suppress"]},
    {"recode_scope": "release"},
]


@pytest.mark.parametrize("policy", CITIES, ids=lambda policy: " ".join(policy) or "as it is")
def test_no_single_change_of_the_city_would_pass(policy: dict[str, Any]) -> None:
    run = gd.read_run(FIXTURES / "policy.toml")
    table = run.tabulate(FIXTURES / "visits.parquet")
    changed = {k: tuple(v) if k == "ladder" else v for k, v in policy.items()}
    outcome = gd.enforce(table, gd.Policy(**{**fields(run.policy), **changed}))
    shown = {zone for zone in partition(outcome) if not zone.suppressed}
    answer = doggerton.table(**policy)
    assert len(shown) > 50
    assert shown == oracles.enforce(answer).published
    assert possible(judged(answer, shown), shown) == []


def fields(policy: gd.Policy) -> dict[str, Any]:
    return {name: getattr(policy, name) for name in policy.__dataclass_fields__}


def test_before_it_is_refined_a_plan_can_be_changed() -> None:
    """What gathering leaves behind in the city: cells beside zones that would take them."""
    remedies = judged(doggerton.table(), set())
    zones = remedies.phase_2(remedies.phase_1()[0])
    zones = remedies.residual({zone for zone in zones if remedies.passes(zone)})
    shown = {zone for zone in zones if not zone.suppressed}
    kinds = {what.split(" ")[0] for what in possible(remedies, shown)}
    assert kinds == {"publish"}
    coarse = {Zone(z.members, (1, 0)) for z in shown if remedies.passes(Zone(z.members, (1, 0)))}
    pair = next(Zone(a.members | b.members, (0, 0)) for a, b in combinations(sorted(shown, key=lambda z: z.id), 2)
                if remedies.passes(Zone(a.members | b.members, (0, 0)))
                and b.members & remedies.t.neighbours(a.members, 1) and not any(a.levels + b.levels))  # fmt: skip
    assert {what.split(" ")[0] for what, _ in lowerings(remedies, coarse)} == {"lower"}
    assert {what.split(" ")[0] for what, _ in splits(remedies, {pair})} == {"split"}
