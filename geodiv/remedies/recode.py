"""Recode: publish an attribute by coarser labels."""

from __future__ import annotations

import numpy as np

from .situation import Situation


def recode(situation: Situation) -> Situation:
    """Each failing zone that coarser labels clear publishes each attribute at the lowest level at which it passes.

    A zone in which one attribute passes at no level is left as it is: a k or incidence failure is never cleared so.
    """
    standing, plan = situation.standing, situation.plan
    rows = np.flatnonzero(situation.failing & standing.clears)
    lowest = standing.lowest[rows]
    for attribute in range(lowest.shape[1]):
        plan = plan.recode(situation.zones[rows], attribute, lowest[:, attribute])
    return situation.with_plan(plan)
