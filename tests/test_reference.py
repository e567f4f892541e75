"""What a zone is judged against: pooled, fixed before remedies, its own cells left out, its scope named."""

from __future__ import annotations

from typing import Any

import h3
import numpy as np
import pandas as pd
import pytest
from crowds import CENTRE, FAR, RING, score, tabulate, visits
from libpysal.graph import Graph
from libpysal.weights import W

import geodiv as gd
from geodiv.reference import References, Rings, weights_matrix


def scores(counts: dict[str, dict[str, int]], reference: Any, **gates: Any) -> pd.DataFrame:
    return score(counts, reference=reference, **gates)


def test_q_is_pooled_over_cells_and_not_over_persons() -> None:
    """Ten cells alike, the same ten persons at `a` in all, one other at `b` in each: all at distance 0."""
    rows = [(f"c{i}", f"p{j}", "a") for i in range(10) for j in range(10)]
    rows += [(f"c{i}", f"other {i}", "b") for i in range(10)]
    table = tabulate(pd.DataFrame(rows, columns=["cell", "person", "activity"]))
    found = gd.score(table, gd.Policy(k_min=10, t_max=0.1))
    assert found["distance"].to_numpy() == pytest.approx(0.0, abs=1e-12)
    release = gd.enforce(table, gd.Policy(k_min=10, t_max=0.1)).release
    assert release.reference["share"].tolist() == [round(10 / 11, 3), round(1 / 11, 3)]
    assert (found["reference_persons"] == 110).all()


def test_every_level_pools_its_own_counts() -> None:
    """Ten persons did both clinic and pharmacy and ten others retail: health 10, retail 10, not 20 and 10."""
    rows = [("c", f"p{i}", v) for i in range(10) for v in ("clinic", "pharmacy")]
    rows += [("c", f"q{i}", "retail") for i in range(10)]
    taxonomy = gd.Taxonomy([("clinic", "health"), ("pharmacy", "health"), ("retail", "retail")])
    table = tabulate(
        pd.DataFrame(rows, columns=["cell", "person", "activity"]), gd.Nominal("activity", taxonomy)
    )
    overall = References.of(table, gd.Policy(k_min=2)).overall[0]
    assert [mix.tolist() for mix in overall] == [[10, 10, 10], [10, 10]]


def test_other_labels_are_pooled_again() -> None:
    """The pharmacy goes to the shops: health 10 and retail 20, and nothing of the first grouping is left."""
    rows = [("c", f"p{i}", v) for i in range(10) for v in ("clinic", "pharmacy")]
    rows += [("c", f"q{i}", "retail") for i in range(10)] + [("d", "r", "clinic")]
    frame = pd.DataFrame(rows, columns=["cell", "person", "activity"])
    first, second = (
        tabulate(
            frame,
            gd.Nominal("activity", gd.Taxonomy.of({"clinic": "health", "pharmacy": to, "retail": "shop"})),
        )
        for to in ("health", "shop")
    )
    table = first.relabelled(second.spaces)
    found = References.of(first, gd.Policy(k_min=2)).relabelled(table)
    assert found.table is table
    assert [mix.tolist() for mix in found.overall[0]] == [[10, 10, 10], [10, 20]]
    assert found.of_units[0][1].toarray().tolist() == [[10, 20], [1, 0]]


def test_what_is_too_large_to_write_out_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {cell: {"a": i + 1, "b": 7 - i} for i, cell in enumerate([CENTRE, *RING])}
    policy = gd.Policy(k_min=2, t_max=0.3, reference=gd.Ring(order=1, max_order=2, min_persons=20))
    written = gd.score(tabulate(counts), policy)
    monkeypatch.setattr("geodiv.reference.DENSE", 0)
    pd.testing.assert_frame_equal(gd.score(tabulate(counts), policy), written)


