"""ColumnGrid: the visits carry the ids of their cells, and nothing else is known about these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from . import h3
from .adjacency import checked_order
from .protocol import NOWHERE, FloatArray, Geometries, IntArray, TextArray


@dataclass(frozen=True, slots=True)
class ColumnGrid:
    """Cells named by a column of the visits. Keys are the ids themselves, as text.

    When all keys of a call are ids of H3 cells of one resolution, they have the geometry, neighbours and
    areas of H3. Otherwise there is no geometry, no neighbour, and areas are nan.

    Parameters
    ----------
    column : str
        Column of the visits that holds the ids.
    resolution : int, optional
        H3 resolution that the ids must have; without it any text but an empty one is an id.

    Examples
    --------
    >>> grid = ColumnGrid("cell")
    >>> grid.parse(np.array(["c-41", "882A100D67FFFFF", " "], dtype=object))
    array(['c-41', '882a100d67fffff', None], dtype=object)
    >>> grid.neighbours(np.array(["c-41", "c-58"], dtype=object), 1).nnz
    0
    """

    column: str
    resolution: int | None = None

    def __post_init__(self) -> None:
        if self.resolution is not None:
            object.__setattr__(self, "resolution", h3.checked_resolution(self.resolution))

    @property
    def kind(self) -> str:
        """``column``."""
        return "column"

    @property
    def crs(self) -> str:
        """``EPSG:4326``, that of H3 cells; other ids have no geometry."""
        return h3.CRS

    def locate(self, x: FloatArray, y: FloatArray) -> TextArray:
        """None for each point: (points,) object. A column grid knows cells by their ids only."""
        return np.full(len(x), None, dtype=object)

    def parse(self, ids: TextArray) -> TextArray:
        """Keys of ids: (ids,) object of str, None where there is no id.

        Hexadecimal H3 ids come out as 15 characters in lower case, so that one cell has one id. A decimal
        number stays as it is, unless a resolution says that it is an H3 id. Other texts stay as they are, but
        for white space around them.
        """
        cells = h3.parse_cells(ids)
        texts = np.empty(len(ids), dtype=object)
        texts[:] = [(text.strip() or None) if text is not None else None for text in ids]
        if self.resolution is None:
            known = (cells != NOWHERE) & ~_decimal(texts)
        else:
            known = h3.resolution_of(cells) == self.resolution
            texts[~known] = None
        texts[known] = h3.format_cells(cells[known])
        return texts

    def ids(self, keys: TextArray) -> TextArray:
        """The keys themselves: (keys,) object of str."""
        return np.asarray(keys, dtype=object).copy()

    def keys(self, ids: TextArray) -> TextArray:
        """The ids themselves: (ids,) object of str."""
        return np.asarray(ids, dtype=object).copy()

    def geometry(self, keys: TextArray) -> Geometries | None:
        """Outlines in EPSG:4326, (keys,) object, if all keys are H3 cells of one resolution; else None."""
        cells = _cells(keys)
        return None if cells is None else h3.outlines(cells)

    def neighbours(self, keys: TextArray, order: int, centres: IntArray | None = None) -> sparse.csr_array:
        """Which keys lie within `order` steps of which: (centres, cells) sparse, empty without H3 cells."""
        cells = _cells(keys)
        if cells is not None:
            return h3.disks(cells, order, centres)
        checked_order(order)
        return sparse.csr_array((len(keys) if centres is None else len(centres), len(keys)), dtype=np.float64)

    def area(self, keys: TextArray) -> FloatArray:
        """Areas: (keys,) float64, m2; nan unless all keys are H3 cells of one resolution."""
        cells = _cells(keys)
        return np.full(len(keys), np.nan) if cells is None else h3.areas(cells)

    def describe(self) -> dict[str, Any]:
        """Kind, column and, when it was declared, the H3 resolution."""
        stated = {} if self.resolution is None else {"resolution": self.resolution}
        return {"kind": self.kind, "column": self.column, **stated}


def _decimal(texts: TextArray) -> Any:
    """Whether each text is a decimal number that could be a 64-bit H3 id: (texts,) bool."""
    numbers = (t is not None and len(t) == 18 and t.isdigit() for t in texts)
    return np.fromiter(numbers, dtype=bool, count=len(texts))


def _cells(keys: TextArray) -> IntArray | None:
    """The H3 cells that the keys are; None unless all are cells of one resolution, each once."""
    cells = h3.parse_cells(keys)
    resolutions = np.unique(h3.resolution_of(cells))
    if len(resolutions) != 1 or resolutions[0] < 0 or len(np.unique(cells)) != len(cells):
        return None
    return cells
