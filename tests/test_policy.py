"""Policy: the one function that decides, and every declaration that is none, one by one."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geodiv import Global, Nominal, Policy, PolicyError, Region, Ring, Weights
from geodiv.policy import FLOORS, GATES, LADDER, Gates, meets

CEILINGS = sorted(set(GATES) - FLOORS - {"c_max"})


# --- meets --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gate", GATES)
def test_nan_never_passes(gate):
    for threshold in (0.0, 1.0, math.inf):
        assert not meets(gate, math.nan, threshold)


@pytest.mark.parametrize("gate", sorted(FLOORS))
def test_a_floor_holds_at_it_and_above(gate):
    np.testing.assert_array_equal(
        meets(gate, [2.9, 3 - 1e-8, 3 - 1e-9, 3, 3.1, math.inf], 3), [False, False, True, True, True, True]
    )


@pytest.mark.parametrize("gate", CEILINGS)
def test_a_ceiling_holds_at_it_and_below(gate):
    np.testing.assert_array_equal(
        meets(gate, [0, 0.3, 0.3 + 9e-10, 0.3 + 1e-8, 1, math.inf], 0.3),
        [True, True, True, False, False, False],
    )


def test_c_holds_strictly_below():
    np.testing.assert_array_equal(
        meets("c_max", [2, 3 - 1e-7, 3 - 1e-15, 3, 3.1, math.inf], 3),
        [True, True, False, False, False, False],
    )
    np.testing.assert_array_equal(meets("c_max", [1e300, math.inf], math.inf), [True, False])


def test_the_tolerance_grows_with_the_threshold():
    assert meets("k_min", 1e6 - 5e-4, 1e6)
    assert not meets("k_min", 1e6 - 1, 1e6)
    assert meets("l_min", 3 - 2.9e-9, 3)


@given(st.integers(2, 20), st.integers(1, 100))
def test_even_counts_hold_their_own_number(m, n):
    share = n / (m * n)
    assert meets("l_min", math.exp(-sum(share * math.log(share) for _ in range(m))), m)


def test_the_shape_is_kept():
    assert meets("l_min", np.zeros((2, 3)), 1).shape == (2, 3)
    assert meets("t_max", [], 1).shape == (0,)


# --- gates --------------------------------------------------------------------------------------------------


def test_a_gate_that_is_not_named_is_off():
    off = asdict(Gates())
    assert off.pop("k_min") == 10
    assert set(off.values()) == {None}
    assert Policy().thresholds() == Gates()


NUMBERS = {
    "l_min": (1, 0.99),
    "t_max": (0, -0.01, 1.01),
    "shift_max": (1, -0.01, 1.01),
    "lift_max": (1, 0.5),
    "share_max": (1, 1.5),
    "incidence_max": (0.8, 80),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_thresholds_have_a_range(name):
    right, *wrong = NUMBERS[name]
    assert getattr(Policy(**{name: right}), name) == right
    for value in [*wrong, math.nan, "3", True, [1]]:
        with pytest.raises(PolicyError, match=name):
            Policy(**{name: value})


@pytest.mark.parametrize("name", ["k_min", "label_min", "max_members", "max_rounds"])
def test_whole_numbers(name):
    assert getattr(Policy(**{name: 1}), name) == 1
    for value in (0, -1, 1.5, "3", True, math.inf):
        with pytest.raises(PolicyError, match=f"{name}: expected a whole number of at least 1"):
            Policy(**{name: value})


def test_c_and_l_belong_together():
    assert Policy(c_l=2, c_max=3).thresholds().c_l == 2
    for half in ({"c_l": 2}, {"c_max": 3}):
        with pytest.raises(PolicyError, match="belong together"):
            Policy(**half)
    for value in (0, 1.5, True):
        with pytest.raises(PolicyError, match="c_l"):
            Policy(c_l=value, c_max=3)
    with pytest.raises(PolicyError, match="c_max"):
        Policy(c_l=2, c_max=-1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"reference": "ring"}, "expected Global, Ring, Region or Weights, got 'ring'"),
        ({"ladder": "recode"}, "expected a sub-list"),
        ({"ladder": ["merge", "recode"]}, "in this order"),
        ({"ladder": ["recode", "drop"]}, "'drop'"),
        ({"ladder": ["merge", "merge"]}, "sub-list"),
        ({"recode_scope": "cell"}, "expected 'zone' or 'release', got 'cell'"),
        ({"residual": "no"}, "expected true or false, got 'no'"),
    ],
    ids=str,
)
def test_declarations_that_are_none(given, message):
    with pytest.raises(PolicyError, match=message):
        Policy(**given)


def test_a_key_that_is_none():
    with pytest.raises(TypeError):
        Policy(k=10)


@pytest.mark.parametrize("ladder", [(), ("merge",), ["recode", "suppress"], list(LADDER)], ids=str)
def test_ladders(ladder):
    assert Policy(ladder=ladder).ladder == tuple(ladder)


def test_numbers_of_numpy_become_plain():
    policy = Policy(
        k_min=np.int64(5), l_min=np.float32(2), max_members=np.int32(3), reference=Ring(order=np.int64(2))
    )
    assert policy == Policy(k_min=5, l_min=2, max_members=3, reference=Ring(order=2))
    assert json.loads(json.dumps(asdict(policy.thresholds())))["k_min"] == 5
    assert type(policy.reference.max_order) is int


# --- gates of an attribute ----------------------------------------------------------------------------------


def test_an_attribute_overrides_any_gate_but_k():
    policy = Policy(k_min=12, l_min=3, t_max=0.3)
    own = policy.thresholds(Nominal("a", gates={"l_min": 2, "share_max": 0.9}))
    assert own == Gates(k_min=12, l_min=2, t_max=0.3, share_max=0.9)
    assert policy.thresholds(Nominal("a")) == policy.thresholds()
    assert {f.name for f in fields(Gates)} >= set(GATES)


@pytest.mark.parametrize(
    ("gates", "message"),
    [
        ({"k_min": 5}, "k_min counts persons"),
        ({"l_mim": 5}, "Did you mean 'l_min'"),
        ({"l_min": 0.5}, "l_min: expected a number of at least 1"),
        ({"lift_max": math.inf}, "lift_max: expected a number of at least 1, got inf"),
        ({"c_l": 2, "c_max": math.inf}, "c_max: expected a number of at least 0, got inf"),
        ({"t_max": 3}, "t_max"),
        ({"c_l": 2}, "belong together"),
    ],
    ids=str,
)
def test_gates_of_an_attribute_that_are_none(gates, message):
    with pytest.raises(PolicyError, match=message):
        Policy().thresholds(Nominal("a", gates=gates))


def test_more_diversity_than_there_are_values():
    nine = Nominal("poi_category")
    Policy(l_min=9).check(nine, 9)
    Policy().check(nine, 1)
    with pytest.raises(PolicyError, match="l_min = 10 for 'poi_category': it has 9 values"):
        Policy(l_min=10).check(nine, 9)
    Policy(l_min=10).check(Nominal("a", gates={"l_min": 2}), 2)


# --- references ---------------------------------------------------------------------------------------------


def test_a_ring_does_not_widen_unless_it_is_told_to():
    assert Ring() == Ring(order=1, max_order=1, min_persons=1, fallback="global")
    assert Ring(order=2).max_order == 2
    assert Ring(order=2, max_order=3).max_order == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Ring(order=0), "order: expected a whole number of at least 1"),
        (lambda: Ring(order=1.5), "order"),
        (lambda: Ring(order=True), "order"),
        (lambda: Ring(order=3, max_order=2), "max_order: expected a whole number of at least 3"),
        (lambda: Ring(min_persons=0), "min_persons"),
        (lambda: Ring(fallback="ring"), "expected 'global' or 'none', got 'ring'"),
        (lambda: Region({}, min_persons=0), "min_persons"),
        (lambda: Region({}, fallback=None), "fallback"),
        (lambda: Region([("a", "b")]), "mapping of cell id to region, got list"),
        (lambda: Weights({"a": ["b"]}), "libpysal Graph or W, got dict"),
        (lambda: Weights("queen"), "got str"),
    ],
)
def test_references_that_are_none(make, message):
    with pytest.raises(PolicyError, match=message):
        make()


def test_a_region_does_not_follow_the_callers_mapping():
    regions = {"a": "north"}
    region = Region(regions)
    regions["a"] = "south"
    assert region.regions == {"a": "north"}


def test_cells_and_regions_are_texts():
    """A number is its text, and what is missing is no region, whichever way a table says it."""
    region = Region({1: 1.0, "2": "1", 3.0: None, "4": math.nan, "1": 1})
    assert region.regions == {"1": "1", "2": "1"}
    with pytest.raises(PolicyError, match="one region a cell"):
        Region({1: "north", "1": "south"})


def test_a_policy_takes_each_reference():
    class Graph:
        adjacency = None

    for reference in (Global(), Ring(), Region({"a": "x"}), Weights(Graph())):
        assert Policy(reference=reference).reference is reference
