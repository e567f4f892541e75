"""Grow: publish cells that nothing has published yet, several of them together. It touches no published zone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csgraph

from ..arrays import CSR, BoolArray, IntArray
from ..engines.protocol import Groups
from ..plan import Plan
from ..scores import Judge


@dataclass(frozen=True, slots=True, eq=False)
class Grown:
    """What became of some seeds: the cells each gathered, in that order, and the levels at which they pass.

    ``path`` is (seeds, max_members) int64, -1 after the last cell; ``levels`` is (seeds, attributes), -1 where the
    seed does not pass.
    """

    path: IntArray
    levels: IntArray

    @property
    def passes(self) -> BoolArray:
        """(seeds,) whether the gathered cells can be published."""
        return np.asarray((self.levels >= 0).all(axis=1))

    def within(self, free: BoolArray) -> BoolArray:
        """(seeds,) whether every gathered cell is still free: the path is then what it would be today."""
        return np.asarray((free[self.path] | (self.path < 0)).all(axis=1))

    def take(self, rows: IntArray | BoolArray) -> Grown:
        """What became of some of the seeds."""
        return Grown(self.path[rows], self.levels[rows])

    def put(self, rows: IntArray, other: Grown) -> Grown:
        """The same with some seeds grown anew."""
        path, levels = self.path.copy(), self.levels.copy()
        path[rows], levels[rows] = other.path, other.levels
        return Grown(path, levels)


def grow(judge: Judge, plan: Plan, published: BoolArray) -> Plan:
    """Cells in no published zone, most persons first, gather neighbours until they pass or are full.

    Each takes the adjacent unpublished cell that adds most persons (ties: id). Seeds are grown many at a time; the
    result is that of one after the other: a seed counts only when no earlier one can still take a cell of its path.

    Parameters
    ----------
    judge : Judge
    plan : Plan
    published : (cells,) bool
        Cells that belong to a published zone.
    """
    persons = judge.table.persons
    free = ~published
    waiting = np.flatnonzero(_hopeful(judge, free))
    waiting = waiting[np.lexsort((waiting, -persons[waiting]))]
    grown = _grow(judge, free, waiting)
    while len(waiting):
        settled, chosen = _settle(judge, free, waiting, grown)
        plan = plan.publish(_sets(grown.path[chosen], len(plan.zone)), grown.levels[chosen])
        free[grown.path[chosen][grown.path[chosen] >= 0]] = False
        left = ~settled & free[waiting]
        waiting, grown = waiting[left], grown.take(left)
        stale = np.flatnonzero(~grown.within(free))
        grown = grown.put(stale, _grow(judge, free, waiting[stale]))
    return plan


def _hopeful(judge: Judge, free: BoolArray) -> BoolArray:
    """(cells,) free cells whose connected free surroundings hold enough persons to reach k_min at all."""
    inside = CSR(judge.table.adjacency.multiply(free[:, None]).multiply(free[None, :]))
    inside.eliminate_zeros()
    _, part = csgraph.connected_components(inside, directed=False)
    total = np.bincount(part, weights=judge.table.persons * free)
    size = np.bincount(part, weights=free)
    return np.asarray((total[part] >= judge.policy.k_min) & (size[part] > 1))


def _grow(judge: Judge, free: BoolArray, seeds: IntArray) -> Grown:
    path = np.full((len(seeds), judge.policy.max_members), -1, dtype=np.int64)
    path[:, 0] = seeds
    levels = np.full((len(seeds), len(judge.start)), -1, dtype=np.int64)
    active = np.arange(len(seeds))
    for step in range(1, judge.policy.max_members):
        added = _best(judge, free, path[active, :step])
        active, added = active[added >= 0], added[added >= 0]
        if not len(active):
            break
        path[active, step] = added
        standing = judge.standing(judge.table.count(_sets(path[active, : step + 1], len(free))))
        passed = standing.clears
        levels[active[passed]] = standing.lowest[passed]
        active = active[~passed]
    return Grown(path, levels)


def _best(judge: Judge, free: BoolArray, path: IntArray) -> IntArray:
    """(seeds,) the free neighbour of each set of cells that adds most persons, ties the smallest; -1 for none."""
    table = judge.table
    own = _sets(path, len(free))
    near = CSR(own @ table.adjacency)
    seed = np.repeat(np.arange(len(path)), np.diff(near.indptr))
    cell = near.indices.astype(np.int64)
    inside = (
        np.asarray(CSR(near.multiply(own)).tocsr()[seed, cell]).ravel() > 0
        if len(cell)
        else np.zeros(0, bool)
    )
    keep = free[cell] & ~inside
    seed, cell = seed[keep], cell[keep]
    size = path.shape[1]
    group = np.repeat(np.arange(len(cell)), size + 1)
    cells = np.concatenate([path[seed], cell[:, None]], axis=1).ravel()
    together = table.engine.count(table.contributions, Groups(None, cells, None, group, len(cell)))
    order = np.lexsort((cell, -together, seed))
    seed, cell = seed[order], cell[order]
    best = np.full(len(path), -1, dtype=np.int64)
    first = np.concatenate([[True], seed[1:] != seed[:-1]]) if len(seed) else np.zeros(0, bool)
    best[seed[first]] = cell[first]
    return best


def _sets(path: IntArray, cells: int) -> CSR:
    """(seeds, cells) sparse 0/1 of the cells of each path."""
    seed, at = np.nonzero(path >= 0)
    return CSR((np.ones(len(seed)), (seed, path[seed, at])), shape=(len(path), cells))


def _settle(judge: Judge, free: BoolArray, seeds: IntArray, grown: Grown) -> tuple[BoolArray, IntArray]:
    """Which seeds are decided, and which of them publish, as if they had been grown one after the other."""
    neighbours = judge.table.adjacency
    taken: set[int] = set()
    unsure: set[int] = set()
    settled = np.zeros(len(seeds), bool)
    chosen = []
    passes = grown.passes
    for i, seed in enumerate(seeds.tolist()):
        cells = [c for c in grown.path[i].tolist() if c >= 0]
        if seed in taken:
            settled[i] = True
        elif taken.isdisjoint(cells) and unsure.isdisjoint(cells):
            settled[i] = True
            if passes[i]:
                chosen.append(i)
                taken.update(cells)
        else:
            unsure |= _surroundings(neighbours, free, seed, judge.policy.max_members - 1)
    return settled, np.array(chosen, dtype=np.int64)


def _surroundings(neighbours: CSR, free: BoolArray, seed: int, steps: int) -> set[int]:
    """Every free cell that a seed could gather."""
    found = {seed}
    edge = [seed]
    for _ in range(steps):
        near = {
            c
            for at in edge
            for c in neighbours.indices[neighbours.indptr[at] : neighbours.indptr[at + 1]].tolist()
        }
        edge = [c for c in near - found if free[c]]
        found.update(edge)
    return found
