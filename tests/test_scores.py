"""Scores: every cell and attribute, its measures, the gates it fails and the remedy it needs."""

from __future__ import annotations

import math
from typing import Any

import h3
import numpy as np
import pandas as pd
import pytest
from crowds import CENTRE, FAR, RING, score, tabulate, visits
from hypothesis import given
from hypothesis import strategies as st

import geodiv as gd
from geodiv import scores

C41 = {"clinic": 34}
C58 = {"clinic": 41, "pharmacy": 3, "retail": 2, "cafe": 2}
C72 = {"retail": 18, "cafe": 15, "gym": 11, "clinic": 9}
TOWN = {"c-41": C41, "c-58": C58, "c-72": C72}


# --- diversity ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "distinct", "effective", "top_share", "c2", "c3", "c4"),
    [
        (C41, 1, 1, 1, math.inf, math.inf, math.inf),
        (C58, 4, 1.773165, 0.854167, 5.857143, 10.25, 20.5),
        (C72, 4, 3.862972, 0.339623, 0.514286, 0.9, 2),
        ({"a": 18, "b": 1, "c": 1}, 3, 1.483490, 0.9, 9, 18, math.inf),
    ],
)
def test_the_printed_cells(
    counts: Any, distinct: int, effective: float, top_share: float, c2: float, c3: float, c4: float
) -> None:
    for c_l, c in [(2, c2), (3, c3), (4, c4)]:
        row = score({"c": counts}, c_l=c_l, c_max=5).loc["c"]
        assert row["persons"] == sum(counts.values())
        assert row["distinct"] == distinct
        assert row["effective_fine"] == pytest.approx(effective, abs=5e-7)
        assert math.log(row["effective_fine"]) == pytest.approx(math.log(effective), abs=5e-7)
        assert row["top_share"] == pytest.approx(top_share, abs=5e-7)
        assert row["recursive_c"] == pytest.approx(c, abs=5e-7)
        assert row["fails"] == ("c_max" if c >= 5 else "")


def test_without_c_l_there_is_no_c() -> None:
    assert score(TOWN)["recursive_c"].isna().all()


@pytest.mark.parametrize(
    ("counts", "l_min", "passes"),
    [((5, 5, 5), 3, True), ((2,) * 6, 6, True), ((6, 5, 4), 3, False), ((1, 1, 1), 3, True)],
)
def test_the_threshold_itself_passes(counts: tuple[int, ...], l_min: float, passes: bool) -> None:
    values = {f"v{i}": n for i, n in enumerate(counts)}
    assert score({"c": values}, l_min=l_min).loc["c", "fails"] == ("" if passes else "l_min")


@pytest.mark.parametrize("m", range(2, 21))
def test_even_counts_pass_as_many_values_as_there_are(m: int) -> None:
    cells = {f"c{n}": {f"v{i}": n for i in range(m)} for n in (1, 3, 7, 49, 100)}
    assert (score(cells, l_min=m)["fails"] == "").all()


def test_a_distance_at_the_threshold_passes() -> None:
    """p (.7, .3) against q (.5, .5)."""
    counts = {CENTRE: {"a": 7, "b": 3}, RING[0]: {"a": 5, "b": 5}}
    row = score(counts, reference=gd.Ring(1), t_max=0.2, shift_max=0.2).loc[CENTRE]
    assert row["distance"] == pytest.approx(0.2)
    assert row["fails"] == ""
    assert score(counts, reference=gd.Ring(1), t_max=0.1999).loc[CENTRE, "fails"] == "t_max"


def test_c_at_the_threshold_fails() -> None:
    assert score({"c": {"a": 6, "b": 3}}, c_l=2, c_max=2).loc["c", "fails"] == "c_max"


def test_missing_beside_l() -> None:
    row = score({"c": {"clinic": 6, None: 5}}).loc["c"]
    assert row["effective_fine"] == pytest.approx(1.99, abs=0.005)
    assert row["effective_known"] == 1
    assert row["distinct"] == 2
    assert pd.isna(score({"c": {None: 5}}).loc["c", "effective_known"])


