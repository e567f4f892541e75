"""GeoPackages: the public release, the internal work file, and reading a release back."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import geopandas as gpd
import pandas as pd
import pyarrow as pa
import pyogrio
from pyogrio import errors as ogr

from .atomic import replacing
from .columns import Table, as_read, check_text, release_tables, typed, work_tables
from .errors import SourceError, WriteError
from .extensions import Dress, Layer, describe
from .metadata import parsed
from .shares import shares_tables
from .sidecar import read_json, sidecar, to_json
from .targets import check_ending

if TYPE_CHECKING:
    from .release import Release

RELEASE_URI = "urn:geodiv:release"
WORK_URI = "urn:geodiv:work"
OGR_ERRORS = (ogr.DataSourceError, ogr.DataLayerError, ogr.FeatureError, ogr.FieldError, ogr.GeometryError)


def write_release(release: Release, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a release as GeoPackage, and its metadata as JSON beside it.

    Parameters
    ----------
    release : Release
        Anything with cells, counts, taxonomy, reference and metadata.
    path : path
        The JSON gets the same name with the suffix .json.
    overwrite : bool, default False
        Whether the two files may exist.

    Raises
    ------
    UsageError
        A file exists and `overwrite` is False.
    WriteError
        It cannot be written; what stood there before still stands.

    Notes
    -----
    Layer ``cells``, a layer ``shares_<column>`` for each attribute, and the tables ``counts``, ``taxonomy``,
    ``reference``. Bytes are the same for the same release when SOURCE_DATE_EPOCH is set.
    """
    metadata = to_json(release.metadata)
    title = str(release.metadata.get("title") or "geodiv release")
    abstract = str(release.metadata.get("abstract") or "")
    tables = release_tables(release.cells.columns, release.taxonomy.columns)
    cells = _layer(release.cells, tables["cells"], title, abstract)
    counts, taxonomy, reference = (
        _layer(getattr(release, name), tables[name], f"{title}: {name}", tables[name].description)
        for name in ("counts", "taxonomy", "reference")
    )
    wide = [
        _layer(frame, table, f"{title}: {table.title}", table.description)
        for frame, table in shares_tables(release.cells, release.counts)
    ]
    layers = [cells, *wide, counts, taxonomy, reference]
    with replacing(sidecar(path), path, overwrite=overwrite) as (beside, file), failing(path):
        beside.write_text(metadata, encoding="utf-8", newline="\n")
        _write(file, layers, Dress("release", RELEASE_URI, metadata, release.metadata))


def check_work(path: str | Path | None) -> None:
    """Raise a UsageError unless a work file's name, if there is one, ends in .gpkg."""
    check_ending("a work file", path, (".gpkg",))


def write_work(
    layer: pd.DataFrame,
    scores: pd.DataFrame,
    final_scores: pd.DataFrame | None,
    rounds: pd.DataFrame | None,
    intake: pd.DataFrame,
    path: str | Path,
    *,
    title: str,
    metadata: Mapping[str, Any],
    overwrite: bool = False,
) -> None:
    """Write the internal work file: every occupied cell and its scores. Never for publication.

    Parameters
    ----------
    layer : (cells,) GeoDataFrame, or DataFrame when the grid has no geometry
        One row an occupied cell, the layer ``cells``.
    scores, final_scores, rounds, intake : DataFrame
        The tables of those names; None for a table that there is not yet, which is then written empty.
    title : str
        Title of the layer; it is put after the word INTERNAL.
    metadata : mapping
        Written into the file as JSON under `WORK_URI`.

    Raises
    ------
    UsageError, WriteError
        As for `write_release`; or the name does not end in .gpkg.
    """
    check_work(path)
    text = to_json(metadata)
    tables = work_tables(layer.columns)
    title = f"INTERNAL {title}"
    abstract = f"{_INTERNAL} {metadata.get('abstract') or ''}".strip()
    layers = [_layer(layer, tables["cells"], title, abstract)]
    given = {"scores": scores, "final_scores": final_scores, "rounds": rounds, "intake": intake}
    for name, frame in given.items():
        table = tables[name]
        if frame is None:
            frame = pd.DataFrame({c.name: pd.Series(dtype=object) for c in table.columns})
        flat = pd.DataFrame(
            frame.drop(columns=frame.geometry.name) if isinstance(frame, gpd.GeoDataFrame) else frame
        )
        layers.append(_layer(flat, table, f"{title}: {name}", f"{_INTERNAL} {table.description}"))
    with replacing(path, overwrite=overwrite) as (file,), failing(path):
        _write(file, layers, Dress("work", WORK_URI, text, metadata))


_INTERNAL = "Internal: failing cells and their figures. Not for publication."


def read_release(path: str | Path) -> Release:
    """The release in a GeoPackage that `write_release` wrote.

    Raises
    ------
    SourceError
        The file is missing, or no release of geodiv.

    Notes
    -----
    The metadata is read from the GeoPackage; when the JSON beside it is missing or belongs to another release,
    ``metadata["not_carried"]`` says so.
    """
    from .release import Release

    path = Path(path)
    metadata = _stored_metadata(path)
    cells = _read_layer(path, "cells")
    tables = release_tables(cells.columns, ())
    counts, taxonomy, reference = (_read_layer(path, name) for name in ("counts", "taxonomy", "reference"))
    if notes := _compare(sidecar(path), metadata):
        metadata["not_carried"] = notes
    return Release(
        cells=as_read(cells, tables["cells"]),
        counts=as_read(counts, tables["counts"]),
        taxonomy=as_read(taxonomy, release_tables((), taxonomy.columns)["taxonomy"]),
        reference=as_read(reference, tables["reference"]),
        metadata=metadata,
    )


