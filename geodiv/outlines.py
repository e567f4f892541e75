"""Outlines of zones for the web: longitude and latitude, rounded, simplified together, packed into short texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import geopandas as gpd
import numpy as np
import shapely
from numpy.typing import ArrayLike

from .arrays import IntArray
from .errors import UsageError

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
"""The digits of packed numbers: five bits each, the sixth says that another follows."""
MOST_VERTICES = 400_000
METRES_PER_DEGREE = 111_195.0


@dataclass(frozen=True, slots=True)
class Packed:
    """Outlines of zones as a map page carries them.

    Parameters
    ----------
    digits : int
        Decimals of a degree.
    xy : str
        Packed differences of longitude and latitude from vertex to vertex, in units of the last decimal, over
        all rings; rings are not closed.
    rings, polygons, zones : str
        Packed: vertices of each ring, rings of each polygon (the first is the outer one), polygons of each zone.
    """

    digits: int
    xy: str
    rings: str
    polygons: str
    zones: str


def packed(numbers: ArrayLike) -> str:
    """Whole numbers as one text: zigzag, then base 32 from the smallest digit, each with a mark when more follow.

    Parameters
    ----------
    numbers : (n,) int64

    Examples
    --------
    >>> packed([0, -1, 1, 15, 16, 1000])
    'ABCegBw-B'
    """
    signed = np.asarray(numbers, dtype=np.int64).ravel()
    if not len(signed):
        return ""
    left = ((signed << 1) ^ (signed >> 63)).astype(np.uint64)
    width = max(1, -(-int(left.max()).bit_length() // 5))
    digits = np.zeros((len(left), width), dtype=np.uint8)
    used = np.zeros((len(left), width), dtype=bool)
    for i in range(width):
        used[:, i] = (left > 0) | (i == 0)
        rest = left >> np.uint64(5)
        digits[:, i] = (left & np.uint64(31)) | np.where(rest > 0, np.uint64(32), np.uint64(0))
        left = rest
    return np.frombuffer(ALPHABET.encode(), dtype=np.uint8)[digits[used]].tobytes().decode()


def geographic(cells: gpd.GeoDataFrame) -> Any:
    """(zones,) outlines in longitude and latitude (EPSG:4326)."""
    if cells.crs is None:
        raise UsageError(
            "expected zones in a known CRS to draw a map of, got none. Release them again from visits "
            "with a CRS."
        )
    return cells.geometry.to_crs("EPSG:4326").to_numpy()


def packed_outlines(outlines: Any) -> Packed:
    """Outlines as a page carries them.

    Parameters
    ----------
    outlines : (zones,) object
        Polygons and MultiPolygons in degrees.

    Notes
    -----
    Outlines with more than `MOST_VERTICES` vertices in all are simplified as a coverage, so that neighbours
    keep their common border; small zones get more decimals.
    """
    outlines = _simplified(np.asarray(outlines, dtype=object))
    digits = _digits(outlines)
    polygons, zone = shapely.get_parts(outlines, return_index=True)
    rings, polygon = shapely.get_rings(polygons, return_index=True)
    xy, ring = shapely.get_coordinates(rings, return_index=True)
    last = np.append(ring[1:] != ring[:-1], True) if len(ring) else np.zeros(0, bool)
    points = np.round(xy[~last] * 10**digits).astype(np.int64)
    steps = np.diff(points, axis=0, prepend=np.zeros((1, 2), dtype=np.int64))
    return Packed(
        digits=digits,
        xy=packed(steps),
        rings=packed(np.bincount(ring[~last], minlength=len(rings))),
        polygons=packed(np.bincount(polygon, minlength=len(polygons))),
        zones=packed(np.bincount(zone, minlength=len(outlines))),
    )


def centre_longitude(outlines: Any) -> float:
    """The longitude that most zones are near to, also across 180 degrees; 0 without any."""
    points = shapely.get_coordinates(shapely.centroid(outlines))
    if not len(points):
        return 0.0
    angle = np.radians(points[:, 0])
    return round(float(np.degrees(np.arctan2(np.sin(angle).mean(), np.cos(angle).mean()))), 6)


def _digits(outlines: Any) -> int:
    """Decimals of a degree so that rounding is below about a two-hundredth of a usual zone."""
    if not len(outlines):
        return 5
    x0, _, x1, _ = shapely.bounds(outlines).T
    size = float(np.nanmedian(x1 - x0))
    return int(np.clip(np.ceil(-np.log10(max(size, 1e-9) / 200)), 5, 7))


def _simplified(outlines: Any) -> Any:
    count = shapely.get_num_coordinates(outlines)
    simplify = getattr(shapely, "coverage_simplify", shapely.simplify)
    tolerance = 5 / METRES_PER_DEGREE
    result, total = outlines, int(count.sum())
    while total > max(MOST_VERTICES, 5 * len(outlines)) and tolerance < 1:
        result = simplify(outlines, tolerance)
        before, total = total, int(shapely.get_num_coordinates(result).sum())
        tolerance *= 3
        if total == before and tolerance > 0.1:
            break
    return result


def unpacked(text: str) -> IntArray:
    """The numbers of a text that `packed` made.

    Examples
    --------
    >>> unpacked('ABCegBw-B').tolist()
    [0, -1, 1, 15, 16, 1000]
    """
    place = np.full(128, -1, dtype=np.int64)
    place[np.frombuffer(ALPHABET.encode(), dtype=np.uint8)] = np.arange(64)
    digits = place[np.frombuffer(text.encode(), dtype=np.uint8)]
    if not len(digits):
        return np.zeros(0, dtype=np.int64)
    ends = (digits & 32) == 0
    number = np.cumsum(np.append(0, ends[:-1]))
    first = np.flatnonzero(np.append(True, ends[:-1]))
    shift = 5 * (np.arange(len(digits)) - first[number])
    total = np.zeros(int(number[-1]) + 1, dtype=np.int64)
    np.add.at(total, number, (digits & 31) << shift)
    return (total >> 1) ^ -(total & 1)
