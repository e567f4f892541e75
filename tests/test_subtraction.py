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
APART = (ROW[0], ROW[2], ROW[4], ROW[6], FAR)
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


def test_coarser_zones_of_different_classes_do_not_hide_each_other() -> None:
    """Q^0 less the map is 12 of a and 12 of c; one zone shows X alone and the other Y."""
    crowd = dict.fromkeys("abcd", 100)
    assert levels(enforced(crowd, {"a": 12}, {"c": 12}, share_max=0.6)) == [1]
    assert levels(enforced(crowd, {"a": 12}, {"b": 12}, share_max=0.6)) == [0, 1]
    assert levels(enforced(crowd, {"a": 8, "b": 4}, {"c": 8, "d": 4}, share_max=0.6)) == [1]
    assert levels(enforced(crowd, {"a": 14, "c": 3, "d": 3}, {"b": 12}, share_max=0.6)) == [1]


def test_a_class_may_be_one_of_what_is_not_published_too() -> None:
    cells = (EVEN, {"a": 10, "c": 10}, {"b": 20}, {"d": 20})
    outcome = enforced(*cells, residual=False)
    assert (outcome.release.metadata["not_published"], levels(outcome)) == (2, [0, 1])


def test_a_coarser_mix_may_be_kept_back_beside_a_finer_one() -> None:
    """(10, 10) of a and b holds two values; 20 of their class, spread as everybody is, do not."""
    crowd = {"a": 40, "b": 10, "c": 40, "d": 10}
    outcome = enforced(crowd, {"a": 10}, {"b": 10}, share_max=0.6, l_min=2)
    assert (outcome.release.metadata["not_published"], levels(outcome)) == (2, [0])


def test_a_class_of_which_one_value_is_left_is_that_value() -> None:
    """Both coarser zones show X and Y; of X nobody in them did b, so that all of it is a."""
    assert levels(enforced(EVEN, {"a": 9, "c": 8, "d": 2}, {"a": 8, "d": 9, "c": 2})) == [1]
    assert levels(enforced(EVEN, {"a": 9, "c": 8, "d": 2}, {"a": 7, "b": 1, "d": 9, "c": 2})) == [0, 1]
    one_zone = enforced(EVEN, {"a": 9, "c": 8, "d": 2}, {"a": 20}, {"d": 20}, residual=False)
    assert (one_zone.release.metadata["not_published"], levels(one_zone)) == (2, [1])


@pytest.mark.parametrize(("other", "published"), [("a", [1, 2]), ("b", [0, 1, 2])])
def test_a_class_of_which_one_value_is_left_is_that_value_for_one_person_too(
    other: str, published: list[int]
) -> None:
    """Each of two coarser zones has one person in W."""
    found = of_three(CROWD, {"a": 1, "c": 3, "e": 3}, {other: 1, "d": 3, "f": 3}, share_max=0.4)
    assert sorted(found.release.cells["activity_level"]) == [0, 1, 1]
    assert levels(found) == published


@pytest.mark.parametrize(("more", "published"), [("", [0, 1]), ("f", [1])])
def test_a_class_of_one_value_has_nothing_to_hide(more: str, published: list[int]) -> None:
    """One zone alone shows Y. Where c is all there is of it, its count is on the map."""
    rows = [("a", "X"), ("b", "X"), ("c", "Y"), ("d", "Z"), ("e", "Z"), *((v, "Y") for v in more)]
    attribute = gd.Nominal("activity", taxonomy=gd.Taxonomy(tuple(rows)))
    cells = (dict.fromkeys("abcde" + more, 100), {"a": 10, "d": 10, "c": 4}, {"b": 10, "e": 10})
    table = tabulate(dict(zip(APART, cells, strict=False)), attribute)
    found = gd.enforce(table, gd.Policy(k_min=5, share_max=0.4))
    assert sorted(found.release.cells["activity_level"]) == [0, 1, 1]
    assert levels(found) == published