def test_cells_below_k_are_in_no_reference() -> None:
    found = scores({"c1": {"a": 5, "b": 5}, "c2": {"b": 1}, "c3": {"a": 10}}, gd.Global(), k_min=2)
    assert found.loc["c1", "reference_persons"] == 20
    assert found.loc["c1", "distance"] == pytest.approx(0.25)
    assert pd.isna(found.loc["c2", "reference_persons"])


def test_a_ring_leaves_its_own_cell_out() -> None:
    found = scores({CENTRE: {"a": 9, "b": 1}, RING[0]: {"a": 1, "b": 9}}, gd.Ring(order=1))
    assert found["distance"].tolist() == pytest.approx([0.8, 0.8])
    assert found["distance_global"].tolist() == pytest.approx([0.4, 0.4])
    assert found["reference_scope"].tolist() == ["ring:1"] * 2


def test_a_homogeneous_district_is_at_distance_0_and_still_not_diverse() -> None:
    counts = {cell: {"a": 10} for cell in [CENTRE, *RING]} | {FAR: {"b": 70}}
    found = scores(counts, gd.Ring(order=1)).loc[CENTRE]
    assert (found["distance"], found["effective_fine"]) == (0, 1)
    assert found["distance_global"] == pytest.approx(0.5)


def test_a_ring_widens_until_it_holds_enough_persons() -> None:
    second = h3.grid_ring(CENTRE, 2)[0]
    third = h3.grid_ring(CENTRE, 3)[0]
    counts = {CENTRE: {"a": 4}, RING[0]: {"a": 4}, second: {"b": 4}, third: {"c": 4}}

    def at(**ring: Any) -> tuple[str, int]:
        row = scores(counts, gd.Ring(**ring)).loc[CENTRE]
        return row["reference_scope"], row["reference_persons"]

    assert at(order=1, max_order=3) == ("ring:1", 4)
    assert at(order=1, max_order=3, min_persons=5) == ("ring:2", 8)
    assert at(order=1, max_order=3, min_persons=9) == ("ring:3", 12)
    assert at(order=2) == ("ring:2", 8)
    assert at(order=1, max_order=3, min_persons=13) == ("global", 16)
    assert at(order=1, max_order=3, min_persons=13, fallback="none") == ("none", 0)
    assert at(order=1, min_persons=5) == ("global", 16)


def test_ring_persons_count_once_per_cell() -> None:
    counts = {cell: {"a": 5} for cell in (CENTRE, RING[0], RING[1])}
    table = tabulate(visits(counts, shared=True))
    found = gd.score(table, gd.Policy(k_min=2, reference=gd.Ring(1, min_persons=10))).set_index("cell_id")
    assert found.loc[CENTRE, "reference_persons"] == 10
    assert found.loc[CENTRE, "reference_scope"] == "ring:1"


def test_an_isolated_cell_has_a_row_and_never_passes_by_distance_0() -> None:
    counts = {CENTRE: {"a": 8, "b": 2}, RING[0]: {"a": 2, "b": 8}, FAR: {"a": 10}}
    steps = min(h3.grid_distance(FAR, cell) for cell in (CENTRE, RING[0]))
    for ring, scope in [
        (gd.Ring(1, max_order=15), f"ring:{steps}"),
        (gd.Ring(1), "global"),
        (gd.Ring(1, fallback="none"), "none"),
    ]:
        found = scores(counts, ring, t_max=0.3)
        assert len(found) == 3
        assert found.loc[FAR, "reference_scope"] == scope
        assert found.loc[FAR, "distance"] != 0
        assert found.loc[FAR, "fails"] == ("no_reference" if scope == "none" else "t_max")


def test_without_a_reference_three_measures_are_unknown_and_their_gates_fail_as_one() -> None:
    found = scores(
        {FAR: {"a": 5, "b": 5}, CENTRE: {"b": 10}},
        gd.Ring(1, fallback="none"),
        t_max=1.0, shift_max=1.0, lift_max=99.0, l_min=2.0,
    )  # fmt: skip
    assert found[["distance", "shift", "lift", "noise_floor"]].isna().all(axis=None)
    assert found.loc[FAR, "fails"] == "no_reference"
    assert found.loc[CENTRE, "fails"] == "l_min,no_reference"
    assert found.loc[FAR, "distance_global"] == pytest.approx(0.25)
    assert (found["reference_persons"] == 0).all()


