"""Maps of places: a layer of points or polygons, counted by cell and by the values of an attribute."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .attribute import Attribute, Nominal, Ordinal
from .errors import SourceError, did_you_mean, listed
from .grids.layer import read_layer
from .grids.protocol import Grid
from .places import Places
from .reference_files import read_table
from .text import MISSING, as_text

if TYPE_CHECKING:
    import geopandas as gpd

NO_GEOMETRY = "no geometry"
OUTSIDE = "outside the grid"
NO_VALUE = "a category without a value"


@dataclass(frozen=True, slots=True, eq=False)
class PlaceMap:
    """A map of places on a grid, which can be counted on another grid too.

    Parameters
    ----------
    places : Places
        On `grid`.
    grid : Grid
    count : callable
        The places on any grid.
    """

    places: Places
    grid: Grid
    count: Callable[[Grid], Places]

    @classmethod
    def read(cls, path: Path, grid: Grid, attribute: Attribute, **keywords: Any) -> PlaceMap:
        """The map in a file; keywords as for `read_places`."""
        frame = _read(path, keywords.pop("layer", None))

        def count(other: Grid) -> Places:
            return replace(read_places(frame, other, attribute, **keywords), name=path.name)

        return cls(count(grid), grid, count)

    def on(self, grid: Grid) -> Places:
        """The places by the cells of a grid."""
        return self.places if grid is self.grid else self.count(grid)


def read_places(
    source: str | Path | gpd.GeoDataFrame,
    grid: Grid,
    attribute: str | Attribute,
    *,
    column: str | Sequence[str],
    mapping: Mapping[str, str] | str | Path | None = None,
    layer: str | None = None,
    crs: str | None = None,
) -> Places:
    """How many places of each value of an attribute stand in each cell of a grid.

    Parameters
    ----------
    source : path or GeoDataFrame
        Points, lines or polygons, mixed if need be; each counts where its representative point lies.
    grid : Grid
        One that locates coordinates.
    attribute : str or Attribute
        Whose values the places are of. With a taxonomy or an order, other values than its own are an error.
    column : str or sequence of str
        Column of the category; of several, such as OpenStreetMap's amenity and shop, a place counts once for each
        value that any of them gives.
    mapping : mapping of str to str, or path of a CSV with the columns value and place, optional
        Category to value; ``amenity=cafe`` is the category cafe of the column amenity only. Without one, a category
        is the value of the same name. Categories without a value are tallied in ``Places.ignored``.
    layer : str, optional
        Layer of a file that has several.
    crs : str, optional
        CRS of the coordinates when the source does not say it.

    Raises
    ------
    SourceError
        The file, a column or the CRS is missing, no place has a value, or the grid cannot locate coordinates.

    Examples
    --------
    >>> import geodiv as gd, geopandas as gpd
    >>> spots = gpd.points_from_xy([2.0, 2.0], [54.8, 54.8])
    >>> shops = gpd.GeoDataFrame({"shop": ["cafe", "cafe"]}, geometry=spots, crs=4326)
    >>> gd.read_places(shops, gd.H3Grid(8), "poi_category", column="shop").total
    2
    """
    frame = _read(source, layer)
    name = Path(str(source).partition("|")[0]).name if isinstance(source, str | Path) else ""
    where = f"places '{name}'" if name else "places"
    frame = _located(frame, crs, where)
    columns = _columns(frame, column, where)
    table = _mapping(mapping, attribute)
    ids, ignored = _cells(frame, grid, where)
    inventory: dict[str, dict[str, int]] = {}
    texts = {c: [as_text(value) for value in frame[c].tolist()] for c in columns}
    for i, cell in enumerate(ids):
        values = set(_values(columns, [texts[c][i] for c in columns], table))
        if cell is None:
            continue
        if not values:
            ignored[NO_VALUE] = ignored.get(NO_VALUE, 0) + 1
        for value in values:
            counts = inventory.setdefault(cell, {})
            counts[value] = counts.get(value, 0) + 1
    if not inventory:
        tally = ", ".join(f"{reason}: {n}" for reason, n in sorted(ignored.items())) or "no row"
        raise SourceError(
            f"{where}: expected places with a value of '{_name(attribute)}' inside the grid, found none ({tally}). "
            "Map their categories to values with a CSV of value,place."
        )
    return Places(_name(attribute), inventory, name, ignored)


def _name(attribute: str | Attribute) -> str:
    return attribute if isinstance(attribute, str) else attribute.column


def _read(source: Any, layer: str | None) -> Any:
    if not isinstance(source, str | Path):
        return source
    path, _, _ = str(source).partition("|")
    if not Path(path).exists():
        raise SourceError(f"places: expected a layer of places at '{path}', got: no such file.")
    try:
        return read_layer(source, layer, "Places")
    except SourceError as error:
        raise SourceError(f"places: expected a layer of places at '{path}', got: {error}") from None


def _located(frame: Any, crs: str | None, where: str) -> gpd.GeoDataFrame:
    import geopandas as gpd

    if not isinstance(frame, gpd.GeoDataFrame) or frame._geometry_column_name not in frame.columns:
        raise SourceError(f"{where}: expected a layer with geometry, got a table without.")
    if frame.crs is None and crs is None:
        raise SourceError(f"{where}: the layer has no CRS. Say which one its coordinates are in (crs = ...).")
    return frame if frame.crs is not None else frame.set_crs(crs)


def _columns(frame: Any, column: str | Sequence[str], where: str) -> list[str]:
    columns = [column] if isinstance(column, str) else list(column)
    names = [str(c) for c in frame.columns if c != frame.geometry.name]
    if lacking := [c for c in columns if c not in names]:
        raise SourceError(
            f"{where}: expected the column {lacking[0]!r} of categories, it has {listed(names)}."
            f"{did_you_mean(lacking[0], names)}"
        )
    return columns


def _mapping(mapping: Any, attribute: str | Attribute) -> dict[str, str] | set[str] | None:
    """Category to value; the known values where each stands for itself; None where nothing is known."""
    known: set[str] | None = None
    if isinstance(attribute, Ordinal):
        known = set(attribute.order)
    elif not isinstance(attribute, str) and attribute.taxonomy is not None:
        known = set(attribute.taxonomy.values)
    if mapping is None:
        return known
    if isinstance(mapping, str | Path):
        table = read_table(Path(mapping), ["value", "place"])
        pairs = {as_text(p): as_text(v) for p, v in zip(table["place"], table["value"], strict=True)}
        twice = table.drop_duplicates()["place"]
        if again := sorted(set(twice[twice.duplicated()])):
            raise SourceError(f"expected one value a place in '{mapping}', got several for {listed(again)}.")
    else:
        pairs = {as_text(p): as_text(v) for p, v in mapping.items()}
    open_ended = isinstance(attribute, Nominal) and attribute.unknown == "own value"
    if known is not None and not open_ended and (strange := sorted(set(pairs.values()) - known)):
        raise SourceError(
            f"places of '{_name(attribute)}': {listed(strange)} not among its values."
            f"{did_you_mean(strange[0], known)}"
        )
    return pairs


def _values(
    columns: Sequence[str], texts: Sequence[str], table: dict[str, str] | set[str] | None
) -> Iterator[str]:
    """The values of one place: of its category in each column."""
    for column, text in zip(columns, texts, strict=True):
        if text == MISSING:
            continue
        if isinstance(table, dict):
            value = table.get(f"{column}={text}", table.get(text))
            if value is not None:
                yield value
        elif table is None or text in table:
            yield text


def _cells(frame: gpd.GeoDataFrame, grid: Grid, where: str) -> tuple[list[str | None], dict[str, int]]:
    """The cell id of each place, None for one that lies nowhere, and how many those are."""
    if grid.crs is None or grid.kind == "column":
        raise SourceError(
            f"{where}: expected a grid that locates coordinates (h3, square, zones), got kind {grid.kind!r}. Count the "
            "places by cell id and give them as Places."
        )
    shapes = frame.geometry
    there = np.flatnonzero(~(shapes.isna() | shapes.is_empty).to_numpy())
    points = shapes.iloc[there].representative_point().to_crs(grid.crs)
    x, y = points.x.to_numpy(), points.y.to_numpy()
    fine = np.isfinite(x) & np.isfinite(y)
    if points.crs is not None and points.crs.is_geographic:
        fine &= (np.abs(x) <= 180) & (np.abs(y) <= 90)
    keys = grid.locate(x[fine], y[fine])
    inside = np.asarray(keys != -1)
    ids: list[str | None] = [None] * len(frame)
    for place, cell in zip(there[fine][inside], grid.ids(keys[inside]), strict=True):
        ids[int(place)] = str(cell)
    ignored = {NO_GEOMETRY: len(frame) - len(there), OUTSIDE: len(there) - int(inside.sum())}
    return ids, {reason: n for reason, n in ignored.items() if n}
