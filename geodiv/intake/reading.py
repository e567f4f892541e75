"""Reading: batches of visits from a source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from ..sources import Source, need, open_source
from ..sources.fingerprint import Fingerprint
from ..sources.source import plain_types
from .faults import Faults, Rejects
from .places import CellColumn, Coordinates, place_of
from .spec import VisitSpec
from .tally import Intake, check
from .textcolumn import TextColumn


@dataclass(frozen=True, slots=True, eq=False)
class VisitBatch:
    """Rows that count, and the tally of all rows they came from.

    Parameters
    ----------
    person : (counted,) DictionaryArray of text
        No nulls; the dictionary holds the persons that occur, each once, and no others.
    key : (counted,) int64, or object of str for a column grid
        The grid's keys, all of them cells.
    values : tuple over attributes of (counted,) DictionaryArray of text
        As they stand in the source, ``(missing)`` for null, None, NaN, NA and an empty CSV field; declared
        markers are not yet recognised. The dictionary holds the values that occur, each once, and no others.
    intake : Intake
    """

    person: pa.DictionaryArray
    key: NDArray[Any]
    values: tuple[pa.DictionaryArray, ...]
    intake: Intake


def whole(source: Any, spec: VisitSpec) -> tuple[list[VisitBatch], Intake]:
    """Every batch of a source, read whole, and the tally of all its rows.

    Raises
    ------
    SourceError, GridError
        As `batches`, and as `check` when rows cannot be counted and `spec` does not skip them.
    """
    parts = list(batches(source, spec, rows_per_batch=None))
    intake = reduce(add, (part.intake for part in parts))
    check(intake, spec)
    return parts, intake


def batches(source: Any, spec: VisitSpec, *, rows_per_batch: int | None) -> Iterator[VisitBatch]:
    """The visits of any source, in order, in batches; at least one, which may be empty.

    Parameters
    ----------
    source : path, glob, folder, list of paths, ``"-"``, frame or Source
        See `geodiv.sources.open_source`.
    spec : VisitSpec
    rows_per_batch : int or None
        Rows read at a time; None reads a frame or a file whole. A batch never spans two files.

    Yields
    ------
    VisitBatch
        Rows that cannot be counted are gone and tallied in its ``intake``; these add up to the whole tally.

    Raises
    ------
    SourceError
        The source cannot be read, lacks a column or a CRS, or holds other geometries than points.

    Examples
    --------
    >>> import pandas as pd
    >>> from geodiv.grids.column import ColumnGrid
    >>> visits = pd.DataFrame({"who": [7.0, None], "cell": ["c-41", "c-58"]})
    >>> spec = VisitSpec(person="who", grid=ColumnGrid("cell"))
    >>> [batch] = batches(visits, spec, rows_per_batch=None)
    >>> batch.person.to_pylist(), batch.key, batch.intake.dropped
    (['7'], array(['c-41'], dtype=object), {'no person': 1})
    """
    opened = open_source(source, spec.layer)
    reader = _Reader.of(opened, spec)
    with Rejects(spec.rejects) as rejects:
        digest = opened.digest()
        fingerprint = None if digest else Fingerprint()
        held: VisitBatch | None = None
        rows, total = 0, Intake(rows=0, counted=0)
        for table in opened.batches(reader.columns, rows_per_batch):
            if held is not None:
                yield held
            table = plain_types(table)
            held = reader.batch(table, rows, rejects)
            if fingerprint is not None:
                fingerprint.update(table)
            rows, total = rows + table.num_rows, total + held.intake
            del table
        assert held is not None
        if fingerprint is not None:
            digest = fingerprint.hexdigest()
        if spec.rejects is not None:
            check(total, spec)  # before the list of rows takes the place of an earlier one
        held = replace(held, intake=replace(held.intake, digest=digest or ""))
    yield held


@dataclass(frozen=True, slots=True)
class _Reader:
    """Makes batches of the tables of one source."""

    source: Source
    spec: VisitSpec
    place: CellColumn | Coordinates

    @classmethod
    def of(cls, source: Source, spec: VisitSpec) -> _Reader:
        need(source, spec.person, "the person")
        for attribute in spec.attributes:
            need(source, attribute.column, "an attribute")
        return cls(source, spec, place_of(source, spec))

    @property
    def columns(self) -> list[str]:
        names = (self.spec.person, *self.place.columns, *(a.column for a in self.spec.attributes))
        return list(dict.fromkeys(names))

    def batch(self, table: pa.Table, start: int, rejects: Rejects) -> VisitBatch:
        """One batch; `start` is the position of its first row in the source."""
        faults = Faults(table.num_rows)
        person = TextColumn.of(table.column(self.spec.person), self.spec.person)
        faults.mark("no person", person.blank())
        key, at_origin = self.place.keys(table, faults)
        kept = faults.kept
        values = (TextColumn.of(table.column(a.column), a.column) for a in self.spec.attributes)
        dropped = {reason: len(at) for reason, at in faults.positions().items()}
        intake = Intake(
            rows=table.num_rows,
            counted=len(key),
            dropped=dropped,
            first_rows=rejects.first_rows(faults, self.source, start),
            examples=faults.examples,
            causes=faults.causes,
            at_origin=at_origin,
            remarks=self.place.remarks,
        )
        return VisitBatch(
            person=person.where(kept).dictionary(),
            key=key,
            values=tuple(value.where(kept).filled().dictionary() for value in values),
            intake=intake,
        )
