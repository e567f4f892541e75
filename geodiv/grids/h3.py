"""H3Grid: the hexagons of H3 at one resolution.

Keys are the 64-bit ids themselves (bit 63 is never set), ids their 15 hexadecimal characters. Neighbours come
from H3 disks, so a ring is a matter of the lattice, not of shared outlines.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import GridError
from .adjacency import among, checked_order
from .lattice import cells_at
from .protocol import NOWHERE, FloatArray, Geometries, IntArray, TextArray

CRS = "EPSG:4326"


@dataclass(frozen=True, slots=True)
class H3Grid:
    """H3 cells of one resolution.

    Parameters
    ----------
    resolution : int
        0 to 15.
    column : str, optional
        Column of the visits that holds H3 ids of this resolution; without it, longitude and latitude count.

    Examples
    --------
    >>> grid = H3Grid(8)
    >>> grid.ids(grid.locate(np.array([-73.9855]), np.array([40.758])))
    array(['882a100d67fffff'], dtype=object)
    """

    resolution: int
    column: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "resolution", checked_resolution(self.resolution))

    @property
    def kind(self) -> str:
        """``h3``."""
        return "h3"

    @property
    def crs(self) -> str:
        """``EPSG:4326``: longitude and latitude in degrees."""
        return CRS

    def locate(self, x: FloatArray, y: FloatArray) -> IntArray:
        """Key of the cell of each point: (points,) int64, never -1.

        Parameters
        ----------
        x, y : (points,) float64
            Longitude and latitude in degrees.
        """
        return cells_at(x, y, self.resolution)

    def parse(self, ids: TextArray) -> IntArray:
        """Keys of H3 ids: (ids,) int64, -1 where the text is not an id of this resolution.

        Accepted are 15 hexadecimal characters of either case, also after ``0`` or ``0x``, and the 64-bit id
        as a decimal number.
        """
        keys = parse_cells(ids)
        keys[resolution_of(keys) != self.resolution] = NOWHERE
        return keys

    def ids(self, keys: IntArray) -> TextArray:
        """Ids of keys: (keys,) object, 15 hexadecimal characters in lower case."""
        return format_cells(keys)

    def keys(self, ids: TextArray) -> IntArray:
        """Keys of ids that this grid wrote: (ids,) int64."""
        return np.fromiter((int(text, 16) for text in ids), dtype=np.int64, count=len(ids))

    def geometry(self, keys: IntArray) -> Geometries:
        """Outlines in EPSG:4326, as `outlines`: (keys,) object."""
        return outlines(keys)

    def neighbours(self, keys: IntArray, order: int, centres: IntArray | None = None) -> sparse.csr_array:
        """Which keys lie within `order` steps of which, as `disks`: (centres, cells) sparse of 0 and 1."""
        return disks(keys, order, centres)

    def area(self, keys: IntArray) -> FloatArray:
        """Areas on the sphere, as `areas`: (keys,) float64, m2."""
        return areas(keys)

    def describe(self) -> dict[str, Any]:
        """Kind, resolution, column and CRS."""
        return {"kind": self.kind, "resolution": self.resolution, "column": self.column, "crs": self.crs}


def checked_resolution(resolution: int) -> int:
    """An H3 resolution as an int of 0 to 15, or an error."""
    whole = isinstance(resolution, int | np.integer) and not isinstance(resolution, bool)
    if not whole or not 0 <= resolution <= 15:
        raise GridError(
            f"H3 resolution: expected a whole number from 0 to 15, got {resolution!r}."
            " Maps of cities mostly use 7 to 9."
        )
    return int(resolution)


def resolution_of(keys: IntArray) -> IntArray:
    """Resolution of H3 keys: (keys,) int64, 0 to 15; -1 for the key -1."""
    return np.where(keys == NOWHERE, -1, (keys >> 52) & 0xF)


def parse_cells(ids: TextArray) -> IntArray:
    """Keys of H3 ids of any resolution: (ids,) int64, -1 where the text is not the id of an H3 cell.

    Examples
    --------
    >>> parse_cells(np.array(["882A100D67FFFFF", "0x882a100d67fffff", "c-41", None], dtype=object))
    array([613229524246593535, 613229524246593535,                 -1,
                           -1])
    """
    return np.fromiter(map(_parse_cell, ids), dtype=np.int64, count=len(ids))


def format_cells(keys: IntArray) -> TextArray:
    """Ids of H3 keys: (keys,) object, 15 hexadecimal characters in lower case."""
    texts = np.empty(len(keys), dtype=object)
    texts[:] = [format(key, "015x") for key in np.asarray(keys).tolist()]
    return texts


def _parse_cell(text: str | None) -> int:
    from h3.api.basic_int import is_valid_cell

    if text is None:
        return NOWHERE
    text = text.strip()
    if not text.isascii() or not text.isalnum():
        return NOWHERE
    decimal = len(text) == 18 and text.isdigit()
    digits = text[2:] if text[:2] in ("0x", "0X") else text
    try:
        key = int(text) if decimal else int(digits, 16)
    except ValueError:
        return NOWHERE
    fits = decimal or len(digits) == 15 or (len(digits) == 16 and digits[0] == "0")
    return key if fits and is_valid_cell(key) else NOWHERE


def areas(keys: IntArray) -> FloatArray:
    """Areas of H3 cells on the sphere of H3 (radius 6371.007 km): (keys,) float64, m2."""
    from h3.api.basic_int import cell_area

    return np.fromiter(map(cell_area, keys.tolist(), repeat("m^2")), dtype=np.float64, count=len(keys))


def disks(keys: IntArray, order: int, centres: IntArray | None = None) -> sparse.csr_array:
    """Which H3 cells lie within `order` steps of which.

    Parameters
    ----------
    keys : (cells,) int64
        Distinct cells of one resolution, pentagons included.
    order : int
        Steps on the lattice, at least 0.
    centres : (centres,) int64, optional
        Positions in `keys` of the rows wanted; None for all.

    Returns
    -------
    (centres, cells) sparse float64 of 0 and 1
        Without self; a cell that has none of the others near keeps its empty row.
    """
    from h3.api.basic_int import grid_disk

    order = checked_order(order)
    centres = np.arange(len(keys)) if centres is None else np.asarray(centres, dtype=np.int64)
    lists = [grid_disk(cell, order) for cell in keys[centres].tolist()]
    sizes = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
    near = np.fromiter(chain.from_iterable(lists), dtype=np.int64, count=int(sizes.sum()))
    return among(keys, centres, np.repeat(np.arange(len(lists)), sizes), near)


def outlines(keys: IntArray) -> Geometries:
    """Outlines of H3 cells in longitude and latitude.

    A cell across 180 degrees is a MultiPolygon of its parts on either side. A cell that holds a pole is the
    strip between its vertices and the pole, all the way round. Edges are straight in degrees, as everywhere
    in GIS; H3's own are arcs, which differ visibly only near the poles and at resolutions 0 to 2.

    Parameters
    ----------
    keys : (cells,) int64

    Returns
    -------
    (cells,) object of Polygon or MultiPolygon
        Valid, within -180 to 180 and -90 to 90 degrees.
    """
    import shapely
    from h3.api.basic_int import cell_to_boundary

    rings = list(map(cell_to_boundary, keys.tolist()))
    sizes = np.fromiter(map(len, rings), dtype=np.int64, count=len(rings))
    numbers = chain.from_iterable(chain.from_iterable(rings))
    flat = np.fromiter(numbers, dtype=np.float64, count=2 * int(sizes.sum()))
    points = flat.reshape(-1, 2)[:, ::-1]
    shapes = np.empty(len(rings), dtype=object)
    if not len(rings):
        return shapes
    starts = np.cumsum(sizes) - sizes
    lon = points[:, 0]
    wide = np.maximum.reduceat(lon, starts) - np.minimum.reduceat(lon, starts) > 180
    ring = np.repeat(np.arange(len(rings)), sizes)
    plain = ~wide[ring]
    renumbered = np.cumsum(~wide) - 1
    shapes[~wide] = shapely.polygons(shapely.linearrings(points[plain], indices=renumbered[ring[plain]]))
    for i in np.flatnonzero(wide):
        shapes[i] = _split(points[starts[i] : starts[i] + sizes[i]])
    return shapes


def _split(points: FloatArray) -> Any:
    """The polygon of a ring that crosses 180 degrees or goes round a pole, in parts within -180 to 180."""
    import shapely

    lon, lat = points[:, 0], points[:, 1]
    steps = (np.diff(lon, append=lon[0]) + 180) % 360 - 180
    if round(steps.sum() / 360):
        return _around_pole(lon, lat)
    lon = lon[0] + np.cumsum(steps) - steps
    whole = shapely.Polygon(np.column_stack([lon, lat]))
    parts = []
    for east in (-360, 0, 360):
        clipped = shapely.intersection(whole, shapely.box(east - 180, -90, east + 180, 90))
        moved = shapely.transform(clipped, lambda points, east=east: points - np.array([east, 0]))
        parts += [part for part in shapely.get_parts(moved) if part.geom_type == "Polygon"]
    return shapely.union_all(parts)


def _around_pole(lon: FloatArray, lat: FloatArray) -> Any:
    """The polygon between a ring that goes round a pole, cut open at 180 degrees, and the pole."""
    import shapely

    start = int(np.abs(np.diff(lon, append=lon[0])).argmax()) + 1
    lon, lat = np.roll(lon, -start), np.roll(lat, -start)
    end = np.copysign(180, lon[-1])
    share = (end - lon[-1]) / (lon[0] + 2 * end - lon[-1])
    cut, pole = lat[-1] + share * (lat[0] - lat[-1]), np.copysign(90, lat[0])
    x, y = np.append(lon, [end, end, -end, -end]), np.append(lat, [cut, pole, pole, cut])
    whole = shapely.Polygon(np.column_stack([x, y]))
    return whole if shapely.is_valid(whole) else shapely.buffer(whole, 0)
