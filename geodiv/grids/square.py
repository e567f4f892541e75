"""SquareGrid: squares of a metric CRS, with the ids of Regulation (EU) 2018/1799.

Cells are half-open, ``[left, left + size) x [bottom, bottom + size)``, and start from the origin (0, 0) of
the CRS: they depend on neither the extent nor the order of the data.
"""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..errors import GridError
from .adjacency import checked_order
from .crs import crs_name, read_crs
from .protocol import NOWHERE, FloatArray, Geometries, IntArray, TextArray

if TYPE_CHECKING:
    from pyproj import CRS

LIMIT = 1 << 30
"""Squares are numbered from -LIMIT to LIMIT - 1 in each direction, so that a key fits 63 bits."""

DECIMALS = 6
"""Most decimals of a size: edges then are the floating-point numbers nearest to their decimal places."""

EARTH = 40_075_017
"""Metres around the equator: a larger square would be no square."""


@dataclass(frozen=True, slots=True)
class SquareGrid:
    """Squares of one size in a projected CRS whose unit is the metre.

    Parameters
    ----------
    size : float
        Side in metres, above 0, at most 6 decimals.
    crs : str
        Projected CRS in metres. EPSG:3857 and its like are accepted with a warning: their metres are not
        metres on the ground. Geographic CRS, and those in feet, are refused.

    Notes
    -----
    An id is ``CRS`` + EPSG code + ``RES`` + size + ``mN`` + northing + ``E`` + easting of the lower left
    corner, in exact decimals: ``CRS3035RES500mN2599500E4695000``. South and west of the origin they carry a
    sign (``N-500E-1000``), and a size may have decimals (``RES0.1mN0.3E-0.2``). A CRS of another registry is
    written with its name (``CRSESRI102001RES...``), one of none as ``CRScustom``. x is the easting, y the
    northing.

    Examples
    --------
    >>> grid = SquareGrid(500, "EPSG:3035")
    >>> grid.ids(grid.locate(np.array([4695000.0, 4695499.9]), np.array([2599500.0, 2600000.0])))
    array(['CRS3035RES500mN2599500E4695000', 'CRS3035RES500mN2600000E4695000'],
          dtype=object)
    """

    size: float
    crs: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", _checked_size(self.size))
        object.__setattr__(self, "crs", _checked_crs(self.crs))

    @property
    def kind(self) -> str:
        """``square``."""
        return "square"

    @property
    def column(self) -> None:
        """None: visits are located by their coordinates."""
        return None

    def locate(self, x: FloatArray, y: FloatArray) -> IntArray:
        """Key of the square that holds each point: (points,) int64, never -1.

        Parameters
        ----------
        x, y : (points,) float64
            Easting and northing in metres.
        """
        return _pack(self._index(x), self._index(y))

    def parse(self, ids: TextArray) -> IntArray:
        """Keys of ids as this grid writes them: (ids,) int64, -1 where the text is not one of them."""
        pattern = re.compile(re.escape(self._prefix) + r"N(-?\d+(?:\.\d+)?)E(-?\d+(?:\.\d+)?)")
        matches = [None if text is None else pattern.fullmatch(text.strip()) for text in ids]
        corners = [None if match is None else self._corner(match[2], match[1]) for match in matches]
        known = np.fromiter((corner is not None for corner in corners), dtype=bool, count=len(ids))
        index = np.array([corner for corner in corners if corner is not None], dtype=np.int64).reshape(-1, 2)
        keys = np.full(len(ids), NOWHERE, dtype=np.int64)
        keys[known] = _pack(index[:, 0], index[:, 1])
        return keys

    def ids(self, keys: IntArray) -> TextArray:
        """Ids of keys: (keys,) object of str."""
        texts = np.empty(len(keys), dtype=object)
        column, row = (self._decimals(index) for index in _unpack(keys))
        texts[:] = [f"{self._prefix}N{n}E{e}" for e, n in zip(column, row, strict=True)]
        return texts

    def keys(self, ids: TextArray) -> IntArray:
        """Keys of ids that this grid wrote: (ids,) int64."""
        return self.parse(ids)

    def geometry(self, keys: IntArray) -> Geometries:
        """The squares: (keys,) object of Polygon in `crs`."""
        import shapely

        column, row = _unpack(keys)
        left, bottom, right, top = (self._edge(index) for index in (column, row, column + 1, row + 1))
        return np.asarray(shapely.box(left, bottom, right, top), dtype=object)

    def neighbours(self, keys: IntArray, order: int, centres: IntArray | None = None) -> sparse.csr_array:
        """Which squares lie within `order` steps, corners included: (centres, cells) sparse of 0 and 1.

        The disk of order r is the (2r + 1) x (2r + 1) squares around the centre.
        """
        order = checked_order(order)
        centres = np.arange(len(keys)) if centres is None else np.asarray(centres, dtype=np.int64)
        column, row = _unpack(keys)
        if not len(keys) or not len(centres):
            return sparse.csr_array((len(centres), len(keys)), dtype=np.float64)
        sorting = np.argsort(keys, kind="stable")
        ascending = np.asarray(keys)[sorting]
        reach = min(order, int(row.max() - row.min()))
        rows = row[centres, None] + np.arange(-reach, reach + 1)
        west = _pack(np.clip(column[centres] - order, column.min(), None)[:, None], rows)
        east = _pack(np.clip(column[centres] + order, None, column.max())[:, None], rows)
        start = np.searchsorted(ascending, west, side="left")
        length = np.searchsorted(ascending, east, side="right") - start
        near = length.sum(axis=1)
        start, length = start.ravel(), length.ravel()
        cell = sorting[np.arange(length.sum()) + np.repeat(start - np.cumsum(length) + length, length)]
        cell = cell[cell != np.repeat(centres, near)]
        indptr = np.concatenate([[0], np.cumsum(near - 1)])
        matrix = sparse.csr_array((np.ones(len(cell)), cell, indptr), shape=(len(centres), len(keys)))
        matrix.sort_indices()
        return matrix

    def area(self, keys: IntArray) -> FloatArray:
        """Areas in the plane of the CRS: (keys,) float64, m2."""
        return np.full(len(keys), float(self.size) ** 2)

    def describe(self) -> dict[str, Any]:
        """Kind, size in metres and CRS."""
        return {"kind": self.kind, "size": self.size, "crs": self.crs}

    @property
    def _ratio(self) -> tuple[int, int]:
        """The size as numerator and denominator, exact in decimals: 0.1 is 1 / 10."""
        return Decimal(repr(self.size)).as_integer_ratio()

    @property
    def _prefix(self) -> str:
        named = re.fullmatch(r"(\w+):(\w+)", self.crs)
        name = (named[1] + named[2]).removeprefix("EPSG") if named else "custom"
        return f"CRS{name}RES{Decimal(repr(self.size)):f}m"

    def _edge(self, index: IntArray) -> FloatArray:
        """Coordinate of the lower edge of squares: the float64 nearest to index times size in decimals."""
        numerator, denominator = self._ratio
        return index * float(numerator) / denominator

    def _index(self, coordinate: FloatArray) -> IntArray:
        """Number of the square along one axis: ``edge(number) <= coordinate < edge(number + 1)``."""
        coordinate = np.asarray(coordinate, dtype=np.float64)
        guess = np.floor(coordinate / self.size)
        if np.abs(guess).max(initial=0) >= LIMIT - 1:
            raise GridError(
                f"Squares of {self.size} m: a coordinate lies more than {LIMIT} squares from the origin of"
                f" {self.crs}. Take larger squares, or check the CRS of the visits."
            )
        index = guess.astype(np.int64)
        index -= coordinate < self._edge(index)
        index += coordinate >= self._edge(index + 1)
        return index

    def _decimals(self, index: IntArray) -> list[str]:
        """Coordinates of lower edges as exact decimals."""
        numerator, denominator = self._ratio
        if denominator == 1:
            return [str(i) for i in (index * numerator).tolist()]
        return [_plain(Decimal(i * numerator) / denominator) for i in index.tolist()]

    def _corner(self, easting: str, northing: str) -> tuple[int, int] | None:
        """Numbers of the square with this lower left corner; None when no square has it."""
        size = Decimal(repr(self.size))
        column, row = (Decimal(text) / size for text in (easting, northing))
        inside = max(abs(column), abs(row)) < LIMIT
        return (int(column), int(row)) if inside and column == int(column) and row == int(row) else None


def _pack(column: IntArray, row: IntArray) -> IntArray:
    """Key of squares: row in the upper half, column in the lower one."""
    return ((row + LIMIT) << 32) | (column + LIMIT)


def _unpack(keys: IntArray) -> tuple[IntArray, IntArray]:
    """Numbers (column, row) of squares."""
    keys = np.asarray(keys, dtype=np.int64)
    return (keys & 0xFFFFFFFF) - LIMIT, (keys >> 32) - LIMIT


def _plain(number: Decimal) -> str:
    """A decimal without exponent, trailing zeros or a negative zero."""
    return f"{number.normalize() + 0:f}"


def _checked_size(size: float) -> float:
    """A size as an int when it is whole, otherwise a float, or an error."""
    number = isinstance(size, int | float | np.integer | np.floating) and not isinstance(size, bool)
    if not number or not 0 < size < math.inf:
        raise GridError(f"Square size: expected a number of metres above 0, such as 500, got {size!r}.")
    if size > EARTH:
        raise GridError(f"Square size: expected at most {EARTH:,} metres, which is once around the Earth.")
    if Decimal(repr(float(size))) % Decimal(1).scaleb(-DECIMALS):
        raise GridError(
            f"Square size: expected at most {DECIMALS} decimals, as ids hold them all, got {size!r}."
        )
    return int(size) if size == int(size) else float(size)


def _checked_crs(crs: str) -> str:
    """The name of a projected CRS in metres, or an error; a warning when they stretch with latitude."""
    system = read_crs(crs)
    name = crs_name(system)
    axis = system.axis_info[0]
    if not system.is_projected or not math.isclose(
        system.axis_info[0].unit_conversion_factor, 1, rel_tol=1e-12
    ):
        kind = "projected" if system.is_projected else "not projected"
        raise GridError(
            f"Squares need a projected CRS in metres, got {name} ({system.name}), which is {kind} and has the"
            f" unit {axis.unit_name}.{_suggested(system)}"
        )
    method = system.coordinate_operation.method_name if system.coordinate_operation else ""
    if "Mercator" in method and "Transverse" not in method and "Oblique" not in method:
        warnings.warn(
            f"{name} ({system.name}) stretches lengths away from the equator: squares cover less ground the"
            f" farther north or south they are, and their areas come out too large.{_suggested(system)}",
            UserWarning,
            stacklevel=4,
        )
    return name


def _suggested(system: CRS) -> str:
    """The UTM zone of a CRS made for a small area; otherwise the kind of CRS to look for."""
    area = system.area_of_use
    if area is None or not 0 < area.east - area.west < 12:
        return " Take one made for the area of the visits, such as EPSG:3035 for Europe, or a UTM zone."
    zone = math.floor(((area.west + area.east) / 2 + 180) / 6) + 1
    code = (32600 if area.south + area.north >= 0 else 32700) + zone
    return f" For this area EPSG:{code} (UTM zone {zone}) would do."
