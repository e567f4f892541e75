"""The oracle against the worked examples of the definitions, so that it can judge the library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import count, product
from typing import Any

import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import MISSING, Declared, Remedies, Table, Zone
from scipy import optimize, stats
from strategies import World, worlds

C58 = {"clinic": 41, "pharmacy": 3, "retail": 2, "cafe": 2}
CITY = {
    "c-41": {"clinic": 34},
    "c-58": C58,
    "c-72": {"retail": 18, "cafe": 15, "gym": 11, "clinic": 9},
}
HEALTH = tuple(
    (v, c)
    for c, vs in {"health": "clinic pharmacy", "everyday": "retail cafe gym"}.items()
    for v in vs.split()
)
APPOINTMENT = tuple(
    (v, c)
    for c, vs in {"appointment": "clinic retail gym", "food": "cafe pharmacy"}.items()
    for v in vs.split()
)
APART: dict[int, dict[str, set[str]]] = {1: {}, 2: {}, 3: {}}


def one_value_each(cells: Mapping[str, Mapping[str, int]], column: str = "poi") -> list[oracles.Visit]:
    """Visits of persons who each have one value in one cell."""
    person = count()
    return [
        (c, next(person), {column: v}) for c, ns in cells.items() for v, n in ns.items() for _ in range(n)
    ]


def line(cells: Sequence[str]) -> dict[int, dict[str, set[str]]]:
    """Neighbours of cells in a row."""
    return {
        r: {a: {b for j, b in enumerate(cells) if 0 < abs(i - j) <= r} for i, a in enumerate(cells)}
        for r in (1, 2, 3)
    }


def table(
    cells: Mapping[str, Mapping[str, int]],
    near: Mapping[int, Mapping[str, set[str]]] = APART,
    taxonomy: Any = (),
    **policy: Any,
) -> Table:
    return oracles.tabulate(one_value_each(cells), near, [Declared("poi", taxonomy=taxonomy)], policy)


def score_of(t: Table, cell: str) -> dict[str, Any]:
    return next(row for row in oracles.scores(t) if row["cell_id"] == cell)


# --- 1: counting --------------------------------------------------------------------------------------------


def test_a_coarse_value_is_counted_again() -> None:
    visits: list[oracles.Visit] = [("c", i, {"poi": v}) for i in range(10) for v in ("clinic", "pharmacy")]
    visits += [("c", i, {"poi": "retail"}) for i in range(10, 20)]
    taxonomy = (("clinic", "health"), ("pharmacy", "health"), ("retail", "retail"))
    t = oracles.tabulate(visits, APART, [Declared("poi", taxonomy=taxonomy)], {})
    n = t.counts(["c"], 0, 1)
    assert n == {"health": 10, "retail": 10}
    assert oracles.effective(oracles.shares(n)) == pytest.approx(2)
    assert oracles.effective(oracles.shares({"health": 20, "retail": 10})) == pytest.approx(1.89, abs=5e-4)


def test_a_merged_zone_is_counted_again() -> None:
    visits: list[oracles.Visit] = [(z, f"a{z}{i}", {"poi": "A"}) for z in "xy" for i in range(10)]
    visits += [(z, f"b{i}", {"poi": "B"}) for z in "xy" for i in range(10)]
    t = oracles.tabulate(visits, line("xy"), [Declared("poi")], {})
    assert [oracles.effective(oracles.shares(t.counts(z, 0, 0))) for z in ("x", "y")] == [
        pytest.approx(2)
    ] * 2
    assert t.counts("xy", 0, 0) == {"A": 20, "B": 10}
    assert oracles.effective(oracles.shares(t.counts("xy", 0, 0))) == pytest.approx(1.890, abs=5e-4)


def test_repeats_change_nothing_and_missing_is_a_value() -> None:
    visits: list[oracles.Visit] = [("c", i, {"poi": "clinic" if i < 6 else None}) for i in range(11)]
    markers = [("c", i, {"poi": "clinic" if i < 6 else -999.0}) for i in range(11)]
    for rows in (visits, visits * 2, markers):
        t = oracles.tabulate(rows, APART, [Declared("poi", missing=("-999",))], {})
        assert t.labels[0].levels[0] == ("clinic", MISSING)
        row = score_of(t, "c")
        assert (row["persons"], round(row["effective_fine"], 2), row["effective_known"]) == (11, 1.99, 1)


def test_values_are_compared_as_text() -> None:
    raw = [1.0, -999, True, "007", math.nan, None, 0.5]
    assert [oracles.text(x) for x in raw] == ["1", "-999", "true", "007", MISSING, MISSING, "0.5"]


# --- 2 and 3: effective count, recursive c, thresholds ------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "entropy", "effective", "top", "c"),
    [
        ((34,), 0, 1, 1, (math.inf, math.inf, math.inf)),
        ((41, 3, 2, 2), 0.572766, 1.773165, 0.854167, (5.857143, 10.25, 20.5)),
        ((18, 15, 11, 9), 1.351437, 3.862972, 0.339623, (0.514286, 0.9, 2)),
        ((18, 1, 1), 0.394398, 1.483490, 0.9, (9, 18, math.inf)),
    ],
)
def test_the_table_of_shares(
    counts: tuple[int, ...], entropy: float, effective: float, top: float, c: tuple[float, ...]
) -> None:
    p = oracles.shares(dict(zip("abcd", counts, strict=False)))
    assert oracles.effective(p) == pytest.approx(effective, abs=1e-6)
    assert math.log(oracles.effective(p)) == pytest.approx(entropy, abs=1e-6)
    assert float(max(p.values())) == pytest.approx(top, abs=1e-6)
    assert [oracles.recursive_c(p, c_l) for c_l in (2, 3, 4)] == pytest.approx(c, abs=1e-6)


def test_thresholds_forgive_the_last_digits_only() -> None:
    for m, n in product(range(2, 21), (1, 7, 100)):
        assert oracles.holds("l_min", oracles.effective(oracles.shares(dict.fromkeys(range(m), n))), m)  # type: ignore[arg-type]
    assert not oracles.holds("l_min", oracles.effective(oracles.shares({"a": 6, "b": 5, "c": 4})), 3)
    assert oracles.holds("t_max", 0.7 - 0.5, 0.2)
    assert not oracles.holds("c_max", 3.0, 3)
    assert not oracles.holds("t_max", math.nan, 1)


# --- 4: ground distance -------------------------------------------------------------------------------------

NINE = tuple(f"band {i}" for i in range(1, 10))


def test_bands_are_as_far_apart_as_declared() -> None:
    edges = oracles.path_edges(NINE, range(9), missing=False)
    one, half = {NINE[0]: Fraction(1)}, Fraction(1, 2)
    assert oracles.distance(edges, one, {NINE[0]: half, NINE[1]: half}) == 0.0625
    assert oracles.distance(edges, one, {NINE[0]: half, NINE[8]: half}) == 0.5


def test_noise_floor_of_twenty_over_nine_even_values() -> None:
    labels = oracles.labels_of(Declared("poi"), NINE)
    even = dict.fromkeys(NINE, Fraction(1, 9))
    assert oracles.noise_floor(labels.edges, 20, even) == pytest.approx(0.2534, abs=5e-5)


def apart(declared: Declared, values: Sequence[str], a: str, b: str) -> float:
    """The distance of two values, from the words of the definition and without a tree."""
    if a == b:
        return 0.0
    if declared.kind == "ordinal":
        at = dict(zip(declared.order, declared.positions or range(len(declared.order)), strict=True))
        low, high = min(at.values()), max(at.values())
        if MISSING in (a, b):
            other = at[b if a == MISSING else a]
            return 0.5 + (abs(other - (low + high) / 2) / (high - low) if high > low else 0)
        return abs(at[a] - at[b]) / (high - low)
    if not declared.hierarchical or MISSING in (a, b):
        return 1.0
    paths = {row[0]: row for row in declared.taxonomy}
    depth = len(declared.taxonomy[0]) - 1
    ups = [paths.get(v, (v,) * (depth + 1)) for v in (a, b)]
    every = {paths.get(v, (v,) * (depth + 1))[-1] for v in values if v != MISSING}
    height = depth + (len(every) > 1)
    met = [h for h in range(depth + 1) if ups[0][h] == ups[1][h]]
    return (met[0] if met else height) / height


def transport(cost: Mapping[tuple[str, str], float], p: oracles.Shares, q: oracles.Shares) -> float:
    """Earth Mover's Distance as a linear program."""
    values = list(p)
    flows = list(product(values, values))
    rows = [[float(a == v) for a, _ in flows] for v in values] + [
        [float(b == v) for _, b in flows] for v in values
    ]
    mass = [float(x) for x in (*p.values(), *q.values())]
    found = optimize.linprog([cost[f] for f in flows], A_eq=rows, b_eq=mass, bounds=(0, None))
    return float(found.fun)


