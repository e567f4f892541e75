"""Verify: the final plan counted and judged once more, by a way of its own.

It shares the measures, `meets` and the reading of a graph with the rest, and nothing else: groups are written out cell by cell, references are
gathered in data frames, and each zone is judged at its published level only.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from .arrays import BoolArray, FloatArray, IntArray
from .engines.protocol import Groups
from .errors import VerificationError
from .measures import (
    effective_count,
    max_lift,
    max_shift,
    recursive_c,
    shares,
    spread,
    tier_share,
    top_share,
    tree_distance,
    within_class,
)
from .plan import Plan
from .policy import Global, Policy, Region, Ring, Weights, meets
from .reference import weights_matrix
from .tabulation import Tabulation


def verify(table: Tabulation, policy: Policy, plan: Plan) -> None:
    """Raise a VerificationError when a zone that the plan publishes fails a gate."""
    broken = broken_zones(table, policy, plan)
    if len(broken):
        raise VerificationError(
            "a zone that would be published fails when it is counted again: this is a fault of geodiv, nothing was "
            "written. Please report it with the policy."
        )


def broken_zones(table: Tabulation, policy: Policy, plan: Plan) -> IntArray:
    """Positions of the smallest members of published zones that fail a gate: (broken,) int64."""
    cells = np.flatnonzero(~plan.suppressed)
    zones, zone = np.unique(plan.zone[cells], return_inverse=True)
    persons = table.engine.count(table.contributions, Groups(None, cells, None, zone, len(zones)))
    holds = np.asarray(meets("k_min", persons, policy.k_min))
    around = _around(table, policy, cells, zone, len(zones))
    for attribute in range(len(table.attributes)):
        level = plan.level[zones, attribute]
        for h in np.unique(level):
            at = np.flatnonzero(level == h)
            holds[at] &= _holds(table, policy, attribute, int(h), cells, zone, at, persons, around)
    return zones[~holds]


def _holds(
    table: Tabulation,
    policy: Policy,
    attribute: int,
    level: int,
    cells: IntArray,
    zone: IntArray,
    at: IntArray,
    persons: IntArray,
    around: pd.DataFrame,
) -> BoolArray:
    """(zones at a level,) whether each holds every gate of the attribute."""
    space, gates = table.spaces[attribute], policy.thresholds(table.attributes[attribute])
    position = np.full(len(persons), -1, dtype=np.int64)
    position[at] = np.arange(len(at))
    inside = position[zone] >= 0
    n = _count(table, attribute, level, cells[inside], position[zone[inside]], len(at))
    prior, belief, known = _beliefs(table, policy, attribute, level, n, around, position)
    tier, certain = space.sensitive[0], space.certain[level]
    incidence = np.where(certain, n / persons[at][:, None], 0.0).max(axis=1, initial=0.0)
    smallest = np.where(n > 0, n, np.inf).min(axis=1, initial=np.inf)
    measured = {
        "l_min": effective_count(belief),
        "share_max": top_share(belief, tier),
        "incidence_max": incidence,
        "label_min": smallest,
        "tier_max": tier_share(belief, tier),
        "t_max": np.where(known, tree_distance(belief, prior, space.tree), np.nan),
        "shift_max": np.where(known, max_shift(belief, prior, tier), np.nan),
        "lift_max": np.where(known, max_lift(belief, prior, tier), np.nan),
    }
    if gates.c_l is not None:
        measured["c_max"] = recursive_c(belief, gates.c_l)
    if gates.tier_incidence_max is not None:
        touched = _touched(table, attribute, cells[inside], position[zone[inside]], len(at))
        measured["tier_incidence_max"] = touched / persons[at]
    holds = np.ones(len(at), bool)
    for gate, x in measured.items():
        if (threshold := getattr(gates, gate)) is not None:
            holds &= meets(gate, x, threshold)
    return holds


def _count(
    table: Tabulation, attribute: int, level: int, cells: IntArray, zone: IntArray, zones: int
) -> FloatArray:
    """(zones, labels) distinct persons, from the (cell, value) pairs themselves."""
    pairs, space = table.contributions.pairs[attribute], table.spaces[attribute]
    labels = len(space.levels[level])
    of_cell = np.full(len(table.cells), -1, dtype=np.int64)
    of_cell[cells] = zone
    used = np.flatnonzero(of_cell[pairs.cell] >= 0)
    cell, value = pairs.cell[used], pairs.value[used]
    group = of_cell[cell] * labels + space.up[level][value]
    counted = table.engine.count(table.contributions, Groups(attribute, cell, value, group, zones * labels))
    return counted.reshape(zones, labels).astype(float)


def _touched(table: Tabulation, attribute: int, cells: IntArray, zone: IntArray, zones: int) -> IntArray:
    """(zones,) distinct persons with any value of the tier, from the (cell, value) pairs themselves."""
    pairs, certain = table.contributions.pairs[attribute], table.spaces[attribute].certain[0]
    of_cell = np.full(len(table.cells), -1, dtype=np.int64)
    of_cell[cells] = zone
    used = np.flatnonzero((of_cell[pairs.cell] >= 0) & certain[pairs.value])
    cell, value = pairs.cell[used], pairs.value[used]
    return table.engine.count(table.contributions, Groups(attribute, cell, value, of_cell[cell], zones))


def _beliefs(
    table: Tabulation,
    policy: Policy,
    attribute: int,
    level: int,
    n: FloatArray,
    around: pd.DataFrame,
    position: IntArray,
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Prior and belief of each zone, and whether it has a reference."""
    space = table.spaces[attribute]
    up, labels = space.up[level], len(space.levels[level])
    eligible = np.flatnonzero(meets("k_min", table.persons, policy.k_min))
    each = _count(table, attribute, level, eligible, np.arange(len(eligible)), len(eligible))
    fine = _count(table, attribute, 0, eligible, np.arange(len(eligible)), len(eligible))
    row = np.full(len(table.cells), -1, dtype=np.int64)
    row[eligible] = np.arange(len(eligible))
    overall = fine.sum(axis=0)
    coarse = np.tile(each.sum(axis=0), (len(n), 1))
    finest = np.tile(overall, (len(n), 1))
    known = np.ones(len(n), bool)
    here = around[position[around["zone"].to_numpy()] >= 0]
    local = position[here["zone"].to_numpy()]
    coarse[np.unique(local)] = finest[np.unique(local)] = 0
    near = here[here["cell"] >= 0]
    weight = near["weight"].to_numpy()[:, None]
    np.add.at(coarse, position[near["zone"].to_numpy()], weight * each[row[near["cell"].to_numpy()]])
    np.add.at(finest, position[near["zone"].to_numpy()], weight * fine[row[near["cell"].to_numpy()]])
    known[position[here.loc[here["cell"] < 0, "zone"].to_numpy()]] = False
    finest[~known] = overall
    within = within_class(finest, up, labels, overall)
    prior = spread(shares(np.where(known[:, None], coarse, np.nan)), within, up)
    return prior, spread(shares(n), within, up), known


