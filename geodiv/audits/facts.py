"""Facts: the visits themselves, read once more for an audit, and counted by data frames alone.

Nothing here is shared with the way in which a release is made but the reading of rows, the grid, and the
measures.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from ..arrays import IntArray
from ..attribute import Attribute
from ..grids.protocol import Grid, expect_grid
from ..intake import Intake, VisitSpec, whole
from ..labels import LabelSpace


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """Visits as codes, one row a visit. Personal data: it stays in the building.

    Parameters
    ----------
    grid : Grid
    attributes : tuple of Attribute
    spaces : tuple over attributes of LabelSpace
    cells : (cells,) object
        Ids of the occupied cells, sorted as text.
    keys : (cells,) int64 or object
        The grid's keys.
    cell, person : (visits,) int64
        Position of the cell, code of the person.
    values : tuple over attributes of (visits,) int64
        Codes into ``space.values``.
    intake : Intake
    """

    grid: Grid
    attributes: tuple[Attribute, ...]
    spaces: tuple[LabelSpace, ...]
    cells: NDArray[Any]
    keys: NDArray[Any]
    cell: IntArray = field(repr=False)
    person: IntArray = field(repr=False)
    values: tuple[IntArray, ...] = field(repr=False)
    intake: Intake

    @classmethod
    def read(
        cls,
        source: Any,
        *,
        grid: Grid,
        person: str,
        attributes: Sequence[Attribute],
        lon: str | None = None,
        lat: str | None = None,
        crs: str | None = None,
        on_bad_rows: Literal["error", "skip"] = "error",
        layer: str | None = None,
        points: Literal["only", "representative"] = "only",
    ) -> Facts:
        """The visits of a source; the keywords are those of `geodiv.tabulate`."""
        expect_grid(grid)
        spec = VisitSpec(
            person=person,
            grid=grid,
            attributes=attributes,  # type: ignore[arg-type]  # the spec makes a tuple of them
            lon=lon,
            lat=lat,
            crs=crs,
            on_bad_rows=on_bad_rows,
            layer=layer,
            points=points,
        )
        parts, intake = whole(source, spec)
        codes, keys = pd.factorize(np.concatenate([part.key for part in parts]))
        ids = np.asarray(grid.ids(np.asarray(keys)), dtype=object)
        order = np.array(sorted(range(len(ids)), key=lambda i: str(ids[i])), dtype=np.int64)
        rank = np.argsort(order)
        spaces, values = [], []
        for a, attribute in enumerate(spec.attributes):
            texts = _texts(part.values[a] for part in parts)
            space, value = _recognised(attribute, texts)
            spaces.append(space)
            values.append(value)
        return cls(
            grid=grid,
            attributes=spec.attributes,
            spaces=tuple(spaces),
            cells=ids[order],
            keys=np.asarray(keys)[order],
            cell=rank[codes] if len(codes) else codes.astype(np.int64),
            person=np.asarray(_texts(part.person for part in parts).cat.codes, dtype=np.int64),
            values=tuple(values),
            intake=intake,
        )

    def persons(self, zone: IntArray, zones: int) -> IntArray:
        """(zones,) distinct persons; `zone` is (cells,) int64, the zone of each cell or -1."""
        return self._count(zone, np.zeros(len(self.cell), dtype=np.int64), zones, 1)[:, 0]

    def counts(self, attribute: int, level: int, zone: IntArray, zones: int) -> IntArray:
        """(zones, labels) distinct persons of each label of a level; `zone` as for `persons`."""
        space = self.spaces[attribute]
        return self._count(zone, space.up[level][self.values[attribute]], zones, len(space.levels[level]))

    def touched(self, attribute: int, zone: IntArray, zones: int) -> IntArray:
        """(zones,) distinct persons with any value of the sensitive tier that incidence looks at."""
        certain = self.spaces[attribute].certain[0][self.values[attribute]]
        return self._count(zone, np.where(certain, 0, -1), zones, 1)[:, 0]

    def visits(self, attribute: int, zone: IntArray, zones: int) -> IntArray:
        """(zones, values) rows of each value, however few persons they are of."""
        at = zone[self.cell] >= 0
        frame = pd.DataFrame({"zone": zone[self.cell][at], "label": self.values[attribute][at]})
        return _table(frame, zones, len(self.spaces[attribute].values))

    def _count(self, zone: IntArray, label: IntArray, zones: int, labels: int) -> IntArray:
        at = (zone[self.cell] >= 0) & (label >= 0)
        rows = pd.DataFrame({"zone": zone[self.cell][at], "label": label[at], "person": self.person[at]})
        return _table(rows.drop_duplicates(), zones, labels)


def _table(rows: pd.DataFrame, zones: int, labels: int) -> IntArray:
    out = np.zeros((zones, labels), dtype=np.int64)
    sizes = rows.groupby(["zone", "label"]).size()
    out[sizes.index.get_level_values(0), sizes.index.get_level_values(1)] = sizes.to_numpy()
    return out


def _texts(columns: Iterable[pa.DictionaryArray]) -> pd.Series[Any]:
    """Rows of several batches as one categorical column."""
    merged = pa.chunked_array(list(columns)).unify_dictionaries()
    codes = np.concatenate([chunk.indices.to_numpy(zero_copy_only=False) for chunk in merged.chunks])
    return pd.Series(pd.Categorical.from_codes(codes, merged.chunk(0).dictionary.to_pylist()))


def _recognised(attribute: Attribute, texts: pd.Series[Any]) -> tuple[LabelSpace, IntArray]:
    texts = texts.cat.remove_unused_categories()
    values = attribute.recognise(list(texts.cat.categories))
    space = attribute.space(values)
    position = {value: i for i, value in enumerate(space.values)}
    code = np.array([position[value] for value in values], dtype=np.int64)
    return space, code[texts.cat.codes.to_numpy()] if len(code) else np.zeros(0, dtype=np.int64)


def as_zones(facts: Facts, members: Sequence[Sequence[str]]) -> IntArray:
    """(cells,) the zone of each occupied cell, -1 for none; `members` are ids as a release writes them."""
    written = pd.Series(facts.cells.astype(str)).str.replace(r"\s", "%20", regex=True)
    position = {cell: i for i, cell in enumerate(written)}
    zone = np.full(len(facts.cells), -1, dtype=np.int64)
    for z, cells in enumerate(members):
        for cell in cells:
            if cell in position:
                zone[position[cell]] = z
    return zone
