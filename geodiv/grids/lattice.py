"""The lattice of H3: the cells of many points at once, H3 itself asked for one point of each cell.

H3 takes the face of its icosahedron that is nearest to a point, projects the point onto it from the centre of the
earth, and takes the nearest point of that face's hexagonal lattice; the cell depends on these two and nothing else
of the point. Both are computed here for arrays, and H3 names one point of every (face, lattice point) that occurs.
Where rounding could decide otherwise (see `MARGIN`), each point is left to H3, so the cells are H3's own.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import combinations, repeat

import numpy as np

from .protocol import FloatArray, IntArray

MARGIN = 1e-11
"""Radians from a border, 0.06 mm on the earth, within which H3 decides each point. Rounding is 1000 times smaller.

It grows near the centre of a face (below 0.01 radians with the inverse of the distance from it), where H3 loses
digits in an arc cosine.
"""
BLOCK = 8192
"""Points at a time, so that they stay in the processor's cache."""
SPAN = 32 * BLOCK
"""Points that one thread takes at a time."""
UNSURE = -1
SPREAD = 1 << 25
"""More than the lattice points along a face at the finest resolution."""


def cells_at(lon: FloatArray, lat: FloatArray, resolution: int) -> IntArray:
    """H3 cells of points, the same as `h3.latlng_to_cell` of each.

    Parameters
    ----------
    lon, lat : (points,) float64
        Degrees, finite.
    resolution : int
        0 to 15.

    Returns
    -------
    (points,) int64
        The 64-bit ids.

    Examples
    --------
    >>> [hex(cell) for cell in cells_at(np.array([-73.9855, 2.35]), np.array([40.758, 48.85]), 8)]
    ['0x882a100d67fffff', '0x881fb46625fffff']
    """
    import pandas as pd

    forms, unit = _forms(resolution), _unit(resolution)
    codes = np.empty(len(lon), dtype=np.int64)

    def locate(start: int) -> None:
        for at in range(start, min(start + SPAN, len(lon)), BLOCK):
            block = slice(at, at + BLOCK)
            codes[block] = _codes(_on_sphere(lon[block], lat[block]), forms, MARGIN / unit)

    with ThreadPoolExecutor(processors()) as threads:
        list(threads.map(locate, range(0, len(lon), SPAN)))
    group, distinct = pd.factorize(codes)
    first = np.empty(len(distinct), dtype=np.int64)
    first[group[::-1]] = np.arange(len(codes))[::-1]
    cells = _asked(lon[first], lat[first], resolution)[group]
    unsure = np.flatnonzero(codes == UNSURE)
    cells[unsure] = _asked(lon[unsure], lat[unsure], resolution)
    return cells


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _asked(lon: FloatArray, lat: FloatArray, resolution: int) -> IntArray:
    """H3's own answer for each point."""
    from h3.api.basic_int import latlng_to_cell

    cells = map(latlng_to_cell, lat.tolist(), lon.tolist(), repeat(resolution))
    return np.fromiter(cells, dtype=np.int64, count=len(lon))


def _on_sphere(lon: FloatArray, lat: FloatArray) -> FloatArray:
    """(3, points) unit vectors."""
    lon, lat = np.radians(lon), np.radians(lat)
    points = np.empty((3, len(lon)))
    flat = np.cos(lat)
    np.multiply(np.cos(lon), flat, out=points[0])
    np.multiply(np.sin(lon), flat, out=points[1])
    np.sin(lat, out=points[2])
    return points


def _codes(points: FloatArray, forms: FloatArray, margin: float) -> IntArray:
    """A code for the face and lattice point of each of (3, points), `UNSURE` too near to a border; face by face."""
    codes = np.full(points.shape[1], UNSURE, dtype=np.int64)
    left = np.arange(points.shape[1])
    while len(left):
        face = int((forms[:, 3] @ points[:, left[0]]).argmax())
        values = forms[face] @ (points if len(left) == len(codes) else points[:, left])
        nearer = values[:3].min(axis=0)
        inside = nearer > MARGIN
        some = slice(None) if inside.all() else inside
        codes[left[some]] = _lattice_codes(values[3:, some], face, margin)
        left = left[nearer < -MARGIN]
    return codes


