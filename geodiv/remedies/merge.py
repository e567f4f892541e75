"""Merge: publish a zone together with a neighbouring one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..arrays import CSR, IntArray
from .situation import Situation


def merge(situation: Situation) -> Situation:
    """Failing zones, fewest persons first, merge with the neighbour that clears them best; disjoint pairs.

    A neighbour clears a zone when their union, counted again, passes at some levels and has at most ``max_members``
    cells. Of several: one that cannot be published as it stands, then the union of the lowest levels, then the one
    with the fewest persons, then the smallest id. A zone whose partners were all taken waits for the next round.
    """
    standing = situation.standing
    zone, partner = _candidates(situation)
    unions = CSR(standing.counts.members[zone] + standing.counts.members[partner])
    unions.sort_indices()
    judged = situation.judge.standing(situation.judge.table.count(unions))
    found = np.flatnonzero(judged.clears)
    zone, partner, levels = zone[found], partner[found], judged.lowest[found]
    waiting = np.zeros(len(standing.eligible), bool)
    waiting[zone] = True
    chosen = _pairs(situation, zone, partner, levels.sum(axis=1))
    waiting[zone[chosen]] = waiting[partner[chosen]] = False
    plan = situation.plan.publish(CSR(unions[found[chosen]]), levels[chosen])
    return replace(situation, plan=plan, waiting=waiting)


def _candidates(situation: Situation) -> tuple[IntArray, IntArray]:
    """(candidates,) failing zones and their neighbours that are not suppressed, small enough together."""
    counts, judge = situation.standing.counts, situation.judge
    failing = np.flatnonzero(situation.failing)
    near = CSR(counts.members[failing] @ judge.table.adjacency @ counts.members.T)
    zone = failing[np.repeat(np.arange(len(failing)), np.diff(near.indptr))]
    partner = near.indices.astype(np.int64)
    small = counts.sizes[zone] + counts.sizes[partner] <= judge.policy.max_members
    enough = counts.persons[zone] + counts.persons[partner] >= judge.policy.k_min
    keep = (zone != partner) & ~situation.plan.suppressed[situation.zones[partner]] & small & enough
    return zone[keep], partner[keep]


def _pairs(situation: Situation, zone: IntArray, partner: IntArray, level: IntArray) -> IntArray:
    """Positions of the candidates that merge, in the order in which they were chosen."""
    persons = situation.standing.counts.persons
    publishable = situation.publishable[partner]
    order = np.lexsort((partner, persons[partner], level, publishable, zone, persons[zone]))
    taken = np.zeros(len(persons), bool)
    chosen = []
    for i in order:
        if not taken[zone[i]] and not taken[partner[i]]:
            taken[zone[i]] = taken[partner[i]] = True
            chosen.append(i)
    return np.array(chosen, dtype=np.int64)
