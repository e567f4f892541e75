"""Distances on trees and the noise floor: worked examples, linear programs, scipy, enumeration, laws."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse, stats

from geodiv import Nominal, Numeric, Ordinal, Taxonomy
from geodiv.ground import Tree, path, star
from geodiv.measures import noise_floor, shares, tree_distance
from geodiv.policy import meets
from geodiv.text import MISSING

CITY = Taxonomy(
    (
        ("clinic", "health", "care"),
        ("dentist", "health", "care"),
        ("gym", "sport", "leisure"),
        ("pool", "sport", "leisure"),
        ("cafe", "food", "leisure"),
    )
)


def mixes(values: int) -> st.SearchStrategy[np.ndarray]:
    """Shares of so many values."""
    return st.lists(st.integers(0, 20), min_size=values, max_size=values).filter(any).map(shares)


def cheapest_transport(p: np.ndarray, q: np.ndarray, ground: np.ndarray) -> float:
    """The Earth Mover's Distance by its definition: a linear program over flows."""
    m = len(p)
    out, into = np.kron(np.eye(m), np.ones(m)), np.kron(np.ones(m), np.eye(m))
    found = optimize.linprog(ground.ravel(), A_eq=np.vstack([out, into]), b_eq=np.append(p, q))
    assert found.status == 0
    return float(found.fun)


def path_ground(positions: list[float], missing: bool) -> np.ndarray:
    """Distances of ordered values, a missing one 1/2 off the middle, from the definition."""
    span, middle = positions[-1] - positions[0], (positions[0] + positions[-1]) / 2
    m = len(positions) + missing
    ground = np.zeros((m, m))
    for i, j in itertools.product(range(m), repeat=2):
        if i != j:
            at = [positions[k] if k < len(positions) else middle for k in (i, j)]
            hang = 0.5 * (max(i, j) == len(positions))
            ground[i, j] = hang + (abs(at[0] - at[1]) / span if span else 0)
    return ground


def hierarchy_ground(taxonomy: Taxonomy, missing: bool) -> np.ndarray:
    """Heights of lowest common ancestors over H, a missing value its own class at every level."""
    columns = taxonomy.height
    height = columns + (len(taxonomy.labels(columns)) > 1)
    m = len(taxonomy.values)
    ground = np.ones((m + missing, m + missing))
    for i, j in itertools.product(range(m), repeat=2):
        a, b = taxonomy.rows[i], taxonomy.rows[j]
        ground[i, j] = next((h for h in range(columns + 1) if a[h] == b[h]), height) / height
    np.fill_diagonal(ground, 0)
    return ground


# --- worked examples ----------------------------------------------------------------------------------------


def test_nine_bands_are_measured_by_the_declaration():
    nine = path(range(9), missing=False)
    cell, bands = np.eye(9)[0], np.eye(9)
    assert tree_distance(cell, (bands[0] + bands[1]) / 2, nine) == pytest.approx(0.0625)
    assert tree_distance(cell, (bands[0] + bands[8]) / 2, nine) == pytest.approx(0.5)


def test_a_step_to_the_next_band_is_cheap():
    bands = np.eye(9)
    assert tree_distance(bands[0], bands[1], path(range(9), missing=False)) == pytest.approx(0.125)
    assert tree_distance(bands[0], bands[1], star(9)) == 1


def test_coarsening_may_worsen_an_ordered_distance():
    q, p = [0.4, 0.1, 0.1, 0.4], [0.4, 0.1, 0.3, 0.2]
    belief = [0.8 * 0.4 / 0.6, 0.8 * 0.1 / 0.6, 0.8 * 0.1 / 0.6, 0.2]
    four = path(range(4), missing=False)
    assert tree_distance(p, q, four) == pytest.approx(0.0667, abs=5e-5)
    assert tree_distance(belief, q, four) == pytest.approx(0.1667, abs=5e-5)


def test_total_variation_at_the_threshold_passes():
    assert meets("t_max", tree_distance([0.7, 0.3], [0.5, 0.5], star(2)), 0.2)


def test_a_union_of_equals_is_far_from_each():
    assert tree_distance([10 / 11, 1 / 11], [0.5, 0.5], star(2)) == pytest.approx(0.409, abs=5e-4)


def test_texts_follow_the_declared_order():
    space = Ordinal("band", order=["1", "2", "10"]).space({"10", "1"})
    at = {value: i for i, value in enumerate(space.values)}
    p, q = np.eye(3)[at["1"]], np.eye(3)[at["10"]]
    assert tree_distance(p, q, space.tree) == 1
    assert tree_distance(p, np.eye(3)[at["2"]], space.tree) == pytest.approx(0.5)


