"""Releases in the file format of their name: GeoPackage, GeoParquet, GeoJSON, FlatGeobuf, CSV of counts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import geopackage
from .errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from .release import Release

FORMATS = {".gpkg": geopackage}


def write(release: Release, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a release in the format of the path's extension, and its metadata as JSON beside it.

    Raises
    ------
    UsageError
        The extension is none of `FORMATS`, or a file exists and `overwrite` is False.
    WriteError
        It cannot be written; what stood there before still stands.
    """
    _format(path).write_release(release, path, overwrite=overwrite)


def read_release(path: str | Path) -> Release:
    """The release in a file that `write` wrote.

    ``metadata["not_carried"]`` lists what the format does not carry, when there is anything.

    Raises
    ------
    UsageError
        The extension is none of `FORMATS`.
    SourceError
        The file is missing, or no release of geodiv.
    """
    release: Release = _format(path).read_release(path)
    return release


def _format(path: str | Path) -> Any:
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise UsageError(
            f"expected a file name that ends in {', '.join(FORMATS)}; got '{Path(path).name}'."
            f"{did_you_mean(suffix, FORMATS)}"
        )
    return FORMATS[suffix]
