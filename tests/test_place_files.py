"""Maps of places read from layers: located, mapped to values, and what cannot be counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import geopandas as gpd
import pandas as pd
import pytest
import shapely
from shapely import Point, box

import geodiv as gd

GRID = gd.SquareGrid(100, "EPSG:3067")
POI = gd.Nominal(
    "poi", taxonomy=gd.Taxonomy.of({"cafe": "food", "bar": "food", "gym": "sport", "club": "sport"})
)


def layer(rows: list[tuple[Any, ...]], crs: str | None = "EPSG:3067") -> gpd.GeoDataFrame:
    columns = {"amenity": [r[0] for r in rows], "leisure": [r[1] for r in rows]}
    return gpd.GeoDataFrame(columns, geometry=[r[2] for r in rows], crs=crs)


def cell(x: float, y: float) -> str:
    import numpy as np

    return str(GRID.ids(GRID.locate(np.array([x]), np.array([y])))[0])


PLACES = layer([
    ("cafe", None, Point(400_010, 6_700_010)),
    ("cafe", None, box(400_020, 6_700_020, 400_030, 6_700_030)),
    ("bench", None, Point(400_015, 6_700_015)),
    ("bar", "fitness", Point(400_150, 6_700_050)),
    (None, "fitness", Point(400_160, 6_700_050)),
    ("cafe", None, None),
])  # fmt: skip


def test_points_and_polygons_count_where_they_lie() -> None:
    places = gd.read_places(PLACES, GRID, POI, column="amenity")
    assert places.inventory == {cell(400_010, 6_700_010): {"cafe": 2}, cell(400_150, 6_700_050): {"bar": 1}}
    assert places.ignored == {"no geometry": 1, "a category without a value": 2}


def test_several_columns_and_a_mapping_by_column() -> None:
    mapping = {"amenity=cafe": "cafe", "bar": "bar", "leisure=fitness": "gym", "fitness": "club"}
    places = gd.read_places(PLACES, GRID, POI, column=["amenity", "leisure"], mapping=mapping)
    assert places.inventory[cell(400_150, 6_700_050)] == {"bar": 1, "gym": 2}


def test_other_coordinates_give_the_same_places(tmp_path: Path) -> None:
    whole = PLACES[PLACES.geometry.notna()]
    for name in ("places.gpkg", "places.parquet", "places.geojson"):
        path = tmp_path / name
        degrees = whole.to_crs("EPSG:4326")
        degrees.to_parquet(path) if path.suffix == ".parquet" else degrees.to_file(path)
        found = gd.read_places(path, GRID, POI, column="amenity")
        assert found.inventory == gd.read_places(PLACES, GRID, POI, column="amenity").inventory
        assert found.name == name


def test_a_mapping_in_a_csv(tmp_path: Path) -> None:
    path = tmp_path / "map.csv"
    path.write_text("value,place\ngym,fitness\ncafe,cafe\ncafe,bench\n", encoding="utf-8")
    places = gd.read_places(PLACES, GRID, POI, column=["amenity", "leisure"], mapping=path)
    assert places.inventory == {cell(400_010, 6_700_010): {"cafe": 3}, cell(400_150, 6_700_050): {"gym": 2}}
    path.write_text("value,place\ngym,fitness\ncafe,fitness\n", encoding="utf-8")
    with pytest.raises(gd.SourceError, match="one value a place"):
        gd.read_places(PLACES, GRID, POI, column="leisure", mapping=path)


def test_h3_and_zones_locate_places_too() -> None:
    zones = gpd.GeoDataFrame(
        {"id": ["west"]}, geometry=[box(399_000, 6_699_000, 400_100, 6_701_000)], crs="EPSG:3067"
    )
    places = gd.read_places(PLACES, gd.ZoneGrid(zones, id="id"), POI, column="amenity")
    assert places.inventory == {"west": {"cafe": 2}}
    assert places.ignored == {"no geometry": 1, "outside the grid": 2, "a category without a value": 1}
    assert gd.read_places(PLACES, gd.H3Grid(8), POI, column="amenity").total == 3


def test_a_layer_without_crs_needs_one() -> None:
    bare = layer([("cafe", None, Point(400_010, 6_700_010))], crs=None)
    with pytest.raises(gd.SourceError, match="no CRS"):
        gd.read_places(bare, GRID, POI, column="amenity")
    assert gd.read_places(bare, GRID, POI, column="amenity", crs="EPSG:3067").total == 1


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"column": "amenities"}, "column 'amenities'.*'amenity'"),
        ({"column": "amenity", "mapping": {"cafe": "coffee"}}, "'coffee' not among its values"),
        (
            {"column": "amenity", "mapping": {"pub": "bar"}},
            "found none.*a category without a value: 5.*no geometry: 1",
        ),
    ],
)
def test_what_is_wrong_is_said(keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(gd.SourceError, match=words):
        gd.read_places(PLACES, GRID, POI, **keywords)


def test_other_sources_are_refused(tmp_path: Path) -> None:
    with pytest.raises(gd.SourceError, match="no such file"):
        gd.read_places(tmp_path / "nothing.gpkg", GRID, POI, column="amenity")
    (tmp_path / "text.gpkg").write_text("no layer")
    with pytest.raises(gd.SourceError, match="expected a layer of places"):
        gd.read_places(tmp_path / "text.gpkg", GRID, POI, column="amenity")
    with pytest.raises(gd.SourceError, match="expected a layer with geometry"):
        gd.read_places(PLACES.drop(columns="geometry"), GRID, POI, column="amenity")
    with pytest.raises(gd.SourceError, match="expected a grid that locates coordinates"):
        gd.read_places(PLACES, gd.ColumnGrid("cell"), POI, column="amenity")


def test_of_several_layers_one_is_named(tmp_path: Path) -> None:
    for name in ("pois", "benches"):
        PLACES[PLACES.geometry.notna()].to_file(tmp_path / "two.gpkg", layer=name)
    with pytest.raises(gd.SourceError, match="several layers: 'pois', 'benches'"):
        gd.read_places(tmp_path / "two.gpkg", GRID, POI, column="amenity")
    found = gd.read_places(f"{tmp_path / 'two.gpkg'}|layername=pois", GRID, POI, column="amenity")
    same = gd.read_places(tmp_path / "two.gpkg", GRID, POI, column="amenity", layer="pois")
    assert (found.name, found.inventory) == (same.name, same.inventory) == ("two.gpkg", same.inventory)


def test_the_layer_is_not_written_to() -> None:
    before = PLACES.copy(deep=True)
    gd.read_places(PLACES, GRID, POI, column="amenity")
    assert PLACES.drop(columns="geometry").equals(before.drop(columns="geometry"))
    assert shapely.equals(PLACES.geometry.dropna().to_numpy(), before.geometry.dropna().to_numpy()).all()


def test_a_policy_file_names_a_map(tmp_path: Path) -> None:
    PLACES[PLACES.geometry.notna()].to_file(tmp_path / "places.gpkg", layer="pois")
    (tmp_path / "map.csv").write_text("value,place\ncafe,cafe\ngym,fitness\n", encoding="utf-8")
    (tmp_path / "poi.csv").write_text("value,level1\ncafe,food\nbar,food\ngym,sport\n", encoding="utf-8")
    text = """
