"""Grid: the few vectorised questions that every grid answers.

A grid gives each visit a **key**: an int64 (-1 = no place), or for a `ColumnGrid` a text (None = no place).
Keys are for arrays; ids are the texts that are written in files. A grid is immutable.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..errors import expect

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
TextArray = NDArray[np.object_]
Keys = NDArray[Any]
Geometries = NDArray[np.object_]

NOWHERE = -1
"""The integer key of a visit that lies in no cell."""


@runtime_checkable
class Grid(Protocol):
    """What the rest of geodiv asks of a grid."""

    @property
    def kind(self) -> str:
        """``h3``, ``square``, ``zones`` or ``column``."""
        ...

    @property
    def column(self) -> str | None:
        """Column of the visits that holds their cell ids; None when they are located by coordinates."""
        ...

    @property
    def crs(self) -> str | None:
        """CRS of the coordinates given to `locate` and of `geometry`; None for a grid without geometry."""
        ...

    def locate(self, x: FloatArray, y: FloatArray) -> Keys:
        """Key of the cell of each point.

        Parameters
        ----------
        x, y : (points,) float64
            Coordinates in `crs` (longitude and latitude when it is geographic), finite and in its range.

        Returns
        -------
        (points,) int64
            -1 where no cell holds the point. A point is in one cell at most, whatever the order of the rows.
        """
        ...

    def parse(self, ids: TextArray) -> Keys:
        """Keys of ids as the visits carry them.

        Parameters
        ----------
        ids : (ids,) object
            Texts by the rules of `geodiv.text.as_text`; None is allowed.

        Returns
        -------
        (ids,) int64 or object
            -1, or None for a column grid, where the text is not an id of this grid.
        """
        ...

    def ids(self, keys: Keys) -> TextArray:
        """Ids of keys as they are written: (keys,) object of str."""
        ...

    def keys(self, ids: TextArray) -> Keys:
        """Keys of ids that this grid wrote: the inverse of `ids`."""
        ...

    def geometry(self, keys: Keys) -> Geometries | None:
        """Outlines in `crs`: (keys,) object of shapely (Multi)Polygon; None when the grid has none."""
        ...

    def neighbours(self, keys: Keys, order: int, centres: IntArray | None = None) -> sparse.csr_array:
        """Which keys lie within `order` steps of which.

        Parameters
        ----------
        keys : (cells,) int64 or object
            Distinct keys; only these can be neighbours, but steps may lead across other cells.
        order : int
            Steps, at least 0.
        centres : (centres,) int64, optional
            Positions in `keys` of the cells whose neighbours are asked for; None asks for all.

        Returns
        -------
        (centres, cells) sparse float64 of 0 and 1
            Symmetric when all are asked for. A cell is no neighbour of its own; an isolated one has no entry.
        """
        ...

    def area(self, keys: Keys) -> FloatArray:
        """Areas: (keys,) float64, m2; nan for a grid without geometry."""
        ...

    def describe(self) -> dict[str, Any]:
        """What a release says of its grid: plain values that JSON can hold, ``kind`` first."""
        ...


def expect_grid(grid: Any) -> None:
    """Raise a UsageError unless this is a grid."""
    expect(grid, Grid, "grid", "Such as H3Grid(8), a SquareGrid, ZoneGrid or ColumnGrid.")
