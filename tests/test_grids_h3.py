"""H3 cells: ids, outlines across 180 degrees and at the poles, pentagons, disks."""

from __future__ import annotations

import h3
import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Transformer

from geodiv.errors import GridError
from geodiv.grids import H3Grid
from geodiv.grids.points import PROBE
from geodiv.grids.protocol import TextArray

ALL = range(16)
longitudes = st.floats(-180, 180)
latitudes = st.floats(-90, 90)
resolutions = st.integers(0, 15)


def texts(*values: str | None) -> TextArray:
    return np.array([*values, ""], dtype=object)[:-1]


def at(grid: H3Grid, lat: float, lon: float) -> np.ndarray:
    return grid.locate(np.array([lon]), np.array([lat]))


@pytest.mark.parametrize("resolution", [-1, 16, 8.0, True, "8", None])
def test_a_resolution_is_a_whole_number_from_0_to_15(resolution: object) -> None:
    with pytest.raises(GridError, match="whole number from 0 to 15"):
        H3Grid(resolution)  # type: ignore[arg-type]


@given(longitudes, latitudes, resolutions)
def test_a_point_lies_in_the_cell_that_h3_says(lon: float, lat: float, resolution: int) -> None:
    grid = H3Grid(resolution)
    key = at(grid, lat, lon)
    assert key.dtype == np.int64
    assert grid.ids(key).tolist() == [h3.latlng_to_cell(lat, lon, resolution)]
    assert len(grid.ids(key)[0]) == 15
    assert grid.keys(grid.ids(key)) == grid.parse(grid.ids(key)) == key


def test_many_visits_to_few_places_are_located_as_one_by_one() -> None:
    rng = np.random.default_rng(7)
    x, y = rng.uniform(-74.1, -73.8, 500).round(4), rng.uniform(40.6, 40.9, 500).round(4)
    rows = rng.integers(0, 500, PROBE + 17)
    grid = H3Grid(9)
    assert (grid.locate(x[rows], y[rows]) == grid.locate(x, y)[rows]).all()


def test_visits_in_feet_give_the_cells_of_their_twin_in_degrees() -> None:
    rng = np.random.default_rng(1)
    lon, lat = rng.uniform(-74.1, -73.8, 2000), rng.uniform(40.6, 40.9, 2000)
    there = Transformer.from_crs("EPSG:4326", "EPSG:2263", always_xy=True)
    back = Transformer.from_crs("EPSG:2263", "EPSG:4326", always_xy=True)
    feet = there.transform(lon, lat)
    assert (H3Grid(9).locate(*back.transform(*feet)) == H3Grid(9).locate(lon, lat)).all()


# --- ids ----------------------------------------------------------------------------------------------------

CELL = h3.latlng_to_cell(40.758, -73.9855, 8)
NUMBER = h3.str_to_int(CELL)


@pytest.mark.parametrize(
    "text", [CELL, CELL.upper(), "0" + CELL, "0x" + CELL, "0X" + CELL.upper(), str(NUMBER), f" {CELL}\t"]
)
def test_spellings_of_one_id(text: str) -> None:
    assert H3Grid(8).parse(texts(text)).tolist() == [NUMBER]


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "c-41",
        "-1",
        CELL[:-1],
        CELL + "f",
        "1" + CELL,
        "00" + CELL,
        CELL[:-1] + "0",
        f"{NUMBER}.0",
        f"-{NUMBER}",
        f"{NUMBER:_}",
        str(NUMBER + 1),
        str(2**64),
        "６１３１９６５７１５４２０２８２８７",
        h3.cell_to_parent(CELL, 7),
        h3.cell_to_center_child(CELL, 9),
        h3.int_to_str(h3.str_to_int(h3.origin_to_directed_edges(CELL)[0])),
    ],
)
def test_what_is_no_id_of_this_resolution(text: str | None) -> None:
    assert H3Grid(8).parse(texts(text)).tolist() == [-1]


# --- outlines -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("resolution", [0, 1, 2, 3])
def test_all_cells_of_the_earth_cover_it_once(resolution: int) -> None:
    cells = [c for base in h3.get_res0_cells() for c in h3.cell_to_children(base, resolution)]
    grid = H3Grid(resolution)
    keys = grid.keys(texts(*cells))
    shapes = grid.geometry(keys)
    assert shapely.is_valid(shapes).all()
    assert (shapely.total_bounds(shapes) == [-180, -90, 180, 90]).all()
    assert shapely.area(shapes).sum() == pytest.approx(360 * 180, rel=1e-12)
    if resolution < 3:
        one, other = shapely.STRtree(shapes).query(shapes, predicate="intersects")
        shared = shapely.area(shapely.intersection(shapes[one[one < other]], shapes[other[one < other]]))
        assert shared.max() < 1e-9
    assert grid.area(keys).sum() == pytest.approx(4 * np.pi * 6371007.180918475**2, rel=1e-9)


