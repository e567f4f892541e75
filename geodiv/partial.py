"""A release as far as one table and the JSON beside it carry it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import geopandas as gpd
import pandas as pd

from .atomic import replacing
from .columns import Table, as_read, release_tables, typed
from .errors import SourceError
from .sidecar import read_json, sidecar, to_json

if TYPE_CHECKING:
    from .release import Release


def write_with_json(
    release: Release, path: str | Path, overwrite: bool, write: Callable[[Path, str], None]
) -> None:
    """Write a file by `write` (given a temporary path and the JSON's text) and the JSON beside it, or neither."""
    text = to_json(release.metadata)
    with replacing(sidecar(path), path, overwrite=overwrite) as (beside, file):
        beside.write_text(text, encoding="utf-8", newline="\n")
        write(file, text)


def located_cells(release: Release) -> tuple[pd.DataFrame, Table]:
    """The cells typed for writing, with their outlines when they have any, and their table."""
    cells = release.cells
    table = release_tables(cells.columns, ())["cells"]
    if not isinstance(cells, gpd.GeoDataFrame):
        return typed(cells, table)
    data, table = typed(pd.DataFrame(cells.drop(columns=cells.geometry.name)), table)
    return gpd.GeoDataFrame(data, geometry=cells.geometry.to_numpy(), crs=cells.crs), table


def partial_release(
    path: Path,
    *,
    cells: pd.DataFrame | None = None,
    counts: pd.DataFrame | None = None,
    metadata: dict[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> Release:
    """A Release of what was found: tables not found are empty, and ``metadata["not_carried"]`` names them.

    Parameters
    ----------
    path : Path
        The file that was read; the JSON is looked for beside it unless `metadata` is given.
    cells, counts : DataFrame, optional
        As read; their columns are completed and typed.
    notes : sequence of str
        What else the format does not carry.
    """
    from .release import Release

    missing = [name for name, frame in (("cells", cells), ("counts", counts)) if frame is None]
    if metadata is None:
        metadata = read_json(sidecar(path))
        if metadata is None:
            notes = (*notes, f"metadata: there is no '{sidecar(path).name}' beside the file")
    metadata = dict(metadata or {})
    attributes = [str(record["column"]) for record in metadata.get("attributes") or ()]
    found = [*(() if cells is None else cells.columns), *(f"{name}_level" for name in attributes)]
    tables = release_tables(dict.fromkeys(found), ())
    metadata["not_carried"] = [*missing, "taxonomy", "reference", *notes]
    return Release(
        cells=_complete(cells, tables["cells"]),
        counts=_complete(counts, tables["counts"]),
        taxonomy=_complete(None, tables["taxonomy"]),
        reference=_complete(None, tables["reference"]),
        metadata=metadata,
    )


def _complete(frame: pd.DataFrame | None, table: Table) -> pd.DataFrame:
    if frame is None:
        frame = pd.DataFrame()
    for column in table.columns:
        if column.name not in frame.columns:
            if len(frame):
                raise SourceError(f"expected a release's {table.name}, got a table without '{column.name}'.")
            frame[column.name] = pd.Series([], dtype=object)
    names = [column.name for column in table.columns]
    rest = [name for name in frame.columns if name not in names]
    return as_read(frame[[*names, *rest]].copy(), table)
