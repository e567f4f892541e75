"""Points: visits read and encoded once, to be counted in cells of any size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import numpy as np
import pandas as pd
import pyarrow as pa

from ..arrays import FloatArray
from ..attribute import Attribute
from ..errors import UsageError
from ..grids.protocol import Grid, IntArray
from ..intake import VisitSpec, whole

X, Y, PERSON = "x", "y", "person"


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Distinct (person, point, values), each once, as an Arrow table of codes.

    Parameters
    ----------
    table : pyarrow Table
        Columns person, x, y, and one per attribute; texts are dictionaries.
    crs : str
    """

    table: pa.Table
    crs: str

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
    ) -> Points:
        """The visits of a source, in the CRS of a grid; the keywords are those of `geodiv.tabulate`.

        Raises
        ------
        UsageError
            The grid takes cell ids from a column: these cannot be cut anew (the cell of a point is not
            always the child of its cell one size up).
        """
        if grid.column is not None or grid.crs is None:
            raise UsageError(
                "a sweep over sizes needs coordinates, and this grid takes cell ids from the column "
                f"'{grid.column}'. Give lon and lat or a geometry, and a grid without a column."
            )
        recorder = Recorder(grid.crs)
        spec = VisitSpec(
            person=person,
            grid=cast(Grid, recorder),
            attributes=tuple(attributes),
            lon=lon,
            lat=lat,
            crs=crs,
            on_bad_rows=on_bad_rows,
            layer=layer,
            points=points,
        )
        parts, _ = whole(source, spec)
        x, y = (np.concatenate(axis) for axis in (recorder.x, recorder.y))
        texts = [_joined([part.person for part in parts])]
        texts += [_joined([part.values[a] for part in parts]) for a in range(len(spec.attributes))]
        rows = pd.DataFrame({i: column.indices.to_numpy() for i, column in enumerate(texts)}).assign(x=x, y=y)
        first = np.flatnonzero(~rows.duplicated().to_numpy())
        names = [PERSON, *(a.column for a in spec.attributes)]
        if {X, Y, PERSON} & set(names[1:]):
            raise UsageError(
                "a sweep cannot read an attribute whose column is called x, y or person. Rename it."
            )
        columns: dict[str, Any] = {
            name: column.take(pa.array(first)) for name, column in zip(names, texts, strict=True)
        }
        return cls(pa.table({**columns, X: x[first], Y: y[first]}), grid.crs)


@dataclass(frozen=True, slots=True, eq=False)
class Recorder:
    """As much of a grid as taking visits in asks for: it keeps the points that it is to locate, and numbers them."""

    crs: str
    x: list[FloatArray] = field(default_factory=list)
    y: list[FloatArray] = field(default_factory=list)
    kind: str = "points"
    column: None = None

    def locate(self, x: FloatArray, y: FloatArray) -> IntArray:
        """A number for each point."""
        self.x.append(np.asarray(x, dtype=float))
        self.y.append(np.asarray(y, dtype=float))
        return np.arange(len(x))


def _joined(columns: Sequence[pa.DictionaryArray]) -> pa.DictionaryArray:
    merged = pa.chunked_array(list(columns)).unify_dictionaries().combine_chunks()
    return merged.chunk(0) if isinstance(merged, pa.ChunkedArray) else merged
