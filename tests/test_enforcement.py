"""Enforce: what holds of every release, whatever the visits and the policy."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pandas as pd
import pytest
from crowds import CENTRE, FAR, RING, ROW, tabulate, visits
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse import csgraph
from strategies import World, worlds
from test_worlds import fewer, pointless, table_of

import geodiv as gd

FULL = ("recode", "merge", "suppress")


@st.composite
def settling(draw: st.DrawFn) -> World:
    """A world whose ladder ends with suppress, so that there is a release."""
    world = draw(worlds())
    assume(not pointless(world))
    ladder = tuple(dict.fromkeys((*world.remedies["ladder"], "suppress")))
    return replace(world, remedies={**world.remedies, "ladder": ladder, "max_rounds": 50})


def zones(outcome: gd.Outcome) -> list[list[str]]:
    return [[m.replace("%20", " ") for m in row.split(" ")] for row in outcome.release.cells["members"]]


def pairs(outcome: gd.Outcome) -> int:
    """(person, cell) pairs of the eligible cells in published zones."""
    table, plan = outcome.table, outcome.plan
    return int(table.persons[(table.persons >= outcome.policy.k_min) & ~plan.suppressed].sum())


# --- laws -----------------------------------------------------------------------------------------------------


@fewer
@given(world=settling())
def test_what_holds_of_every_release(world: World) -> None:
    outcome = gd.enforce(table_of(world), world.policy(), world.publication())
    no_zone_fails(world, outcome)
    zones_are_whole(world, outcome)
    nothing_else_is_told(outcome)


def no_zone_fails(world: World, outcome: gd.Outcome) -> None:
    """By the oracle, which shares nothing with the library."""
    answer = oracles.tabulate(*world.oracle_input())
    levels = outcome.release.cells[[f"{s.declared.column}_level" for s in world.subjects]].to_numpy().tolist()
    for members, at in zip(zones(outcome), levels, strict=True):
        assert len(answer.people(members)) >= world.gates["k_min"]
        for attribute, level in enumerate(at):
            assert oracles.judge(answer, frozenset(members), attribute, level).fails == ()


def zones_are_whole(world: World, outcome: gd.Outcome) -> None:
    """Members are disjoint, together, and not too many; persons lie between the largest cell and the sum."""
    persons = dict(zip(outcome.table.cells, outcome.table.persons, strict=True))
    everything = [cell for members in zones(outcome) for cell in members]
    assert len(everything) == len(set(everything))
    near = world.near(1)
    for members, found in zip(zones(outcome), outcome.release.cells["persons"], strict=True):
        assert len(members) <= max(world.remedies["max_members"], 1)
        touching = sparse.csr_array([[float(b in near[a]) for b in members] for a in members])
        assert csgraph.connected_components(touching, directed=False)[0] == 1
        sizes = [persons[cell] for cell in members]
        assert max(sizes) <= found <= sum(sizes)


def nothing_else_is_told(outcome: gd.Outcome) -> None:
    """A cell that is not published stands in no table and not in the metadata."""
    release = outcome.release
    published = {cell for members in zones(outcome) for cell in members}
    ids = set(release.cells["cell_id"]) | set(release.counts["cell_id"])
    assert ids <= published
    text = json.dumps(release.metadata)
    assert not [cell for cell in outcome.table.cells if cell not in published and cell in text]


@fewer
@given(world=settling())
def test_more_people_stay_than_by_suppressing_alone(world: World) -> None:
    table, policy = table_of(world), replace(world.policy(), ladder=FULL)
    kept = pairs(gd.enforce(table, policy))
    assert kept >= pairs(gd.enforce(table, replace(policy, ladder=("suppress",))))


@fewer
@given(world=settling(), seed=st.integers(0, 99))
def test_row_order_repeats_and_names_change_nothing(world: World, seed: int) -> None:
    visits = world.visits_frame()
    other = pd.concat([visits, visits.sample(5, random_state=seed)]).sample(frac=1, random_state=seed)
    other["person"] = "x" + other["person"].str[::-1]
    releases = [
        gd.enforce(
            gd.tabulate(v, grid=world.grid(), person="person", attributes=world.attributes()), world.policy()
        ).release
        for v in (visits, other)
    ]
    for name in ("cells", "counts", "reference", "taxonomy"):
        frames = [pd.DataFrame(getattr(release, name)) for release in releases]
        pd.testing.assert_frame_equal(*(f.drop(columns="geometry", errors="ignore") for f in frames))
    assert {k: v for k, v in releases[0].metadata.items() if k != "input_digest"} == {
        k: v for k, v in releases[1].metadata.items() if k != "input_digest"
    }


@fewer
@given(world=settling())
def test_enforcing_what_was_enforced_changes_nothing(world: World) -> None:
    """The published zones, taken as cells of their own, are published as they are, each by itself.

    Of gates that look at nothing but the zone: a reference made of zones is another than one made of cells.
    """
    table = table_of(world)
    own = {"t_max": None, "shift_max": None, "lift_max": None}
    policy = replace(
        world.policy(), ladder=("merge", "suppress"), reference=gd.Global(), residual=False, **own
    )
    attributes = [
        replace(a, level=0, gates={k: v for k, v in a.gates.items() if k not in own})
        for a in table.attributes
    ]
    first = gd.enforce(replace(table, attributes=tuple(attributes)), policy).release
    home = {cell: zone for zone, members in zip(first.cells["cell_id"], first.cells["members"], strict=True)
            for cell in members.replace("%20", "_").split(" ")}  # fmt: skip
    frame = world.visits_frame()
    frame["cell"] = frame["cell"].str.replace(" ", "_").map(home)
    frame = frame.dropna(subset="cell")
    again = gd.enforce(
        gd.tabulate(frame, grid=gd.ColumnGrid("cell"), person="person", attributes=attributes),
        replace(policy, l_min=None if not len(frame) else policy.l_min),
    ).release
    assert (again.cells["remedy"] == "publish").all()
    columns = ["cell_id", "persons", *(f"{a.column}_top" for a in attributes)]
    for mine, theirs in [(again.cells[columns], first.cells[columns]), (again.counts, first.counts)]:
        mine, theirs = (pd.DataFrame(f).replace(" ", "_", regex=True) for f in (mine, theirs))
        pd.testing.assert_frame_equal(mine, theirs, check_dtype=False)


# --- what an outcome holds ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def outcome() -> gd.Outcome:
    """A lone publishable cell, a pair that merges, an island that is suppressed, a cell below k."""
    counts = {CENTRE: {"a": 5, "b": 5}, ROW[2]: {"a": 6}, ROW[3]: {"b": 6}, FAR: {"a": 9}, ROW[7]: {"b": 2}}
    return gd.enforce(tabulate(counts), gd.Policy(k_min=4, l_min=1.9, residual=False), run_text="[gates]")


def test_scores_say_what_became_of_each_cell(outcome: gd.Outcome) -> None:
    found = outcome.scores.set_index("cell_id")
    merged = min(ROW[2], ROW[3])
    assert found["final_remedy"].to_dict() == {
        CENTRE: "publish", ROW[2]: "publish_merged", ROW[3]: "publish_merged", FAR: "suppress", ROW[7]: "suppress",
    }  # fmt: skip
    assert found["zone_id"].dropna().to_dict() == {CENTRE: CENTRE, ROW[2]: merged, ROW[3]: merged}
    assert found.loc[CENTRE, "remedy"] == "publish"
    assert found.loc[ROW[2], "remedy"] == "merge_or_suppress"


def test_final_scores_measure_the_partition_that_is_published(outcome: gd.Outcome) -> None:
    found = outcome.final_scores
    assert found["cell_id"].tolist() == outcome.release.cells["cell_id"].tolist()
    assert (found["fails"] == "").all()
    assert (found["effective_fine"] >= 1.9).all()
    assert found["persons"].sort_values().tolist() == [10, 12]


def test_final_scores_say_what_was_published_of_each_zone(outcome: gd.Outcome) -> None:
    final, cells = outcome.final_scores, outcome.release.cells
    assert final["zone_id"].tolist() == final["cell_id"].tolist() == cells["cell_id"].tolist()
    assert final["final_remedy"].tolist() == cells["remedy"].tolist()
    assert set(final["remedy"]) == {"publish"}


def test_rounds_are_told_stage_by_stage(outcome: gd.Outcome) -> None:
    rounds = outcome.rounds
    assert rounds.columns.tolist() == [
        "round",
        "stage",
        "failing",
        "recoded",
        "merged",
        "suppressed",
        "zones",
    ]
    assert rounds["stage"].tolist() == ["ladder", "ladder", "gather", "refine"]
    assert rounds.iloc[0].tolist() == [1, "ladder", 3, 0, 2, 1, 4]
    assert rounds.iloc[1].tolist() == [2, "ladder", 0, 0, 0, 0, 4]
    assert rounds.iloc[3].tolist()[1:] == ["refine", 0, 0, 0, 0, 4]
    assert outcome.release.metadata["rounds"] == 2


def test_an_outcome_keeps_its_table_and_policy(outcome: gd.Outcome) -> None:
    assert outcome.policy.l_min == 1.9
    assert len(outcome.table.cells) == 5
    assert outcome.release.metadata["run"] == "[gates]"


def test_progress_is_told() -> None:
    heard: list[tuple[str, int, int | None]] = []
    gd.enforce(tabulate({CENTRE: {"a": 5}, RING[0]: {"b": 5}}), gd.Policy(k_min=4, l_min=2),
               progress=lambda *step: heard.append(step))  # fmt: skip
    assert heard == [("remedy", 1, 20), ("remedy", 2, 20), ("refine", 0, 1), ("verify", 0, 1)]


def test_why_it_did_not_converge_is_said() -> None:
    counts = {CENTRE: {"a": 9}, FAR: {"b": 7}}
    with pytest.raises(gd.NotConverged, match="the ladder 'recode', 'merge' cannot clear them"):
        gd.enforce(tabulate(counts), gd.Policy(k_min=4, l_min=1.9, ladder=("recode", "merge")))


def test_three_cells_below_k_gather_where_two_are_too_few() -> None:
    counts = {ROW[0]: {"a": 2}, ROW[1]: {"b": 2}, ROW[2]: {"a": 1, "b": 1}}
    outcome = gd.enforce(tabulate(counts), gd.Policy(k_min=6, l_min=1.9, residual=False))
    assert zones(outcome) == [sorted(ROW[:3])]
    apart = gd.enforce(tabulate(counts), gd.Policy(k_min=6, residual=False, ladder=("recode", "suppress")))
    assert zones(apart) == []


def test_no_release_but_a_verified_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan that is verified is the one that is published, and without a word from there nothing is."""
    asked: list[Any] = []
    monkeypatch.setattr("geodiv.enforcement.verify", lambda *what: asked.append(what))
    table, policy = tabulate({CENTRE: {"a": 5, "b": 5}, FAR: {"a": 9}}), gd.Policy(k_min=4, l_min=2)
    outcome = gd.enforce(table, policy)
    assert [(t is table, p is policy, plan is outcome.plan) for t, p, plan in asked] == [(True, True, True)]

    def disagrees(*what: Any) -> None:
        raise gd.VerificationError("the two counts differ")

    monkeypatch.setattr("geodiv.enforcement.verify", disagrees)
    with pytest.raises(gd.VerificationError, match="the two counts differ"):
        gd.enforce(table, policy)