@given(worlds(), st.data())
def test_distances_are_the_cheapest_transport(world: World, data: st.DataObject) -> None:
    t = oracles.tabulate(*world.oracle_input())
    for declared, labels in zip(t.attributes, t.labels, strict=True):
        values = labels.levels[0]
        masses = st.lists(st.integers(0, 5), min_size=len(values), max_size=len(values)).filter(any)
        p, q = (oracles.shares(dict(zip(values, data.draw(masses), strict=True))) for _ in range(2))
        cost = {(a, b): apart(declared, values, a, b) for a, b in product(values, values)}
        found = oracles.distance(labels.edges, p, q)
        assert found == pytest.approx(transport(cost, p, q), abs=1e-7)
        if declared.kind == "ordinal" and declared.positions and len(values) > 1 and MISSING not in values:
            at, span = declared.positions, declared.positions[-1] - declared.positions[0]
            moved = stats.wasserstein_distance(at, at, [*map(float, p.values())], [*map(float, q.values())])
            assert found == pytest.approx(moved / span, abs=1e-9)


# --- 5: reference -------------------------------------------------------------------------------------------


def test_identical_cells_are_at_distance_zero_of_their_pool() -> None:
    visits: list[oracles.Visit] = [(f"c{c}", p, {"poi": "a"}) for c in range(10) for p in range(10)]
    visits += [(f"c{c}", f"other {c}", {"poi": "b"}) for c in range(10)]
    t = oracles.tabulate(visits, APART, [Declared("poi")], {})
    assert t.whole(0, 0) == {"a": Fraction(10, 11), "b": Fraction(1, 11)}
    assert {row["distance"] for row in oracles.scores(t)} == {0}
    union = oracles.shares(t.counts(t.persons, 0, 0))
    assert oracles.distance(t.labels[0].edges, t.whole(0, 0), union) == pytest.approx(0.409, abs=5e-4)


