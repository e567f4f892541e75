"""Attributes: what is declared is held to; nothing is guessed from the values that occur."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geodiv import Nominal, Numeric, Ordinal, PolicyError, Taxonomy, TaxonomyError, UnknownValueError
from geodiv.attribute import RESERVED, Attribute
from geodiv.text import MISSING, as_text

POI = Taxonomy.of({"clinic": "health", "pharmacy": "health", "cafe": "food"}, name="poi", version="v2")
BANDS = Taxonomy.of({"low": "poor", "mid": "rich", "high": "rich"})
KINDS = [
    Nominal("a"),
    Ordinal("a", order=["low", "high"]),
    Numeric("a", edges=[0, 1]),
]


@pytest.mark.parametrize("attribute", KINDS, ids=lambda a: type(a).__name__)
def test_the_kinds_are_attributes_and_can_be_sent(attribute):
    assert isinstance(attribute, Attribute)
    assert pickle.loads(pickle.dumps(attribute)) == attribute


# --- what all kinds share -----------------------------------------------------------------------------------


def of_kind(kind, **given):
    needed = {Nominal: {}, Ordinal: {"order": ["low", "mid", "high"]}, Numeric: {"edges": [0, 1, 2]}}[kind]
    return kind(**{"column": "a", **needed, **given})


kinds = pytest.mark.parametrize("kind", [Nominal, Ordinal, Numeric])


@kinds
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"column": ""}, "expected a name"),
        ({"column": 3}, "expected a name, got 3"),
        ({"missing": "Unknown"}, "missing of 'a': expected a list"),
        ({"missing": 3}, "missing of 'a': expected a list"),
        ({"sensitive": "clinic"}, "sensitive of 'a': expected a list"),
        ({"level": -1}, "level of 'a'"),
        ({"level": True}, "level of 'a'"),
        ({"level": 0.5}, "level of 'a'"),
        ({"gates": [("l_min", 2)]}, "gates of 'a'"),
        ({"taxonomy": {"a": "b"}}, r"Taxonomy\.read"),
    ],
    ids=str,
)
def test_declarations_that_are_none(kind, given, message):
    with pytest.raises(PolicyError, match=message):
        of_kind(kind, **given)


@kinds
@pytest.mark.parametrize("name", [*sorted(RESERVED), "FID", "Geom", "GEOMETRY", "Remedy"])
def test_names_that_a_geopackage_cannot_hold_twice(kind, name):
    with pytest.raises(PolicyError, match="Rename the column"):
        of_kind(kind, column=name)


@kinds
def test_a_level_beyond_the_taxonomy(kind):
    with pytest.raises(PolicyError, match="level of 'a': expected 0 to 0"):
        of_kind(kind, level=1).space(set())


def test_a_level_that_says_nothing():
    rooted = Taxonomy.of({"clinic": "all", "cafe": "all"})
    with pytest.raises(PolicyError, match="single label"):
        Nominal("a", taxonomy=rooted, level=1).space(set())
    assert Nominal("a", taxonomy=POI, level=1).space(set()).levels[1] == ("food", "health")


@kinds
def test_missing_markers_are_texts_like_values(kind):
    attribute = of_kind(kind, missing=[None, -999.0, "", True])
    assert attribute.missing == (MISSING, "-999", "", "true")
    assert attribute.recognise(["-999", "", "true", MISSING]) == [MISSING] * 4


def test_a_marker_of_numbers_is_a_number_however_it_is_written():
    """CSV says -999.0 where a float column says -999: an open end would take it for a low income."""
    income = Numeric("a", edges=[-math.inf, 10, math.inf], missing=[-999, "?", None])
    assert income.recognise(["-999", "-999.0", "-9.99e2", "?", "-998"]) == [MISSING] * 4 + ["[-inf, 10)"]
    assert Numeric("a", edges=[0, 50, 99], missing=[99]).recognise(["99.00", "98.9"]) == [MISSING, "[50, 99]"]


def test_a_marker_that_is_a_value_too():
    with pytest.raises(TaxonomyError, match="'cafe' declared as missing and as a value"):
        Nominal("a", taxonomy=POI, missing=["cafe"])
    with pytest.raises(TaxonomyError, match="'low'"):
        Ordinal("a", order=["low", "high"], missing=["low"])


@kinds
def test_missing_is_a_value_only_where_it_occurs(kind):
    attribute = of_kind(kind)
    assert attribute.space(set()).missing is None
    space = attribute.space({MISSING})
    assert space.values[-1] == MISSING
    assert space.missing == len(space.values) - 1


def test_a_sensitive_value_that_is_none_would_switch_the_gates_off():
    with pytest.raises(UnknownValueError, match=r"'clinc' not among its values\. Did you mean 'clinic'"):
        Nominal("a", taxonomy=POI, sensitive=["clinc"])
    with pytest.raises(UnknownValueError, match="'lo'"):
        Ordinal("a", order=["low", "high"], sensitive=["lo"])
    undeclared = Nominal("a", sensitive=["clinc"])
    with pytest.raises(UnknownValueError, match="Did you mean 'clinic'"):
        undeclared.space({"clinic", "cafe"})
    assert undeclared.space(set()).values == ()
    assert Nominal("a", taxonomy=POI, sensitive=["clinic", MISSING]).sensitive == ("clinic", MISSING)
    assert Nominal("a", taxonomy=POI, sensitive=["vet"], unknown="own value").space({"vet"}).sensitive[0][-1]


# --- nominal ------------------------------------------------------------------------------------------------


def test_a_nominal_without_a_taxonomy_takes_what_occurs():
    space = Nominal("a").space({"b", MISSING, "a", "10", "9"})
    assert space.values == ("10", "9", "a", "b", MISSING)
    assert len(space.levels) == 1


def test_work_and_Work_are_two_values():
    assert Nominal("a").space(set(Nominal("a").recognise(["work", "Work"]))).values == ("Work", "work")


def test_a_nominal_with_a_taxonomy_takes_what_is_declared():
    assert Nominal("a", taxonomy=POI).space({"cafe"}).values == ("cafe", "clinic", "pharmacy")


def test_values_outside_the_taxonomy_are_named():
    attribute = Nominal("poi_category", taxonomy=POI)
    with pytest.raises(UnknownValueError) as caught:
        attribute.recognise(["vet", "clinic", "dentist", "gp", MISSING])
    assert str(caught.value) == (
        "3 values of 'poi_category' are not in taxonomy 'poi' v2: 'dentist', 'gp', 'vet'. "
        'Add them, or declare unknown="own value".'
    )
    with pytest.raises(
        UnknownValueError, match=r"1 value of .* is not in .*'clinik'\. Did you mean 'clinic'\?"
    ):
        attribute.recognise(["clinik"])


def test_values_outside_the_taxonomy_may_keep_themselves():
    attribute = Nominal("a", taxonomy=POI, unknown="own value")
    assert attribute.recognise(["vet", "cafe"]) == ["vet", "cafe"]
    space = attribute.space({"vet", "cafe"})
    assert space.levels[1] == ("food", "health", "vet")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"distance": "euclidean"}, "expected 'total variation' or 'hierarchical', got 'euclidean'"),
        ({"distance": "hierarchical"}, "needs a taxonomy"),
        ({"unknown": "ignore"}, "expected 'error' or 'own value', got 'ignore'"),
    ],
    ids=str,
)
def test_choices_of_a_nominal(given, message):
    with pytest.raises(PolicyError, match=message):
        Nominal("a", **given)


# --- ordinal ------------------------------------------------------------------------------------------------


def test_the_order_is_the_declared_one():
    space = Ordinal("a", order=[1.0, 2, "10"]).space({"10"})
    assert space.values == ("1", "2", "10")


def test_a_value_outside_the_order_is_named():
    with pytest.raises(UnknownValueError, match=r"'hgih'\. Did you mean 'high'\? Add them to order"):
        Ordinal("a", order=["low", "high"]).recognise(["low", "hgih"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"order": []}, "expected the values, lowest first, got none"),
        ({"order": "low"}, "expected a list"),
        ({"order": ["a", "a"]}, "expected different values"),
        ({"order": [1, "1"]}, "expected different values"),
        ({"order": ["a", None]}, "none of them missing"),
        ({"order": ["a", "b"], "positions": [1]}, "2 ascending finite numbers"),
        ({"order": ["a", "b"], "positions": [2, 1]}, "ascending"),
        ({"order": ["a", "b"], "positions": [1, 1]}, "ascending"),
        ({"order": ["a", "b"], "positions": [0, math.inf]}, "finite"),
        ({"order": ["a", "b"], "positions": [math.nan, 1]}, "finite"),
        ({"order": ["a", "b"], "positions": ["x", 1]}, "list of numbers"),
        ({"order": ["a", "b"], "positions": 1}, "list of numbers"),
    ],
    ids=str,
)
def test_orders_that_are_none(given, message):
    with pytest.raises(PolicyError, match=message):
        Ordinal("a", **given)


def test_coarse_values_of_an_order_are_neighbours():
    order = ["low", "mid", "high"]
    space = Ordinal("a", order=order, taxonomy=BANDS).space(set())
    assert space.levels == (("low", "mid", "high"), ("poor", "rich"))
    torn = Taxonomy.of({"low": "ends", "mid": "middle", "high": "ends"})
    with pytest.raises(TaxonomyError, match="'ends' at level1 has a gap"):
        Ordinal("a", order=order, taxonomy=torn)
    with pytest.raises(TaxonomyError, match="one side only: 'top'"):
        Ordinal("a", order=[*order, "top"], taxonomy=BANDS)
    with pytest.raises(TaxonomyError, match="one side only: 'high'"):
        Ordinal("a", order=order[:2], taxonomy=BANDS)


# --- numeric ------------------------------------------------------------------------------------------------


def test_bands_are_half_open_and_the_last_is_closed():
    age = Numeric("age", edges=[0, 10, 20.5])
    assert age.bands == ("[0, 10)", "[10, 20.5]")
    assert age.recognise(["0", "9.999", "10", "20.5", MISSING, "-0"]) == [
        *("[0, 10)", "[0, 10)", "[10, 20.5]", "[10, 20.5]", MISSING, "[0, 10)")
    ]


def test_open_ends():
    income = Numeric("income", edges=[-math.inf, 0, math.inf])
    assert income.bands == ("[-inf, 0)", "[0, inf]")
    assert income.recognise(["-1e300", "inf", "0"]) == ["[-inf, 0)", "[0, inf]", "[0, inf]"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        *((text, "outside its edges") for text in ("-0.1", "10.1", "inf")),
        *((text, "are no numbers") for text in ("nan", "ten", "", "1,5")),
    ],
)
def test_a_number_outside_or_no_number_is_named(text, what):
    with pytest.raises(UnknownValueError, match=what) as caught:
        Numeric("a", edges=[0, 5, 10]).recognise(["3", text])
    assert repr(text) in str(caught.value)
    assert "'3'" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "at least two ascending"),
        ({"edges": [0]}, "at least two ascending"),
        ({"edges": [0, 0]}, "ascending"),
        ({"edges": [1, 0]}, "ascending"),
        ({"edges": [0, math.nan]}, "ascending"),
        ({"edges": ["x", 1]}, "list of numbers"),
        ({"edges": 3}, "list of numbers"),
        ({"edges": [0, 1, 2], "positions": [1]}, "2 ascending finite numbers"),
    ],
    ids=str,
)
def test_edges_that_are_none(given, message):
    with pytest.raises(PolicyError, match=message):
        Numeric("a", **given)


@given(
    st.lists(st.integers(-50, 50), min_size=2, max_size=8, unique=True).map(sorted),
    st.lists(st.floats(-60, 60), max_size=20),
)
def test_every_number_inside_has_the_band_that_holds_it(edges, numbers):
    attribute = Numeric("a", edges=edges)
    inside = [x for x in numbers if edges[0] <= x <= edges[-1]]
    found = attribute.recognise([as_text(x) for x in inside])
    for x, band in zip(inside, found, strict=True):
        i = attribute.bands.index(band)
        assert edges[i] <= x
        assert x < edges[i + 1] or (x == edges[-1] and i == len(edges) - 2)
    assert len(attribute.space(set()).values) == len(edges) - 1


def test_positions_of_bands_make_their_gaps():
    even = Numeric("a", edges=[0, 1, 2, 100]).space(set()).tree
    placed = Numeric("a", edges=[0, 1, 2, 100], positions=np.array([0.5, 1.5, 51])).space(set()).tree
    np.testing.assert_allclose(even.weight, [0.5, 0.5])
    np.testing.assert_allclose(placed.weight, [1 / 50.5, 49.5 / 50.5])
