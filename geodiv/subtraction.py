"""Subtraction: what the published global mix gives away once the map is taken off it.

The reader knows Q at a level, to 3 decimals, and guesses its total from the zones that show that level. Two things are
left. What is in Q and not on the map: eligible cells that are not published, and zones that are published coarser. And
what is on the map and not in Q: cells below k in zones with others. Where either is one zone, its values could be read
off; then the release keeps this Q to itself.
"""

from __future__ import annotations

import numpy as np

from .arrays import CSR, BoolArray, FloatArray, IntArray
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
    two zones (an unpublished cell counts as one) that hold l_min together, as what is not published has to; and when
    the cells below k in zones that show it are as few, or lie in at least two zones beside others, hold k_min and l_min
    together, and leave l_min to the others. Where each person has one value, a mix adds up to that of the classes: the
    zones that a coarser level shows besides can be taken off as well, so that what is then left has to be safe too.
    """
    safe = [
        _safe(judge, counts, attribute, h, levels) for h in range(len(judge.table.spaces[attribute].levels))
    ]
    shown_besides = [bool((levels == h).any()) for h in range(len(safe))]
    return np.array(
        [
            own and all(s for s, more in zip(safe[h + 1 :], shown_besides[h + 1 :], strict=True) if more)
            for h, own in enumerate(safe)
        ]
    )


def _safe(judge: Judge, counts: Counts, attribute: int, h: int, levels: IntArray) -> bool:
    """Whether what is left of the mix of one level, and no finer one, is safe."""
    eligible = judge.references.eligible
    home = np.full(len(eligible), -1, dtype=np.int64)
    home[counts.members.indices] = np.repeat(np.arange(len(levels)), counts.sizes)
    shows = np.append(levels <= h, False)[home]
    away = eligible & ~shows
    beside = shows & np.append(counts.members @ eligible.astype(float) > 0, False)[home] & ~eligible
    return _behind_others(judge, attribute, h, away, home) and _among_others(
        judge, attribute, h, beside, home
    )


def _behind_others(judge: Judge, attribute: int, h: int, away: BoolArray, home: IntArray) -> bool:
    """Whether the cells in Q that no zone shows at the level, of which ``home`` is the zone or -1, are safe."""
    if _drowns(judge, attribute, h, away):
        return True
    coarser = len(np.unique(home[away & (home >= 0)]))
    return coarser + int((away & (home < 0)).sum()) > 1 and _diverse(judge, attribute, h, away)


def _among_others(judge: Judge, attribute: int, h: int, small: BoolArray, home: IntArray) -> bool:
    """Whether cells below k, in zones that show the level and have other members, are safe, and so are these."""
    if _drowns(judge, attribute, h, small):
        return True
    zones = np.unique(home[small])
    others = judge.references.eligible & np.isin(home, zones)
    persons = judge.table.count(CSR(small[None, :].astype(float))).persons
    return bool(
        len(zones) > 1
        and meets("k_min", persons, judge.policy.k_min)[0]
        and _diverse(judge, attribute, h, small)
        and _diverse(judge, attribute, h, others)
    )


def _drowns(judge: Judge, attribute: int, h: int, cells: BoolArray) -> bool:
    """Whether some cells have fewer contributions than the rounding of Q."""
    return bool(
        _pooled(judge, attribute, h, cells).sum() <= HALF * judge.references.overall[attribute][h].sum()
    )


def _pooled(judge: Judge, attribute: int, h: int, cells: BoolArray) -> FloatArray:
    """(labels,) contributions of some cells."""
    return np.asarray(cells.astype(float) @ judge.table.base.labels[attribute][h]).ravel()


def _diverse(judge: Judge, attribute: int, h: int, cells: BoolArray) -> bool:
    """Whether some cells, their labels spread by the global mix, hold l_min; true where there is none."""
    space, l_min = judge.table.spaces[attribute], judge.gates(attribute).l_min
    if l_min is None:
        return True
    overall = judge.references.overall[attribute][0]
    within = within_class(overall, space.up[h], len(space.levels[h]), overall)
    mix = shares(_pooled(judge, attribute, h, cells))
    return bool(meets("l_min", effective_count(spread(mix, within, space.up[h])), l_min))
