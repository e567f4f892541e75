"""Districts: connected groups of cells that fail together, and the likely cause. Internal, like the scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.sparse import csgraph

from .policy import GATES, Policy
from .tabulation import Tabulation

COLUMNS = ["district", "attribute", "cells", "n_cells", "gates", "top_value", "cause"]
TOO_FINE = "the taxonomy is too fine here"
NO_TAXONOMY = "the values are too fine here, and the attribute has no taxonomy to coarsen them by"
TOO_FEW = "k is too small for t"
TOO_CERTAIN = "nearly everybody here did the same: coarser values cannot hide it, merging can"
BY_CHANCE = 1.25
"""A distance up to this many times the noise floor is taken for chance: its spread is about a fifth of it."""


def failing_districts(
    table: Tabulation, policy: Policy, scores: pd.DataFrame, *, least: int = 3
) -> pd.DataFrame:
    """Connected groups of eligible cells that fail for the same likely cause, largest first.

    Parameters
    ----------
    table : Tabulation
    policy : Policy
    scores : DataFrame
        As `geodiv.score` gives them.
    least : int, default 3
        Cells that make a district.

    Returns
    -------
    DataFrame
        district (1, 2, ...), attribute, cells (ids, space-separated), n_cells, gates (that any of the cells fails,
        comma-separated), top_value (None where the cause is chance), cause. Empty when no district fails.

    Notes
    -----
    A whole district that fails is usually no place to suppress. Where l, t or the shift fails and neighbours share
    their most common value, the taxonomy is too fine there, or there is none; where only t fails and the distance is
    no larger than chance makes it for so few persons, k is too small for t; where only the incidence fails, merging
    helps.

    Examples
    --------
    >>> import geodiv as gd
    >>> run = gd.read_run("fixtures/policy.toml")
    >>> table = run.tabulate("fixtures/visits.parquet")
    >>> found = gd.failing_districts(table, run.policy, gd.score(table, run.policy))
    >>> list(found.columns)
    ['district', 'attribute', 'cells', 'n_cells', 'gates', 'top_value', 'cause']
    """
    each = len(table.attributes)
    found = []
    for a, attribute in enumerate(table.attributes):
        rows = scores.iloc[a::each].reset_index(drop=True)
        cause = _causes(rows, policy, NO_TAXONOMY if attribute.taxonomy is None else TOO_FINE)
        kind = pd.factorize(
            cause + "|" + np.where(cause == TOO_FEW, "", rows["top_value"].fillna("").astype(str))
        )[0]
        kind[(cause == "").to_numpy()] = -1
        edges = table.adjacency.tocoo()
        same = (kind[edges.coords[0]] == kind[edges.coords[1]]) & (kind[edges.coords[0]] >= 0)
        inside = sparse.coo_array(
            (edges.data[same], (edges.coords[0][same], edges.coords[1][same])), shape=edges.shape
        )
        _, part = csgraph.connected_components(inside.tocsr(), directed=False)
        size = np.bincount(part, weights=kind >= 0, minlength=1).astype(int)
        for group in np.flatnonzero(size >= least):
            here = part == group
            found.append({"attribute": attribute.column, **_district(rows[here], cause[here])})
    frame = pd.DataFrame(found, columns=COLUMNS[1:])
    frame["top_value"] = pd.Series(
        [district["top_value"] for district in found], dtype=object
    )  # None stays None
    frame = frame.sort_values(
        ["n_cells", "attribute", "cells"], ascending=[False, True, True], ignore_index=True
    )
    frame.insert(0, "district", np.arange(1, len(frame) + 1))
    return frame


def _causes(rows: pd.DataFrame, policy: Policy, too_fine: str) -> pd.Series[str]:
    """(cells,) likely cause of each cell's failure, "" where it passes or is below k."""
    fails = rows["fails"]
    has = {gate: fails.str.contains(gate, regex=False) for gate in ("l_min", "t_max", "shift_max")}
    failing = (fails != "") & (rows["persons"] >= policy.k_min)
    chance = (fails == "t_max") & (rows["distance"] <= BY_CHANCE * rows["noise_floor"])
    certain = fails == "incidence_max"
    fine = has["l_min"] | has["t_max"] | has["shift_max"]
    cause = np.select([~failing, chance, certain, fine], ["", TOO_FEW, TOO_CERTAIN, too_fine], "")
    return pd.Series(cause, index=rows.index, dtype=object)


def _district(here: pd.DataFrame, cause: pd.Series[str]) -> dict[str, Any]:
    gates = here["fails"].str.split(",").explode()
    common = cause.iloc[0]
    return {
        "cells": " ".join(here["cell_id"]),
        "n_cells": len(here),
        "gates": ",".join(g for g in GATES if g in set(gates)),
        "top_value": None if common == TOO_FEW else here["top_value"].iloc[0],
        "cause": common,
    }
