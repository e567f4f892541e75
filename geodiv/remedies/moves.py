"""Moves: the single changes of a plan that would still pass, of one kind at a time.

A move makes one or two zones out of whole published zones and unpublished cells. Every set of cells that a move would
publish is counted again and judged at every level; nothing is concluded from the zones that it is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from ..arrays import CSR, BoolArray, IntArray
from ..plan import Plan
from ..policy import meets
from ..scores import Judge

PART = 3
"""Cells that a split takes off a zone at most: in zones of seven, every split in two is one of these."""
BATCH = 50_000
"""Sets of cells that are counted at a time; it bounds memory, not results."""


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """Moves that pass every gate, the first to be taken in front.

    Parameters
    ----------
    zones : tuple of (moves, cells) sparse of 0 and 1
        The zones that each move makes: one or two.
    levels : tuple of (moves, attributes) int64
        The lowest levels at which each of them passes.
    """

    zones: tuple[CSR, ...]
    levels: tuple[IntArray, ...]

    @property
    def cells(self) -> CSR:
        """(moves, cells) sparse of 0 and 1: the cells that each move touches."""
        return CSR(sum(self.zones[1:], start=self.zones[0]))

    def apply(self, plan: Plan, rows: IntArray) -> Plan:
        """The plan after some of the moves, which touch no cell twice."""
        groups = sparse.vstack([zones[rows] for zones in self.zones], format="csr")
        return plan.publish(groups, np.concatenate([levels[rows] for levels in self.levels]))


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A plan as the kinds of moves see it; every unpublished cell is a zone of its own.

    Parameters
    ----------
    judge : Judge
    plan : Plan
    zones : (zones,) int64
        Positions of the published zones' smallest members, ascending.
    members : (zones, cells) sparse of 0 and 1
        Of the published zones.
    lost : (zones,) int64
        Their `coarseness`.
    """

    judge: Judge
    plan: Plan
    zones: IntArray
    members: CSR
    lost: IntArray

    @classmethod
    def of(cls, judge: Judge, plan: Plan) -> View:
        """The view of a plan."""
        shown = np.flatnonzero(~plan.suppressed[plan.zones])
        zones, members = plan.zones[shown], CSR(plan.members()[shown])
        return cls(judge, plan, zones, members, coarseness(judge, members, plan.level[zones]))

    @property
    def home(self) -> IntArray:
        """(cells,) row of each cell's zone, -1 where it is not published."""
        rows = np.searchsorted(self.zones, self.plan.zone)
        return np.where(self.plan.suppressed, -1, rows)

    def passing(self, sets: CSR) -> tuple[IntArray, IntArray]:
        """Positions of the sets that pass every gate at some levels, and the lowest of these."""
        judge = self.judge
        enough = np.flatnonzero(meets("k_min", sets @ judge.table.persons, judge.policy.k_min))
        found, lowest = [], []
        for start in range(0, len(enough), BATCH):
            rows = enough[start : start + BATCH]
            standing = judge.standing(judge.table.count(CSR(sets[rows])))
            found.append(rows[standing.clears])
            lowest.append(standing.lowest[standing.clears])
        if not found:
            return enough, np.zeros((0, len(judge.start)), dtype=np.int64)
        return np.concatenate(found), np.concatenate(lowest)


Kind = Callable[[View, BoolArray], Moves]
"""Moves of one kind, but for those that touch no fresh cell: they were found wanting, and nothing of theirs changed."""


def coarseness(judge: Judge, sets: CSR, levels: IntArray) -> IntArray:
    """(sets,) persons of each cell, summed, times the levels at which their attributes are published."""
    persons = np.asarray(sets @ judge.table.persons.astype(float)).astype(np.int64)
    return np.asarray(persons * levels.sum(axis=1))


def publish(view: View, fresh: BoolArray, size: int, joined: int) -> Moves:
    """Unpublished cells, one or two that touch, become a zone together with so many published zones.

    Most persons first, then what adds least coarseness, then the smallest ids of the cells, then of the zones.

    Parameters
    ----------
    view : View
    fresh : (cells,) bool
    size : int
        Unpublished cells of a move.
    joined : int
        Published zones that it takes in: 0, 1 or 2.
    """
    members, pieces = view.members, _pieces(view, size)
    piece, zones = _joined(pieces, members, view.judge.table.adjacency, joined)
    cells = np.diff(members.indptr)[zones].sum(axis=1) + size
    room = cells <= view.judge.policy.max_members
    piece, zones = piece[room], zones[room]
    new = (_touches(pieces, fresh)[piece]) | _touches(members, fresh)[zones].any(axis=1)
    piece, zones = piece[new], zones[new]
    sets = CSR(pieces[piece])
    for j in range(joined):
        sets = CSR(sets + members[zones[:, j]])
    found, levels = view.passing(sets)
    piece, zones, sets = piece[found], zones[found], CSR(sets[found])
    added = coarseness(view.judge, sets, levels) - view.lost[zones].sum(axis=1)
    gain = pieces[piece] @ view.judge.table.persons
    order = np.lexsort((*zones.T[::-1], piece, added, -gain))
    return Moves((_sorted(sets[order]),), (levels[order],))


