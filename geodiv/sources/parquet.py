"""Parquet and GeoParquet files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyproj import CRS
from pyproj.exceptions import CRSError

from ..errors import SourceError
from .source import (
    UNREADABLE,
    IntArray,
    checked_rows,
    distinct_columns,
    file_digest,
    first_line,
    name_of,
    regroup,
)

CODE = 4
"""Bytes a value up to which a text column can be codes into dictionaries, and these."""


@dataclass(frozen=True, slots=True)
class ParquetSource:
    """One Parquet file, plain or GeoParquet. Text columns come as the dictionaries that the file holds, if it does."""

    path: Path
    columns: Mapping[str, pa.DataType]
    repeated: frozenset[str]
    geometry: str | None
    crs: CRS | None

    @classmethod
    def open(cls, path: Path) -> ParquetSource:
        """The file, its schema read."""
        try:
            schema = pq.read_schema(path)
        except UNREADABLE as error:
            raise SourceError(
                f"expected a Parquet file at {name_of(path)}, got: {first_line(error)}."
            ) from error
        columns, repeated = distinct_columns(schema.names, schema.types)
        geometry, crs = declared_geometry(schema, name_of(path))
        return cls(path, columns, repeated, geometry, crs)

    @property
    def name(self) -> str:
        """As messages call it."""
        return name_of(self.path)

    def digest(self) -> str:
        """sha256 of the file's bytes."""
        return file_digest(self.path)

    def batches(self, columns: Sequence[str], rows_per_batch: int | None) -> Iterator[pa.Table]:
        """The rows with these columns; see `Source`."""
        rows_per_batch = checked_rows(rows_per_batch)
        try:
            texts = self._in_dictionaries(columns)
            with pq.ParquetFile(self.path, read_dictionary=texts, memory_map=True) as file:
                if rows_per_batch is None:
                    yield file.read(columns=list(columns))
                    return
                parts = file.iter_batches(batch_size=min(rows_per_batch, 1 << 20), columns=list(columns))
                schema = pa.schema([file.schema_arrow.field(c) for c in columns])
                yield from regroup(parts, schema, rows_per_batch)
        except UNREADABLE as error:
            raise SourceError(f"{self.name} cannot be read to its end: {first_line(error)}.") from error

    def _in_dictionaries(self, columns: Sequence[str]) -> list[str]:
        """The text columns that the file holds as dictionaries and codes; writers give them up when they grow."""
        metadata = pq.read_metadata(self.path)
        size, rows = Counter[str](), Counter[str]()
        for group in range(metadata.num_row_groups):
            for i in range(metadata.num_columns):
                chunk = metadata.row_group(group).column(i)
                size[chunk.path_in_schema] += chunk.total_uncompressed_size
                rows[chunk.path_in_schema] += chunk.num_values
        return [c for c in columns if _is_text(self.columns[c]) and size[c] <= CODE * rows[c]]

    def row_numbers(self, positions: IntArray) -> IntArray:
        """1-based row numbers."""
        return positions + 1


def declared_geometry(schema: pa.Schema, name: str) -> tuple[str | None, CRS | None]:
    """Geometry column and CRS that a schema declares, by GeoParquet's metadata or GeoArrow's."""
    if b"geo" in (schema.metadata or {}):
        try:
            geo = json.loads(schema.metadata[b"geo"])
            column = geo["primary_column"]
            return column, declared_crs(geo["columns"][column].get("crs", "OGC:CRS84"), name)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SourceError(
                f"expected GeoParquet metadata in {name}, got some that cannot be read ({error}). "
                "Write the file again with geopandas or GDAL."
            ) from error
    for field in schema:
        kind, text = _extension(field)
        if kind in ("geoarrow.wkb", "ogc.wkb", "geoarrow.point"):
            return field.name, declared_crs(json.loads(text or "{}").get("crs"), name)
    return None, None


def _extension(field: pa.Field) -> tuple[str, str]:
    if isinstance(field.type, pa.ExtensionType):
        stored: Any = field.type
        return stored.extension_name, stored.__arrow_ext_serialize__().decode()
    metadata = field.metadata or {}
    return (
        metadata.get(b"ARROW:extension:name", b"").decode(),
        metadata.get(b"ARROW:extension:metadata", b"").decode(),
    )


def declared_crs(text: Any, name: str) -> CRS | None:
    """The CRS that a source declares, from whatever pyproj reads; None for none."""
    if text is None:
        return None
    try:
        return CRS.from_user_input(text)
    except CRSError as error:
        raise SourceError(f"{name} declares a CRS that cannot be read: {first_line(error)}.") from error


def _is_text(kind: pa.DataType) -> bool:
    return str(kind) in ("string", "large_string")
