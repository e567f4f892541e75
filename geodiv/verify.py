"""Verify: the final plan counted and judged once more, by a way of its own.

It shares the measures, `meets` and the reading of a graph with the rest, and nothing else: groups are written out cell
by cell, references are gathered in data frames, and each zone is judged at its published level only.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from .arrays import CSR, BoolArray, FloatArray, IntArray
from .engines.protocol import Groups
from .errors import VerificationError
from .inventory import places_of
from .labels import LabelSpace
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
from .policy import Gates, Global, Policy, Region, Ring, Weights, meets
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
    maps = places_of(table, policy)
    for attribute in range(len(table.attributes)):
        level = plan.level[zones, attribute]
        for h in np.unique(level):
            at = np.flatnonzero(level == h)
            place = maps[attribute] if h > 0 else None
            holds[at] &= _holds(table, policy, attribute, int(h), cells, zone, at, persons, around, place)
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
    places: CSR | None,
) -> BoolArray:
    """(zones at a level,) whether each holds every gate of the attribute, for every reader."""
    space, gates = table.spaces[attribute], policy.thresholds(table.attributes[attribute])
    position = np.full(len(persons), -1, dtype=np.int64)
    position[at] = np.arange(len(at))
    inside = position[zone] >= 0
    n = _count(table, attribute, level, cells[inside], position[zone[inside]], len(at))
    certain = space.certain[level]
    measured = {
        "incidence_max": np.where(certain, n / persons[at][:, None], 0.0).max(axis=1, initial=0.0),
        "label_min": np.where(n > 0, n, np.inf).min(axis=1, initial=np.inf),
    }
    if gates.tier_incidence_max is not None:
        touched = _touched(table, attribute, cells[inside], position[zone[inside]], len(at))
        measured["tier_incidence_max"] = touched / persons[at]
    held = [meets(g, x, getattr(gates, g)) for g, x in measured.items() if getattr(gates, g) is not None]
    here = None
    if places is not None:
        here = np.zeros((len(at), len(space.values)))
        np.add.at(here, position[zone[inside]], np.asarray(places[cells[inside]].todense(), dtype=float))
    for prior, belief in _beliefs(table, policy, attribute, level, n, around, position, here):
        held.append(_believed(space, gates, prior, belief))
    return np.all([np.ones(len(at), bool), *held], axis=0)


def _believed(space: LabelSpace, gates: Gates, prior: FloatArray, belief: FloatArray) -> BoolArray:
    """(zones,) whether what one reader believes holds every gate; the prior is nan where there is no reference."""
    tier = space.sensitive[0]
    measured = {
        "l_min": effective_count(belief),
        "share_max": top_share(belief, tier),
        "tier_max": tier_share(belief, tier),
        "t_max": tree_distance(belief, prior, space.tree),
        "shift_max": max_shift(belief, prior, tier),
        "lift_max": max_lift(belief, prior, tier),
    }
    if gates.c_l is not None:
        measured["c_max"] = recursive_c(belief, gates.c_l)
    held = [meets(g, x, getattr(gates, g)) for g, x in measured.items() if getattr(gates, g) is not None]
    return np.all([np.ones(len(belief), bool), *held], axis=0)


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
    places: FloatArray | None,
) -> list[tuple[FloatArray, FloatArray]]:
    """Prior and belief of each zone for each reader: the one with the reference, and the one with a map as well."""
    space = table.spaces[attribute]
    up, labels = space.up[level], len(space.levels[level])
    eligible = np.flatnonzero(meets("k_min", table.persons, policy.k_min))
    fine = _count(table, attribute, 0, eligible, np.arange(len(eligible)), len(eligible))
    each = (
        _count(table, attribute, level, eligible, np.arange(len(eligible)), len(eligible)) if level else fine
    )
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
    above = shares(np.where(known[:, None], coarse, np.nan))
    mixes = [within]
    if places is not None:
        total = np.stack([places[:, up == c].sum(axis=1) for c in range(labels)], axis=1)[:, up]
        mixes.append(np.where(total > 0, places / np.maximum(total, 1), within))
    return [
        (np.where(known[:, None], spread(above, mix, up), np.nan), spread(shares(n), mix, up))
        for mix in mixes
    ]


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
    asked = np.unique(own["cell"].to_numpy())
    if isinstance(reference, Ring):
        steps = table.grid.neighbours(table.keys, order, asked).tocoo()
    else:
        assert isinstance(reference, Weights)
        steps = weights_matrix(table, reference.graph)[asked].tocoo()
    edges = pd.DataFrame({"cell": asked[steps.coords[0]], "other": steps.coords[1], "weight": steps.data})
    joined = own.merge(edges, on="cell").groupby(["zone", "other"])["weight"].max().reset_index()
    near = joined.rename(columns={"other": "cell"})
    mine = near.merge(own, on=["zone", "cell"], how="left", indicator=True)["_merge"].to_numpy() == "both"
    return near[~mine]
