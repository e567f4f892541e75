"""A grid from outside the package, as docs/grids.md shows one: through the protocol alone, end to end."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Geod

import geodiv as gd
from geodiv import demo
from geodiv.grids.protocol import Grid

DOCS = Path(__file__).parent.parent / "docs"
sys.path.insert(0, str(DOCS))
from degree_grid import DegreeGrid  # noqa: E402

ACTIVITY = gd.Nominal("poi_category", missing=["", "Unknown"])
LON, LAT = st.floats(-180, 180), st.floats(-90, 90)


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(demo.fixtures(), tmp_path / "fixtures")
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "grids.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for code in re.findall(r"^```python\n(.*?)^```$", page, flags=re.M | re.S):
        exec(compile(code, "grids.md", "exec"), names)
    assert len(names["outcome"].release.cells) > 0
    assert "<!-- include docs/degree_grid.py -->" in page


def test_it_answers_the_protocol() -> None:
    grid: Grid = DegreeGrid(0.5)
    assert isinstance(grid, Grid)


@given(st.lists(st.tuples(LON, LAT), min_size=1, max_size=30), st.sampled_from([0.25, 1.0, 5.0, 30.0]))
def test_each_point_lies_in_its_cell_and_ids_lead_back(
    points: list[tuple[float, float]], step: float
) -> None:
    grid = DegreeGrid(step)
    x, y = np.array(points).T
    keys = grid.locate(x, y)
    assert keys.dtype == np.int64
    assert (keys >= 0).all()
    assert (grid.keys(grid.ids(keys)) == keys).all()
    assert (shapely.distance(grid.geometry(keys), shapely.points(x, y)) < 1e-9).all()


@given(
    st.lists(st.tuples(st.integers(0, 35), st.integers(0, 17)), min_size=1, max_size=25, unique=True),
    st.integers(0, 3),
)
def test_neighbours_are_those_whose_boxes_touch_after_so_many_steps(
    places: list[tuple[int, int]], order: int
) -> None:
    grid = DegreeGrid(10.0)
    keys = np.array([row * 36 + column for column, row in places], dtype=np.int64)
    near = grid.neighbours(keys, order).toarray()
    column, row = np.array(places).T
    east = np.abs(column[:, None] - column[None])
    steps = np.maximum(np.minimum(east, 36 - east), np.abs(row[:, None] - row[None]))
    assert (near == ((steps > 0) & (steps <= order))).all()
    some = np.arange(0, len(keys), 2)
    assert (grid.neighbours(keys, order, some).toarray() == near[some]).all()


def test_areas_are_those_of_the_sphere() -> None:
    grid = DegreeGrid(1.0)
    keys = grid.locate(np.array([0.5, 24.5, -179.5]), np.array([0.5, 60.5, -89.5]))
    globe = Geod(a=6_371_007.2, b=6_371_007.2)
    for key, area in zip(keys, grid.area(keys), strict=True):
        (box,) = grid.geometry(np.array([key]))
        parallel = shapely.segmentize(box, 0.01)
        assert area == pytest.approx(abs(globe.geometry_area_perimeter(parallel)[0]), rel=1e-3)


def test_a_release_on_it_is_written_and_read_back(tmp_path: Path) -> None:
    table = gd.tabulate(
        demo.fixtures() / "visits.parquet",
        grid=DegreeGrid(0.01),
        person="person_id",
        attributes=[ACTIVITY],
        on_bad_rows="skip",
    )
    assert table.persons.sum() > 0
    ladder = ("merge", "suppress")
    outcome = gd.enforce(table, gd.Policy(k_min=10, l_min=3, ladder=ladder, reference=gd.Ring(max_order=3)))
    outcome.release.to_file(tmp_path / "release.gpkg")
    back = gd.read_release(tmp_path / "release.gpkg")
    assert back.metadata["grid"] == {"kind": "degrees", "step": 0.01, "crs": "EPSG:4326"}
    assert back.cells["cell_id"].tolist() == outcome.release.cells["cell_id"].tolist()
    layer = gpd.read_file(tmp_path / "release.gpkg", layer="cells")
    assert layer.crs.to_epsg() == 4326
    for members, shape in zip(layer["members"].str.split(), layer.geometry, strict=True):
        boxes = DegreeGrid(0.01).geometry(DegreeGrid(0.01).keys(members))
        assert shape.symmetric_difference(shapely.union_all(boxes)).area < 1e-12
    assert (layer["n_members"] > 1).any()
