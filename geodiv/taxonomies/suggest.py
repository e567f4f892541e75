"""Suggest: coarse values for these visits, searched: persons kept under the policy for the least that is lost."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

import numpy as np
from scipy import special

from ..arrays import BoolArray, FloatArray, IntArray
from ..attribute import Nominal
from ..errors import TaxonomyError
from ..labels import LabelSpace
from ..policy import Policy
from ..tabulation import Tabulation
from ..taxonomy import Taxonomy
from .check import information_lost
from .estimate import Estimate, Sums
from .trial import Trial
from .wishes import Wishes, labels_for

PRICES = (0.02, 0.1, 0.5)
"""What a search pays for lost information, in persons kept; one search each."""
MANY = 40
"""Groups above which only the pairs that lose least are tried."""
TRIED = 120
FEW = 7
"""Values up to which every grouping is tried."""
RECOUNTED = 24
"""Groupings that are counted again at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Suggestion:
    """One taxonomy, counted.

    Parameters
    ----------
    taxonomy : Taxonomy
        One level.
    labels : int
        Labels that visits take, ``(missing)`` left out.
    kept : float
        0 to 1, share of the (person, cell) pairs of eligible cells in cells that pass as they are or coarsened.
    cleared : int
        Failing cells that it clears.
    information_lost : float
        0 to 1, share of the values' entropy that its labels no longer tell.
    sensitive_only : tuple of str
        Labels made of several sensitive values and nothing else: they still tell.
    """

    taxonomy: Taxonomy
    labels: int
    kept: float
    cleared: int
    information_lost: float
    sensitive_only: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Suggestions:
    """Taxonomies of which none keeps more persons for less lost than another.

    Parameters
    ----------
    attribute : str
    kept_without, failing : float and int
        Share of the (person, cell) pairs in cells that pass as they are, and the number of cells that do not.
    frontier : tuple of Suggestion
        By information lost, ascending.
    """

    attribute: str
    kept_without: float
    failing: int
    frontier: tuple[Suggestion, ...]

    @property
    def best(self) -> Suggestion | None:
        """Within two hundredths of the most that any keeps, the one that loses least; None when none keeps more."""
        most = max((s.kept for s in self.frontier), default=0.0)
        return next((s for s in self.frontier if s.kept >= most - 0.02), None)


