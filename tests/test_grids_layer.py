"""A layer of zones: what is read, what is repaired, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

from geodiv.errors import GridError, SourceError
from geodiv.grids.layer import checked_layer, read_layer


def layer(shapes: Any, ids: Any = None, crs: str | None = "EPSG:3067") -> gpd.GeoDataFrame:
    ids = [f"z{i}" for i in range(len(shapes))] if ids is None else ids
    return gpd.GeoDataFrame({"zone": ids}, geometry=list(shapes), crs=crs)


def squares(n: int = 3, size: float = 1000) -> list[shapely.Polygon]:
    return [shapely.box(i * size, 0, (i + 1) * size, size) for i in range(n)]


BOWTIE = shapely.Polygon([(0, 0), (1000, 1000), (1000, 0), (0, 1000)])


# --- checked ------------------------------------------------------------------------------------------------


def test_ids_are_text_and_sorted_as_text() -> None:
    frame = layer(squares(4), [10.0, 9.0, 2.0, 100.0])
    found = checked_layer(frame, "zone", 1.0)
    assert found.names.tolist() == ["10", "100", "2", "9"]
    assert [shape.bounds[0] for shape in found.shapes] == [0, 3000, 2000, 1000]
    assert (found.crs, found.repaired, found.notes) == ("EPSG:3067", (), ())


def test_the_frame_is_not_written_to_and_the_result_cannot_be() -> None:
    frame = layer([BOWTIE, *squares(4)[2:]])
    before = frame.copy()
    found = checked_layer(frame, "zone", 1.0)
    assert frame.geometry.to_wkt().tolist() == before.geometry.to_wkt().tolist()
    for array in (found.names, found.shapes):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = None


def test_an_invalid_outline_is_repaired_and_said() -> None:
    found = checked_layer(layer([BOWTIE, *squares(4)[2:]], ["b", "c", "a"]), "zone", 1.0)
    assert shapely.is_valid(found.shapes).all()
    assert found.repaired == ("b",)
    assert found.shapes[1].area == pytest.approx(500_000)
    assert found.notes == ("zones whose outline was not valid and has been repaired: 1",)


def test_what_repair_leaves_without_area_falls_away() -> None:
    spike = shapely.Polygon([(0, 0), (1000, 0), (1000, 1000), (0, 1000), (0, 0), (-500, 0), (0, 0)])
    assert not spike.is_valid
    found = checked_layer(layer([spike]), "zone", 1.0)
    assert found.shapes[0].geom_type in ("Polygon", "MultiPolygon")
    assert found.shapes[0].area == 1_000_000


def test_heights_are_left_out() -> None:
    solid = shapely.force_3d(squares(1)[0], 7.0)
    assert not checked_layer(layer([solid]), "zone", 1.0).shapes[0].has_z


@pytest.mark.parametrize("wide", [1e-9, 0.5, 9.0])
def test_a_sliver_is_accepted_and_said(wide: float) -> None:
    shapes = [shapely.box(0, 0, 1000 + wide, 1000), shapely.box(1000, 0, 2000, 1000)]
    found = checked_layer(layer(shapes), "zone", 1.0)
    assert found.notes == ("pairs of zones that overlap by a sliver, which counts for the smaller id: 1",)


def test_a_narrow_overlap_of_a_narrow_zone_is_a_sliver() -> None:
    shapes = [shapely.box(0, 0, 1000, 1000), shapely.box(999.5, 0, 1005, 1000)]
    assert checked_layer(layer(shapes), "zone", 1.0).notes
    with pytest.raises(GridError, match="Zones overlap: 'z0 and z1'"):
        checked_layer(layer(shapes), "zone", 0.1)


@pytest.mark.parametrize(
    "other", [shapely.box(900, 0, 2000, 1000), shapely.box(400, 400, 450, 450), shapely.box(0, 0, 1000, 1000)]
)
def test_an_overlap_is_an_error_that_names_the_zones(other: shapely.Polygon) -> None:
    far = shapely.box(9000, 0, 9500, 500)
    with pytest.raises(GridError, match=r"Zones overlap: 'north and south'\. .*tolerance"):
        checked_layer(layer([other, far, squares(1)[0]], ["south", "far", "north"]), "zone", 1.0)


def test_tolerance_is_in_metres_whatever_the_unit_of_the_crs() -> None:
    for crs, metre in (("EPSG:3067", 1.0), ("EPSG:2263", 3937 / 1200), ("EPSG:4326", 1 / 111_195)):
        shapes = [shapely.box(0, 0, 10 * metre, metre), shapely.box(9 * metre, 0, 19 * metre, metre)]
        assert checked_layer(layer(shapes, crs=crs), "zone", 1.001).notes
        with pytest.raises(GridError, match="overlap"):
            checked_layer(layer(shapes, crs=crs), "zone", 0.9)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"zone": ["a"]}), "expected a GeoDataFrame of polygons, got a DataFrame"),
        (gpd.GeoDataFrame({"zone": ["a"]}), "expected a GeoDataFrame of polygons"),
        (layer(squares(), crs=None), "has no CRS"),
        (layer([]), "empty"),
        (layer(squares()).rename(columns={"zone": "zones"}), "no column 'zone'.*Did you mean 'zones'"),
        (layer(squares(), ["a", "b", "a"]), "must be unique.*'a'"),
        (layer(squares(), [1, 2, 1.0]), "must be unique.*'1'"),
        (layer(squares(), ["a", None, "c"]), "1 of 3 have no 'zone'"),
        (layer(squares(), ["a", " ", "c"]), "1 of 3 have no 'zone'"),
        (layer([*squares(2), None]), "without an outline: 'z2'"),
        (layer([*squares(2), shapely.Polygon()]), "without an outline: 'z2'"),
        (layer([*squares(1), shapely.Point(0, 0)]), "must be polygons, but 'z1' are Point"),
        (layer([*squares(1), squares(3)[2].boundary]), "'z1' are LineString"),
        (layer([*squares(1), shapely.Polygon([(0, 0), (1, 1), (2, 2)])]), "without an area: 'z1'"),
    ],
)
def test_what_is_refused(frame: Any, message: str) -> None:
    with pytest.raises(GridError, match=message):
        checked_layer(frame, "zone", 1.0)


# --- read ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["z.gpkg", "z.geojson", "z.shp", "z.fgb", "z.parquet", "z.geoparquet"])
def test_files_that_users_have(tmp_path: Path, name: str) -> None:
    frame = layer(squares(), crs="EPSG:4326" if name.endswith("geojson") else "EPSG:3067")
    if "parquet" in name:
        frame.to_parquet(tmp_path / name)
    else:
        frame.to_file(tmp_path / name)
    found = checked_layer(read_layer(tmp_path / name), "zone", 1.0)
    assert found.names.tolist() == ["z0", "z1", "z2"]
    assert found.crs == ("EPSG:4326" if name.endswith("geojson") else "EPSG:3067")


def test_a_layer_of_several_must_be_named(tmp_path: Path) -> None:
    path = tmp_path / "z.gpkg"
    layer(squares(2)).to_file(path, layer="zones")
    layer(squares(3)).to_file(path, layer="districts")
    with pytest.raises(SourceError, match="several layers: 'zones', 'districts'"):
        read_layer(path)
    with pytest.raises(SourceError, match=r"no layer 'zone'.*Did you mean 'zones'"):
        read_layer(path, "zone")
    assert len(read_layer(path, "districts")) == 3
    assert len(read_layer(f"{path}|layername=zones")) == 2
    assert len(read_layer(f"{path}|layername=zones", "districts")) == 3


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.gpkg", None, "no file"),
        ("text.gpkg", "not a database", "cannot be read"),
        ("text.parquet", "not a table", "cannot be read"),
        ("table.csv", "zone,name\n1,a\n", "no layer with geometry"),
    ],
)
def test_files_that_hold_no_zones(tmp_path: Path, name: str, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(SourceError, match=message):
        read_layer(tmp_path / name)


def test_a_parquet_table_without_geometry_holds_no_zones(tmp_path: Path) -> None:
    pd.DataFrame({"zone": np.arange(3)}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(SourceError, match="cannot be read"):
        read_layer(tmp_path / "t.parquet")
