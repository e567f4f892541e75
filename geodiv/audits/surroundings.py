"""What a stranger can tell of a zone's surroundings: the published zones around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import geopandas as gpd
import numpy as np
import shapely
from scipy import sparse

from ..arrays import CSR, BoolArray
from ..grids.column import ColumnGrid
from ..grids.h3 import H3Grid
from ..grids.square import SquareGrid
from ..release import Release
from .published import member_ids


class Surroundings:
    """Published zones within some steps of each other. It remembers what it was asked.

    Parameters
    ----------
    release : Release
        Steps are those of its grid; between zones of the user's own, touching outlines.
    """

    def __init__(self, release: Release) -> None:
        members = member_ids(release)
        self._zones = len(members)
        self._release = release
        self._grid = grid_of(release.metadata.get("grid", {}))
        row = np.repeat(np.arange(len(members)), [len(m) for m in members])
        ids, cell = np.unique([cell for zone in members for cell in zone], return_inverse=True)
        keys = self._grid.parse(ids.astype(object)) if self._grid is not None else np.zeros(0)
        good = known_keys(keys) if self._grid is not None else np.ones(len(ids), bool)
        self._keys = keys[good] if self._grid is not None else keys
        at = (np.cumsum(good) - 1)[cell]
        own = good[cell]
        self._inside = CSR((np.ones(own.sum()), (row[own], at[own])), shape=(len(members), int(good.sum())))
        self._found: dict[int, CSR] = {}

    def within(self, order: int) -> CSR:
        """(zones, zones) sparse: share of each other zone's cells that lie within `order` steps of each zone."""
        if order not in self._found:
            self._found[order] = self._of_cells(order) if self._grid is not None else self._of_outlines(order)
        return self._found[order]

    def _of_cells(self, order: int) -> CSR:
        assert self._grid is not None
        near = self._grid.neighbours(self._keys, order)
        reached = CSR(((self._inside @ near) > 0).astype(float))
        reached = CSR(reached - reached.multiply(self._inside))
        sizes = np.maximum(np.asarray(self._inside.sum(axis=1)).ravel(), 1)
        return CSR((reached @ self._inside.T).multiply(1 / sizes[None, :]))

    def _of_outlines(self, order: int) -> CSR:
        cells = self._release.cells
        if not isinstance(cells, gpd.GeoDataFrame):
            return CSR((self._zones, self._zones))
        shapes = np.asarray(cells.geometry)
        i, j = shapely.STRtree(shapes).query(shapes, predicate="intersects")
        touching = CSR((np.ones(len(i)), (i, j)), shape=(self._zones,) * 2)
        reached = CSR(sparse.identity(self._zones, format="csr"))
        for _ in range(order):
            reached = CSR(((reached @ touching) > 0).astype(float))
        reached.setdiag(0)
        reached.eliminate_zeros()
        return reached


def known_keys(keys: Any) -> BoolArray:
    """(keys,) whether each is a cell."""
    return np.array([key is not None and (isinstance(key, str) or key >= 0) for key in keys], dtype=bool)


def grid_of(described: Mapping[str, Any]) -> Any:
    """The grid that a release describes; None for zones of the user's own, whose layer it does not hold."""
    kind = described.get("kind")
    if kind == "h3":
        return H3Grid(described["resolution"])
    if kind == "square":
        return SquareGrid(described["size"], described["crs"])
    return ColumnGrid(described["column"], described.get("resolution")) if kind == "column" else None
