"""Estimate: how cells would stand under a grouping, were persons of joined values never the same ones.

Estimates guide the search; what is reported is counted again. Each group of values stands for a few sums per cell, so
that what joining two of them does to every gate follows from the sums of the two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from ..policy import Gates, meets
from .trial import Trial

MOST_CELLS = 1000
"""Failing cells that the search looks at, evenly over those that might be cleared; the re-count looks at all."""
PAIRS = 400
"""Pairs that are looked at at a time; it bounds memory, not results."""


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Sums over the values of each group, in each cell: (cells, groups) float64.

    Parameters
    ----------
    n : persons of the values, summed
    q, entropy : reference shares ``q``, and ``-q ln q``, summed
    most, tier : the largest and the summed ``q`` of the sensitive tier
    certain : (groups,) bool
        Whether a value counts for ``incidence_max``.
    """

    n: FloatArray
    q: FloatArray
    entropy: FloatArray
    most: FloatArray
    tier: FloatArray
    certain: BoolArray

    def take(self, groups: IntArray) -> Sums:
        """Those of some groups."""
        n, q, entropy, most, tier = (x[:, groups] for x in self._columns())
        return Sums(n, q, entropy, most, tier, self.certain[groups])

    def join(self, other: Sums) -> Sums:
        """Those of each group joined with the other's."""
        return Sums(
            self.n + other.n,
            self.q + other.q,
            self.entropy + other.entropy,
            np.maximum(self.most, other.most),
            self.tier + other.tier,
            self.certain | other.certain,
        )

    def replaced(self, i: int, j: int) -> Sums:
        """Group j joined to group i; what follows j moves up."""
        joined = self.take(np.array([i])).join(self.take(np.array([j])))
        keep = np.delete(np.arange(len(self.certain)), j)
        place = i - (j < i)
        columns = []
        for mine, new in zip(self._columns(), joined._columns(), strict=True):
            column = mine[:, keep]
            column[:, place] = new[:, 0]
            columns.append(column)
        certain = self.certain[keep]
        certain[place] = joined.certain[0]
        n, q, entropy, most, tier = columns
        return Sums(n, q, entropy, most, tier, certain)

    def of_groups(self, group: IntArray) -> Sums:
        """Those of the groups of a grouping of these."""
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], np.arange(group.max() + 1))
        n, q, entropy, tier = (
            np.add.reduceat(x[:, order], starts, axis=1) for x in (self.n, self.q, self.entropy, self.tier)
        )
        most = np.maximum.reduceat(self.most[:, order], starts, axis=1)
        return Sums(n, q, entropy, most, tier, np.logical_or.reduceat(self.certain[order], starts))

    def _columns(self) -> tuple[FloatArray, ...]:
        return self.n, self.q, self.entropy, self.most, self.tier


