"""Subtraction: what the published global mix gives away once the map is taken off it.

The reader knows Q at a level, to 3 decimals, and guesses its total from the zones that show that level. What is left
is the pooled count of everything that does not show it: eligible cells that are not published, and zones that are
published coarser. Where that is one zone, its values could be read off; then the release keeps this Q to itself.
"""

from __future__ import annotations

import numpy as np

from .arrays import BoolArray, FloatArray, IntArray
from .measures import effective_count, shares, spread, within_class
from .policy import meets
from .scores import Judge
from .tabulation import Counts

HALF = 0.0005
"""How far a share of 3 decimals may be from the true one."""


def tells_no_zone(judge: Judge, counts: Counts, attribute: int, levels: IntArray) -> BoolArray:
    """Whether the global mix of each level of an attribute can be published beside these zones: (levels,) bool.

    Parameters
    ----------
    judge : Judge
    counts : Counts
        Of the published zones.
    attribute : int
    levels : (zones,) int64
        Level at which each publishes the attribute.

    Notes
    -----
    A level is safe when everything that does not show it has fewer contributions than the rounding of Q, or is at least
    two zones (an unpublished cell counts as one) that hold l_min together, as what is not published has to.
    """
    levels_of_all = range(len(judge.table.spaces[attribute].levels))
    return np.array([_safe(judge, counts, attribute, h, levels) for h in levels_of_all])


def _safe(judge: Judge, counts: Counts, attribute: int, h: int, levels: IntArray) -> bool:
    zone = np.repeat(np.arange(len(levels)), counts.sizes)
    away = judge.references.eligible.copy()
    away[counts.members.indices[levels[zone] <= h]] = False
    rest = np.asarray(away.astype(float) @ judge.table.base.labels[attribute][h]).ravel()
    if rest.sum() <= HALF * judge.references.overall[attribute][h].sum():
        return True
    coarser = len(np.unique(zone[away[counts.members.indices]]))
    alone = away.copy()
    alone[counts.members.indices] = False
    return coarser + int(alone.sum()) > 1 and _diverse(judge, attribute, h, rest)


def _diverse(judge: Judge, attribute: int, h: int, rest: FloatArray) -> bool:
    """Whether the rest, its labels spread by the global mix, holds l_min; true where there is none."""
    space, l_min = judge.table.spaces[attribute], judge.gates(attribute).l_min
    if l_min is None:
        return True
    overall = judge.references.overall[attribute][0]
    within = within_class(overall, space.up[h], len(space.levels[h]), overall)
    return bool(meets("l_min", effective_count(spread(shares(rest), within, space.up[h])), l_min))
