"""Matching candidates to cells, and steps along a contiguity, against plain loops."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from geodiv.grids.adjacency import among, within


@given(st.data())
def test_among_is_the_plain_loop(data: st.DataObject) -> None:
    keys = data.draw(st.lists(st.integers(0, 30), unique=True, max_size=12))
    centres = data.draw(st.lists(st.integers(0, max(len(keys) - 1, 0)), max_size=6 if keys else 0))
    near = [data.draw(st.sets(st.integers(-3, 35), max_size=8)) for _ in centres]
    rows = np.array([i for i, some in enumerate(near) for _ in some], dtype=np.int64)
    candidates = np.array([key for some in near for key in some], dtype=np.int64)
    expected = np.array(
        [
            [float(key in some and j != c) for j, key in enumerate(keys)]
            for c, some in zip(centres, near, strict=True)
        ]
    ).reshape(len(centres), len(keys))
    got = among(np.array(keys, dtype=np.int64), np.array(centres, dtype=np.int64), rows, candidates)
    assert got.shape == expected.shape
    assert (got.toarray() == expected).all()


@given(st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=14), st.integers(0, 5))
def test_within_is_a_breadth_first_search(edges: set[tuple[int, int]], order: int) -> None:
    links: dict[int, set[int]] = {i: set() for i in range(8)}
    for a, b in edges:
        if a != b:
            links[a].add(b)
            links[b].add(a)
    matrix = sparse.csr_array(np.array([[float(b in links[a]) for b in range(8)] for a in range(8)]))
    got = within(matrix, order, np.arange(8)).toarray()
    for start in range(8):
        reached = {start}
        for _ in range(order):
            reached |= {b for a in reached for b in links[a]}
        assert set(np.flatnonzero(got[start])) == reached - {start}


def test_centres_may_repeat_and_stand_in_any_order() -> None:
    line = sparse.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=float))
    assert within(line, 1, np.array([2, 0, 2])).toarray().tolist() == [[0, 1, 0], [0, 1, 0], [0, 1, 0]]
