"""A grid from outside geodiv: rectangles of a fixed number of degrees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely
from scipy import sparse


@dataclass(frozen=True)
class DegreeGrid:
    """Rectangles of `step` degrees, counted from 180 degrees west and 90 degrees south."""

    step: float
    kind: str = "degrees"
    column: str | None = None
    crs: str | None = "EPSG:4326"

    @property
    def _columns(self) -> int:
        return round(360 / self.step)

    def _moved(self, key: int, rows: int, columns: int) -> int:
        """The key so many rows north and columns east, around the globe; beyond a pole, one that no cell has."""
        row, column = divmod(key, self._columns)
        return (row + rows) * self._columns + (column + columns) % self._columns

    def locate(self, x: Any, y: Any) -> Any:
        """Key of each point: its row times the number of columns, plus its column."""
        column = np.minimum((np.asarray(x) + 180) // self.step, self._columns - 1)
        row = np.minimum((np.asarray(y) + 90) // self.step, round(180 / self.step) - 1)
        return (row * self._columns + column).astype(np.int64)

    def ids(self, keys: Any) -> Any:
        """Texts such as ``r14480c18200``."""
        return np.array([f"r{key // self._columns}c{key % self._columns}" for key in keys], dtype=object)

    def keys(self, ids: Any) -> Any:
        """The inverse of `ids`."""
        pairs = [text[1:].split("c") for text in ids]
        return np.array([int(row) * self._columns + int(column) for row, column in pairs], dtype=np.int64)

    def parse(self, ids: Any) -> Any:
        """This grid is located by coordinates."""
        return self.keys(ids)

    def geometry(self, keys: Any) -> Any:
        """Boxes."""
        west = keys % self._columns * self.step - 180
        south = keys // self._columns * self.step - 90
        return shapely.box(west, south, west + self.step, south + self.step)

    def neighbours(self, keys: Any, order: int, centres: Any = None) -> sparse.csr_array:
        """Keys at most `order` rows and columns away, also across 180 degrees."""
        centres = np.arange(len(keys)) if centres is None else centres
        position = {key: i for i, key in enumerate(keys.tolist())}
        steps = [
            (r, c) for r in range(-order, order + 1) for c in range(-order, order + 1) if (r, c) != (0, 0)
        ]
        found = [
            (i, position[key])
            for i, centre in enumerate(keys[centres].tolist())
            for key in {self._moved(centre, r, c) for r, c in steps} - {centre}
            if key in position
        ]
        rows, columns = np.array(found, dtype=np.int64).reshape(-1, 2).T
        return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(centres), len(keys)))

    def area(self, keys: Any) -> Any:
        """Square metres, on a sphere."""
        south = np.radians(keys // self._columns * self.step - 90)
        height = np.sin(south + np.radians(self.step)) - np.sin(south)
        return 6_371_007.2**2 * np.radians(self.step) * height

    def describe(self) -> dict[str, Any]:
        """For the metadata."""
        return {"kind": self.kind, "step": self.step, "crs": self.crs}
