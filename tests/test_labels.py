"""The label space: codes of every level, what may be published, and the sensitive tier."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from geodiv import Taxonomy
from geodiv.ground import path
from geodiv.labels import label_space
from geodiv.text import MISSING

POI = Taxonomy(
    (
        ("cafe", "food", "leisure"),
        ("clinic", "health", "care"),
        ("gym", "sport", "leisure"),
        ("pharmacy", "health", "care"),
    )
)


def test_levels_and_codes():
    space = label_space(POI, POI.values, missing=True, sensitive=None)
    assert space.values == ("cafe", "clinic", "gym", "pharmacy", MISSING)
    assert space.levels[1:] == (("food", "health", "sport", MISSING), ("leisure", "care", MISSING))
    assert [codes.tolist() for codes in space.up] == [[0, 1, 2, 3, 4], [0, 1, 2, 1, 3], [0, 1, 0, 1, 2]]
    assert space.missing == 4
    assert space.publishable == (True, True, True)


def test_labels_are_in_the_order_of_the_first_value_below_them():
    space = label_space(POI, ("pharmacy", "gym", "clinic", "cafe"), missing=False, sensitive=None)
    assert space.levels[1:] == (("health", "sport", "food"), ("care", "leisure"))
    assert space.missing is None


@given(st.permutations(POI.values), st.booleans())
def test_every_code_names_the_label_above(values, missing):
    space = label_space(POI, values, missing, None)
    for codes, names in zip(space.up, space.levels, strict=True):
        assert sorted(set(codes.tolist())) == list(range(len(names)))
    for h in range(3):
        named = [space.levels[h][code] for code in space.up[h]]
        assert named == [POI.path(v)[h] for v in values] + [MISSING] * missing


def test_without_a_taxonomy_there_is_one_level():
    space = label_space(None, ("a", "b"), missing=False, sensitive=None)
    assert space.levels == (("a", "b"),)
    assert space.publishable == (True,)


def test_a_coarse_level_of_one_label_says_nothing():
    rooted = Taxonomy(tuple((*row, "all") for row in POI.rows))
    for missing in (False, True):
        assert label_space(rooted, rooted.values, missing, None).publishable == (True, True, True, False)
    one = Taxonomy.of({"a": "x"})
    assert label_space(one, ("a",), False, None).publishable == (True, False)


def test_a_value_outside_the_taxonomy_keeps_itself():
    space = label_space(POI, ("cafe", "clinic", "vet"), missing=False, sensitive=None)
    assert [space.levels[h][space.up[h][2]] for h in range(3)] == ["vet", "vet", "vet"]


def test_a_value_outside_that_is_named_like_a_label_does_not_tear_it():
    space = label_space(POI, ("cafe", "clinic", "health", "leisure"), missing=False, sensitive=None)
    chains = [[space.levels[h][space.up[h][v]] for h in range(3)] for v in range(4)]
    assert chains[2:] == [["health", "health", "care"], ["leisure", "leisure", "leisure"]]
    above = {(chain[1], chain[2]) for chain in chains}
    assert len({label for label, _ in above}) == len(above)


def test_the_tier_is_everything_unless_it_is_named():
    space = label_space(POI, POI.values, missing=True, sensitive=None)
    assert all(tier.all() for tier in space.sensitive)
    assert [tier.tolist() for tier in space.certain] == [
        [True] * 4 + [False],
        [True] * 3 + [False],
        [True] * 2 + [False],
    ]


def test_a_label_is_sensitive_when_a_value_below_it_is():
    space = label_space(POI, POI.values, missing=True, sensitive=("clinic",))
    assert [space.levels[h][i] for h in range(3) for i in np.flatnonzero(space.sensitive[h])] == [
        *("clinic", MISSING),
        *("health", MISSING),
        *("care", MISSING),
    ]
    assert [space.levels[h][i] for h in range(3) for i in np.flatnonzero(space.certain[h])] == [
        *("clinic", "health", "care")
    ]


def test_missing_is_looked_at_for_incidence_when_it_is_named():
    space = label_space(POI, POI.values, missing=True, sensitive=("clinic", MISSING))
    assert all(tier[-1] for tier in space.certain)


def test_another_ground_distance_leaves_the_labels():
    space = label_space(None, ("a", "b"), missing=False, sensitive=None)
    other = space.with_tree(path([0, 1], missing=False))
    assert other.levels == space.levels
    assert other.tree is not space.tree


def test_no_values():
    for taxonomy in (None, POI):
        space = label_space(taxonomy, (), missing=False, sensitive=("x",))
        assert space.values == ()
        assert all(len(codes) == 0 for codes in space.up)
