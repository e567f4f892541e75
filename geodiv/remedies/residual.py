"""Residual: what a reader gets by subtracting the map from a total must be safe as well."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..arrays import CSR, BoolArray, IntArray
from ..measures import effective_count, shares
from ..plan import Plan
from ..policy import meets
from ..scores import Judge
from ..tabulation import Counts


@dataclass(frozen=True, slots=True, eq=False)
class Rest:
    """The test of sets of eligible cells that are not published.

    Parameters
    ----------
    judge : Judge
    everyone : Counts
        All eligible cells as one zone: an incidence that everybody has is no news.
    """

    judge: Judge
    everyone: Counts

    @classmethod
    def of(cls, judge: Judge) -> Rest:
        """The test under a policy."""
        return cls(judge, judge.table.count(CSR(judge.references.eligible[None, :].astype(float))))

    def safe(self, sets: CSR) -> BoolArray:
        """(sets,) whether each set of cells is empty or safe; ``sets`` is (sets, cells) sparse of 0 and 1."""
        counts = self.judge.table.count(sets)
        safe = (counts.sizes >= 2) & meets("k_min", counts.persons, self.judge.policy.k_min)
        for attribute in range(len(self.judge.start)):
            safe &= self._diverse(counts, attribute) & self._uncertain(counts, attribute)
            safe &= self._untold(counts, attribute)
        return np.asarray(safe | (counts.sizes == 0))

    def _diverse(self, counts: Counts, attribute: int) -> BoolArray:
        l_min = self.judge.gates(attribute).l_min
        if l_min is None:
            return np.ones(len(counts.persons), bool)
        distinct = shares(counts.labels[attribute][0].todense())
        pooled = shares((counts.members @ self.judge.table.base.labels[attribute][0]).todense())
        held = meets("l_min", effective_count(distinct), l_min) & meets(
            "l_min", effective_count(pooled), l_min
        )
        return np.asarray(held)

    def _uncertain(self, counts: Counts, attribute: int) -> BoolArray:
        ceiling = self.judge.gates(attribute).incidence_max
        if ceiling is None:
            return np.ones(len(counts.persons), bool)
        certain = self.judge.table.spaces[attribute].certain[0]
        limit = np.maximum(ceiling, _incidence(self.everyone, attribute))
        excess = np.where(certain, _incidence(counts, attribute) - limit, -1.0).max(axis=1, initial=-1.0)
        return np.asarray(meets("incidence_max", excess, 0.0))

    def _untold(self, counts: Counts, attribute: int) -> BoolArray:
        """(sets,) whether no more persons than everywhere did anything of the sensitive tier."""
        ceiling = self.judge.gates(attribute).tier_incidence_max
        if ceiling is None:
            return np.ones(len(counts.persons), bool)
        everywhere = self.everyone.tier[0, attribute] / max(int(self.everyone.persons[0]), 1)
        touched = counts.tier[:, attribute] / np.maximum(counts.persons, 1)
        return np.asarray(meets("tier_incidence_max", touched, max(ceiling, everywhere)))


def protect_residual(rest: Rest, plan: Plan, published: IntArray, counts: Counts) -> Plan:
    """Suppress zones until the eligible cells that are not published are safe as a group.

    The zone with the fewest persons among those that make the rest safe goes, else the one with the fewest persons
    that holds an eligible cell (ties: id). Where no such zone is left, the rest of the release goes too.

    Parameters
    ----------
    rest : Rest
    plan : Plan
    published : (zones,) int64
        Positions of the published zones' smallest members.
    counts : Counts
        Of these zones, in the same order.
    """
    eligible = rest.judge.references.eligible.astype(float)
    held = CSR(counts.members.multiply(eligible[None, :]))
    useful = np.flatnonzero(np.diff(_clean(held).indptr) > 0)
    useful = useful[np.lexsort((published[useful], counts.persons[useful]))]
    left = _clean(CSR((eligible - np.asarray(held.sum(axis=0)).ravel())[None, :]))
    while not rest.safe(left)[0]:
        if not len(useful):
            return plan.suppress(published)
        at = _first_safe(rest, left, held, useful)
        plan = plan.suppress(published[useful[at : at + 1]])
        left = CSR(left + held[useful[at : at + 1]])
        useful = np.delete(useful, at)
    return plan


def _first_safe(rest: Rest, left: CSR, held: CSR, useful: IntArray) -> int:
    """Position in `useful` of the first zone that makes the rest safe, 0 when none does."""
    size, start = 8, 0
    while start < len(useful):
        some = useful[start : start + size]
        many = CSR(np.ones((len(some), 1))) @ left + held[some]
        safe = rest.safe(_clean(CSR(many)))
        if safe.any():
            return start + int(safe.argmax())
        start, size = start + size, size * 2
    return 0


def _incidence(counts: Counts, attribute: int) -> NDArray[np.float64]:
    n = np.asarray(counts.labels[attribute][0].todense(), dtype=float)
    return n / np.maximum(counts.persons, 1)[:, None]


def _clean(matrix: CSR) -> CSR:
    matrix = CSR(matrix)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix
