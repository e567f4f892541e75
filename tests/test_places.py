"""Places: the record, the inventory by cells and values, and what a reader with a map believes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from street import APPOINTMENT, CLINIC_ONLY, CLUSTER, HEALTH, MIXED, POLICY, STREET, street

import geodiv as gd
from geodiv.inventory import places_of
from geodiv.measures import within_places
from geodiv.verify import broken_zones


def remedies(taxonomy: gd.Taxonomy, **policy: Any) -> dict[str, str]:
    table = street(taxonomy)
    outcome = gd.enforce(table, gd.Policy(**{**POLICY, **policy}))
    return dict(zip(outcome.scores["cell_id"], outcome.scores["final_remedy"], strict=True))


# --- the worked case ------------------------------------------------------------------------------------------


def test_what_clusters_clears_nothing_and_appointments_clear_the_street() -> None:
    assert remedies(HEALTH)[CLUSTER] == "suppress"
    assert remedies(APPOINTMENT)[CLUSTER] == "publish_coarsened"


def test_a_map_takes_it_back_where_the_zone_holds_a_clinic_only() -> None:
    assert remedies(APPOINTMENT, places=(CLINIC_ONLY,))[CLUSTER] == "suppress"
    assert remedies(APPOINTMENT, places=(MIXED,))[CLUSTER] == "publish_coarsened"


def test_the_figures_of_the_reader_with_the_map() -> None:
    """P(appointment) = .675: all of it is the clinic, or a third of it; what it has no place for stays as it was."""
    table = street(APPOINTMENT)
    clinic, mixed = 0.675, 0.675 / 3
    rest = [0.075, 0.125, 0.125]
    for places, belief in ((CLINIC_ONLY, [clinic]), (MIXED, [mixed] * 3)):
        p = np.array([*belief, *rest])
        effective = float(np.exp(-(p * np.log(p)).sum()))
        for l_min, passes in ((effective - 1e-6, True), (effective + 1e-6, False)):
            policy = gd.Policy(**{**POLICY, "l_min": max(l_min, 1)}, places=(places,))
            row = gd.score(table, policy).set_index("cell_id").loc[CLUSTER]
            fine = row["effective_fine"] >= l_min
            assert (row["remedy"] != "merge_or_suppress") == (passes or fine)


def test_the_finest_level_does_not_look_at_a_map() -> None:
    table = street(None)
    every = gd.Policy(**{**POLICY, "l_min": 2, "share_max": 0.7})
    mapped = gd.Policy(**{**POLICY, "l_min": 2, "share_max": 0.7}, places=(CLINIC_ONLY,))
    assert gd.score(table, every)["fails"].tolist() == gd.score(table, mapped)["fails"].tolist() == [""] * 3


def test_verification_looks_at_the_map_too() -> None:
    table = street(APPOINTMENT)
    plan = gd.enforce(table, gd.Policy(**POLICY)).plan
    assert len(broken_zones(table, gd.Policy(**POLICY), plan)) == 0
    assert broken_zones(table, gd.Policy(**POLICY, places=(CLINIC_ONLY,)), plan).tolist() == [0]


def test_the_release_says_which_map_it_was_judged_by() -> None:
    table = street(APPOINTMENT)
    release = gd.enforce(table, gd.Policy(**POLICY, places=(CLINIC_ONLY,))).release
    expected = {"attribute": "activity", "name": "", "places": 7, "digest": CLINIC_ONLY.digest}
    assert release.metadata["policy"]["places"] == [expected]
    assert "places" not in gd.enforce(table, gd.Policy(**POLICY)).release.metadata["policy"]


# --- the record -----------------------------------------------------------------------------------------------


def test_total_values_and_digest() -> None:
    places = gd.Places("poi", {"b": {"cafe": 2, "gym": 0}, "a": {"bar": np.int64(1)}})
    assert (places.total, places.values) == (3, ("bar", "cafe"))
    assert places.digest == gd.Places("poi", {"a": {"bar": 1}, "b": {"cafe": 2}, "c": {}}).digest
    assert places.digest != gd.Places("poi", {"a": {"bar": 2}, "b": {"cafe": 2}}).digest


@pytest.mark.parametrize(
    "inventory", [{"a": {"bar": -1}}, {"a": {"bar": 1.5}}, {"a": {"bar": True}}, {"a": 3}, [1]]
)
def test_an_inventory_holds_whole_numbers(inventory: Any) -> None:
    with pytest.raises(gd.PolicyError, match="places of 'poi': expected"):
        gd.Places("poi", inventory)


def test_cells_and_values_of_a_map_are_texts() -> None:
    """What the visits call 1 and true must not be overlooked where the map calls it 1.0 and True."""
    places = gd.Places("poi", {1.0: {True: 1, 2.0: 3}, "1": {"2": 1}})  # type: ignore[dict-item]
    assert places.inventory == {"1": {"true": 1, "2": 4}}


def test_no_place_is_missing() -> None:
    with pytest.raises(gd.PolicyError, match=r"no place is of the value \(missing\)"):
        gd.Places("poi", {"a": {"(missing)": 1}})


def test_a_policy_takes_one_map_an_attribute() -> None:
    assert gd.Policy(places=MIXED).places == (MIXED,)
    with pytest.raises(gd.PolicyError, match="one map an attribute"):
        gd.Policy(places=(MIXED, CLINIC_ONLY))
    with pytest.raises(gd.PolicyError, match="expected Places"):
        gd.Policy(places="places.gpkg")


# --- by cells and values --------------------------------------------------------------------------------------


def test_the_inventory_of_a_table() -> None:
    table = street(APPOINTMENT)
    (found,) = places_of(table, gd.Policy(places=(CLINIC_ONLY,)))
    dense = found.todense()
    values = table.spaces[0].values
    assert dense[:, values.index("clinic")].tolist() == [int(c in (CLUSTER, STREET)) for c in table.cells]
    assert dense[list(table.cells).index(STREET), values.index("salon")] == 1
    assert places_of(table, gd.Policy()) == (None,)


def test_places_where_nobody_goes_are_left_out() -> None:
    places = gd.Places("activity", {CLUSTER: {"clinic": 1}, "elsewhere": {"clinic": 9}})
    (found,) = places_of(street(APPOINTMENT), gd.Policy(places=(places,)))
    assert found.sum() == 1


def test_a_map_that_does_not_fit_is_an_error() -> None:
    table = street(APPOINTMENT)
    for places, words in (
        (gd.Places("band", {CLUSTER: {"clinic": 1}}), "expected an attribute of the visits, got 'band'"),
        (gd.Places("activity", {CLUSTER: {"clinics": 1}}), "'clinics' not among its values.*'clinic'"),
        (gd.Places("activity", {"elsewhere": {"clinic": 1}}), "found none of them"),
    ):
        with pytest.raises(gd.PolicyError, match=words):
            gd.score(table, gd.Policy(places=(places,)))


def test_the_mix_by_places() -> None:
    within = np.array([[0.25, 0.75, 0.5, 0.5], [0.1, 0.9, 0.5, 0.5]])
    found = within_places([[3, 1, 0, 0], [0, 0, 0, 2]], [0, 0, 1, 1], 2, within)
    assert found.tolist() == [[0.75, 0.25, 0.5, 0.5], [0.1, 0.9, 0.0, 1.0]]