[visits]
person = "person"
[grid]
kind = "square"
size = 100
crs = "EPSG:3067"
[[attribute]]
column = "poi"
taxonomy = "poi.csv"
sensitive = ["bar"]
[gates]
tier_max = 0.5
tier_incidence_max = 0.9
[[places]]
attribute = "poi"
path = "places.gpkg"
layer = "pois"
column = ["amenity", "leisure"]
mapping = "map.csv"
"""
    (tmp_path / "policy.toml").write_text(text, encoding="utf-8")
    run = gd.read_run(tmp_path / "policy.toml")
    assert run.policy.places[0].inventory[cell(400_150, 6_700_050)] == {"gym": 2}
    assert (run.policy.tier_max, run.policy.tier_incidence_max) == (0.5, 0.9)
    coarser = replace(run, grid=gd.SquareGrid(1000, "EPSG:3067"))
    visits = pd.DataFrame({"person": ["a"], "poi": ["cafe"], "lon": [25.19], "lat": [60.43]})
    table = replace(coarser, visits={"person": "person", "crs": "EPSG:4326"}).tabulate(visits)
    (places,) = coarser.policy_for(table).places
    assert (len(places.inventory), places.total, places.name) == (1, 4, "places.gpkg")
    assert run.policy_for(replace(table, grid=run.grid)).places == run.policy.places
    for wrong, words in (
        (
            text.replace('attribute = "poi"', 'attribute = "pois"'),
            r"\[\[places\]\].*one of 'poi', got 'pois'",
        ),
        (text.replace('mapping = "map.csv"', 'map = "map.csv"'), r"\[\[places\]\] 'poi'.*unknown key 'map'"),
        (text.replace("[[places]]", "[places]"), r"maps of places as \[\[places\]\]"),
        (text.replace('path = "places.gpkg"\n', ""), "expected path, got none"),
        (text.replace('sensitive = ["bar"]\n', ""), "tier_max for 'poi'"),
    ):
        (tmp_path / "policy.toml").write_text(wrong, encoding="utf-8")
        with pytest.raises(gd.GeodivError, match=words):
            gd.read_run(tmp_path / "policy.toml")
