"""Two releases: one person's difference, and releases that may not be compared."""

from __future__ import annotations

from typing import Any

import pytest
from people import enforced, visits, with_metadata

import geodiv as gd
from geodiv import audits

POLICY = gd.Policy(k_min=10, l_min=1.8, residual=False)
HERE, THERE = "88196352e9fffff", "88196352edfffff"
H3 = gd.H3Grid(8, column="cell")


def release(cells: dict[str, dict[str, int]], policy: gd.Policy = POLICY, **keywords: Any) -> gd.Release:
    return enforced(visits(cells), policy, **keywords).release


def test_the_same_release_twice_gives_nothing() -> None:
    made = release({"a": {"clinic": 10, "gym": 10}})
    found = audits.difference(made, made)
    assert not found.failed
    assert found.overlaps["relation"].tolist() == ["same"]


def test_one_persons_difference_is_found() -> None:
    """20 persons, then 21: one more at the clinic."""
    found = audits.difference(
        release({"a": {"clinic": 10, "gym": 10}}), release({"a": {"clinic": 11, "gym": 10}})
    )
    assert found.failed
    assert found.disclosures[["gate", "value", "difference"]].values.tolist() == [
        ["k_min", None, 1.0],
        ["k_min", "clinic", 1.0],
    ]


def test_a_difference_of_many_of_one_kind_is_below_l() -> None:
    found = audits.difference(
        release({"a": {"clinic": 20, "gym": 20}}), release({"a": {"clinic": 32, "gym": 20}})
    )
    assert found.disclosures[["gate", "difference"]].values.tolist() == [["l_min", 1.0]]


def test_a_difference_of_many_of_all_kinds_is_none() -> None:
    found = audits.difference(
        release({"a": {"clinic": 20, "gym": 20}}), release({"a": {"clinic": 32, "gym": 32}})
    )
    assert not found.failed


def test_a_zone_within_a_zone_is_subtracted() -> None:
    """One cell of 21 in the first release; in the second it is merged with its neighbour, 24 together."""
    first = release({HERE: {"clinic": 12, "gym": 9}}, grid=H3)
    second = release({HERE: {"clinic": 12}, THERE: {"gym": 12}}, grid=H3)
    assert second.cells["n_members"].tolist() == [2]
    found = audits.difference(first, second)
    assert found.overlaps["relation"].tolist() == ["inside"]
    assert found.disclosures[["gate", "value", "difference"]].values.tolist() == [
        ["k_min", None, 3.0],
        ["k_min", "gym", 3.0],
    ]
    turned = audits.difference(second, first)
    assert turned.overlaps["relation"].tolist() == ["around"]
    assert len(turned.disclosures) == 2


def test_hidden_counts_accuse_only_when_they_must_differ() -> None:
    """bar 2 and cafe 3 are hidden, each at most 8; then nobody is at the bar, and 5 at the cafe, as may have been."""
    before = release({"a": {"clinic": 8, "gym": 9, "bar": 2, "cafe": 3}}, count_min=3)
    assert not audits.difference(before, before).failed
    after = release({"a": {"clinic": 8, "gym": 9, "cafe": 5}}, count_min=3)
    found = audits.difference(before, after)
    assert found.disclosures[["gate", "value", "difference"]].values.tolist() == [["k_min", "bar", 1.0]]
    assert found.not_comparable == ("labels of poi",)


def test_releases_that_were_made_otherwise_are_not_comparable_by_name() -> None:
    classes = gd.Taxonomy.of({"clinic": "errand", "gym": "leisure"}, "poi", "v1")
    other = gd.Taxonomy.of({"clinic": "health", "gym": "leisure"}, "poi", "v2")
    cells = {"a": {"clinic": 10, "gym": 10}}
    frame = visits(cells)
    one = enforced(frame, POLICY, gd.Nominal("poi", taxonomy=classes)).release
    two = enforced(
        frame,
        gd.Policy(k_min=10, l_min=1.9, residual=False, reference=gd.Ring(fallback="global")),
        gd.Nominal("poi", taxonomy=other),
        count_min=2,
    ).release
    found = audits.difference(one, two)
    assert found.failed
    assert found.not_comparable == ("thresholds", "reference scope", "count_min", "taxonomy digest of poi")
    assert not len(found.disclosures)


def test_another_grid_is_not_compared_zone_by_zone() -> None:
    made = release({"a": {"clinic": 10, "gym": 10}})
    other = with_metadata(made, grid={"kind": "h3", "resolution": 8})
    found = audits.difference(made, other)
    assert found.not_comparable == ("grid",)
    assert not len(found.overlaps)


def test_the_same_zone_finer_in_one_of_the_two() -> None:
    classes = gd.Taxonomy.of({"clinic": "errand", "retail": "errand", "gym": "leisure", "bar": "leisure"})
    frame = visits({"a": {"clinic": 10, "retail": 10, "gym": 10, "bar": 10}})
    fine = enforced(frame, POLICY, gd.Nominal("poi", taxonomy=classes)).release
    coarse = enforced(frame, POLICY, gd.Nominal("poi", taxonomy=classes, level=1)).release
    found = audits.difference(fine, coarse)
    assert found.disclosures["gate"].tolist() == ["level"]
    assert found.disclosures["difference"].tolist() == pytest.approx([1])


def test_what_differs_between_two_releases_is_named() -> None:
    mix = {"a": {"clinic": 10, "gym": 10}}
    frame = visits(mix).assign(band="low")
    band = gd.Nominal("band")
    one, two = (
        enforced(frame, POLICY).release,
        enforced(frame, gd.Policy(k_min=10), gd.Nominal("poi"), band).release,
    )
    assert set(audits.difference(one, two).not_comparable) == {"attribute band", "thresholds"}
    strict = gd.Nominal("poi", gates={"l_min": 1.5})
    assert audits.difference(one, enforced(frame, POLICY, strict).release).not_comparable == (
        "thresholds of poi",
    )
    more = visits({"a": {"clinic": 10, "gym": 10, "bar": 10}})
    assert audits.difference(one, enforced(more, POLICY).release).not_comparable == ("labels of poi",)