def test_a_ring_leaves_the_zone_out_widens_and_falls_back() -> None:
    cells: dict[str, dict[str, int]] = {c: {"a": 10, c: 2} for c in "pqrs"} | {"t": {"a": 3}}
    near = line("pqrst")
    rule = {"scope": "ring", "order": 1, "max_order": 2, "min_persons": 13}
    t = table(cells, near, reference=rule)
    assert oracles.reference(t, frozenset("q")) == ("ring:1", {"p": 1, "r": 1})
    assert oracles.reference(t, frozenset("p")) == ("ring:2", {"q": 1, "r": 1})
    assert oracles.reference(t, frozenset("qr")) == ("ring:1", {"p": 1, "s": 1})
    assert oracles.reference(t, frozenset("pqr"))[0] == "global"
    alone = table(cells, APART, reference={**rule, "fallback": "none"}, t_max=0.5, shift_max=0.5, l_min=3)
    row = score_of(alone, "q")
    assert (row["reference_scope"], row["reference_persons"]) == ("none", 0)
    assert math.isnan(row["distance"])
    assert row["fails"] == "l_min,no_reference"


def test_weights_take_the_largest_member_weight() -> None:
    weights = {"p": {"q": 5.0, "r": 1.0, "s": 0.0}, "q": {"r": 2.0, "p": 9.0}}
    t = table({c: {"a": 10, c: 2} for c in "pqrs"}, reference={"scope": "weights", "weights": weights})
    assert oracles.reference(t, frozenset("pq")) == ("weights", {"r": 2.0})
    assert score_of(t, "p")["reference_persons"] == 24
    assert score_of(t, "s")["reference_scope"] == "global"


# --- 6 and 7: belief and gates ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("taxonomy", "label", "belief", "tv"),
    [(HEALTH, 1.3322, 1.6711, 0.2722), (APPOINTMENT, 1.3967, 2.8787, 0.0440)],
)
def test_what_a_reader_of_c58_believes(taxonomy: Any, label: float, belief: float, tv: float) -> None:
    t = table(CITY, taxonomy=taxonomy)
    mix = {v: round(float(q), 4) for v, q in t.whole(0, 0).items()}
    assert mix == {"clinic": 0.6222, "retail": 0.1481, "cafe": 0.1259, "gym": 0.0815, "pharmacy": 0.0222}
    judged = oracles.judge(t, frozenset({"c-58"}), 0, 1)
    assert oracles.effective(judged.p) == pytest.approx(label, abs=5e-5)
    assert judged.measures["l_min"] == pytest.approx(belief, abs=5e-5)
    assert judged.measures["t_max"] == pytest.approx(tv, abs=5e-5)


def test_coarsening_can_raise_an_ordered_distance() -> None:
    q = dict(zip("1234", [Fraction(n, 10) for n in (4, 1, 1, 4)], strict=True))
    p = dict(zip("1234", [Fraction(n, 10) for n in (4, 1, 3, 2)], strict=True))
    declared = Declared(
        "x", "ordinal", order=tuple("1234"), taxonomy=(*((v, "low") for v in "123"), ("4", "high"))
    )
    labels = oracles.labels_of(declared, "1234")
    inside = oracles.inside(labels, 1, q, q)
    belief = {v: (p["1"] + p["2"] + p["3"] if v < "4" else p["4"]) * inside[v] for v in "1234"}
    assert oracles.distance(labels.edges, p, q) == pytest.approx(0.0667, abs=5e-5)
    assert oracles.distance(labels.edges, belief, q) == pytest.approx(0.1667, abs=5e-5)


def test_a_class_without_local_mass_takes_the_global_mix_then_an_even_one() -> None:
    labels = oracles.labels_of(
        Declared("x", taxonomy=tuple((v, v.upper()[0]) for v in ("a1", "a2", "b1", "b2", "c1", "c2"))), ()
    )
    local = {"a1": Fraction(1, 4), "a2": Fraction(3, 4)}
    whole = {"a1": Fraction(1, 2), "b1": Fraction(1, 3), "b2": Fraction(1, 6)}
    assert oracles.inside(labels, 1, local, whole) == {
        "a1": Fraction(1, 4), "a2": Fraction(3, 4), "b1": Fraction(2, 3), "b2": Fraction(1, 3),
        "c1": Fraction(1, 2), "c2": Fraction(1, 2),
    }  # fmt: skip


def test_persons_are_counted_once_per_category() -> None:
    visits: list[oracles.Visit] = [("c", i, {"poi": "shop"}) for i in range(15)]
    visits += [("c", i, {"poi": "transit"}) for i in range(5)] + [("c", i, {"poi": "food"}) for i in range(4)]
    row = score_of(oracles.tabulate(visits, APART, [Declared("poi")], {"incidence_max": 0.8}), "c")
    assert (row["persons"], row["incidence"], row["top_value"], row["top_share"]) == (15, 1, "shop", 0.625)
    assert (row["fails"], row["remedy"]) == ("incidence_max", "merge_or_suppress")


