"""Visits made by hand: how many persons did what in which cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import h3
import pandas as pd

import geodiv as gd

CENTRE = h3.latlng_to_cell(60.17, 24.94, 8)
RING = sorted(h3.grid_ring(CENTRE, 1))
FAR = sorted(h3.grid_ring(CENTRE, 12))[0]
"""A cell, the six cells around it, and one that none of them reaches."""

ROW = [CENTRE]
for _ in range(7):
    ROW.append(
        max(set(h3.grid_ring(ROW[-1], 1)) - set(h3.grid_disk(CENTRE, len(ROW) - 1)), key=h3.cell_to_latlng)
    )
"""Cells in a row: each touches the one before and the one after, and no other of the row."""

FIRST, SECOND = sorted([CENTRE, RING[0]])


def visits(counts: Mapping[str, Mapping[Any, int]], shared: bool = False) -> pd.DataFrame:
    """One visit a person, who did one thing; persons of different cells differ unless they are `shared`."""
    rows = []
    for cell, values in counts.items():
        persons = (f"p{i}" if shared else f"{cell}-{i}" for i in range(10**6))
        rows += [(cell, next(persons), value) for value, n in values.items() for _ in range(n)]
    return pd.DataFrame(rows, columns=["cell", "person", "activity"])


def tabulate(source: pd.DataFrame | Mapping[str, Mapping[Any, int]], *attributes: Any) -> gd.Tabulation:
    """The table of visits, or of counts as for `visits`, by the cell ids that they carry."""
    frame = source if isinstance(source, pd.DataFrame) else visits(source)
    attributes = attributes or (gd.Nominal("activity"),)
    return gd.tabulate(frame, grid=gd.ColumnGrid("cell"), person="person", attributes=attributes)


def score(source: Any, *attributes: Any, **policy: Any) -> pd.DataFrame:
    """Scores of the first attribute, by cell id, k 2 unless given."""
    table = tabulate(source, *attributes)
    found = gd.score(table, gd.Policy(**{"k_min": 2, **policy}))
    return found[found["attribute"] == table.attributes[0].column].set_index("cell_id")