def _around(table: Tabulation, policy: Policy, cells: IntArray, zone: IntArray, zones: int) -> pd.DataFrame:
    """zone, cell, weight: the reference cells of each zone with a local reference; cell -1 for "none".

    A zone judged against the global mix has no row.
    """
    reference = policy.reference
    empty = pd.DataFrame({"zone": np.zeros(0, int), "cell": np.zeros(0, int), "weight": np.zeros(0)})
    if isinstance(reference, Global):
        return empty
    eligible = meets("k_min", table.persons, policy.k_min)
    own = pd.DataFrame({"zone": zone, "cell": cells})
    open_zones, found = np.arange(zones), [empty]
    orders = (
        range(reference.order, (reference.max_order or reference.order) + 1)
        if isinstance(reference, Ring)
        else [0]
    )
    for order in orders:
        near = _near(table, policy, own[own["zone"].isin(open_zones)], order)
        near = near[eligible[near["cell"].to_numpy()]]
        total = np.bincount(near["zone"], weights=table.persons[near["cell"].to_numpy()], minlength=zones)
        enough = open_zones[(total[open_zones] > 0) & (total[open_zones] >= reference.min_persons)]
        found.append(near[near["zone"].isin(enough)])
        open_zones = np.setdiff1d(open_zones, enough)
    if reference.fallback == "none":
        found.append(pd.DataFrame({"zone": open_zones, "cell": -1, "weight": 0.0}))
    return pd.concat(found, ignore_index=True)


def _near(table: Tabulation, policy: Policy, own: pd.DataFrame, order: int) -> pd.DataFrame:
    """zone, cell, weight of the cells around some zones, eligible or not."""
    reference = policy.reference
    if isinstance(reference, Region):
        region = pd.Series([reference.regions.get(c) for c in table.cells], dtype=object)
        everyone = pd.DataFrame({"region": region, "other": np.arange(len(region))}).dropna()
        mine = (
            own.assign(region=region.to_numpy()[own["cell"].to_numpy()])[["zone", "region"]]
            .dropna()
            .drop_duplicates()
        )
        near = mine.merge(everyone, on="region")
        return pd.DataFrame({"zone": near["zone"], "cell": near["other"], "weight": 1.0})
    if isinstance(reference, Ring):
        steps = table.grid.neighbours(table.keys, order).tocoo()
    else:
        assert isinstance(reference, Weights)
        steps = weights_matrix(table, reference.graph).tocoo()
    edges = pd.DataFrame({"cell": steps.coords[0], "other": steps.coords[1], "weight": steps.data})
    joined = own.merge(edges, on="cell").groupby(["zone", "other"])["weight"].max().reset_index()
    near = joined.rename(columns={"other": "cell"})
    mine = near.merge(own, on=["zone", "cell"], how="left", indicator=True)["_merge"].to_numpy() == "both"
    return near[~mine]
