"""Plan: which zone each cell belongs to, at which level each zone publishes, and what is suppressed.

Remedies write plans; they never touch a count. A plan knows cells by position in the table's sorted cell ids,
and a zone by the position of its smallest member.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .arrays import CSR, BoolArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A partition of the cells and what each zone publishes.

    Parameters
    ----------
    zone : (cells,) int64
        Position of the zone's smallest member, for each cell.
    level : (cells, attributes) int64
        Level at which each cell's zone publishes each attribute, equal within a zone.
    suppressed : (cells,) bool
        Equal within a zone.
    start : tuple over attributes of int
        Level at which an attribute starts, and restarts after a merge.
    """

    zone: IntArray
    level: IntArray
    suppressed: BoolArray
    start: tuple[int, ...]

    def __post_init__(self) -> None:
        for array in (self.zone, self.level, self.suppressed):
            array.setflags(write=False)

    @classmethod
    def of_cells(cls, cells: int, start: Sequence[int]) -> Plan:
        """Each cell a zone of its own, every attribute at its starting level, nothing suppressed."""
        level = np.tile(np.asarray(start, dtype=np.int64), (cells, 1))
        return cls(np.arange(cells), level, np.zeros(cells, bool), tuple(start))

    @property
    def zones(self) -> IntArray:
        """(zones,) positions of the zones' smallest members, ascending."""
        return np.flatnonzero(self.zone == np.arange(len(self.zone)))

    def members(self) -> CSR:
        """(zones, cells) sparse 0/1: the cells of each zone, in the order of `zones`."""
        cells = len(self.zone)
        row = np.searchsorted(self.zones, self.zone)
        return CSR((np.ones(cells), (row, np.arange(cells))), shape=(len(self.zones), cells))

    def merge(self, groups: CSR) -> Plan:
        """A plan in which the cells of each row of `groups` are one zone, unsuppressed, at starting levels.

        Parameters
        ----------
        groups : (groups, cells) sparse
            Disjoint sets of cells; a zone is either whole inside them, in one or several, or outside all.
        """
        zone, level, suppressed = self.zone.copy(), self.level.copy(), self.suppressed.copy()
        groups = CSR(groups)
        groups.sort_indices()
        cells, sizes = groups.indices, np.diff(groups.indptr)
        zone[cells] = np.repeat(cells[groups.indptr[:-1][sizes > 0]], sizes[sizes > 0])
        level[cells] = self.start
        suppressed[cells] = False
        return replace(self, zone=zone, level=level, suppressed=suppressed)

    def publish(self, groups: CSR, levels: IntArray) -> Plan:
        """A plan in which the cells of each row of `groups`, as for `merge`, are one zone at these levels.

        Parameters
        ----------
        groups : (groups, cells) sparse
        levels : (groups, attributes) int64
        """
        plan = self.merge(groups)
        groups = CSR(groups)
        groups.sort_indices()
        first = groups.indices[groups.indptr[:-1]].astype(np.int64)
        for attribute in range(levels.shape[1]):
            plan = plan.recode(first, attribute, levels[:, attribute])
        return plan

    def dissolve(self) -> Plan:
        """A plan in which each cell of a suppressed zone is a suppressed zone of its own."""
        zone = np.where(self.suppressed, np.arange(len(self.zone)), self.zone)
        return replace(self, zone=zone)

    def recode(self, zones: IntArray, attribute: int, levels: IntArray) -> Plan:
        """A plan in which these zones publish one attribute at these levels."""
        level = self.level.copy()
        target = level[:, attribute].copy()
        target[zones] = levels
        level[:, attribute] = target[self.zone]
        return replace(self, level=level)

    def suppress(self, zones: IntArray) -> Plan:
        """A plan in which these zones are not published."""
        chosen = np.zeros(len(self.zone), bool)
        chosen[zones] = True
        return replace(self, suppressed=self.suppressed | chosen[self.zone])
