"""The memory engine: contributions as sorted int64 keys in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from ..arrays import CSR, IntArray
from ..attribute import Attribute
from ..errors import SourceError
from ..grids.protocol import Grid
from ..intake import VisitBatch, VisitSpec, whole
from ..labels import LabelSpace
from .protocol import Contributions, Groups, Pairs, Progress

BLOCK = 30_000_000
"""Contributions that one counting step expands at most; it bounds memory, not results."""

LARGE = 2_000
"""Contributions from which a group may count as large, if they also are many beside all persons."""

PAIRS = 1 << 16
"""Pairs of a large group that are looked at together."""


@dataclass(frozen=True, slots=True, eq=False)
class Distinct:
    """Distinct contributions of one attribute.

    Parameters
    ----------
    code : (pairs,) int64
        cell x values + value of each (cell, value) pair that occurs, ascending.
    people : (pairs, persons) sparse bool
        Who did what where; each row's persons ascending.
    visits : (pairs,) int64
        Input rows behind each row of `people`.
    place : (cells x values,) int32 or int64, or None
        Row of each code in `people`, -1 for none; None where few of the codes occur.
    """

    code: IntArray
    people: CSR
    visits: IntArray
    place: NDArray[Any] | None

    def at(self, code: IntArray) -> NDArray[Any]:
        """Rows of codes that occur."""
        return np.searchsorted(self.code, code) if self.place is None else self.place[code]


@dataclass(frozen=True, slots=True, eq=False)
class Handle:
    """Contributions of every attribute, and of (cell, person)."""

    attributes: tuple[Distinct, ...]
    anyone: Distinct


@dataclass(frozen=True, slots=True)
class MemoryEngine:
    """Counts in memory: up to some 1e8 visits on a workstation."""

    def reduce(self, source: Any, spec: VisitSpec, progress: Progress | None = None) -> Contributions:
        """Distinct contributions of the visits; see `Engine`."""
        parts, intake = whole(source, spec)
        if progress:
            progress("read", intake.rows, intake.rows)
        person, persons = _persons(parts)
        cell, keys = _cells(parts, spec.grid)
        spaces, sets, pairs = [], [], []
        for i, attribute in enumerate(spec.attributes):
            value, space = _values([part.values[i] for part in parts], attribute)
            found = _distinct(cell, value, person, len(keys), len(space.values), persons, attribute.column)
            spaces.append(space)
            sets.append(found)
            pairs.append(_pairs(found, len(space.values)))
            if progress:
                progress("count", i + 1, len(spec.attributes))
        anyone = _distinct(cell, None, person, len(keys), 1, persons, "persons")
        return Contributions(
            keys=keys,
            spaces=tuple(spaces),
            pairs=tuple(pairs),
            persons=np.diff(anyone.people.indptr).astype(np.int64),
            intake=intake,
            handle=Handle(tuple(sets), anyone),
        )

    def count(self, contributions: Contributions, groups: Groups) -> IntArray:
        """(groups,) distinct persons; see `Engine`."""
        if groups.attribute is None:
            found, persons, code = contributions.handle.anyone, contributions.persons, groups.cell
        else:
            assert groups.value is not None
            found = contributions.handle.attributes[groups.attribute]
            persons = contributions.pairs[groups.attribute].persons
            code = groups.cell * len(contributions.spaces[groups.attribute].values) + groups.value
        if (groups.group[1:] < groups.group[:-1]).any():
            code = code[np.argsort(groups.group, kind="stable")]
        ends = np.concatenate([[0], np.cumsum(np.bincount(groups.group, minlength=groups.size))])
        return _count(_rows(found.at(code), ends, len(found.code)), found.people, persons)

    def describe(self) -> dict[str, str]:
        """Name and versions; see `Engine`."""
        return {"name": "memory", "numpy": np.__version__, "pyarrow": pa.__version__}

    def close(self) -> None:
        """Nothing is kept outside the contributions."""


def handle_of(
    cell: IntArray,
    values: Sequence[IntArray],
    person: NDArray[np.int32],
    persons: int,
    cells: int,
    spaces: Sequence[LabelSpace],
) -> Handle:
    """The handle of contributions that another engine has reduced.

    Parameters
    ----------
    cell : (contributions,) int64
        Positions of the cells.
    values : sequence over attributes of (contributions,) int64
        Codes of the values.
    person : (contributions,) int32
        Any numbers from 0 to `persons` - 1.
    persons, cells : int
    spaces : sequence over attributes of LabelSpace
    """
    of = zip(values, spaces, strict=True)
    found = [_distinct(cell, v, person, cells, len(s.values), persons, "contributions") for v, s in of]
    return Handle(tuple(found), _distinct(cell, None, person, cells, 1, persons, "persons"))


def _count(fed: CSR, people: CSR, persons: IntArray) -> IntArray:
    """(groups,) distinct persons; `persons` are those of each pair.

    A group of one pair has the pair's persons; a large group marks its persons in a list of all. For the others, in
    blocks of groups: the entries of a row of the product are its persons.
    """
    pairs = np.diff(fed.indptr)
    ends = np.concatenate([[0], np.cumsum(persons[fed.indices])])[fed.indptr]
    length = np.diff(ends)
    result = np.zeros(fed.shape[0], dtype=np.int64)
    one = pairs == 1
    result[one] = persons[fed.indices[fed.indptr[:-1][one]]]
    large = ~one & (length > max(LARGE, people.shape[1] // 64))
    for group in np.flatnonzero(large):
        result[group] = _marked(fed.indices[fed.indptr[group] : fed.indptr[group + 1]], people)
    rest = np.flatnonzero((length > 0) & ~one & ~large)
    if len(rest):
        result[rest] = _multiplied(fed[rest], people, np.concatenate([[0], np.cumsum(length[rest])]))
    return result


def _rows(column: NDArray[Any], ends: IntArray, columns: int) -> CSR:
    """Sparse bool with these columns in each row, by 32-bit numbers where they fit: half the memory, and faster."""
    kind = np.int32 if max(len(column), columns) <= np.iinfo(np.int32).max else np.int64
    indices, indptr = column.astype(kind, copy=False), ends.astype(kind, copy=False)
    return CSR((np.ones(len(column), bool), indices, indptr), shape=(len(ends) - 1, columns))


def _marked(pairs: NDArray[Any], people: CSR) -> int:
    """Distinct persons of some pairs, a part of the pairs at a time."""
    seen = np.zeros(people.shape[1], bool)
    for start in range(0, len(pairs), PAIRS):
        seen[people[pairs[start : start + PAIRS]].indices] = True
    return int(np.count_nonzero(seen))


def _multiplied(fed: CSR, people: CSR, ends: IntArray) -> IntArray:
    """(groups,) distinct persons of groups with these cumulated numbers of contributions: (groups + 1,)."""
    parts, done = [], 0
    while done < fed.shape[0]:
        stop = max(int(np.searchsorted(ends, ends[done] + BLOCK, side="right")) - 1, done + 1)
        parts.append(np.diff((fed[done:stop] @ people).indptr))
        done = stop
    return np.concatenate(parts).astype(np.int64)


def runs(start: IntArray, length: IntArray) -> IntArray:
    """``start[i], start[i] + 1, ..., start[i] + length[i] - 1`` for every i, one after the other."""
    ends = np.cumsum(length)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(start - (ends - length), length)


def _persons(parts: Sequence[VisitBatch]) -> tuple[NDArray[np.int32], int]:
    """(rows,) person codes and how many persons there are; the codes are nowhere written."""
    if len(parts) == 1:
        return parts[0].person.indices.to_numpy(zero_copy_only=False), len(parts[0].person.dictionary)
    merged = pa.chunked_array([part.person for part in parts]).unify_dictionaries()
    codes = np.concatenate([chunk.indices.to_numpy(zero_copy_only=False) for chunk in merged.chunks])
    return codes, len(merged.chunk(0).dictionary)


def _cells(parts: Sequence[VisitBatch], grid: Grid) -> tuple[IntArray, NDArray[Any]]:
    """(rows,) positions of the cells, and the keys of the occupied cells sorted by id as text."""
    keys = parts[0].key if len(parts) == 1 else np.concatenate([part.key for part in parts])
    codes, found = pd.factorize(keys)
    order = np.argsort(grid.ids(found).astype(str), kind="stable")
    position = np.empty(len(found), dtype=np.int64)
    position[order] = np.arange(len(found))
    return position[codes], np.asarray(found)[order]


def _values(columns: Sequence[pa.DictionaryArray], attribute: Attribute) -> tuple[IntArray, LabelSpace]:
    """(rows,) value codes, and the label space, of one attribute."""
    merged = pa.chunked_array(columns).unify_dictionaries()
    codes = np.concatenate([chunk.indices.to_numpy(zero_copy_only=False) for chunk in merged.chunks])
    texts = merged.chunk(0).dictionary.to_pylist()
    occurs = np.flatnonzero(np.bincount(codes, minlength=len(texts)))
    values = attribute.recognise([texts[i] for i in occurs])
    space = attribute.space(values)
    index = {value: i for i, value in enumerate(space.values)}
    code = np.zeros(len(texts), dtype=np.int64)
    code[occurs] = [index[value] for value in values]
    return code[codes], space


def _distinct(
    cell: IntArray,
    value: IntArray | None,
    person: NDArray[np.int32],
    cells: int,
    values: int,
    persons: int,
    what: str,
) -> Distinct:
    """Distinct (cell, value, person), packed into sorted int64 keys; value codes are absorbed into the pair code."""
    bits = max(persons - 1, 0).bit_length()
    if (max(cells * values - 1, 0)).bit_length() + bits > 63:
        raise SourceError(
            f"'{what}': {cells} cells, {values} values and the persons need more than 63 bits together. "
            "Use a coarser grid, fewer values, or another engine."
        )
    packed = cell * values
    if value is not None:
        packed += value
    packed <<= bits
    packed |= person
    packed.sort()
    rows = len(packed)
    start = _starts(packed)
    packed = packed[start]
    code = packed >> bits
    heads = _starts(code)
    packed &= (1 << bits) - 1
    people = _rows(packed.astype(np.int32), np.append(heads, len(packed)), max(persons, 1))
    code = code[heads]
    visits = np.diff(start[heads], append=rows)
    return Distinct(code, people, visits, _places(code, cells * values))


def _places(code: IntArray, size: int) -> NDArray[Any] | None:
    """Row of each code, where at least one in eight occurs."""
    if size > 8 * len(code):
        return None
    place = np.full(size, -1, dtype=np.int32 if len(code) <= np.iinfo(np.int32).max else np.int64)
    place[code] = np.arange(len(code))
    return place


def _starts(ascending: IntArray) -> IntArray:
    """Positions at which a value stands for the first time."""
    new = np.ones(len(ascending), bool)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    return np.flatnonzero(new)


def _pairs(found: Distinct, values: int) -> Pairs:
    return Pairs(
        cell=found.code // values,
        value=found.code % values,
        persons=np.diff(found.people.indptr).astype(np.int64),
        visits=found.visits,
    )
