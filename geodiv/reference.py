"""Reference: the mix that each zone is judged against, fixed from the eligible cells before any remedy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .arrays import CSR, FloatArray, IntArray
from .errors import PolicyError
from .policy import Global, Policy, Reference, Region, Ring, Weights, meets
from .tabulation import Counted, Tabulation
from .text import as_text

DENSE = 4_000_000
"""Numbers up to which the counts of a block's references are written out; it bounds memory, not results."""


@dataclass(frozen=True, slots=True, eq=False)
class Against:
    """What each of some zones is judged against.

    Parameters
    ----------
    scope : (zones,) object
        "global", "ring:1", "region", "weights" or "none".
    persons : (zones,) int64
        Persons of the reference cells, a person once per cell; 0 for "none".
    weights : (zones, units) sparse float64
        What Q sums up; empty rows for "global" and "none".
    """

    scope: NDArray[np.object_]
    persons: IntArray
    weights: CSR

    @property
    def known(self) -> NDArray[np.bool_]:
        """(zones,) whether there is a reference at all."""
        return np.asarray(self.scope != "none", dtype=bool)

    @property
    def local(self) -> NDArray[np.bool_]:
        """(zones,) whether the reference is another than the global one."""
        return np.asarray(self.scope != "global", dtype=bool) & self.known


class Rings:
    """The eligible cells within some steps of each cell, each cell's looked up once.

    It remembers what it was asked; its answers depend on the table alone.
    """

    def __init__(self, table: Tabulation, eligible: NDArray[np.bool_]) -> None:
        self._table = table
        self._eligible = eligible
        self._rows: dict[int, IntArray] = {}
        self._found: dict[int, CSR] = {}

    def of(self, cells: IntArray, order: int) -> CSR:
        """(asked, cells) sparse 0/1: eligible cells within `order` steps of each cell asked for, itself excluded."""
        table = self._table
        if order == 1:
            return CSR(table.adjacency[cells].multiply(self._eligible[None, :]))
        row = self._rows.setdefault(order, np.full(len(table.cells), -1, dtype=np.int64))
        found = self._found.get(order, CSR((0, len(table.cells))))
        new = cells[row[cells] < 0]
        if len(new):
            near = CSR(table.grid.neighbours(table.keys, order, new).multiply(self._eligible[None, :]))
            row[new] = found.shape[0] + np.arange(len(new))
            found = self._found[order] = sparse.vstack([found, near], format="csr")
        return CSR(found[row[cells]])


