"""Releases in the file format of their name: GeoPackage, GeoParquet, GeoJSON, FlatGeobuf, CSV of counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from . import geopackage, geoparquet, onelayer
from .errors import UsageError, did_you_mean

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
        It cannot be written; what stood there before still stands.
    """
    format_of(path).write(release, path, overwrite=overwrite)


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
    return format_of(path).read(path)


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
