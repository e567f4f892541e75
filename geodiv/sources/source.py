"""Source: what every kind of input answers, and what all of them share."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyproj import CRS

from ..errors import SourceError, UsageError, did_you_mean, listed

IntArray = NDArray[np.int64]
BLOCK = 1 << 20
"""Bytes read at a time."""


class Described(Protocol):
    """What is known of an input before its rows are read."""

    @property
    def name(self) -> str:
        """As messages call it: ``'visits.csv'`` or ``the DataFrame``."""
        ...

    @property
    def columns(self) -> Mapping[str, pa.DataType]:
        """Names and Arrow types of the columns; the geometry has some binary or struct type."""
        ...

    @property
    def repeated(self) -> frozenset[str]:
        """Names that several columns have."""
        ...

    @property
    def geometry(self) -> str | None:
        """Name of the geometry column."""
        ...

    @property
    def crs(self) -> CRS | None:
        """CRS of the geometry, as the source declares it."""
        ...


class Source(Described, Protocol):
    """An input, opened: its columns are known, its rows not yet read."""

    def digest(self) -> str | None:
        """sha256 of the file's bytes, in hexadecimal; None when there is no file (see `fingerprint`)."""
        ...

    def batches(self, columns: Sequence[str], rows_per_batch: int | None) -> Iterator[pa.Table]:
        """The rows, in order, with these columns; None gives one table."""
        ...

    def row_numbers(self, positions: IntArray) -> IntArray:
        """What messages call the rows at these positions (ascending, from 0): 1-based, or lines of a CSV file."""
        ...


UNREADABLE = (OSError, pa.ArrowException, UnicodeDecodeError)
"""What Arrow raises on damaged files; the last for names that are no UTF-8."""


def name_of(path: Path | str) -> str:
    """A path as messages call it."""
    return f"'{path}'"


def first_line(error: BaseException) -> str:
    """The first line of another library's message, without its full stop."""
    return (getattr(error, "strerror", None) or str(error)).strip().split("\n")[0].rstrip(".")


def distinct_columns(
    names: Sequence[str], types: Sequence[pa.DataType]
) -> tuple[dict[str, pa.DataType], frozenset[str]]:
    """Columns by name, the first of each, and the names that come twice."""
    first: dict[str, pa.DataType] = {}
    twice = set()
    for name, kind in zip(names, types, strict=True):
        if name in first:
            twice.add(name)
        first.setdefault(name, kind)
    return first, frozenset(twice)


def need(source: Described, column: str, use: str) -> str:
    """The column's name, or an error that lists the columns there are."""
    if column not in source.columns:
        raise SourceError(
            f"expected the column {column!r} ({use}) in {source.name}, got the columns: "
            f"{listed(source.columns, 30) or 'none'}.{did_you_mean(column, source.columns)}"
        )
    if column in source.repeated:
        raise SourceError(
            f"expected one column {column!r} ({use}) in {source.name}, got several of this name. "
            "Rename all but one."
        )
    return column


def checked_rows(rows_per_batch: int | None) -> int | None:
    """The number of rows a batch, or an error."""
    if rows_per_batch is not None and rows_per_batch < 1:
        raise UsageError(
            f"rows_per_batch: expected a whole number of at least 1 or None, got {rows_per_batch!r}."
        )
    return rows_per_batch


def regroup(
    tables: Iterable[pa.Table | pa.RecordBatch], schema: pa.Schema, rows_per_batch: int | None
) -> Iterator[pa.Table]:
    """The same rows in tables of `rows_per_batch` rows (the last may be shorter); at least one, if empty."""
    held: list[pa.Table] = []
    rows, given = 0, False
    for part in tables:
        held.append(part if isinstance(part, pa.Table) else pa.Table.from_batches([part]))
        rows += part.num_rows
        while rows_per_batch is not None and rows >= rows_per_batch:
            table = pa.concat_tables(held)
            yield table.slice(0, rows_per_batch)
            given = True
            held, rows = [table.slice(rows_per_batch)], rows - rows_per_batch
    if rows or not given:
        yield pa.concat_tables(held) if held else schema.empty_table()


def plain_types(table: pa.Table) -> pa.Table:
    """The same values without views, half floats and run-end encoding, which few functions take."""
    for i, field in enumerate(table.schema):
        column = table.column(i)
        if pa.types.is_run_end_encoded(field.type):
            column = pc.run_end_decode(column)
        kind = column.type
        value = _PLAIN.get(str(kind.value_type if pa.types.is_dictionary(kind) else kind))
        if value is not None:
            column = column.cast(pa.dictionary(pa.int32(), value) if pa.types.is_dictionary(kind) else value)
        if column.type != field.type:
            table = table.set_column(i, pa.field(field.name, column.type), column)
    return table


_PLAIN = {"string_view": pa.large_string(), "binary_view": pa.large_binary(), "halffloat": pa.float32()}


def file_digest(path: Path) -> str:
    """sha256 of a file's bytes, in hexadecimal."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise SourceError(
            f"expected a file to read at {name_of(path)}, got: {error.strerror or error}."
        ) from error


def digest_of_several(named: Iterable[tuple[str, str]]) -> str:
    """sha256 of the names and digests of several files, sorted by name, in hexadecimal."""
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(named))
    return hashlib.sha256(lines.encode()).hexdigest()
