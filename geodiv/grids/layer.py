"""A layer of zones as users have it: read, checked, repaired where safe, refused where not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import GridError, SourceError, did_you_mean, listed
from ..text import as_text
from .crs import crs_name, metres_per_unit, read_crs
from .protocol import Geometries, TextArray

if TYPE_CHECKING:
    import geopandas as gpd

SLIVER = 0.01
"""Share of the smaller zone up to which an overlap of two zones is a sliver, however wide."""


class Layer(NamedTuple):
    """A checked layer: the fields of `ZoneGrid` that come from it, in the order of ids as text."""

    names: TextArray
    shapes: Geometries
    crs: str
    repaired: tuple[str, ...]
    notes: tuple[str, ...]


def read_layer(path: str | Path, layer: str | None = None, what: str = "Zones") -> gpd.GeoDataFrame:
    """The polygon layer of a file.

    Parameters
    ----------
    path : str or Path
        GeoParquet by its suffix ``.parquet`` or ``.geoparquet``, otherwise whatever GDAL reads;
        ``file.gpkg|layername=x`` names the layer too.
    layer : str, optional
        Needed when the file holds several layers with geometry.
    what : str
        What messages call the layer.
    """
    import geopandas as gpd
    import pyogrio

    name, _, options = str(path).partition("|")
    named = dict(option.partition("=")[::2] for option in options.split("|") if option)
    layer = layer or named.get("layername")
    if not (name.startswith("/vsi") or "://" in name or Path(name).exists()):
        raise SourceError(f"{what}: no file {name!r}. Give the path of a polygon layer.")
    try:
        if Path(name).suffix.lower() in (".parquet", ".geoparquet"):
            return gpd.read_parquet(name)
        layers = [str(n) for n, kind in pyogrio.list_layers(name) if kind is not None]
        layer = _chosen(what, name, layer, layers)
        frame = gpd.read_file(name, layer=layer)
    except (ValueError, OSError, pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError) as error:
        if isinstance(error, SourceError):
            raise
        raise SourceError(f"{what}: {name!r} cannot be read as a polygon layer: {error}") from error
    return frame


def checked_layer(frame: gpd.GeoDataFrame, id: str, tolerance: float) -> Layer:
    """Ids and outlines of a layer of zones, sorted by id as text, or an error that says what is wrong.

    Parameters
    ----------
    frame : GeoDataFrame
        Polygons with a CRS.
    id : str
        Its column of ids.
    tolerance : float
        Metres up to which an overlap is no wider than a sliver.
    """
    import geopandas as gpd

    if not isinstance(frame, gpd.GeoDataFrame) or frame._geometry_column_name not in frame.columns:
        raise GridError(f"Zones: expected a GeoDataFrame of polygons, got a {type(frame).__name__} without.")
    if frame.crs is None:
        raise GridError(
            "Zones: the layer has no CRS. Declare the one its coordinates are in: frame.set_crs('EPSG:...')."
        )
    names = _ids(frame, id)
    order = np.argsort(names, kind="stable")
    names = names[order]
    shapes, repaired = _polygons(np.asarray(frame.geometry.array, dtype=object)[order], names)
    crs = crs_name(read_crs(frame.crs))
    slivers = _slivers(names, shapes, tolerance / metres_per_unit(read_crs(crs)))
    notes = {
        f"zones whose outline was not valid and has been repaired: {len(repaired)}": len(repaired),
        f"pairs of zones that overlap by a sliver, which counts for the smaller id: {slivers}": slivers,
    }
    for array in (names, shapes):
        array.setflags(write=False)
    return Layer(names, shapes, crs, tuple(repaired), tuple(note for note, some in notes.items() if some))


def _chosen(what: str, name: str, layer: str | None, layers: list[str]) -> str:
    """The layer to read, or an error that lists those there are."""
    if layer is not None and layer not in layers:
        raise SourceError(
            f"{what}: {name!r} has no layer {layer!r} with geometry.{did_you_mean(layer, layers)}"
            f" It has: {listed(layers)}."
        )
    if not layers:
        raise SourceError(f"{what}: {name!r} has no layer with geometry. Give a polygon layer.")
    if layer is None and len(layers) > 1:
        raise SourceError(
            f"{what}: {name!r} has several layers: {listed(layers)}. Name one: layer={layers[0]!r}."
        )
    return layer or layers[0]


def _ids(frame: gpd.GeoDataFrame, id: str) -> TextArray:
    """The ids as text: (zones,) object, unique."""
    columns = [str(c) for c in frame.columns if c != frame.geometry.name]
    if columns.count(str(id)) != 1:
        raise GridError(
            f"Zones: no column {id!r} for their ids.{did_you_mean(id, columns)} Columns: {listed(columns)}."
        )
    if not len(frame):
        raise GridError("Zones: the layer is empty. Give a layer with at least one polygon.")
    values = frame[id]
    names = np.empty(len(values), dtype=object)
    names[:] = [as_text(value) for value in values.tolist()]
    blank = values.isna().to_numpy() | np.array([not name.strip() for name in names])
    if blank.any():
        raise GridError(f"Zones: {blank.sum()} of {len(names)} have no {id!r}. Every zone needs an id.")
    distinct, counts = np.unique(names, return_counts=True)
    if len(distinct) < len(names):
        raise GridError(
            f"Zones: ids in {id!r} must be unique, but occur more than once: {listed(distinct[counts > 1])}."
            f" Dissolve the layer by {id!r}, or name another column."
        )
    return names


def _polygons(shapes: Geometries, names: TextArray) -> tuple[Geometries, list[str]]:
    """Valid flat (Multi)Polygons, and the ids of those that had to be repaired."""
    import shapely

    absent = shapely.is_missing(shapes) | shapely.is_empty(shapes)
    if absent.any():
        raise GridError(
            f"Zones without an outline: {listed(names[absent])}. Give each one, or leave the zone out."
        )
    other = ~_polygonal(shapes)
    if other.any():
        kinds = sorted({shape.geom_type for shape in shapes[other]})
        raise GridError(f"Zones must be polygons, but {listed(names[other])} are {', '.join(kinds)}.")
    shapes = shapely.force_2d(shapes)
    bad = ~shapely.is_valid(shapes)
    shapes[bad] = [_filled(shape) for shape in shapely.make_valid(shapes[bad])]
    flat = shapely.is_empty(shapes) | ~_polygonal(shapes)
    if flat.any():
        raise GridError(f"Zones without an area: {listed(names[flat])}. Correct them, or leave them out.")
    return shapes, names[bad].tolist()


def _polygonal(shapes: Geometries) -> NDArray[np.bool_]:
    """Which geometries are a Polygon or a MultiPolygon: (shapes,) bool."""
    import shapely

    surfaces = [shapely.GeometryType.POLYGON, shapely.GeometryType.MULTIPOLYGON]
    return np.isin(shapely.get_type_id(shapes), surfaces)


def _filled(shape: Any) -> Any:
    """The part of a repaired outline that has an area."""
    import shapely

    parts = shapely.get_parts(shapely.get_parts(shape))
    return shape if _polygonal(np.array([shape]))[0] else shapely.union_all(parts[_polygonal(parts)])


def _slivers(names: TextArray, shapes: Geometries, width: float) -> int:
    """Number of pairs of zones that overlap by a sliver; an error when two overlap by more.

    Parameters
    ----------
    width : float
        Width of a sliver in units of the CRS, for overlaps that take more than `SLIVER` of the smaller zone.
    """
    import shapely

    one, other = shapely.STRtree(shapes).query(shapes, predicate="intersects")
    one, other = one[one < other], other[one < other]
    inside = shapely.relate_pattern(shapes[one], shapes[other], "T********")
    one, other = one[inside], other[inside]
    shared = shapely.intersection(shapes[one], shapes[other])
    area = shapely.area(shapes)
    large = shapely.area(shared) > SLIVER * np.minimum(area[one], area[other])
    large[large] = ~shapely.is_empty(shapely.buffer(shared[large], -width / 2))
    if large.any():
        pairs = [f"{names[i]} and {names[j]}" for i, j in zip(one[large], other[large], strict=True)]
        raise GridError(
            f"Zones overlap: {listed(pairs)}. A place must lie in one zone: correct the layer, or allow wider"
            " slivers by a tolerance in metres."
        )
    return len(one)
