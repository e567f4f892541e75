"""GeoParquet 1.1: the published zones as one columnar file, with the metadata inside and beside it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import geopandas as gpd
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from .errors import SourceError
from .metadata import parsed
from .partial import located_cells, partial_release, write_with_json
from .sources.source import first_line

if TYPE_CHECKING:
    from .release import Release

KEY = b"geodiv"
"""Key of the metadata in the file's footer."""


def write_release(release: Release, path: str | Path, *, overwrite: bool = False) -> None:
    """Write the zones of a release as GeoParquet 1.1 (zstd, bounding boxes as covering), and the JSON beside it.

    Zones without outlines become a plain Parquet file. Counts, taxonomy and reference are not carried.

    Raises
    ------
    UsageError
        A file exists and `overwrite` is False.
    WriteError
        It cannot be written; what stood there before still stands.
    """
    cells, _ = located_cells(release)

    def write(file: Path, text: str) -> None:
        buffer = io.BytesIO()
        if isinstance(cells, gpd.GeoDataFrame):
            cells.to_parquet(buffer, index=False, schema_version="1.1.0", write_covering_bbox=True)
        else:
            cells.to_parquet(buffer, index=False)
        table = pq.read_table(pa.BufferReader(buffer.getbuffer()))
        footer = {**(table.schema.metadata or {}), KEY: text.encode()}
        pq.write_table(table.replace_schema_metadata(footer), file, compression="zstd")

    write_with_json(release, path, overwrite, write)


def read_release(path: str | Path) -> Release:
    """The release in a file that `write_release` wrote, as far as it carries one.

    Raises
    ------
    SourceError
        The file is missing, or no release of geodiv.
    """
    path = Path(path)
    metadata = _footer(path)
    try:
        cells = _cells(path)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise SourceError(
            f"expected the zones of a release in '{path}', got: {first_line(error)}."
        ) from error
    return partial_release(path, cells=cells.drop(columns="bbox", errors="ignore"), metadata=metadata)


def _cells(path: Path) -> pd.DataFrame:
    try:
        return gpd.read_parquet(path)
    except ValueError:  # no outlines
        return pd.read_parquet(path)


def _footer(path: Path) -> dict[str, Any]:
    try:
        footer = pq.read_schema(path).metadata or {}
        text = footer[KEY]
    except FileNotFoundError:
        raise SourceError(f"expected a release at '{path}', got no such file. Check the path.") from None
    except (OSError, KeyError, ValueError) as error:
        raise SourceError(
            f"expected a GeoParquet file that geodiv released in '{path}', got another kind of file. "
            "Give one that `geodiv enforce` wrote."
        ) from error
    return parsed(text, f"'{path}'")
