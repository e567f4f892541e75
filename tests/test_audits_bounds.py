"""Possible counts and best values: against every composition that the rule of hiding allows, in plain loops."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geodiv.audits import bounds
from geodiv.ground import path, star
from geodiv.measures import effective_count, recursive_c, shares, tree_distance

NO_ENTROPY = np.zeros(3)


def hidden_by_rule(n: tuple[int, ...], count_min: int) -> tuple[bool, ...]:
    """Which counts a release hides, in the words of the definition."""
    small = [i for i, x in enumerate(n) if 0 < x < count_min]
    rest = sorted((x, i) for i, x in enumerate(n) if x >= count_min)
    extra = [rest[0][1]] if small and rest else []
    return tuple(i in small or i in extra for i in range(len(n)))


def fitting(n: tuple[int, ...], persons: int, count_min: int) -> set[tuple[int, ...]]:
    """Every composition that would have been published as `n` is."""
    hidden = hidden_by_rule(n, count_min)
    ranges = [range(1, persons + 1) if h else [x] for x, h in zip(n, hidden, strict=True)]
    return {
        m
        for m in itertools.product(*ranges)
        if hidden_by_rule(m, count_min) == hidden and max(m) <= persons <= sum(m)
    }


def box_of(n: tuple[int, ...], persons: int, count_min: int) -> bounds.Boxes:
    hidden = np.array([hidden_by_rule(n, count_min)])
    shown = np.where(hidden, 0, np.array([n], dtype=float))
    return bounds.boxes(shown, hidden, np.array([float(persons)]), count_min)


mixes = st.lists(st.integers(0, 6), min_size=2, max_size=4).map(tuple).filter(lambda n: sum(n) > 0)


@given(n=mixes, extra=st.integers(0, 3), count_min=st.integers(1, 5))
def test_boxes_hold_every_fitting_composition(n: tuple[int, ...], extra: int, count_min: int) -> None:
    persons = max(max(n), sum(n) - extra)
    box = box_of(n, persons, count_min)
    inside = {
        m
        for low, high in zip(box.low, box.high, strict=True)
        for m in itertools.product(*(range(math.ceil(a), int(b) + 1) for a, b in zip(low, high, strict=True)))
        if sum(m) >= persons
    }
    assert inside == fitting(n, persons, count_min)


@given(n=mixes, count_min=st.integers(1, 4), c_l=st.integers(1, 3))
def test_no_fitting_composition_is_better_than_the_best(n: tuple[int, ...], count_min: int, c_l: int) -> None:
    persons = sum(n)
    box = box_of(n, persons, count_min)
    all_ = np.array(sorted(fitting(n, persons, count_min)), dtype=float)
    most = box.most(bounds.most_effective(box.low, box.high, np.zeros(len(n))), 1)[0]
    assert most >= effective_count(shares(all_)).max() - 1e-6
    least = box.best(bounds.least_recursive(box.low, box.high, c_l), 1)[0]
    assert least <= recursive_c(all_, c_l).min() + 1e-9
    low, high = bounds.share_box(box.low, box.high)
    assert (box.best(low[:, 0], 1)[0] <= shares(all_)[:, 0].min() + 1e-9).all()
    assert (box.most(high[:, 0], 1)[0] >= shares(all_)[:, 0].max() - 1e-9).all()


@given(n=mixes, count_min=st.integers(1, 4), q=st.lists(st.integers(1, 9), min_size=4, max_size=4))
def test_no_fitting_composition_is_nearer_to_a_mix_that_rounds_alike(
    n: tuple[int, ...], count_min: int, q: list[int]
) -> None:
    m = len(n)
    true = shares(np.array(q[:m]))
    rounded = true.round(3)
    q_low, q_high = np.maximum(rounded - 0.0005, 0), rounded + 0.0005
    box = box_of(n, sum(n), count_min)
    p = shares(np.array(sorted(fitting(n, sum(n), count_min)), dtype=float))
    low, high = bounds.share_box(box.low, box.high)
    nearest = box.best(bounds.least_variation(low, high, q_low, q_high), 1)[0]
    assert nearest <= tree_distance(p, true, star(m)).min() + 1e-9
    ordered = path(range(m), missing=False)
    one = np.ones(m)
    along = bounds.least_distance(low - q_high, high - q_low, one, one, np.arange(m), ordered)
    assert box.best(along, 1)[0] <= tree_distance(p, true, ordered).min() + 1e-9


def test_counts_that_are_shown_are_exact() -> None:
    box = box_of((41, 3, 2, 2), 48, 1)
    assert box.low.tolist() == box.high.tolist() == [[41, 3, 2, 2]]
    assert bounds.most_effective(box.low, box.high, np.zeros(4)) == pytest.approx([1.773165], abs=1e-6)
    assert bounds.least_recursive(box.low, box.high, 3) == pytest.approx([10.25])


def test_three_labels_with_two_hidden_by_hand() -> None:
    """Shop 8 shown, gym and bar hidden below 3, 12 persons: 8, 3-7, 1-2 either way round; 8, 6, 2 is most even."""
    box = bounds.boxes(np.array([[8.0, 0, 0]]), np.array([[False, True, True]]), np.array([12.0]), 3)
    most = box.most(bounds.most_effective(box.low, box.high, NO_ENTROPY), 1)
    whole = max(effective_count(shares([8, x, y])) for x in range(3, 8) for y in (1, 2))
    assert whole == effective_count(shares([8, 6, 2])) == pytest.approx(2.649351, abs=1e-6)
    assert whole <= most[0] <= whole + 1e-4


def test_a_tie_goes_to_the_first_label() -> None:
    """A shown label with 5 before the hidden one would itself have been hidden: so at most 4 there, 5 before it."""
    later = bounds.boxes(np.array([[5.0, 0, 0]]), np.array([[False, True, True]]), np.array([8.0]), 3)
    before = bounds.boxes(np.array([[0, 0, 5.0]]), np.array([[True, True, False]]), np.array([8.0]), 3)
    assert later.high.max(axis=0).tolist() == [5, 4, 4]
    assert before.high.max(axis=0).tolist() == [5, 5, 5]


def test_a_single_hidden_count_beside_a_shown_one_is_impossible() -> None:
    box = bounds.boxes(np.array([[8.0, 0]]), np.array([[False, True]]), np.array([9.0]), 3)
    assert len(box.row) == 0


def test_labels_that_hold_fewer_than_the_zone_are_impossible() -> None:
    assert len(bounds.boxes(np.array([[8.0, 3]]), np.zeros((1, 2), bool), np.array([12.0]), 3).row) == 0
    assert len(bounds.boxes(np.array([[8.0, 3]]), np.zeros((1, 2), bool), np.array([11.0]), 3).row) == 1


@given(
    q=st.lists(st.floats(0.01, 1), min_size=4, max_size=4),
    width=st.floats(0.0001, 0.01),
    move=st.lists(st.floats(-1, 1), min_size=4, max_size=4),
)
def test_the_mix_within_a_class_lies_in_its_box(q: list[float], width: float, move: list[float]) -> None:
    up = np.array([0, 0, 1, 1])
    true = np.array(q) / sum(q)
    low, high = np.maximum(true - width, 0), true + width
    low, high = bounds.class_box(low, high, up, 2)
    other = np.clip(true + width * np.array(move), 1e-6, None)
    for mix in (true, other):
        inside = mix / np.bincount(up, weights=mix)[up]
        assert ((low <= inside + 1e-9) & (inside <= high + 1e-9)).all()
    entropy = bounds.class_entropy(np.maximum(true - width, 0), true + width, up, 2)
    for c in (0, 1):
        inside = other[up == c] / other[up == c].sum()
        assert entropy[c] >= -(inside * np.log(inside)).sum() - 1e-9
