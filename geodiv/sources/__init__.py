"""Opening any input as Arrow tables: files of visits by their format, frames by their type."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from ..errors import SourceError, did_you_mean
from .csvfile import CsvSource
from .frames import ArrowSource, PandasSource
from .parquet import ParquetSource
from .several import FileSource, SeveralSource
from .source import Described, Source, name_of, need
from .vector import VectorSource

__all__ = ["Described", "Source", "files_of", "need", "open_source"]

TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".txt", ".txt.gz")
PARQUET = (".parquet", ".geoparquet", ".pq")
VECTOR = (
    ".gpkg",
    ".shp",
    ".geojson",
    ".json",
    ".geojsonl",
    ".fgb",
    ".gdb",
    ".gml",
    ".kml",
    ".sqlite",
    ".shp.zip",
)
READABLE = "CSV (.csv, .tsv, also .gz), Parquet, GeoParquet, GeoPackage, Shapefile, GeoJSON, FlatGeobuf"


def open_source(source: Any, layer: str | None = None) -> Source:
    """The input, opened: its columns and CRS are known, its rows not yet read.

    Parameters
    ----------
    source : str, path, list of paths, frame or Source
        A file (CSV, also ``.gz``; Parquet, GeoParquet; GeoPackage, Shapefile, GeoJSON, FlatGeobuf), ``"-"``
        for a CSV on standard input, a glob, a folder, or ``file.gpkg|layername=x``. Or a GeoDataFrame,
        DataFrame, pyarrow Table, RecordBatch or RecordBatchReader (read once), or anything that exports an
        Arrow stream (polars, DuckDB).
    layer : str, optional
        Layer of a vector file.

    Returns
    -------
    Source
        An opened source is returned as it is.

    Raises
    ------
    SourceError
        Nothing there, another format, several layers and none named, a damaged file.

    Examples
    --------
    >>> visits = open_source(pd.DataFrame({"person": ["a"], "lon": [16.3], "lat": [48.2]}))
    >>> list(visits.columns)
    ['person', 'lon', 'lat']
    """
    if isinstance(source, str | os.PathLike):
        return _open_paths(os.fspath(source), layer)
    if isinstance(source, list | tuple) and all(isinstance(path, str | os.PathLike) for path in source):
        if not source:
            raise SourceError("expected at least one file of visits, got an empty list.")
        return _several(f"{len(source)} files", [Path(path) for path in source], layer)
    opened = _open_frame(source)
    if layer is not None and not isinstance(source, VectorSource | SeveralSource):
        raise _no_layers(opened, layer)
    return opened


def files_of(path: str) -> list[Path]:
    """The files that a path of visits stands for, there or not; none for standard input and for an address.

    Parameters
    ----------
    path : str
        As for `open_source`.

    Raises
    ------
    SourceError
        A folder without files of visits, or a layer that is not named as it must be.
    """
    if path == "-" or "://" in path:
        return []
    text, _ = _layer_in(path, None)
    file = Path(text)
    if _is_folder(file):
        return _in_folder(file)
    return [file] if file.exists() or not glob.has_magic(text) else _matching(text)


def _open_frame(source: Any) -> Source:
    if isinstance(source, pd.DataFrame):
        return PandasSource.open(source)
    if isinstance(source, pa.RecordBatch) or hasattr(source, "__arrow_c_stream__"):
        return ArrowSource.open(source)
    if isinstance(
        source, CsvSource | ParquetSource | VectorSource | SeveralSource | PandasSource | ArrowSource
    ):
        return source
    hint = " Call .collect() first." if hasattr(source, "collect") else ""
    raise SourceError(
        "expected visits as a path, a GeoDataFrame, a DataFrame, or anything that exports an Arrow stream, "
        f"got {type(source).__name__}.{hint}"
    )


def _open_paths(text: str, layer: str | None) -> Source:
    if text == "-":
        return _open_file(None, layer)
    if "://" in text:
        raise SourceError(f"expected a path to a file, got the address {text!r}. Download it first.")
    text, layer = _layer_in(text, layer)
    path = Path(text)
    if _is_folder(path):
        return _several(f"the folder {name_of(path)}", _in_folder(path), layer)
    if not path.exists() and glob.has_magic(text):
        paths = _matching(text)
        if not paths:
            raise SourceError(f"expected files that match '{text}', got none. Check the path.")
        return _several(f"'{text}'", paths, layer)
    return _open_file(path, layer)


def _is_folder(path: Path) -> bool:
    """Whether a path is a folder of files; a file geodatabase is one file."""
    return path.is_dir() and path.suffix.lower() != ".gdb"


def _matching(pattern: str) -> list[Path]:
    return [Path(found) for found in sorted(glob.glob(pattern, recursive=True))]


def _layer_in(text: str, layer: str | None) -> tuple[str, str | None]:
    """Path and layer of ``file.gpkg|layername=x``."""
    path, bar, option = text.partition("|")
    if not bar or Path(text).exists():
        return text, layer
    key, _, named = option.partition("=")
    if key.strip().lower() != "layername" or not named or "|" in named:
        raise SourceError(f"expected 'file.gpkg|layername=NAME', got {text!r}.")
    if layer is not None and layer != named:
        raise SourceError(
            f"expected one layer, got {named!r} in the path and {layer!r} beside it. Drop one of them."
        )
    return path, named


def _in_folder(folder: Path) -> list[Path]:
    """Files of visits in a folder and the folders below, by path, but for hidden ones and text files."""
    found = [
        path
        for path in sorted(folder.rglob("*"))
        if path.name.lower().endswith((*TEXT[:4], *PARQUET, *VECTOR))
        and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]
    if not found:
        raise SourceError(
            f"expected files of visits in the folder {name_of(folder)}, got none. Readable: {READABLE}."
        )
    return found


def _several(name: str, paths: Iterable[Path], layer: str | None) -> Source:
    parts = [_open_file(path, layer) for path in paths]
    return parts[0] if len(parts) == 1 else SeveralSource.open(name, parts)


def _open_file(path: Path | None, layer: str | None) -> FileSource:
    name = "" if path is None else path.name.lower()
    if path is not None and not path.exists():
        raise SourceError(f"expected a file at {name_of(path)}, got none. Check the path.{_beside(path)}")
    if name.endswith(VECTOR) and path is not None:
        return VectorSource.open(path, layer)
    if path is not None and path.is_dir():
        raise SourceError(f"expected a file at {name_of(path)}, got a folder.")
    opened: FileSource
    if path is None or name.endswith(TEXT):
        opened = CsvSource.open(path)
    elif name.endswith(PARQUET):
        opened = ParquetSource.open(path)
    else:
        raise SourceError(f"expected a format that geodiv reads, got {name_of(path)}. Readable: {READABLE}.")
    if layer is not None:
        raise _no_layers(opened, layer)
    return opened


def _beside(path: Path) -> str:
    return did_you_mean(path.name, os.listdir(path.parent)) if path.parent.is_dir() else ""


def _no_layers(source: Source, layer: str) -> SourceError:
    return SourceError(
        f"expected a file with layers, such as a GeoPackage, for layer {layer!r}, got {source.name}."
    )
