"""Releases in the file format of their name: GeoPackage, GeoParquet, GeoJSON, FlatGeobuf, CSV of counts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from . import geopackage, geoparquet, onelayer
from .columns import release_tables
from .errors import SourceError, UsageError, WriteError, did_you_mean, listed

if TYPE_CHECKING:
    from .release import Release


@dataclass(frozen=True, slots=True)
class Format:
    """A file format: what it is called, how a release is written in it and read back."""

    name: str
    write: Callable[..., None]
    read: Callable[[str | Path], Release]


FORMATS = {
    ".gpkg": Format("GeoPackage", geopackage.write_release, geopackage.read_release),
    ".parquet": Format("GeoParquet", geoparquet.write_release, geoparquet.read_release),
    ".geoparquet": Format("GeoParquet", geoparquet.write_release, geoparquet.read_release),
    ".geojson": Format("GeoJSON", onelayer.write_geojson, onelayer.read_geojson),
    ".fgb": Format("FlatGeobuf", onelayer.write_flatgeobuf, onelayer.read_flatgeobuf),
    ".csv": Format("CSV of counts", onelayer.write_counts, onelayer.read_counts),
}
"""The formats by extension. A GeoPackage holds all of a release, the others one table of it."""


def write(release: Release, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a release in the format of the path's extension, and its metadata as JSON beside it.

    Raises
    ------
    UsageError
        The extension is none of `FORMATS`, or a file exists and `overwrite` is False.
    WriteError
        A table was given another column, zones were taken away or added, or the file cannot be written; what stood
        there before still stands.
    """
    chosen = format_of(path)
    _check_as_made(release)
    chosen.write(release, path, overwrite=overwrite)


def read_release(path: str | Path) -> Release:
    """The release in a file that geodiv wrote.

    ``metadata["not_carried"]`` lists what the format does not carry, when there is anything.

    Parameters
    ----------
    path : path
        Ends in one of `FORMATS`.

    Raises
    ------
    UsageError
        The extension is none of `FORMATS`.
    SourceError
        The file is missing, or no release of geodiv.

    Examples
    --------
    >>> import geodiv as gd
    >>> outcome = gd.read_run("fixtures/policy.toml").enforce("fixtures/visits.parquet")
    >>> outcome.release.to_file("read-release.gpkg", overwrite=True)
    >>> len(gd.read_release("read-release.gpkg").cells)
    77
    """
    release = format_of(path).read(path)
    _check_tables(release, path)
    _check_attributes(release, path)
    return release


_ALWAYS = {
    "cells": ("cell_id", "members", "n_members", "persons", "remedy"),
    "counts": ("cell_id", "attribute", "value", "level"),
    "taxonomy": ("attribute", "value"),
    "reference": ("attribute", "level", "value", "share"),
}
"""Columns that hold something in every row."""


def _check_as_made(release: Release) -> None:
    """Raise where a table was given another column, which no gate has looked at, or zones come or gone."""
    zones = release.metadata.get("zones", len(release.cells))
    if len(release.cells) != zones and "not_carried" not in release.metadata:
        raise WriteError(
            f"release.cells: expected its {zones} zones, got {len(release.cells)}. A release is published whole, since "
            "what it leaves out was checked too: change a copy, release.cells.copy()."
        )
    named = [f"{record['column']}_level" for record in release.metadata.get("attributes", [])]
    levels = [name for name in release.taxonomy.columns if re.fullmatch(r"level\d+", str(name))]
    for name, table in release_tables(named or release.cells.columns, levels).items():
        frame = getattr(release, name)
        known = {column.name for column in table.columns} | {getattr(frame, "_geometry_column_name", None)}
        if other := [column for column in frame.columns if column not in known]:
            raise WriteError(
                f"release.{name}: expected the columns of a release, got also {listed(other)}. What is published is "
                f"what was checked: join other columns to a copy, release.{name}.copy()."
            )


def _check_tables(release: Release, path: str | Path) -> None:
    """Raise unless rows have what each has, no figure is below 0, no share above 1, and zones have ids and outlines."""
    for name, columns in _ALWAYS.items():
        frame = getattr(release, name)
        if empty := [column for column in columns if frame[column].isna().any()]:
            raise SourceError(f"table '{name}' of '{path}': expected no gaps in {listed(empty)}, got some.")
        for column in frame.columns.intersection(["persons", "n_members", "area_m2", "level", "share"]):
            if (frame[column] < 0).any() or (column == "share" and (frame[column] > 1).any()):
                raise SourceError(
                    f"table '{name}' of '{path}': column '{column}' holds figures that cannot be."
                )
    if not release.cells["cell_id"].is_unique:
        raise SourceError(
            f"table 'cells' of '{path}': expected each zone once, got a cell_id in several rows."
        )
    outlines = getattr(release.cells, "geometry", None)
    if outlines is not None and (outlines.isna() | outlines.is_empty).any():
        raise SourceError(f"expected an outline for every zone of '{path}', got zones without.")


def _check_attributes(release: Release, path: str | Path) -> None:
    """Raise unless the zones have the columns of the attributes that the metadata names, at levels that it names."""
    cells = release.cells
    for record in release.metadata.get("attributes", []):
        names = [f"{record['column']}_{column}" for column in ("level", "top", "effective", "reference")]
        if lacking := [name for name in names if name not in cells.columns]:
            raise SourceError(
                f"expected the columns {listed(names)} in the layer of '{path}', as its metadata names that attribute, "
                f"got none called {listed(lacking)}."
            )
        if cells[names[0]].isna().any() or not cells[names[0]].between(0, len(record["levels"]) - 1).all():
            raise SourceError(
                f"column '{names[0]}' in '{path}': expected levels that its metadata names, got others."
            )


def format_of(path: str | Path) -> Format:
    """The format of a path's extension, whatever its case.

    Raises
    ------
    UsageError
        The extension is none of `FORMATS`.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise UsageError(
            f"expected a file name that ends in {', '.join(FORMATS)}; got '{Path(path).name}'."
            f"{did_you_mean(suffix, FORMATS)}"
        )
    return FORMATS[suffix]