def test_an_outcome_is_written_as_a_work_file(tmp_path: Path) -> None:
    outcome = gd.enforce(tabulate({CENTRE: {"a": 5, "b": 5}}), gd.Policy(k_min=4, l_min=2, residual=False))
    outcome.to_work(tmp_path / "work.gpkg")
    before = (tmp_path / "work.gpkg").read_bytes()
    with pytest.raises(gd.UsageError, match="exists"):
        outcome.to_work(tmp_path / "work.gpkg")
    assert (tmp_path / "work.gpkg").read_bytes() == before
    outcome.to_work(tmp_path / "work.gpkg", overwrite=True)


# --- edges ----------------------------------------------------------------------------------------------------


def enforce(source: Any, *attributes: Any, **policy: Any) -> gd.Outcome:
    return gd.enforce(tabulate(source, *attributes), gd.Policy(**{"k_min": 4, **policy}))


def empty(outcome: gd.Outcome) -> bool:
    release = outcome.release
    assert release.metadata["zones"] == release.metadata["persons"] == 0
    assert release.metadata["not_published"] == len(outcome.table.cells)
    assert release.metadata["coverage"] == 0
    return len(release.cells) == len(release.counts) == len(outcome.final_scores) == 0


def test_no_visits_at_all_is_an_empty_release() -> None:
    frame = visits({"c": {"a": 1}}).iloc[:0]
    outcome = enforce(frame, t_max=0.2, residual=True)
    assert empty(outcome)
    assert list(outcome.release.cells.columns[:6]) == [
        "cell_id", "members", "n_members", "persons", "area_m2", "remedy",
    ]  # fmt: skip
    assert "activity_level" in outcome.release.cells


@pytest.mark.parametrize("scope", ["zone", "release"])
@pytest.mark.parametrize("reference", [gd.Global(), gd.Ring(), gd.Ring(fallback="none")])
def test_all_cells_below_k_is_an_empty_release(scope: Any, reference: Any) -> None:
    outcome = enforce(
        {"c1": {"a": 3}, "c2": {"b": 1}}, t_max=0.2, l_min=1, recode_scope=scope, reference=reference
    )
    assert empty(outcome)
    assert outcome.release.reference.empty


def test_one_cell_is_published_or_not() -> None:
    outcome = enforce({CENTRE: {"a": 5, "b": 5}}, l_min=2, t_max=0)
    assert outcome.release.cells["cell_id"].tolist() == [CENTRE]
    assert outcome.release.metadata["coverage"] == 1
    assert empty(enforce({CENTRE: {"a": 5, "b": 4}}, l_min=2))


def test_one_value_cannot_be_two() -> None:
    with pytest.raises(gd.PolicyError, match="it has 1 values"):
        enforce({CENTRE: {"a": 5}}, l_min=2)
    assert enforce({CENTRE: {"a": 5}}, t_max=0.1).release.metadata["zones"] == 1
    assert empty(enforce({CENTRE: {"a": 5}}, incidence_max=0.8))


