"""Trees of ground distances: their edges, and how far apart two values are on them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geodiv.ground import Tree, hierarchy, path, star


def apart(tree: Tree) -> np.ndarray:
    """Distance of every two leaves: the edges that have one of them below and not the other."""
    below = tree.below.toarray()
    m = below.shape[1]
    found = np.zeros((m, m))
    for i, j in itertools.product(range(m), repeat=2):
        found[i, j] = tree.weight[below[:, i] != below[:, j]].sum()
    return found


def test_a_star_holds_every_two_values_one_apart():
    np.testing.assert_array_equal(apart(star(4)), 1 - np.eye(4))
    assert star(0).below.shape == (0, 0)


def test_a_path_holds_values_apart_by_their_positions():
    np.testing.assert_allclose(
        apart(path([10, 20, 40], missing=False)), np.array([[0, 1, 3], [1, 0, 2], [3, 2, 0]]) / 3
    )


@pytest.mark.parametrize(
    ("positions", "to_missing"),
    [
        ([0, 1, 2], [1, 0.5, 1]),
        ([0, 1], [1, 1]),
        ([0, 1, 10], [1, 0.9, 1]),
        ([0, 4, 6, 10], [1, 0.6, 0.6, 1]),
        ([7], [0.5]),
    ],
    ids=str,
)
def test_missing_hangs_half_an_edge_off_the_middle(positions, to_missing):
    found = apart(path(positions, missing=True))
    np.testing.assert_allclose(found[-1, :-1], to_missing)
    np.testing.assert_allclose(found[:-1, :-1], apart(path(positions, missing=False)), atol=1e-15)


def test_one_value_has_no_edge():
    assert path([5], missing=False).below.shape == (0, 1)


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=7), st.integers(-9, 9), st.integers(1, 9), st.booleans()
)
def test_the_unit_of_the_positions_does_not_matter(gaps, shift, factor, missing):
    positions = np.cumsum([0, *gaps])
    np.testing.assert_allclose(
        apart(path(positions, missing)), apart(path(factor * positions + shift, missing)), atol=1e-12
    )


@pytest.mark.parametrize("unit", [1e308, 5e-324], ids=str)
@pytest.mark.parametrize("missing", [False, True])
def test_positions_as_far_apart_as_floats_go(unit, missing):
    """The range of the first is no float: its weights would be 0, and every distance with them."""
    positions = [-1, 0, 1] if unit > 1 else [0, 2, 4]
    found = apart(path([x * unit for x in positions], missing))
    np.testing.assert_allclose(found, apart(path(positions, missing)), atol=1e-15)


def test_a_hierarchy_holds_values_apart_by_their_common_ancestor():
    up = [np.arange(4), np.array([0, 0, 1, 2]), np.array([0, 0, 0, 1])]
    forest = np.array([[0, 1, 2, 3], [1, 0, 2, 3], [2, 2, 0, 3], [3, 3, 3, 0]]) / 3
    np.testing.assert_allclose(apart(hierarchy(up, single_root=False, missing=False)), forest)
    rooted = [*up, np.zeros(4, int)]
    np.testing.assert_allclose(apart(hierarchy(rooted, single_root=True, missing=False)), forest)
    with_missing = apart(hierarchy(up, single_root=False, missing=True))
    np.testing.assert_allclose(with_missing[:-1, :-1], forest)
    np.testing.assert_allclose(with_missing[-1, :-1], 1)


def test_a_hierarchy_of_one_class_is_the_star():
    up = [np.arange(3), np.zeros(3, int)]
    np.testing.assert_allclose(apart(hierarchy(up, single_root=True, missing=False)), 1 - np.eye(3))
