"""Refine: change a plan that is done, one move at a time, until no single move would still pass."""

from __future__ import annotations

import numpy as np

from ..arrays import CSR, BoolArray, IntArray
from ..plan import Plan
from ..scores import Judge
from .moves import Moves, View, kinds
from .residual import Rest


def refine(judge: Judge, plan: Plan, rest: Rest | None) -> Plan:
    """The plan after every move that publishes more persons, or the same ones in more zones or at finer levels.

    The kinds of `geodiv.remedies.moves` are tried in their order; whenever one changes the plan, the first is tried
    again. Of one kind the moves are taken in their order, each whose cells none before it took. It ends: no move takes
    back a person, none but the publishing ones takes back a zone, and an exchange only makes zones less coarse.

    Parameters
    ----------
    judge : Judge
    plan : Plan
        Every zone that it does not suppress passes.
    rest : Rest or None
        Where given, what is not published must be safe after each move.
    """
    plan = plan.dissolve()
    order = kinds("merge" in judge.policy.ladder)
    fresh = np.ones((len(order), len(plan.zone)), bool)
    view, kind = View.of(judge, plan), 0
    while kind < len(order):
        moves = order[kind](view, fresh[kind])
        taken = _taken(view, moves, rest)
        fresh[kind] = _any(moves.cells, np.setdiff1d(np.arange(moves.cells.shape[0]), taken))
        kind += 1
        if len(taken):
            fresh |= _any(moves.cells, taken)
            view, kind = View.of(judge, moves.apply(view.plan, taken)), 0
    return view.plan


def _taken(view: View, moves: Moves, rest: Rest | None) -> IntArray:
    """Moves that are taken together; where the rest forbids all of a choice, the next choice without them."""
    cells, dark = moves.cells, view.plan.suppressed
    left = np.arange(cells.shape[0])
    while len(left):
        chosen = _disjoint(cells, left)
        if rest is None or not _any(cells, chosen)[dark].any():
            return chosen
        taken = _safe(rest, view.judge.references.eligible & dark, cells, chosen)
        if len(taken):
            return taken
        left = np.setdiff1d(left, chosen)
    return left


def _disjoint(cells: CSR, rows: IntArray) -> IntArray:
    """Of some moves, in order, those whose cells none before took."""
    used = np.zeros(cells.shape[1], bool)
    chosen = []
    for row in rows.tolist():
        own = cells.indices[cells.indptr[row] : cells.indptr[row + 1]]
        if not used[own].any():
            used[own] = True
            chosen.append(row)
    return np.array(chosen, dtype=np.int64)


def _safe(rest: Rest, dark: BoolArray, cells: CSR, rows: IntArray) -> IntArray:
    """All of the moves where what is left is safe after them, else what can be had of each half in turn."""
    after = dark & ~_any(cells, rows)
    if rest.safe(CSR(after[None, :].astype(float)))[0]:
        return rows
    if len(rows) == 1:
        return rows[:0]
    half = len(rows) // 2
    first = _safe(rest, dark, cells, rows[:half])
    return np.concatenate([first, _safe(rest, dark & ~_any(cells, first), cells, rows[half:])])


def _any(cells: CSR, rows: IntArray) -> BoolArray:
    """(cells,) cells that any of some moves touches."""
    touched = np.zeros(cells.shape[1], bool)
    touched[cells[rows].indices] = True
    return touched
