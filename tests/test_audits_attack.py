"""Attack on the published file: planted faults are found, figures worked out by hand, nothing is claimed wrongly."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import geopandas as gpd
import pandas as pd
import pytest
import shapely
from people import enforced, visits, with_counts, with_metadata

import geodiv as gd
from geodiv import audits

EVEN = {"clinic": 6, "gym": 6, "retail": 6}
POLICY = gd.Policy(k_min=10, l_min=2.5, share_max=0.6, incidence_max=0.8, t_max=0.3, residual=False)


def release(count_min: int = 1, **cells: dict[str, int]) -> gd.Release:
    return enforced(visits(cells or {"a": EVEN, "b": EVEN}), POLICY, count_min=count_min).release


def gates(found: audits.Attack) -> list[tuple[str, str]]:
    return list(zip(found.broken["cell_id"], found.broken["gate"], strict=True))


def faults(found: audits.Attack) -> set[tuple[str, str | None]]:
    return set(zip(found.faults["fault"], found.faults["cell_id"], strict=True))


def test_an_honest_release_holds() -> None:
    found = audits.attack(release())
    assert not found.failed
    assert found.spread.set_index("measure").loc["effective", "median"] == pytest.approx(3)
    assert found.largest.set_index("measure").loc["incidence", "figure"] == pytest.approx(6 / 18)
    assert set(found.largest["basis"]) == {"counts", "rounded"}


def test_a_zone_that_was_made_to_break_l() -> None:
    """18, 1, 1: L 1.4835, share and incidence .9, total variation .9 - .333 = .567 against even thirds."""
    forged = with_counts(release(a={**EVEN, "gym": 8}, b=EVEN), "a", {"clinic": 18, "gym": 1, "retail": 1})
    found = audits.attack(forged)
    assert gates(found) == [("a", gate) for gate in ("l_min", "t_max", "share_max", "incidence_max")]
    best = found.broken.set_index("gate")["best"]
    assert best["l_min"] == pytest.approx(1.483490, abs=1e-6)
    assert best["share_max"] == best["incidence_max"] == pytest.approx(0.9)
    q = 12 / 38
    assert best["t_max"] == pytest.approx(0.9 - q, abs=0.001)
    assert best["t_max"] <= 0.9 - q
    assert not len(found.faults)


def test_hidden_counts_are_given_the_benefit_of_the_doubt() -> None:
    """Clinic 8 of 12, two labels hidden: at best 8, 6, 2 (L 2.6494) or 8, 2, 6; l 2.64 may hold, l 2.66 cannot."""
    base = release(count_min=3, a={"clinic": 4, "gym": 4, "retail": 4}, b=EVEN)
    forged = with_counts(base, "a", {"clinic": 8, "gym": None, "retail": None})
    loose = with_metadata(
        forged, attributes=[{**forged.metadata["attributes"][0], "gates": {"k_min": 10, "l_min": 2.64}}]
    )
    tight = with_metadata(
        forged, attributes=[{**forged.metadata["attributes"][0], "gates": {"k_min": 10, "l_min": 2.66}}]
    )
    assert not audits.attack(loose).failed
    found = audits.attack(tight)
    assert gates(found) == [("a", "l_min")]
    best = math.exp(0.5 * math.log(2) - 0.375 * math.log(0.375) - 0.125 * math.log(0.125))
    assert found.broken["best"].iloc[0] == pytest.approx(best, abs=1e-4)


def test_the_rounding_of_q_is_given_the_benefit_of_the_doubt() -> None:
    """p (.7, .3) against (.5, .5): .2, and as little as .1995 when Q is .5005, .4995."""
    frame = visits({"a": {"gym": 14, "bar": 6}, "b": {"gym": 6, "bar": 14}})
    made = enforced(frame, gd.Policy(k_min=10, t_max=0.2, residual=False)).release
    for t_max, broken in ((0.2, False), (0.1996, False), (0.1994, True)):
        told = with_metadata(
            made, attributes=[{**made.metadata["attributes"][0], "gates": {"k_min": 10, "t_max": t_max}}]
        )
        assert audits.attack(told).failed is broken


def test_a_ring_never_decides_and_is_said_to_be_estimated() -> None:
    made = release(a={**EVEN, "gym": 7}, b=EVEN)
    cells = made.cells.assign(poi_reference="ring:1")
    mix = made.reference.assign(share=[1.0, 0.0, 0.0])
    record = {**made.metadata["attributes"][0], "gates": {"k_min": 10, "t_max": 0.3}}
    told = with_metadata(
        replace(made, cells=cells, reference=mix), attributes=[record], reference={"ring:1": 2}
    )
    found = audits.attack(told)
    assert not len(found.broken)
    assert set(found.zones["doubtful"]) == {"t_max"}
    assert set(found.largest.loc[found.largest["measure"] != "incidence", "basis"]) == {"estimate"}
    wide = replace(told, cells=cells.assign(poi_reference="global"))
    assert set(gates(audits.attack(wide))) == {("a", "t_max"), ("b", "t_max")}


def test_a_zone_without_reference_breaks_what_needs_one() -> None:
    made = release()
    cells = made.cells.assign(poi_reference=["none", "global"])
    found = audits.attack(with_metadata(replace(made, cells=cells), reference={"none": 1, "global": 1}))
    assert gates(found) == [("a", "no_reference")]


def test_a_label_renamed() -> None:
    made = release()
    counts = made.counts.assign(value=made.counts["value"].replace("gym", "spa"))
    assert ("unknown label", "a") in faults(audits.attack(replace(made, counts=counts)))


def test_a_label_renamed_everywhere_is_no_longer_its_taxonomy() -> None:
    rows = gd.Taxonomy.of({"clinic": "x", "gym": "y", "retail": "y"}, "poi", "v1")
    made = enforced(visits({"a": EVEN, "b": EVEN}), POLICY, gd.Nominal("poi", taxonomy=rows)).release
    assert not audits.attack(made).failed

    def spa(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.replace({"value": {"gym": "spa"}, "poi_top": {"gym": "spa"}})

    record = made.metadata["attributes"][0]
    levels = [["spa" if label == "gym" else label for label in labels] for labels in record["levels"]]
    forged = with_metadata(
        gd.Release(spa(made.cells), spa(made.counts), spa(made.taxonomy), spa(made.reference), made.metadata),
        attributes=[{**record, "levels": levels}],
    )
    assert faults(audits.attack(forged)) == {("taxonomy", None)}


def test_a_suppressed_zone_put_back_into_one_table() -> None:
    made = release()
    row = {"cell_id": "c", "attribute": "poi", "value": "clinic", "level": 0, "persons": 34, "share": 1.0}
    counts = pd.concat([made.counts, pd.DataFrame([row]).astype({"persons": "Int64"})], ignore_index=True)
    assert faults(audits.attack(replace(made, counts=counts))) == {("unknown zone", "c")}


def test_a_suppressed_zone_put_back_into_every_table_breaks_the_tallies_and_the_gates() -> None:
    made = release()
    zone = made.cells.iloc[[0]].assign(
        cell_id="c", members="c", persons=34, poi_top="clinic", poi_effective=1.0
    )
    row = {"cell_id": "c", "attribute": "poi", "value": "clinic", "level": 0, "persons": 34, "share": 1.0}
    counts = pd.concat([made.counts, pd.DataFrame([row]).astype({"persons": "Int64"})], ignore_index=True)
    forged = replace(made, cells=pd.concat([made.cells, zone], ignore_index=True), counts=counts)
    found = audits.attack(forged)
    assert ("tally", None) in faults(found)
    assert ("c", "l_min") in gates(found)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"poi_effective": 2.9}, "effective"),
        ({"poi_top": "gym"}, "top"),
        ({"remedy": "publish_merged"}, "remedy"),
        ({"n_members": 2}, "members"),
        ({"persons": 40}, "impossible counts"),
    ],
)
def test_columns_that_do_not_follow_from_the_counts(change: dict[str, object], fault: str) -> None:
    made = release()
    cells = made.cells.copy()
    for column, value in change.items():
        cells.loc[0, column] = value
    assert (fault, "a") in faults(audits.attack(replace(made, cells=cells)))


def test_counts_that_the_rule_of_hiding_forbids() -> None:
    base = release(count_min=3)
    shown = with_counts(base, "a", {"clinic": 8, "gym": 8, "retail": 2})
    assert ("small count", "a") in faults(audits.attack(shown))
    lone = with_counts(base, "a", {"clinic": 8, "gym": 8, "retail": None})
    assert ("impossible counts", "a") in faults(audits.attack(lone))
    missing = replace(base, counts=base.counts[base.counts["cell_id"] != "a"].reset_index(drop=True))
    assert ("missing counts", "a") in faults(audits.attack(missing))


def test_a_coarser_zone_is_judged_by_what_is_believed_of_it() -> None:
    """{clinic, retail, gym}, {cafe, pharmacy}, the mix of the definitions: label L 1.397, belief L 2.879, TV .044."""
    mix = {"c-58": {"clinic": 41, "pharmacy": 3, "retail": 2, "cafe": 2}, "c-41": {"clinic": 34}}
    mix["c-72"] = {"retail": 18, "cafe": 15, "gym": 11, "clinic": 9}
    classes = gd.Taxonomy.of(
        {
            "clinic": "appointment",
            "retail": "appointment",
            "gym": "appointment",
            "cafe": "food",
            "pharmacy": "food",
        }
    )
    attribute = gd.Nominal("poi", taxonomy=classes, level=1)
    made = enforced(visits(mix), gd.Policy(k_min=10, residual=False), attribute).release
    zones = audits.attack(made).zones.set_index("cell_id")
    assert zones.loc["c-58", "effective"] == pytest.approx(2.8787, abs=0.01)
    assert zones.loc["c-58", "distance"] == pytest.approx(0.0440, abs=0.001)
    for l_min, broken in ((2.86, False), (2.9, True)):
        record = {**made.metadata["attributes"][0], "gates": {"k_min": 10, "l_min": l_min}}
        found = gates(audits.attack(with_metadata(made, attributes=[record])))
        assert (("c-58", "l_min") in found) is broken


def test_it_reads_what_was_written(tmp_path: Path) -> None:
    frame = gd.tabulate(
        visits({"88196352e9fffff": EVEN, "88196352edfffff": EVEN}),
        grid=gd.H3Grid(8, column="cell"),
        person="who",
        attributes=[gd.Nominal("poi")],
    )
    gd.enforce(frame, POLICY).release.to_file(tmp_path / "release.gpkg")
    found = audits.attack(gd.read_release(tmp_path / "release.gpkg"))
    assert not found.failed
    assert len(found.zones) == 2


def test_members_that_are_no_cells_are_found() -> None:
    cells = {"88196352e9fffff": {"clinic": 12}, "88196352edfffff": {"gym": 12}}
    policy = gd.Policy(k_min=10, l_min=2, reference=gd.Ring(), residual=False)
    made = enforced(visits(cells), policy, grid=gd.H3Grid(8, column="cell")).release
    assert not audits.attack(made).failed
    for members in ("88196352e9fffff c-41", "88196352e9fffff 88196352e9fffff", "89196352e93ffff"):
        forged = replace(made, cells=made.cells.assign(members=members))
        assert ("members", "88196352e9fffff") in faults(audits.attack(forged))


def test_a_release_without_its_columns_is_an_error() -> None:
    made = release()
    with pytest.raises(gd.SourceError, match="poi_level"):
        audits.attack(replace(made, cells=made.cells.drop(columns="poi_level")))


def test_a_release_without_its_metadata_is_an_error() -> None:
    with pytest.raises(gd.SourceError, match="metadata holds its policy"):
        audits.attack(replace(release(), metadata={}))


def appended(frame: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([frame, rows], ignore_index=True)


def test_counts_of_an_attribute_that_the_metadata_does_not_name() -> None:
    made = release()
    other = made.counts.iloc[[0]].assign(attribute="income")
    found = audits.attack(replace(made, counts=appended(made.counts, other)))
    assert found.faults[["fault", "attribute"]].to_numpy().tolist() == [["unknown attribute", "income"]]


def test_a_zone_that_stands_twice_and_members_that_two_zones_share() -> None:
    made = release()
    twice = replace(made, cells=appended(made.cells, made.cells.iloc[[1]]))
    details = set(audits.attack(twice).faults["detail"])
    assert "this zone stands twice in the layer" in details
    cells = made.cells.copy()
    cells.loc[1, ["members", "n_members"]] = ["a b", 2]
    cells.loc[1, "remedy"] = "publish_merged"
    found = audits.attack(replace(made, cells=cells)).faults
    shared = found[found["detail"] == "a member of a too"]
    assert shared[["fault", "cell_id"]].to_numpy().tolist() == [["members", "b"]]


@pytest.mark.parametrize(("persons", "sound"), [(17, False), (18, True), (36, True), (37, False)])
def test_persons_of_the_release_lie_between_the_largest_zone_and_the_sum(persons: int, sound: bool) -> None:
    """Two zones of 18: as few as 18 persons when all are in both, as many as 36 when nobody is."""
    found = audits.attack(with_metadata(release(), persons=persons))
    assert (faults(found) == set()) is sound
    assert faults(found) in (set(), {("tally", None)})


def test_a_k_of_an_attribute_that_is_not_that_of_the_policy() -> None:
    made = release()
    record = {
        **made.metadata["attributes"][0],
        "gates": {**made.metadata["attributes"][0]["gates"], "k_min": 2},
    }
    found = audits.attack(with_metadata(made, attributes=[record])).faults
    assert found[["fault", "attribute"]].to_numpy().tolist() == [["tally", "poi"]]


def test_a_level_that_is_none_and_a_label_that_stands_twice() -> None:
    made = release()
    level = replace(made, cells=made.cells.assign(poi_level=[1, 0]))
    found = audits.attack(level).faults
    assert "level 1 is none that can be published" in set(found.loc[found["cell_id"] == "a", "detail"])
    assert not len(audits.minimality(level))
    assert not len(audits.difference(made, level).disclosures)
    again = replace(made, counts=appended(made.counts, made.counts.iloc[[0]]))
    found = audits.attack(again).faults
    assert "a label stands twice" in set(found.loc[found["cell_id"] == "a", "detail"])
    said = replace(made, counts=made.counts.assign(level=[1, *made.counts["level"][1:]]))
    assert ("unknown label", "a") in faults(audits.attack(said))


def test_a_taxonomy_of_an_attribute_without_one_and_labels_that_are_not_its_own() -> None:
    rows = gd.Taxonomy.of({"clinic": "x", "gym": "y", "retail": "y"}, "poi", "v1")
    told = enforced(visits({"a": EVEN, "b": EVEN}), POLICY, gd.Nominal("poi", taxonomy=rows)).release
    plain = release()
    assert faults(audits.attack(replace(plain, taxonomy=told.taxonomy))) == {("taxonomy", None)}
    record = told.metadata["attributes"][0]
    turned = [[1 - code for code in codes] if h else codes for h, codes in enumerate(record["above"])]
    assert ("taxonomy", None) in faults(
        audits.attack(with_metadata(told, attributes=[{**record, "above": turned}]))
    )


def test_a_global_mix_that_is_none() -> None:
    made = release()
    assert made.reference["share"].tolist() == pytest.approx([1 / 3] * 3, abs=1e-3)
    assert faults(audits.attack(replace(made, reference=made.reference.iloc[:2]))) == {("reference", None)}
    heavy = made.reference.assign(share=[0.4, 0.4, 0.4])
    assert faults(audits.attack(replace(made, reference=heavy))) == {("reference", None)}
    other = appended(made.reference, made.reference.iloc[[0]].assign(value="spa", share=0.0))
    assert faults(audits.attack(replace(made, reference=other))) == {("reference", None)}


def test_an_empty_release_is_sound() -> None:
    made = enforced(visits({"a": {"clinic": 34}, "b": {"clinic": 30, "gym": 1, "retail": 1}}), POLICY).release
    assert len(made.cells) == 0
    assert not audits.attack(made).failed


def test_a_ring_of_zones_of_ones_own_is_what_touches() -> None:
    """Three boxes in a row: b is taken for the ring of a, at (.9, .1) against (.5, .5); c is two steps away."""
    boxes = [shapely.box(i * 1000, 0, (i + 1) * 1000, 1000) for i in range(3)]
    layer = gpd.GeoDataFrame({"zone": list("abc")}, geometry=boxes, crs="EPSG:3067")
    frame = visits({"a": {"gym": 18, "bar": 2}, "b": {"gym": 10, "bar": 10}, "c": {"gym": 2, "bar": 18}})
    for order, distance in ((1, 0.4), (2, abs(0.9 - 12 / 40))):
        policy = gd.Policy(k_min=10, t_max=0.7, reference=gd.Ring(order), residual=False)
        made = enforced(frame, policy, grid=gd.ZoneGrid(layer, id="zone", column="cell")).release
        found = audits.attack(made)
        assert not found.failed
        assert found.zones.set_index("cell_id").loc["a", "distance"] == pytest.approx(distance)