@dataclass(frozen=True, slots=True, eq=False)
class References:
    """The pooled counts that references are made of.

    Parameters
    ----------
    table : Tabulation
    reference : Global, Ring, Region or Weights
    eligible : (cells,) bool
        Cells with at least k_min persons; no other is in any reference.
    overall : tuple over attributes of tuple over levels of (labels,) float64
        Pooled counts of all eligible cells, counted at each level.
    of_units : tuple over attributes of tuple over levels of (units, labels) sparse
        Pooled counts of each unit.
    units : (units, cells) sparse of 0 and 1
        What a row of `Against.weights` weighs: the eligible cells, or whole regions of them.
    graph : (cells, units) sparse float64 or None
        Weight of each unit for each cell, where that does not depend on the ring's order.
    rings : Rings
        The eligible cells around each cell.
    """

    table: Tabulation
    reference: Reference
    eligible: NDArray[np.bool_]
    overall: tuple[tuple[FloatArray, ...], ...]
    of_units: Counted
    units: CSR
    graph: CSR | None
    rings: Rings

    @classmethod
    def of(cls, table: Tabulation, policy: Policy) -> References:
        """The references of a policy over the cells of a table."""
        eligible = meets("k_min", table.persons, policy.k_min)
        units, graph = _units(table, policy.reference, eligible)
        rings = Rings(table, eligible)
        overall = _overall(table, eligible)
        of_units = _of_units(table, policy.reference, units)
        return cls(table, policy.reference, eligible, overall, of_units, units, graph, rings)

    def relabelled(self, table: Tabulation) -> References:
        """The same references over the same visits under other labels."""
        overall = _overall(table, self.eligible)
        of_units = _of_units(table, self.reference, self.units)
        return replace(self, table=table, overall=overall, of_units=of_units)

    def of_zones(self, members: CSR) -> Against:
        """The reference of each zone: its scope, its persons and its weights; "none" when no cell is eligible.

        Parameters
        ----------
        members : (zones, cells) sparse of 0 and 1
        """
        zones = members.shape[0]
        some = self.eligible.any() and (
            isinstance(self.reference, Global) or self.reference.fallback == "global"
        )
        scope = np.full(zones, "global" if some else "none", dtype=object)
        persons = np.full(zones, self.table.persons[self.eligible].sum() if some else 0)
        weights = CSR((zones, self.units.shape[0]))
        if isinstance(self.reference, Global):
            return Against(scope, persons, weights)
        found = []
        open_zones = np.arange(zones)
        for name, step in self._steps():
            if not len(open_zones):
                break
            local = self._weigh(members[open_zones], step)
            near = (local > 0).astype(float) @ (self.units @ self.table.persons.astype(float))
            enough = near >= self.reference.min_persons
            chosen = open_zones[enough]
            scope[chosen], persons[chosen] = name, near[enough].astype(np.int64)
            found.append((chosen, local[np.flatnonzero(enough)]))
            open_zones = open_zones[~enough]
        return Against(scope, persons, _place(found, weights.shape))

    def pooled(self, against: Against, attribute: int, level: int, rows: slice) -> FloatArray:
        """Pooled counts of some zones' references at a level: (rows, labels); zero for scope "none"."""
        mix = _product(against.weights[rows], self.of_units[attribute][level])
        mix[against.scope[rows] == "global"] = self.overall[attribute][level]
        return mix

    def _steps(self) -> list[tuple[str, int]]:
        if isinstance(self.reference, Ring):
            assert self.reference.max_order is not None
            return [
                (f"ring:{order}", order)
                for order in range(self.reference.order, self.reference.max_order + 1)
            ]
        return [("region" if isinstance(self.reference, Region) else "weights", 0)]

    def _weigh(self, members: CSR, order: int) -> CSR:
        """(zones, units) weights of each zone's reference."""
        if isinstance(self.reference, Ring):
            cells, own = _used(members)
            return _outside(_present(own @ self.rings.of(cells, order)), members)
        assert self.graph is not None
        if isinstance(self.reference, Region):
            return _present(members @ self.graph)
        return _outside(_largest(members, self.graph), members)


def _overall(table: Tabulation, eligible: NDArray[np.bool_]) -> tuple[tuple[FloatArray, ...], ...]:
    weight = eligible.astype(float)
    return tuple(
        tuple(np.asarray(weight @ level).ravel() for level in levels) for levels in table.base.labels
    )


def _of_units(table: Tabulation, reference: Reference, units: CSR) -> Counted:
    if not isinstance(reference, Region):
        return table.base.labels
    return tuple(tuple(CSR(units @ level) for level in levels) for levels in table.base.labels)


def _product(weights: CSR, counts: CSR) -> FloatArray:
    """(zones, labels) ``weights @ counts``, by the counts that are used, written out where these are few."""
    used = np.zeros(counts.shape[0], bool)
    used[weights.indices] = True
    rows = np.flatnonzero(used)
    if len(rows) * counts.shape[1] > DENSE:
        return np.asarray((weights @ counts).todense(), dtype=float)
    at = (np.cumsum(used) - 1)[weights.indices]
    some = CSR((weights.data, at, weights.indptr), shape=(weights.shape[0], len(rows)))
    return np.asarray(some @ np.asarray(counts[rows].todense(), dtype=float))


def _units(table: Tabulation, reference: Reference, eligible: NDArray[np.bool_]) -> tuple[CSR, CSR | None]:
    each = CSR(sparse.diags_array(eligible.astype(float), format="csr"))
    if isinstance(reference, Region):
        return _regions(table, reference, each)
    if isinstance(reference, Weights):
        graph = weights_matrix(table, reference.graph)
        return each, CSR(graph @ each)
    return each, None