def suggest_taxonomy(
    table: Tabulation, policy: Policy, attribute: str | None = None, *, wishes: Wishes | None = None
) -> Suggestions:
    """Taxonomies of one level that clear cells which fail under a policy, for as little as possible.

    Parameters
    ----------
    table : Tabulation
    policy : Policy
    attribute : str, optional
        Needed when the table has several. A taxonomy that it has is not looked at.
    wishes : Wishes, optional

    Returns
    -------
    Suggestions
        The same for the same counts. Empty when no grouping keeps more persons than the values as they are.

    Raises
    ------
    PolicyError
        No such attribute, or wishes that contradict each other.
    TaxonomyError
        Fewer than three values that may be joined.

    Notes
    -----
    Of a few values every grouping is tried. Of more, groups are joined two at a time, the pair first that adds most
    persons kept (and brings the others nearest to passing) for what it loses, at several prices. Sums of counts guide
    the search; the groupings on its frontier are counted again, and those figures are reported.

    Examples
    --------
    >>> import geodiv as gd
    >>> run = gd.read_run("fixtures/policy.toml")
    >>> table = run.tabulate("fixtures/visits.parquet")
    >>> type(gd.suggest_taxonomy(table, run.policy, "poi_category")).__name__
    'Suggestions'
    """
    trial = Trial.of(table, policy, attribute)
    wishes = wishes or Wishes()
    space = trial.space
    occurs = np.asarray(table.base.labels[trial.attribute][0].sum(axis=0) > 0).ravel()
    group, forbidden = wishes.start(space, occurs)
    ordered = not isinstance(table.attributes[trial.attribute], Nominal)
    fails, _ = trial.fails_as_it_is()
    free = occurs & (np.arange(len(occurs)) != (-1 if space.missing is None else space.missing))
    if len(np.unique(group[free])) < 3:
        raise TaxonomyError(
            f"'{table.attributes[trial.attribute].column}': expected at least three values that may be joined in more "
            "than one way, got fewer."
        )
    estimate = Estimate.of(trial, fails)
    found = _searched(estimate, trial.mix, group, forbidden, ordered, free, wishes)
    return _frontier(trial, fails, found, free, wishes)


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Where a search stands: the groups' values, their sums and masses, which of them may not be joined."""

    members: tuple[IntArray, ...]
    sums: Sums
    mass: FloatArray
    forbidden: BoolArray

    @classmethod
    def of(cls, values: Sums, mix: FloatArray, group: IntArray, forbidden: BoolArray) -> State:
        """The state in which a search starts."""
        each = tuple(np.array([v]) for v in range(len(group)))
        state = cls(each, values, mix.copy(), forbidden)
        for g in np.unique(group)[::-1]:
            for v in np.flatnonzero(group == g)[:0:-1]:
                state = state.joined(int(g), int(v))
        return state

    def joined(self, i: int, j: int) -> State:
        """The state after group j is joined to group i, i < j."""
        keep = np.delete(np.arange(len(self.members)), j)
        members = [self.members[g] for g in keep]
        members[i] = np.sort(np.concatenate([self.members[i], self.members[j]]))
        mass = self.mass[keep]
        mass[i] = self.mass[i] + self.mass[j]
        forbidden = self.forbidden[np.ix_(keep, keep)]
        forbidden[i] = forbidden[:, i] = (self.forbidden[i] | self.forbidden[j])[keep]
        return State(tuple(members), self.sums.replaced(i, j), mass, forbidden)

    @property
    def group(self) -> IntArray:
        """(values,) group of each value, in the order of the groups' first values."""
        group = np.zeros(sum(len(values) for values in self.members), dtype=np.int64)
        for g, values in enumerate(self.members):
            group[values] = g
        return group

    def pairs(self, ordered: bool) -> tuple[IntArray, IntArray]:
        """The pairs of groups that may be joined; neighbours only where the values have an order."""
        if ordered:
            one = np.arange(len(self.members) - 1)
            other = one + 1
        else:
            one, other = np.triu_indices(len(self.members), 1)
        free = ~self.forbidden[one, other]
        return one[free], other[free]

    def cost(self, one: IntArray, other: IntArray, entropy: float) -> FloatArray:
        """(pairs,) information lost by each join, as a share of all."""

        def told(mass: FloatArray) -> FloatArray:
            return np.asarray(special.entr(mass))

        lost = told(self.mass[one]) + told(self.mass[other]) - told(self.mass[one] + self.mass[other])
        return np.asarray(lost / entropy)


def _searched(
    estimate: Estimate,
    mix: FloatArray,
    group: IntArray,
    forbidden: BoolArray,
    ordered: bool,
    free: BoolArray,
    wishes: Wishes,
) -> list[tuple[float, float, IntArray]]:
    """Estimated credit, information lost and group of each value, of groupings on the way of every search."""
    entropy = max(float(special.entr(mix).sum()), 1e-12)
    start = State.of(estimate.values, mix, group, forbidden)
    found: list[tuple[float, float, IntArray]] = []
    if len(np.unique(group[free])) <= FEW:
        return _all(estimate, mix, group, forbidden, ordered, free, wishes)

    def labels(state: State) -> int:
        return sum(bool(free[values].any()) for values in state.members)

    def note(state: State) -> None:
        if wishes.most is None or labels(state) <= wishes.most:
            credit = estimate.credit(estimate.parts(state.sums))
            found.append((credit, information_lost(mix, state.group), state.group))

    while len(start.members) > MANY and (after := _step(estimate, start, ordered, entropy, PRICES[0])):
        note(start)
        start = after
    for price in PRICES:
        state: State | None = start
        while state is not None and labels(state) >= wishes.fewest:
            note(state)
            state = _step(estimate, state, ordered, entropy, price)
    return found


def _all(
    estimate: Estimate,
    mix: FloatArray,
    group: IntArray,
    forbidden: BoolArray,
    ordered: bool,
    free: BoolArray,
    wishes: Wishes,
) -> list[tuple[float, float, IntArray]]:
    """Every grouping of a few values, as `_searched` gives them."""
    starts = np.unique(group[free])
    groupings = [np.zeros(0, dtype=np.int64)]
    for _ in starts:
        groupings = [
            np.append(g, part)
            for g in groupings
            for part in range(max(g.max(initial=-1), 0) if ordered else 0, g.max(initial=-1) + 2)
        ]
    found = []
    for parts in groupings:
        whole = group.copy()
        for start, part in zip(starts, parts, strict=True):
            whole[group == start] = starts[np.flatnonzero(parts == part)[0]]
        whole = np.unique(whole, return_inverse=True)[1].astype(np.int64)
        labels = len(np.unique(whole[free]))
        allowed = wishes.fewest <= labels <= (wishes.most or labels)
        if allowed and not forbidden[whole[:, None] == whole[None, :]].any():
            credit = estimate.credit(estimate.parts(estimate.values.of_groups(whole)))
            found.append((credit, information_lost(mix, whole), whole))
    return found