def test_recoding_a_small_category_to_missing_does_not_turn_a_failing_cell_into_publish() -> None:
    gates: dict[str, Any] = {"l_min": 2, "t_max": 0.3, "k_min": 10}
    before = score(TOWN, **gates).loc["c-58"]
    frame = visits(TOWN)
    frame["activity"] = frame["activity"].mask((frame["cell"] == "c-58") & (frame["activity"] == "cafe"))
    after = score(frame, **gates).loc["c-58"]
    assert (before["remedy"], after["remedy"]) == ("merge_or_suppress", "merge_or_suppress")
    assert after["effective_fine"] == pytest.approx(before["effective_fine"])


# --- cells below k --------------------------------------------------------------------------------------------


def test_a_cell_below_k_has_persons_and_fails_and_nothing_else() -> None:
    found = score({"c1": {"a": 4, "b": 5}, "c2": {"a": 10}}, k_min=10, l_min=1.5)
    row = found.loc["c1"].drop(["attribute", "persons", "fails", "remedy"])
    assert row.isna().all()
    assert found.loc["c1", ["persons", "fails", "remedy"]].tolist() == [9, "k_min", "merge_or_suppress"]
    assert found.loc["c2", "fails"] == "l_min"


def test_k_itself_is_enough() -> None:
    assert score({"c": {"a": 10}}, k_min=10).loc["c", "fails"] == ""


# --- gates ----------------------------------------------------------------------------------------------------


def test_a_small_value_may_grow_many_times_over() -> None:
    """.04 -> .12 is a shift of .08 and a lift of 3."""
    counts = {CENTRE: {"a": 88, "b": 12}, RING[0]: {"a": 96, "b": 4}}
    row = score(counts, reference=gd.Ring(1), shift_max=0.1, lift_max=2.9).loc[CENTRE]
    assert (row["shift"], row["lift"]) == (pytest.approx(0.08), pytest.approx(3))
    assert row["fails"] == "lift_max"


def test_a_value_that_nobody_else_has_is_an_infinite_lift() -> None:
    row = score({CENTRE: {"a": 5, "b": 1}, RING[0]: {"a": 6}}, reference=gd.Ring(1), lift_max=99).loc[CENTRE]
    assert row["lift"] == math.inf
    assert row["fails"] == "lift_max"


def test_an_ordered_distance_does_not_bound_a_shift() -> None:
    """All persons moved to the next of nine bands cost 0.125."""
    bands = gd.Ordinal("activity", order=[str(i) for i in range(1, 10)])
    counts = {CENTRE: {"2": 10}, RING[0]: {"1": 10}}
    row = score(counts, bands, reference=gd.Ring(1), t_max=0.125, shift_max=0.99).loc[CENTRE]
    assert (row["distance"], row["shift"]) == (pytest.approx(0.125), 1)
    assert row["fails"] == "shift_max"


def test_nine_values_and_l_3_allow_a_top_share_of_three_quarters() -> None:
    counts = {"v0": 7440} | {f"v{i}": 320 for i in range(1, 9)}
    row = score({"c": counts}, l_min=3, share_max=0.5).loc["c"]
    assert row["effective_fine"] > 3
    assert row["fails"] == "share_max"


def test_a_certain_visit_fails_by_incidence_only() -> None:
    """Everybody did both: L 2, share .5, incidence 1, and no coarser label repairs it."""
    rows = [("c", f"p{i}", v) for i in range(10) for v in ("clinic", "cafe")]
    frame = pd.DataFrame(rows, columns=["cell", "person", "activity"])
    taxonomy = gd.Taxonomy([("clinic", "x"), ("cafe", "y"), ("gym", "y")])
    row = score(frame, gd.Nominal("activity", taxonomy), l_min=2, share_max=0.5, incidence_max=0.8).loc["c"]
    assert (row["effective_fine"], row["top_share"], row["incidence"]) == (pytest.approx(2), 0.5, 1.0)
    assert (row["fails"], row["remedy"]) == ("incidence_max", "merge_or_suppress")


def test_incidence_skips_missing_unless_it_is_named() -> None:
    counts = {"c": {None: 9, "a": 1}}
    assert score(counts, incidence_max=0.5).loc["c", "fails"] == ""
    named = gd.Nominal("activity", sensitive=["a", "(missing)"])
    assert score(counts, named, incidence_max=0.5).loc["c", "fails"] == "incidence_max"