def test_without_a_reference_gates_that_are_off_do_not_fail() -> None:
    found = scores({FAR: {"a": 5, "b": 5}, CENTRE: {"b": 10}}, gd.Ring(1, fallback="none"), share_max=1.0)
    assert (found["fails"] == "").all()


def test_belief_without_a_reference_uses_the_global_mix() -> None:
    rows = visits({FAR: {"a": 5, "b": 5}, CENTRE: {"a": 2, "c": 6}})
    taxonomy = gd.Taxonomy([("a", "x"), ("b", "x"), ("c", "y")])
    policy = gd.Policy(k_min=2, l_min=3.0, reference=gd.Ring(1, fallback="none"))
    found = gd.score(tabulate(rows, gd.Nominal("activity", taxonomy)), policy).set_index("cell_id")
    belief = np.array([0.25 * 7 / 12, 0.25 * 5 / 12, 0.75])
    assert found.loc[CENTRE, "effective_coarse"] == pytest.approx(np.exp(-(belief @ np.log(belief))))


def test_no_eligible_cell_at_all_is_no_reference() -> None:
    """A zone may gather enough persons where no cell has them; there is nothing to judge it against."""
    table = tabulate(visits({CENTRE: {"a": 3, "b": 2}, RING[0]: {"a": 2, "b": 3}}))
    outcome = gd.enforce(table, gd.Policy(k_min=8, l_min=2))
    assert outcome.release.cells["activity_reference"].tolist() == ["none"]
    assert outcome.final_scores["reference_persons"].tolist() == [0]
    assert outcome.release.metadata["reference"] == {"none": 1}
    assert len(gd.enforce(table, gd.Policy(k_min=8, t_max=1.0)).release.cells) == 0


def test_against_says_whether_there_is_a_reference_and_whether_it_is_a_local_one() -> None:
    counts = {CENTRE: {"a": 4}, RING[0]: {"a": 4}, FAR: {"b": 4}}
    ring = tabulate(counts)
    for fallback, known in (("none", False), ("global", True)):
        policy = gd.Policy(k_min=2, reference=gd.Ring(1, fallback=fallback))
        against = References.of(ring, policy).of_zones(ring.start().members())
        lone = (ring.cells == FAR).tolist()
        assert against.local.tolist() == [not far for far in lone]
        assert against.known.tolist() == [known or not far for far in lone]


def test_rings_of_any_order_are_those_of_the_grid_however_they_are_asked() -> None:
    """Asked for some cells, then for others and some of the same again, in another order."""
    cells = sorted({*h3.grid_disk(CENTRE, 3), FAR})
    table = tabulate({cell: {"a": 2 + (i % 3)} for i, cell in enumerate(cells)})
    eligible = table.persons >= 3
    rings = Rings(table, eligible)
    for order, asked in ((2, [3, 0, 7]), (2, [7, 20, 3, 0, 11]), (1, [5, 4]), (3, [9, 0]), (2, [37, 1, 36])):
        found = rings.of(np.array(asked), order).todense()
        for row, cell in zip(found, table.cells[asked], strict=True):
            near = set(h3.grid_disk(cell, order)) - {cell}
            assert set(table.cells[np.flatnonzero(row)]) == near & set(table.cells[eligible])
            assert set(np.unique(row)) <= {0, 1}


# --- regions --------------------------------------------------------------------------------------------------