def _step(estimate: Estimate, state: State, ordered: bool, entropy: float, price: float) -> State | None:
    """The state after the pair that is worth most for what it loses is joined; None when none may be."""
    one, other = state.pairs(ordered)
    if not len(one):
        return None
    cost = state.cost(one, other, entropy)
    if len(state.members) > MANY and len(one) > TRIED:
        near = np.sort(np.lexsort((other, one, cost))[:TRIED])
        one, other, cost = one[near], other[near], cost[near]
    worth = estimate.credit_of_pairs(state.sums, estimate.parts(state.sums), one, other)
    best = np.lexsort((other, one, cost, -(worth - price * cost).round(12)))[0]
    return state.joined(int(one[best]), int(other[best]))


def _frontier(
    trial: Trial,
    fails: BoolArray,
    found: list[tuple[float, float, IntArray]],
    free: BoolArray,
    wishes: Wishes,
) -> Suggestions:
    """The groupings that look best, counted, and of these the ones that no other beats."""
    persons = trial.counts.persons.astype(float)
    total = max(persons.sum(), 1.0)
    without = float(persons[~fails].sum() / total)
    some = _promising(found)
    passes, _ = trial.judged([group for _, _, group in some])
    rows = []
    for i, (_, lost, group) in enumerate(some):
        cleared = fails & passes[:, i] & (len(np.unique(group[free])) > 1)
        rows.append((float(without + persons[cleared].sum() / total), lost, int(cleared.sum()), group))
    rows.sort(key=lambda row: (row[1], -row[0]))
    frontier, most = [], without
    for kept, lost, n, group in rows:
        if kept > most + 1e-12:
            most = kept
            frontier.append(_suggestion(trial, kept, lost, n, group, free, wishes))
    column = trial.table.attributes[trial.attribute].column
    return Suggestions(column, without, int(fails.sum()), tuple(frontier))


def _promising(found: list[tuple[float, float, IntArray]]) -> list[tuple[float, float, IntArray]]:
    """Distinct groupings, those first that no other beats by the estimate, then by credit; `RECOUNTED` at most."""
    distinct = {tuple(group.tolist()): (credit, lost, group) for credit, lost, group in found}
    rows = sorted(distinct.values(), key=lambda row: (row[1], -row[0]))
    front, rest, most = [], [], -1.0
    for row in rows:
        if row[0] > most:
            most = row[0]
            front.append(row)
        else:
            rest.append(row)
    if len(front) > RECOUNTED:
        return [front[i] for i in np.linspace(0, len(front) - 1, RECOUNTED).round().astype(int)]
    rest.sort(key=lambda row: (-row[0], row[1]))
    return front + rest[: RECOUNTED - len(front)]


def _suggestion(
    trial: Trial,
    kept: float,
    lost: float,
    cleared: int,
    group: IntArray,
    free: BoolArray,
    wishes: Wishes,
) -> Suggestion:
    space: LabelSpace = trial.space
    declared = trial.table.attributes[trial.attribute]
    known = len(space.values) if space.missing is None else space.missing
    labels = labels_for(group[:known], space.values[:known], trial.mix.tolist(), wishes.names)
    taxonomy = Taxonomy(tuple(zip(space.values[:known], labels, strict=True)), declared.column)
    tier = space.sensitive[0][:known]
    told = [
        label
        for label in dict.fromkeys(labels)
        if declared.sensitive is not None
        and (mine := np.array([name == label for name in labels])).sum() > 1
        and tier[mine].all()
    ]
    return Suggestion(taxonomy, len(np.unique(group[free])), kept, cleared, lost, tuple(told))


def taxonomy_csv(taxonomy: Taxonomy) -> str:
    """A taxonomy as the CSV that `Taxonomy.read` reads.

    Examples
    --------
    >>> print(taxonomy_csv(Taxonomy.of({"clinic": "errands"})), end="")
    value,level1
    clinic,errands
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["value", *(f"level{h}" for h in range(1, taxonomy.height + 1))])
    writer.writerows(taxonomy.rows)
    return text.getvalue()
