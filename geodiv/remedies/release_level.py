"""Recoding by one level for the whole release: silent about which zone failed."""

from __future__ import annotations

import numpy as np

from ..scores import Judge


def release_levels(judge: Judge) -> tuple[int, ...]:
    """One level for each attribute: the one at which most persons are in zones that pass it (ties: the finest).

    Persons are summed over the eligible cells, each attribute on its own.
    """
    standing = judge.standing(judge.table.base)
    persons = standing.counts.persons
    levels = []
    for passes, allowed in zip(standing.passes, judge.allowed, strict=True):
        kept = np.where(allowed, persons @ passes, -1)
        levels.append(int(kept.argmax()))
    return tuple(levels)
