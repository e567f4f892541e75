"""Vector files that GDAL reads: GeoPackage, Shapefile, GeoJSON, FlatGeobuf and the like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyogrio
from pyogrio.errors import DataLayerError, DataSourceError
from pyproj import CRS

from ..errors import SourceError, did_you_mean, listed
from .parquet import declared_crs
from .source import (
    UNREADABLE,
    IntArray,
    checked_rows,
    digest_of_several,
    distinct_columns,
    file_digest,
    first_line,
    name_of,
    regroup,
)

UNDEFINED = ("undefined", "unknown")
"""How the names of the CRS begin by which GeoPackage says that there is none."""
STYLES = "layer_styles"
"""A table in which QGIS keeps styles; never visits."""


@dataclass(frozen=True, slots=True)
class VectorSource:
    """One layer of a vector file, with or without geometry."""

    path: Path
    layer: str
    columns: Mapping[str, pa.DataType]
    repeated: frozenset[str]
    geometry: str | None
    crs: CRS | None

    @classmethod
    def open(cls, path: Path, layer: str | None = None) -> VectorSource:
        """The layer, its schema read; a file with several layers needs a name."""
        if not path.exists():
            raise SourceError(f"expected a file at {name_of(path)}, got none. Check the path.")
        try:
            layers = [name for name, _ in pyogrio.list_layers(path).tolist() if name != STYLES]
            layer = _chosen(layers, layer, path)
            with pyogrio.open_arrow(path, layer=layer, use_pyarrow=True) as (meta, reader):
                schema = reader.schema
        except (DataSourceError, DataLayerError, ValueError, *UNREADABLE) as error:
            if isinstance(error, SourceError):
                raise
            raise SourceError(
                f"expected a vector file at {name_of(path)}, got: {first_line(error)}."
            ) from error
        columns, repeated = distinct_columns(schema.names, schema.types)
        geometry = (meta["geometry_name"] or "wkb_geometry") if meta["geometry_type"] is not None else None
        crs = declared_crs(meta["crs"], name_of(path))
        if crs is not None and crs.name.lower().startswith(UNDEFINED):
            crs = None
        return cls(path, layer, columns, repeated, geometry, crs)

    @property
    def name(self) -> str:
        """As messages call it."""
        return (
            name_of(self.path)
            if self.layer == self.path.stem
            else f"{name_of(self.path)} (layer '{self.layer}')"
        )

    def digest(self) -> str:
        """sha256 of the bytes; of names and digests for a folder, or a shapefile and its companions."""
        if self.path.is_dir():
            files = [file for file in self.path.rglob("*") if file.is_file()]
        elif self.path.suffix.lower() == ".shp":
            files = [
                file for file in self.path.parent.iterdir() if file.stem == self.path.stem and file.is_file()
            ]
            files = [
                file for file in files if file.suffix.lower() in (".shp", ".shx", ".dbf", ".prj", ".cpg")
            ]
        else:
            return file_digest(self.path)
        base = self.path if self.path.is_dir() else self.path.parent
        return digest_of_several((file.relative_to(base).as_posix(), file_digest(file)) for file in files)

    def batches(self, columns: Sequence[str], rows_per_batch: int | None) -> Iterator[pa.Table]:
        """The rows with these columns; see `Source`."""
        rows_per_batch = checked_rows(rows_per_batch)
        schema = pa.schema([pa.field(column, self.columns[column]) for column in columns])
        try:
            with pyogrio.open_arrow(
                self.path,
                layer=self.layer,
                columns=[column for column in columns if column != self.geometry],
                read_geometry=self.geometry in columns,
                batch_size=min(rows_per_batch or 1 << 16, 1 << 16),
                use_pyarrow=True,
            ) as (_, reader):
                parts = (pa.Table.from_batches([part]).select(columns) for part in reader)
                yield from regroup(parts, schema, rows_per_batch)
        except (DataSourceError, *UNREADABLE) as error:
            raise SourceError(f"{self.name} cannot be read to its end: {first_line(error)}.") from error

    def row_numbers(self, positions: IntArray) -> IntArray:
        """1-based row numbers."""
        return positions + 1


def _chosen(layers: Sequence[str], layer: str | None, path: Path) -> str:
    if layer is None and len(layers) == 1:
        return layers[0]
    if not layers:
        raise SourceError(f"expected a layer in {name_of(path)}, got a file without any.")
    if layer is None:
        raise SourceError(
            f"expected one layer in {name_of(path)}, got {len(layers)}: {listed(layers, 20)}. "
            f"Name one: layer = {layers[0]!r}, or '{path.name}|layername={layers[0]}'."
        )
    if layer not in layers:
        raise SourceError(
            f"expected the layer {layer!r} in {name_of(path)}, got: {listed(layers, 20)}."
            + did_you_mean(layer, layers)
        )
    return layer
