"""Small visits made by hand for the audits: one value a person and cell unless said otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

import geodiv as gd
from geodiv import audits

CELL = gd.ColumnGrid("cell")


def visits(cells: Mapping[str, Mapping[str, int]], column: str = "poi") -> pd.DataFrame:
    """One row a person: so many persons of each value in each cell, nobody in two cells."""
    rows = [
        (f"{cell}-{value}-{i}", cell, value)
        for cell, mix in cells.items()
        for value, n in mix.items()
        for i in range(n)
    ]
    return pd.DataFrame(rows, columns=["who", "cell", column])


def enforced(
    frame: pd.DataFrame, policy: gd.Policy, *attributes: Any, grid: Any = CELL, count_min: int = 1
) -> gd.Outcome:
    table = gd.tabulate(frame, grid=grid, person="who", attributes=list(attributes) or [gd.Nominal("poi")])
    return gd.enforce(table, policy, gd.Publication(count_min=count_min))


def facts(frame: pd.DataFrame, *attributes: Any, grid: Any = CELL) -> audits.Facts:
    return audits.Facts.read(
        frame, grid=grid, person="who", attributes=list(attributes) or [gd.Nominal("poi")]
    )


def with_counts(
    release: gd.Release, cell: str, counts: Mapping[str, int | None], attribute: str = "poi"
) -> gd.Release:
    """A release in which one zone says other counts; shares, top and effective count follow, as a forger would do."""
    rows = release.counts[(release.counts["cell_id"] == cell) & (release.counts["attribute"] == attribute)]
    hidden = any(n is None for n in counts.values())
    total = sum(n or 0 for n in counts.values())
    new = pd.DataFrame(
        {
            "cell_id": cell,
            "attribute": attribute,
            "value": list(counts),
            "level": int(rows["level"].iloc[0]),
            "persons": pd.array(list(counts.values()), dtype="Int64"),
            "share": [float("nan") if hidden else (n or 0) / total for n in counts.values()],
        }
    )
    table = pd.concat([release.counts.drop(rows.index), new], ignore_index=True)
    cells = release.cells.copy()
    at = cells["cell_id"] == cell
    shown = {value: n for value, n in counts.items() if n is not None}
    cells.loc[at, f"{attribute}_top"] = max(shown, key=lambda v: shown[v]) if shown else None
    effective = float("nan") if hidden else float(gd.entropy_diversity(list(counts.values())))
    cells.loc[at, f"{attribute}_effective"] = effective
    return replace(release, counts=table, cells=cells)


def with_metadata(release: gd.Release, **changes: Any) -> gd.Release:
    return replace(release, metadata={**release.metadata, **changes})
