"""Tables of visits: one Arrow table as the rows that count, the same wherever it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from ..sources import Described, need
from .faults import Faults
from .places import CellColumn, Coordinates, place_of
from .spec import VisitSpec
from .tally import Intake
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


@dataclass(frozen=True, slots=True)
class Layout:
    """What stands in which column of the tables of one source.

    Parameters
    ----------
    person : str
    place : CellColumn or Coordinates
    attributes : tuple of str
    """

    person: str
    place: CellColumn | Coordinates
    attributes: tuple[str, ...]

    @classmethod
    def of(cls, source: Described, spec: VisitSpec) -> Layout:
        """The layout of a source, of which only names, columns, geometry and CRS are asked for.

        Raises
        ------
        SourceError
            A column or the CRS is not there.
        """
        need(source, spec.person, "the person")
        for attribute in spec.attributes:
            need(source, attribute.column, "an attribute")
        return cls(spec.person, place_of(source, spec), tuple(a.column for a in spec.attributes))

    @property
    def columns(self) -> list[str]:
        """The columns to read, each once."""
        return list(dict.fromkeys((self.person, *self.place.columns, *self.attributes)))


def visits_of(table: pa.Table, layout: Layout) -> tuple[VisitBatch, Faults]:
    """The visits of a table, and which of its rows are not counted.

    Parameters
    ----------
    table : pyarrow Table
        With the columns of `layout`, in plain types.
    layout : Layout

    Returns
    -------
    VisitBatch, Faults
        The tally names no rows: a table does not know which rows of its source it holds.
    """
    faults = Faults(table.num_rows)
    person = TextColumn.of(table.column(layout.person), layout.person)
    faults.mark("no person", person.blank())
    key, at_origin = layout.place.keys(table, faults)
    kept = faults.kept
    values = (TextColumn.of(table.column(column), column) for column in layout.attributes)
    intake = Intake(
        rows=table.num_rows,
        counted=len(key),
        dropped={reason: len(at) for reason, at in faults.positions().items()},
        examples=faults.examples,
        causes=faults.causes,
        at_origin=at_origin,
        remarks=layout.place.remarks,
    )
    batch = VisitBatch(
        person=person.where(kept).dictionary(),
        key=key,
        values=tuple(value.where(kept).filled().dictionary() for value in values),
        intake=intake,
    )
    return batch, faults
