"""Several files of one format, read one after the other."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyproj import CRS

from ..errors import SourceError
from .csvfile import CsvSource
from .parquet import ParquetSource
from .source import IntArray, digest_of_several, need
from .vector import VectorSource

FileSource = CsvSource | ParquetSource | VectorSource


@dataclass(frozen=True, slots=True)
class SeveralSource:
    """Files that hold the same columns; rows are numbered through, from the first file on."""

    name: str
    parts: tuple[FileSource, ...]

    @classmethod
    def open(cls, name: str, parts: Sequence[FileSource]) -> SeveralSource:
        """The files, in this order; an error names the first that differs in format, geometry or CRS."""
        first = parts[0]
        for part in parts[1:]:
            if type(part) is not type(first):
                raise SourceError(
                    f"expected files of one format, got {first.name} and {part.name}. Read one kind."
                )
            if part.geometry != first.geometry or part.crs != first.crs:
                raise SourceError(
                    f"expected the geometry and CRS of {first.name} in all files, got others in {part.name}. "
                    "Reproject it, or read it on its own."
                )
        return cls(name, tuple(parts))

    @property
    def columns(self) -> Mapping[str, pa.DataType]:
        """Columns of the first file."""
        return self.parts[0].columns

    @property
    def repeated(self) -> frozenset[str]:
        """Names that several columns of a file have."""
        return frozenset().union(*(part.repeated for part in self.parts))

    @property
    def geometry(self) -> str | None:
        """Name of the geometry column, the same in all."""
        return self.parts[0].geometry

    @property
    def crs(self) -> CRS | None:
        """CRS of the geometry, the same in all."""
        return self.parts[0].crs

    def digest(self) -> str:
        """sha256 of the names (below their common folder) and digests of the files."""
        paths = [os.path.abspath(part.path) for part in self.parts if part.path is not None]
        base = os.path.commonpath([os.path.dirname(path) for path in paths])
        names = [os.path.relpath(path, base).replace(os.sep, "/") for path in paths]
        return digest_of_several(zip(names, (part.digest() for part in self.parts), strict=True))

    def check(self, columns: Sequence[str]) -> None:
        """An error unless all files have these columns, of the same sort of type."""
        for part in self.parts[1:]:
            for column in columns:
                need(part, column, f"as in {self.parts[0].name}")
                _check_same(self.parts[0], part, column)

    def batches(self, columns: Sequence[str], rows_per_batch: int | None) -> Iterator[pa.Table]:
        """The rows with these columns, at least one table a file; see `Source`."""
        self.check(columns)
        for part in self.parts:
            yield from part.batches(columns, rows_per_batch)

    def row_numbers(self, positions: IntArray) -> IntArray:
        """1-based row numbers over all files."""
        return positions + 1


def _check_same(first: FileSource, part: FileSource, column: str) -> None:
    expected, found = first.columns[column], part.columns[column]
    if "null" not in (_sort(expected), _sort(found)) and _sort(expected) != _sort(found):
        raise SourceError(
            f"expected {expected} in column {column!r} of {part.name}, as in {first.name}, got {found}. "
            "Write the files with the same column types."
        )


def _sort(kind: pa.DataType) -> str:
    """Types whose values have the same text go together."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    return {"large_string": "string", "string_view": "string", "large_binary": "binary"}.get(
        str(kind), str(kind)
    )