def test_label_min_looks_at_labels_that_somebody_has() -> None:
    gates: dict[str, Any] = {"label_min": 3}
    found = score({"c1": {"a": 5, "b": 2}, "c2": {"a": 5}, "c3": {"a": 3, "b": 3}}, **gates)
    assert found["fails"].tolist() == ["label_min", "", ""]


def test_the_tier_is_all_that_shift_lift_share_and_incidence_look_at() -> None:
    gates: dict[str, Any] = {"shift_max": 0.1, "lift_max": 1.1, "share_max": 0.5, "incidence_max": 0.5}
    counts = {CENTRE: {"walk": 9, "clinic": 1}, RING[0]: {"gym": 9, "clinic": 1}}
    everything = score(counts, reference=gd.Ring(1), **gates).loc[CENTRE]
    assert everything["fails"] == "shift_max,lift_max,share_max,incidence_max"
    clinics = gd.Nominal("activity", sensitive=["clinic"])
    assert score(counts, clinics, reference=gd.Ring(1), **gates).loc[CENTRE, "fails"] == ""


def test_missing_is_always_in_the_tier() -> None:
    counts = {CENTRE: {None: 9, "clinic": 1}, RING[0]: {"gym": 9, "clinic": 1}}
    clinics = gd.Nominal("activity", sensitive=["clinic"])
    row = score(counts, clinics, reference=gd.Ring(1), shift_max=0.1, share_max=0.5).loc[CENTRE]
    assert row["fails"] == "shift_max,share_max"


def test_an_attribute_may_have_gates_of_its_own() -> None:
    strict = gd.Nominal("activity", gates={"l_min": 3, "t_max": 0.1})
    row = score(TOWN, strict, l_min=1, incidence_max=0.99).loc["c-41"]
    assert row["fails"] == "l_min,t_max,incidence_max"


def test_gates_are_named_in_their_order() -> None:
    row = score(
        {CENTRE: {"a": 12, "b": 1}, RING[0]: {"b": 12, "a": 1}, FAR: {"c": 9}},
        reference=gd.Ring(1), l_min=3, c_l=2, c_max=2, t_max=0.1, shift_max=0.1, lift_max=1.5, share_max=0.5,
        incidence_max=0.5, label_min=2,
    ).loc[CENTRE]  # fmt: skip
    assert row["fails"] == "l_min,c_max,t_max,shift_max,lift_max,share_max,incidence_max,label_min"


def test_a_gate_that_is_not_named_is_off() -> None:
    assert (score(TOWN)["fails"] == "").all()


def test_more_diversity_than_values_is_an_error() -> None:
    with pytest.raises(gd.PolicyError, match=r"l_min = 6 for 'activity': it has 5 values"):
        score(TOWN, l_min=6)


# --- belief of coarser labels ---------------------------------------------------------------------------------

HEALTH = [
    ("clinic", "health"), ("pharmacy", "health"), ("retail", "everyday"), ("cafe", "everyday"),
    ("gym", "everyday"),
]  # fmt: skip
APPOINTMENT = [
    ("clinic", "appointment"), ("retail", "appointment"), ("gym", "appointment"), ("cafe", "food"),
    ("pharmacy", "food"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "label_l", "belief_l", "tv"),
    [(HEALTH, 1.3322, 1.6711, 0.2722), (APPOINTMENT, 1.3967, 2.8787, 0.0440)],
)
def test_a_coarsened_cell_is_judged_by_what_a_reader_believes(
    rows: list[tuple[str, str]], label_l: float, belief_l: float, tv: float
) -> None:
    poi = gd.Nominal("activity", gd.Taxonomy(rows))
    table = tabulate(TOWN, poi)
    labels = table.base.labels[0][1].todense()[1]
    p = labels / labels.sum()
    assert np.exp(-(p @ np.log(p))) == pytest.approx(label_l, abs=5e-5)
    before = score(TOWN, poi, l_min=3).loc["c-58"]
    assert before["effective_fine"] == pytest.approx(1.773165, abs=5e-7)
    assert before["effective_coarse"] == pytest.approx(belief_l, abs=5e-5)
    assert before["remedy"] == "merge_or_suppress"
    coarse = score(TOWN, gd.Nominal("activity", gd.Taxonomy(rows), level=1), l_min=1).loc["c-58"]
    assert coarse["distance"] == pytest.approx(tv, abs=5e-5)
    assert coarse["distance_global"] == pytest.approx(tv, abs=5e-5)


