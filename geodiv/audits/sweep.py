"""Sweep: how the figures change with the size of the cells, or with the thresholds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from ..attribute import Attribute
from ..enforcement import enforce
from ..engines.choice import opened
from ..engines.protocol import Engine, Progress
from ..errors import NotConverged, UsageError
from ..grids.h3 import H3Grid
from ..grids.protocol import Grid
from ..grids.square import SquareGrid
from ..policy import Policy
from ..release import Release
from ..scores import Judge, score_rows
from ..tabulation import Tabulation, tabulate
from .points import PERSON, Points, X, Y

SIZE_COLUMNS = (
    "size",
    "attribute",
    "cells",
    "eligible",
    "kept",
    "pass_k",
    "pass_l",
    "pass_t",
    "pass_all",
    "effective",
    "noise_floor",
    "coverage",
    "coverage_all",
    "zones",
    "rounds",
)
"""Columns of `sweep_sizes`."""
THRESHOLD_COLUMNS = (
    "l_min",
    "t_max",
    "attribute",
    "pass_l",
    "pass_t",
    "pass_all",
    "coverage",
    "coverage_all",
    "zones",
    "rounds",
)
"""Columns of `sweep_thresholds`."""
PolicyFor = Callable[[Tabulation], Policy]


def sweep_sizes(
    source: Any,
    sizes: Sequence[float],
    *,
    grid: Grid,
    person: str,
    attributes: Sequence[Attribute],
    policy: Policy | PolicyFor,
    remedies: bool = True,
    engine: str | Engine = "memory",
    progress: Progress | None = None,
    **reading: Any,
) -> pd.DataFrame:
    """Homogeneity by size of the cells: one row per size and attribute. Internal.

    Parameters
    ----------
    source : as for `geodiv.tabulate`
    sizes : sequence
        H3 resolutions, or sides of squares in metres.
    grid : H3Grid or SquareGrid
        Its size does not matter; the CRS of squares does.
    person, attributes, reading
        As for `geodiv.tabulate`: lon, lat, crs, on_bad_rows, layer, points.
    policy : Policy, or a function from a Tabulation to one
    remedies : bool
        Whether the remedies are run at each size too.
    engine : str or Engine
        What counts each size, as for `geodiv.tabulate`; the points are held in memory.
    progress : callable, optional

    Returns
    -------
    DataFrame
        size, attribute, cells (occupied), eligible (with k_min persons), kept (persons in eligible cells
        over all, each once per cell), pass_k (eligible over occupied cells), pass_l, pass_t, pass_all
        (shares of the eligible cells that pass l_min, t_max, every gate of the attribute; nan without the
        gate), effective and noise_floor (medians over eligible cells), and after remedies coverage,
        coverage_all, zones and rounds (nan where they did not converge).

    Notes
    -----
    The visits are read and encoded once, and repeated visits of a person to one point with the same values
    are dropped; then each size snaps the points that are left. A coarser H3 cell is **not** made of finer
    ones: the cell of a point is not always the child of its cell one resolution up. Coarser cells raise k;
    they do not always raise diversity, since a district of one kind stays one.

    Examples
    --------
    >>> import geodiv as gd
    >>> found = sweep_sizes(
    ...     "fixtures/visits.parquet",
    ...     [7, 8, 9],
    ...     grid=gd.H3Grid(8),
    ...     person="person_id",
    ...     attributes=[gd.Nominal("poi_category", missing=["", "Unknown"])],
    ...     policy=gd.Policy(k_min=10, l_min=3),
    ...     remedies=False,
    ...     on_bad_rows="skip",
    ... )
    >>> found[["size", "cells", "eligible", "kept"]].round(2).values.tolist()
    [[7.0, 20.0, 18.0, 1.0], [8.0, 92.0, 81.0, 0.99], [9.0, 554.0, 274.0, 0.82]]
    """
    points = Points.read(source, grid=grid, person=person, attributes=attributes, **reading)
    frames = []
    for i, size in enumerate(sizes):
        if progress:
            progress("sweep", i, len(sizes))
        with opened(engine) as chosen:
            table = _table(points, sized(grid, size), attributes, chosen)
            rules = policy(table) if callable(policy) else policy
            frames.append(_row(table, rules, remedies).assign(size=size))
    if progress:
        progress("sweep", len(sizes), len(sizes))
    if not frames:
        raise UsageError("sizes: expected at least one, got none.")
    return pd.concat(frames, ignore_index=True)[list(SIZE_COLUMNS)]


def sweep_thresholds(
    table: Tabulation,
    policy: Policy,
    *,
    l_min: Sequence[float] = (),
    t_max: Sequence[float] = (),
    remedies: bool = True,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """What other thresholds l and t would give at one size: one row per pair and attribute. Internal.

    Parameters
    ----------
    table : Tabulation
    policy : Policy
        The rest of it holds; attributes with an l_min or t_max of their own keep these.
    l_min, t_max : sequences of float
        Every pair of them is tried; the policy's own where one is empty.
    remedies : bool
    progress : callable, optional

    Returns
    -------
    DataFrame
        l_min, t_max, attribute, pass_l, pass_t, pass_all, coverage, coverage_all, zones, rounds, as for
        `sweep_sizes`: the table from which somebody who decides can pick.

    Examples
    --------
    >>> import geodiv as gd
    >>> run = gd.read_run("fixtures/policy.toml")
    >>> table = run.tabulate("fixtures/visits.parquet")
    >>> found = sweep_thresholds(table, run.policy, t_max=[0.2, 0.3], remedies=False)
    >>> found.loc[found["attribute"] == "poi_category", ["t_max", "pass_t"]].round(2).values.tolist()
    [[0.2, 0.44], [0.3, 0.75]]
    """
    pairs = list(product(l_min or (policy.l_min,), t_max or (policy.t_max,)))
    frames = []
    for i, (l_value, t_value) in enumerate(pairs):
        if progress:
            progress("sweep", i, len(pairs))
        rules = replace(policy, l_min=l_value, t_max=t_value)
        frames.append(_row(table, rules, remedies).assign(l_min=l_value, t_max=t_value))
    return pd.concat(frames, ignore_index=True)[list(THRESHOLD_COLUMNS)]


def sized(grid: Grid, size: float) -> Grid:
    """The grid with cells of another size.

    Raises
    ------
    UsageError
        The grid has no size.
    """
    if isinstance(grid, H3Grid):
        if size != int(size):
            raise UsageError(f"sizes: expected H3 resolutions, whole numbers from 0 to 15, got {size}.")
        return replace(grid, resolution=int(size))
    if isinstance(grid, SquareGrid):
        return replace(grid, size=size)
    raise UsageError(f"a sweep over sizes needs a grid of kind h3 or square, got {grid.kind}.")


def _table(points: Points, grid: Grid, attributes: Sequence[Attribute], engine: Engine) -> Tabulation:
    return tabulate(
        points.table,
        grid=grid,
        person=PERSON,
        attributes=attributes,
        lon=X,
        lat=Y,
        crs=points.crs,
        engine=engine,
    )


def _row(table: Tabulation, policy: Policy, remedies: bool) -> pd.DataFrame:
    """One row an attribute: the cells as they are, and what the remedies make of them."""
    judge = Judge.of(table, policy)
    eligible = judge.references.eligible
    persons = table.persons
    scores = score_rows(judge, table.base, table.cells, np.tile(judge.start, (len(table.cells), 1)))
    frame = pd.DataFrame(
        {
            "attribute": [a.column for a in table.attributes],
            "cells": len(table.cells),
            "eligible": int(eligible.sum()),
            "kept": persons[eligible].sum() / persons.sum() if len(persons) else np.nan,
            "pass_k": eligible.mean() if len(persons) else np.nan,
        }
    )
    shown = [list(_shares(judge, scores, a)) for a in range(len(table.attributes))]
    names = ["pass_l", "pass_t", "pass_all", "effective", "noise_floor"]
    frame[names] = pd.DataFrame(shown, columns=names)
    after = _after(table, policy, eligible) if remedies else {}
    for name in ("coverage", "coverage_all", "zones", "rounds"):
        frame[name] = after.get(name, np.nan)
    return frame


def _shares(judge: Judge, scores: pd.DataFrame, a: int) -> Iterator[float]:
    """Share of eligible cells that pass l, t and every gate, and medians of the effective count and noise floor."""
    gates = judge.gates(a)
    column = judge.table.attributes[a].column
    rows = scores[(scores["attribute"] == column) & judge.references.eligible[_cell(scores, judge)]]
    fails = rows["fails"].str.split(",")
    for threshold, names in ((gates.l_min, {"l_min"}), (gates.t_max, {"t_max", "no_reference"})):
        passes = [not names & set(failed) for failed in fails]
        yield float(np.mean(passes)) if threshold is not None and len(rows) else np.nan
    yield float((rows["fails"] == "").mean()) if len(rows) else np.nan
    yield float(rows["effective_fine"].median())
    yield float(rows["noise_floor"].median())


def _cell(scores: pd.DataFrame, judge: Judge) -> Any:
    """Position of each row's cell."""
    return np.repeat(np.arange(len(judge.table.cells)), len(scores) // max(len(judge.table.cells), 1))


def _after(table: Tabulation, policy: Policy, eligible: Any) -> dict[str, float]:
    """Coverage of the eligible and of all cells, zones and rounds of the release."""
    try:
        outcome = enforce(table, policy)
    except NotConverged:
        return {}
    kept = ~outcome.plan.suppressed
    release: Release = outcome.release
    persons = table.persons.astype(float)
    return {
        "coverage": persons[kept & eligible].sum() / persons[eligible].sum() if eligible.any() else np.nan,
        "coverage_all": persons[kept].sum() / persons.sum() if len(persons) else np.nan,
        "zones": len(release.cells),
        "rounds": release.metadata["rounds"],
    }