def split(view: View, fresh: BoolArray) -> Moves:
    """Published zones fall into two, of which neither is coarser than the whole: the least coarse two.

    One of the two has at most `PART` cells; where two ways are alike, the part of the smallest ids.
    """
    zone, part = _parts(view, fresh)
    found, below = view.passing(part)
    fine = (below <= view.plan.level[view.zones[zone[found]]]).all(axis=1)
    zone, part, below = zone[found[fine]], CSR(part[found[fine]]), below[fine]
    rest = _sorted(view.members[zone] - part)
    whole = np.flatnonzero(connected(rest, view.judge.table.adjacency))
    found, above = view.passing(CSR(rest[whole]))
    found = whole[found]
    fine = (above <= view.plan.level[view.zones[zone[found]]]).all(axis=1)
    found, above = found[fine], above[fine]
    zone, part, rest, below = zone[found], CSR(part[found]), CSR(rest[found]), below[found]
    lost = coarseness(view.judge, part, below) + coarseness(view.judge, rest, above)
    order = np.lexsort((*_ids(part, PART).T[::-1], lost, zone))
    best = order[np.concatenate([[True], np.diff(zone[order]) > 0])] if len(order) else order
    return Moves((_sorted(part[best]), _sorted(rest[best])), (below[best], above[best]))


def exchange(view: View, fresh: BoolArray) -> Moves:
    """A member of one published zone becomes one of another, and the two are less coarse together.

    The largest fall of coarseness first, then the smallest id of the cell, then of the zone that takes it.
    """
    table, members, home, lost = view.judge.table, view.members, view.home, view.lost
    sizes, persons = np.diff(members.indptr), np.asarray(members @ table.persons)
    cell = np.flatnonzero(home >= 0)
    cell = cell[sizes[home[cell]] > 1]
    near = CSR(table.adjacency[cell] @ members.T)
    cell, taker = np.repeat(cell, np.diff(near.indptr)), near.indices.astype(np.int64)
    room = (taker != home[cell]) & (sizes[taker] < view.judge.policy.max_members)
    least = (persons[home[cell]] + persons[taker]) * sum(view.judge.start)
    could = least < lost[home[cell]] + lost[taker]
    new = fresh[cell] | fresh[view.zones[taker]]
    cell, taker = cell[room & could & new], taker[room & could & new]
    giver, row = np.unique(cell, return_inverse=True)
    left = _sorted(members[home[giver]] - _singles(giver, len(home)))
    whole = np.flatnonzero(connected(left, table.adjacency))
    found, below = view.passing(CSR(left[whole]))
    place = np.full(len(giver), -1, dtype=np.int64)
    place[whole[found]] = np.arange(len(found))
    left = CSR(left[whole[found]])
    good = np.flatnonzero(place[row] >= 0)
    row, cell, taker = place[row[good]], cell[good], taker[good]
    found, above = view.passing(CSR(members[taker] + _singles(cell, len(home))))
    row, cell, taker = row[found], cell[found], taker[found]
    grown = CSR(members[taker] + _singles(cell, len(home)))
    fall = coarseness(view.judge, left, below)[row] + coarseness(view.judge, grown, above)
    fall -= lost[home[cell]] + lost[taker]
    order = np.lexsort((taker, cell, fall))
    order = order[fall[order] < 0]
    return Moves((_sorted(left[row[order]]), _sorted(grown[order])), (below[row[order]], above[order]))


