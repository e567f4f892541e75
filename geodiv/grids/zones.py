"""ZoneGrid: the user's own polygons, each with an id.

Keys are positions in the ids sorted as text, so they do not depend on the order of the layer's rows.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse

from ..errors import GridError
from .adjacency import among, checked_order, within
from .crs import metres_per_unit, read_crs
from .layer import Layer, checked_layer, read_layer
from .points import distinct
from .protocol import NOWHERE, FloatArray, Geometries, IntArray, TextArray

if TYPE_CHECKING:
    import geopandas as gpd
    import shapely

Contiguity = Literal["queen", "rook"]


@dataclass(frozen=True, eq=False)
class ZoneGrid:
    """Zones of a polygon layer.

    Parameters
    ----------
    frame : GeoDataFrame
        Polygons with a CRS. It is read once and never written to.
    id : str
        Its column of ids: unique, compared and written as text.
    column : str, optional
        Column of the visits that holds the ids; without it they are located by their coordinates.
    contiguity : {"queen", "rook"}
        Which zones are neighbours: those that share a point, or those that share a stretch of border.
    tolerance : float
        Metres. Zones this near are taken to touch, and an overlap no wider than this to be a sliver.

    Attributes
    ----------
    names : (zones,) object of str
        Ids, sorted as text.
    shapes : (zones,) object of Polygon or MultiPolygon
        Outlines in `crs`, in the order of `names`; invalid ones are repaired.
    crs : str
        CRS of the layer.
    repaired : tuple of str
        Ids of the zones whose outlines were repaired.
    notes : tuple of str
        What was done to the layer, in words that name no zone.

    Raises
    ------
    GridError
        No CRS, ids missing or repeated, other geometries than polygons, or overlaps that are no slivers. A
        sliver takes at most 1 % of the smaller zone, or is no wider than `tolerance`.

    Notes
    -----
    A point on a border, or in a sliver, lies in the zone whose id is smallest as text. A point in a gap
    between zones lies in none.

    On a clean coverage the neighbours are those of ``libpysal.graph.Graph.build_contiguity(strict=True)``.
    That one leaves out neighbours that a gap or a sliver separates; here they count ("rook": when the border
    of one runs within `tolerance` of the other for more than ten times as long). Nothing reaches across 180
    degrees.

    Examples
    --------
    >>> import geopandas, shapely
    >>> squares = shapely.box([0, 1, 5], 0, [1, 2, 6], 1)
    >>> frame = geopandas.GeoDataFrame({"zone": ["a", "b", "c"]}, geometry=squares, crs="EPSG:32618")
    >>> grid = ZoneGrid(frame, id="zone")
    >>> grid.locate(np.array([0.5, 1.0, 1.5, 3.0]), np.array([0.5, 0.5, 0.5, 0.5]))
    array([ 0,  0,  1, -1])
    >>> grid.neighbours(np.arange(3), 1).toarray()
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 0.]])
    """

    frame: InitVar[gpd.GeoDataFrame]
    id: str
    column: str | None = None
    contiguity: Contiguity = "queen"
    tolerance: float = 1.0
    names: TextArray = field(init=False, repr=False)
    shapes: Geometries = field(init=False, repr=False)
    crs: str = field(init=False)
    repaired: tuple[str, ...] = field(init=False, repr=False)
    notes: tuple[str, ...] = field(init=False)

    def __post_init__(self, frame: gpd.GeoDataFrame) -> None:
        if self.contiguity not in ("queen", "rook"):
            raise GridError(f"Zone contiguity: expected 'queen' or 'rook', got {self.contiguity!r}.")
        if isinstance(self.tolerance, bool) or not 0 <= self.tolerance < np.inf:
            raise GridError(f"Zone tolerance: expected metres, at least 0, got {self.tolerance!r}.")
        layer: Layer = checked_layer(frame, self.id, self.tolerance)
        for name, value in layer._asdict().items():
            object.__setattr__(self, name, value)

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        id: str,
        layer: str | None = None,
        column: str | None = None,
        contiguity: Contiguity = "queen",
        tolerance: float = 1.0,
    ) -> ZoneGrid:
        """The zones of a file: GeoPackage, Shapefile, GeoJSON, FlatGeobuf or GeoParquet.

        Parameters
        ----------
        path : str or Path
            ``file.gpkg|layername=x`` names the layer too.
        layer : str, optional
            Needed when the file holds several.
        """
        return cls(read_layer(path, layer), id, column, contiguity, tolerance)

    @property
    def kind(self) -> str:
        """``zones``."""
        return "zones"

    def locate(self, x: FloatArray, y: FloatArray) -> IntArray:
        """Key of the zone that holds each point: (points,) int64, -1 outside all of them.

        Parameters
        ----------
        x, y : (points,) float64
            Coordinates in `crs`.
        """
        import shapely

        points = distinct(x, y)
        if points is not None:
            x, y = x[points.first], y[points.first]
        point, zone = self._tree.query(shapely.points(x, y))
        holds = shapely.intersects_xy(self.shapes[zone], x[point], y[point])
        point, zone = point[holds], zone[holds]
        keys = np.full(len(x), len(self.names), dtype=np.int64)
        np.minimum.at(keys, point, zone)
        keys[keys == len(self.names)] = NOWHERE
        return keys if points is None else keys[points.code]

    def parse(self, ids: TextArray) -> IntArray:
        """Keys of zone ids: (ids,) int64, -1 where no zone has the id; white space around it is no matter."""
        known = {name: key for key, name in enumerate(self.names)}
        bare = {name.strip(): key for name, key in known.items()}
        keys = (NOWHERE if t is None else known.get(t, bare.get(t.strip(), NOWHERE)) for t in ids)
        return np.fromiter(keys, dtype=np.int64, count=len(ids))

    def ids(self, keys: IntArray) -> TextArray:
        """Ids of keys: (keys,) object of str."""
        return self.names[keys]

    def keys(self, ids: TextArray) -> IntArray:
        """Keys of ids of this layer: (ids,) int64."""
        return self.parse(ids)

    def geometry(self, keys: IntArray) -> Geometries:
        """Outlines in `crs`: (keys,) object of Polygon or MultiPolygon."""
        return self.shapes[keys]

    def neighbours(self, keys: IntArray, order: int, centres: IntArray | None = None) -> sparse.csr_array:
        """Which zones lie within `order` steps of contiguity, also across zones that are not among the keys.

        Returns
        -------
        (centres, cells) sparse float64 of 0 and 1
            Islands keep their empty row.
        """
        keys = np.asarray(keys, dtype=np.int64)
        centres = np.arange(len(keys)) if centres is None else np.asarray(centres, dtype=np.int64)
        near = within(self._contiguous, checked_order(order), keys[centres]).tocoo()
        return among(keys, centres, near.row.astype(np.int64), near.col.astype(np.int64))

    def area(self, keys: IntArray) -> FloatArray:
        """Areas: (keys,) float64, m2; on the ellipsoid if the CRS is geographic, otherwise in its plane."""
        import shapely
        from pyproj import Geod

        shapes, crs = self.shapes[keys], read_crs(self.crs)
        if not crs.is_geographic:
            return np.asarray(shapely.area(shapes) * metres_per_unit(crs) ** 2, dtype=np.float64)
        globe = crs.get_geod() or Geod(ellps="WGS84")
        areas = (abs(globe.geometry_area_perimeter(shape)[0]) for shape in shapely.orient_polygons(shapes))
        return np.fromiter(areas, dtype=np.float64, count=len(shapes))

    def describe(self) -> dict[str, Any]:
        """Kind, column of ids, number of zones, contiguity, tolerance and CRS; no zone is named."""
        return {
            "kind": self.kind,
            "id": self.id,
            "column": self.column,
            "zones": len(self.names),
            "contiguity": self.contiguity,
            "tolerance_m": self.tolerance,
            "crs": self.crs,
            "notes": list(self.notes),
        }

    @cached_property
    def _tree(self) -> shapely.STRtree:
        import shapely

        shapely.prepare(self.shapes)
        return shapely.STRtree(self.shapes)

    @cached_property
    def _contiguous(self) -> sparse.csr_array:
        """Zones that touch: (zones, zones) sparse of 0 and 1, symmetric, without self."""
        import shapely

        reach = self.tolerance / metres_per_unit(read_crs(self.crs))
        one, other = self._tree.query(self.shapes, predicate="dwithin", distance=reach)
        one, other = one[one < other], other[one < other]
        if self.contiguity == "rook":
            share = shapely.relate_pattern(self.shapes[one], self.shapes[other], "****1****")
            border = shapely.boundary(self.shapes[one[~share]])
            along = shapely.intersection(border, shapely.buffer(self.shapes[other[~share]], reach))
            share[~share] = shapely.length(along) > 10 * reach
            one, other = one[share], other[share]
        pairs = (np.concatenate([one, other]), np.concatenate([other, one]))
        return sparse.csr_array((np.ones(2 * len(one)), pairs), shape=(len(self.names),) * 2)
