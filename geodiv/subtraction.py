"""Subtraction: what the published global mix gives away once the map is taken off it.

The reader knows Q at a level, to 3 decimals, and guesses its total from the zones that show that level. Two things are
left. What is in Q and not on the map: eligible cells that are not published, and zones that are published coarser. And
what is on the map and not in Q: cells below k in zones with others. Where either is one zone, its values could be read
off; then the release keeps this Q to itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .arrays import CSR, BoolArray, FloatArray, IntArray
from .labels import LabelSpace
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
    two zones (an unpublished cell counts as one) that hold l_min together, as what is not published has to; no value is
    left to one of them alone, as where no other holds its class, and no class that they show is left one value of
    several. The cells below k in zones that show it have to be as few; or to lie in at least two zones beside others,
    each value too, to hold k_min and l_min together, and to leave l_min to the others. Where each person has one value,
    a mix adds up to that of the classes: the zones that a coarser level shows besides can be taken off as well, so that
    what is then left has to be safe too.
    """
    left = _Left.of(judge, counts, attribute, levels)
    safe = [_behind_others(left, h) and _among_others(left, h) for h in range(len(left.space.levels))]
    shown_besides = [h for h in range(len(safe)) if (levels == h).any()]
    return np.array([own and all(safe[g] for g in shown_besides if g > h) for h, own in enumerate(safe)])


@dataclass(frozen=True, slots=True, eq=False)
class _Left:
    """The published zones as somebody who subtracts sees them; ``home`` is (cells,) each cell's zone, -1 for none."""

    judge: Judge
    counts: Counts
    attribute: int
    levels: IntArray
    home: IntArray
    eligible: BoolArray
    space: LabelSpace

    @classmethod
    def of(cls, judge: Judge, counts: Counts, attribute: int, levels: IntArray) -> _Left:
        home = np.full(len(judge.table.cells), -1, dtype=np.int64)
        home[counts.members.indices] = np.repeat(np.arange(len(levels)), counts.sizes)
        space, eligible = judge.table.spaces[attribute], judge.references.eligible
        return cls(judge, counts, attribute, levels, home, eligible, space)

    def shown(self, h: int) -> BoolArray:
        """(cells,) cells of zones that show a level."""
        return np.asarray(np.append(self.levels <= h, False)[self.home])

    def pooled(self, h: int, cells: BoolArray) -> FloatArray:
        """(labels,) contributions of some cells."""
        return np.asarray(cells.astype(float) @ self.judge.table.base.labels[self.attribute][h]).ravel()

    def drowns(self, h: int, cells: BoolArray) -> bool:
        """Whether some cells have fewer contributions than the rounding of Q."""
        return bool(
            self.pooled(h, cells).sum() <= HALF * self.judge.references.overall[self.attribute][h].sum()
        )

    def diverse(self, h: int, cells: BoolArray) -> bool:
        """Whether some cells, their labels spread by the global mix, hold l_min; true where there is none."""
        l_min = self.judge.gates(self.attribute).l_min
        if l_min is None:
            return True
        up, overall = self.space.up[h], self.judge.references.overall[self.attribute][0]
        within = within_class(overall, up, len(self.space.levels[h]), overall)
        mix = spread(shares(self.pooled(h, cells)), within, up)
        return bool(meets("l_min", effective_count(mix), l_min))

    def above(self, h: int, g: int) -> IntArray:
        """(labels,) the label of level g above each of level h."""
        out = np.zeros(len(self.space.levels[h]), dtype=np.int64)
        out[self.space.up[h]] = self.space.up[g]
        return out

    def certain(self, h: int, zones: IntArray, rest: FloatArray) -> bool:
        """Whether coarser zones show a class of which ``rest``, (labels,) of a level, holds one label of several."""
        overall = self.judge.references.overall[self.attribute][h]
        for g in np.unique(self.levels[zones]):
            above, rows = self.above(h, g), zones[self.levels[zones] == g]
            held = np.asarray((self.counts.labels[self.attribute][g][rows] > 0).sum(axis=0)).ravel() > 0
            several, left = (np.bincount(above, weights=mix > 0) > 1 for mix in (overall, rest))
            if (held & several & ~left).any():
                return True
        return False

    def holders(self, h: int, zones: IntArray) -> IntArray:
        """(labels,) how many of some zones may have persons under each label of a level, for all that they show.

        A zone that is coarser shows a class; where it holds one label only, the reader knows the label's count.
        """
        out = np.zeros(len(self.space.levels[h]), dtype=np.int64)
        for g in np.unique(np.maximum(self.levels[zones], h)):
            rows = zones[np.maximum(self.levels[zones], h) == g]
            above = self.above(h, g)
            held = np.asarray((self.counts.labels[self.attribute][g][rows] > 0).sum(axis=0)).ravel()[above]
            out += np.where((g > h) & (np.bincount(above)[above] == 1), 0, held)
        return out


def _behind_others(left: _Left, h: int) -> bool:
    """Whether the cells in Q that no zone shows at the level are safe."""
    away = left.eligible & ~left.shown(h)
    if left.drowns(h, away):
        return True
    zones = np.unique(left.home[away & (left.home >= 0)])
    dark = int((away & (left.home < 0)).sum())
    alone = left.holders(h, zones) + dark == 1
    told = alone.any() or left.certain(h, zones, left.pooled(h, away))
    return not told and left.diverse(h, away)


def _among_others(left: _Left, h: int) -> bool:
    """Whether cells below k, in zones that show the level and have other members, are safe, and so are these."""
    mixed = np.append(left.counts.members @ left.eligible.astype(float) > 0, False)[left.home]
    small = left.shown(h) & mixed & ~left.eligible
    if left.drowns(h, small):
        return True
    zones = np.unique(left.home[small])
    others = left.eligible & np.isin(left.home, zones)
    persons = left.judge.table.count(CSR(small[None, :].astype(float))).persons
    alone = (left.holders(h, zones) == 1) & (left.pooled(h, small) > 0)
    return bool(
        not alone.any()
        and meets("k_min", persons, left.judge.policy.k_min)[0]
        and left.diverse(h, small)
        and left.diverse(h, others)
    )