def test_everything_missing_is_one_value() -> None:
    outcome = enforce({CENTRE: {None: 5}}, t_max=0.1, incidence_max=0.5)
    assert outcome.release.cells["activity_top"].tolist() == ["(missing)"]
    assert empty(enforce({CENTRE: {None: 5}}, share_max=0.5))


def test_one_person_everywhere() -> None:
    frame = pd.DataFrame({"cell": [CENTRE, *RING], "person": "p", "activity": list("abcdefg")})
    assert empty(enforce(frame, k_min=2, l_min=2))
    outcome = enforce(frame, k_min=1, l_min=2)
    assert outcome.release.metadata["persons"] == 1
    assert (outcome.release.cells["persons"] == 1).all()


def test_with_one_member_at_most_nothing_merges() -> None:
    counts = {CENTRE: {"a": 5}, RING[0]: {"b": 5}, RING[1]: {"a": 2}, RING[2]: {"b": 2}}
    assert empty(enforce(counts, l_min=2, max_members=1))
    assert enforce(counts, l_min=2, max_members=2).release.metadata["remedies"]["publish_merged"] == 2


def test_attributes_are_coarsened_each_by_itself() -> None:
    taxonomy = gd.Taxonomy([("a", "x"), ("b", "x"), ("c", "y"), ("d", "y")])
    frame = visits({CENTRE: {"a": 6}, RING[0]: {"b": 6}, FAR: {"c": 6, "d": 6}})
    frame["income"] = np.resize([5, 15, 25], len(frame))
    outcome = enforce(
        frame, gd.Nominal("activity", taxonomy, gates={"l_min": 2}), gd.Numeric("income", edges=[0, 10, 20, 30]),
        l_min=3, ladder=["recode", "suppress"],
    )  # fmt: skip
    cells = outcome.release.cells.set_index("cell_id")
    assert cells.loc[CENTRE, ["activity_level", "income_level", "remedy"]].tolist() == [
        1,
        0,
        "publish_coarsened",
    ]
    assert cells.loc[FAR, ["activity_level", "income_level", "remedy"]].tolist() == [0, 0, "publish"]


def test_a_zone_passes_when_it_passes_for_each_attribute() -> None:
    frame = visits({CENTRE: {"a": 6, "b": 6}, FAR: {"a": 6, "b": 6}})
    frame["other"] = ["s"] * 12 + ["s", "t"] * 6
    outcome = enforce(frame, gd.Nominal("activity"), gd.Nominal("other"), l_min=2, residual=False)
    assert outcome.release.cells["cell_id"].tolist() == [FAR]


def test_two_cells_far_apart_do_not_merge() -> None:
    assert empty(enforce({CENTRE: {"a": 5}, FAR: {"b": 5}}, l_min=2))


def test_a_lone_cell_below_k_may_be_what_is_left() -> None:
    """As SECURITY.md says: the rest that is tested is that of cells with k persons; smaller ones are in no mix."""
    people = [(f"{cell}{i}", cell, "abcde"[i % 5]) for cell in ("x", "y") for i in range(10)] + [
        ("z0", "z", "f")
    ]
    frame = pd.DataFrame(people, columns=["who", "cell", "poi"])
    made = gd.tabulate(frame, grid=gd.ColumnGrid("cell"), person="who", attributes=[gd.Nominal("poi")])
    release = gd.enforce(made, gd.Policy(k_min=10, l_min=2)).release
    assert set(release.cells["cell_id"]) == {"x", "y"}
    assert release.metadata["not_published"] == 1
    assert release.metadata["coverage"] == 1.0
    assert "f" not in set(release.reference.loc[release.reference["share"] > 0, "value"])
