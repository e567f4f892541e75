"""A cell size for visits: the smallest H3 cells in which most visits have enough persons around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import h3.api.numpy_int as h3
import numpy as np
import pandas as pd

from .errors import SourceError
from .grids.h3 import H3Grid
from .intake import VisitSpec, batches
from .recognise import Columns

FINEST, COARSEST = 10, 4
"""H3 resolutions among which a cell size is suggested."""
ENOUGH = 0.5
"""Share of visits that lie in cells with k persons at the suggested size."""


@dataclass(frozen=True, slots=True)
class Size:
    """A suggested H3 resolution, and the share of visits in cells with at least k persons at sizes around it."""

    resolution: int
    shares: tuple[tuple[int, float], ...]


def suggested_size(
    source: Any, columns: Columns, *, layer: str | None, crs: str | None, k_min: int
) -> Size | str:
    """The smallest cells in which most visits have company, or why none can be suggested.

    Parameters
    ----------
    source : path or frame
    columns : Columns
        As `recognised` found them.
    layer, crs : str or None
        As for `geodiv.tabulate`.
    k_min : int
        Persons that are company enough.
    """
    if columns.person is None:
        return "without the column of the person no size can be suggested"
    if columns.geometry is None and columns.lon is None:
        return "without coordinates no size can be suggested"
    if columns.geometry is None and crs is None and not columns.degrees:
        return "without the CRS of the coordinates no size can be suggested"
    spec = VisitSpec(
        person=columns.person,
        grid=H3Grid(FINEST),
        attributes=(),
        lon=None if columns.geometry else columns.lon,
        lat=None if columns.geometry else columns.lat,
        crs=crs,
        on_bad_rows="skip",
        layer=layer,
        rejects=None,
    )
    try:
        (batch,) = batches(source, spec, rows_per_batch=None)
    except SourceError as error:
        return f"no size can be suggested: {error}"
    keys, persons = batch.key, np.asarray(batch.person.indices)
    shares = tuple((r, _share(keys, persons, r, k_min)) for r in range(FINEST, COARSEST - 1, -1))
    fit = next((r for r, share in shares if share >= ENOUGH), COARSEST)
    return Size(fit, tuple((r, share) for r, share in shares if abs(r - fit) <= 1))


def _share(keys: Any, persons: Any, resolution: int, k_min: int) -> float:
    """Share of visits that lie in cells of this resolution with at least `k_min` persons."""
    distinct, position = np.unique(keys, return_inverse=True)
    parents = np.array([h3.cell_to_parent(int(key), resolution) for key in distinct], dtype=np.int64)
    visits = pd.DataFrame({"cell": parents[position], "person": persons})
    crowd = visits.groupby("cell")["person"].nunique()
    return float((visits["cell"].map(crowd) >= k_min).mean()) if len(visits) else 0.0