def test_a_region_holds_the_cells_of_the_same_region_the_own_one_too() -> None:
    counts = {"c1": {"a": 9, "b": 1}, "c2": {"a": 1, "b": 9}, "c3": {"b": 10}, "c4": {"a": 10}}
    found = scores(counts, gd.Region({"c1": "n", "c2": "n", "c3": "s"}, fallback="none"))
    assert found["reference_scope"].tolist() == ["region", "region", "region", "none"]
    assert found["distance"].tolist()[:3] == pytest.approx([0.4, 0.4, 0])
    assert found["reference_persons"].tolist() == [20, 20, 10, 0]


def test_a_small_region_falls_back_without_widening() -> None:
    counts = {"c1": {"a": 9, "b": 1}, "c2": {"a": 1, "b": 9}, "c3": {"b": 10}}
    found = scores(counts, gd.Region({"c1": "n", "c2": "n", "c3": "s"}, min_persons=11))
    assert found["reference_scope"].tolist() == ["region", "region", "global"]


def test_regions_that_name_no_cell_are_an_error() -> None:
    with pytest.raises(gd.PolicyError, match="regions: expected the ids"):
        scores({"c1": {"a": 5}}, gd.Region({"x1": "n"}))


def test_one_region_may_hold_all_cells() -> None:
    found = scores({"c1": {"a": 9, "b": 1}, "c2": {"a": 1, "b": 9}}, gd.Region({"c1": "n", "c2": "n"}))
    assert found["reference_scope"].tolist() == ["region", "region"]
    assert found["distance"].tolist() == pytest.approx([0.4, 0.4])


def test_a_merged_zone_takes_the_regions_of_all_its_members() -> None:
    table = tabulate(visits({"c1": {"a": 4}, "c2": {"b": 4}, "c3": {"c": 4}, "c4": {"d": 4}}))
    rule = gd.Region({"c1": "n", "c2": "s", "c3": "s"})
    references = References.of(table, gd.Policy(k_min=2, reference=rule))
    plan = table.start().merge(np.array([[1, 1, 0, 0]]))
    against = references.of_zones(plan.members())
    assert against.persons.tolist() == [12, 8, 16]
    assert against.scope.tolist() == ["region", "region", "global"]


# --- weights --------------------------------------------------------------------------------------------------

PAIRS = [("c1", "c2", 1.0), ("c1", "c3", 3.0), ("c2", "c1", 1.0), ("c2", "c3", 2.0), ("c3", "c3", 5.0)]


def graph() -> Graph:
    focal, neighbour, weight = zip(*PAIRS, strict=True)
    return Graph.from_arrays(np.array(focal), np.array(neighbour), np.array(weight))


def w() -> W:
    near = {"c1": ["c2", "c3"], "c2": ["c1", "c3"], "c3": ["c3"]}
    return W(near, {"c1": [1.0, 3.0], "c2": [1.0, 2.0], "c3": [5.0]}, silence_warnings=True)


@pytest.mark.parametrize("given", [graph, w])
def test_weights_of_libpysal_sum_up_neighbours(given: Any) -> None:
    counts = {"c1": {"a": 4}, "c2": {"b": 4}, "c3": {"a": 2, "b": 2}, "c4": {"b": 9}}
    found = scores(counts, gd.Weights(given(), fallback="none"))
    assert found["reference_scope"].tolist() == ["weights", "weights", "none", "none"]
    # c1: 1 (0, 4) + 3 (2, 2) = (6, 10);  c2: 1 (4, 0) + 2 (2, 2) = (8, 4)
    assert found["distance"].tolist()[:2] == pytest.approx([10 / 16, 8 / 12])
    assert found["reference_persons"].tolist() == [8, 8, 0, 0]


def test_a_merged_zone_takes_the_largest_weight_of_its_members() -> None:
    table = tabulate(visits({"c1": {"a": 4}, "c2": {"b": 4}, "c3": {"a": 2, "b": 2}}))
    references = References.of(table, gd.Policy(k_min=2, reference=gd.Weights(graph())))
    against = references.of_zones(table.start().merge(np.array([[1, 1, 0]])).members())
    assert against.weights[[0]].todense().tolist() == [[0, 0, 3]]


