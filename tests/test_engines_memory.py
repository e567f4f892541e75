"""The memory engine: distinct contributions of any source, and distinct persons of any groups of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import geodiv as gd
from geodiv.engines import memory
from geodiv.engines.memory import MemoryEngine, runs
from geodiv.engines.protocol import Contributions, Groups
from geodiv.intake import VisitSpec

ENGINE = MemoryEngine()
Row = tuple[str, str, str | None]


def spec(*attributes: Any) -> VisitSpec:
    return VisitSpec(
        person="person", grid=gd.ColumnGrid("cell"), attributes=attributes or (gd.Nominal("activity"),),
        lon=None, lat=None, crs=None, on_bad_rows="error", layer=None, rejects=None,
    )  # fmt: skip


def reduce(rows: list[Row]) -> Contributions:
    return ENGINE.reduce(pd.DataFrame(rows, columns=["cell", "person", "activity"]).astype(object), spec())


rows = st.lists(
    st.tuples(st.sampled_from(["c", "d", "e"]), st.sampled_from("pqrst"), st.sampled_from(["a", "b", None])),
    min_size=1, max_size=40,
)  # fmt: skip


def held(rows: list[Row]) -> dict[tuple[str, str], list[str]]:
    """Persons of the visits of each (cell, value), repeats kept."""
    found: dict[tuple[str, str], list[str]] = {}
    for cell, person, value in rows:
        found.setdefault((cell, value or "(missing)"), []).append(person)
    return found


@given(rows)
def test_pairs_are_the_distinct_persons_of_each_cell_and_value(rows: list[Row]) -> None:
    found, expected = reduce(rows), held(rows)
    pairs, values = found.pairs[0], found.spaces[0].values
    named = [(found.keys[c], values[v]) for c, v in zip(pairs.cell, pairs.value, strict=True)]
    assert named == sorted(expected, key=lambda pair: (pair[0], values.index(pair[1])))
    assert pairs.persons.tolist() == [len(set(expected[pair])) for pair in named]
    assert pairs.visits.tolist() == [len(expected[pair]) for pair in named]
    assert found.persons.tolist() == [len({p for c, p, _ in rows if c == cell}) for cell in found.keys]


@given(rows, st.data(), st.integers(1, 9))
def test_groups_are_counted_as_sets(rows: list[Row], data: st.DataObject, block: int) -> None:
    """A pair may feed several groups, several times; a group may have none; blocks change nothing."""
    found, expected = reduce(rows), held(rows)
    pairs, values = found.pairs[0], found.spaces[0].values
    chosen = data.draw(
        st.lists(st.tuples(st.integers(0, len(pairs.cell) - 1), st.integers(0, 4)), max_size=15).map(np.array)
    )
    at, group = chosen.reshape(-1, 2).astype(np.int64).T
    sets: list[set[str]] = [set() for _ in range(5)]
    people: list[set[str]] = [set() for _ in range(5)]
    for i, g in zip(at, group, strict=True):
        cell = found.keys[pairs.cell[i]]
        sets[g] |= set(expected[cell, values[pairs.value[i]]])
        people[g] |= {person for c, person, _ in rows if c == cell}
    patch = pytest.MonkeyPatch()
    for size in (memory.BLOCK, block):
        patch.setattr(memory, "BLOCK", size)
        counted = ENGINE.count(found, Groups(0, pairs.cell[at], pairs.value[at], group, 5))
        assert counted.tolist() == [len(s) for s in sets]
        anyone = ENGINE.count(found, Groups(None, pairs.cell[at], None, group, 5))
        assert anyone.tolist() == [len(s) for s in people]
    patch.undo()


def test_no_groups_at_all() -> None:
    none = np.zeros(0, dtype=np.int64)
    found = reduce([("c", "p", "a")])
    assert ENGINE.count(found, Groups(0, none, none, none, 0)).tolist() == []
    assert ENGINE.count(found, Groups(0, none, none, none, 2)).tolist() == [0, 0]


def test_no_rows_at_all() -> None:
    found = reduce([])
    assert (len(found.keys), len(found.persons), found.spaces[0].values) == (0, 0, ())


@given(rows, st.integers(1, 7))
def test_chunks_change_nothing(rows: list[Row], size: int) -> None:
    whole = reduce(rows)
    parts = [pa.Table.from_pylist([dict(zip(["cell", "person", "activity"], r, strict=True)) for r in rows[i:i + size]],
                                  schema=pa.schema([(n, pa.string()) for n in ("cell", "person", "activity")]))
             for i in range(0, len(rows), size)]  # fmt: skip
    chunked = ENGINE.reduce(pa.concat_tables(parts), spec())
    assert chunked.keys.tolist() == whole.keys.tolist()
    assert chunked.persons.tolist() == whole.persons.tolist()
    for name in ("cell", "value", "persons", "visits"):
        mine, theirs = getattr(chunked.pairs[0], name), getattr(whole.pairs[0], name)
        assert mine.tolist() == theirs.tolist()


def test_a_dictionary_with_values_that_nobody_has_declares_nothing() -> None:
    values = pd.Categorical(["a", "a"], categories=["a", "ghost"])
    frame = pd.DataFrame({"cell": ["c", "c"], "person": ["p", "q"], "activity": values})
    assert ENGINE.reduce(frame, spec()).spaces[0].values == ("a",)


def test_more_than_63_bits_are_a_clear_error() -> None:
    one = np.zeros(1, dtype=np.int64)
    with pytest.raises(
        gd.SourceError, match=r"'activity': 1073741824 cells, 4096 values .* more than 63 bits"
    ):
        memory._distinct(one, one, one.astype(np.int32), 2**30, 2**12, 2**22, "activity")
    memory._distinct(one, one, one.astype(np.int32), 2**30, 2**12, 2**21, "activity")


def test_it_says_what_it_is() -> None:
    assert ENGINE.describe() == {"name": "memory", "numpy": np.__version__, "pyarrow": pa.__version__}
    ENGINE.close()


def test_runs_are_written_one_after_the_other() -> None:
    assert runs(np.array([5, 0, 7]), np.array([2, 0, 3])).tolist() == [5, 6, 7, 8, 9]
    assert runs(np.zeros(0, dtype=int), np.zeros(0, dtype=int)).tolist() == []
