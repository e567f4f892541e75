"""The memory engine: distinct contributions of any source, and distinct persons of any groups of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from handful import Row, drawn_groups, frame, some_rows
from hypothesis import given
from hypothesis import strategies as st

import geodiv as gd
from geodiv.engines import memory
from geodiv.engines.memory import MemoryEngine, runs
from geodiv.intake import VisitSpec

ENGINE = MemoryEngine()


def spec(*attributes: Any) -> VisitSpec:
    return VisitSpec(
        person="person", grid=gd.ColumnGrid("cell"), attributes=attributes or (gd.Nominal("activity"),),
        lon=None, lat=None, crs=None, on_bad_rows="error", layer=None, rejects=None,
    )  # fmt: skip


@given(some_rows, st.data(), st.integers(1, 9), st.integers(0, 6), st.integers(1, 3))
def test_groups_are_counted_as_sets_in_blocks_of_any_size(
    rows: list[Row], data: st.DataObject, block: int, large: int, some: int
) -> None:
    """A pair may feed several groups, several times; a group may have none; blocks and sizes change nothing."""
    found = ENGINE.reduce(frame(rows), spec())
    drawn = drawn_groups(data, rows, found)
    patch = pytest.MonkeyPatch()
    for sizes in ((memory.BLOCK, memory.LARGE, memory.PAIRS), (block, large, some)):
        for name, size in zip(("BLOCK", "LARGE", "PAIRS"), sizes, strict=True):
            patch.setattr(memory, name, size)
        for groups, expected in drawn:
            assert ENGINE.count(found, groups).tolist() == expected
    patch.undo()


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


@given(st.sets(st.integers(0, 199), min_size=1), st.integers(1, 4))
def test_pairs_are_found_whether_few_or_many_of_the_codes_occur(codes: set[int], values: int) -> None:
    code = np.array(sorted(codes) * 2, dtype=np.int64)
    person = np.arange(len(code), dtype=np.int32)
    found = memory._distinct(code // values, code % values, person, 200, values, len(code), "activity")
    assert (found.place is None) == (200 * values > 8 * len(codes))
    assert found.code[found.at(code)].tolist() == code.tolist()
