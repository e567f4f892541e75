"""Course: how far a run has come: a plan, how its zones stand, and the journal of how it came about."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .arrays import IntArray
from .plan import Plan
from .remedies.situation import Situation
from .scores import Judge, Standing


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """A plan in the middle of a run.

    Parameters
    ----------
    judge : Judge
    plan : Plan
    standing : Standing
        Of the plan's zones.
    journal : tuple of dict
        One entry a round or stage: round, stage, failing, recoded, merged, suppressed, zones.
    """

    judge: Judge
    plan: Plan
    standing: Standing
    journal: tuple[dict[str, Any], ...] = ()

    @classmethod
    def of(cls, judge: Judge, plan: Plan, journal: tuple[dict[str, Any], ...] = ()) -> Course:
        """The course at a plan, counted and judged from scratch."""
        return cls(judge, plan, judge.standing(judge.table.recount(plan)), journal)

    @property
    def situation(self) -> Situation:
        """What a remedy sees."""
        return Situation.of(self.judge, self.standing, self.plan)

    @property
    def published(self) -> IntArray:
        """Rows of the zones that are published as the plan stands."""
        situation = self.situation
        return np.flatnonzero(situation.publishable & ~self.plan.suppressed[situation.zones])

    def onto(self, plan: Plan, stage: str, number: int | None = None) -> Course:
        """The course at the next plan, its new zones counted again, and an entry of what changed."""
        journal = (*self.journal, _entry(number, stage, self.situation, plan))
        return replace(self, plan=plan, standing=self.judge.restanding(plan, self.standing), journal=journal)

    def withheld(self) -> Course:
        """The course with whatever does not pass suppressed, cells below k among it."""
        situation = self.situation
        return replace(self, plan=self.plan.suppress(situation.zones[~situation.publishable]))


def _entry(number: int | None, stage: str, before: Situation, plan: Plan) -> dict[str, Any]:
    zones, old = before.zones, before.plan
    alone = before.untouched_by(plan)
    return {
        "round": number,
        "stage": stage,
        "failing": int(before.failing.sum()),
        "recoded": int(((plan.level != old.level).any(axis=1)[zones] & alone).sum()),
        "merged": int((~alone).sum()),
        "suppressed": int((plan.suppressed & ~old.suppressed)[zones].sum()),
        "zones": len(plan.zones),
    }