def _layer(frame: pd.DataFrame, table: Table, title: str, abstract: str) -> Layer:
    check_text([title, abstract], f"title or abstract of '{table.name}'")
    if not isinstance(frame, gpd.GeoDataFrame):
        data, table = typed(frame, table)
        return Layer(data, table, title, abstract)
    data, table = typed(pd.DataFrame(frame.drop(columns=frame.geometry.name)), table)
    located = gpd.GeoDataFrame(data, geometry=frame.geometry.to_numpy(), crs=frame.crs)
    return Layer(located.rename_geometry("geom"), table, title, abstract)


def _write(file: Path, layers: list[Layer], dress: Dress) -> None:
    now = written_at()
    with gdal_options(GDAL_PAM_ENABLED="NO", OGR_CURRENT_DATE=now, OGR_SQLITE_SYNCHRONOUS="OFF"):
        for layer in layers:
            options: dict[str, Any] = {
                "layer_options": {"IDENTIFIER": layer.title, "DESCRIPTION": layer.abstract}
            }
            if isinstance(layer.frame, gpd.GeoDataFrame):
                options |= {"geometry_type": "MultiPolygon", "promote_to_multi": True}
            if not file.exists():
                options |= {"dataset_options": {"VERSION": "1.3"}}
            pyogrio.write_dataframe(
                layer.frame, file, layer=layer.table.name, driver="GPKG", use_arrow=True, **options
            )
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        for pragma in (
            "secure_delete=ON",
            "temp_store=MEMORY",
            "synchronous=OFF",
        ):  # synced once, before replacing
            database.execute(f"PRAGMA {pragma}").fetchall()
        for layer in layers:
            (rows,) = database.execute(f"SELECT count(*) FROM {quoted(layer.table.name)}").fetchone()
            if rows != len(layer.frame):
                raise WriteError(
                    f"table '{layer.table.name}': expected {len(layer.frame)} rows on the disk, got {rows}."
                )
        database.execute("BEGIN")
        describe(database, layers, dress, now)
        database.execute("COMMIT")
        database.execute("VACUUM")


def written_at() -> str:
    """The time written into files, UTC: SOURCE_DATE_EPOCH when it is set, else now."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.fromtimestamp(int(epoch), UTC) if epoch.strip().isdigit() else datetime.now(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def quoted(name: str) -> str:
    """A table or column name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def gdal_options(**options: str) -> Iterator[None]:
    """GDAL's configuration with these options, and as it was afterwards."""
    former = {name: pyogrio.get_gdal_config_option(name) for name in options}
    pyogrio.set_gdal_config_options(options)
    try:
        yield
    finally:
        pyogrio.set_gdal_config_options(former)


@contextmanager
def failing(path: str | Path) -> Iterator[None]:
    """What SQLite and GDAL raise while they write `path`, as a WriteError that says what to do."""
    try:
        yield
    except (sqlite3.Error, *OGR_ERRORS) as error:
        # SQLite inside GDAL seldom says that the disk is full, but it is while the half-written file is still there
        full = shutil.disk_usage(Path(path).absolute().parent).free < 2**16
        raise WriteError(
            f"'{path}' cannot be written: {'the disk is full' if full else error}. Check that there is room and that "
            "the folder may be written. Nothing was changed."
        ) from error


def _stored_metadata(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise SourceError(f"expected a release at '{path}', got no such file. Check the path.")
    query = "SELECT md_standard_uri, metadata FROM gpkg_metadata WHERE md_standard_uri LIKE 'urn:geodiv:%'"
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            found = dict(database.execute(query).fetchall())
        if WORK_URI in found:
            raise SourceError(
                f"expected a release in '{path}', got an internal work file. Give the release's file."
            )
        text = found[RELEASE_URI]
    except (sqlite3.Error, KeyError) as error:
        raise SourceError(
            f"expected a GeoPackage that geodiv released in '{path}', got another kind of file. "
            "Give one that `geodiv enforce` wrote."
        ) from error
    return parsed(text, f"'{path}'")


@contextmanager
def reading(what: str) -> Iterator[None]:
    """What OGR says of a file that it cannot read becomes a SourceError that says what was expected."""
    try:
        yield
    except OGR_ERRORS as error:
        raise SourceError(f"expected {what}, got: {error}.") from error
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise SourceError(f"expected {what}, got text that is no UTF-8. The file is damaged.") from error


def _read_layer(path: Path, name: str) -> Any:
    with reading(f"a table '{name}' in '{path}'"):
        return pyogrio.read_dataframe(path, layer=name, use_arrow=True)


def _compare(beside: Path, metadata: dict[str, Any]) -> list[str]:
    stored = read_json(beside)
    if stored is None:
        return [f"{beside.name}: there is no such file beside the release"]
    return (
        []
        if stored == metadata
        else [f"{beside.name}: it belongs to another release than the file beside it"]
    )