def test_the_first_coarser_level_that_passes_is_the_remedy() -> None:
    rows = [("clinic", "health", "out"), ("pharmacy", "health", "out"), ("gym", "sport", "out"),
            ("pool", "sport", "out"), ("flat", "home", "in"), ("hotel", "stay", "in")]  # fmt: skip
    counts = {
        CENTRE: {"clinic": 9, "gym": 9},
        RING[0]: {"clinic": 3, "pharmacy": 3, "gym": 3, "pool": 3, "flat": 9},
    }
    poi = gd.Nominal("activity", gd.Taxonomy(rows))
    row = score(counts, poi, reference=gd.Ring(1), l_min=3).loc[CENTRE]
    assert (row["remedy"], row["effective_coarse"]) == ("publish_coarsened", pytest.approx(4))
    assert row["effective_fine"] == pytest.approx(2)
    assert score(counts, poi, reference=gd.Ring(1), l_min=4.1).loc[CENTRE, "remedy"] == "merge_or_suppress"


def test_a_level_of_one_label_is_no_remedy() -> None:
    poi = gd.Nominal("activity", gd.Taxonomy([("a", "all"), ("b", "all"), ("c", "all")]))
    row = score({"c1": {"a": 9}, "c2": {"b": 9}, "c3": {"c": 9}}, poi, l_min=3).loc["c1"]
    assert row["remedy"] == "merge_or_suppress"
    assert pd.isna(row["effective_coarse"])


def test_top_is_the_value_that_is_believed_most_ties_in_label_order() -> None:
    assert score({"c": {"b": 3, "a": 3, "c": 2}}).loc["c", "top_value"] == "a"
    ordered = gd.Ordinal("activity", order=["b", "a", "c"])
    assert score({"c": {"b": 3, "a": 3, "c": 2}}, ordered).loc["c", "top_value"] == "b"
    poi = gd.Nominal("activity", gd.Taxonomy(APPOINTMENT), level=1)
    row = score(TOWN, poi).loc["c-72"]
    assert row["top_value"] == "clinic"
    assert row["top_share"] == pytest.approx(38 / 53 * 84 / 115)


# --- ordered values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("other", "distance"), [("2", 0.0625), ("9", 0.5)])
def test_the_order_and_the_number_of_bands_are_those_declared(other: str, distance: float) -> None:
    bands = gd.Ordinal("activity", order=[str(i) for i in range(1, 10)])
    counts = {CENTRE: {"1": 10}, RING[0]: {"1": 5, other: 5}}
    row = score(counts, bands, reference=gd.Ring(1)).loc[CENTRE]
    assert row["distance"] == pytest.approx(distance)


def test_numbers_as_text_follow_the_declared_order_and_not_that_of_text() -> None:
    counts = {CENTRE: {10: 10}, RING[0]: {1: 10}}
    for order, distance in [(["10", "2", "1"], 1), (["2", "10", "1"], 0.5), (["1", "10", "2"], 0.5)]:
        row = score(counts, gd.Ordinal("activity", order=order), reference=gd.Ring(1)).loc[CENTRE]
        assert row["distance"] == pytest.approx(distance)


def test_a_coarser_level_may_be_further_away() -> None:
    """q (.4, .1, .1, .4), p (.4, .1, .3, .2), classes {1, 2, 3} and {4}."""
    taxonomy = gd.Taxonomy([("1", "low"), ("2", "low"), ("3", "low"), ("4", "high")])
    counts = {CENTRE: {"1": 40, "2": 10, "3": 30, "4": 20}, RING[0]: {"1": 40, "2": 10, "3": 10, "4": 40}}
    for level, distance in [(0, 0.2 / 3), (1, 0.5 / 3)]:
        bands = gd.Ordinal("activity", order=["1", "2", "3", "4"], taxonomy=taxonomy, level=level)
        row = score(counts, bands, reference=gd.Ring(1)).loc[CENTRE]
        assert row["distance"] == pytest.approx(distance)