def test_integer_ids_without_a_declared_order_are_nominal():
    space = Nominal("category").space({"1", "2", "3"})
    assert (
        tree_distance([1, 0, 0], [0, 1, 0], space.tree)
        == tree_distance([1, 0, 0], [0, 0, 1], space.tree)
        == 1
    )


def test_an_attribute_of_one_value_is_at_no_distance():
    for attribute in (Nominal("a"), Ordinal("a", order=["x"]), Numeric("a", edges=[0, 1])):
        space = attribute.space({attribute.order[0]} if isinstance(attribute, Ordinal) else set())
        one = np.ones(max(len(space.values), 1))
        assert tree_distance(one[: len(space.values)], one[: len(space.values)], space.tree) == 0


def test_missing_hangs_from_the_middle_of_an_order():
    space = Ordinal("a", order=["low", "mid", "high"]).space({"low", MISSING})
    low, mid, _, missing = np.eye(4)
    assert tree_distance(low, missing, space.tree) == pytest.approx(1)
    assert tree_distance(mid, missing, space.tree) == pytest.approx(0.5)


def test_missing_is_a_class_of_its_own_in_a_hierarchy():
    space = Nominal("a", taxonomy=CITY, distance="hierarchical").space({MISSING})
    assert space.values == ("cafe", "clinic", "dentist", "gym", "pool", MISSING)
    cafe, clinic, dentist, gym, pool, missing = np.eye(6)
    distance = [tree_distance(clinic, x, space.tree) for x in (clinic, dentist, gym, missing)]
    assert distance == pytest.approx([0, 1 / 3, 1, 1])
    assert tree_distance(gym, pool, space.tree) == pytest.approx(1 / 3)
    assert tree_distance(gym, cafe, space.tree) == pytest.approx(2 / 3)


# --- oracles ------------------------------------------------------------------------------------------------


@given(st.data())
def test_ordered_distance_is_that_of_scipy(data):
    gaps = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=8))
    positions = np.cumsum([data.draw(st.integers(-50, 50)), *gaps]).astype(float)
    p, q = data.draw(mixes(len(positions))), data.draw(mixes(len(positions)))
    expected = stats.wasserstein_distance(positions, positions, p, q) / (positions[-1] - positions[0])
    space = Ordinal("a", order=range(len(positions)), positions=positions).space(set())
    assert tree_distance(p, q, space.tree) == pytest.approx(expected, abs=1e-12)


@given(mixes(6), mixes(6))
def test_equal_gaps_are_cumulative_sums(p, q):
    expected = sum(abs(sum(p[: i + 1]) - sum(q[: i + 1])) for i in range(6)) / 5
    assert tree_distance(p, q, path(range(6), missing=False)) == pytest.approx(expected, abs=1e-12)


@given(mixes(5), mixes(5))
@settings(max_examples=25, deadline=None)
def test_the_star_is_the_cheapest_transport_between_values_one_apart(p, q):
    distance = tree_distance(p, q, Nominal("a", taxonomy=CITY).space(set()).tree)
    assert distance == pytest.approx(cheapest_transport(p, q, 1 - np.eye(5)), abs=1e-9)
    assert distance == pytest.approx(sum(abs(p - q)) / 2, abs=1e-12)


@pytest.mark.parametrize(
    "positions", [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0, 3.0], [-5.0, 0.0, 100.0], [1.0, 2.0], [4.0]]
)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_an_order_with_missing_values_is_the_cheapest_transport(positions, data):
    m = len(positions) + 1
    p, q = data.draw(mixes(m)), data.draw(mixes(m))
    order = [str(i) for i in range(m - 1)]
    space = Ordinal("a", order=order, positions=positions).space({MISSING})
    expected = cheapest_transport(p, q, path_ground(positions, missing=True))
    assert tree_distance(p, q, space.tree) == pytest.approx(expected, abs=1e-9)


ROOTED = Taxonomy(tuple((*row, "all") for row in CITY.rows))
RAGGED = Taxonomy((("a", "x", ""), ("b", "x", ""), ("c", "", ""), ("d", "y", "z"), ("e", "y", "z")))


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("taxonomy", [CITY, ROOTED, RAGGED], ids=["forest", "rooted", "ragged"])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_hierarchy_is_the_cheapest_transport(taxonomy, missing, data):
    m = 5 + missing
    p, q = data.draw(mixes(m)), data.draw(mixes(m))
    space = Nominal("a", taxonomy=taxonomy, distance="hierarchical").space({MISSING} if missing else set())
    expected = cheapest_transport(p, q, hierarchy_ground(taxonomy, missing))
    assert tree_distance(p, q, space.tree) == pytest.approx(expected, abs=1e-9)


