"""What an engine is: three calls. Everything else in geodiv works on the small tables that they return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from ..arrays import IntArray
from ..intake import Intake, VisitSpec
from ..labels import LabelSpace

Progress = Callable[[str, int, int], None]
"""Called with a stage, what is done and the total (0 when unknown)."""


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """The (cell, value) pairs of one attribute that occur, sorted by cell, then value.

    Parameters
    ----------
    cell, value : (pairs,) int64
        Position of the cell, code of the value.
    persons, visits : (pairs,) int64
        Distinct persons and input rows.
    """

    cell: IntArray
    value: IntArray
    persons: IntArray
    visits: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Contributions:
    """Distinct (cell, value, person) of every attribute, kept by the engine, and the counts that always follow.

    Parameters
    ----------
    keys : (cells,) int64 or object
        Grid keys of the occupied cells, sorted by id as text.
    spaces : tuple over attributes of LabelSpace
    pairs : tuple over attributes of Pairs
    persons : (cells,) int64
        Distinct persons.
    intake : Intake
    handle : object
        What the engine needs to count again.
    """

    keys: NDArray[Any]
    spaces: tuple[LabelSpace, ...]
    pairs: tuple[Pairs, ...]
    persons: IntArray
    intake: Intake
    handle: Any


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """A mapping table: which (cell, value) pairs feed which group. A pair may feed several groups.

    Parameters
    ----------
    attribute : int or None
        Position of the attribute; None counts persons whatever their values.
    cell : (rows,) int64
    value : (rows,) int64 or None
        None exactly when `attribute` is None.
    group : (rows,) int64
        0 to size - 1.
    size : int
    """

    attribute: int | None
    cell: IntArray
    value: IntArray | None
    group: IntArray
    size: int


class Engine(Protocol):
    """Reduces visits to contributions and counts distinct persons, exactly: parity between engines is equality."""

    def reduce(self, source: Any, spec: VisitSpec, progress: Progress | None) -> Contributions:
        """Distinct (cell, value, person) of the visits, without the rows that cannot be counted."""

    def count(self, contributions: Contributions, groups: Groups) -> IntArray:
        """(groups,) distinct persons of each group."""

    def describe(self) -> dict[str, str]:
        """Name and versions, for the metadata."""

    def close(self) -> None:
        """Forget the contributions and remove whatever was written for them."""
