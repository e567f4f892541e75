"""Mixes: the reference of each zone worked out from the visits, for the audits alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..arrays import CSR, BoolArray, FloatArray, IntArray
from ..measures import shares, spread, within_class
from ..policy import Global, Policy, Region, Ring, Weights, meets
from ..text import as_text
from .facts import Facts


@dataclass(frozen=True, slots=True, eq=False)
class Mixes:
    """What each zone is judged against.

    Parameters
    ----------
    facts : Facts
    eligible : (cells,) bool
    scope : (zones,) object
    weight : (zones, cells) sparse float64
        Empty for "global" and "none".
    held : dict
        Counts of the cells that were asked for before.
    """

    facts: Facts
    eligible: BoolArray
    scope: NDArray[np.object_]
    weight: CSR
    held: dict[tuple[int, int], FloatArray] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, facts: Facts, policy: Policy, zone: IntArray, zones: int) -> Mixes:
        """The references of zones, each cell's zone given as (cells,) int64 with -1 for none."""
        persons = facts.persons(np.arange(len(facts.cells)), len(facts.cells))
        eligible = np.asarray(meets("k_min", persons, policy.k_min))
        reference = policy.reference
        everyone = "global" if eligible.any() else "none"
        scope = np.full(zones, everyone, dtype=object)
        weight = CSR((zones, len(facts.cells)))
        if isinstance(reference, Global):
            return cls(facts, eligible, scope, weight)
        scope[:] = everyone if reference.fallback == "global" else "none"
        at = np.flatnonzero(zone >= 0)
        inside = CSR((np.ones(len(at)), (zone[at], at)), shape=(zones, len(facts.cells)))
        left = np.ones(zones, bool)
        for name, near in _nearer(facts, reference, inside):
            near = CSR(near.multiply(eligible[None, :]))
            near.eliminate_zeros()
            people = (near > 0).astype(float) @ persons.astype(float)
            enough = left & (people > 0) & (people >= reference.min_persons)
            scope[enough] = name
            weight = CSR(weight + near.multiply(enough[:, None]))
            left &= ~enough
        return cls(facts, eligible, scope, weight)

    @property
    def known(self) -> BoolArray:
        """(zones,) whether there is a reference."""
        return np.asarray(self.scope != "none", dtype=bool)

    def pooled(self, attribute: int, level: int, cells: BoolArray) -> FloatArray:
        """(labels,) pooled counts of some cells, given as (cells,) bool."""
        out: FloatArray = self._cells(attribute, level)[cells].sum(axis=0)
        return out

    def overall(self, attribute: int, level: int) -> FloatArray:
        """(labels,) pooled counts of all eligible cells."""
        return self.pooled(attribute, level, self.eligible)

    def counts(self, attribute: int, level: int) -> FloatArray:
        """(zones, labels) pooled counts of each zone's reference; nan for "none"."""
        pooled = np.asarray(self.weight @ self._cells(attribute, level), dtype=float)
        pooled[self.scope == "global"] = self.overall(attribute, level)
        pooled[self.scope == "none"] = np.nan
        return pooled

    def prior(self, attribute: int, level: int) -> tuple[FloatArray, FloatArray]:
        """Mix within each class, and the prior, of each zone at a level: (zones, values) each."""
        space = self.facts.spaces[attribute]
        up, labels = space.up[level], len(space.levels[level])
        overall = self.overall(attribute, 0)
        fine = self.counts(attribute, 0)
        within = within_class(np.where(self.known[:, None], fine, overall), up, labels, overall)
        return within, spread(shares(self.counts(attribute, level)), within, up)

    def _cells(self, attribute: int, level: int) -> FloatArray:
        if (attribute, level) not in self.held:
            cells = len(self.facts.cells)
            counts = self.facts.counts(attribute, level, np.arange(cells), cells).astype(float)
            self.held[attribute, level] = counts
        return self.held[attribute, level]


def _nearer(facts: Facts, reference: Ring | Region | Weights, inside: CSR) -> list[tuple[str, CSR]]:
    """The references to try, one after the other: (zones, cells) weights, each zone's own cells left out of a ring."""
    if isinstance(reference, Region):
        names = pd.Series([reference.regions.get(str(cell)) for cell in facts.cells], dtype=object)
        code, regions = pd.factorize(names)
        at = np.flatnonzero(code >= 0)
        region = CSR((np.ones(len(at)), (at, code[at])), shape=(len(code), max(len(regions), 1)))
        return [("region", _flag(_flag(inside @ region) @ region.T))]
    if isinstance(reference, Ring):
        found = []
        for order in range(reference.order, (reference.max_order or reference.order) + 1):
            near = _flag(inside @ facts.grid.neighbours(facts.keys, order))
            found.append((f"ring:{order}", CSR(near - near.multiply(inside))))
        return found
    edges = _edges(facts, reference.graph)
    own = pd.DataFrame(
        {"zone": np.repeat(np.arange(inside.shape[0]), np.diff(inside.indptr)), "focal": inside.indices}
    )
    near = own.merge(edges, on="focal").groupby(["zone", "neighbour"], as_index=False)["weight"].max()
    largest = CSR((near["weight"], (near["zone"], near["neighbour"])), shape=inside.shape)
    return [("weights", CSR(largest - largest.multiply(inside)))]


def _edges(facts: Facts, graph: Any) -> pd.DataFrame:
    """focal, neighbour, weight: the weights of a libpysal Graph or W between occupied cells."""
    if hasattr(graph, "adjacency"):
        pairs = graph.adjacency.reset_index().set_axis(["focal", "neighbour", "weight"], axis=1)
    else:
        rows = [
            (f, n, w)
            for f in graph.neighbors
            for n, w in zip(graph.neighbors[f], graph.weights[f], strict=True)
        ]
        pairs = pd.DataFrame(rows, columns=["focal", "neighbour", "weight"])
    position = {str(cell): i for i, cell in enumerate(facts.cells)}
    for end in ("focal", "neighbour"):
        pairs[end] = [position.get(as_text(cell), -1) for cell in pairs[end]]
    inner = (pairs["focal"] >= 0) & (pairs["neighbour"] >= 0) & (pairs["focal"] != pairs["neighbour"])
    return pairs[inner & (pairs["weight"] > 0)]


def _flag(matrix: Any) -> CSR:
    out = CSR(matrix)
    out.eliminate_zeros()
    out.data = np.ones(len(out.data))
    return out