@pytest.mark.parametrize(("other", "published"), [({"b": 10, "d": 10}, [0, 1]), ({"a": 10, "c": 10}, [1])])
def test_what_is_left_has_to_hold_l(other: dict[str, int], published: list[int]) -> None:
    assert levels(enforced(EVEN, {"a": 10, "c": 10}, other, l_min=3)) == published


def test_less_than_the_third_decimal_tells_nothing() -> None:
    crowd = dict.fromkeys("abcd", 10_000)
    assert levels(enforced(crowd, {"a": 10, "c": 10})) == [0, 1]
    assert levels(enforced(crowd, {"a": 11, "c": 10})) == [1]
    assert levels(enforced(dict.fromkeys("abcd", 9_995), {"a": 10, "c": 10})) == [0, 1], (
        "20 of 40,000 are a half"
    )


def test_a_lone_cell_that_is_not_published_is_in_no_mix() -> None:
    assert levels(enforced(EVEN, EVEN, {"a": 10}, residual=False)) == []
    assert levels(enforced(EVEN, EVEN, {"a": 10}, {"c": 10}, residual=False)) == [0, 1]


def test_the_mix_of_one_cell_is_that_cell() -> None:
    outcome = enforced({"a": 10})
    assert outcome.release.cells.empty
    assert levels(outcome) == []


def test_a_cell_below_k_is_in_no_mix_and_takes_none_away() -> None:
    assert levels(enforced(EVEN, EVEN, {"a": 2})) == [0, 1]


THREE = gd.Nominal(
    "activity",
    taxonomy=gd.Taxonomy(
        tuple((v, c, u) for v, c, u in zip("abcdefgh", "WWXXYYZZ", "PPPPQQQQ", strict=True))
    ),
)
CROWD = dict.fromkeys("abcdefgh", 30)
QUARTERS, HALVES = (dict.fromkeys("aceg", 10), dict.fromkeys("bdfh", 10)), {"a": 20, "e": 20}


def of_three(*cells: Mapping[Any, int], **policy: Any) -> gd.Outcome:
    """The outcome of cells apart, under a taxonomy of two levels."""
    chosen: dict[str, Any] = {"k_min": 5, "share_max": 0.24, **policy}
    return gd.enforce(tabulate(dict(zip(APART, cells, strict=False)), THREE), gd.Policy(**chosen))


def test_a_finer_mix_adds_up_to_that_of_a_class() -> None:
    """Values of W in Q^0 x 360, less 60 and twice 10 shown, are the 20 of the zone that shows no more than P and Q."""
    found = of_three(CROWD, *QUARTERS, HALVES)
    assert sorted(found.release.cells["activity_level"]) == [0, 1, 1, 2]
    assert levels(found) == [2]
    assert levels(of_three(CROWD, *QUARTERS, HALVES, {"d": 20, "h": 20})) == [0, 1, 2]


def test_what_a_finer_mix_leaves_of_a_class_has_to_hold_l() -> None:
    """All that is coarser holds 6 values; what is left when the quarters are off too holds fewer than 5."""
    zones = (CROWD, *QUARTERS, HALVES, {"a": 18, "c": 2, "e": 18, "g": 2})
    assert levels(of_three(*zones, l_min=4.5)) == [0, 1, 2]
    assert levels(of_three(*zones, l_min=5)) == [2]


def test_a_class_of_one_value_at_one_level_takes_nothing_from_a_coarser_one() -> None:
    """X is c alone; both zones that show P hold c behind it, and the one that shows W and Y has none."""
    rows = (("a", "W", "P"), ("b", "W", "P"), ("c", "X", "P"), ("e", "Y", "Q"), ("f", "Y", "Q"))
    cells = (
        dict.fromkeys("abcef", 30),
        {"a": 9, "b": 1, "e": 9, "f": 1},
        {"c": 10, "a": 1, "e": 11},
        {"c": 10, "a": 1, "f": 11},
    )
    attribute = gd.Nominal("activity", taxonomy=gd.Taxonomy(rows))
    found = gd.enforce(
        tabulate(dict(zip(APART, cells, strict=False)), attribute), gd.Policy(k_min=5, share_max=0.4)
    )
    assert sorted(found.release.cells["activity_level"]) == [0, 1, 2, 2]
    assert levels(found) == [0, 1, 2]


