"""The internal work file: every occupied cell, its measures, the gates it fails and what became of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import geopandas as gpd
import pandas as pd

from .geopackage import write_work
from .intake import Intake
from .records import attribute_record, policy_record
from .tabulation import Tabulation

if TYPE_CHECKING:
    from .enforcement import Outcome

WORST = ("publish", "publish_coarsened", "merge_or_suppress")
"""A cell needs the remedy of its worst attribute."""


def write_outcome(outcome: Outcome, path: str | Path, *, overwrite: bool = False) -> None:
    """Write an Outcome as a work file.

    Raises
    ------
    UsageError
        The file exists and `overwrite` is false.
    WriteError
        It cannot be written; whatever stood there before still stands.
    """
    write_work(
        cells_layer(outcome.table, outcome.scores),
        outcome.scores,
        outcome.final_scores,
        outcome.rounds,
        intake_table(outcome.table.intake),
        path,
        title=outcome.release.metadata["title"],
        metadata={**outcome.release.metadata, "format": "geodiv work 1"},
        overwrite=overwrite,
    )


def write_scores(
    table: Tabulation,
    scores: pd.DataFrame,
    path: str | Path,
    title: str,
    *,
    policy: Any = None,
    overwrite: bool = False,
) -> None:
    """Write scores alone as a work file; what became of the cells is null in it."""
    metadata: dict[str, Any] = {"format": "geodiv work 1", "title": title, "grid": table.grid.describe()}
    if policy is not None:
        metadata["policy"] = policy_record(policy)
        metadata["attributes"] = [
            attribute_record(a, s, policy) for a, s in zip(table.attributes, table.spaces, strict=True)
        ]
    write_work(
        cells_layer(table, scores),
        scores,
        None,
        None,
        intake_table(table.intake),
        path,
        title=title,
        metadata=metadata,
        overwrite=overwrite,
    )


def cells_layer(table: Tabulation, scores: pd.DataFrame) -> pd.DataFrame:
    """One row an occupied cell, wide: the columns of the work file's layer.

    Parameters
    ----------
    table : Tabulation
    scores : DataFrame
        As `score` gives them, cells x attributes rows in the order of the cells.
    """
    each = len(table.attributes)
    first = scores.iloc[::each].reset_index(drop=True)
    rank = (
        scores["remedy"].map({name: i for i, name in enumerate(WORST)}).to_numpy(dtype=int).reshape(-1, each)
    )
    frame = pd.DataFrame(
        {
            "cell_id": first["cell_id"],
            "persons": first["persons"],
            "remedy": pd.Series([WORST[i] for i in rank.max(axis=1, initial=0)], dtype=object),
            "final_remedy": first["final_remedy"],
            "zone_id": first["zone_id"],
        }
    )
    for a, attribute in enumerate(table.attributes):
        rows = scores.iloc[a::each].reset_index(drop=True)
        for name, column in _COLUMNS.items():
            frame[f"{attribute.column}_{name}"] = rows[column]
    if isinstance(scores, gpd.GeoDataFrame):
        return gpd.GeoDataFrame(frame, geometry=first.geometry.to_numpy(), crs=scores.crs)
    return frame


_COLUMNS = {
    "effective": "effective_fine",
    "distance": "distance",
    "incidence": "incidence",
    "reference": "reference_scope",
    "fails": "fails",
}


def intake_table(intake: Intake) -> pd.DataFrame:
    """reason, rows: rows read, counted, and not counted by reason."""
    rows = [("read", intake.rows), ("counted", intake.counted), *sorted(intake.dropped.items())]
    return pd.DataFrame(rows, columns=["reason", "rows"])
