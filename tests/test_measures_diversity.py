"""Shares, effective count, distinct l, recursive (c, l): worked examples, oracles by plain loops, laws."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geodiv.measures import distinct, effective_count, recursive_c, shares
from geodiv.policy import meets

WORKED = {  # counts: distinct, H, L, top share, c_2, c_3, c_4
    (34,): (1, 0, 1, 1, math.inf, math.inf, math.inf),
    (41, 3, 2, 2): (4, 0.572766, 1.773165, 0.854167, 5.857143, 10.25, 20.5),
    (18, 15, 11, 9): (4, 1.351437, 3.862972, 0.339623, 0.514286, 0.9, 2),
    (18, 1, 1): (3, 0.394398, 1.483490, 0.9, 9, 18, math.inf),
}
counts_lists = st.lists(st.integers(0, 60), min_size=1, max_size=12).filter(any)


def entropy(counts: list[int]) -> float:
    """In nats, from the definition."""
    total = sum(counts)
    return -math.fsum(c / total * math.log(c / total) for c in counts if c)


def infimum_c(counts: list[int], l: int) -> Fraction | float:  # noqa: E741
    """The (c, l) infimum in exact arithmetic."""
    r = sorted((c for c in counts if c), reverse=True)
    tail = sum(r[l - 1 :])
    return Fraction(r[0], tail) if tail else math.inf


@pytest.mark.parametrize(("counts", "expected"), WORKED.items(), ids=str)
def test_worked_examples(counts, expected):
    p = shares(counts)
    c = [recursive_c(p, l) for l in (2, 3, 4)]  # noqa: E741
    effective = effective_count(p)
    found = (distinct(counts), np.log(effective), effective, p.max(), *c)
    assert found == pytest.approx(expected, abs=5e-7)


def test_the_often_quoted_figures_of_c58_are_wrong():
    p = shares([41, 3, 2, 2])
    assert round(float(np.log(effective_count(p))), 2) != 0.53
    assert round(float(effective_count(p)), 2) != 1.70
    assert round(float(p[0]), 2) != 0.82


@pytest.mark.parametrize(
    ("counts", "effective"),
    [((10, 10), 2.0), ((20, 10), 1.89), ((6, 5, 4), 2.96), ((6, 5), 1.99), ((10, 5, 0, 0), 1.89)],
)
def test_more_worked_effective_counts(counts, effective):
    assert effective_count(shares(counts)) == pytest.approx(effective, abs=5e-3)


def test_share_of_a_value_is_of_contributions_not_of_persons():
    assert shares([15, 5, 4])[0] == 0.625


def test_uniform_counts_pass_their_own_number():
    for m in range(2, 21):
        n = np.arange(1, 101)[:, None]
        assert meets("l_min", effective_count(shares(np.repeat(n, m, axis=1))), m).all(), m


def test_nearly_uniform_counts_fail():
    assert not meets("l_min", effective_count(shares([6, 5, 4])), 3)
    assert not meets("l_min", effective_count(shares([1000, 1000, 999])), 3)


@given(counts_lists)
def test_effective_count_is_exp_of_entropy(counts):
    assert effective_count(shares(counts)) == pytest.approx(math.exp(entropy(counts)), rel=1e-12)


@given(counts_lists, st.integers(1, 14))
def test_recursive_c_is_the_exact_infimum(counts, l):  # noqa: E741
    expected = infimum_c(counts, l)
    assert recursive_c(shares(counts), l) == pytest.approx(float(expected), rel=1e-12)
    assert recursive_c(counts, l) == pytest.approx(float(expected), rel=1e-12)


@given(counts_lists, st.integers(1, 14), st.integers(1, 40), st.integers(1, 40))
def test_recursive_diversity_is_strict_at_equality(counts, l, a, b):  # noqa: E741
    threshold = Fraction(a, b)
    assert bool(meets("c_max", recursive_c(shares(counts), l), float(threshold))) == (
        infimum_c(counts, l) < threshold
    )


def test_a_c_that_equals_its_threshold_fails_whatever_was_rounded():
    for counts, threshold in [((18, 1, 1), 9), ((36, 19, 17, 9), 0.8)]:
        assert not meets("c_max", recursive_c(shares(counts), 2), threshold)
        assert meets("c_max", recursive_c(shares(counts), 2), threshold + 1e-6)


@given(counts_lists)
def test_effective_count_lies_between_one_and_distinct(counts):
    effective, number = effective_count(shares(counts)), distinct(counts)
    assert 1 - 1e-12 <= effective <= number + 1e-9
    uniform = len({c for c in counts if c}) == 1
    assert bool(meets("l_min", effective, number)) == uniform


@given(counts_lists, st.randoms(use_true_random=False), st.integers(1, 9))
def test_order_and_scale_and_absent_values_change_nothing(counts, random, factor):
    other = [factor * c for c in counts] + [0]
    random.shuffle(other)
    p, q = shares(counts), shares(other)
    assert effective_count(q) == pytest.approx(effective_count(p), rel=1e-12)
    assert distinct(other) == distinct(counts)
    assert recursive_c(q, 2) == pytest.approx(recursive_c(p, 2), rel=1e-12)


@given(counts_lists, st.data())
def test_summing_counts_into_labels_never_raises_the_entropy(counts, data):
    labels = data.draw(st.lists(st.integers(0, 3), min_size=len(counts), max_size=len(counts)))
    coarse = np.bincount(labels, weights=counts)
    assert effective_count(shares(coarse)) <= effective_count(shares(counts)) + 1e-9


@given(counts_lists)
def test_recursive_c_rises_with_l(counts):
    c = [recursive_c(shares(counts), l) for l in range(1, len(counts) + 2)]  # noqa: E741
    assert all(a <= b * (1 + 1e-12) for a, b in pairwise(c))


@given(st.lists(st.lists(st.integers(0, 9), min_size=5, max_size=5), min_size=1, max_size=6))
def test_rows_are_measured_as_if_alone(rows):
    together = np.array(rows)
    p = shares(together)
    for measure in (effective_count, lambda x: recursive_c(x, 2), distinct):
        np.testing.assert_array_equal(measure(p), [measure(shares(row)) for row in rows])
    np.testing.assert_array_equal(effective_count(p[None]), effective_count(p)[None])


def test_an_empty_row_has_no_mix():
    p = shares([[0, 0], [1, 3]])
    np.testing.assert_array_equal(p, [[np.nan, np.nan], [0.25, 0.75]])
    np.testing.assert_array_equal(np.isnan(effective_count(p)), [True, False])
    np.testing.assert_array_equal(np.isnan(recursive_c(p, 3)), [True, False])
    np.testing.assert_array_equal(distinct([[0, 0], [1, 3]]), [0, 2])
    assert np.isnan(effective_count([0.0, 0.0]))


@pytest.mark.filterwarnings("error")
def test_nothing_to_measure_is_no_warning():
    none = np.zeros((0, 4))
    assert shares(none).shape == (0, 4)
    assert effective_count(none).shape == recursive_c(none, 2).shape == distinct(none).shape == (0,)
    no_values = shares(np.zeros((2, 0)))
    assert np.isnan(effective_count(no_values)).all()
    assert np.isnan(recursive_c(no_values, 2)).all()
    nan = np.full((2, 3), np.nan)
    assert np.isnan(effective_count(nan)).all()
    assert np.isnan(recursive_c(nan, 2)).all()
