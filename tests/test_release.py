"""Release: published zones and nothing that was measured beside; small counts hidden by hand-worked rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import geopandas as gpd
import h3
import numpy as np
import pandas as pd
import pytest
import shapely
from crowds import CENTRE, FAR, RING, ROW, tabulate, visits

import geodiv as gd
from geodiv.release import _dissolved, _shown, taxonomy_table


def release(source: Any, *attributes: Any, count_min: int = 3, **policy: Any) -> gd.Release:
    policy = {"k_min": 4, "residual": False, **policy}
    return gd.enforce(
        tabulate(source, *attributes), gd.Policy(**policy), gd.Publication(count_min=count_min)
    ).release


def shown(counts: dict[str, int], count_min: int = 3) -> dict[str, int | None]:
    """What the table of counts says of one cell."""
    rows = release({CENTRE: counts}, count_min=count_min).counts
    return {v: None if pd.isna(n) else n for v, n in zip(rows["value"], rows["persons"], strict=True)}


# --- hidden counts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "count_min", "expected"),
    [
        ({"a": 9, "b": 3, "c": 5}, 3, {"a": 9, "b": 3, "c": 5}),
        ({"a": 9, "b": 2, "c": 5}, 3, {"a": 9, "b": None, "c": None}),
        ({"a": 9, "b": 2, "c": 1}, 3, {"a": None, "b": None, "c": None}),
        ({"a": 9, "b": 2, "c": 1, "d": 7}, 3, {"a": 9, "b": None, "c": None, "d": None}),
        ({"a": 4, "b": 4, "c": 2}, 3, {"a": None, "b": 4, "c": None}),
        ({"a": 2, "b": 2, "c": 2}, 3, {"a": None, "b": None, "c": None}),
        ({"a": 9, "b": 1}, 1, {"a": 9, "b": 1}),
        ({"a": 9, "b": 1, "c": 2}, 2, {"a": 9, "b": None, "c": None}),
        ({"a": 9, "b": 4, "c": 5}, 5, {"a": 9, "b": None, "c": None}),
    ],
)
def test_small_counts_are_hidden_and_the_next_smallest_too(
    counts: dict[str, int], count_min: int, expected: dict[str, int | None]
) -> None:
    assert shown(counts, count_min) == expected


def test_ties_are_hidden_in_label_order() -> None:
    ordered = gd.Ordinal("activity", order=["z", "b", "a"])
    rows = release({CENTRE: {"a": 4, "z": 4, "b": 1}}, ordered).counts
    assert rows["value"].tolist() == ["z", "b", "a"]
    assert rows["persons"].isna().tolist() == [True, True, False]


def test_a_hidden_count_takes_the_shares_and_the_effective_count_along() -> None:
    found = release({CENTRE: {"a": 9, "b": 2, "c": 5}, FAR: {"a": 5, "b": 5}})
    cells = found.cells.set_index("cell_id")
    assert pd.isna(cells.loc[CENTRE, "activity_effective"])
    assert cells.loc[FAR, "activity_effective"] == pytest.approx(2)
    shares = found.counts.set_index("cell_id")["share"]
    assert shares[CENTRE].isna().all()
    assert shares[FAR].tolist() == [0.5, 0.5]


def test_the_top_label_is_told_unless_all_counts_are_hidden() -> None:
    found = release({CENTRE: {"a": 9, "b": 2, "c": 5}, FAR: {"a": 9, "b": 2}, RING[0]: {"b": 5, "a": 5}})
    tops = found.cells.set_index("cell_id")["activity_top"]
    assert tops[CENTRE] == "a"
    assert tops[FAR] is None
    assert tops[RING[0]] == "a"


def test_the_top_label_does_not_tell_that_a_hidden_one_is_as_common() -> None:
    """With "a" hidden, "b" is hidden too: were no label on top, it would be known to tie with "c", and "a" to be 1."""
    found = release({CENTRE: {"a": 1, "b": 4, "c": 4}, FAR: {"a": 1, "b": 3, "c": 4}})
    assert found.cells["activity_top"].tolist() == ["c", "c"]


def test_hiding_is_each_attributes_own_affair() -> None:
    frame = visits({CENTRE: {"a": 9, "b": 2}}).assign(other="s")
    found = release(frame, gd.Nominal("activity"), gd.Nominal("other"))
    assert found.counts["persons"].isna().tolist() == [True, True, False]
    assert found.counts["share"].isna().tolist() == [True, True, False]
    assert pd.isna(found.cells.loc[0, "activity_effective"])
    assert found.cells.loc[0, "other_effective"] == 1


def test_hiding_is_a_view_and_no_gate() -> None:
    counts = {CENTRE: {"a": 9, "b": 1}, FAR: {"a": 5, "b": 5}}
    for count_min in (1, 3, 99):
        assert len(release(counts, count_min=count_min, l_min=1.2).cells) == 2


def test_shares_of_the_smallest_zone_there_is() -> None:
    made = release({CENTRE: {"a": 1}}, count_min=1, k_min=1)
    assert made.counts[["persons", "share"]].to_numpy().tolist() == [[1, 1.0]]
    assert made.reference[["value", "share"]].to_numpy().tolist() == [["a", 1.0]]


def test_what_is_shown_goes_zone_by_zone_in_label_order_at_any_mix_of_levels() -> None:
    counts = {"c1": {"gym": 4, "cafe": 5}, "c2": {"pharmacy": 6, "clinic": 3, "cafe": 1}, "c3": {"cafe": 7}}
    table = tabulate(counts, gd.Nominal("activity", TAXONOMY))
    found = _shown(table.spaces[0], table.base, 0, np.array([1, 0, 1]), 3)
    labels = [table.spaces[0].levels[level] for level in (1, 0, 1)]
    rows = zip(found.zone, found.label, found.persons, found.hidden, found.share, strict=True)
    told = [(z, labels[z][label], n, hidden, share) for z, label, n, hidden, share in rows]
    assert [row[:4] for row in told] == [
        (0, "food", 5, False),
        (0, "appointment", 4, False),
        (1, "cafe", 1, True),
        (1, "clinic", 3, True),
        (1, "pharmacy", 6, False),
        (2, "food", 7, False),
    ]
    assert [row[4] for row in told] == pytest.approx([5 / 9, 4 / 9, *[np.nan] * 3, 1], nan_ok=True)


def test_a_file_that_is_there_stays_unless_told_otherwise(tmp_path: Path) -> None:
    made = release({CENTRE: {"a": 4, "b": 4}})
    made.to_file(tmp_path / "r.gpkg")
    before = (tmp_path / "r.gpkg").read_bytes()
    with pytest.raises(gd.UsageError, match="exists"):
        made.to_file(tmp_path / "r.gpkg")
    assert (tmp_path / "r.gpkg").read_bytes() == before
    made.to_file(tmp_path / "r.gpkg", overwrite=True)


# --- the tables -----------------------------------------------------------------------------------------------

TAXONOMY = gd.Taxonomy(
    [("clinic", "appointment"), ("gym", "appointment"), ("cafe", "food"), ("pharmacy", "food")],
    name="poi", version="2",
)  # fmt: skip


@pytest.fixture(scope="module")
def town() -> gd.Release:
    """A coarsened island, a merged pair, a cell as it is, one suppressed, one below k."""
    counts = {
        FAR: {"clinic": 20, "pharmacy": 16},
        ROW[0]: {"clinic": 9},
        ROW[1]: {"gym": 9, "cafe": 9},
        ROW[3]: {"clinic": 6, "gym": 6, "cafe": 6, "pharmacy": 6},
        ROW[5]: {"pharmacy": 30},
        ROW[7]: {"cafe": 3},
    }
    poi = gd.Nominal("activity", TAXONOMY)
    policy = gd.Policy(k_min=4, l_min=2.8, incidence_max=0.6, residual=False)
    texts = gd.Publication(title="Town", abstract="Où", licence="CC0-1.0", keywords=("visits",), note="l 2.8")
    return gd.enforce(tabulate(counts, poi), policy, texts, run_text="[grid]\n").release


def test_the_layer_of_cells(town: gd.Release) -> None:
    cells = town.cells.set_index("cell_id")
    assert list(town.cells.columns) == [
        "cell_id", "members", "n_members", "persons", "area_m2", "remedy", "activity_level", "activity_top",
        "activity_effective", "activity_reference", "geometry",
    ]  # fmt: skip
    pair = min(ROW[:2])
    assert set(cells.index) == {FAR, pair, ROW[3]}
    assert cells["remedy"].to_dict() == {FAR: "publish_coarsened", pair: "publish_merged", ROW[3]: "publish"}
    assert cells.loc[pair, ["members", "n_members", "persons"]].tolist() == [" ".join(sorted(ROW[:2])), 2, 27]
    assert cells.loc[FAR, ["activity_level", "activity_top"]].tolist() == [1, "appointment"]
    assert cells.loc[ROW[3], "activity_effective"] == pytest.approx(4)
    assert (cells["activity_reference"] == "global").all()


def test_a_coarsened_zone_publishes_no_fine_figure(town: gd.Release) -> None:
    cells = town.cells.set_index("cell_id")
    assert pd.isna(cells.loc[FAR, "activity_effective"])
    rows = town.counts[town.counts["cell_id"] == FAR]
    assert rows[["value", "level", "persons"]].to_numpy().tolist() == [
        ["food", 1, 16],
        ["appointment", 1, 20],
    ]


def test_the_table_of_counts(town: gd.Release) -> None:
    assert list(town.counts.columns) == ["cell_id", "attribute", "value", "level", "persons", "share"]
    rows = town.counts[town.counts["cell_id"] == ROW[3]]
    assert rows["value"].tolist() == ["cafe", "clinic", "gym", "pharmacy"]
    assert rows["share"].tolist() == [0.25] * 4
    assert set(town.counts["cell_id"]) == set(town.cells["cell_id"])


def test_a_label_of_nobody_has_no_row(town: gd.Release) -> None:
    rows = town.counts[town.counts["cell_id"] == min(ROW[:2])]
    assert rows["value"].tolist() == ["cafe", "clinic", "gym"]


def test_what_is_suppressed_is_nowhere(town: gd.Release) -> None:
    frames = [town.cells.drop(columns="geometry"), town.counts, town.taxonomy, town.reference]
    text = json.dumps(town.metadata) + "".join(frame.to_csv() for frame in frames)
    assert ROW[5] not in text
    assert ROW[7] not in text
    assert "suppress" not in text.replace('"suppress"]', "")


def test_the_table_of_the_taxonomy(town: gd.Release) -> None:
    assert list(town.taxonomy.columns) == ["attribute", "value", "level1", "name", "version", "digest"]
    assert town.taxonomy[["value", "level1"]].to_numpy().tolist() == [list(row) for row in TAXONOMY.rows]
    assert set(town.taxonomy["digest"]) == {TAXONOMY.digest}


def test_the_reference_of_every_level_to_three_decimals_without_counts() -> None:
    counts = {
        CENTRE: {"clinic": 5, "cafe": 7},
        FAR: {"cafe": 3, "gym": 4, "pharmacy": 4},
        ROW[5]: {"gym": 2},
    }
    found = release(counts, gd.Nominal("activity", TAXONOMY))
    assert list(found.reference.columns) == ["attribute", "level", "value", "share"]
    assert found.reference.to_numpy().tolist() == [
        ["activity", 0, "cafe", 0.435], ["activity", 0, "clinic", 0.217], ["activity", 0, "gym", 0.174],
        ["activity", 0, "pharmacy", 0.174], ["activity", 1, "food", 0.609], ["activity", 1, "appointment", 0.391],
    ]  # fmt: skip


def test_a_zone_has_the_outline_of_its_members(town: gd.Release) -> None:
    assert town.cells.crs == "EPSG:4326"
    assert town.cells.geometry.is_valid.all()
    for members, outline, area in zip(
        town.cells["members"], town.cells.geometry, town.cells["area_m2"], strict=True
    ):
        cells = members.split(" ")
        assert area == pytest.approx(sum(h3.cell_area(c, "m^2") for c in cells))
        points = h3.h3shape_to_cells(h3.geo_to_h3shape(outline), 8)
        assert set(points) == set(cells)
        assert outline.geom_type == "Polygon"
        assert not outline.interiors


# --- the metadata ---------------------------------------------------------------------------------------------


def test_zones_whose_corners_do_not_meet_are_dissolved_too() -> None:
    """A corner of the small square lies on an edge of the large one: no clean coverage, and yet one outline."""
    squares = [shapely.box(0, 0, 2000, 2000), shapely.box(2000, 0, 3000, 1000)]
    layer = gpd.GeoDataFrame({"zone": ["large", "small"]}, geometry=squares, crs="EPSG:3067")
    source = visits({"large": {"a": 6}, "small": {"b": 6}})
    grid = gd.ZoneGrid(layer, id="zone", column="cell")
    table = gd.tabulate(source, grid=grid, person="person", attributes=[gd.Nominal("activity")])
    cells = gd.enforce(table, gd.Policy(k_min=4, l_min=2)).release.cells
    assert cells["members"].tolist() == ["large small"]
    assert cells.geometry.area.tolist() == [5_000_000]
    assert shapely.get_num_geometries(cells.geometry.to_numpy()).tolist() == [1]


def test_the_metadata_are_plain_values(town: gd.Release) -> None:
    assert json.loads(json.dumps(town.metadata, allow_nan=False)) == town.metadata


def test_the_figures_of_the_metadata(town: gd.Release) -> None:
    found = town.metadata
    expected = {
        "format": "geodiv release 1",
        "title": "Town", "abstract": "Où", "licence": "CC0-1.0", "keywords": ["visits"], "note": "l 2.8",
        "run": "[grid]\n",
        "count_basis": "distinct persons", "count_min": 3,
        "cells": 4, "zones": 3, "persons": 87, "rounds": 2,
        "remedies": {"publish": 1, "publish_coarsened": 1, "publish_merged": 1},
        "not_published": 2,
        "coverage": round(87 / 117, 2),
        "reference": {"global": 3},
        "dropped": {},
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected
    assert found["grid"]["kind"] == "column"
    assert found["engine"]["name"] == "memory"
    assert found["versions"]["geodiv"] == gd.__version__  # also where nothing is installed
    assert {"python", "numpy"} <= set(found["versions"])
    assert len(found["input_digest"]) == 64


def test_the_policy_and_attributes_of_the_metadata(town: gd.Release) -> None:
    policy, (attribute,) = town.metadata["policy"], town.metadata["attributes"]
    assert policy["reference"] == {"scope": "global"}
    assert (policy["ladder"], policy["max_members"]) == (["recode", "merge", "suppress"], 7)
    assert attribute["column"] == "activity"
    assert attribute["kind"] == "nominal"
    assert attribute["levels"] == [["cafe", "clinic", "gym", "pharmacy"], ["food", "appointment"]]
    assert attribute["taxonomy"] == {"name": "poi", "version": "2", "digest": TAXONOMY.digest}
    assert attribute["gates"] == {"k_min": 4, "l_min": 2.8, "incidence_max": 0.6}


def test_persons_of_the_metadata_are_distinct() -> None:
    table = tabulate(visits({CENTRE: {"a": 5}, FAR: {"a": 6}}, shared=True))
    found = gd.enforce(table, gd.Policy(k_min=4)).release.metadata
    assert (found["persons"], found["cells"], found["coverage"]) == (6, 2, 1.0)


@pytest.mark.parametrize(("kept", "lost", "coverage"), [(997, 10, 0.99), (996, 4, 1.0), (2, 1, 0.67)])
def test_coverage_has_two_decimals(kept: int, lost: int, coverage: float) -> None:
    counts = {CENTRE: {"a": kept, "b": kept}, FAR: {"a": 2 * lost}}
    found = release(counts, k_min=2, l_min=1.9)
    assert found.metadata["coverage"] == coverage


def test_coverage_is_that_of_eligible_cells() -> None:
    """A cell below k that was merged into a zone counts neither above nor below the line."""
    counts = {ROW[0]: {"a": 6}, ROW[1]: {"b": 3}, FAR: {"a": 9}}
    found = release(counts, l_min=1.8)
    assert found.cells["persons"].tolist() == [9]
    assert found.metadata["coverage"] == 0.4


def test_the_reference_is_tallied_over_published_zones_only() -> None:
    counts = {ROW[0]: {"a": 5, "b": 5}, ROW[1]: {"a": 5, "b": 5}, FAR: {"a": 5, "b": 5}, ROW[4]: {"a": 9}}
    found = release(counts, l_min=1.9, reference=gd.Ring(1))
    assert found.metadata["reference"] == {"global": 1, "ring:1": 2}
    assert found.cells["activity_reference"].value_counts().to_dict() == {"ring:1": 2, "global": 1}


def test_rows_that_were_not_counted_are_told_by_reason() -> None:
    frame = visits({CENTRE: {"a": 5}})
    frame = pd.concat([frame, pd.DataFrame({"cell": [CENTRE, None], "person": [None, "p"], "activity": "a"})])
    table = gd.tabulate(frame, grid=gd.ColumnGrid("cell"), person="person",
                        attributes=[gd.Nominal("activity")], on_bad_rows="skip")  # fmt: skip
    found = gd.enforce(table, gd.Policy(k_min=4)).release.metadata
    assert found["dropped"] == {"no cell id": 1, "no person": 1}


def test_no_person_is_in_a_release() -> None:
    frame = visits({CENTRE: {"a": 5}, FAR: {"b": 5}})
    frame["person"] = "secret-" + frame["person"]
    found = gd.enforce(tabulate(frame), gd.Policy(k_min=4)).release
    tables = [found.cells, found.counts, found.taxonomy, found.reference]
    assert "secret" not in json.dumps(found.metadata) + "".join(pd.DataFrame(t).to_csv() for t in tables)


# --- names ----------------------------------------------------------------------------------------------------


def test_white_space_of_member_ids_is_written_as_percent_20() -> None:
    found = release({"r1 c\t2": {"a": 5}, "plain": {"a": 6}})
    assert found.cells["cell_id"].tolist() == ["plain", "r1 c\t2"]
    assert found.cells["members"].tolist() == ["plain", "r1%20c%202"]
    assert type(found.cells) is pd.DataFrame
    assert found.cells["area_m2"].isna().all()


def test_values_are_written_as_they_are() -> None:
    names = ["work", "Work", "Café & Bar / 24h", 'naïve, "quoted"\n']
    found = release({CENTRE: dict.fromkeys(names, 4)})
    assert found.counts["value"].tolist() == sorted(names)


def test_columns_of_each_attribute_bear_its_name() -> None:
    frame = visits({CENTRE: {"a": 9}}).rename(columns={"activity": "POI category"}).assign(Straße=1)
    found = release(frame, gd.Nominal("POI category"), gd.Numeric("Straße", edges=[0, 1, 2]))
    assert [c for c in found.cells if c.endswith("_top")] == ["POI category_top", "Straße_top"]
    assert found.cells["Straße_top"].tolist() == ["[1, 2]"]


def test_columns_have_types_that_files_can_hold(town: gd.Release) -> None:
    kinds = {name: dtype.kind for name, dtype in town.cells.drop(columns="geometry").dtypes.items()}
    assert [kinds[c] for c in ("n_members", "persons", "activity_level", "area_m2", "activity_effective")] == [
        "i", "i", "i", "f", "f",
    ]  # fmt: skip
    assert all(isinstance(v, str) for c in ("cell_id", "members", "remedy") for v in town.cells[c])
    assert town.counts["persons"].dtype == "Int64"
    assert np.issubdtype(town.counts["level"].dtype, np.integer)


def test_borders_that_do_not_match_are_joined_all_the_same() -> None:
    """Two boxes that overlap by a tenth are no coverage; their union is 1.9 wide."""
    odd = [shapely.box(0, 0, 1, 1), shapely.box(0.9, 0, 1.9, 1)]
    even = [shapely.box(5, 0, 6, 1), shapely.box(6, 0, 7, 1)]
    groups = np.empty((2, 2), dtype=object)
    groups[:] = [odd, even]
    for joined, outline in zip(_dissolved(groups), ((0, 0, 1.9, 1), (5, 0, 7, 1)), strict=True):
        assert joined.equals(shapely.box(*outline))


def test_outlines_have_ten_decimals_of_a_degree_or_six_of_a_metre() -> None:
    """A hundredth of a millimetre and a thousandth of one: neighbours share their corners to the last digit."""
    cells = release({CENTRE: {"a": 4, "b": 4}}).cells
    corners = np.array([(lon, lat) for lat, lon in h3.cell_to_boundary(CENTRE)])
    told = shapely.get_coordinates(cells.geometry)
    assert {tuple(xy) for xy in told} == {tuple(xy) for xy in corners.round(10)}
    assert (corners.round(10) != corners.round(11)).any()

    square = shapely.box(1000 / 3, 2000 / 7, 4000 / 3, 9000 / 7)
    layer = gpd.GeoDataFrame({"zone": ["one"]}, geometry=[square], crs="EPSG:3067")
    grid = gd.ZoneGrid(layer, id="zone", column="cell")
    source = visits({"one": {"a": 4, "b": 4}})
    table = gd.tabulate(source, grid=grid, person="person", attributes=[gd.Nominal("activity")])
    made = gd.enforce(table, gd.Policy(k_min=4, residual=False)).release
    corners = shapely.get_coordinates(square)
    told = shapely.get_coordinates(made.cells.geometry)
    assert {tuple(xy) for xy in told} == {tuple(xy) for xy in corners.round(6)}
    assert (corners.round(6) != corners.round(7)).any()


def test_taxonomies_of_different_heights_stand_in_one_table() -> None:
    low = gd.Nominal("poi", taxonomy=gd.Taxonomy.of({"clinic": "health", "gym": "sport"}, "poi", "1"))
    rows = (("cafe", "food", "leisure"), ("bank", "money", "work"))
    high = gd.Nominal("shop", taxonomy=gd.Taxonomy(rows, "shop", "2"))
    found = taxonomy_table((low, gd.Nominal("band"), high))
    columns = ["attribute", "value", "level1", "level2", "name", "version", "digest"]
    assert list(found.columns) == columns
    told = found[columns[:6]].astype(object).where(found.notna(), None).to_numpy().tolist()
    assert told == [
        ["poi", "clinic", "health", None, "poi", "1"],
        ["poi", "gym", "sport", None, "poi", "1"],
        ["shop", "bank", "money", "work", "shop", "2"],
        ["shop", "cafe", "food", "leisure", "shop", "2"],
    ]
    none = taxonomy_table((gd.Nominal("band"),))
    assert list(none.columns) == ["attribute", "value", "level1", "name", "version", "digest"]
    assert len(none) == 0
