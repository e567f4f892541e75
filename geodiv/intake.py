"""Intake: any source of visits as batches of (person, place, values), and the tally of the rows that are not counted.

A visit without a person, or without a usable place, is never counted and never silent. A missing value of an
attribute is no such fault: it is the value ``(missing)``.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyproj import CRS

from .attribute import Attribute
from .coordinates import (
    WGS84,
    FloatArray,
    Numbers,
    Points,
    crs_name,
    crs_of,
    numbers,
    on_earth,
    points,
    reproject,
    same_crs,
)
from .errors import SourceError, UsageError, WriteError, listed
from .grids.protocol import Grid
from .sources import Source, need, open_source
from .sources.source import Fingerprint
from .textcolumn import TextColumn

BoolArray = NDArray[np.bool_]
REASONS = (
    "no person",
    "no coordinate",
    "not a number",
    "out of range",
    "no cell id",
    "not a cell id",
    "outside the zones",
)
"""Why a row is not counted; a row with several faults is tallied under the first of them."""
FIRST = 5
"""Row numbers kept for each reason."""
LON_NAMES = ("lon", "lng", "longitude", "long", "x")
LAT_NAMES = ("lat", "latitude", "y")


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitSpec:
    """Which columns of a source are what.

    Parameters
    ----------
    person : str
        Column of the person; its values are compared as text.
    grid : Grid
        Where the cells are; its ``column``, if it has one, holds the cell ids and no coordinate is read.
    attributes : tuple of Attribute
    lon, lat : str, optional
        Columns of the coordinates, x and y in `crs`. Without them the geometry counts, else the usual names
        (lon, lng, longitude, long, x; lat, latitude, y) in any case.
    crs : str, optional
        CRS of the coordinates: EPSG:4326 for columns, what the layer declares for geometries. Given, it counts
        instead of what the layer declares.
    on_bad_rows : {"error", "skip"}
        Whether `check` raises when rows cannot be counted.
    layer : str, optional
        Layer of a file that has several.
    rejects : Path, optional
        A CSV file to write, with a row number and a reason for each row that is not counted. It implies "skip".
    points : {"only", "representative"}
        Whether geometries other than points are an error, or stand for a point inside them.
    """

    person: str
    grid: Grid
    attributes: tuple[Attribute, ...] = ()
    lon: str | None = None
    lat: str | None = None
    crs: str | None = None
    on_bad_rows: Literal["error", "skip"] = "error"
    layer: str | None = None
    rejects: Path | None = None
    points: Points = "only"

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        if self.on_bad_rows not in ("error", "skip"):
            raise UsageError(f"on_bad_rows: expected 'error' or 'skip', got {self.on_bad_rows!r}.")
        if self.points not in ("only", "representative"):
            raise UsageError(f"points: expected 'only' or 'representative', got {self.points!r}.")
        if (self.lon is None) != (self.lat is None):
            raise UsageError(f"expected lon and lat together, got lon={self.lon!r} and lat={self.lat!r}.")
        taken = {self.person: "person"} | ({self.grid.column: "cell id"} if self.grid.column else {})
        for attribute in self.attributes:
            if attribute.column in taken:
                raise UsageError(
                    f"attribute {attribute.column!r}: this column is the {taken[attribute.column]} already. "
                    "Name each column once."
                )
            taken[attribute.column] = "attribute"
        if self.grid.column == self.person:
            raise UsageError(f"column {self.person!r}: it cannot be both the person and the cell id.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """The tally of what was read: ``rows == counted + sum(dropped.values())``, always. Add them up with ``+``.

    Parameters
    ----------
    rows, counted : int
        Rows read, and rows that count.
    dropped : mapping of str to int
        Rows that do not, by reason (`REASONS`); no reason stands with 0.
    first_rows : mapping of str to tuple of int
        The first row numbers of each reason, 1-based; line numbers for a CSV file (the header is line 1).
    digest : str
        sha256 of the input, in hexadecimal: of the bytes of a file, or of the columns read of a frame. Known with
        the last batch, empty before.
    hints : mapping of str to str
        For a reason, what may be the matter.
    at_origin : int
        Counted rows at the coordinates (0, 0), which often stand for none.
    remarks : tuple of str
        What else a reader should know.
    """

    rows: int
    counted: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    first_rows: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    digest: str = ""
    hints: Mapping[str, str] = field(default_factory=dict)
    at_origin: int = 0
    remarks: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What looks suspicious, although it was counted, in words."""
        origin = (f"{_rows(self.at_origin)} at the coordinates (0, 0)",) if self.at_origin else ()
        return (*self.remarks, *origin)

    def __add__(self, other: Intake) -> Intake:
        """The tally of two batches, this one the earlier."""
        reasons = [r for r in REASONS if r in self.dropped or r in other.dropped]
        first = {r: (*self.first_rows.get(r, ()), *other.first_rows.get(r, ()))[:FIRST] for r in reasons}
        return Intake(
            rows=self.rows + other.rows,
            counted=self.counted + other.counted,
            dropped={r: self.dropped.get(r, 0) + other.dropped.get(r, 0) for r in reasons},
            first_rows=first,
            digest=other.digest or self.digest,
            hints={**other.hints, **self.hints},
            at_origin=self.at_origin + other.at_origin,
            remarks=tuple(dict.fromkeys((*self.remarks, *other.remarks))),
        )


