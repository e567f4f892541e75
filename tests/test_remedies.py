"""Remedies: what recode, merge and suppress do to a plan, what gathers afterwards, and what the rest must hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from crowds import CENTRE, FAR, RING, ROW, tabulate, visits
from scipy import sparse

import geodiv as gd
from geodiv.enforcement import REMEDIES
from geodiv.remedies.grow import grow
from geodiv.remedies.moves import Moves, View, exchange, publish, split
from geodiv.remedies.refine import refine
from geodiv.remedies.residual import Rest
from geodiv.remedies.situation import Situation
from geodiv.scores import Judge

A, B, C, D = ROW[:4]
"""Four cells in a row."""

LETTERS = dict(zip([*ROW[:4], FAR], "ABCDF", strict=True))
EVEN = gd.Taxonomy([("a", "x"), ("b", "x"), ("c", "y"), ("d", "y")])


def run(source: Any, *attributes: Any, **policy: Any) -> gd.Outcome:
    return gd.enforce(tabulate(source, *attributes), gd.Policy(**{"k_min": 4, "residual": False, **policy}))


def published(outcome: gd.Outcome) -> dict[str, tuple[int, ...]]:
    """Levels of each published zone, zones written by the letters of their cells."""
    cells = outcome.release.cells
    levels = cells[[c for c in cells.columns if c.endswith("_level")]].to_numpy().tolist()
    names = ["".join(sorted(LETTERS[m] for m in members.split(" "))) for members in cells["members"]]
    return {name: tuple(level) for name, level in zip(names, levels, strict=True)}


def doing(cell: str, persons: int, *values: str) -> list[tuple[str, str, str]]:
    """Each of so many persons of a cell did all of these."""
    return [(cell, f"{cell}-{i}", value) for i in range(persons) for value in values]


def frame(*rows: list[tuple[str, str, str]]) -> pd.DataFrame:
    return pd.DataFrame([row for some in rows for row in some], columns=["cell", "person", "activity"])


def test_the_ladder_names_remedies_in_their_visible_order() -> None:
    assert tuple(REMEDIES) == gd.Policy().ladder == ("recode", "merge", "suppress")


# --- recode ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("health", "zone"),
    [(("health", "health", "everyday", "everyday", "everyday"), {}),
     (("appointment", "food", "appointment", "food", "appointment"), {"A": (1,)})],
)  # fmt: skip
def test_coarser_labels_are_judged_again_and_not_trusted(health: Any, zone: Any) -> None:
    """(41, 3, 2, 2) is published as coarser only where the reader of the labels still does not know."""
    taxonomy = gd.Taxonomy(list(zip(["clinic", "pharmacy", "retail", "cafe", "gym"], health, strict=True)))
    counts = {
        A: {"clinic": 41, "pharmacy": 3, "retail": 2, "cafe": 2},
        C: {"retail": 18, "cafe": 15, "gym": 11, "clinic": 9},
        FAR: {"clinic": 34},
    }
    outcome = run(counts, gd.Nominal("activity", taxonomy), l_min=2.8)
    assert published(outcome) == {"C": (0,), **zone}


def test_each_attribute_rises_by_itself_to_its_lowest_passing_level() -> None:
    tall = gd.Taxonomy([("a", "x", "p"), ("b", "x", "p"), ("c", "y", "q"), ("d", "z", "q")])
    rows = frame(doing(A, 6, "a"), doing(C, 6, "b"), doing(FAR, 6, "c"), doing(FAR, 6, "d"))
    rows["second"] = "a"
    rows.loc[rows.index % 2 == 0, "second"] = "b"
    rows["third"] = rows["activity"]
    attributes = [
        gd.Nominal("activity", tall, gates={"l_min": 2}),
        gd.Nominal("second", tall, gates={"l_min": 2}),
        gd.Nominal("third", tall),
    ]
    outcome = run(rows, *attributes, ladder=["recode", "suppress"])
    assert published(outcome) == {"A": (1, 0, 0), "C": (1, 0, 0), "F": (0, 0, 0)}


def test_a_certain_visit_is_not_cleared_by_coarser_labels() -> None:
    rows = frame(doing(A, 8, "a"), doing(C, 8, "a", "c"), doing(FAR, 8, "b"), doing(FAR, 8, "d"))
    poi = gd.Nominal("activity", EVEN)
    assert published(run(rows, poi, incidence_max=0.8, ladder=["recode", "suppress"])) == {}


def test_an_attribute_without_a_taxonomy_skips_recoding() -> None:
    assert published(run({A: {"a": 9}, B: {"a": 4, "b": 5}}, l_min=1.9, ladder=["recode", "suppress"])) == {
        "B": (0,)
    }


def test_an_attribute_may_start_at_a_coarser_level() -> None:
    poi = gd.Nominal("activity", EVEN, level=1)
    outcome = run({A: {"a": 4, "c": 4}, FAR: {"b": 4, "d": 4}}, poi, l_min=2)
    assert published(outcome) == {"A": (1,), "F": (1,)}
    assert outcome.release.cells["remedy"].tolist() == ["publish_coarsened"] * 2


# --- merge ----------------------------------------------------------------------------------------------------


def test_neighbours_that_clear_each_other_merge() -> None:
    outcome = run({A: {"a": 6}, B: {"b": 6}}, l_min=2)
    assert published(outcome) == {"AB": (0,)}
    row = outcome.release.cells.iloc[0]
    assert (row["cell_id"], row["n_members"], row["persons"]) == (min(A, B), 2, 12)
    assert row["remedy"] == "publish_merged"


def test_a_union_is_counted_again() -> None:
    """(a 10, b 10) and (a 10, b 10) with the same b persons are (a 20, b 10) together: 1.89, not 2."""
    rows = [(cell, f"{cell}-{i}", "a") for cell in (A, B) for i in range(10)]
    rows += [(cell, f"b{i}", "b") for cell in (A, B) for i in range(10)]
    source = pd.DataFrame(rows, columns=["cell", "person", "activity"])
    assert published(run(source, k_min=25, l_min=1.9)) == {}
    outcome = run(source, k_min=25, l_min=1.85)
    assert published(outcome) == {"AB": (0,)}
    assert outcome.release.counts["persons"].tolist() == [20, 10]


def test_two_homogeneous_neighbours_of_one_value_do_not_become_a_zone() -> None:
    counts = {A: {"a": 9}, B: {"a": 9}, FAR: {"a": 5, "b": 5}}
    assert published(run(counts, l_min=1.9)) == {"F": (0,)}


def test_an_island_is_suppressed() -> None:
    counts = {A: {"a": 6}, B: {"b": 6}, FAR: {"a": 9}}
    assert published(run(counts, l_min=1.9)) == {"AB": (0,)}


def test_a_partner_that_is_not_publishable_itself_is_preferred() -> None:
    counts = {A: {"b": 2, "c": 2}, B: {"a": 6}, C: {"b": 6, "c": 1}}
    assert published(run(counts, l_min=1.95)) == {"A": (0,), "BC": (0,)}


def test_a_partner_below_k_is_not_publishable_itself() -> None:
    counts = {A: {"b": 2, "c": 2}, B: {"a": 6}, C: {"b": 3}}
    assert published(run(counts, l_min=1.7)) == {"A": (0,), "BC": (0,)}


def test_then_the_union_of_the_lowest_levels_is_preferred() -> None:
    rows = frame(doing(A, 9, "c"), doing(B, 8, "a"), doing(C, 10, "b", "c"))
    outcome = run(rows, gd.Nominal("activity", EVEN), l_min=2.5, incidence_max=0.8, max_members=2)
    assert published(outcome) == {"BC": (0,)}
    alone = run(rows[rows["cell"] != C], gd.Nominal("activity", EVEN), l_min=1.9, incidence_max=0.8)
    assert published(alone) == {"AB": (0,)}


def test_a_partner_that_fails_itself_is_preferred_at_a_coarser_level_too() -> None:
    counts = {A: {"c": 9}, B: {"a": 8}, C: {"b": 6, "c": 6, "d": 6}}
    outcome = run(counts, gd.Nominal("activity", EVEN), l_min=2.5, incidence_max=0.8)
    assert published(outcome) == {"AB": (1,), "C": (0,)}


def test_then_the_partner_with_the_fewest_persons() -> None:
    for left, right, zone in [(7, 8, "AB"), (8, 7, "BC")]:
        counts = {A: {"b": left}, B: {"a": 6}, C: {"b": right}}
        assert published(run(counts, l_min=1.9, max_members=2)) == {zone: (0,)}


def test_then_the_smallest_id() -> None:
    counts = {A: {"b": 7}, B: {"a": 6}, C: {"b": 7}}
    assert published(run(counts, l_min=1.9, max_members=2)) == {"AB" if A < C else "BC": (0,)}


def test_zones_with_the_fewest_persons_choose_first() -> None:
    counts = {A: {"a": 6}, B: {"b": 7}, C: {"a": 5}}
    assert published(run(counts, l_min=1.9, max_members=2)) == {"BC": (0,)}


def test_a_zone_whose_partner_was_taken_waits_for_the_next_round() -> None:
    counts = {A: {"a": 6}, B: {"b": 7}, C: {"c": 8}}
    outcome = run(counts, l_min=1.9)
    assert published(outcome) == {"ABC": (0,)}
    assert outcome.release.metadata["rounds"] == 3


def test_no_zone_has_more_than_max_members() -> None:
    counts = {A: {"a": 6}, B: {"b": 7}, C: {"c": 8}}
    outcome = run(counts, l_min=1.9, max_members=2)
    assert published(outcome) == {"AB": (0,)}
    assert outcome.release.metadata["rounds"] == 3
    assert published(run(counts, l_min=1.9, max_members=1)) == {}


def test_a_merged_zone_starts_again_at_the_finest_level() -> None:
    taxonomy = gd.Taxonomy([("a", "x"), ("b", "y"), ("c", "x"), ("d", "y")])
    counts = {A: {"a": 5, "b": 5}, B: {"c": 9}, FAR: {"a": 3, "b": 3, "d": 3}}
    alone = run({A: counts[A], FAR: counts[FAR]}, gd.Nominal("activity", taxonomy), l_min=2.3)
    assert published(alone)["A"] == (1,)
    both = run(counts, gd.Nominal("activity", taxonomy), l_min=2.3, incidence_max=0.8)
    assert published(both) == {"AB": (0,), "F": (0,)}


def test_a_remedy_is_pure() -> None:
    table = tabulate({A: {"a": 6}, B: {"b": 6}, C: {"b": 6}})
    judge = Judge.of(table, gd.Policy(k_min=4, l_min=2))
    plan = table.start()
    before = Situation.of(judge, judge.standing(table.base), plan)
    for remedy in REMEDIES.values():
        assert remedy(before).plan is not None
        assert before.plan is plan
        assert plan.zone.tolist() == [0, 1, 2]
        assert not plan.suppressed.any()
    assert before.failing.all()
    assert REMEDIES["merge"](before).plan.zone.tolist() in ([0, 0, 2], [0, 1, 1], [0, 1, 0])


# --- suppress, and ladders without it -------------------------------------------------------------------------


def test_a_ladder_that_ends_while_zones_fail_has_not_converged() -> None:
    with pytest.raises(gd.NotConverged, match="Add 'suppress'") as caught:
        run({A: {"a": 9}, C: {"a": 4, "b": 5}, FAR: {"b": 7}}, l_min=1.9, ladder=["recode", "merge"])
    assert set(caught.value.zones) == {A, FAR}
    assert A not in str(caught.value)


def test_an_empty_ladder_publishes_when_nothing_fails() -> None:
    assert published(run({A: {"a": 4, "b": 5}}, l_min=1.9, ladder=[])) == {"A": (0,)}
    with pytest.raises(gd.NotConverged):
        run({A: {"a": 9, "b": 1}}, l_min=1.9, ladder=[])


def test_too_few_rounds_have_not_converged() -> None:
    counts = {A: {"a": 6}, B: {"b": 7}, C: {"c": 8}}
    with pytest.raises(gd.NotConverged, match="max_rounds = 2") as caught:
        run(counts, l_min=1.9, max_rounds=2)
    assert caught.value.zones == (C,)
    assert published(run(counts, l_min=1.9, max_rounds=3)) == {"ABC": (0,)}


def test_suppressing_alone_publishes_what_passes() -> None:
    counts = {A: {"a": 6}, B: {"b": 6}, C: {"a": 5, "b": 5}}
    assert published(run(counts, l_min=1.9, ladder=["suppress"])) == {"C": (0,)}


# --- cells that gather ----------------------------------------------------------------------------------------


def gathered(counts: Any, *known: str, **policy: Any) -> set[str]:
    """Zones of k persons after gathering alone, some cells being published already."""
    table = tabulate(counts)
    judge = Judge.of(table, gd.Policy(residual=False, **policy))
    plan = grow(judge, table.start(), np.isin(table.cells, known))
    zones = [table.cells[plan.zone == zone] for zone in plan.zones]
    enough = table.recount(plan).persons >= judge.policy.k_min
    return {
        "".join(sorted(LETTERS[c] for c in zone)) for zone, held in zip(zones, enough, strict=True) if held
    }


def test_cells_below_k_gather() -> None:
    counts = {A: {"a": 3, "b": 3}, B: {"a": 3, "b": 3}, C: {"b": 4}}
    outcome = run(counts, k_min=10, l_min=1.9, max_members=2)
    assert published(outcome) == {"AB": (0,)}
    assert outcome.release.metadata["rounds"] == 1


@pytest.mark.parametrize(("known", "new"), [(A, C), (C, A)])
def test_a_gathering_zone_takes_the_cell_that_adds_most_persons(known: str, new: str) -> None:
    """Six persons that it has already add less than four others, with whom it is enough."""
    rows = [(B, f"p{i}", "ab"[i % 2]) for i in range(7)] + [(known, f"p{i}", "a") for i in range(6)]
    rows += [(new, f"q{i}", "ab"[i % 2]) for i in range(4)]
    source = pd.DataFrame(rows, columns=["cell", "person", "activity"])
    zone = "".join(sorted(LETTERS[cell] for cell in (B, new)))
    assert published(run(source, k_min=10, l_min=1.8, max_members=2)) == {zone: (0,)}


def test_gathering_stops_as_soon_as_it_passes() -> None:
    counts = {A: {"a": 4, "b": 5}, B: {"a": 2, "b": 2}, C: {"a": 2, "b": 1}}
    assert gathered(counts, k_min=10, l_min=1.9) == {"AB"}


def test_gathering_touches_no_published_zone() -> None:
    counts = {A: {"a": 5, "b": 5}, B: {"a": 1, "b": 2}}
    assert gathered(counts, A, k_min=10, l_min=1.9) == {"A"}


def test_gathering_needs_merge_on_the_ladder() -> None:
    counts = {A: {"a": 3, "b": 3}, B: {"a": 3, "b": 3}}
    assert published(run(counts, k_min=10, l_min=1.9, ladder=["recode", "suppress"])) == {}


# --- the residual ---------------------------------------------------------------------------------------------

SMALL, LARGE = {"a": 5, "b": 5}, {"a": 8, "b": 8}


def rest(l_min: float, **policy: Any) -> dict[str, tuple[int, ...]]:
    """What stays when one island of 8 persons is suppressed beside a small and a large zone."""
    return published(run({A: SMALL, C: LARGE, FAR: {"a": 8}}, l_min=l_min, residual=True, **policy))


def test_the_smallest_zone_that_makes_the_rest_safe_is_suppressed_too() -> None:
    """8 + (5, 5) has L 1.80, 8 + (8, 8) has 1.89."""
    assert rest(1.75) == {"C": (0,)}
    assert rest(1.85) == {"A": (0,)}


def test_when_no_zone_makes_the_rest_safe_an_empty_release_is_left() -> None:
    assert rest(1.95) == {}


def test_the_rest_is_left_alone_when_it_is_not_asked_for() -> None:
    counts = {A: SMALL, C: LARGE, FAR: {"a": 8}}
    assert published(run(counts, l_min=1.85, residual=False)) == {"A": (0,), "C": (0,)}


def test_cells_below_k_are_not_in_the_rest() -> None:
    counts = {A: SMALL, C: LARGE, FAR: {"a": 3}}
    assert published(run(counts, l_min=1.85, residual=True)) == {"A": (0,), "C": (0,)}


def test_a_lone_eligible_cell_in_the_rest_is_never_safe() -> None:
    """Even where its mix is diverse: here it fails by its shift, which the rest is not tested for."""
    counts = {A: {"a": 5, "b": 5}, C: {"a": 20, "b": 20}, FAR: {"c": 6, "d": 6}}
    assert published(run(counts, l_min=1.9, shift_max=0.35, residual=True)) == {"C": (0,)}
    assert published(run(counts, l_min=1.9, shift_max=0.35)) == {"A": (0,), "C": (0,)}


def test_an_incidence_that_everybody_has_is_no_news_in_the_rest() -> None:
    """Everybody of the island did `a` at home too: their incidence in the rest is that of all, 1."""
    rows = [(FAR, f"p{i}", v) for i in range(8) for v in ("a", "b")]
    rows += [(D, f"p{i}", "a") for i in range(8)]
    rows += [(cell, f"p{i}", "a" if i % 2 else "b") for cell in (A, C) for i in range(8)]
    source = pd.DataFrame(rows, columns=["cell", "person", "activity"])
    outcome = run(source, incidence_max=0.8, residual=True, ladder=["suppress"])
    assert published(outcome) == {"A": (0,), "C": (0,)}


# --- one level for the whole release --------------------------------------------------------------------------


def test_the_level_at_which_most_persons_are_in_passing_zones() -> None:
    poi = gd.Nominal("activity", EVEN)
    few = {A: {"a": 4, "b": 4, "c": 4, "d": 4}, C: {"a": 9, "c": 9}, FAR: {"b": 9, "d": 9}}
    outcome = run(few, poi, l_min=3.5, recode_scope="release")
    assert published(outcome) == {"A": (1,), "C": (1,), "F": (1,)}
    many = {**few, A: {"a": 20, "b": 20, "c": 20, "d": 20}, C: {"a": 9}, FAR: {"b": 9, "c": 9}}
    outcome = run(many, poi, l_min=3.99, recode_scope="release")
    assert published(outcome) == {"A": (0,)}


def test_persons_decide_and_not_cells() -> None:
    """At level 0 one cell of 30 persons passes, at level 1 it is certain by incidence and two of 10 pass."""
    taxonomy = gd.Taxonomy([("a", "x"), ("b", "x"), ("e", "x"), ("c", "y"), ("d", "y")])
    counts = {A: {"a": 10, "b": 10, "e": 10}, C: {"a": 5, "c": 5}, FAR: {"b": 5, "c": 5}}
    gates: dict[str, Any] = {"l_min": 2.5, "incidence_max": 0.8, "recode_scope": "release"}
    assert published(run(counts, gd.Nominal("activity", taxonomy), **gates)) == {"A": (0,)}
    counts[A] = {"a": 6, "b": 6, "e": 6}
    assert published(run(counts, gd.Nominal("activity", taxonomy), **gates)) == {"C": (1,), "F": (1,)}


def test_what_still_fails_at_the_level_of_the_release_merges() -> None:
    poi = gd.Nominal("activity", EVEN)
    counts = {A: {"a": 9}, B: {"c": 8, "d": 1}, FAR: {"a": 8, "b": 8, "c": 8, "d": 8}, D: {"b": 12, "c": 12}}
    outcome = run(counts, poi, l_min=3, recode_scope="release")
    assert set(published(outcome).values()) == {(1,)}
    assert "AB" in published(outcome)


def test_without_recode_the_scope_of_the_recoding_changes_nothing() -> None:
    poi = gd.Nominal("activity", EVEN)
    counts = {A: {"a": 9, "c": 9}, FAR: {"a": 8, "b": 8, "c": 8, "d": 8}}
    outcome = run(counts, poi, l_min=3, recode_scope="release", ladder=["merge", "suppress"])
    assert published(outcome) == {"F": (0,)}


# --- never fewer people than by suppressing alone ---------------------------------------------------------------


def test_a_merge_that_leaves_a_lone_failing_cell_behind_is_not_made() -> None:
    """Left out together, B and the island are safe; when B merges, the island takes its zone down with it."""
    counts = {A: {"b": 5, "c": 5}, B: {"a": 5}, FAR: {"b": 5}}
    assert published(run(counts, l_min=1.9)) == {"AB": (0,)}
    outcome = run(counts, l_min=1.9, residual=True)
    assert published(outcome) == {"A": (0,)}
    assert outcome.rounds["stage"].tolist()[-2:] == ["residual", "refine"]


def test_one_level_for_all_is_not_taken_where_it_loses_more() -> None:
    """Most persons pass each attribute at (1, 0), but none of them both; A passes both at (0, 0)."""
    taxonomy = gd.Taxonomy([("a", "x"), ("b", "x"), ("e", "x"), ("c", "y"), ("d", "y")])
    rows = visits({A: {"a": 10, "b": 10, "e": 10}, FAR: {"a": 20, "c": 20}})
    rows["second"] = ["s", "t"] * 15 + ["s"] * 40
    attributes = [gd.Nominal("activity", taxonomy, gates={"l_min": 2.5}), gd.Nominal("second")]
    outcome = run(rows, *attributes, incidence_max=0.8, recode_scope="release")
    assert published(outcome) == {"A": (0, 0)}
    assert outcome.rounds["stage"].tolist()[-2:] == ["alone", "refine"]


# --- single moves at the end ----------------------------------------------------------------------------------


def test_a_cell_below_k_joins_the_zone_beside_it() -> None:
    counts = {A: {"a": 5, "b": 5}, B: {"a": 1, "b": 2}}
    outcome = run(counts, k_min=10, l_min=1.9)
    assert published(outcome) == {"AB": (0,)}
    assert outcome.rounds["stage"].tolist() == ["ladder", "gather", "refine"]
    assert published(run(counts, k_min=10, l_min=1.9, max_members=1)) == {"A": (0,)}
    assert published(run(counts, k_min=10, l_min=1.9, ladder=["recode", "suppress"])) == {"A": (0,)}


def test_a_cell_joins_two_zones_where_one_cannot_hold_it() -> None:
    """Fourteen `a` are too many for B, and not for B and C together."""
    counts = {A: {"a": 14}, B: {"a": 5, "b": 9}, C: {"a": 5, "b": 9}}
    assert published(run(counts, l_min=1.9, max_members=2)) == {"B": (0,), "C": (0,)}
    assert published(run(counts, l_min=1.9)) == {"ABC": (0,)}


def test_two_cells_that_touch_join_together() -> None:
    """B alone is too much for C, and A, which would make up for it, touches B only."""
    counts = {A: {"b": 3}, B: {"a": 3}, C: {"a": 9, "b": 9}}
    assert published(run(counts, k_min=10, l_min=1.99, max_members=2)) == {"C": (0,)}
    assert published(run(counts, k_min=10, l_min=1.99)) == {"ABC": (0,)}


@pytest.mark.parametrize("pair", [(A, B), (B, C), (C, D)])
def test_two_cells_become_a_zone_of_their_own(pair: tuple[str, str]) -> None:
    table = tabulate({pair[0]: {"a": 5}, pair[1]: {"b": 5}, FAR: {"a": 6, "b": 6}})
    plan = joined(table, dark="".join(LETTERS[cell] for cell in pair))
    for most in (2, 7):
        zones = zones_of(table, refined(table, plan, l_min=1.9, max_members=most))
        assert zones == {"".join(LETTERS[c] for c in pair), "F"}


def refined(table: gd.Tabulation, plan: gd.Plan, rest: bool = False, **policy: Any) -> gd.Plan:
    judge = Judge.of(table, gd.Policy(**{"k_min": 4, **policy}))
    return refine(judge, plan, Rest.of(judge) if rest else None)


def joined(table: gd.Tabulation, *zones: str, dark: str = "") -> gd.Plan:
    """A plan of zones, written by the letters of their cells, the rest by themselves and some suppressed."""
    ids = {letter: cell for cell, letter in LETTERS.items()}
    plan = table.start()
    for zone in zones:
        at = np.flatnonzero(np.isin(table.cells, [ids[x] for x in zone]))
        plan = plan.merge(
            sparse.csr_array((np.ones(len(at)), ([0] * len(at), at)), shape=(1, len(table.cells)))
        )
    return plan.suppress(plan.zone[np.flatnonzero(np.isin(table.cells, [ids[x] for x in dark]))])


def zones_of(table: gd.Tabulation, plan: gd.Plan) -> set[str]:
    shown = plan.zones[~plan.suppressed[plan.zones]]
    names = [[LETTERS[c] for c in table.cells[plan.zone == zone]] for zone in shown]
    return {"".join(sorted(name)) for name in names}


def test_a_zone_of_two_that_pass_falls_apart_and_one_of_less_does_not() -> None:
    table = tabulate({A: {"a": 4, "b": 4}, B: {"a": 6}, C: {"b": 6}, D: {"a": 4, "b": 4}})
    plan = joined(table, "ABCD")
    assert zones_of(table, refined(table, plan, l_min=1.9)) == {"A", "BC", "D"}
    assert zones_of(table, refined(table, plan, l_min=1.9, ladder=["recode", "suppress"])) == {"ABCD"}


def test_zones_that_lie_beside_each_other_fall_apart_together() -> None:
    table = tabulate({cell: {"a": 4, "b": 4} for cell in (A, B, C, D)})
    assert zones_of(table, refined(table, joined(table, "AB", "CD"), l_min=1.9)) == set("ABCD")


def test_of_splits_with_the_same_first_cell_the_next_cells_decide() -> None:
    """Two cells could go off the end of the row, or three, which have the smaller ids."""
    row = ROW[:7]
    single = {cell: {value: 1} for cell, value in zip(row, "abab", strict=False)}
    table = tabulate(single | {cell: {"a": 1, "b": 1} for cell in row[4:]})
    ids = table.cells.tolist()
    two, three = (sorted(map(ids.index, row[start:])) for start in (5, 4))
    assert three[0] == two[0] < three[1] < two[1], "else the order of the ids would not be seen"
    plan = table.start().merge(sparse.csr_array(np.ones((1, 7))))
    after = refined(table, plan, k_min=4, l_min=1.9)
    zones = {frozenset(table.cells[after.zone == zone]) for zone in after.zones}
    assert zones == {frozenset(row[:4]), frozenset(row[4:])}


def test_a_split_takes_off_three_cells_at_most() -> None:
    """Four of these cells reach k_min, and no three do."""
    table = tabulate({cell: {"a": 3, "b": 3} for cell in ROW})
    plan = table.start().merge(sparse.csr_array(np.ones((1, len(ROW)))))
    for k_min, zones in ((24, 1), (18, 2)):
        after = refined(table, plan, k_min=k_min, l_min=1.9, max_members=8)
        assert len(after.zones) == zones


@pytest.mark.parametrize(("both", "one"), [(A, B), (B, A)])
def test_no_attribute_gets_coarser_by_a_split(both: str, one: str) -> None:
    """Apart, each could tell the activity finely; but one of the two would then tell the food by class only."""
    even = [x for x in "abcd" for _ in range(4)]
    rows = [(both, f"p{i}", x, "abcd"[i % 4]) for i, x in enumerate(even)]
    rows += [(one, f"q{i}", x, "ac"[i % 2]) for i, x in enumerate(even)]
    source = pd.DataFrame(rows, columns=["cell", "person", "activity", "food"])
    table = tabulate(source, gd.Nominal("activity", EVEN), gd.Nominal("food", EVEN))
    plan = joined(table, "AB")
    plan = plan.recode(plan.zones, 0, np.ones(1, int))
    assert zones_of(table, refined(table, plan, l_min=3)) == {"AB"}
    plan = plan.recode(plan.zones, 1, np.ones(1, int))
    assert zones_of(table, refined(table, plan, l_min=3)) == {"A", "B"}


def test_a_split_never_makes_a_part_coarser() -> None:
    table = tabulate({A: {"a": 4, "b": 4}, B: {"c": 4, "d": 4}}, gd.Nominal("activity", EVEN))
    plan = joined(table, "AB")
    assert zones_of(table, refined(table, plan, l_min=3)) == {"AB"}
    assert zones_of(table, refined(table, plan.recode(plan.zones, 0, np.ones(1, int)), l_min=1.9)) == {
        "A",
        "B",
    }


def test_a_member_changes_its_zone_where_that_is_finer() -> None:
    """A is coarse by itself; B gives it what it lacks, and C can do without B."""
    counts = {A: {"a": 9, "b": 9}, B: {"c": 5, "d": 5}, C: {"a": 9, "b": 9, "c": 9, "d": 9}}
    table = tabulate(counts, gd.Nominal("activity", EVEN))
    plan = joined(table, "BC")
    a = np.flatnonzero(table.cells == A)
    plan = plan.recode(a, 0, np.ones(1, int))
    after = refined(table, plan, l_min=3)
    assert zones_of(table, after) == {"AB", "C"}
    assert (after.level == 0).all()


def test_cells_are_published_before_members_change_zones() -> None:
    """B would make A finer, and C could do without it; but only with B and C is D published."""
    counts = {
        A: {"a": 9, "c": 9},
        B: {"b": 5, "d": 5},
        C: {"a": 9, "b": 9, "c": 9, "d": 9},
        D: {"a": 40},
    }
    table = tabulate(counts, gd.Nominal("activity", EVEN))
    plan = joined(table, "BC", dark="D")
    plan = plan.recode(np.flatnonzero(table.cells == A), 0, np.ones(1, int))
    assert zones_of(table, refined(table, plan, l_min=3, max_members=3)) == {"A", "BCD"}
    table = tabulate(counts | {FAR: {"a": 2, "b": 2, "c": 2, "d": 2}}, gd.Nominal("activity", EVEN))
    plan = joined(table, "BC", dark="DF").recode(np.flatnonzero(table.cells == A), 0, np.ones(1, int))
    after = refined(table, plan, l_min=3, incidence_max=0.7, max_members=3)
    assert zones_of(table, after) == {"A", "BCD", "F"}, "also after F was published"
    del counts[D]
    table = tabulate(counts, gd.Nominal("activity", EVEN))
    plan = joined(table, "BC").recode(np.flatnonzero(table.cells == A), 0, np.ones(1, int))
    assert zones_of(table, refined(table, plan, l_min=3, max_members=3)) == {"AB", "C"}


def test_a_member_does_not_go_to_a_zone_that_is_coarse_with_it_too() -> None:
    counts = {A: {"a": 9, "b": 9, "c": 9, "d": 9}, B: {"a": 1, "b": 1}, C: {"a": 9, "c": 9}}
    table = tabulate(counts, gd.Nominal("activity", EVEN))
    plan = joined(table, "AB")
    plan = plan.recode(np.flatnonzero(table.cells == C), 0, np.ones(1, int))
    after = refined(table, plan, l_min=3)
    assert zones_of(table, after) == {"AB", "C"}
    assert (after.level == plan.level).all()


@pytest.mark.parametrize("finer", [False, True])
def test_an_exchange_is_made_for_one_person_and_not_for_none(finer: bool) -> None:
    """B would be as coarse with C as with A; or it is one person, whom C can tell finely."""
    counts = {A: {"a": 9, "c": 9}, B: {"b": 1}, C: {"a": 9, "b": 9, "c": 9, "d": 9}, FAR: {"b": 9, "d": 9}}
    if not finer:
        counts |= {B: {"a": 1, "c": 1}, C: {"a": 9, "c": 9}}
    table = tabulate(counts, gd.Nominal("activity", EVEN))
    plan = joined(table, "AB")
    coarse = [A, B, FAR] if finer else [A, B, C, FAR]
    plan = plan.recode(np.unique(plan.zone[np.isin(table.cells, coarse)]), 0, np.ones(1, int))
    assert zones_of(table, refined(table, plan, l_min=3)) == ({"A", "BC", "F"} if finer else {"AB", "C", "F"})


def test_it_counts_what_a_zone_loses_not_how_coarse_it_is() -> None:
    """A is coarse and stays so with B; C, which is smaller, would become coarse for it."""
    counts = {
        A: {"a": 9, "c": 9},
        B: {"a": 2},
        C: {"a": 3, "b": 3, "c": 3},
        FAR: {"a": 9, "b": 20, "c": 9, "d": 20},
    }
    table = tabulate(counts, gd.Nominal("activity", EVEN))
    plan = joined(table, dark="B")
    plan = plan.recode(np.flatnonzero(table.cells == A), 0, np.ones(1, int))
    assert zones_of(table, refined(table, plan, l_min=3, max_members=2)) == {"AB", "C", "F"}
    view = View.of(Judge.of(table, gd.Policy(k_min=4, l_min=3, max_members=2)), plan)
    first = publish(view, np.ones(len(table.cells), bool), 1, 1).zones[0][[0]]
    assert set(table.cells[first.indices]) == {A, B}


def view_of(table: gd.Tabulation, plan: gd.Plan, **policy: Any) -> View:
    return View.of(Judge.of(table, gd.Policy(**{"k_min": 4, **policy})), plan)


def told(table: gd.Tabulation, moves: Moves) -> list[list[str]]:
    """The zones of each move, written by the letters of their cells, or by their ids."""
    named = []
    for row in range(moves.cells.shape[0]):
        cells = [table.cells[zones[[row]].indices] for zones in moves.zones]
        named.append(["".join(sorted(LETTERS.get(c, c) for c in of)) for of in cells])
    return named


def test_a_split_counts_what_both_parts_lose() -> None:
    """A is coarse by itself and with B; B is told finely with C alone."""
    counts = {A: {"a": 9, "c": 9}, B: {"a": 2}, C: {"a": 9, "b": 9, "c": 9, "d": 9}}
    table = tabulate(counts, gd.Nominal("activity", EVEN))
    plan = joined(table, "ABC")
    view = view_of(table, plan.recode(plan.zones, 0, np.ones(1, int)), l_min=3)
    assert told(table, split(view, np.ones(3, bool))) == [["A", "BC"]]


def test_where_nothing_changed_no_move_is_tried_again() -> None:
    """B could join A or C or both, or go from C to A; what touches none of the fresh cells is left out."""
    even = {"a": 9, "b": 9, "c": 9, "d": 9}
    table = tabulate({A: even, B: {"a": 5}, C: even}, gd.Nominal("activity", EVEN))
    view = view_of(table, joined(table, dark="B"), l_min=3)
    for fresh, one, both in (
        ("A", [["AB"]], [["ABC"]]),
        ("C", [["BC"]], [["ABC"]]),
        ("B", [["AB"], ["BC"]], [["ABC"]]),
        ("", [], []),
    ):
        new = np.isin(table.cells, [cell for cell, letter in LETTERS.items() if letter in fresh])
        assert sorted(told(table, publish(view, new, 1, 1))) == one
        assert told(table, publish(view, new, 1, 2)) == both
    table = tabulate({A: {"a": 9, "b": 9}, B: {"c": 5, "d": 5}, C: even}, gd.Nominal("activity", EVEN))
    plan = joined(table, "BC").recode(np.flatnonzero(table.cells == A), 0, np.ones(1, int))
    view = view_of(table, plan, k_min=10, l_min=3)
    for fresh, moves in (("A", [["C", "AB"]]), ("B", [["C", "AB"]]), ("", [])):
        new = np.isin(table.cells, [cell for cell, letter in LETTERS.items() if letter in fresh])
        assert told(table, exchange(view, new)) == moves


@pytest.mark.parametrize("order", ["ABCD", "DCBA"])
@pytest.mark.parametrize(
    ("second", "fourth"),
    [({"c": 5, "d": 5}, {"a": 2, "b": 2, "c": 2}), ({"a": 5, "b": 5, "c": 9, "d": 9}, {"a": 500})],
    ids=["the zone cannot do without", "the other cannot do with"],
)
def test_a_member_that_may_not_go_is_no_move(order: str, second: Any, fourth: Any) -> None:
    """The second cell could go to the first; the third to the fourth, but for what it leaves or joins."""
    one, two, three, four = (dict(zip("ABCD", ROW, strict=False))[x] for x in order)
    even = {"a": 9, "b": 9, "c": 9, "d": 9}
    table = tabulate(
        {one: {"a": 9, "b": 9}, two: second, three: even, four: fourth}, gd.Nominal("activity", EVEN)
    )
    plan = joined(table, order[1:3])
    plan = plan.recode(np.flatnonzero(np.isin(table.cells, [one, four])), 0, np.ones(1, int))
    found = told(table, exchange(view_of(table, plan, l_min=3), np.ones(4, bool)))
    assert found == [[order[2], "".join(sorted(order[:2]))]]


def test_two_cells_join_two_zones_where_nothing_less_would_pass() -> None:
    """B and C have one value each; A and D have five each, and either alone is not enough for the two."""
    counts = {A: dict.fromkeys("abcde", 12), B: {"x": 100}, C: {"y": 100}, D: dict.fromkeys("fghij", 12)}
    table = tabulate(counts)
    plan = joined(table, dark="BC")
    for most, zones in ((3, {"A", "D"}), (4, {"ABCD"})):
        assert zones_of(table, refined(table, plan, l_min=4.5, share_max=0.6, max_members=most)) == zones


def test_of_two_zones_to_join_the_smallest_ids_come_first() -> None:
    """The centre needs 50 persons of each value beside it: the first with the fourth, or the second with others."""
    persons = dict(zip(RING, (10, 25, 25, 40), strict=False))
    around = {cell: {"a": n, "b": n, "c": n} for cell, n in persons.items()}
    table = tabulate({CENTRE: {"x": 200}, **around})
    plan = table.start().suppress(np.flatnonzero(table.cells == CENTRE))
    view = view_of(table, plan, share_max=0.6)
    found = publish(view, np.ones(5, bool), 1, 2).zones[0]
    pairs = [
        [RING.index(c) for c in table.cells[found[[row]].indices] if c != CENTRE]
        for row in range(found.shape[0])
    ]
    assert pairs == [[0, 3], [1, 2], [1, 3], [2, 3]]


def test_of_splits_that_are_alike_the_one_of_the_smallest_ids() -> None:
    """Off the row, the first cell can go, the last, or half of it; then nothing more."""
    row = ROW[3:7]
    table = tabulate({cell: {"a": n, "b": n} for cell, n in zip(row, (2, 1, 1, 2), strict=True)})
    ids = table.cells.tolist()
    half = next(part for part in (row[:2], row[2:]) if min(row) in part)
    ways = [[row[0]], [row[3]], half]
    least = min(ways, key=lambda part: sorted(map(ids.index, part)))
    assert len(least) == 2, "else the order of the ids would not be seen"
    plan = table.start().merge(sparse.csr_array(np.ones((1, 4))))
    after = refined(table, plan, k_min=4, l_min=1.9)
    assert {frozenset(table.cells[after.zone == zone]) for zone in after.zones} == {
        frozenset(least),
        frozenset(row) - frozenset(least),
    }


@pytest.mark.parametrize("order", ["ABCD", "DCBA"])
def test_a_member_goes_to_no_zone_that_is_full(order: str) -> None:
    """The third would make the zone of the first two finer; none of these two could be without the other."""
    cells = dict(zip("ABCD", (A, B, C, D), strict=True))
    first, second, third, fourth = (cells[x] for x in order)
    counts = {
        first: {"a": 1, "c": 1},
        second: {"a": 9, "c": 9},
        third: {"b": 5, "d": 5},
        fourth: {"a": 9, "b": 9, "c": 9, "d": 9},
    }
    table = tabulate(counts, gd.Nominal("activity", EVEN))
    plan = joined(table, order[:2], order[2:])
    coarse = np.unique(plan.zone[np.isin(table.cells, [first, second])])
    plan = plan.recode(coarse, 0, np.ones(1, int))
    for most in (2, 3):
        expected = {"".join(sorted(order[:most])), "".join(sorted(order[most:]))}
        assert zones_of(table, refined(table, plan, l_min=3, max_members=most)) == expected


def test_a_move_that_leaves_an_unsafe_rest_is_not_made() -> None:
    """A could join B, and C be published; then F alone would be left, and be known."""
    table = tabulate({A: {"a": 6}, B: {"a": 4, "b": 9}, C: {"a": 6, "b": 6}, FAR: {"b": 7}})
    plan = joined(table, dark="ACF")
    assert zones_of(table, refined(table, plan, l_min=1.8)) == {"AB", "C"}
    assert zones_of(table, refined(table, plan, rest=True, l_min=1.8)) == {"B", "C"}


def test_all_that_are_left_may_go_together_where_one_may_not() -> None:
    """A or C alone would leave the other alone; both leave nobody."""
    table = tabulate({A: {"a": 6, "b": 6}, B: {"a": 9, "b": 9}, C: {"a": 6, "b": 6}})
    plan = joined(table, dark="AC")
    assert zones_of(table, refined(table, plan, rest=True, l_min=1.9)) == {"A", "B", "C"}
    assert zones_of(table, refined(table, plan, rest=True, incidence_max=0.9)) == {"A", "B", "C"}


def test_cells_of_a_suppressed_zone_are_taken_one_by_one() -> None:
    table = tabulate({A: {"a": 6, "b": 6}, B: {"a": 9}, FAR: {"a": 5}})
    plan = joined(table, "AB", dark="ABF")
    assert zones_of(table, refined(table, plan, rest=True, l_min=1.9)) == set()
    assert zones_of(table, refined(table, plan, rest=False, l_min=1.99)) == {"A"}


@pytest.mark.parametrize(("left", "right", "zone"), [(3, 2, "AB"), (2, 3, "BC")])
def test_the_cell_with_most_persons_joins_first(left: int, right: int, zone: str) -> None:
    table = tabulate({A: {"a": left}, B: {"a": 9, "b": 9}, C: {"b": right}})
    plan = joined(table, dark="AC")
    assert zones_of(table, refined(table, plan, l_min=1.9, max_members=2)) == {zone}


@pytest.mark.parametrize(("coarse", "fine", "zones"), [(A, C, {"A", "BC"}), (C, A, {"AB", "C"})])
def test_then_the_zone_that_stays_finest_takes_it(coarse: str, fine: str, zones: set[str]) -> None:
    """With the one, B would be published by coarser labels only; with the other, as it is."""
    counts = {coarse: {"a": 9, "c": 9}, B: {"a": 1, "b": 1}, fine: {"a": 9, "b": 9, "c": 9, "d": 9}}
    table = tabulate(counts, gd.Nominal("activity", EVEN))
    plan = joined(table, dark="B")
    plan = plan.recode(np.flatnonzero(table.cells == coarse), 0, np.ones(1, int))
    after = refined(table, plan, l_min=3, max_members=2)
    assert zones_of(table, after) == zones
    assert after.level[np.isin(table.cells, [B, fine])].max() == 0


def test_then_the_smallest_ids() -> None:
    table = tabulate({A: {"a": 9, "b": 9}, B: {"a": 1, "b": 1}, C: {"a": 9, "b": 9}})
    zones = zones_of(table, refined(table, joined(table, dark="B"), l_min=1.9))
    assert zones == ({"AB", "C"} if A < C else {"A", "BC"})
    table = tabulate({A: {"a": 1, "b": 1}, B: {"a": 9, "b": 9}, C: {"a": 1, "b": 1}})
    zones = zones_of(table, refined(table, joined(table, dark="AC"), l_min=1.9, max_members=2))
    assert zones == ({"AB"} if A < C else {"BC"})


def test_refining_what_was_refined_changes_nothing() -> None:
    table = tabulate({A: {"a": 4, "b": 4}, B: {"a": 6}, C: {"b": 6}, D: {"a": 2, "b": 1}})
    plan = refined(table, joined(table, "ABC", dark="D"), l_min=1.8)
    again = refined(table, plan, l_min=1.8)
    assert (again.zone == plan.zone).all()
    assert (again.level == plan.level).all()


def test_row_of_cells_is_what_these_tests_take_it_for() -> None:
    near = tabulate(visits({cell: {"a": 1} for cell in ROW})).adjacency
    assert np.sort(near.sum(axis=1)).tolist() == [1, 1, 2, 2, 2, 2, 2, 2]