def test_a_rise_from_nothing_is_an_infinite_lift() -> None:
    rule = {"scope": "ring"}
    t = table({"p": {"a": 10}, "q": {"a": 9, "b": 1}}, line("pq"), reference=rule, lift_max=100)
    assert (score_of(t, "q")["lift"], score_of(t, "q")["fails"]) == (math.inf, "lift_max")
    assert score_of(t, "p")["lift"] == pytest.approx(10 / 9)


# --- 8 and 9: remedies and the release ----------------------------------------------------------------------

MIXED = {"a": 6, "b": 6, "c": 6}


def run(t: Table) -> oracles.Outcome:
    return oracles.enforce(t)


def published(outcome: oracles.Outcome) -> set[tuple[str, tuple[int, ...]]]:
    return {(" ".join(sorted(z.members)), z.levels) for z in outcome.published}


def test_c58_is_not_labelled_coarsened() -> None:
    taxonomy = (("clinic", "health"), ("pharmacy", "health"), ("retail", "everyday"), ("cafe", "everyday"))
    t = table({"c-58": C58}, taxonomy=taxonomy, l_min=3)
    assert score_of(t, "c-58")["remedy"] == "merge_or_suppress"
    outcome = run(t)
    assert (outcome.published, outcome.coverage, outcome.rounds) == (frozenset(), 0, 2)


def test_two_neighbours_of_the_same_value_do_not_merge() -> None:
    outcome = run(
        table({"x": {"a": 20}, "y": {"a": 20}, "z far": MIXED}, line("xy"), l_min=2, residual=False)
    )
    assert published(outcome) == {("z far", (0,))}
    assert {row["final_remedy"] for row in outcome.scores if row["cell_id"] in "xy"} == {"suppress"}


def test_failing_zones_prefer_partners_that_are_not_publishable() -> None:
    cells = {"l": {"a": 5, "b": 5, "c": 5}, "m": {"a": 12}, "n": {"b": 4, "c": 5}}
    outcome = run(table(cells, line("lmn"), l_min=2))
    assert published(outcome) == {("l", (0,)), ("m n", (0,))}
    assert (outcome.rounds, outcome.coverage, outcome.coverage_all) == (2, 1, 1)
    assert outcome.metadata["remedies"] == {"publish": 1, "publish_coarsened": 0, "publish_merged": 1}


def test_a_zone_whose_partner_was_taken_waits() -> None:
    cells = {"p": {"a": 10}, "q": {"b": 30}, "r": {"a": 12}}
    outcome = run(table(cells, line("pqr"), l_min=1.5))
    assert (published(outcome), outcome.rounds) == ({("p q r", (0,))}, 3)
    with pytest.raises(oracles.NotConverged) as stuck:
        run(table(cells, line("pqr"), l_min=1.5, max_rounds=2))
    assert stuck.value.zones == ("r",)


def test_without_suppress_a_round_that_changes_nothing_ends_it() -> None:
    with pytest.raises(oracles.NotConverged) as stuck:
        run(table({"p": {"a": 10}}, l_min=2, ladder=("recode", "merge")))
    assert stuck.value.zones == ("p",)


def test_recoding_raises_to_the_lowest_passing_level_and_a_union_starts_again() -> None:
    t = table(CITY, line(["c-58", "c-72", "c-41"]), APPOINTMENT, l_min=2.5, t_max=0.3)
    assert score_of(t, "c-58")["remedy"] == "publish_coarsened"
    assert ("c-58", (1,)) in published(run(t))
    merged = table(CITY, line(["c-41", "c-58", "c-72"]), APPOINTMENT, l_min=3, residual=False)
    assert published(run(merged)) == {("c-41 c-58 c-72", (0,))}
    assert published(run(replace(merged, policy={**merged.policy, "max_members": 2}))) == {
        ("c-58 c-72", (0,))
    }


