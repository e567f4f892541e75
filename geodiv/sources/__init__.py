"""Opening any input as Arrow tables: files of visits by their format, frames by their type."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import SourceError
from .csvfile import CsvSource
from .frames import ArrowSource, PandasSource
from .parquet import ParquetSource
from .source import Source, need

__all__ = ["Source", "need", "open_source"]


def open_source(source: Any, layer: str | None = None) -> Source:
    """The input, opened: its columns and CRS are known, its rows not yet read."""
    if isinstance(source, pd.DataFrame):
        return PandasSource.open(source)
    if str(source) == "-":
        return CsvSource.open(None)
    if isinstance(source, str | os.PathLike):
        return CsvSource.open(Path(source)) if ".csv" in str(source) else ParquetSource.open(Path(source))
    return ArrowSource.open(source)
