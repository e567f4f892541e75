"""Frames in memory: pandas, geopandas, Arrow, and whatever exports an Arrow stream (polars, DuckDB, ...)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import shapely
from pyproj import CRS

from ..errors import SourceError
from ..text import MISSING, as_text
from .parquet import declared_geometry
from .source import IntArray, checked_rows, distinct_columns, regroup

POINT = pa.struct([("x", pa.float64()), ("y", pa.float64())])


@dataclass(frozen=True, slots=True, eq=False)
class PandasSource:
    """A DataFrame or GeoDataFrame; never written to, and only the columns asked for are converted."""

    frame: pd.DataFrame
    columns: Mapping[str, pa.DataType]
    repeated: frozenset[str]
    geometry: str | None
    crs: CRS | None

    @classmethod
    def open(cls, frame: pd.DataFrame) -> PandasSource:
        """The frame; its column types are those of its first rows."""
        head = frame.iloc[:1000]
        names = [str(name) for name in frame.columns]
        shapes = [i for i in range(len(names)) if _is_geometry(frame.dtypes.iloc[i])]
        active = str(getattr(frame, "_geometry_column_name", None))
        geometry = active if active in names else names[shapes[0]] if len(shapes) == 1 else None
        types = [POINT if i in shapes else _array(head.iloc[:, i], None).type for i in range(len(names))]
        columns, repeated = distinct_columns(names, types)
        crs = frame.iloc[:, names.index(geometry)].array.crs if geometry is not None else None
        return cls(frame, columns, repeated, geometry, crs)

    @property
    def name(self) -> str:
        """As messages call it."""
        return f"the {type(self.frame).__name__}"

    def digest(self) -> None:
        """None: there is no file."""

    def batches(self, columns: Sequence[str], rows_per_batch: int | None) -> Iterator[pa.Table]:
        """The rows with these columns; see `Source`."""
        names = [str(name) for name in self.frame.columns]
        positions = [names.index(column) for column in columns]
        step = checked_rows(rows_per_batch) or max(len(self.frame), 1)
        for start in range(0, max(len(self.frame), 1), step):
            part = self.frame.iloc[start : start + step]
            arrays = [_column(part.iloc[:, i], column) for i, column in zip(positions, columns, strict=True)]
            yield pa.table(arrays, names=list(columns))

    def row_numbers(self, positions: IntArray) -> IntArray:
        """1-based row numbers."""
        return positions + 1


def _is_geometry(dtype: Any) -> bool:
    return getattr(dtype, "name", "") == "geometry"


def _column(series: pd.Series, name: str) -> pa.Array | pa.ChunkedArray:
    if _is_geometry(series.dtype):
        return _geometries(np.asarray(series.array))
    return _array(series, name)


def _array(series: pd.Series, name: str | None) -> pa.Array | pa.ChunkedArray:
    """Arrow values of a column; objects of several types become text, value by value."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        categories = _array(series.cat.categories.to_series(), name)
        categories = categories.combine_chunks() if isinstance(categories, pa.ChunkedArray) else categories
        codes = series.cat.codes.to_numpy()
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), categories)
    mixed = series.dtype == object and pd.api.types.infer_dtype(series, skipna=True).startswith("mixed")
    try:
        array = None if mixed else pa.array(series, from_pandas=True)
        if array is not None and not isinstance(array.type, pa.BaseExtensionType):
            return array
    except (
        pa.ArrowInvalid,
        pa.ArrowTypeError,
        pa.ArrowNotImplementedError,
        OverflowError,
        TypeError,
        ValueError,
    ):
        pass  # the values themselves have texts
    values = series.astype(object)
    if values.map(lambda value: isinstance(value, list | dict | tuple | set | np.ndarray)).any():
        if name is None:
            return pa.array([], pa.list_(pa.string()))
        raise SourceError(
            f"expected plain values in column {name!r}, got lists or the like in some rows. "
            "Give each visit one row and one value (DataFrame.explode)."
        )
    texts = [as_text(value) for value in values]
    return pa.array([None if text == MISSING else text for text in texts], pa.string())


def _geometries(geometries: Any) -> pa.Array:
    """Points as (x, y), when all are; otherwise well-known binary."""
    kinds = shapely.get_type_id(geometries)
    there = kinds >= 0
    if (kinds[there] == 0).all():
        there &= ~shapely.is_empty(geometries)
        xy = np.full((2, len(kinds)), np.nan)
        xy[:, there] = shapely.get_x(geometries[there]), shapely.get_y(geometries[there])
        return pa.StructArray.from_arrays(list(map(pa.array, xy)), fields=list(POINT), mask=pa.array(~there))
    return pa.array(shapely.to_wkb(geometries, output_dimension=2), pa.binary())


@dataclass(frozen=True, slots=True, eq=False)
class ArrowSource:
    """A pyarrow Table, or anything that exports an Arrow stream. A RecordBatchReader can be read once."""

    frame: Any
    schema: pa.Schema
    columns: Mapping[str, pa.DataType]
    repeated: frozenset[str]
    geometry: str | None
    crs: CRS | None

    @classmethod
    def open(cls, frame: Any) -> ArrowSource:
        """The frame, its schema read."""
        schema = frame.schema if isinstance(frame, pa.Table | pa.RecordBatch | pa.RecordBatchReader) else None
        if schema is None:
            try:
                schema = _reader(frame).schema
            except pa.ArrowInvalid:
                raise SourceError(
                    f"expected a table of visits with named columns, got {_called(frame)}."
                ) from None
        columns, repeated = distinct_columns(schema.names, schema.types)
        return cls(frame, schema, columns, repeated, *declared_geometry(schema, _called(frame)))

    def held(self) -> ArrowSource:
        """The same rows in memory, for whoever reads them more than once."""
        if isinstance(self.frame, pa.Table | pa.RecordBatch):
            return self
        try:
            return ArrowSource.open(_reader(self.frame).read_all())
        except (OSError, pa.ArrowInvalid) as error:
            raise SourceError(f"{self.name} cannot be read to its end: {error}.") from error

    @property
    def name(self) -> str:
        """As messages call it."""
        return _called(self.frame)

    def digest(self) -> None:
        """None: there is no file."""

    def batches(self, columns: Sequence[str], rows_per_batch: int | None) -> Iterator[pa.Table]:
        """The rows with these columns; see `Source`."""
        rows_per_batch = checked_rows(rows_per_batch)
        schema = pa.schema([self.schema.field(column) for column in columns])
        try:
            reader = _reader(self.frame)
            yield from regroup((batch.select(columns) for batch in reader), schema, rows_per_batch)
        except (OSError, pa.ArrowInvalid) as error:
            raise SourceError(f"{self.name} cannot be read to its end: {error}.") from error

    def row_numbers(self, positions: IntArray) -> IntArray:
        """1-based row numbers."""
        return positions + 1


def _called(frame: Any) -> str:
    kind = type(frame)
    return f"the {kind.__module__.split('.')[0].lstrip('_')} {kind.__name__}"


def _reader(frame: Any) -> pa.RecordBatchReader:
    if isinstance(frame, pa.RecordBatchReader):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(frame.schema, [frame])
    return pa.RecordBatchReader.from_stream(frame)
