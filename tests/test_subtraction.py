"""The mix of a level is published where the map taken off it leaves more than one zone, and not where it does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from crowds import FAR, ROW, tabulate

import geodiv as gd
from geodiv import audits

EVEN = {"a": 5, "b": 5, "c": 5, "d": 5}
CLASSES = gd.Nominal("activity", taxonomy=gd.Taxonomy((("a", "X"), ("b", "X"), ("c", "Y"), ("d", "Y"))))
APART = (ROW[0], ROW[3], ROW[6], FAR)
"""Cells that do not touch: nothing merges."""


def enforced(*cells: Mapping[Any, int], **policy: Any) -> gd.Outcome:
    """The outcome of cells apart; a cell of two values passes by its classes only."""
    chosen: dict[str, Any] = {"k_min": 5, "share_max": 0.45, **policy}
    return gd.enforce(tabulate(dict(zip(APART, cells, strict=False)), CLASSES), gd.Policy(**chosen))


def levels(outcome: gd.Outcome) -> list[int]:
    """Levels whose mix is published."""
    return sorted(set(outcome.release.reference["level"]))


def test_where_everything_is_shown_every_level_is_published() -> None:
    outcome = enforced(EVEN, EVEN)
    assert levels(outcome) == [0, 1]
    assert outcome.release.reference["share"].tolist() == [0.25] * 4 + [0.5] * 2


def test_a_lone_coarser_zone_keeps_its_finest_mix_to_itself() -> None:
    """(15, 5, 15, 5) less (5, 5, 5, 5) would be (10, 0, 10, 0): its fine counts, which it does not publish."""
    outcome = enforced(EVEN, {"a": 10, "c": 10})
    assert outcome.release.cells["remedy"].tolist().count("publish_coarsened") == 1
    assert levels(outcome) == [1]
    assert audits.attack(outcome.release).faults.empty


def test_two_coarser_zones_hide_behind_each_other() -> None:
    assert levels(enforced(EVEN, {"a": 10, "c": 10}, {"b": 10, "d": 10})) == [0, 1]


@pytest.mark.parametrize(("other", "published"), [({"b": 10, "d": 10}, [0, 1]), ({"a": 10, "c": 10}, [1])])
def test_what_is_left_has_to_hold_l(other: dict[str, int], published: list[int]) -> None:
    assert levels(enforced(EVEN, {"a": 10, "c": 10}, other, l_min=3)) == published


def test_less_than_the_third_decimal_tells_nothing() -> None:
    crowd = dict.fromkeys("abcd", 10_000)
    assert levels(enforced(crowd, {"a": 10, "c": 10})) == [0, 1]
    assert levels(enforced(crowd, {"a": 11, "c": 10})) == [1]


def test_a_lone_cell_that_is_not_published_is_in_no_mix() -> None:
    assert levels(enforced(EVEN, EVEN, {"a": 10}, residual=False)) == []
    assert levels(enforced(EVEN, EVEN, {"a": 10}, {"c": 10}, residual=False)) == [0, 1]


def test_the_mix_of_one_cell_is_that_cell() -> None:
    outcome = enforced({"a": 10})
    assert outcome.release.cells.empty
    assert levels(outcome) == []


def test_a_cell_below_k_is_in_no_mix_and_takes_none_away() -> None:
    assert levels(enforced(EVEN, EVEN, {"a": 2})) == [0, 1]