@dataclass(frozen=True, slots=True, eq=False)
class VisitBatch:
    """Rows that count, and the tally of all rows they came from.

    Parameters
    ----------
    person : (counted,) DictionaryArray of text
        No nulls; the dictionary holds the persons that occur, and no others.
    key : (counted,) int64, or object of str for a column grid
        The grid's keys, all of them cells.
    values : tuple over attributes of (counted,) DictionaryArray of text
        As they stand in the source, ``(missing)`` for null, None, NaN and NA; markers are not yet recognised.
    intake : Intake
    """

    person: pa.DictionaryArray
    key: NDArray[Any]
    values: tuple[pa.DictionaryArray, ...]
    intake: Intake


def batches(source: Any, spec: VisitSpec, *, rows_per_batch: int | None) -> Iterator[VisitBatch]:
    """The visits of any source, in order, in batches; at least one, which may be empty.

    Parameters
    ----------
    source : path, glob, folder, list of paths, ``"-"``, frame or `Source`
        See `open_source`.
    spec : VisitSpec
    rows_per_batch : int or None
        Rows read at a time; None reads all of them at once.

    Yields
    ------
    VisitBatch
        Rows that cannot be counted are gone and tallied in its ``intake``; the sum of these is the whole tally.

    Raises
    ------
    SourceError
        The source cannot be read, or lacks a column or a CRS.
    """
    opened = open_source(source, spec.layer)
    reader = _Reader.of(opened, spec)
    with _Rejects(spec.rejects) as rejects:
        fingerprint = None if (digest := opened.digest()) else Fingerprint()
        held: VisitBatch | None = None
        row = 0
        for table in opened.batches(reader.columns, rows_per_batch):
            if held is not None:
                yield held
            if fingerprint is not None:
                fingerprint.update(table)
            held = reader.batch(table, row, rejects)
            row += table.num_rows
            del table
        assert held is not None
        digest = digest or (fingerprint.hexdigest() if fingerprint else "")
        last = replace(held, intake=replace(held.intake, digest=digest))
    del held
    yield last


def check(intake: Intake, spec: VisitSpec) -> None:
    """Raise when rows were lost and the spec does not allow it, or when the coordinates are not what they claim.

    Raises
    ------
    SourceError
        Names each reason, its number of rows and the first of them, and what to do.
    """
    if not intake.dropped:
        return
    strange = intake.dropped.get("out of range", 0)
    skip = spec.on_bad_rows == "skip" or spec.rejects is not None
    if skip and 2 * strange <= intake.rows:
        return
    lines = "; ".join(_reason(intake, reason) for reason in intake.dropped)
    do = 'Mend the visits, or set on_bad_rows = "skip" or --rejects FILE to go on without these rows.'
    if 2 * strange > intake.rows:
        do = "Most rows are out of range: name the right crs, or the right columns for lon and lat."
    raise SourceError(f"expected a person and a place in each of {intake.rows} rows, got: {lines}. {do}")


