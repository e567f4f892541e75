"""Belief, prior, shift, lift: the worked cells, oracles by plain loops, laws."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geodiv.ground import star
from geodiv.measures import (
    effective_count,
    max_lift,
    max_shift,
    shares,
    spread,
    tier_share,
    top,
    top_share,
    tree_distance,
    within_class,
)
from geodiv.policy import meets

VALUES = ("cafe", "clinic", "gym", "pharmacy", "retail")
C58 = np.array([2, 41, 0, 3, 2])
C41 = np.array([0, 34, 0, 0, 0])
C72 = np.array([15, 9, 11, 0, 18])
POOLED = C58 + C41 + C72
ALL = np.ones(5, bool)


def coarse(counts: np.ndarray, up: list[int]) -> np.ndarray:
    """Counts of labels where each person holds one value."""
    return np.bincount(up, weights=counts)


@st.composite
def coarsened(draw, rows: int = 3):
    """Counts of zones and of their reference over values, and the label of each value."""
    m = draw(st.integers(1, 7))
    table = st.lists(st.lists(st.integers(0, 9), min_size=m, max_size=m), min_size=rows, max_size=rows)
    labels = draw(st.lists(st.integers(0, 3), min_size=m, max_size=m))
    up = np.unique(labels, return_inverse=True)[1]
    return np.array(draw(table)), np.array(draw(table)), up, int(up.max()) + 1


# --- worked examples ----------------------------------------------------------------------------------------


def test_the_pooled_mix_of_the_three_cells():
    assert shares(POOLED) == pytest.approx([0.1259, 0.6222, 0.0815, 0.0222, 0.1481], abs=5e-5)


@pytest.mark.parametrize(
    ("up", "label", "belief_l", "tv", "passes_2_8"),
    [([1, 0, 1, 0, 1], 1.3322, 1.6711, 0.2722, False), ([1, 0, 0, 1, 0], 1.3967, 2.8787, 0.0440, True)],
    ids=["health/everyday", "appointment/food"],
)
def test_c58_under_two_taxonomies(up, label, belief_l, tv, passes_2_8):
    p, q_label = shares(coarse(C58, up)), shares(coarse(POOLED, up))
    within = within_class(POOLED, up, 2, POOLED)
    belief, prior = spread(p, within, up), spread(q_label, within, up)
    assert effective_count(p) == pytest.approx(label, abs=5e-5)
    assert effective_count(belief) == pytest.approx(belief_l, abs=5e-5)
    assert tree_distance(belief, prior, star(5)) == pytest.approx(tv, abs=5e-5)
    assert not meets("l_min", effective_count(belief), 3)
    assert bool(meets("l_min", effective_count(belief), 2.8)) == passes_2_8


def test_a_cell_judged_by_itself_learns_nothing_from_coarsening():
    up = [1, 0, 1, 0, 1]
    belief = spread(shares(coarse(C58, up)), within_class(C58, up, 2, C58), up)
    assert belief == pytest.approx(shares(C58))


def test_a_rare_value_made_likely_has_a_small_shift_and_a_large_lift():
    belief, prior = [0.12, 0.88], [0.04, 0.96]
    assert max_shift(belief, prior, [True, True]) == pytest.approx(0.08)
    assert max_lift(belief, prior, [True, True]) == pytest.approx(3)


def test_three_effective_values_of_nine_allow_a_large_top_share():
    def mix(x: float) -> np.ndarray:
        return np.append(x, np.full(8, (1 - x) / 8))

    assert effective_count(mix(0.7447)) >= 3
    assert effective_count(mix(0.745)) < 3  # the bound is 0.745 to three digits


def test_a_visit_that_everybody_made_is_no_matter_of_shares():
    clinic_and_cafe = shares([12, 12])
    assert effective_count(clinic_and_cafe) == pytest.approx(2)
    assert top_share(clinic_and_cafe, [True, True]) == 0.5


def test_at_the_finest_level_belief_is_the_shares():
    up, within = np.arange(5), within_class(POOLED, np.arange(5), 5, POOLED)
    np.testing.assert_array_equal(within, 1)
    np.testing.assert_array_equal(spread(shares(C58), within, up), shares(C58))


# --- within a class -----------------------------------------------------------------------------------------


def within_oracle(q: list[int], up: list[int], overall: list[int]) -> list[Fraction]:
    """q(v | c) by plain loops: the reference, else the global mix, else even."""
    out = []
    for value, label in enumerate(up):
        members = [v for v, other in enumerate(up) if other == label]
        for mass in (q, overall, [1] * len(up)):
            total = sum(int(mass[v]) for v in members)
            if total:
                out.append(Fraction(int(mass[value]), total))
                break
    return out


@given(coarsened())
def test_the_mix_within_a_class(drawn):
    q, tables, up, labels = drawn
    overall = tables[0]
    found = within_class(q, up, labels, overall)
    for row, mix in zip(q, found, strict=True):
        assert mix == pytest.approx([float(x) for x in within_oracle(row, up, overall)], abs=1e-15)
        np.testing.assert_array_equal(within_class(row, up, labels, overall), mix)
    lone = np.bincount(up)[up] == 1
    assert (found[:, lone] == 1).all()
    sums = found @ np.eye(labels)[up]
    np.testing.assert_allclose(sums, 1)


@given(coarsened())
def test_counts_and_shares_give_the_same_mix(drawn):
    q, tables, up, labels = drawn
    from_counts = within_class(q, up, labels, tables[0])
    from_shares = within_class(shares(q), up, labels, shares(tables[0]))
    np.testing.assert_allclose(from_counts, from_shares, atol=1e-12)


@pytest.mark.filterwarnings("error")
def test_no_reference_takes_the_global_mix():
    q = np.full((1, 4), np.nan)
    np.testing.assert_array_equal(within_class(q, [0, 0, 1, 1], 2, [1, 3, 0, 0]), [[0.25, 0.75, 0.5, 0.5]])
    np.testing.assert_array_equal(within_class(q, [0, 0, 1, 1], 2, np.full(4, np.nan)), [[0.5] * 4])
    np.testing.assert_array_equal(within_class(q[0], [0, 0, 1, 2], 3, np.zeros(4)), [0.5, 0.5, 1, 1])


# --- laws ---------------------------------------------------------------------------------------------------


@given(coarsened())
def test_what_belief_adds_to_the_labels(drawn):
    zones, tables, up, labels = drawn
    overall = tables.sum(axis=0)
    within = within_class(tables, up, labels, overall)
    member = np.eye(labels)[up]
    p, q = shares(zones @ member), shares(tables @ member)
    belief, prior = spread(p, within, up), spread(q, within, up)
    known = ~np.isnan(p).any(axis=1) & ~np.isnan(q).any(axis=1)

    np.testing.assert_allclose(belief[known].sum(axis=1), 1)
    np.testing.assert_allclose(belief[known] @ member, p[known], atol=1e-12)
    np.testing.assert_allclose(prior[known], shares(tables)[known], atol=1e-12)

    of_labels = tree_distance(p, q, star(labels))
    of_values = tree_distance(belief, prior, star(len(up)))
    np.testing.assert_allclose(of_values[known], of_labels[known], atol=1e-12)

    shift = max_shift(belief, prior, np.ones(len(up), bool))
    assert (shift[known] <= of_values[known] + 1e-12).all()
    assert np.isnan(shift[~known]).all()

    for i in np.flatnonzero(known):
        inside = sum(
            p[i, c] * -sum(x * math.log(x) for x in within[i][up == c] if x > 0) for c in range(labels)
        )
        entropy = math.log(effective_count(p[i])) + inside
        assert math.log(effective_count(belief[i])) == pytest.approx(entropy, abs=1e-9)
        assert effective_count(belief[i]) >= effective_count(p[i]) - 1e-9


shares_of_four = st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any).map(shares)


@given(shares_of_four, shares_of_four, st.lists(st.booleans(), min_size=4, max_size=4))
def test_shift_lift_and_top_by_plain_loops(belief, prior, tier):
    looked = [v for v in range(4) if tier[v]]
    ratios = [math.inf if prior[v] == 0 else belief[v] / prior[v] for v in looked if belief[v] > 0]
    assert max_shift(belief, prior, tier) == max([abs(belief[v] - prior[v]) for v in looked], default=0)
    assert max_lift(belief, prior, tier) == max(ratios, default=0)
    assert top_share(belief, tier) == max([belief[v] for v in looked], default=0)


@given(shares_of_four, shares_of_four)
def test_a_lift_bounds_the_top_of_everything(belief, prior):
    lift = max_lift(belief, prior, [True] * 4)
    assert lift >= 1 - 1e-12
    assert max_lift(belief, belief, [True] * 4) == 1


def test_what_the_prior_ruled_out_is_infinitely_lifted():
    found = max_lift([[0.5, 0.5], [1.0, 0.0]], [1.0, 0.0], [True, True])
    np.testing.assert_array_equal(found, [math.inf, 1])
    assert not meets("lift_max", found[0], 1e9)
    assert max_lift([1.0, 0.0], [1.0, 0.0], [False, True]) == 0


@pytest.mark.filterwarnings("error")
def test_without_a_prior_there_is_no_shift_and_no_lift():
    belief, nan = np.full((2, 3), 1 / 3), np.array([[np.nan] * 3, [1 / 3] * 3])
    for tier in ([True] * 3, [False] * 3):
        for measure in (max_shift, max_lift):
            np.testing.assert_array_equal(np.isnan(measure(belief, nan, tier)), [True, False])
            np.testing.assert_array_equal(np.isnan(measure(nan, belief, tier)), [True, False])
        np.testing.assert_array_equal(np.isnan(top_share(nan, tier)), [True, False])
    np.testing.assert_array_equal(top(nan), [-1, 0])


def test_the_first_of_equals_is_on_top():
    np.testing.assert_array_equal(top([[3, 5, 5], [5, 5, 1], [0, 0, 0]]), [1, 0, -1])
    assert top([0.2, 0.4, 0.4]) == 1


@pytest.mark.filterwarnings("error")
def test_nothing_to_measure_is_no_warning():
    none, up = np.zeros((0, 4)), np.array([0, 0, 1, 1])
    within = within_class(none, up, 2, np.zeros(4))
    assert within.shape == spread(np.zeros((0, 2)), within, up).shape == (0, 4)
    for measure in (max_shift, max_lift):
        assert measure(none, none, np.ones(4, bool)).shape == (0,)
    assert top(np.zeros((2, 0))).tolist() == [-1, -1]
    assert top_share(none, np.ones(4, bool)).shape == top(none).shape == (0,)


def test_a_nan_anywhere_is_nan_also_outside_the_tier():
    some, whole = np.array([np.nan, 0.5, 0.5]), np.array([0.2, 0.3, 0.5])
    tier = [False, True, True]
    for measure in (max_shift, max_lift):
        assert np.isnan(measure(some, whole, tier))
        assert np.isnan(measure(whole, some, tier))
    for measure in (top_share, tier_share):
        assert np.isnan(measure(some, tier))
        np.testing.assert_array_equal(np.isnan(measure([some, whole], tier)), [True, False])


def test_an_attribute_without_values_has_no_top_and_nothing_in_its_tier():
    assert top(np.zeros(0)) == -1
    assert top(np.zeros((2, 3, 0))).tolist() == [[-1] * 3] * 2
    assert max_shift([], [], []) == max_lift([], [], []) == top_share([], []) == tier_share([], []) == 0


# --- the tier as a whole --------------------------------------------------------------------------------------


def test_belief_in_the_tier_as_a_whole() -> None:
    tier = np.array([False, True, False, True, False])
    assert tier_share(C58 / 48, tier) == pytest.approx(44 / 48)
    both = tier_share([C58 / 48, C72 / 53, np.full(5, np.nan)], tier)
    assert both == pytest.approx([44 / 48, 9 / 53, np.nan], nan_ok=True)
    assert tier_share(C58 / 48, ~ALL) == 0
    assert tier_share(C58 / 48, tier) >= top_share(C58 / 48, tier)