@given(st.lists(st.tuples(longitudes, st.floats(-80, 80)), min_size=1, max_size=20), st.integers(4, 15))
def test_a_cell_holds_its_points(points: list[tuple[float, float]], resolution: int) -> None:
    lon, lat = np.array(points).T
    grid = H3Grid(resolution)
    shapes = grid.geometry(grid.locate(lon, lat))
    assert shapely.is_valid(shapes).all()
    # Edges are straight in degrees, H3's are arcs of great circles: apart by less than a hundredth of a cell.
    size = np.sqrt(shapely.area(shapes))
    assert (shapely.distance(shapes, shapely.points(lon, lat)) <= 0.01 * size + 1e-9).all()


@pytest.mark.parametrize("resolution", ALL)
def test_a_cell_across_180_degrees_is_split(resolution: int) -> None:
    grid = H3Grid(resolution)
    key = np.union1d(at(grid, 0.123, 180.0), at(grid, 0.123, -180.0))
    assert len(key) == 1
    shape = grid.geometry(key)[0]
    assert shape.geom_type == "MultiPolygon"
    west, _, east, _ = shape.bounds
    assert (west, east) == (-180, 180)
    assert all(part.bounds[2] - part.bounds[0] < 40 for part in shape.geoms)
    assert shape.distance(shapely.Point(180, 0.123)) == shape.distance(shapely.Point(-180, 0.123)) == 0


@pytest.mark.parametrize("resolution", ALL)
@pytest.mark.parametrize("pole", [90, -90])
def test_the_cell_of_a_pole_goes_all_the_way_round(resolution: int, pole: float) -> None:
    grid = H3Grid(resolution)
    lon = np.array([-180.0, -77.0, 0.0, 33.0, 180.0])
    key = np.unique(grid.locate(lon, np.full(5, float(pole))))
    assert len(key) == 1
    shape = grid.geometry(key)[0]
    assert shape.is_valid
    assert (shape.bounds[0], shape.bounds[2]) == (-180, 180)
    assert pole in (shape.bounds[1], shape.bounds[3])
    assert (shapely.distance(shape, shapely.points(lon, pole)) == 0).all()
    if (resolution, pole) != (15, -90):  # corners of that cell lie at the pole, to the last digit
        assert shape.geom_type == "Polygon"
        assert shapely.transform(shape, lambda xy: xy.round(10)).is_valid


@pytest.mark.parametrize("resolution", ALL)
def test_pentagons_have_outlines_and_five_neighbours(resolution: int) -> None:
    grid = H3Grid(resolution)
    for pentagon in h3.get_pentagons(resolution):
        keys = grid.keys(texts(*h3.grid_disk(pentagon, 1)))
        centre = grid.keys(texts(pentagon))
        shape = grid.geometry(centre)[0]
        assert shape.is_valid
        assert len(h3.cell_to_boundary(pentagon)) in (5, 10)
        at_centre = np.flatnonzero(keys == centre)
        assert grid.neighbours(keys, 1, at_centre).sum() == 5


def test_areas_are_those_of_the_place() -> None:
    grid = H3Grid(9)
    oslo, quito = grid.area(at(grid, 59.91, 10.75))[0], grid.area(at(grid, -0.18, -78.47))[0]
    assert 70e3 < oslo < 80e3
    assert 115e3 < quito < 125e3
    assert oslo == h3.cell_area(h3.latlng_to_cell(59.91, 10.75, 9), unit="m^2")


# --- neighbours ---------------------------------------------------------------------------------------------


@given(
    st.sampled_from([(60.17, 24.94), (0.0, 180.0), (89.99, 0.0), (-89.99, 77.0), (64.7, 10.536)]),
    st.integers(2, 9),
    st.integers(0, 4),
    st.integers(0, 2**32 - 1),
)
def test_neighbours_are_those_of_the_grid_distance(
    place: tuple[float, float], resolution: int, order: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    disk = sorted(h3.grid_disk(h3.latlng_to_cell(*place, resolution), 4))
    cells = sorted(rng.choice(disk, min(20, len(disk)), replace=False).tolist())
    centres = rng.integers(0, len(cells), 3)
    grid = H3Grid(resolution)
    got = grid.neighbours(grid.keys(texts(*cells)), order, centres).toarray()
    for row, centre in zip(got, centres, strict=True):
        expected = {c for c in cells if c in h3.grid_disk(cells[centre], order)} - {cells[centre]}
        assert {cells[i] for i in np.flatnonzero(row)} == expected


def test_a_cell_far_off_keeps_its_empty_row() -> None:
    near = h3.latlng_to_cell(60.17, 24.94, 8)
    cells = texts(*sorted([near, h3.grid_ring(near, 1)[0], h3.latlng_to_cell(61.5, 23.76, 8)]))
    grid = H3Grid(8)
    rows = grid.neighbours(grid.keys(cells), 1).sum(axis=1)
    assert sorted(rows) == [0, 1, 1]


def test_describe() -> None:
    assert H3Grid(8).describe() == {"kind": "h3", "resolution": 8, "column": None, "crs": "EPSG:4326"}
    assert H3Grid(8, column="hex").column == "hex"
