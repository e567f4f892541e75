"""What holds of every release, whatever the visits, grid, attributes and policy: random worlds against the oracle.

The long profile asks 10,000 worlds. ``GEODIV_SEED`` starts them elsewhere, so that several runs can share them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import oracles
from crowds import FAR, ROW, tabulate
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse import csgraph
from strategies import LADDER, World, worlds
from test_worlds import partition, pointless, table_of

import geodiv as gd
from geodiv.enforcement import REMEDIES
from geodiv.plan import Plan
from geodiv.remedies.situation import Situation
from geodiv.scores import Judge
from geodiv.verify import broken_zones

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""A world that breaks something is told as it is: making it smaller would take longer than finding it."""
WORLDS = int(os.environ.get("GEODIV_WORLDS", "10000")) if LONG else 200


def many(test: Callable[..., None]) -> Callable[..., None]:
    """A property of `WORLDS` worlds."""
    test = settings(max_examples=WORLDS, phases=UNSHRUNK)(test)
    return seed(int(os.environ["GEODIV_SEED"]))(test) if "GEODIV_SEED" in os.environ else test


@st.composite
def releasing(draw: st.DrawFn) -> World:
    """A world whose ladder ends with suppress, so that there is a release."""
    world = draw(worlds().filter(lambda w: not pointless(w)))
    ladder = tuple(r for r in LADDER if r in {*world.remedies["ladder"], "suppress"})
    return replace(world, remedies={**world.remedies, "ladder": ladder, "max_rounds": 60})


@many
@given(world=releasing(), draw=st.integers(0, 9999))
def test_what_holds_of_every_release(world: World, draw: int) -> None:
    table, policy = table_of(world), world.policy()
    outcome = gd.enforce(table, policy, world.publication())
    answer = oracles.tabulate(*world.oracle_input())
    shown = {zone for zone in partition(outcome) if not zone.suppressed}
    remedies = oracles.Remedies(answer, oracles.levels_tried(answer))
    assert [zone for zone in shown if not remedies.passes(zone)] == []
    zones_are_whole(world, shown)
    figures_are_recounted(answer, shown, outcome.release)
    nothing_is_left_to_do(table, policy, outcome.plan)
    the_rest_is_safe(remedies, shown)
    no_less_than_by_suppressing_alone(world, answer, shown)
    for plan in tampered(table, outcome.plan, np.random.default_rng(draw)):
        assert set(table.cells[broken_zones(table, policy, plan)]) == broken(remedies, table, plan)


def zones_are_whole(world: World, shown: set[oracles.Zone]) -> None:
    """Members are disjoint, together, and not more than the policy allows."""
    members = [cell for zone in shown for cell in zone.members]
    assert len(members) == len(set(members))
    near = world.near(1)
    for zone in shown:
        assert len(zone.members) <= world.remedies["max_members"]
        steps = sparse.csr_array([[float(b in near[a]) for b in zone.members] for a in zone.members])
        assert csgraph.connected_components(steps, directed=False)[0] == 1


def figures_are_recounted(answer: oracles.Table, shown: set[oracles.Zone], release: gd.Release) -> None:
    """Members, persons, levels and label counts of the release, counted again from the visits."""
    zones = sorted(shown, key=lambda zone: zone.id)
    cells = release.cells
    assert cells["cell_id"].tolist() == [zone.id for zone in zones]
    assert cells["persons"].tolist() == [len(answer.people(zone.members)) for zone in zones]
    expected = {}
    for zone in zones:
        for a, declared in enumerate(answer.attributes):
            n = answer.counts(zone.members, a, zone.levels[a])
            dark = oracles.hidden(n, release.metadata["count_min"])
            expected |= {
                (zone.id, declared.column, v): None if v in dark else x for v, x in n.items() if x > 0
            }
    rows = release.counts.astype(object).where(release.counts.notna(), None)
    keys = zip(rows["cell_id"], rows["attribute"], rows["value"], strict=True)
    assert dict(zip(keys, rows["persons"], strict=True)) == expected


def nothing_is_left_to_do(table: gd.Tabulation, policy: gd.Policy, plan: Plan) -> None:
    """Enforcing a plan that was enforced changes nothing: every remedy leaves it as it is."""
    judge = Judge.of(table, policy)
    before = Situation.of(judge, judge.standing(table.recount(plan)), plan)
    assert not before.failing.any()
    for remedy in policy.ladder:
        after = REMEDIES[remedy](before).plan
        assert (after.zone == plan.zone).all()
        assert (after.level == plan.level).all()
        assert (after.suppressed == plan.suppressed).all()


def the_rest_is_safe(remedies: oracles.Remedies, shown: set[oracles.Zone]) -> None:
    """Unless the policy turned it off, the eligible cells that are not published are safe as a group."""
    if remedies.t.policy["residual"] and shown:
        assert remedies.residual_passes(shown)


def no_less_than_by_suppressing_alone(world: World, answer: oracles.Table, shown: set[oracles.Zone]) -> None:
    """Remedies never publish fewer persons than leaving out would."""
    alone = replace(world, remedies={**world.remedies, "ladder": ("suppress",)})
    least = oracles.enforce(oracles.tabulate(*alone.oracle_input())).coverage
    cells = {cell for zone in shown for cell in zone.members}
    kept = oracles.covered(answer, cells, answer.eligible)
    assert kept >= least or math.isnan(least)


# --- plans that nobody made -----------------------------------------------------------------------------------


def tampered(table: gd.Tabulation, plan: Plan, rng: np.random.Generator) -> list[Plan]:
    """Every cell by itself; and the plan with zones put back, joined and moved to other levels."""
    alone = table.start()
    wild = replace(plan, suppressed=plan.suppressed & (rng.random(len(plan.zone)) < 0.5)[plan.zone])
    pairs = np.argwhere(table.adjacency.todense() > 0)
    if len(pairs):
        a, b = pairs[rng.integers(len(pairs))]
        group = np.flatnonzero(np.isin(wild.zone, wild.zone[[a, b]]))
        row = np.zeros(len(group), dtype=int)
        wild = wild.merge(sparse.csr_array((np.ones(len(group)), (row, group)), shape=(1, len(plan.zone))))
    for attribute, space in enumerate(table.spaces):
        levels = np.flatnonzero(space.publishable)
        moved = rng.permutation(wild.zones)[:2]
        wild = wild.recode(moved, attribute, rng.choice(levels, size=len(moved)))
    return [alone, wild]


def broken(remedies: oracles.Remedies, table: gd.Tabulation, plan: Plan) -> set[Any]:
    """Zones that a plan publishes and the oracle does not let pass."""
    found = set()
    for zone in plan.zones[~plan.suppressed[plan.zones]]:
        members = frozenset(table.cells[plan.zone == zone].tolist())
        if not remedies.passes(oracles.Zone(members, tuple(plan.level[zone].tolist()))):
            found.add(table.cells[zone])
    return found


def test_a_merge_that_costs_more_than_it_brings_is_not_made() -> None:
    """Joining `a` and `b` would leave `c` alone, and the rest would have to take the joined zone with it."""
    first, second, *_ = ROW
    table = tabulate({first: {"x": 5, "y": 5}, second: {"x": 6}, FAR: {"y": 9}})
    policy = gd.Policy(k_min=5, l_min=1.8)
    outcome = gd.enforce(table, policy)
    assert outcome.release.cells["members"].tolist() == [first]
    assert outcome.rounds["stage"].tolist()[-2:] == ["residual", "refine"]
    assert gd.enforce(table, replace(policy, residual=False)).release.cells["n_members"].tolist() == [2]