def joined(
    small: Mapping[int, Mapping[str, int]], large: Mapping[str, int] = EVEN, l_min: float = 2
) -> list[int]:
    """Levels published when small cells, by their place in the row, stand beside large ones at 0 and 3."""
    counts = {ROW[0]: large, ROW[3]: large, FAR: EVEN} | {ROW[i]: cell for i, cell in small.items()}
    outcome = gd.enforce(tabulate(counts, CLASSES), gd.Policy(k_min=5, l_min=l_min))
    assert outcome.release.metadata["not_published"] == 0
    return levels(outcome)


def test_a_lone_cell_below_k_in_a_zone_keeps_the_mix_to_itself() -> None:
    """Q x 60 less the other zones is (5, 5, 5, 5); the zone shows (7, 5, 5, 5): the 2 of the small cell did a."""
    assert joined({}) == [0, 1]
    assert joined({1: {"a": 2}}) == []


@pytest.mark.parametrize(
    ("one", "other", "published"),
    [
        ({"a": 3}, {"c": 3}, [0, 1]),
        ({"a": 2}, {"c": 2}, []),  # together below k
        ({"a": 3}, {"a": 3}, [1]),  # together below l, but for who knows the class alone
        ({"a": 3}, {"b": 3}, [0, 1]),
    ],
)
def test_cells_below_k_in_zones_have_to_be_safe_together(
    one: dict[str, int], other: dict[str, int], published: list[int]
) -> None:
    assert joined({1: one, 4: other}) == published


def test_cells_below_k_of_one_zone_are_one() -> None:
    counts = {ROW[0]: {"a": 3}, ROW[1]: EVEN, ROW[2]: {"c": 3}, FAR: EVEN}
    found = gd.enforce(tabulate(counts, CLASSES), gd.Policy(k_min=5, l_min=2))
    assert sorted(found.release.cells["n_members"]) == [1, 3]
    assert levels(found) == []


def test_what_cells_below_k_were_joined_to_has_to_hold_l() -> None:
    """Two cells of a alone, each joined by four of c: a reader would have them back as they were."""
    assert joined({1: {"c": 4}, 4: {"c": 4}}, large={"a": 6}, l_min=1.9) == []
    assert joined({1: {"c": 4}, 4: {"c": 4}}, large={"a": 6, "b": 6}, l_min=1) == [0, 1]


def test_a_value_of_cells_below_k_that_one_zone_shows_is_read_off() -> None:
    """Both have c; d, which the other does not show, was done in the small cell of the second."""
    large = {"a": 6, "b": 6}
    assert joined({1: {"c": 4}, 4: {"c": 3, "d": 1}}, large=large, l_min=1) == [1]
    assert joined({1: {"c": 3, "d": 1}, 4: {"c": 3, "d": 1}}, large=large, l_min=1) == [0, 1]


def test_a_value_that_one_zone_shows_and_no_cell_below_k_has_tells_nothing() -> None:
    counts = {ROW[0]: {"a": 6, "b": 6}, ROW[1]: {"a": 3}, ROW[3]: {"a": 6, "c": 6}, ROW[4]: {"a": 3}}
    outcome = gd.enforce(tabulate(counts, CLASSES), gd.Policy(k_min=5, l_min=1))
    assert sorted(outcome.release.cells["n_members"]) == [2, 2]
    assert levels(outcome) == [0, 1]


def test_a_zone_of_cells_below_k_alone_is_in_no_mix_whatever_it_shows() -> None:
    assert joined({6: {"a": 3}, 7: {"c": 3}}) == [0, 1]
    assert joined({6: {"a": 3}, 7: {"c": 3}, 1: {"b": 2}}) == []


def test_few_persons_of_cells_below_k_drown_in_the_third_decimal() -> None:
    assert joined({1: {"a": 4}}, large=dict.fromkeys("abcd", 1000)) == [0, 1]
    assert joined({1: {"a": 4}}, large=dict.fromkeys("abcd", 990)) == []
