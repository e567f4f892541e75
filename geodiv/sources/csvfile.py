"""Text tables: CSV and its kin, plain, compressed with gzip, or from standard input.

Every column is read as text, so that ids keep their zeros, and a text that is no number is told from a number
that is not there. An empty field, quoted or not, is a missing value: CSV has no other way to say so.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
from pyproj import CRS

from ..errors import SourceError
from .lines import Lines
from .source import IntArray, checked_rows, distinct_columns, file_digest, first_line, name_of, regroup

DELIMITERS = (",", ";", "\t", "|")
GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Bytes:
    """Where the bytes come from: a file, or standard input held in memory (it can be read only once)."""

    path: Path | None
    content: bytes = b""

    @classmethod
    def of(cls, path: Path | None) -> Bytes:
        """The file's bytes, not yet read; those of standard input for None."""
        return cls(path) if path is not None else cls(None, sys.stdin.buffer.read())

    @property
    def name(self) -> str:
        """As messages call it."""
        return "standard input" if self.path is None else name_of(self.path)

    def stream(self) -> Any:
        """The bytes as a stream, decompressed."""
        raw = io.BytesIO(self.content) if self.path is None else self.path.open("rb")
        magic = raw.read(2)
        raw.seek(0)
        return gzip.GzipFile(fileobj=raw) if magic == GZIP else raw

    def arrow_stream(self) -> pa.NativeFile:
        """As `stream`, read by Arrow without the interpreter."""
        raw = pa.BufferReader(self.content) if self.path is None else pa.OSFile(str(self.path), "rb")
        magic = raw.read(2)
        raw.seek(0)
        return pa.CompressedInputStream(raw, "gzip") if magic == GZIP else raw

    def digest(self) -> str:
        """sha256 of the bytes, compressed as they are."""
        return hashlib.sha256(self.content).hexdigest() if self.path is None else file_digest(self.path)


@dataclass(frozen=True, slots=True)
class CsvSource:
    """A UTF-8 text table with a header, split at commas, semicolons, tabs or bars: what the header has most of."""

    bytes: Bytes
    columns: Mapping[str, pa.DataType]
    repeated: frozenset[str]
    delimiter: str
    width: int
    lines: Lines
    geometry: None = None
    crs: CRS | None = None

    @classmethod
    def open(cls, path: Path | None) -> CsvSource:
        """The table, its header read; None reads standard input."""
        bytes_ = Bytes.of(path)
        first = _header_line(bytes_)
        delimiter = delimiter_of(first)
        try:
            header = next(csv.reader([first], delimiter=delimiter))
        except csv.Error as error:
            raise SourceError(f"expected a CSV with a header line at {bytes_.name}, got: {error}.") from error
        columns, repeated = distinct_columns(header, [pa.string()] * len(header))
        return cls(bytes_, columns, repeated, delimiter, len(header), Lines(bytes_.stream, delimiter))

    @property
    def name(self) -> str:
        """As messages call it."""
        return self.bytes.name

    @property
    def path(self) -> Path | None:
        """The file; None for standard input."""
        return self.bytes.path

    def digest(self) -> str:
        """sha256 of the bytes."""
        return self.bytes.digest()

    def batches(self, columns: Sequence[str], rows_per_batch: int | None) -> Iterator[pa.Table]:
        """The rows with these columns, all of them text; see `Source`."""
        rows_per_batch = checked_rows(rows_per_batch)
        schema = pa.schema([pa.field(column, pa.string()) for column in columns])
        parse = pacsv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        convert = pacsv.ConvertOptions(
            include_columns=list(columns), column_types=schema, null_values=[""], strings_can_be_null=True
        )
        try:
            with self.bytes.arrow_stream() as stream:
                if rows_per_batch is None:
                    yield pacsv.read_csv(stream, parse_options=parse, convert_options=convert)
                    return
                with pacsv.open_csv(stream, parse_options=parse, convert_options=convert) as reader:
                    yield from regroup(reader, schema, rows_per_batch)
        except (pa.ArrowInvalid, OSError) as error:
            if str(error).startswith("CSV parse error: Empty CSV file"):
                yield schema.empty_table()
                return
            raise SourceError(self._fault(error)) from None

    def row_numbers(self, positions: IntArray) -> IntArray:
        """Lines of the file, on which the rows start; the header is line 1."""
        try:
            return self.lines.at(positions)
        except (csv.Error, StopIteration, UnicodeDecodeError) as error:
            raise SourceError(
                f"the lines of {self.name} cannot be told apart, so that its bad rows cannot be named. Save it "
                "again, with quotes around texts."
            ) from error

    def _fault(self, error: Exception) -> str:
        """What is wrong with the table, without any of its text."""
        text = str(error)
        if "UTF8" in text or "UTF-8" in text:
            return f"expected UTF-8 text in {self.name}, got other bytes. Save it as UTF-8."
        try:
            with self.bytes.stream() as raw:
                rows = csv.reader(io.TextIOWrapper(raw, "utf-8-sig", newline=""), delimiter=self.delimiter)
                start = 1
                for row in rows:
                    if row and len(row) != self.width:
                        return (
                            f"expected {self.width} fields in each line of {self.name}, "
                            f"got {len(row)} in line {start}. "
                            "Mend that line; a field that holds the separator needs quotes."
                        )
                    start = rows.line_num + 1
        except (OSError, EOFError, UnicodeDecodeError, csv.Error, zlib.error) as fault:
            return f"{self.name} cannot be read to its end: {first_line(fault)}."
        return f"{self.name} cannot be read as CSV. Save it again, with quotes around texts."


def delimiter_of(header: str) -> str:
    """What separates the fields of a header: what it has most of, quoted texts aside.

    Examples
    --------
    >>> delimiter_of('person;"lon, lat, height";poi')
    ';'
    """
    outside = "".join(header.split('"')[::2])
    return max(DELIMITERS, key=outside.count)


def _header_line(bytes_: Bytes) -> str:
    """The first line that is not blank, with the lines that its quotes draw in."""
    name = bytes_.name
    try:
        with bytes_.stream() as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as text:
            first = next((line for line in text if line.strip()), "")
            while first.count('"') % 2 and (more := text.readline()):
                first += more
    except UnicodeDecodeError as error:
        raise SourceError(f"expected UTF-8 text in {name}, got other bytes. Save it as UTF-8.") from error
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(f"expected a CSV file at {name}, got: {first_line(error)}.") from error
    if not first.strip():
        raise SourceError(f"expected a CSV with a header line in {name}, got an empty file.")
    if "\0" in first:
        raise SourceError(f"expected UTF-8 text in {name}, got other bytes. Save it as UTF-8.")
    return first
