"""Advice: each text where it belongs, and none where nothing is wrong."""

from __future__ import annotations

from typing import Any

from crowds import FAR, RING, ROW, tabulate, visits

import geodiv as gd

CROWD = {"clinic": 20, "gym": 20, "retail": 20}
EVEN = dict.fromkeys(ROW[:3], CROWD)
POI = "activity"


def said(counts: Any, *attributes: Any, **policy: Any) -> list[str]:
    table = tabulate(counts, *attributes)
    rules = gd.Policy(**{"k_min": 10, **policy})
    return list(gd.advice(table, rules, gd.score(table, rules)))


def test_a_policy_without_a_fault_gets_no_advice() -> None:
    assert said(EVEN, l_min=2.5, t_max=0.3) == []


def test_below_ten_persons_diversity_means_nothing() -> None:
    assert [text.split(":")[0] for text in said(EVEN, k_min=9, l_min=2)] == ["k_min = 9"]


def test_each_attribute_that_no_gate_looks_at_is_named() -> None:
    assert [text.split(":")[0] for text in said(EVEN)] == [f"no gate looks at '{POI}'"]
    rows = visits(EVEN).assign(band="low")
    two = (gd.Nominal(POI), gd.Nominal("band", gates={"l_min": 1}))
    assert [text.split(":")[0] for text in said(rows, *two)] == [f"no gate looks at '{POI}'"]
    assert said(rows, *two, incidence_max=0.9) == []


def test_a_distance_that_chance_alone_exceeds() -> None:
    """Ten persons over five even values are some .25 away from them by chance, forty some .13: 1.4 between them."""
    values = "abcde"
    few = {cell: dict.fromkeys(values, 2) for cell in RING[:3]}
    (text,) = said(few, t_max=0.2)
    assert text.startswith(f"t_max = 0.2 for '{POI}' lies below the noise floor of most cells (median 0.")
    assert said(few, t_max=0.3) == []
    half = {**{cell: few[cell] for cell in RING[:2]}, **{c: dict.fromkeys(values, 20) for c in RING[2:4]}}
    assert said(half, t_max=0.2) == []  # two of four are not most
    assert said({RING[0]: few[RING[0]]}, t_max=0.2) == []  # one cell is no most


def test_an_ordered_distance_needs_a_bound_on_the_shift() -> None:
    band = gd.Ordinal(POI, order=["low", "middle", "high"])
    counts = {cell: dict.fromkeys(("low", "middle", "high"), 30) for cell in ROW[:2]}
    (text,) = said(counts, band, t_max=0.3)
    assert text.startswith(f"'{POI}' is ordered and has t_max without shift_max")
    assert said(counts, band, t_max=0.3, shift_max=0.3) == []
    assert said(counts, band, l_min=2) == []
    assert said(counts, t_max=0.3) == []  # nominal: total variation bounds every shift


def test_a_level_that_clears_nothing_and_one_that_says_nothing() -> None:
    idle = gd.Taxonomy(
        (("clinic", "health", "all"), ("gym", "rest", "all"), ("retail", "rest", "all")), "poi", "v1"
    )
    counts = {**EVEN, FAR: {"clinic": 40}}
    poi = gd.Nominal(POI, taxonomy=idle)
    assert [text.split(":")[0] for text in said(counts, poi, l_min=2)] == [
        f"level1 of the taxonomy of '{POI}' clears no cell",
        f"level2 of the taxonomy of '{POI}' has a single label",
    ]
    assert said(EVEN, poi, l_min=2) == []  # nothing fails
    assert said(counts, poi, l_min=2, ladder=("merge", "suppress")) == []  # nothing is recoded
    coarse = gd.Nominal(POI, taxonomy=idle, level=1)
    assert len(said(counts, coarse, l_min=2)) == 1  # the level that it starts at is no remedy


def test_a_level_that_clears_a_cell_is_not_blamed() -> None:
    useful = gd.Taxonomy.of({"clinic": "appointment", "gym": "appointment", "retail": "shops"})
    counts = {**EVEN, FAR: {"clinic": 30, "retail": 15}}
    assert said(counts, gd.Nominal(POI, taxonomy=useful), l_min=2.2) == []