def _lattice_codes(values: FloatArray, face: int, margin: float) -> IntArray:
    """A code for the lattice point nearest to each point of one face; `values` are the last three of `_forms`."""
    near, x, y = values
    x, y = x / near, y / near
    z = -(x + y)
    i, j, k = np.rint(x), np.rint(y), np.rint(z)
    x -= i
    y -= j
    z -= k
    _balance((i, j, k), (x, y, z))
    border = 1 - np.maximum(np.maximum(np.abs(x - y), np.abs(y - z)), np.abs(z - x))
    away = np.sqrt(np.maximum(1 - near * near, 1e-16))
    codes = i.astype(np.int64)
    codes += SPREAD * (2 * face + 1)
    codes *= 2 * SPREAD
    codes += j.astype(np.int64)
    codes[border <= margin * (1 + 0.01 / away)] = UNSURE
    return codes


def _balance(whole: tuple[FloatArray, ...], rest: tuple[FloatArray, ...]) -> None:
    """Where three rounded coordinates do not sum to 0, the one that was rounded furthest gives way."""
    excess = whole[0] + whole[1] + whole[2]
    at = np.flatnonzero(excess)
    furthest = np.abs([part[at] for part in rest]).argmax(axis=0)
    for axis in range(3):
        moved = at[furthest == axis]
        whole[axis][moved] -= excess[moved]
        rest[axis][moved] += excess[moved]


def _unit(resolution: int) -> float:
    """Least distance of two lattice points in radians, near the centre of a face."""
    return float(_faces()[2] / np.sqrt(7.0) ** resolution)


@lru_cache(maxsize=16)
def _forms(resolution: int) -> FloatArray:
    """(20, 6, 3) linear forms of a point on the sphere, for each face of the icosahedron.

    The first three: how much nearer its centre is than those of the three faces beside it. The fourth: cosine of the
    angle from the centre. The last two, over the fourth: coordinates of the projected point in the face's lattice, the
    first two of three that sum to 0 and in which neighbours differ by (1, -1, 0) in some order.
    """
    centres, corners, unit = _faces()
    # at odd resolutions the lattice is turned by the angle between (1, 0) and (5, sqrt 3)
    turn = np.arctan2(np.sqrt(3.0), 5.0) * (resolution % 2)
    forms = np.empty((20, 6, 3))
    for face, (centre, corner) in enumerate(zip(centres, corners, strict=True)):
        beside = np.argsort(centres @ centre)[-4:-1]
        ahead = corner / (corner @ centre) - centre
        ahead /= np.linalg.norm(ahead)
        left = np.cross(centre, ahead)
        ahead, left = np.cos(turn) * ahead + np.sin(turn) * left, np.cos(turn) * left - np.sin(turn) * ahead
        forms[face, :3] = centre - centres[beside]
        forms[face, 3] = centre
        forms[face, 4] = ahead - left / np.sqrt(3.0)
        forms[face, 5] = 2 * left / np.sqrt(3.0)
        forms[face, 4:] *= np.sqrt(7.0) ** resolution / unit
    return forms


@lru_cache(maxsize=1)
def _faces() -> tuple[FloatArray, FloatArray, float]:
    """(20, 3) centres of the faces, (20, 3) a corner of each, and the distance of lattice points at resolution 0.

    The corners are H3's pentagons: lattice points of resolution 0, two steps from the centres of their faces.
    """
    from h3.api.basic_int import cell_to_latlng, get_pentagons

    lat, lon = np.array([cell_to_latlng(cell) for cell in sorted(get_pentagons(0))]).T
    corners = _on_sphere(lon, lat).T
    touching = corners @ corners.T > 0.3
    faces = [
        (a, b, c)
        for a, b, c in combinations(range(12), 3)
        if touching[a, b] and touching[b, c] and touching[a, c]
    ]
    centres = np.array([corners[list(face)].sum(axis=0) for face in faces])
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    first = corners[[face[0] for face in faces]]
    cosine = (centres * first).sum(axis=1)[0]
    return centres, first, float(np.sqrt(1 / cosine**2 - 1) / 2)