# --- noise ----------------------------------------------------------------------------------------------------


def test_noise_floor_of_twenty_contributions_over_nine_even_values() -> None:
    even = {f"v{i}": 4 for i in range(9)}
    counts = {CENTRE: {"v0": 20}, RING[0]: even, RING[1]: even}
    row = score(counts, reference=gd.Ring(1)).loc[CENTRE]
    assert row["noise_floor"] == pytest.approx(0.2534, abs=5e-5)


def test_noise_floor_counts_contributions_and_not_persons() -> None:
    rows = [(CENTRE, f"p{i}", f"v{j}") for i in range(10) for j in range(2)]
    rows += [(RING[0], f"q{i}", f"v{i}") for i in range(9)]
    frame = pd.DataFrame(rows, columns=["cell", "person", "activity"])
    assert score(frame, reference=gd.Ring(1)).loc[CENTRE, "noise_floor"] == pytest.approx(0.2534, abs=5e-5)


# --- form -----------------------------------------------------------------------------------------------------

COLUMNS = [
    "cell_id", "attribute", "persons", "distinct", "effective_fine", "effective_known", "effective_coarse",
    "top_value", "top_share", "incidence", "recursive_c", "distance", "distance_global", "noise_floor", "shift",
    "lift", "reference_scope", "reference_persons", "fails", "remedy", "final_remedy", "zone_id",
]  # fmt: skip


def test_one_row_a_cell_and_attribute() -> None:
    frame = visits({"d": {"a": 4}, "c": {"a": 2}}).assign(income=5)
    table = tabulate(frame, gd.Nominal("activity"), gd.Numeric("income", edges=[0, 10]))
    found = gd.score(table, gd.Policy(k_min=2))
    assert found.columns.tolist() == COLUMNS
    assert found[["cell_id", "attribute"]].to_numpy().tolist() == [
        ["c", "activity"], ["c", "income"], ["d", "activity"], ["d", "income"],
    ]  # fmt: skip
    assert found[["final_remedy", "zone_id"]].isna().all(axis=None)
    assert type(found) is pd.DataFrame


def test_cells_with_outlines_are_a_geodataframe() -> None:
    table = tabulate({CENTRE: {"a": 4}, RING[0]: {"b": 4}})
    found = gd.score(table, gd.Policy(k_min=2))
    assert found.crs == "EPSG:4326"
    for cell, outline in zip(found["cell_id"], found.geometry, strict=True):
        assert h3.latlng_to_cell(outline.centroid.y, outline.centroid.x, 8) == cell


@pytest.mark.parametrize("reference", [gd.Global(), gd.Ring(1), gd.Ring(1, fallback="none")])
def test_blocks_bound_memory_and_change_nothing(monkeypatch: pytest.MonkeyPatch, reference: Any) -> None:
    counts = {cell: {"a": 3 + i, "b": 9 - i, "c": 4} for i, cell in enumerate([CENTRE, *RING, FAR])}
    poi = gd.Nominal("activity", gd.Taxonomy([("a", "x"), ("b", "x"), ("c", "y")]))
    whole = score(counts, poi, reference=reference, l_min=2.5, t_max=0.1)
    monkeypatch.setattr(scores, "BLOCK", 7)
    pd.testing.assert_frame_equal(score(counts, poi, reference=reference, l_min=2.5, t_max=0.1), whole)


def test_identical_cells_are_at_distance_0() -> None:
    found = score(dict.fromkeys(("c1", "c2", "c3"), C58), t_max=0, shift_max=0, lift_max=1)
    assert (found["fails"] == "").all()
    assert found["distance"].abs().max() < 1e-12


def test_one_value_only_is_at_distance_0_and_l_1() -> None:
    found = score({"c1": {"a": 5}, "c2": {"a": 7}}, t_max=0)
    assert found["distance"].tolist() == [0, 0]
    assert found["effective_fine"].tolist() == [1, 1]


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 30), min_size=1), st.integers(0, 5))
def test_laws_of_one_cell(counts: dict[str, int], extra: int) -> None:
    """1 <= L <= distinct, even only at the top; shift <= distance <= 1 for unordered values."""
    found = score({"c1": counts, "c2": {"a": 3 + extra, "b": 2}}, k_min=1)
    row = found.loc["c1"]
    assert 1 - 1e-9 <= row["effective_fine"] <= row["distinct"] + 1e-9
    even = len(set(counts.values())) == 1
    assert even == (row["effective_fine"] > row["distinct"] - 1e-9)
    assert row["shift"] <= row["distance"] + 1e-12 <= 1 + 1e-9
    assert 0 <= row["noise_floor"] <= 1