def _reason(intake: Intake, reason: str) -> str:
    hint = f" ({intake.hints[reason]})" if reason in intake.hints else ""
    rows = ", ".join(str(row) for row in intake.first_rows[reason])
    number = intake.dropped[reason]
    where = f"row{'s' * (number > 1)} {rows}" + (", ..." if number > len(intake.first_rows[reason]) else "")
    return f"{reason}{hint} in {_rows(number)}: {where}"


def _rows(number: int) -> str:
    return f"{number} row{'s' * (number != 1)}"


@dataclass(frozen=True, slots=True)
class _Place:
    """How rows get their place: columns read, and what the coordinates are."""

    columns: tuple[str, ...]
    geometry: bool = False
    crs: CRS = WGS84
    labels: tuple[str, str] = ("x", "y")
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Reader:
    """Turns tables of one source into batches."""

    source: Source
    spec: VisitSpec
    place: _Place

    @classmethod
    def of(cls, source: Source, spec: VisitSpec) -> _Reader:
        need(source, spec.person, "the person")
        for attribute in spec.attributes:
            need(source, attribute.column, "an attribute")
        return cls(source, spec, _place(source, spec))

    @property
    def columns(self) -> list[str]:
        names = (self.spec.person, *self.place.columns, *(a.column for a in self.spec.attributes))
        return list(dict.fromkeys(names))

    def batch(self, table: pa.Table, start: int, rejects: _Rejects) -> VisitBatch:
        """One batch; `start` is the position of its first row in the source."""
        person = TextColumn.of(table.column(self.spec.person), self.spec.person)
        fault = _Faults(table.num_rows)
        fault.mark("no person", person.blank())
        if self.spec.grid.column is not None:
            key, at_origin = self._keys_of_ids(table, fault), 0
        else:
            key, at_origin = self._keys_of_points(table, fault)
        values = [TextColumn.of(table.column(a.column), a.column).filled() for a in self.spec.attributes]
        kept = fault.kept()
        dropped, positions = fault.tally()
        number = partial(_numbered, self.source, start)
        rejects.write(fault, number)
        intake = Intake(
            rows=table.num_rows,
            counted=table.num_rows - sum(dropped.values()),
            dropped=dropped,
            first_rows={reason: tuple(number(first).tolist()) for reason, first in positions.items()},
            hints=fault.hints,
            at_origin=at_origin,
            remarks=self.place.remarks,
        )
        return VisitBatch(
            person.where(kept).dictionary(), key, tuple(v.where(kept).dictionary() for v in values), intake
        )

    def _keys_of_ids(self, table: pa.Table, fault: _Faults) -> NDArray[Any]:
        """Keys of the rows without fault."""
        column = self.place.columns[0]
        ids = TextColumn.of(table.column(column), column)
        fault.mark("no cell id", ids.blank())
        parsed = self.spec.grid.parse(ids.texts.to_numpy(zero_copy_only=False))
        wrong = np.asarray(parsed == -1) if parsed.dtype != object else np.array([k is None for k in parsed], bool)
        fault.mark("not a cell id", np.append(wrong, False)[ids.codes])
        kept = fault.kept()
        return parsed[ids.codes if kept is None else ids.codes[kept]]

    def _keys_of_points(self, table: pa.Table, fault: _Faults) -> tuple[NDArray[Any], int]:
        """Keys of the rows without fault, and how many of these lie at (0, 0)."""
        x, y = self._coordinates(table, fault)
        grid_crs = CRS.from_user_input(self.spec.grid.crs)
        lon, lat = reproject(x, y, self.place.crs, WGS84)
        strange = ~on_earth(lon, lat)
        gx, gy = (lon, lat) if same_crs(grid_crs, WGS84) else reproject(x, y, self.place.crs, grid_crs)
        if gx is not lon:
            strange |= ~(np.isfinite(gx) & np.isfinite(gy))
        new = fault.mark("out of range", strange)
        if new is not None:
            fault.hints["out of range"] = _range_hint(x[new], y[new], self.place)
        kept = fault.kept()
        if kept is not None:
            x, y, gx, gy = x[kept], y[kept], gx[kept], gy[kept]
        key = self.spec.grid.locate(gx, gy)
        lost = np.asarray(key == -1) if key.dtype != object else np.array([k is None for k in key], bool)
        origin = (x == 0) & (y == 0)
        if lost.any():
            fault.mark_kept("outside the zones", lost)
            key, origin = key[~lost], origin[~lost]
        return key, int(origin.sum())

    def _coordinates(self, table: pa.Table, fault: _Faults) -> tuple[FloatArray, FloatArray]:
        place = self.place
        if place.geometry:
            x, y = points(table.column(place.columns[0]), place.columns[0], self.spec.points)
            fault.mark("no coordinate", np.isnan(x) | np.isnan(y))
            return x, y
        read = [numbers(table.column(column), column) for column in place.columns]
        _mark_numbers(read[0], read[1], place, fault)
        return read[0].values, read[1].values


