"""Subtracted: whether a published global mix tells a zone once the map is taken off it, worked out from the visits.

The rule is that of `geodiv.subtraction`, by code of its own.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..arrays import BoolArray, FloatArray, IntArray
from ..measures import effective_count, shares, spread, within_class
from ..policy import Gates, meets
from .facts import Facts
from .mixes import Mixes


def tells_no_zone(
    facts: Facts, mixes: Mixes, a: int, h: int, level: IntArray, zone: IntArray, gates: Gates
) -> bool:
    """Whether the mix of a level, added up to coarser ones too, leaves no single zone once the map is taken off it.

    ``level`` is (zones,) int64, at which each publishes the attribute; ``zone`` (cells,) int64, the zone of each cell
    or -1.
    """
    level = np.clip(level, 0, len(facts.spaces[a].levels) - 1)
    coarser = np.unique(level[level > h]).tolist()
    return all(_leaves_no_zone(facts, mixes, a, g, level, zone, gates) for g in (h, *coarser))


def _leaves_no_zone(
    facts: Facts, mixes: Mixes, a: int, h: int, level: IntArray, zone: IntArray, gates: Gates
) -> bool:
    """Whether what is in the mix and not on the map, and what is on the map and not in the mix, are safe.

    Each is less than the rounding of Q, or at least two zones or cells that hold l_min together, and no label is of one
    alone. What is not in the mix are cells below k: they need k_min too, and to leave l_min to the other members of
    their zones.
    """
    frame = pd.DataFrame(
        {"zone": zone, "eligible": mixes.eligible, "shows": np.append(level <= h, False)[zone]}
    )
    mixed = frame[frame["shows"]].groupby("zone")["eligible"].nunique()
    in_mixed = (frame["shows"] & frame["zone"].isin(mixed[mixed == 2].index)).to_numpy()
    away = mixes.eligible & ~frame["shows"].to_numpy()
    small, others = in_mixed & ~mixes.eligible, in_mixed & mixes.eligible
    most = 0.0005 * mixes.overall(a, h).sum()
    if mixes.pooled(a, h, away).sum() > most:
        dark, behind = int((away & (zone < 0)).sum()), np.unique(zone[away & (zone >= 0)])
        if not _diverse(facts, mixes, a, h, away, gates.l_min):
            return False
        if (_covers(facts, a, h, level, zone, behind) + dark == 1).any():
            return False
        if _certain(facts, a, h, level, zone, behind, mixes.overall(a, h), mixes.pooled(a, h, away)):
            return False
    if mixes.pooled(a, h, small).sum() <= most:
        return True
    covers = _covers(facts, a, h, level, zone, mixed.index[mixed == 2].to_numpy())
    if ((covers == 1) & (mixes.pooled(a, h, small) > 0)).any():
        return False
    persons = facts.persons(np.where(small, 0, -1), 1)
    return bool(
        meets("k_min", persons, gates.k_min)[0]
        and all(_diverse(facts, mixes, a, h, cells, gates.l_min) for cells in (small, others))
    )


def _covers(facts: Facts, a: int, h: int, level: IntArray, zone: IntArray, zones: IntArray) -> IntArray:
    """(labels,) how many of some zones hold each label of a level; if they are coarser, a class of it and others."""
    space, out = facts.spaces[a], np.zeros(len(facts.spaces[a].levels[h]), dtype=np.int64)
    height = np.maximum(level, h)
    for g in np.unique(height[zones]).tolist():
        pairs = pd.DataFrame({"label": space.up[h], "above": space.up[g]}).drop_duplicates()
        held = facts.counts(a, g, zone, len(level))[zones[height[zones] == g]] > 0
        several = pairs["above"].map(pairs["above"].value_counts()) > 1
        pairs["zones"] = held.sum(axis=0)[pairs["above"]]
        pairs = pairs[several | (g == h)]
        out[pairs["label"]] += pairs["zones"].to_numpy()
    return out


def _certain(
    facts: Facts,
    a: int,
    h: int,
    level: IntArray,
    zone: IntArray,
    zones: IntArray,
    overall: FloatArray,
    rest: FloatArray,
) -> bool:
    """Whether some zones show a class of which one label of several is left."""
    up = facts.spaces[a].up
    for g in np.unique(level[zones]).tolist():
        pairs = pd.DataFrame({"label": up[h], "above": up[g]}).drop_duplicates()
        held = (facts.counts(a, g, zone, len(level))[zones[level[zones] == g]] > 0).any(axis=0)
        pairs["all"], pairs["left"] = overall[pairs["label"]] > 0, rest[pairs["label"]] > 0
        classes = pairs.groupby("above")[["all", "left"]].sum()
        if ((classes["all"] > 1) & (classes["left"] < 2))[held[classes.index]].any():
            return True
    return False


def _diverse(facts: Facts, mixes: Mixes, a: int, h: int, cells: BoolArray, l_min: float | None) -> bool:
    """Whether some cells, their labels spread by the global mix, hold l_min; true where there is none."""
    if l_min is None:
        return True
    rest, fine, up = mixes.pooled(a, h, cells), mixes.overall(a, 0), facts.spaces[a].up[h]
    within = within_class(fine, up, len(rest), fine)
    return bool(meets("l_min", effective_count(spread(shares(rest), within, up)), l_min))
