"""Verify: a plan that publishes what fails is caught, by a way of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import oracles
import pandas as pd
import pytest
from crowds import CENTRE, FAR, ROW, tabulate
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse
from strategies import World, worlds
from test_worlds import fewer, pointless, table_of

import geodiv as gd
from geodiv.verify import broken_zones, verify

TAXONOMY = gd.Taxonomy([("a", "x"), ("b", "y"), ("c", "x"), ("d", "y")])
COUNTS = {
    CENTRE: {"a": 5, "b": 5}, ROW[1]: {"a": 9}, ROW[3]: {"a": 4, "b": 4, "c": 4, "d": 4},
    ROW[5]: {"b": 2}, FAR: {"c": 9, "d": 1},
}  # fmt: skip
POLICY = gd.Policy(k_min=4, l_min=2.3, incidence_max=0.8)


@pytest.fixture(scope="module")
def outcome() -> gd.Outcome:
    return gd.enforce(tabulate(COUNTS, gd.Nominal("activity", TAXONOMY)), replace(POLICY, residual=False))


def at(outcome: gd.Outcome, cell: str) -> int:
    return int(np.flatnonzero(outcome.table.cells == cell)[0])


def broken(outcome: gd.Outcome, plan: gd.Plan) -> set[str]:
    return set(outcome.table.cells[broken_zones(outcome.table, outcome.policy, plan)])


def test_the_plan_of_an_outcome_holds(outcome: gd.Outcome) -> None:
    assert broken(outcome, outcome.plan) == set()
    verify(outcome.table, outcome.policy, outcome.plan)


def test_a_failing_zone_that_is_let_through_is_caught(outcome: gd.Outcome) -> None:
    for cell in (FAR, ROW[5]):
        suppressed = outcome.plan.suppressed.copy()
        assert suppressed[at(outcome, cell)]
        suppressed[at(outcome, cell)] = False
        plan = replace(outcome.plan, suppressed=suppressed)
        assert broken(outcome, plan) == {cell}
        with pytest.raises(gd.VerificationError, match="fails when it is counted again") as caught:
            verify(outcome.table, outcome.policy, plan)
        assert cell not in str(caught.value)


def test_a_level_that_is_too_fine_is_caught(outcome: gd.Outcome) -> None:
    place = at(outcome, CENTRE)
    assert outcome.plan.level[place, 0] == 1
    plan = outcome.plan.recode(np.array([outcome.plan.zone[place]]), 0, np.array([0]))
    assert broken(outcome, plan) == {outcome.table.cells[outcome.plan.zone[place]]}


def test_two_zones_that_do_not_hold_together_are_caught() -> None:
    """Each half has 2.00 values; together, with the same b persons, 1.89."""
    rows = [(cell, f"{cell}-{i}", "a") for cell in ROW[:2] for i in range(10)]
    rows += [(cell, f"b{i}", "b") for cell in ROW[:2] for i in range(10)]
    table = tabulate(pd.DataFrame(rows, columns=["cell", "person", "activity"]))
    policy = gd.Policy(k_min=4, l_min=1.95)
    assert len(broken_zones(table, policy, table.start())) == 0
    merged = table.start().merge(sparse.csr_array(np.ones((1, 2))))
    assert broken_zones(table, policy, merged).tolist() == [0]


@pytest.mark.parametrize(
    ("reference", "fails"),
    [
        (gd.Ring(1), {ROW[0], ROW[1]}),
        (gd.Ring(1, fallback="none"), {ROW[0], ROW[1], FAR}),
        (gd.Global(), set()),
        (gd.Region({ROW[0]: "n", FAR: "n"}), set()),
        (gd.Region({ROW[0]: "n"}, fallback="none"), {ROW[1], FAR}),
    ],
)
def test_each_scope_of_reference(reference: Any, fails: set[str]) -> None:
    """(.8, .2), (.5, .5), (.5, .5): the first two are .3 apart, the mix of all is (.6, .4)."""
    counts = {ROW[0]: {"a": 8, "b": 2}, ROW[1]: {"a": 5, "b": 5}, FAR: {"a": 5, "b": 5}}
    table = tabulate(counts)
    policy = gd.Policy(k_min=4, t_max=0.25, reference=reference)
    assert set(table.cells[broken_zones(table, policy, table.start())]) == fails


def test_too_few_persons_are_caught_even_where_all_else_holds() -> None:
    table = tabulate({"c1": {"a": 2, "b": 1}, "c2": {"a": 2, "b": 2}})
    assert broken_zones(table, gd.Policy(k_min=4, l_min=1.5), table.start()).tolist() == [0]


def test_a_merged_zone_is_judged_without_its_own_cells() -> None:
    """(.5, .5) against the (.9, .1) around it; with its own cells it would seem to be near."""
    table = tabulate({ROW[0]: {"a": 10}, ROW[1]: {"b": 10}, ROW[2]: {"a": 9, "b": 1}})
    pair = table.start().merge(sparse.csr_array(np.isin(table.cells, ROW[:2]).astype(float)[None, :]))
    policy = gd.Policy(k_min=4, t_max=0.3, reference=gd.Ring(1))
    assert set(table.cells[broken_zones(table, policy, pair)]) == {min(ROW[:2]), ROW[2]}
    assert set(table.cells[broken_zones(table, replace(policy, t_max=0.4), pair)]) == {ROW[2]}


def test_nothing_published_is_nothing_broken(outcome: gd.Outcome) -> None:
    plan = outcome.plan.suppress(outcome.plan.zones)
    assert broken(outcome, plan) == set()


# --- any plan at all ------------------------------------------------------------------------------------------


@fewer
@given(world=worlds(), data=st.data())
def test_verify_finds_what_the_oracle_finds_for_any_plan(world: World, data: st.DataObject) -> None:
    """Any partition, any levels, anything suppressed."""
    assume(not pointless(world))
    table, policy = table_of(world), world.policy()
    answer = oracles.tabulate(*world.oracle_input())
    cells = len(table.cells)
    label = np.array(data.draw(st.lists(st.integers(0, 9), min_size=cells, max_size=cells)))
    groups = sparse.csr_array([(label == z).astype(float) for z in sorted(set(label.tolist()))])
    plan = table.start().merge(groups)
    for a, space in enumerate(table.spaces):
        levels = data.draw(
            st.lists(
                st.sampled_from(range(len(space.levels))), min_size=len(plan.zones), max_size=len(plan.zones)
            )
        )
        plan = plan.recode(plan.zones, a, np.array(levels))
    plan = plan.suppress(
        np.array(data.draw(st.lists(st.sampled_from(plan.zones.tolist()), max_size=2)), dtype=int)
    )
    expected = set()
    for zone in plan.zones[~plan.suppressed[plan.zones]]:
        members = frozenset(table.cells[plan.zone == zone].tolist())
        judged = [oracles.judge(answer, members, a, h).fails for a, h in enumerate(plan.level[zone].tolist())]
        if len(answer.people(members)) < world.gates["k_min"] or any(judged):
            expected.add(min(members))
    assert set(table.cells[broken_zones(table, policy, plan)]) == expected