Parts = dict[str, FloatArray]
"""What each group contributes to each measure that a gate needs: added up, or the largest of all. (cells, groups)."""
ADDED = ("entropy", "distance", "tier")
LARGEST = ("shift", "lift", "share", "incidence")
_GATE = {
    "entropy": "l_min",
    "distance": "t_max",
    "tier": "tier_max",
    "shift": "shift_max",
    "lift": "lift_max",
    "share": "share_max",
    "incidence": "incidence_max",
}


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """The cells that the search looks at.

    Parameters
    ----------
    gates : Gates
    total, persons : (cells,) float64
        Contributions and distinct persons.
    weight : (cells,) float64
        Share of all eligible (person, cell) pairs that a cell stands for.
    values : Sums
        Of each value on its own.
    """

    gates: Gates
    total: FloatArray
    persons: FloatArray
    weight: FloatArray
    values: Sums

    @classmethod
    def of(cls, trial: Trial, fails: BoolArray) -> Estimate:
        """The failing cells that some grouping might clear: joined values never lower an incidence."""
        gates, space = trial.gates, trial.space
        persons = trial.counts.persons.astype(float)
        hopeful = fails & _reachable(trial)
        cells = np.flatnonzero(hopeful)
        if len(cells) > MOST_CELLS:
            order = cells[np.lexsort((cells, -persons[cells]))]
            cells = np.sort(order[np.linspace(0, len(order) - 1, MOST_CELLS).astype(int)])
        weight = persons[cells] / max(persons.sum(), 1.0)
        weight *= persons[hopeful].sum() / max(persons[cells].sum(), 1.0)
        n = trial.fine[cells]
        tier = space.sensitive[0]
        q = _smoothed(trial.reference[cells], trial.mix)
        inside = np.where(tier, q, 0.0)
        sums = Sums(n, q, -q * np.log(q), inside, inside, space.certain[0].copy())
        return cls(gates, n.sum(axis=1), persons[cells], weight, sums)

    def parts(self, sums: Sums) -> Parts:
        """What groups contribute to each measure."""
        p = sums.n / self.total[:, None]
        make: dict[str, Callable[[], FloatArray]] = {
            "entropy": lambda: _told(p, sums),
            "distance": lambda: np.abs(p - sums.q) / 2,
            "tier": lambda: p * (sums.tier / sums.q),
            "shift": lambda: np.abs(p - sums.q) * (sums.most / sums.q),
            "lift": lambda: np.where(sums.most > 0, p / sums.q, 0.0),
            "share": lambda: p * (sums.most / sums.q),
            "incidence": lambda: np.where(sums.certain, np.minimum(sums.n / self.persons[:, None], 1.0), 0.0),
        }
        return {name: make[name]() for name in _used(self.gates)}

    def credit(self, parts: Parts) -> float:
        """What a grouping is worth: persons in cells that pass, and half of how near the others come."""
        measures = {
            name: x.sum(axis=1, keepdims=True) if name in ADDED else x.max(axis=1, keepdims=True, initial=0.0)
            for name, x in parts.items()
        }
        return float(self._credit(measures)[0])

    def credit_of_pairs(self, sums: Sums, parts: Parts, one: IntArray, other: IntArray) -> FloatArray:
        """(pairs,) what the grouping would be worth with two groups joined."""
        ranked = {
            name: np.argsort(-parts[name], axis=1, kind="stable")[:, :3] for name in parts if name in LARGEST
        }
        worth = []
        for start in range(0, len(one), PAIRS):
            i, j = one[start : start + PAIRS], other[start : start + PAIRS]
            measures = self.parts(sums.take(i).join(sums.take(j)))
            for name, x in parts.items():
                if name in ADDED:
                    measures[name] += x.sum(axis=1, keepdims=True) - x[:, i] - x[:, j]
                else:
                    measures[name] = np.maximum(measures[name], _largest_but(x, ranked[name], i, j))
            worth.append(self._credit(measures))
        return np.concatenate(worth)

    def _credit(self, measures: dict[str, FloatArray]) -> FloatArray:
        lacking: FloatArray | None = None
        for name in _used(self.gates):
            x, threshold = measures[name], getattr(self.gates, _GATE[name])
            if name == "entropy":
                short = 1.0 - np.exp(x) / threshold
            elif name == "lift":
                short = 1.0 - threshold / np.maximum(x, 1e-12)
            else:
                short = (x - threshold) / max(1.0 - threshold, 0.05)
            lacking = short if lacking is None else np.maximum(lacking, short)
        if lacking is None:
            return np.zeros(len(next(iter(measures.values()))[0]) if measures else 1)
        worth = np.where(lacking <= 1e-9, 1.0, 0.5 * (1.0 - np.clip(lacking, 0.0, 1.0)))
        return np.asarray(self.weight @ worth)


def _used(gates: Gates) -> list[str]:
    return [name for name in (*ADDED, *LARGEST) if getattr(gates, _GATE[name]) is not None]


def _smoothed(reference: FloatArray, mix: FloatArray) -> FloatArray:
    """(cells, values) shares of the reference, all of them positive: what it lacks takes the mix of the whole area."""
    total = reference.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        q = np.where(total > 0, reference / total, mix)
    q = q + 1e-9 * mix + 1e-15
    return np.asarray(q / q.sum(axis=1, keepdims=True))


def _reachable(trial: Trial) -> BoolArray:
    """(eligible,) cells that fail no gate which a coarser value cannot help against."""
    gates, certain = trial.gates, trial.space.certain[0]
    persons = trial.counts.persons.astype(float)
    held = np.ones(len(persons), bool)
    if gates.incidence_max is not None:
        most = (np.where(certain, trial.fine, 0.0) / persons[:, None]).max(axis=1, initial=0.0)
        held &= meets("incidence_max", most, gates.incidence_max)
    if gates.tier_incidence_max is not None:
        touched = trial.counts.tier[:, trial.attribute] / persons
        held &= meets("tier_incidence_max", touched, gates.tier_incidence_max)
    if any(getattr(gates, gate) is not None for gate in ("t_max", "shift_max", "lift_max")):
        held &= trial.against.known
    return held


def _told(p: FloatArray, sums: Sums) -> FloatArray:
    """(cells, groups) ``-sum b ln b`` over the values of each group, where ``b = p q / sum q``."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p > 0, p * (sums.entropy / sums.q + np.log(sums.q / p)), 0.0)


def _largest_but(x: FloatArray, ranked: IntArray, one: IntArray, other: IntArray) -> FloatArray:
    """(cells, pairs) largest of a row, two groups left out; `ranked` holds the three largest of each row."""
    if x.shape[1] <= 2:
        return np.zeros((len(x), len(one)))
    out = np.take_along_axis(x, ranked[:, 2:3], axis=1)
    for rank in (1, 0):
        code = ranked[:, rank : rank + 1]
        free = (code != one[None, :]) & (code != other[None, :])
        out = np.where(free, np.take_along_axis(x, code, axis=1), out)
    return np.asarray(out)
