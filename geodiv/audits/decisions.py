"""Decisions: the gates that a published file is proved to break."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from ..labels import LabelSpace
from ..policy import GATES, meets
from ..release import Release
from .bounds import (
    Boxes,
    class_box,
    class_entropy,
    gap,
    least_distance,
    least_recursive,
    least_tier,
    least_variation,
    most_effective,
    share_box,
)
from .judging import RELATIVE
from .published import WIDE, Published, blocks

COUNTED = ("k_min", "incidence_max", "label_min", "tier_incidence_max")
"""Gates that the counts alone decide, at any level."""


@dataclass(frozen=True, slots=True, eq=False)
class Decided:
    """Which gates of each zone are broken for certain: (zones, gates + 1) bool, and the best values they can have."""

    broken: BoolArray
    best: FloatArray


def decided(release: Release, one: Published) -> Decided:
    """The gates of one attribute that the file is proved to break."""
    zones = len(one.level)
    best = np.full((zones, len(GATES) + 1), np.nan)
    broken = np.zeros(best.shape, bool)
    for h in range(len(one.space.levels)):
        for block in blocks(release, one, h):
            best[block.rows] = _best(one, h, block.boxes, block.persons, one.scope[block.rows])
    for g, gate in enumerate(GATES):
        threshold = getattr(one.gates, gate)
        if threshold is not None:
            known = np.isfinite(best[:, g]) | (best[:, g] == np.inf)
            broken[:, g] = known & ~meets(gate, best[:, g], threshold)
    set_ = any(getattr(one.gates, gate) is not None for gate in RELATIVE)
    broken[:, -1] = set_ & (one.scope == "none")
    return Decided(broken, best)


def _best(one: Published, level: int, box: Boxes, persons: FloatArray, scope: Any) -> FloatArray:
    """(zones, gates + 1) the best value of each gate's measure; nan where the file does not decide it."""
    rows, space, gates = len(persons), one.space, one.gates
    up, labels = space.up[level], len(space.levels[level])
    fine_low, fine_high = one.box(0)
    in_low, in_high = class_box(fine_low, fine_high, up, labels) if level else (np.ones(len(up)),) * 2
    within = class_entropy(fine_low, fine_high, up, labels) if level else np.zeros(labels)
    low, high = box.low[:, up] * in_low, box.high[:, up] * in_high
    p_low, p_high = share_box(box.low, box.high)
    tier = space.sensitive[0]
    q_low, q_high = one.box(level)
    d_low, d_high = p_low - q_high, p_high - q_low
    away = gap(p_low, p_high, q_low, q_high)
    out = np.full((rows, len(GATES) + 1), np.nan)
    column = {gate: i for i, gate in enumerate(GATES)}
    if len(box.row) and labels:
        own = np.where(space.certain[level], box.low / persons[box.row][:, None], 0.0).max(axis=1)
        smallest = np.where(box.high > 0, box.high, np.inf).min(axis=1)
        shared = np.where(tier, p_low[:, up] * in_low, 0.0).max(axis=1)
        pure = np.bincount(up, weights=~space.certain[0], minlength=labels) == 0
        touched = np.where(pure, box.low / persons[box.row][:, None], 0.0).max(axis=1)
        out[:, column["incidence_max"]] = box.best(own, rows)
        out[:, column["tier_incidence_max"]] = box.best(touched, rows)
        out[:, column["tier_max"]] = box.best(
            least_tier(box.low, box.high, _within(tier, in_low, in_high, up)), rows
        )
        out[:, column["label_min"]] = box.most(smallest, rows)
        out[:, column["l_min"]] = box.most(most_effective(box.low, box.high, within) * (1 + 1e-9), rows)
        out[:, column["share_max"]] = box.best(shared, rows)
        if gates.c_l is not None:
            out[:, column["c_max"]] = box.best(least_recursive(low, high, gates.c_l), rows)
        star = _is_star(space)
        distance = (
            least_variation(p_low, p_high, q_low, q_high)
            if star
            else least_distance(d_low, d_high, in_low, in_high, up, space.tree)
        )
        out[:, column["t_max"]] = box.best(distance, rows)
        out[:, column["shift_max"]] = box.best(np.where(tier, away[:, up] * in_low, 0.0).max(axis=1), rows)
        rises = np.divide(p_low, q_high, out=np.full(p_low.shape, np.inf), where=q_high > 0)
        counts = _believed(tier, in_low, up, labels)
        out[:, column["lift_max"]] = box.best(np.where(counts & (p_low > 0), rises, 0.0).max(axis=1), rows)
    out[np.isinf(out) & (np.bincount(box.row, minlength=rows) == 0)[:, None]] = np.nan
    out[:, column["k_min"]] = persons
    wide = np.isin(scope, WIDE)
    for gate in GATES:
        if gate in RELATIVE:
            out[scope != "global", column[gate]] = np.nan
        elif gate not in COUNTED and level:
            out[~wide, column[gate]] = np.nan
    return out


def _within(tier: BoolArray, in_low: FloatArray, in_high: FloatArray, up: IntArray) -> FloatArray:
    """(labels,) smallest share of each label that lies in the tier."""
    inside = np.bincount(up, weights=tier * in_low)
    outside = np.bincount(up, weights=~tier * in_high)
    return np.maximum(inside, 1 - outside)


def _believed(tier: BoolArray, in_low: FloatArray, up: IntArray, labels: int) -> BoolArray:
    """(labels,) whether some value of the tier below a label is believed for certain when the label is."""
    some = np.bincount(up, weights=tier & (in_low > 0), minlength=labels) > 0
    every = np.bincount(up, weights=~tier, minlength=labels) == 0
    return np.asarray(some | every)


def _is_star(space: LabelSpace) -> bool:
    below = space.tree.below
    return bool(below.shape[0] == below.shape[1] == below.nnz and (space.tree.weight == 0.5).all())