# --- laws ---------------------------------------------------------------------------------------------------

TREES = {
    "star": star(6),
    "path": path([0, 1, 5, 6, 7, 9], missing=False),
    "path with missing": path([0, 1, 5, 6, 7], missing=True),
    "hierarchy with missing": Nominal("a", taxonomy=CITY, distance="hierarchical").space({MISSING}).tree,
}
trees = pytest.mark.parametrize("tree", TREES.values(), ids=TREES.keys())


@trees
@given(p=mixes(6), q=mixes(6), r=mixes(6))
def test_a_metric_between_zero_and_one(tree, p, q, r):
    there = tree_distance(p, q, tree)
    assert tree_distance(p, p, tree) == 0
    assert there == pytest.approx(tree_distance(q, p, tree), abs=1e-12)
    assert there <= tree_distance(p, r, tree) + tree_distance(r, q, tree) + 1e-12
    assert -1e-12 <= there <= min(1, abs(p - q).sum() / 2) + 1e-12
    assert (there > 1e-12) == (abs(p - q).max() > 1e-12)


@given(p=mixes(7), q=mixes(7))
def test_an_order_reversed_is_the_same_distance(p, q):
    positions = np.array([0, 1, 4, 5, 7, 8, 20.0])
    there = path(positions, missing=False)
    back = path(-positions[::-1], missing=False)
    assert tree_distance(p, q, there) == pytest.approx(tree_distance(p[::-1], q[::-1], back), abs=1e-12)


@given(p=mixes(2), q=mixes(2))
def test_two_ordered_values_are_total_variation(p, q):
    two = path([3, 11], missing=False)
    assert tree_distance(p, q, two) == pytest.approx(tree_distance(p, q, star(2)), abs=1e-12)


@trees
def test_rows_are_measured_as_if_alone(tree):
    p, q = np.random.default_rng(1).dirichlet(np.ones(6), (2, 4))
    alone = [tree_distance(a, b, tree) for a, b in zip(p, q, strict=True)]
    np.testing.assert_allclose(tree_distance(p, q, tree), alone, atol=1e-15)
    np.testing.assert_allclose(
        tree_distance(p, q[0], tree), [tree_distance(a, q[0], tree) for a in p], atol=1e-15
    )


@trees
@pytest.mark.filterwarnings("error")
def test_a_row_of_nan_is_at_no_known_distance(tree):
    p = np.full((2, 6), 1 / 6)
    q = p.copy()
    q[0] = np.nan
    np.testing.assert_array_equal(np.isnan(tree_distance(p, q, tree)), [True, False])
    np.testing.assert_array_equal(np.isnan(noise_floor([5, 5], q, tree)), [True, False])
    assert tree_distance(p[:0], q[:0], tree).shape == noise_floor([], q[:0], tree).shape == (0,)
    assert not meets("t_max", tree_distance(p[0], q[0], tree), 1)


# --- noise floor --------------------------------------------------------------------------------------------


def expected_distance(n: int, q: list[Fraction], tree) -> float:
    """By listing every outcome of n draws from q."""
    total = 0.0
    for drawn in itertools.product(range(n + 1), repeat=len(q)):
        if sum(drawn) == n:
            ways = math.factorial(n) // math.prod(math.factorial(x) for x in drawn)
            chance = ways * math.prod(
                (float(share) ** x for share, x in zip(q, drawn, strict=True)), start=1.0
            )
            total += chance * tree_distance(np.array(drawn) / n, [float(x) for x in q], tree)
    return total


@pytest.mark.parametrize("n", [1, 2, 3, 6, 8])
@pytest.mark.parametrize("weights", [(1, 1, 1), (1, 2, 3), (5, 0, 1), (1, 0, 0)], ids=str)
@pytest.mark.parametrize("name", ["star", "path", "missing", "hierarchy"])
def test_the_floor_is_the_mean_distance_of_draws(n, weights, name):
    two = Taxonomy.of({"a": "x", "b": "x", "c": "y"})
    tree = {
        "star": star(3),
        "path": path([0, 1, 5], missing=False),
        "missing": path([0, 1], missing=True),
        "hierarchy": Nominal("a", taxonomy=two, distance="hierarchical").space(set()).tree,
    }[name]
    q = [Fraction(w, sum(weights)) for w in weights]
    found = noise_floor(n, [float(x) for x in q], tree)
    assert found == pytest.approx(expected_distance(n, q, tree), abs=1e-12)


