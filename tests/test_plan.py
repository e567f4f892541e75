"""Plans: new ones from old ones, an old one never changed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from geodiv import Plan


def groups(cells: int, *members: list[int]) -> sparse.csr_array:
    """Sets of cells as a matrix."""
    dense = np.zeros((len(members), cells))
    for row, columns in zip(dense, members, strict=True):
        row[columns] = 1
    return sparse.csr_array(dense)


def frozen(plan: Plan) -> list[list]:
    """What a plan says, as plain lists."""
    return [plan.zone.tolist(), plan.level.tolist(), plan.suppressed.tolist()]


def test_at_first_each_cell_is_a_zone():
    plan = Plan.of_cells(3, start=(0, 1))
    assert frozen(plan) == [[0, 1, 2], [[0, 1]] * 3, [False] * 3]
    assert plan.zones.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(plan.members().toarray(), np.eye(3))


def test_a_merge_makes_a_zone_of_its_smallest_member_at_the_starting_levels():
    plan = Plan.of_cells(5, start=(0,)).recode(np.array([1, 3]), 0, np.array([2, 1])).suppress(np.array([4]))
    merged = plan.merge(groups(5, [3, 1, 4]))
    assert frozen(merged) == [[0, 1, 2, 1, 1], [[0]] * 5, [False] * 5]
    assert merged.zones.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(
        merged.members().toarray(), [[1, 0, 0, 0, 0], [0, 1, 0, 1, 1], [0, 0, 1, 0, 0]]
    )


def test_zones_merge_whole():
    plan = Plan.of_cells(5, start=()).merge(groups(5, [1, 2], [3, 4])).merge(groups(5, [1, 2, 3, 4]))
    assert plan.zone.tolist() == [0, 1, 1, 1, 1]


def test_no_groups_merge_nothing():
    plan = Plan.of_cells(3, start=(0,))
    assert frozen(plan.merge(groups(3))) == frozen(plan)
    assert frozen(plan.merge(groups(3, []))) == frozen(plan)


def test_a_level_holds_for_all_members_and_one_attribute():
    plan = Plan.of_cells(4, start=(0, 0)).merge(groups(4, [0, 2])).recode(np.array([0]), 1, np.array([2]))
    assert plan.level.tolist() == [[0, 2], [0, 0], [0, 2], [0, 0]]


def test_suppression_holds_for_all_members_and_stays():
    plan = (
        Plan.of_cells(4, start=(0,)).merge(groups(4, [0, 2])).suppress(np.array([0])).suppress(np.array([3]))
    )
    assert plan.suppressed.tolist() == [True, False, True, True]


def test_a_plan_cannot_be_changed():
    plan = Plan.of_cells(2, start=(0,))
    for name in ("zone", "level", "suppressed"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(plan, name)[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.start = (1,)


def test_a_plan_without_cells():
    plan = Plan.of_cells(0, start=(0,))
    assert plan.zones.size == 0
    assert plan.members().shape == (0, 0)


@given(st.data())
def test_remedies_make_new_plans_that_still_partition_the_cells(data):
    cells = data.draw(st.integers(1, 8))
    plan = Plan.of_cells(cells, start=(0, 1))
    for _ in range(data.draw(st.integers(0, 5))):
        before, zones = frozen(plan), plan.zones
        some = data.draw(st.lists(st.sampled_from(zones.tolist()), min_size=1, unique=True).map(np.array))
        step = data.draw(st.sampled_from(["merge", "recode", "suppress"]))
        if step == "merge":
            after = plan.merge(groups(cells, np.flatnonzero(np.isin(plan.zone, some)).tolist()))
            assert after.zones.size == zones.size - some.size + 1
        elif step == "recode":
            after = plan.recode(some, 0, np.arange(some.size) + 1)
            assert after.level[some, 0].tolist() == list(range(1, some.size + 1))
        else:
            after = plan.suppress(some)
            assert after.suppressed[some].all()
        assert frozen(plan) == before
        plan = after
        members = plan.members().toarray()
        np.testing.assert_array_equal(members.sum(axis=0), 1)
        for zone, row in zip(plan.zones, members, strict=True):
            inside = np.flatnonzero(row)
            assert zone == inside.min()
            assert len(np.unique(plan.level[inside], axis=0)) == len(np.unique(plan.suppressed[inside])) == 1