def test_phase_2_grows_what_was_left() -> None:
    cells = {"p": {"a": 4}, "q": {"b": 5}, "r": {"c": 3}, "s": {"a": 2}}
    t = table(cells, line("pqrs"), l_min=1.8)
    remedies = Remedies(t, oracles.levels_tried(t))
    grown = remedies.phase_2(remedies.phase_1()[0])
    assert {z.members for z in grown if remedies.passes(z)} == {frozenset("pqr")}
    outcome = run(t)
    assert (published(outcome), outcome.rounds) == ({("p q r s", (0,))}, 1)
    assert math.isnan(outcome.coverage)
    assert outcome.coverage_all == 1
    assert run(table(cells, line("pqrs"), l_min=1.8, max_members=3)).coverage_all == pytest.approx(12 / 14)
    assert run(table(cells, line("pqrs"), max_members=2)).published == frozenset()


def test_a_lone_residual_takes_the_smallest_helpful_zone_with_it() -> None:
    cells = {
        "bad": {"a": 20},
        "big": dict.fromkeys("abc", 30),
        "mid": dict.fromkeys("abc", 20),
        "poor": MIXED,
    }
    t = table(cells, l_min=2)
    assert published(run(t)) == {("big", (0,)), ("mid", (0,))}
    assert published(run(table(cells, l_min=2, residual=False))) == {
        (c, (0,)) for c in ("big", "mid", "poor")
    }
    nothing = run(table({"bad": {"a": 50}, "good": MIXED}, l_min=2))
    assert (nothing.published, nothing.cells, nothing.metadata["not_published"]) == (frozenset(), [], 2)


def test_one_level_for_all() -> None:
    t = table(CITY, taxonomy=APPOINTMENT, l_min=2.5, recode_scope="release", residual=False)
    assert oracles.levels_tried(t) == [[1]]
    assert published(run(t)) == {("c-58", (1,)), ("c-72", (1,))}


def test_partners_below_k_count_and_suppressed_ones_do_not() -> None:
    t = table({"p": {"a": 10}, "q": {"b": 9}}, line("pq"), l_min=1.9)
    remedies = Remedies(t, oracles.levels_tried(t))
    p, q = (Zone(frozenset(c), (0,)) for c in "pq")
    assert remedies.unions(p, {p, q}) == [(q, Zone(frozenset("pq"), (0,)))]
    assert remedies.unions(p, {p, Zone(q.members, (0,), suppressed=True)}) == []


def test_small_counts_are_hidden_with_a_companion() -> None:
    outcome = run(table({"p q": {"a": 20, "b": 4, "c": 2, "d": 4}, "r": {"a": 5, "b": 5}}))
    shown = {(r["cell_id"], r["value"]): (r["persons"], r["share"]) for r in outcome.counts}
    assert shown == {
        ("p q", "a"): (20, None), ("p q", "b"): (None, None),
        ("p q", "c"): (None, None), ("p q", "d"): (4, None),
        ("r", "a"): (5, 0.5), ("r", "b"): (5, 0.5),
    }  # fmt: skip
    first, second = outcome.cells
    assert (first["members"], first["poi_top"], first["poi_effective"]) == ("p%20q", "a", None)
    assert (second["poi_top"], second["poi_effective"]) == ("a", pytest.approx(2))
    assert sum(row["share"] for row in outcome.reference) == pytest.approx(1, abs=0.002)


@given(worlds())
def test_worlds_are_plain_and_what_is_published_passes(world: World) -> None:
    t = oracles.tabulate(*world.oracle_input())
    assert len(t.persons) <= 14
    try:
        outcome = oracles.enforce(t)
    except oracles.NotConverged:
        return
    assert sorted(c for z in outcome.zones for c in z.members) == sorted(t.persons)
    assert all(len(t.people(z.members)) >= t.policy["k_min"] for z in outcome.published)
    assert {row["fails"] for row in outcome.final_scores} <= {""}