def connected(sets: CSR, adjacency: CSR) -> BoolArray:
    """(sets,) whether the cells of each set, ascending, hang together."""
    owner = np.repeat(np.arange(sets.shape[0]), np.diff(sets.indptr))
    node = owner * sets.shape[1] + sets.indices
    near = CSR(adjacency[sets.indices])
    one = np.repeat(np.arange(len(node)), np.diff(near.indptr))
    code = owner[one] * sets.shape[1] + near.indices
    other = np.minimum(np.searchsorted(node, code), max(len(node) - 1, 0))
    inside = node[other] == code if len(node) else np.zeros(0, bool)
    graph = CSR((np.ones(int(inside.sum())), (one[inside], other[inside])), shape=(len(node), len(node)))
    _, component = csgraph.connected_components(graph, directed=False)
    parts = np.unique(owner * max(len(node), 1) + component)
    return np.asarray(np.bincount(parts // max(len(node), 1), minlength=sets.shape[0]) == 1)


def _pieces(view: View, size: int) -> CSR:
    """(pieces, cells) sparse of 0 and 1: single unpublished cells or pairs of them that touch, by their ids."""
    free = view.plan.suppressed
    if size == 1:
        return _singles(np.flatnonzero(free), len(free))
    steps = _sorted(
        sparse.triu(_within(view.judge.table.adjacency, np.where(free, 0, -1)), k=1, format="csr")
    )
    one = np.repeat(np.arange(len(free)), np.diff(steps.indptr))
    return _rows(np.stack([one, steps.indices.astype(np.int64)], axis=1), len(free))


def _joined(pieces: CSR, members: CSR, adjacency: CSR, joined: int) -> tuple[IntArray, IntArray]:
    """Each piece with so many zones that hang together with it: (candidates,) and (candidates, joined) positions."""
    near = CSR(pieces @ adjacency @ members.T)
    if joined == 0:
        return np.arange(pieces.shape[0]), np.zeros((pieces.shape[0], 0), dtype=np.int64)
    piece, zone = np.repeat(np.arange(pieces.shape[0]), np.diff(near.indptr)), near.indices.astype(np.int64)
    if joined == 1:
        return piece, zone[:, None]
    beside = CSR(members[zone] @ adjacency @ members.T)
    both = CSR(near[piece] + beside)
    row, other = np.repeat(np.arange(len(zone)), np.diff(both.indptr)), both.indices.astype(np.int64)
    row, other = row[other != zone[row]], other[other != zone[row]]
    pairs = np.sort(np.stack([zone[row], other], axis=1), axis=1)
    triples = np.unique(np.concatenate([piece[row, None], pairs], axis=1), axis=0)
    return triples[:, 0], triples[:, 1:]


def _parts(view: View, fresh: BoolArray) -> tuple[IntArray, CSR]:
    """Zones and a connected part of each, at most `PART` cells and at most half of them; (parts,), (parts, cells)."""
    home, sizes = view.home, np.diff(view.members.indptr)
    inside = _within(view.judge.table.adjacency, home)
    paths = np.flatnonzero((home >= 0) & fresh)[:, None]
    found = []
    for _ in range(PART):
        zone = home[paths[:, 0]]
        paths = paths[2 * paths.shape[1] <= sizes[zone]]
        parts = np.unique(np.sort(paths, axis=1), axis=0)
        zone = home[parts[:, 0]]
        half = 2 * parts.shape[1] == sizes[zone]
        found.append(_rows(parts[~half | (parts[:, 0] == view.zones[zone])], len(home)))
        near = _rows(parts, len(home)) @ inside
        row = np.repeat(np.arange(len(parts)), np.diff(near.indptr))
        grown = np.concatenate([parts[row], near.indices[:, None].astype(np.int64)], axis=1)
        paths = grown[(grown[:, :-1] != grown[:, -1:]).all(axis=1)]
    every = CSR(sparse.vstack(found, format="csr"))
    return home[every.indices[every.indptr[:-1]]], every


def _touches(sets: CSR, cells: BoolArray) -> BoolArray:
    """(sets,) whether any of some cells is in each set."""
    return np.asarray(sets @ cells.astype(float) > 0)


def _within(adjacency: CSR, home: IntArray) -> CSR:
    """The steps between cells of one home; -1 is none."""
    step = adjacency.tocoo()
    one, other = step.coords
    same = (home[one] == home[other]) & (home[one] >= 0)
    return CSR((np.ones(int(same.sum())), (one[same], other[same])), shape=step.shape)


def _singles(cells: IntArray, size: int) -> CSR:
    return _rows(cells[:, None], size)


def _rows(cells: IntArray, size: int) -> CSR:
    """(sets, cells) sparse of 0 and 1 of the cells in each row of an array."""
    sets, width = cells.shape
    ends = np.arange(sets + 1) * width
    return _sorted(CSR((np.ones(sets * width), cells.ravel(), ends), shape=(sets, size)))


def _ids(sets: CSR, width: int) -> IntArray:
    """(sets, width) positions of the cells of each set, ascending, -1 after the last."""
    ids = np.full((sets.shape[0], width), -1, dtype=np.int64)
    row = np.repeat(np.arange(sets.shape[0]), np.diff(sets.indptr))
    ids[row, np.arange(len(row)) - sets.indptr[:-1][row]] = sets.indices
    return ids


def _sorted(sets: CSR) -> CSR:
    """The sets, the cells of each ascending. What is 0 after adding or subtracting sets is not stored."""
    sets = CSR(sets)
    sets.sort_indices()
    return sets


def kinds(merges: bool) -> Sequence[Kind]:
    """The kinds of moves in the order in which they are tried; without merging, zones stay cells."""
    alone = partial(publish, size=1, joined=0)
    if not merges:
        return [alone]
    with_one, with_two = (partial(publish, size=1, joined=joined) for joined in (1, 2))
    pairs = [partial(publish, size=2, joined=joined) for joined in (0, 1, 2)]
    return [alone, with_one, split, with_two, *pairs, exchange]
