"""End to end where maps break: across 180 degrees, at pentagons, around the poles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import geopandas as gpd
import h3
import numpy as np
import pandas as pd
import pytest
import shapely
from scipy.sparse import csgraph

import geodiv as gd

PENTAGON = h3.get_pentagons(5)[3]
VALUES = ["shop", "food", "school", "clinic"]


def fiji(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Places on both sides of 180 degrees."""
    lon = rng.uniform(178.8, 181.2, n)
    return np.where(lon > 180, lon - 360, lon), rng.uniform(-18.5, -16.5, n)


def pentagon(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    lat, lon = h3.cell_to_latlng(PENTAGON)
    return lon + rng.normal(0, 0.25, n), lat + rng.normal(0, 0.25, n)


def pole(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    return rng.uniform(-180, 180, n), -90 + rng.uniform(0, 0.6, n)


def tabulated(where: Callable[..., Any], resolution: int) -> gd.Tabulation:
    rng = np.random.default_rng(5)
    n = 1500
    lon, lat = where(rng, n)
    poi = rng.choice(VALUES, n, p=[0.4, 0.3, 0.2, 0.1])
    frame = pd.DataFrame({"who": np.arange(n), "lon": lon, "lat": lat, "poi": poi})
    return gd.tabulate(frame, grid=gd.H3Grid(resolution), person="who", attributes=[gd.Nominal("poi")])


@pytest.mark.parametrize(("where", "resolution"), [(fiji, 5), (pentagon, 5), (pole, 4)])
def test_a_release_at_the_end_of_the_map(where: Callable[..., Any], resolution: int, tmp_path: Path) -> None:
    table = tabulated(where, resolution)
    assert table.intake.counted == 1500
    policy = gd.Policy(
        k_min=10,
        l_min=3,
        t_max=0.3,
        ladder=("merge", "suppress"),
        reference=gd.Ring(max_order=2),
        residual=False,
    )
    outcome = gd.enforce(table, policy)
    outcome.release.to_file(tmp_path / "release.gpkg")
    layer = gpd.read_file(tmp_path / "release.gpkg", layer="cells")
    assert len(layer) > 1
    assert layer.is_valid.all()
    west, south, east, north = layer.total_bounds
    assert west >= -180
    assert east <= 180
    assert south >= -90
    assert north <= 90
    for members, shape, area in zip(
        layer["members"].str.split(), layer.geometry, layer["area_m2"], strict=True
    ):
        at = np.flatnonzero(np.isin(table.cells, members))
        assert csgraph.connected_components(table.adjacency[at][:, at], directed=False)[0] == 1
        inside = [shape.intersects(shapely.Point(h3.cell_to_latlng(cell)[::-1])) for cell in members]
        assert all(inside)
        assert area == pytest.approx(sum(h3.cell_area(cell, unit="m^2") for cell in members), rel=0.01)


def test_neighbours_reach_across_180_degrees_and_zones_merge_across_it() -> None:
    table = tabulated(fiji, 5)
    side = np.array([h3.cell_to_latlng(cell)[1] > 0 for cell in table.cells])
    i, j = table.adjacency.nonzero()
    across = side[i] != side[j]
    assert across.any()
    assert all(h3.are_neighbor_cells(a, b) for a, b in zip(table.cells[i], table.cells[j], strict=True))
    policy = gd.Policy(k_min=25, l_min=3, ladder=("merge", "suppress"), residual=False)
    members = gd.enforce(table, policy).release.cells["members"].str.split()
    sides = [{h3.cell_to_latlng(cell)[1] > 0 for cell in cells} for cells in members]
    assert {True, False} in sides


def test_a_pentagon_has_five_neighbours() -> None:
    table = tabulated(pentagon, 5)
    at = table.cells.tolist().index(PENTAGON)
    near = table.cells[table.adjacency[[at]].indices]
    assert sorted(near) == sorted(set(h3.grid_disk(PENTAGON, 1)) - {PENTAGON})
    assert len(near) == 5
