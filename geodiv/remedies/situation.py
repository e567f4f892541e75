"""Situation: what a remedy sees, and what it leaves."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..arrays import BoolArray, IntArray
from ..plan import Plan
from ..scores import Judge, Standing


@dataclass(frozen=True, slots=True, eq=False)
class Situation:
    """The zones of a partition, how they stand, and the plan as the remedies of this round have written it so far.

    Parameters
    ----------
    judge : Judge
    standing : Standing
        Of the zones at the start of the round, at every level.
    plan : Plan
    waiting : (zones,) bool
        Zones that a merge would clear once their partners are free again.
    """

    judge: Judge
    standing: Standing
    plan: Plan
    waiting: BoolArray

    @classmethod
    def of(cls, judge: Judge, standing: Standing, plan: Plan) -> Situation:
        """The situation at the start of a round."""
        return cls(judge, standing, plan, np.zeros(len(standing.eligible), bool))

    @property
    def zones(self) -> IntArray:
        """(zones,) positions of the zones' smallest members, at the start of the round."""
        return self.standing.counts.members.indices[self.standing.counts.members.indptr[:-1]].astype(np.int64)

    @property
    def publishable(self) -> BoolArray:
        """(zones,) whether each zone passes at the levels of the plan, suppressed or not."""
        level = self.plan.level[self.zones]
        held = [p[np.arange(len(p)), level[:, a]] for a, p in enumerate(self.standing.passes)]
        return np.asarray(self.standing.eligible & np.all(held, axis=0))

    @property
    def failing(self) -> BoolArray:
        """(zones,) eligible zones that are neither publishable nor suppressed, nor part of a new zone."""
        held = self.publishable | self.plan.suppressed[self.zones]
        return np.asarray(self.standing.eligible & ~held & self.untouched_by(self.plan))

    def untouched_by(self, plan: Plan) -> BoolArray:
        """(zones,) zones of the start of the round that are zones of a plan, with the same cells."""
        sizes = np.bincount(plan.zone, minlength=len(plan.zone))[self.zones]
        return np.asarray((plan.zone[self.zones] == self.zones) & (sizes == self.standing.counts.sizes))

    def with_plan(self, plan: Plan) -> Situation:
        """The same under another plan."""
        return replace(self, plan=plan)
