"""Places: where a source keeps the places of its visits, and the grid's key of each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyproj import CRS

from ..errors import SourceError, listed
from ..grids.protocol import Grid
from ..sources import Described, need
from .coordinates import (
    WGS84,
    BoolArray,
    FloatArray,
    Points,
    crs_name,
    crs_of,
    numbers,
    on_earth,
    points,
    reproject,
    same_crs,
)
from .faults import Faults
from .spec import VisitSpec
from .textcolumn import TextColumn

LON_NAMES = ("lon", "lng", "longitude", "long", "x")
LAT_NAMES = ("lat", "latitude", "y")
COMMAS = "with decimal commas: write 16.3 for 16,3"
SWAPPED = "lon and lat look swapped"
METRES = "the CRS is said to be {}, but these look like metres of a projected one"


@dataclass(frozen=True, slots=True)
class CellColumn:
    """The cell ids stand in a column."""

    column: str
    grid: Grid
    remarks: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read."""
        return (self.column,)

    def keys(self, table: pa.Table, faults: Faults) -> tuple[NDArray[Any], int]:
        """Keys of the rows without fault, (kept,), and 0."""
        ids = TextColumn.of(table.column(self.column), self.column)
        faults.mark("no cell id", ids.blank())
        parsed = self.grid.parse(ids.texts.to_numpy(zero_copy_only=False))
        faults.mark("not a cell id", np.append(_nowhere(parsed), False)[ids.codes])
        kept = faults.kept
        return parsed[ids.codes if kept is None else ids.codes[kept]], 0


@dataclass(frozen=True, slots=True)
class Coordinates:
    """The coordinates stand in two columns, or in a geometry."""

    columns: tuple[str, ...]
    crs: CRS
    grid: Grid
    use: Points = "only"
    remarks: tuple[str, ...] = ()

    def keys(self, table: pa.Table, faults: Faults) -> tuple[NDArray[Any], int]:
        """Keys of the rows without fault, (kept,), and how many of these rows lie at (0, 0)."""
        x, y = self._read(table, faults)
        lon, lat = reproject(x, y, self.crs, WGS84)
        to = CRS.from_user_input(self.grid.crs)
        gx, gy, good = lon, lat, on_earth(lon, lat)
        if not same_crs(to, WGS84):
            gx, gy = reproject(x, y, self.crs, to)
            good &= np.isfinite(gx) & np.isfinite(gy)
        strange = faults.mark("out of range", ~good)
        if strange is not None:
            self._explain(x[strange], y[strange], faults)
        origin = (x == 0) & (y == 0)
        if (kept := faults.kept) is not None:
            gx, gy, origin = gx[kept], gy[kept], origin[kept]
        key = self.grid.locate(gx, gy)
        if (lost := _nowhere(key)).any():
            faults.mark_kept("outside the zones", lost)
            key, origin = key[~lost], origin[~lost]
        return key, int(origin.sum())

    def _read(self, table: pa.Table, faults: Faults) -> tuple[FloatArray, FloatArray]:
        if len(self.columns) == 1:
            x, y = points(table.column(self.columns[0]), self.columns[0], self.use)
            faults.mark("no coordinate", np.isnan(x) | np.isnan(y))
            return x, y
        lon, lat = (numbers(table.column(column), column) for column in self.columns)
        faults.mark("no coordinate", lon.nothing | lat.nothing)
        wrong = faults.mark("not a number", lon.wrong | lat.wrong)
        if wrong is not None:
            first = int(np.argmax(wrong))
            commas = int(np.count_nonzero(wrong & (lon.commas | lat.commas)))
            column = self.columns[0 if (wrong & lon.wrong)[first] else 1]
            faults.explain("not a number", f"such as in column {column!r}", {COMMAS: commas})
        return lon.values, lat.values

    def _explain(self, x: FloatArray, y: FloatArray, faults: Faults) -> None:
        """Say what coordinates out of range may be. Numbers are rounded, since they are somebody's."""
        claim = crs_name(self.crs)
        names = self.columns if len(self.columns) == 2 else ("x", "y")
        if not self.crs.is_geographic:
            faults.explain("out of range", f"{names[0]} and {names[1]} do not fit {claim}", {})
            return
        name, value, limit = (names[0], x[0], 180) if abs(x[0]) > 180 else (names[1], y[0], 90)
        example = f"such as {name} = {float(f'{value:.3g}'):.15g}, expected -{limit} to {limit}"
        swapped = (np.abs(x) <= 90) & (np.abs(y) <= 180)
        metres = (np.abs(x) > 360) | (np.abs(y) > 360)
        faults.explain(
            "out of range",
            example,
            {
                SWAPPED: int(np.count_nonzero(swapped)),
                METRES.format(claim): int(np.count_nonzero(metres)),
            },
        )


def place_of(source: Described, spec: VisitSpec) -> CellColumn | Coordinates:
    """Where a source keeps the places of its visits.

    Raises
    ------
    SourceError
        No such column, no geometry and no usual names, or a geometry without CRS.
    """
    if spec.grid.column is not None:
        return CellColumn(need(source, spec.grid.column, "the cell id"), spec.grid)
    if spec.lon is not None and spec.lat is not None:
        columns = need(source, spec.lon, "lon"), need(source, spec.lat, "lat")
        return Coordinates(columns, crs_of(spec.crs or "EPSG:4326"), spec.grid)
    if source.geometry is not None:
        return _geometry(source, source.geometry, spec)
    lon, lat = _usual(source, LON_NAMES), _usual(source, LAT_NAMES)
    if lon is None or lat is None:
        raise SourceError(
            f"expected a geometry, or columns lon and lat, in {source.name}, got the columns: "
            f"{listed(source.columns, 30) or 'none'}. Say which ones they are with lon and lat."
        )
    return Coordinates((lon, lat), crs_of(spec.crs or "EPSG:4326"), spec.grid)


def _geometry(source: Described, geometry: str, spec: VisitSpec) -> Coordinates:
    need(source, geometry, "the geometry")
    crs = crs_of(spec.crs) if spec.crs is not None else source.crs
    if crs is None:
        raise SourceError(
            f"expected a CRS in {source.name}, got none. Say which one its coordinates are in, such as "
            'crs = "EPSG:3035".'
        )
    remarks: tuple[str, ...] = ()
    if source.crs is not None and not same_crs(crs, source.crs):
        remarks = (f"the visits declare {crs_name(source.crs)}; they were read as {crs_name(crs)}, as told",)
    return Coordinates((geometry,), crs, spec.grid, spec.points, remarks)


def _usual(source: Described, names: tuple[str, ...]) -> str | None:
    for name in names:
        found = [column for column in source.columns if column.strip().lower() == name]
        if len(found) > 1:
            raise SourceError(
                f"expected one column {name!r} in {source.name}, got {listed(found)}. "
                "Say which one with lon and lat."
            )
        if found:
            return need(source, found[0], "a coordinate")
    return None


def _nowhere(keys: NDArray[Any]) -> BoolArray:
    """(keys,) bool: no cell."""
    if keys.dtype == object:
        return np.fromiter((key is None for key in keys), dtype=bool, count=len(keys))
    return np.asarray(keys < 0)
