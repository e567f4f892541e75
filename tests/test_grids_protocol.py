"""What every grid promises, tried on one of each kind."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from typing import Any

import geopandas as gpd
import numpy as np
import pytest
import shapely

from geodiv.errors import GridError
from geodiv.grids import ColumnGrid, Grid, H3Grid, SquareGrid, ZoneGrid


def quarters() -> gpd.GeoDataFrame:
    """Four square kilometres of one square kilometre each, south-west first."""
    boxes = shapely.box(
        [0, 1000, 0, 1000], [0, 0, 1000, 1000], [1000, 2000, 1000, 2000], [1000, 1000, 2000, 2000]
    )
    return gpd.GeoDataFrame({"zone": ["sw", "se", "nw", "ne"]}, geometry=boxes, crs="EPSG:3067")


def sample(grid: Grid) -> Any:
    """Some keys of the grid, as a table holds them: by id as text."""
    if isinstance(grid, ColumnGrid):
        return H3Grid(9).ids(sample(H3Grid(9)))
    if isinstance(grid, ZoneGrid):
        return np.arange(4)
    east, north = np.meshgrid(np.linspace(24.90, 24.95, 30), np.linspace(60.15, 60.18, 30))
    if isinstance(grid, SquareGrid):
        east, north = (east - 24.9) * 50_000, (north - 60.15) * 100_000
    keys = np.unique(grid.locate(east.ravel(), north.ravel()))
    return keys[np.argsort(grid.ids(keys))]


GRIDS = {
    "h3": H3Grid(9),
    "square": SquareGrid(250, "EPSG:3067"),
    "zones": ZoneGrid(quarters(), id="zone"),
    "column": ColumnGrid("cell"),
}
each_grid = pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)


@each_grid
def test_it_is_a_grid_and_says_so(grid: Grid) -> None:
    assert isinstance(grid, Grid)
    assert next(iter(grid.describe())) == "kind"
    assert grid.describe()["kind"] == grid.kind


@each_grid
def test_ids_and_keys_are_inverse(grid: Grid) -> None:
    keys = sample(grid)
    ids = grid.ids(keys)
    assert all(isinstance(i, str) for i in ids)
    assert len(set(ids)) == len(keys)
    assert grid.keys(ids).tolist() == keys.tolist()
    assert grid.parse(ids).tolist() == keys.tolist()


@each_grid
def test_outlines_are_valid_and_do_not_overlap(grid: Grid) -> None:
    shapes = grid.geometry(sample(grid))
    assert shapes is not None
    assert shapely.is_valid(shapes).all()
    assert shapely.area(shapely.union_all(shapes)) == pytest.approx(shapely.area(shapes).sum(), rel=1e-9)


@each_grid
def test_rows_for_some_centres_are_those_rows_of_all(grid: Grid) -> None:
    keys = sample(grid)
    whole = grid.neighbours(keys, 1)
    some = np.array([2, 0])
    assert whole.shape == (len(keys), len(keys))
    assert (grid.neighbours(keys, 1, some) != whole[some]).nnz == 0
    assert set(whole.data) == {1.0}
    assert whole.has_sorted_indices


@each_grid
def test_neighbours_are_mutual_and_grow_with_the_order(grid: Grid) -> None:
    keys = sample(grid)
    before = np.zeros((len(keys), len(keys)))
    assert grid.neighbours(keys, 0).nnz == 0
    for order in (1, 2, 3):
        near = grid.neighbours(keys, order).toarray()
        assert (near == near.T).all()
        assert not near.diagonal().any()
        assert (near >= before).all()
        before = near


@each_grid
def test_neighbours_do_not_depend_on_the_order_of_keys(grid: Grid) -> None:
    keys = sample(grid)
    mixed = np.random.default_rng(3).permutation(len(keys))
    near, again = grid.neighbours(keys, 2).toarray(), grid.neighbours(keys[mixed], 2).toarray()
    assert (near[np.ix_(mixed, mixed)] == again).all()


@each_grid
def test_nothing_in_nothing_out(grid: Grid) -> None:
    none = sample(grid)[:0]
    assert len(grid.ids(none)) == len(grid.keys(grid.ids(none))) == len(grid.parse(grid.ids(none))) == 0
    assert len(grid.area(none)) == 0
    assert grid.neighbours(none, 1).shape == (0, 0)
    assert len(grid.locate(np.empty(0), np.empty(0))) == 0
    outlines = grid.geometry(none)
    assert outlines is None or len(outlines) == 0


@each_grid
@pytest.mark.parametrize("order", [-1, 1.0, True, "1", None])
def test_an_order_is_a_whole_number_of_steps(grid: Grid, order: Any) -> None:
    with pytest.raises(GridError, match="order of 0 or more"):
        grid.neighbours(sample(grid), order)


@each_grid
def test_a_grid_cannot_be_changed(grid: Grid) -> None:
    for field in dataclasses.fields(grid):  # type: ignore[arg-type]
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(grid, field.name, None)


def test_grids_of_the_same_parameters_are_equal() -> None:
    assert H3Grid(8) == H3Grid(np.int64(8)) != H3Grid(9)
    assert SquareGrid(500, "EPSG:3035") == SquareGrid(500.0, "epsg:3035") != SquareGrid(500, "EPSG:3067")
    assert len({ColumnGrid("cell"), ColumnGrid("cell"), ColumnGrid("zone")}) == 2


def test_importing_grids_loads_no_heavy_library() -> None:
    heavy = "('h3', 'shapely', 'geopandas', 'pandas', 'pyproj', 'libpysal')"
    code = f"import sys, geodiv.grids; print([m for m in {heavy} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"


def test_an_unknown_grid_is_an_attribute_error() -> None:
    import geodiv.grids

    assert set(dir(geodiv.grids)) == {"ColumnGrid", "Grid", "H3Grid", "SquareGrid", "ZoneGrid"}
    with pytest.raises(AttributeError, match="HexGrid"):
        _ = geodiv.grids.HexGrid  # type: ignore[attr-defined]
