"""Files of a single table: GeoJSON and FlatGeobuf of the published zones, CSV of the counts."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import geopandas as gpd
import pandas as pd
import pyogrio

from .columns import release_tables, typed
from .errors import SourceError, UsageError
from .geopackage import failing, gdal_options, reading
from .partial import located_cells, partial_release, write_with_json
from .spreadsheet import guarded, unguarded

if TYPE_CHECKING:
    from .release import Release

_MOVED = "crs: the outlines are in EPSG:4326"


def write_geojson(release: Release, path: str | Path, *, overwrite: bool = False) -> None:
    """Write the zones of a release as GeoJSON (RFC 7946: EPSG:4326, 7 decimals), and the JSON beside it.

    Counts, taxonomy and reference are not carried.

    Raises
    ------
    UsageError
        The zones have no outlines, or a file exists and `overwrite` is False.
    WriteError
        It cannot be written; what stood there before still stands.
    """
    cells = _outlined(release, path).to_crs("EPSG:4326")
    options = {"RFC7946": "YES", "DESCRIPTION": str(release.metadata.get("abstract") or "")}
    _write_layer(release, path, overwrite, cells, "GeoJSON", options)


def write_flatgeobuf(release: Release, path: str | Path, *, overwrite: bool = False) -> None:
    """Write the zones of a release as FlatGeobuf with its spatial index, and the JSON beside it.

    Counts, taxonomy and reference are not carried. Raises as `write_geojson` does.
    """
    cells = _outlined(release, path)
    metadata = release.metadata
    options = {
        "SPATIAL_INDEX": "YES" if len(cells) else "NO",
        "TITLE": str(metadata.get("title") or "geodiv release"),
    }
    options["DESCRIPTION"] = str(metadata.get("abstract") or "")
    _write_layer(release, path, overwrite, cells, "FlatGeobuf", options)


def write_counts(release: Release, path: str | Path, *, overwrite: bool = False) -> None:
    """Write the counts of a release as CSV (UTF-8; hidden counts are empty), and the JSON beside it.

    Zones, taxonomy and reference are not carried.

    Raises
    ------
    UsageError
        A file exists and `overwrite` is False.
    WriteError
        It cannot be written; what stood there before still stands.
    """
    counts, table = typed(release.counts, release_tables((), ())["counts"])

    def write(file: Path, text: str) -> None:
        with file.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(
                stream, lineterminator="\r\n"
            )  # RFC 4180; a lone carriage return is quoted too
            writer.writerow([column.name for column in table.columns])
            writer.writerows(_safe(counts).itertuples(index=False))

    write_with_json(release, path, overwrite, write)


def read_geojson(path: str | Path) -> Release:
    """The release in a file that `write_geojson` wrote, as far as it carries one.

    Raises
    ------
    SourceError
        The file is missing, or no release of geodiv.
    """
    return _read_layer(path, DATE_AS_STRING="YES", NATIVE_DATA="NO")


def read_flatgeobuf(path: str | Path) -> Release:
    """The release in a file that `write_flatgeobuf` wrote, as far as it carries one; raises as `read_geojson`."""
    return _read_layer(path)


def read_counts(path: str | Path) -> Release:
    """The release in a file that `write_counts` wrote, as far as it carries one; raises as `read_geojson`."""
    path = Path(path)
    names = [column.name for column in release_tables((), ())["counts"].columns]
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            header, *rows = list(csv.reader(stream)) or [[]]
    except FileNotFoundError:
        raise SourceError(f"expected a release at '{path}', got no such file. Check the path.") from None
    except (OSError, ValueError, csv.Error) as error:
        raise SourceError(f"expected the counts of a release in '{path}', got: {error}.") from error
    if header != names or any(len(row) != len(names) for row in rows):
        raise SourceError(f"expected the columns {', '.join(names)} in '{path}', got another table.")
    counts = pd.DataFrame(rows, columns=names, dtype=object)
    counts[_TEXTS] = counts[_TEXTS].map(unguarded)
    figures = ["level", "persons", "share"]
    counts[figures] = counts[figures].replace({"": None})
    return partial_release(path, counts=counts)


_TEXTS = ["cell_id", "attribute", "value"]


def _safe(counts: pd.DataFrame) -> pd.DataFrame:
    """The counts as texts and numbers, nulls empty; no text that a spreadsheet would run."""
    shown = counts.astype(object).where(counts.notna(), "")
    shown[_TEXTS] = shown[_TEXTS].map(guarded)
    return shown


def _outlined(release: Release, path: str | Path) -> gpd.GeoDataFrame:
    cells, _ = located_cells(release)
    if not isinstance(cells, gpd.GeoDataFrame):
        raise UsageError(
            f"'{Path(path).name}': the zones of this release have no outlines. Write .gpkg, .parquet or .csv."
        )
    return cells


def _write_layer(
    release: Release, path: str | Path, overwrite: bool, cells: Any, driver: str, options: dict[str, str]
) -> None:
    def write(file: Path, text: str) -> None:
        # in memory first: GDAL says nothing when the last bytes of a file find no room on the disk
        content = io.BytesIO()
        with failing(path), gdal_options(GDAL_PAM_ENABLED="NO"):
            pyogrio.write_dataframe(
                cells, content, layer="cells", driver=driver, use_arrow=True, layer_options=options,
                geometry_type="MultiPolygon", promote_to_multi=True,
            )  # fmt: skip
        file.write_bytes(content.getbuffer())

    write_with_json(release, path, overwrite, write)


def _read_layer(path: str | Path, **options: str) -> Release:
    path = Path(path)
    if not path.is_file():
        raise SourceError(f"expected a release at '{path}', got no such file. Check the path.")
    with reading(f"the zones of a release in '{path}'"):
        cells = pyogrio.read_dataframe(path, use_arrow=True, **options)
    if "cell_id" in cells.columns:
        cells = cells.sort_values("cell_id", ignore_index=True)
    return partial_release(path, cells=cells, notes=(_MOVED,) if options else ())
