"""Many points at once lie in the cells that H3 gives each: anywhere, and where rounding could tell them apart."""

from __future__ import annotations

import h3.api.basic_int as h3
import numpy as np
import pytest
from h3 import H3BaseException
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from geodiv.grids import lattice
from geodiv.grids.lattice import MARGIN, UNSURE, cells_at

Points = NDArray[np.float64]
NUDGES = (0.0, 1e-6, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14)
"""Degrees away from where two cells meet."""


def anywhere(rng: np.random.Generator, points: int) -> Points:
    """(points, 2) longitude and latitude, evenly over the sphere."""
    lat = np.degrees(np.arcsin(rng.uniform(-1, 1, points)))
    return np.column_stack([rng.uniform(-180, 180, points), lat])


def of_vectors(vectors: Points) -> Points:
    x, y, z = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).T
    return np.degrees(np.column_stack([np.arctan2(y, x), np.arcsin(np.clip(z, -1, 1))]))


def to_vectors(points: Points) -> Points:
    lon, lat = np.radians(points).T
    return np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])


def borders(rng: np.random.Generator, cells: list[int], points: int) -> Points:
    """Corners of cells, and points on the arcs between corners."""
    chosen = rng.choice(len(cells), points)
    found = []
    for at in chosen:
        corners = to_vectors(np.array(h3.cell_to_boundary(cells[at]))[:, ::-1])
        i, share = rng.integers(len(corners)), rng.choice([0.0, 0.5, rng.random()])
        found.append((1 - share) * corners[i] + share * corners[(i + 1) % len(corners)])
    return of_vectors(np.array(found))


def cells_of(points: Points, resolution: int) -> list[int]:
    return [h3.latlng_to_cell(lat, lon, resolution) for lon, lat in points.tolist()]


def on_borders(rng: np.random.Generator, resolution: int, points: int) -> Points:
    return borders(rng, cells_of(anywhere(rng, 40), resolution), points)


def on_few_borders(rng: np.random.Generator, resolution: int, points: int) -> Points:
    centre = cells_of(anywhere(rng, 1), resolution)[0]
    return borders(rng, list(h3.grid_disk(centre, 2)), points)


def at_pentagons(rng: np.random.Generator, resolution: int, points: int) -> Points:
    pentagon = sorted(h3.get_pentagons(resolution))[rng.integers(12)]
    return borders(rng, list(h3.grid_disk(pentagon, 1)), points)


def near_face_centres(rng: np.random.Generator, resolution: int, points: int) -> Points:
    centres = lattice._faces()[0][rng.integers(20, size=points)]
    return of_vectors(centres + rng.normal(size=(points, 3)) * 10.0 ** rng.uniform(-16, -1, (points, 1)))


def on_face_borders(rng: np.random.Generator, resolution: int, points: int) -> Points:
    corners = to_vectors(np.array([h3.cell_to_latlng(c) for c in sorted(h3.get_pentagons(0))])[:, ::-1])
    one, other = np.nonzero((corners @ corners.T > 0.3) & (corners @ corners.T < 0.9))
    edge, share = rng.integers(len(one), size=points), rng.random((points, 1))
    return of_vectors(corners[one[edge]] * share + corners[other[edge]] * (1 - share))


def at_the_ends(rng: np.random.Generator, resolution: int, points: int) -> Points:
    found = anywhere(rng, points)
    kind = rng.integers(4, size=points)
    found[kind == 0, 0] = rng.choice([-180.0, 180.0], (kind == 0).sum())
    found[kind == 1, 1] = rng.choice([-90.0, 90.0], (kind == 1).sum())
    found[kind == 2] = rng.choice([-180.0, -90.0, -0.0, 0.0, 90.0], ((kind == 2).sum(), 2)) / [1, 2]
    return found


def evenly(rng: np.random.Generator, resolution: int, points: int) -> Points:
    return anywhere(rng, points)


def in_a_city(rng: np.random.Generator, resolution: int, points: int) -> Points:
    centre, size = anywhere(rng, 1), 40 / np.sqrt(7.0) ** resolution
    return centre + rng.uniform(-size, size, (points, 2))


def kept(points: Points) -> Points:
    return np.column_stack([(points[:, 0] + 180) % 360 - 180, np.clip(points[:, 1], -90, 90)])


def same(points: Points, resolution: int) -> None:
    found = cells_at(points[:, 0], points[:, 1], resolution)
    assert found.dtype == np.int64
    assert found.tolist() == cells_of(points, resolution)


@pytest.mark.parametrize(
    "where",
    [
        evenly,
        in_a_city,
        on_borders,
        on_few_borders,
        at_pentagons,
        near_face_centres,
        on_face_borders,
        at_the_ends,
    ],
)
@given(seed=st.integers(0, 2**32 - 1), resolution=st.integers(0, 15), nudge=st.sampled_from(NUDGES))
def test_points_lie_in_the_cells_that_h3_says(where, seed: int, resolution: int, nudge: float) -> None:
    rng = np.random.default_rng(seed)
    points = where(rng, resolution, 60)
    same(kept(points + rng.choice([-nudge, 0.0, nudge], points.shape)), resolution)


@pytest.mark.parametrize("resolution", range(16))
def test_every_resolution_over_the_whole_sphere(resolution: int) -> None:
    same(anywhere(np.random.default_rng(resolution), 2000), resolution)


@pytest.mark.parametrize("resolution", [3, 8])
def test_blocks_and_what_threads_take_fit_together(resolution: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lattice, "BLOCK", 1000)
    monkeypatch.setattr(lattice, "SPAN", 3000)
    points = in_a_city(np.random.default_rng(5), resolution, 7 * lattice.SPAN + 17)
    same(kept(points), resolution)


@pytest.mark.parametrize("resolution", [0, 5, 9, 12, 15])
def test_points_on_borders_are_left_to_h3_and_others_are_not(resolution: int) -> None:
    rng = np.random.default_rng(3)
    codes = []
    for points in (on_borders(rng, resolution, 300), anywhere(rng, 3000)):
        sphere = lattice._on_sphere(*points.T)
        codes.append(lattice._codes(sphere, lattice._forms(resolution), MARGIN / lattice._unit(resolution)))
    assert (codes[0] == UNSURE).mean() > (0.9 if resolution > 2 else 0.3)
    assert (codes[1] == UNSURE).mean() < 0.005


@pytest.mark.parametrize("resolution", [5, 9, 15])
def test_the_margin_is_far_wider_than_what_two_computations_differ_by(resolution: int) -> None:
    """Nudged by a hundredth of the margin, a point on a border between lattice points is still left to H3."""
    rng = np.random.default_rng(11)
    points = on_borders(rng, resolution, 300) + np.degrees(MARGIN / 100) * rng.choice([-1, 1], (300, 2))
    codes = lattice._codes(
        lattice._on_sphere(*points.T), lattice._forms(resolution), MARGIN / lattice._unit(resolution)
    )
    assert (codes == UNSURE).mean() > 0.9


def test_no_points() -> None:
    assert cells_at(np.zeros(0), np.zeros(0), 9).shape == (0,)


@pytest.mark.filterwarnings("error")
def test_what_is_no_place_is_an_error_of_h3() -> None:
    with pytest.raises(H3BaseException):
        cells_at(np.array([0.0, 2.0]), np.array([1.0, np.nan]), 9)