def test_twenty_over_nine_even_values():
    assert noise_floor(20, np.full(9, 1 / 9), star(9)) == pytest.approx(0.2534, abs=5e-5)


@given(st.integers(1, 40), st.integers(0, 60), st.integers(1, 60))
def test_the_mean_absolute_deviation_is_that_of_exact_arithmetic(n, a, b):
    share = Fraction(min(a, b), b)  # also where n * share is whole
    mean = sum(
        math.comb(n, x) * share**x * (1 - share) ** (n - x) * abs(Fraction(x, n) - share)
        for x in range(n + 1)
    )
    q = np.array([float(share), 1 - float(share)])
    assert noise_floor(n, q, star(2)) == pytest.approx(float(mean), abs=1e-13)
    for nudge in (-1e-16, 1e-16):
        assert noise_floor(n, q + np.array([nudge, -nudge]), star(2)) == pytest.approx(float(mean), abs=1e-9)


def test_shares_a_rounding_error_outside_their_range():
    assert noise_floor(7, [1 + 2e-16, -2e-16], star(2)) == 0
    assert noise_floor(7, [-2e-16, 1 + 2e-16], star(2)) == 0


def test_many_draws_come_near_the_normal_law():
    n = 10**8
    assert noise_floor(n, [0.3, 0.7], star(2)) == pytest.approx(
        math.sqrt(2 * 0.3 * 0.7 / (math.pi * n)), rel=1e-6
    )


def test_a_zone_without_contributions_has_no_floor():
    found = noise_floor([0, 5], [0.5, 0.5], star(2))
    assert np.isnan(found[0])
    assert found[1] > 0


@given(st.lists(st.integers(1, 200), min_size=1, max_size=6), mixes(6))
def test_zones_share_one_reference_or_have_their_own(n, q):
    for tree in TREES.values():
        alone = [noise_floor(x, q, tree) for x in n]
        np.testing.assert_allclose(noise_floor(n, q, tree), alone, atol=1e-15)
        np.testing.assert_allclose(noise_floor(n, np.tile(q, (len(n), 1)), tree), alone, atol=1e-15)


# --- edges in any order -----------------------------------------------------------------------------------------


def test_edges_above_single_values_need_not_stand_in_the_values_order():
    """Value 0 hangs by .7, value 1 by .1, value 2 by .2; the edges are listed otherwise, or one of them twice."""
    moved = np.abs(np.array([0.5, 0.3, 0.2]) - [0.2, 0.2, 0.6])
    by_hand = 0.7 * moved[0] + 0.1 * moved[1] + 0.2 * moved[2]
    turned = Tree(sparse.csr_array(np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])), np.array([0.1, 0.2, 0.7]))
    assert tree_distance([0.5, 0.3, 0.2], [0.2, 0.2, 0.6], turned) == pytest.approx(by_hand)
    twice = Tree(sparse.csr_array(np.array([[1.0, 0, 0], [1, 0, 0], [0, 0, 1]])), np.array([0.3, 0.4, 0.2]))
    assert tree_distance([0.5, 0.3, 0.2], [0.2, 0.2, 0.6], twice) == pytest.approx(by_hand - 0.1 * moved[1])
    root = Tree(sparse.csr_array(np.array([[1.0, 0, 0], [0, 1, 1], [0, 0, 0]])), np.array([0.3, 0.2, 9.0]))
    together = abs(0.5 - 0.8)
    assert tree_distance([0.5, 0.3, 0.2], [0.2, 0.2, 0.6], root) == pytest.approx(
        0.3 * moved[0] + 0.2 * together
    )


@pytest.mark.filterwarnings("error")
def test_a_zone_without_contributions_has_no_noise_floor_and_no_warning():
    found = noise_floor([0, 1, 0, 4], [0.25, 0.75], star(2))
    np.testing.assert_array_equal(np.isnan(found), [True, False, True, False])
    assert found[1] == pytest.approx(0.25 * 0.75 + 0.75 * 0.25)  # one draw is 1 - q away from q, or q


def test_the_noise_floor_of_many_draws_is_that_of_few():
    """Beyond a table's length: for an even coin E|X/n - 1/2| is C(n, n/2) / 2^(n+1), from the log of the factorial."""
    for n in (99_998, 100_000, 100_002, 400_000):
        by_hand = math.exp(math.lgamma(n + 1) - 2 * math.lgamma(n / 2 + 1) - (n + 1) * math.log(2))
        assert noise_floor(n, [0.5, 0.5], star(2)) == pytest.approx(by_hand, rel=1e-6)
        np.testing.assert_allclose(noise_floor([n, 4], [0.5, 0.5], star(2)), [by_hand, 6 / 32], rtol=1e-6)
