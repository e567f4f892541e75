"""Textbook functions: hand-worked examples, and the same answers as plain loops."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import geodiv as gd

COLUMNS = ["cell_id", "distinct_categories", "effective_fine", "effective_coarse", "persons", "remedy"]
HEALTH = {
    "clinic": "health",
    "pharmacy": "health",
    "retail": "everyday",
    "cafe": "everyday",
    "gym": "everyday",
}
APPOINTMENT = {
    "clinic": "appointment",
    "retail": "appointment",
    "gym": "appointment",
    "cafe": "food",
    "pharmacy": "food",
}
CELLS = {
    "c-41": {"clinic": 34},
    "c-58": {"clinic": 41, "pharmacy": 3, "retail": 2, "cafe": 2},
    "c-72": {"retail": 18, "cafe": 15, "gym": 11, "clinic": 9},
}


def visits_of(cells: dict[str, dict[str, int]]) -> pd.DataFrame:
    """One visit a person, so many persons per cell and category."""
    rows = [(cell, category) for cell, n in cells.items() for category, k in n.items() for _ in range(k)]
    frame = pd.DataFrame(rows, columns=["cell_id", "poi_category"])
    return frame.assign(person_id=[f"p{i}" for i in range(len(frame))])


def frame_of(*rows: tuple) -> pd.DataFrame:
    """Visits of (cell, category, person)."""
    return pd.DataFrame(rows, columns=["cell_id", "poi_category", "person_id"])


# --- cell_attribute_table -----------------------------------------------------------------------------------


def test_distinct_persons_per_cell_and_value():
    visits = pd.DataFrame(
        {
            "cell_id": ["b", "a", "a", "a", "a", None, "b"],
            "sensitive": ["cafe", "clinic", "clinic", "clinic", None, "clinic", "cafe"],
            "person_id": [1, 1, 1, 2, 2, 3, None],
        }
    )
    found = gd.cell_attribute_table(visits)
    assert found.to_dict("list") == {
        "cell_id": ["a", "a", "b"],
        "sensitive": ["(missing)", "clinic", "cafe"],
        "n": [1, 2, 1],
    }
    assert found["n"].dtype == np.int64


# --- entropy_diversity, closeness ---------------------------------------------------------------------------


def test_entropy_diversity():
    assert gd.entropy_diversity([41, 3, 2, 2]) == pytest.approx(1.773165, abs=5e-7)
    assert gd.entropy_diversity(np.array([[1, 1], [1, 0]])) == pytest.approx([2, 1])
    assert gd.entropy_diversity(pd.Series([0.5, 0.25, 0.25])) == pytest.approx(2 * math.sqrt(2))
    assert math.isnan(gd.entropy_diversity([0, 0]))


def test_closeness_of_counts_and_of_shares():
    assert gd.closeness([7, 3], [1, 1], ordered=False) == pytest.approx(0.2)
    assert gd.closeness([0.7, 0.3], [0.5, 0.5], ordered=True) == pytest.approx(0.2)
    assert gd.closeness([1, 0, 0], [0, 1, 0], ordered=True) == pytest.approx(0.5)
    assert gd.closeness([1, 0, 0], [0, 1, 0], ordered=False) == pytest.approx(1)
    assert gd.closeness([5] + [0] * 8, [3] + [0] * 7 + [3], ordered=True) == pytest.approx(0.5)
    assert gd.closeness([4], [9], ordered=True) == gd.closeness([4], [9], ordered=False) == 0
    assert math.isnan(gd.closeness([0, 0], [1, 1], ordered=True))
    assert gd.closeness([[1, 0], [1, 1]], [1, 1], ordered=False) == pytest.approx([0.5, 0])


@pytest.mark.parametrize(("p", "q"), [([1, 2], [1, 2, 3]), ([1, 2], [1]), (3, [1]), ([[1, 2]], [1])], ids=str)
def test_different_values_are_at_no_distance(p, q):
    with pytest.raises(gd.UsageError, match="same values on both sides"):
        gd.closeness(p, q, ordered=False)
    with pytest.raises(gd.UsageError, match="same values on both sides"):
        gd.posterior_shift(p, q)


# --- posterior_shift ----------------------------------------------------------------------------------------


def test_posterior_shift_by_hand():
    found = gd.posterior_shift([41, 3, 2, 2, 0], [84, 3, 20, 17, 11])
    assert found == {
        "max_shift": pytest.approx(41 / 48 - 84 / 135),
        "argmax_index": 0,
        "cell_top_prob": pytest.approx(41 / 48),
        "baseline_top_prob": pytest.approx(84 / 135),
        "max_lift": pytest.approx((3 / 48) / (3 / 135)),
    }
    assert type(found["argmax_index"]) is int
    assert type(found["max_shift"]) is float


def test_the_baselines_share_is_that_of_the_cells_top_value():
    found = gd.posterior_shift([60, 40], [10, 90])
    assert (found["cell_top_prob"], found["baseline_top_prob"]) == (0.6, 0.1)


def test_the_largest_shift_may_be_a_fall():
    found = gd.posterior_shift([5, 5, 0], [3, 3, 4])
    assert found["argmax_index"] == 2
    assert found["max_shift"] == pytest.approx(0.4)
    assert found["max_lift"] == pytest.approx(5 / 3)


def test_what_the_baseline_rules_out_and_what_has_no_mass():
    assert gd.posterior_shift([1, 1], [1, 0])["max_lift"] == math.inf
    nothing = gd.posterior_shift([0, 0], [1, 1])
    assert nothing.pop("argmax_index") == -1
    assert all(math.isnan(x) for x in nothing.values())
    with pytest.raises(gd.UsageError, match="counts of one cell"):
        gd.posterior_shift([], [])
    with pytest.raises(gd.UsageError, match="counts of one cell"):
        gd.posterior_shift([[1, 2]], [1, 2])


# --- remedy -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("l_eff", "t_dist", "expected"),
    [
        (3.86, 0.21, "publish"),
        (2.9999999999999996, 0.30000000000000004, "publish"),
        (3.86, 0.31, "coarsen_attribute"),
        (2.97, 0.1, "coarsen_attribute"),
        (1.8, 0.1, "coarsen_attribute"),
        (1.7999999999999998, 0.1, "coarsen_attribute"),
        (1.79, 0.1, "merge_or_suppress"),
        (1.0, 0.0, "merge_or_suppress"),
        (math.nan, 0.1, "merge_or_suppress"),
        (3.5, math.nan, "coarsen_attribute"),
    ],
)
def test_the_triage(l_eff, t_dist, expected):
    assert gd.remedy("c", l_eff, t_dist, l_min=3, t_max=0.3) == expected


# --- enforce_l_diversity ------------------------------------------------------------------------------------


def test_three_cells_without_a_map():
    found = gd.enforce_l_diversity(visits_of(CELLS), 3)
    assert list(found.columns) == COLUMNS
    assert found["cell_id"].tolist() == ["c-41", "c-58", "c-72"]
    assert found["distinct_categories"].tolist() == [1, 4, 4]
    assert found["effective_fine"].tolist() == [1.0, 1.77, 3.86]
    assert found["effective_coarse"].isna().all()
    assert found["persons"].tolist() == [34, 48, 53]
    assert found["remedy"].tolist() == ["merge_or_suppress", "merge_or_suppress", "publish"]


def test_c58_under_two_taxonomies():
    visits = visits_of(CELLS)
    health, appointment = (
        gd.enforce_l_diversity(visits, 2.8, coarse_map=m).set_index("cell_id") for m in (HEALTH, APPOINTMENT)
    )
    assert health.loc["c-58", ["effective_coarse", "remedy"]].tolist() == [1.67, "merge_or_suppress"]
    assert appointment.loc["c-58", ["effective_coarse", "remedy"]].tolist() == [2.88, "publish_coarsened"]
    assert math.isnan(appointment.loc["c-72", "effective_coarse"])
    assert gd.enforce_l_diversity(visits, 3, coarse_map=APPOINTMENT)["remedy"].tolist() == [
        *("merge_or_suppress", "merge_or_suppress", "publish")
    ]


def test_a_cell_alone_is_not_rescued_by_its_own_labels():
    found = gd.enforce_l_diversity(
        visits_of({"c": {"clinic": 41, "pharmacy": 3, "retail": 2, "cafe": 2}}), 3, HEALTH
    )
    assert found[["effective_fine", "effective_coarse", "remedy"]].values.tolist() == [
        [1.77, 1.77, "merge_or_suppress"]
    ]


def test_a_single_coarse_label_says_nothing_and_rescues_nobody():
    everything = dict.fromkeys(HEALTH, "all")
    found = gd.enforce_l_diversity(visits_of(CELLS), 2, everything).set_index("cell_id")
    assert found.loc["c-41", "effective_coarse"] > 2
    assert found.loc["c-41", "remedy"] == "merge_or_suppress"


def test_persons_are_counted_once_and_recounted_under_the_map():
    both = [("x", c, f"p{i}") for i in range(10) for c in ("clinic", "pharmacy")]
    retail = [("x", "retail", f"r{i}") for i in range(10)]
    found = gd.enforce_l_diversity(
        frame_of(*both, *both, *retail), 3.5, {"clinic": "health", "pharmacy": "health"}
    )
    assert found["persons"].item() == 20
    assert found["distinct_categories"].item() == 3
    assert found["effective_fine"].item() == 3.0
    # labels 10 and 10; q(clinic | health) = 1/2: belief (.25, .25, .5)
    assert (
        found["effective_coarse"].item() == round(math.exp(0.5 * math.log(2) + 0.5 * math.log(4)), 2) == 2.83
    )
    shop = [("s", "shop", i) for i in range(15)] + [("s", "transit", i) for i in range(5)]
    assert (
        gd.enforce_l_diversity(frame_of(*shop, *(("s", "food", i) for i in range(4))), 2)["persons"].item()
        == 15
    )


def test_verdicts_fall_before_rounding():
    found = gd.enforce_l_diversity(
        visits_of({"even": {"a": 1, "b": 1, "c": 1}, "near": {"a": 335, "b": 333, "c": 332}}), 3
    )
    assert found["effective_fine"].tolist() == [3.0, 3.0]
    assert dict(zip(found["cell_id"], found["remedy"], strict=True)) == {
        "even": "publish",
        "near": "merge_or_suppress",
    }


@pytest.mark.parametrize(
    "nothing",
    [None, float("nan"), np.nan, pd.NA],
    ids=repr,
)
@pytest.mark.parametrize("dtype", [object, "string", "category"])
def test_missing_categories_are_a_category(nothing, dtype):
    visits = frame_of(*(("x", "clinic", i) for i in range(6)), *(("x", nothing, i) for i in range(6, 11)))
    visits["poi_category"] = visits["poi_category"].astype(dtype)
    for coarse_map in (None, {"clinic": "health"}, {"clinic": "health", None: "health"}):
        found = gd.enforce_l_diversity(visits, 1.9, coarse_map)
        assert found[["distinct_categories", "effective_fine", "persons", "remedy"]].values.tolist() == [
            [2, 1.99, 11, "publish"]
        ]
    table = gd.cell_attribute_table(visits.rename(columns={"poi_category": "sensitive"}))
    assert dict(zip(table["sensitive"], table["n"], strict=True)) == {"(missing)": 5, "clinic": 6}


def test_recoding_a_small_category_to_nothing_publishes_nothing():
    visits = visits_of({"x": {"clinic": 20, "gp": 2}, "y": {"clinic": 10, "gp": 10, "cafe": 10}})
    for label in (None, float("nan"), ""):
        found = gd.enforce_l_diversity(visits, 2, {"gp": label}).set_index("cell_id")
        assert found.loc["x", "remedy"] == "merge_or_suppress"


def test_categories_outside_the_map_keep_themselves():
    visits = visits_of({"x": {"a": 9, "b": 1, "c": 10}, "y": {"a": 1, "b": 9, "c": 10}})
    some = gd.enforce_l_diversity(visits, 2.8, {"a": "ab", "b": "ab"})
    all_of_them = gd.enforce_l_diversity(visits, 2.8, {"a": "ab", "b": "ab", "c": "c"})
    pd.testing.assert_frame_equal(some, all_of_them)
    # labels 10 and 10, q(a | ab) = 1/2
    assert some["effective_coarse"].tolist() == [2.83, 2.83]
    assert some["remedy"].tolist() == ["publish_coarsened"] * 2


def test_rows_without_a_person_or_a_cell_are_not_counted():
    visits = frame_of(
        *[
            ("x", "a", "p1"),
            ("x", "b", None),
            ("x", "b", " "),
            (None, "b", "p2"),
            ("", "b", "p2"),
            ("x", "a", np.nan),
        ]
    )
    found = gd.enforce_l_diversity(visits, 1)
    assert found[["cell_id", "distinct_categories", "persons"]].values.tolist() == [["x", 1, 1]]


def test_no_visits():
    for visits in (visits_of(CELLS).iloc[:0], frame_of((None, "a", 1))):
        found = gd.enforce_l_diversity(visits, 3, HEALTH)
        assert list(found.columns) == COLUMNS
        assert (
            len(found)
            == len(gd.cell_attribute_table(visits.rename(columns={"poi_category": "sensitive"})))
            == 0
        )


def test_the_callers_frame_is_not_written_to():
    visits = visits_of(CELLS).set_index(pd.Index(range(135))[::-1])
    before = visits.copy(deep=True)
    gd.enforce_l_diversity(visits, 3, HEALTH)
    gd.cell_attribute_table(visits.rename(columns={"poi_category": "sensitive"}))
    pd.testing.assert_frame_equal(visits, before)


def test_columns_of_other_names():
    visits = visits_of(CELLS).rename(columns={"cell_id": "h3", "poi_category": "kind", "person_id": "who"})
    found = gd.enforce_l_diversity(visits, 3, cell_col="h3", cat_col="kind", person_col="who")
    assert found["h3"].tolist() == ["c-41", "c-58", "c-72"]
    with pytest.raises(gd.SourceError, match=r"expected a column 'person_idd'.*Did you mean 'person_id'"):
        gd.enforce_l_diversity(visits_of(CELLS), 3, person_col="person_idd")


@pytest.mark.parametrize("l_min", [0, 0.5, -1, math.nan, "3"])
def test_an_l_min_that_is_none(l_min):
    with pytest.raises(gd.PolicyError, match="l_min"):
        gd.enforce_l_diversity(visits_of(CELLS), l_min)


visit_rows = st.lists(
    st.tuples(st.sampled_from("xyz"), st.sampled_from(["a", "b", "c", "d", None]), st.integers(0, 6)),
    min_size=1,
    max_size=40,
)
maps = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["u", "v", "a"]), min_size=1)


def by_plain_loops(rows: list[tuple], l_min: float, coarse: dict[str, str]) -> dict[str, tuple]:
    """Fine and coarse effective counts of each cell, by sets and sums."""
    rows = [(cell, v or "(missing)", who) for cell, v, who in rows]
    label = {v: coarse.get(v, v) for v in {v for _, v, _ in rows} | set(coarse)}
    pooled = {v: len({(c, w) for c, x, w in rows if x == v}) for v in label}
    several = len(set(label.values()) - {"(missing)"}) > 1
    out = {}
    for cell in {c for c, _, _ in rows}:
        here = [(v, w) for c, v, w in rows if c == cell]
        n = {v: len({w for x, w in here if x == v}) for v in {v for v, _ in here}}
        m = {c: len({w for v, w in here if label[v] == c}) for c in {label[v] for v in n}}
        belief = [
            m[label[v]]
            / sum(m.values())
            * pooled[v]
            / sum(k for x, k in pooled.items() if label[x] == label[v])
            for v in label
            if label[v] in m
        ]
        fine, seen = effective([k / sum(n.values()) for k in n.values()]), effective(belief)
        verdict = "publish" if fine >= l_min - 1e-9 * l_min else "merge_or_suppress"
        if verdict != "publish" and several and seen >= l_min - 1e-9 * l_min:
            verdict = "publish_coarsened"
        out[cell] = (
            len(n),
            fine,
            math.nan if verdict == "publish" else seen,
            len({w for _, w in here}),
            verdict,
        )
    return out


def effective(p: list[float]) -> float:
    """exp(H) by its definition."""
    return math.exp(-sum(x * math.log(x) for x in p if x > 0))


@given(visit_rows, maps, st.sampled_from([1, 1.5, 2, 3]))
def test_the_same_verdicts_as_plain_loops(rows, coarse, l_min):
    found = gd.enforce_l_diversity(frame_of(*rows), l_min, coarse)
    expected = by_plain_loops(rows, l_min, coarse)
    assert set(found["cell_id"]) == set(expected)
    assert found["effective_fine"].is_monotonic_increasing
    for cell, distinct, fine, seen, persons, verdict in found.itertuples(index=False):
        assert (distinct, persons, verdict) == (expected[cell][0], expected[cell][3], expected[cell][4])
        assert (fine, seen) == pytest.approx((expected[cell][1], expected[cell][2]), abs=0.00501, nan_ok=True)


@given(visit_rows, st.randoms(use_true_random=False))
def test_row_order_repeats_and_names_change_nothing(rows, random):
    other = [(cell, value, f"person {who}") for cell, value, who in rows + rows[:3]]
    random.shuffle(other)
    one, two = (gd.enforce_l_diversity(frame_of(*r), 2, {"a": "u", "b": "u"}) for r in (rows, other))
    pd.testing.assert_frame_equal(one, two)
