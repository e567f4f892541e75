"""Distinct points: whatever is found, every row gets its own coordinates back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geodiv.grids import points
from geodiv.grids.points import PROBE, distinct


def test_most_points_distinct_does_not_pay() -> None:
    rng = np.random.default_rng(0)
    assert distinct(rng.normal(size=2 * PROBE), rng.normal(size=2 * PROBE)) is None


def test_few_points_are_not_worth_a_look() -> None:
    assert distinct(np.zeros(PROBE - 1), np.zeros(PROBE - 1)) is None


@given(st.integers(1, 5000), st.integers(0, 2**32 - 1))
def test_each_row_has_its_own_coordinates(places: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=places), rng.normal(size=places).round(1)
    rows = rng.integers(0, places, PROBE)
    found = distinct(x[rows], y[rows])
    assert found is not None
    assert (x[rows][found.first][found.code] == x[rows]).all()
    assert (y[rows][found.first][found.code] == y[rows]).all()
    assert len(found.first) == len(np.unique(rows))


def test_zero_and_minus_zero_may_be_two_points() -> None:
    x = np.tile([0.0, -0.0], PROBE)
    found = distinct(x, x)
    assert found is not None
    assert (x[found.first][found.code] == x).all()


def test_colliding_hashes_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(points, "_hashes", lambda x, y: np.zeros(len(x), dtype=np.int64))
    assert distinct(np.tile([1.0, 2.0], PROBE), np.zeros(2 * PROBE)) is None


def test_a_slice_of_a_table_will_do() -> None:
    table = np.tile(np.array([[1.0, 2.0], [3.0, 4.0]]), (PROBE, 1))
    found = distinct(table[:, 0], table[:, 1])
    assert found is not None
    assert found.first.tolist() == [0, 1]