def _mark_numbers(x: Numbers, y: Numbers, place: _Place, fault: _Faults) -> None:
    wrong = [n.wrong if n.wrong is not None else np.zeros(len(n.values), bool) for n in (x, y)]
    nothing = (np.isnan(x.values) & ~wrong[0]) | (np.isnan(y.values) & ~wrong[1])
    fault.mark("no coordinate", nothing)
    if x.wrong is not None or y.wrong is not None:
        fault.mark("not a number", wrong[0] | wrong[1])
        columns = [c for c, n in zip(place.columns, (x, y), strict=True) if n.commas]
        if columns:
            fault.hints["not a number"] = f"decimal commas in {listed(columns)}: write 16.3 for 16,3"


def _numbered(source: Source, start: int, positions: NDArray[np.int64]) -> NDArray[np.int64]:
    return source.row_numbers(positions + start)


class _Faults:
    """The reason, if any, for which each row of a batch is not counted."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._reason: NDArray[np.uint8] | None = None
        self.hints: dict[str, str] = {}

    def mark(self, reason: str, rows: BoolArray) -> BoolArray | None:
        """Mark rows that have no fault yet; which these were, or None for none."""
        if not rows.any():
            return None
        if self._reason is None:
            self._reason = np.zeros(self._rows, np.uint8)
        new = rows & (self._reason == 0)
        self._reason[new] = REASONS.index(reason) + 1
        return new if new.any() else None

    def mark_kept(self, reason: str, rows: BoolArray) -> None:
        """As `mark`, over the rows without fault only."""
        kept = self.kept()
        spread = np.zeros(self._rows, bool)
        spread[slice(None) if kept is None else kept] = rows
        self.mark(reason, spread)

    def kept(self) -> BoolArray | None:
        """(rows,) bool: no fault; None when no row has one."""
        return None if self._reason is None else self._reason == 0

    def faulty(self) -> tuple[NDArray[np.int64], list[str]]:
        """Positions of the rows with a fault, ascending, and their reasons."""
        if self._reason is None:
            return np.zeros(0, np.int64), []
        at = np.flatnonzero(self._reason)
        return at, [REASONS[code - 1] for code in self._reason[at].tolist()]

    def tally(self) -> tuple[dict[str, int], dict[str, NDArray[np.int64]]]:
        """Number of rows, and positions of the first of them, by reason."""
        if self._reason is None:
            return {}, {}
        found = {reason: np.flatnonzero(self._reason == i + 1) for i, reason in enumerate(REASONS)}
        found = {reason: at for reason, at in found.items() if len(at)}
        return {reason: len(at) for reason, at in found.items()}, {r: at[:FIRST] for r, at in found.items()}


class _Rejects:
    """Writes the file of rejected rows, complete or not at all."""

    def __init__(self, path: Path | None) -> None:
        self._path = Path(path) if path is not None else None
        self._part = self._path.with_name(f".{self._path.name}.{os.getpid()}.part") if self._path else None
        self._file: Any = None

    def __enter__(self) -> _Rejects:
        if self._part is not None:
            try:
                self._file = self._part.open("w", encoding="utf-8", newline="")
            except OSError as error:
                raise WriteError(
                    f"rejects: '{self._path}' cannot be written: {error.strerror or error}. Name another file."
                ) from error
            csv.writer(self._file).writerow(("row", "reason"))
        return self

    def write(self, fault: _Faults, number: Any) -> None:
        """The rows of one batch: their numbers and reasons, no person and no place."""
        if self._file is None:
            return
        at, reasons = fault.faulty()
        csv.writer(self._file).writerows(zip(number(at).tolist(), reasons, strict=True))

    def __exit__(self, kind: Any, *_: Any) -> None:
        if self._file is None or self._part is None or self._path is None:
            return
        self._file.close()
        if kind is None:
            os.replace(self._part, self._path)
        else:
            self._part.unlink()


def _place(source: Source, spec: VisitSpec) -> _Place:
    """Where the places of the visits stand in a source."""
    if spec.grid.column is not None:
        return _Place((need(source, spec.grid.column, "the cell id"),))
    if spec.lon is not None and spec.lat is not None:
        names = need(source, spec.lon, "lon"), need(source, spec.lat, "lat")
        return _Place(names, crs=crs_of(spec.crs or "EPSG:4326"), labels=names)
    if source.geometry is not None:
        return _geometry_place(source, source.geometry, spec)
    lon, lat = _usual(source, LON_NAMES), _usual(source, LAT_NAMES)
    if lon is None or lat is None:
        raise SourceError(
            f"expected a geometry, or columns for lon and lat, in {source.name}, got the columns: "
            f"{listed(source.columns, 30) or 'none'}. Name them with lon and lat."
        )
    return _Place((lon, lat), crs=crs_of(spec.crs or "EPSG:4326"), labels=(lon, lat))


def _geometry_place(source: Source, geometry: str, spec: VisitSpec) -> _Place:
    if spec.crs is None and source.crs is None:
        raise SourceError(
            f"expected a CRS in {source.name}, got none. Say which one its coordinates are in, such as "
            'crs = "EPSG:3035".'
        )
    crs = crs_of(spec.crs) if spec.crs is not None else source.crs
    assert crs is not None
    remarks: tuple[str, ...] = ()
    if source.crs is not None and not same_crs(crs, source.crs):
        remarks = (f"{source.name} declares {crs_name(source.crs)}; {crs_name(crs)} was used, as told",)
    return _Place((need(source, geometry, "the geometry"),), True, crs, remarks=remarks)


def _usual(source: Source, names: tuple[str, ...]) -> str | None:
    for name in names:
        found = [column for column in source.columns if column.strip().lower() == name]
        if len(found) > 1:
            raise SourceError(f"expected one column {name!r} in {source.name}, got {listed(found)}. Name it.")
        if found:
            return need(source, found[0], "a coordinate")
    return None


def _range_hint(x: FloatArray, y: FloatArray, place: _Place) -> str:
    """What coordinates out of range may be; numbers are rounded, since they are somebody's."""
    labels = place.labels
    claim = crs_name(place.crs)
    if not place.crs.is_geographic:
        return f"{labels[0]} and {labels[1]} are not in the area of {claim}"
    wrong_lat = np.abs(y) > 90
    name, value = (labels[1], y[wrong_lat][0]) if wrong_lat.any() else (labels[0], x[0])
    limit = 90 if wrong_lat.any() else 180
    hint = f"such as {name} = {float(f'{value:.3g}'):.15g}, expected -{limit} to {limit}"
    if (np.abs(x) > 180).mean() > 0.5 and (np.abs(y) > 180).mean() > 0.5:
        return f"{hint}: {claim} is said to be the CRS, but these look like metres of a projected one"
    if ((np.abs(x) <= 90) & (np.abs(y) <= 180)).mean() > 0.5:
        return f"{hint}: lon and lat look swapped"
    return hint