def _regions(table: Tabulation, reference: Region, each: CSR) -> tuple[CSR, CSR]:
    names = sorted(set(reference.regions.values()))
    index = {name: i for i, name in enumerate(names)}
    codes = np.array(
        [index[reference.regions[c]] if c in reference.regions else -1 for c in table.cells], dtype=int
    )
    if len(codes) and (codes < 0).all():
        raise PolicyError("regions: expected the ids of the table's cells as keys, found none of them.")
    inside = np.flatnonzero(codes >= 0)
    member = CSR((np.ones(len(inside)), (inside, codes[inside])), shape=(len(codes), len(names)))
    return CSR(member.T @ each), member


def weights_matrix(table: Tabulation, graph: Any) -> CSR:
    """(cells, cells) the weights of a libpysal Graph or W, self-weights left out."""
    if hasattr(graph, "adjacency"):
        adjacency = graph.adjacency
        focal = adjacency.index.get_level_values(0)
        neighbour = adjacency.index.get_level_values(1)
        weight = adjacency.to_numpy(dtype=float)
    else:
        rows = [
            (f, n, w)
            for f in graph.neighbors
            for n, w in zip(graph.neighbors[f], graph.weights[f], strict=True)
        ]
        focal, neighbour = [r[0] for r in rows], [r[1] for r in rows]
        weight = np.array([r[2] for r in rows], dtype=float)
    position = {cell: i for i, cell in enumerate(table.cells)}
    i = np.array([position.get(as_text(f), -1) for f in focal], dtype=int)
    j = np.array([position.get(as_text(n), -1) for n in neighbour], dtype=int)
    if len(i) and not ((i >= 0) & (j >= 0)).any():
        raise PolicyError(
            "weights: expected a graph over the ids of the table's cells, found none of them in it."
        )
    if (weight < 0).any() or not np.isfinite(weight).all():
        raise PolicyError("weights: expected finite weights of at least 0.")
    keep = (i >= 0) & (j >= 0) & (i != j) & (weight > 0)
    return CSR((weight[keep], (i[keep], j[keep])), shape=(len(table.cells),) * 2)


def _used(members: CSR) -> tuple[IntArray, CSR]:
    """The cells that are members of any zone, and the memberships over these cells alone."""
    cells, inverse = np.unique(members.indices, return_inverse=True)
    return cells.astype(np.int64), CSR(
        (members.data, inverse, members.indptr), shape=(members.shape[0], len(cells))
    )


def _present(weights: CSR) -> CSR:
    """1 wherever there is a weight."""
    weights = CSR(weights)
    weights.eliminate_zeros()
    weights.data = np.ones(len(weights.data))
    return weights


def _outside(weights: CSR, members: CSR) -> CSR:
    """The weights without those of each zone's own cells."""
    out = CSR(weights - weights.multiply(members))
    out.eliminate_zeros()
    return out


def _largest(members: CSR, graph: CSR) -> CSR:
    """(zones, cells) the largest weight that any member of a zone gives to each cell."""
    zone = np.repeat(np.arange(members.shape[0]), np.diff(members.indptr))
    near = CSR(graph[members.indices])
    code = np.repeat(zone, np.diff(near.indptr)) * near.shape[1] + near.indices
    order = np.lexsort((-near.data, code))
    code, weight = code[order], near.data[order]
    first = np.concatenate([[True], code[1:] != code[:-1]]) if len(code) else np.zeros(0, bool)
    at = code[first]
    return CSR(
        (weight[first], (at // near.shape[1], at % near.shape[1])), shape=(members.shape[0], near.shape[1])
    )


def _place(found: list[tuple[IntArray, CSR]], shape: tuple[int, int]) -> CSR:
    """The rows found at each step, at the rows of their zones; empty elsewhere."""
    if not found:
        return CSR(shape)
    rows = np.concatenate([np.repeat(zones, np.diff(part.indptr)) for zones, part in found])
    units = np.concatenate([part.indices for _, part in found])
    data = np.concatenate([part.data for _, part in found])
    return CSR((data, (rows, units)), shape=shape)