# --- the sensitive tier as a whole ----------------------------------------------------------------------------

HEALTH = ("clinic", "pharmacy", "dentist")


def sensitive() -> gd.Nominal:
    return gd.Nominal("activity", sensitive=HEALTH, unknown="own value")


def test_three_values_together_tell_what_none_tells_alone() -> None:
    counts = {"clinic": 10, "pharmacy": 10, "dentist": 10, "cafe": 10}
    row = score({"c": counts, "d": counts}, sensitive(), share_max=0.4, tier_max=0.5).loc["c"]
    assert (row["top_share"], row["fails"]) == (0.25, "tier_max")
    row = score({"c": counts, "d": counts}, sensitive(), share_max=0.4, tier_max=0.75).loc["c"]
    assert row["fails"] == ""


def test_persons_of_the_tier_are_counted_once() -> None:
    both = [("c", f"p{i}", value) for i in range(4) for value in ("clinic", "dentist", "cafe")]
    rows = both + [("c", f"q{i}", "cafe") for i in range(4)]
    frame = pd.DataFrame(rows, columns=["cell", "person", "activity"])
    table = tabulate(frame, sensitive())
    assert table.base.tier.tolist() == [[4]]
    assert score(frame, sensitive(), tier_incidence_max=0.5).loc["c", "fails"] == ""
    assert score(frame, sensitive(), tier_incidence_max=0.49).loc["c", "fails"] == "tier_incidence_max"


def test_missing_values_are_in_the_tier_but_no_person_is_certain_by_them() -> None:
    counts = {"cafe": 5, None: 5}
    assert score({"c": counts}, sensitive(), tier_max=0.4).loc["c", "fails"] == "tier_max"
    assert score({"c": counts}, sensitive(), tier_incidence_max=0).loc["c", "fails"] == ""
    named = gd.Nominal("activity", sensitive=["clinic", "(missing)"], unknown="own value")
    assert score({"c": counts}, named, tier_incidence_max=0.4).loc["c", "fails"] == "tier_incidence_max"


def test_no_coarser_value_helps_against_a_tier_incidence_and_a_merge_does() -> None:
    taxonomy = gd.Taxonomy.of({"clinic": "errands", "cafe": "errands", "gym": "leisure", "bar": "leisure"})
    attribute = gd.Nominal("activity", taxonomy=taxonomy, sensitive=["clinic"])
    first, second = sorted([CENTRE, RING[0]])
    table = tabulate(visits({first: {"clinic": 18, "cafe": 2}, second: {"cafe": 10, "gym": 10}}), attribute)
    policy = gd.Policy(k_min=5, tier_incidence_max=0.5, residual=False)
    rows = gd.score(table, policy).set_index("cell_id")
    assert rows.loc[first, ["fails", "remedy"]].tolist() == ["tier_incidence_max", "merge_or_suppress"]
    outcome = gd.enforce(table, policy)
    assert outcome.release.cells["remedy"].tolist() == ["publish_merged"]


def test_the_tier_shows_in_no_table() -> None:
    table = tabulate(TOWN, sensitive())
    release = gd.enforce(table, gd.Policy(k_min=2, tier_incidence_max=1)).release
    assert set(release.counts["value"]) <= {*C58, *C72}
    assert release.metadata["attributes"][0]["levels"] == [["cafe", "clinic", "gym", "pharmacy", "retail"]]


def test_a_gate_on_the_tier_needs_a_tier() -> None:
    with pytest.raises(gd.PolicyError, match=r"tier_max for 'activity'.*names none"):
        score(TOWN, tier_max=0.5)
    with pytest.raises(gd.PolicyError, match="tier_incidence_max: expected a number from 0 to 1"):
        gd.Policy(tier_incidence_max=2)