@pytest.mark.parametrize("form", ["graph", "w"])
def test_cells_of_the_graph_that_nobody_visited_and_others_than_its_own_weigh_nothing(form: str) -> None:
    """x1 and x2 are not visited; c4 is not in the graph. c2: the four of c1 alone; c1: c2 once and c3 three times."""
    pairs = [
        *PAIRS,
        ("x1", "c2", 9.0),
        ("c2", "x1", 9.0),
        ("c1", "x2", 9.0),
        ("x1", "x2", 9.0),
        ("c1", "c1", 9.0),
    ]
    pairs = [(f, n, 0.0 if (f, n) == ("c2", "c3") else x) for f, n, x in pairs]
    if form == "graph":
        given: Any = Graph.from_arrays(*(np.array(column) for column in zip(*pairs, strict=True)))
    else:
        focal = sorted({f for f, _, _ in pairs})
        near = {f: [n for g, n, _ in pairs if g == f] for f in focal}
        given = W(near, {f: [x for g, _, x in pairs if g == f] for f in focal}, silence_warnings=True)
    table = tabulate({"c1": {"a": 4}, "c2": {"b": 4}, "c3": {"a": 2, "b": 2}, "c4": {"b": 9}})
    assert weights_matrix(table, given).todense().tolist() == [[0, 1, 3, 0], [1, 0, 0, 0], [0] * 4, [0] * 4]
    references = References.of(table, gd.Policy(k_min=2, reference=gd.Weights(given, fallback="none")))
    against = references.of_zones(table.start().members())
    assert against.scope.tolist() == ["weights", "weights", "none", "none"]
    assert against.persons.tolist() == [8, 4, 0, 0]


def test_weights_of_zero_are_no_reference() -> None:
    nothing = W({"c1": ["c2"], "c2": ["c1"]}, {"c1": [0.0], "c2": [0.0]}, silence_warnings=True)
    found = scores({"c1": {"a": 4}, "c2": {"b": 4}}, gd.Weights(nothing))
    assert found["reference_scope"].tolist() == ["global", "global"]


def test_of_no_zones_there_is_no_reference() -> None:
    table = tabulate({"c1": {"a": 4}, "c2": {"b": 4}})
    for rule in (gd.Global(), gd.Ring(), gd.Region({"c1": "n"}), gd.Weights(graph())):
        against = References.of(table, gd.Policy(k_min=2, reference=rule)).of_zones(
            table.start().members()[:0]
        )
        assert (len(against.scope), len(against.persons), against.weights.shape[0]) == (0, 0, 0)


def test_a_weight_without_end_is_an_error() -> None:
    for weight in (np.inf, np.nan):
        bad = W({"c1": ["c2"], "c2": ["c1"]}, {"c1": [1.0], "c2": [weight]}, silence_warnings=True)
        with pytest.raises(gd.PolicyError, match="finite weights"):
            scores({"c1": {"a": 4}, "c2": {"b": 4}}, gd.Weights(bad))


def test_a_negative_weight_is_an_error() -> None:
    bad = Graph.from_arrays(np.array(["c1", "c2"]), np.array(["c2", "c1"]), np.array([1.0, -1.0]))
    with pytest.raises(gd.PolicyError, match="finite weights"):
        scores({"c1": {"a": 4}, "c2": {"b": 4}}, gd.Weights(bad))


def test_a_graph_over_other_ids_is_an_error() -> None:
    with pytest.raises(gd.PolicyError, match="found none of them"):
        scores({"x1": {"a": 4}, "x2": {"b": 4}}, gd.Weights(graph()))
    half = Graph.from_arrays(np.array(["c1", "x1"]), np.array(["x1", "c1"]), np.array([1.0, 1.0]))
    with pytest.raises(gd.PolicyError, match="found none of them"):
        scores({"c1": {"a": 4}, "c2": {"b": 4}}, gd.Weights(half))
