"""Zones: every point in one of them or none, neighbours kept whatever the drawing, areas in square metres."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from libpysal.graph import Graph

from geodiv.errors import GridError
from geodiv.grids import ZoneGrid
from geodiv.grids.points import PROBE

SIDE = 1000.0


def layer(shapes: Any, ids: Any = None, crs: str = "EPSG:3067") -> gpd.GeoDataFrame:
    ids = [f"z{i}" for i in range(len(shapes))] if ids is None else ids
    return gpd.GeoDataFrame({"zone": ids}, geometry=list(shapes), crs=crs)


def boxes(places: list[tuple[int, int]]) -> list[shapely.Polygon]:
    return [shapely.box(SIDE * x, SIDE * y, SIDE * (x + 1), SIDE * (y + 1)) for x, y in places]


def mosaic(points: int, seed: int) -> list[shapely.Polygon]:
    """Voronoi zones of random points, cut to a square of 1000 m."""
    sites = shapely.multipoints(np.random.default_rng(seed).uniform(0, SIDE, (points, 2)))
    square = shapely.box(0, 0, SIDE, SIDE)
    parts = shapely.get_parts(shapely.voronoi_polygons(sites, extend_to=square))
    cut = shapely.set_precision(shapely.intersection(parts, square), 1e-6)
    return [zone for zone in cut if zone.area > 0]


def grid_of(shapes: Any, ids: Any = None, **keywords: Any) -> ZoneGrid:
    return ZoneGrid(layer(shapes, ids), id="zone", **keywords)


# --- locate -------------------------------------------------------------------------------------------------


def test_a_point_on_a_border_lies_in_the_smallest_id_whatever_the_row_order() -> None:
    places = [(0, 0), (1, 0), (0, 1), (1, 1)]
    x = np.array([500.0, 1000.0, 1000.0, 500.0, 1500.0, 2000.0, 2000.1])
    y = np.array([500.0, 500.0, 1000.0, 1000.0, 1000.0, 2000.0, 500.0])
    expected = ["10", "10", "10", "10", "10 b", "9", None]
    for rows in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]):
        ids = np.array(["10", "10 b", "8", "9"])
        grid = grid_of([boxes(places)[i] for i in rows], ids[rows])
        keys = grid.locate(x, y)
        assert [grid.ids(keys[[i]])[0] if k >= 0 else None for i, k in enumerate(keys)] == expected


@given(st.integers(2, 25), st.integers(0, 1000), st.integers(0, 1000))
def test_every_point_of_a_mosaic_lies_in_one_zone_that_holds_it(points: int, seed: int, shuffle: int) -> None:
    shapes = mosaic(points, seed)
    rng = np.random.default_rng(shuffle)
    vertices = shapely.get_coordinates(shapes)
    inside = rng.uniform(0, SIDE, (50, 2))
    x, y = np.vstack([vertices, inside, [[-1, 5], [SIDE + 1, 5]]]).T
    grid = grid_of(shapes)
    keys = grid.locate(x, y)
    assert (keys[-2:] == -1).all()
    assert (keys[: len(vertices)] >= 0).all()
    found = keys >= 0
    assert shapely.intersects(grid.geometry(keys[found]), shapely.points(x[found], y[found])).all()
    mixed = rng.permutation(len(shapes))
    again = grid_of([shapes[i] for i in mixed], [f"z{i}" for i in mixed])
    assert (again.locate(x, y) == keys).all()


def test_many_visits_to_few_places_are_located_as_one_by_one() -> None:
    grid = grid_of(mosaic(20, 1))
    rng = np.random.default_rng(2)
    x, y = rng.uniform(-100, SIDE, (2, 300))
    rows = rng.integers(0, 300, PROBE)
    assert (grid.locate(x[rows], y[rows]) == grid.locate(x, y)[rows]).all()


def test_a_point_in_a_hole_or_a_gap_lies_nowhere() -> None:
    ring = boxes([(0, 0)])[0] - shapely.box(400, 400, 600, 600)
    grid = grid_of([ring, shapely.box(1000.5, 0, 2000, 1000)])
    assert grid.locate(np.array([500.0, 1000.25, 400.0]), np.array([500.0, 500.0, 500.0])).tolist() == [
        -1,
        -1,
        0,
    ]


def test_a_point_in_a_sliver_lies_in_the_smaller_id() -> None:
    grid = grid_of([shapely.box(0, 0, 1000.5, 1000), shapely.box(1000, 0, 2000, 1000)], ["b", "a"])
    assert grid.ids(grid.locate(np.array([1000.2]), np.array([5.0]))).tolist() == ["a"]


# --- ids ----------------------------------------------------------------------------------------------------


def test_ids_of_the_visits_are_compared_as_text() -> None:
    grid = grid_of(boxes([(0, 0), (1, 0), (2, 0)]), [7, 10, 9], column="home")
    keys = grid.parse(np.array(["7", " 9", "10", "07", "7.0", "", None], dtype=object))
    assert keys.tolist() == [1, 2, 0, -1, -1, -1, -1]
    assert grid.column == "home"


def test_ids_that_differ_by_white_space_stay_apart() -> None:
    grid = grid_of(boxes([(0, 0), (1, 0)]), ["a", "a "])
    assert grid.parse(np.array(["a", "a "], dtype=object)).tolist() == [0, 1]


# --- neighbours ---------------------------------------------------------------------------------------------


def contiguity(grid: ZoneGrid) -> np.ndarray:
    return grid.neighbours(np.arange(len(grid.names)), 1).toarray()


@given(st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=20), st.booleans())
def test_contiguity_of_boxes(places: set[tuple[int, int]], rook: bool) -> None:
    at = np.array(sorted(places))
    grid = grid_of(
        boxes(sorted(places)), [f"{i:02}" for i in range(len(at))], contiguity="rook" if rook else "queen"
    )
    apart = np.abs(at[:, None] - at[None]).astype(int)
    distance = apart.sum(axis=2) if rook else apart.max(axis=2)
    assert (contiguity(grid) == (distance == 1)).all()


@given(st.sets(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=4, max_size=20), st.booleans())
def test_contiguity_of_a_clean_coverage_is_that_of_libpysal(sites: set[tuple[int, int]], rook: bool) -> None:
    mesh = shapely.get_parts(shapely.delaunay_triangles(shapely.multipoints(sorted(sites))))
    shapes = gpd.GeoSeries(mesh[::2] if len(mesh) > 8 else mesh)
    if not len(shapes):
        return
    ids = [f"{i:03}" for i in range(len(shapes))]
    grid = grid_of(shapes, ids, contiguity="rook" if rook else "queen", tolerance=0)
    expected = Graph.build_contiguity(shapes, rook=rook, strict=True).sparse.toarray()
    assert (contiguity(grid) == expected).all()


@pytest.mark.parametrize("kind", ["queen", "rook"])
@pytest.mark.parametrize("wide", [-0.5, -1e-9, 0.0, 1e-9, 0.5])
def test_neighbours_are_kept_across_gaps_and_slivers(wide: float, kind: str) -> None:
    shapes = [shapely.box(0, 0, 1000 - wide, 1000), shapely.box(1000, 0, 2000, 1000)]
    assert contiguity(grid_of(shapes, contiguity=kind)).tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("wide", [-0.5, 0.0, 0.5])
def test_zones_that_nearly_meet_at_a_corner_are_neighbours_by_queen_only(wide: float) -> None:
    shapes = [*boxes([(0, 0)]), shapely.box(1000 + wide, 1000 + wide, 2000, 2000)]
    assert contiguity(grid_of(shapes)).sum() == 2
    assert contiguity(grid_of(shapes, contiguity="rook")).sum() == 0


def test_a_border_drawn_with_other_vertices_is_a_border() -> None:
    left = shapely.Polygon([(0, 0), (1000, 0), (1000.0000004, 333), (1000, 1000), (0, 1000)])
    right = shapely.Polygon([(1000, 0), (2000, 0), (2000, 1000), (1000, 1000), (999.9999996, 777)])
    for kind in ("queen", "rook"):
        assert contiguity(grid_of([left, right], contiguity=kind)).sum() == 2


def test_a_tolerance_of_nothing_takes_the_drawing_at_its_word() -> None:
    shapes = [shapely.box(0, 0, 999.5, 1000), *boxes([(1, 0), (2, 0)])]
    for kind in ("queen", "rook"):
        near = contiguity(grid_of(shapes, contiguity=kind, tolerance=0))
        assert near.tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 0]]


@given(st.integers(3, 25), st.integers(0, 300), st.integers(0, 4))
def test_steps_lead_across_zones_that_are_not_among_the_keys(points: int, seed: int, order: int) -> None:
    grid = grid_of(mosaic(points, seed))
    links = contiguity(grid)
    rng = np.random.default_rng(seed)
    keys = rng.permutation(len(grid.names))[: rng.integers(1, len(grid.names) + 1)]
    centres = rng.integers(0, len(keys), 3)
    got = grid.neighbours(keys, order, centres).toarray()
    for row, centre in zip(got, centres, strict=True):
        reached = {keys[centre]}
        for _ in range(order):
            reached |= {int(b) for a in reached for b in np.flatnonzero(links[a])}
        assert {int(keys[i]) for i in np.flatnonzero(row)} == (reached - {keys[centre]}) & set(keys.tolist())


def test_islands_keep_their_empty_row() -> None:
    grid = grid_of(boxes([(0, 0), (5, 5), (1, 0)]))
    assert contiguity(grid).sum(axis=1).tolist() == [1, 0, 1]
    assert contiguity(grid_of(boxes([(0, 0)]))).tolist() == [[0]]
    assert contiguity(grid_of(boxes([(0, 0), (5, 5)]))).sum() == 0


# --- areas and the rest -------------------------------------------------------------------------------------


def test_areas_are_square_metres_in_every_crs() -> None:
    square = layer(boxes([(300, 6700)]), crs="EPSG:3067")
    plane = ZoneGrid(square, id="zone").area(np.array([0]))[0]
    assert plane == 1_000_000
    feet = square.to_crs("EPSG:32618").set_crs("EPSG:3067", allow_override=True)
    for crs in ("EPSG:4326", "EPSG:4258"):
        assert ZoneGrid(square.to_crs(crs), id="zone").area(np.array([0]))[0] == pytest.approx(
            plane, rel=2e-3
        )
    feet = layer([shapely.box(0, 0, 3937, 3937)], crs="EPSG:2263")
    assert ZoneGrid(feet, id="zone").area(np.array([0]))[0] == pytest.approx(1200**2)


def test_areas_on_the_ellipsoid_heed_holes_and_winding() -> None:
    outer, hole = shapely.box(0, 0, 2, 2), shapely.box(0.5, 0.5, 1.5, 1.5)
    ring = shapely.Polygon(outer.exterior.coords[::-1], [hole.exterior.coords])
    grid = ZoneGrid(layer([ring, hole], crs="EPSG:4326"), id="zone")
    whole = ZoneGrid(layer([outer], crs="EPSG:4326"), id="zone").area(np.array([0]))[0]
    assert grid.area(np.arange(2)).sum() == pytest.approx(whole, rel=1e-3)
    assert whole == pytest.approx(4 * 111_195**2, rel=0.01)


def test_zones_across_180_degrees() -> None:
    both = shapely.multipolygons([shapely.box(179, 0, 180, 1), shapely.box(-180, 0, -179, 1)])
    grid = ZoneGrid(layer([both, shapely.box(178, 0, 179, 1)], crs="EPSG:4326"), id="zone")
    assert grid.locate(np.array([180.0, -180.0, 178.5, 0.0]), np.full(4, 0.5)).tolist() == [0, 0, 1, -1]
    assert grid.area(np.arange(2))[0] == pytest.approx(2 * grid.area(np.arange(2))[1])
    assert contiguity(grid).sum() == 2


def test_read_is_the_frame_from_a_file(tmp_path: Path) -> None:
    frame = layer(boxes([(0, 0), (1, 0)]), ["b", "a"])
    frame.to_file(tmp_path / "zones.gpkg", layer="zones")
    grid = ZoneGrid.read(tmp_path / "zones.gpkg", id="zone", column="home", contiguity="rook", tolerance=2)
    assert grid.names.tolist() == ["a", "b"]
    assert (grid.column, grid.contiguity, grid.tolerance, grid.crs) == ("home", "rook", 2, "EPSG:3067")
    assert (shapely.equals(grid.geometry(np.array([1, 0])), frame.geometry.array)).all()


def test_describe_names_no_zone() -> None:
    bowtie = shapely.Polygon([(0, 0), (1000, 1000), (1000, 0), (0, 1000)])
    grid = grid_of([bowtie, *boxes([(2, 0)])], ["Harbour", "Market"])
    told = grid.describe()
    assert grid.repaired == ("Harbour",)
    assert (told["kind"], told["id"], told["zones"], told["crs"]) == ("zones", "zone", 2, "EPSG:3067")
    assert "Harbour" not in str(told)
    assert "Harbour" not in repr(grid) + str(grid.notes)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"contiguity": "bishop"}, "'queen' or 'rook'"),
        ({"tolerance": -1}, "at least 0"),
        ({"tolerance": float("nan")}, "at least 0"),
        ({"tolerance": True}, "at least 0"),
    ],
)
def test_what_is_refused(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(GridError, match=message):
        grid_of(boxes([(0, 0)]), **keywords)


def test_a_grid_travels_to_other_processes() -> None:
    grid = grid_of(mosaic(6, 3))
    x, y = np.random.default_rng(0).uniform(0, SIDE, (2, 50))
    before = grid.locate(x, y)
    again = pickle.loads(pickle.dumps(grid))
    assert (again.locate(x, y) == before).all()
    assert (contiguity(again) == contiguity(grid)).all()
