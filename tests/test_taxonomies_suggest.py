"""Suggest: the best grouping of a few values by trying all, wishes, and the same answer for the same counts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from crowds import RING, ROW, tabulate
from hypothesis import given, settings
from hypothesis import strategies as st
from street import CLUSTER, POLICY, VISITS, street

import geodiv as gd
from geodiv.taxonomies.check import information_lost
from geodiv.taxonomies.suggest import taxonomy_csv
from geodiv.taxonomies.wishes import labels_for


def groups(taxonomy: gd.Taxonomy) -> set[frozenset[str]]:
    return {frozenset(v for v, label in taxonomy.rows if label == name) for name in taxonomy.labels(1)}


def partitions(values: list[str]) -> Iterator[list[list[str]]]:
    if not values:
        yield []
        return
    first, rest = values[0], values[1:]
    for partition in partitions(rest):
        yield [[first], *partition]
        for i in range(len(partition)):
            yield [*partition[:i], [first, *partition[i]], *partition[i + 1 :]]


def test_the_street_is_cleared() -> None:
    found = gd.suggest_taxonomy(street(None), gd.Policy(**POLICY))
    assert (found.kept_without, found.failing) == (pytest.approx(1 / 3), 2)
    best = found.best
    assert best is not None
    assert (best.kept, best.cleared) == (1.0, 2)
    table = street(best.taxonomy)
    assert (gd.score(table, gd.Policy(**POLICY))["remedy"] != "merge_or_suppress").all()


@settings(max_examples=12)
@given(
    seed=st.integers(0, 999),
    gates=st.sampled_from([{"l_min": 2.5}, {"share_max": 0.5}, {"t_max": 0.3, "l_min": 2}]),
)
def test_of_a_few_values_no_grouping_keeps_more_for_less(seed: int, gates: dict[str, Any]) -> None:
    rng = np.random.default_rng(seed)
    counts = {
        cell: {
            f"v{i}": int(n) for i, n in enumerate(rng.multinomial(30, rng.dirichlet(np.full(4, 0.6)))) if n
        }
        for cell in ROW[:6]
    }
    table, policy = tabulate(counts), gd.Policy(k_min=10, **gates)
    values = list(table.spaces[0].values)
    if len(values) < 3:
        return
    found = gd.suggest_taxonomy(table, policy)
    mix = np.asarray(table.base.labels[0][0].sum(axis=0)).ravel() / table.base.labels[0][0].sum()
    without = (gd.score(table, policy)["fails"] == "").mean()
    assert found.kept_without == pytest.approx(without)
    every = []
    for partition in partitions(values):
        if len(partition) < 2:
            continue
        name = {v: f"g{i}" for i, group in enumerate(partition) for v in group}
        scored = gd.score(tabulate(counts, gd.Nominal("activity", taxonomy=gd.Taxonomy.of(name))), policy)
        lost = information_lost(mix, np.unique([name[v] for v in values], return_inverse=True)[1])
        every.append(((scored["remedy"] != "merge_or_suppress").mean(), lost))
    for suggestion in found.frontier:
        assert any((suggestion.kept, suggestion.information_lost) == pytest.approx(pair) for pair in every)
        assert suggestion.kept > found.kept_without
    most = max(k for k, _ in every)
    reached = max((s.kept for s in found.frontier), default=found.kept_without)
    assert reached == pytest.approx(max(most, without))
    least = min(lost for k, lost in every if k >= most - 1e-12)
    if found.frontier:
        assert found.frontier[-1].information_lost == pytest.approx(least)


def test_the_frontier_keeps_more_the_more_it_loses() -> None:
    found = gd.suggest_taxonomy(street(None), gd.Policy(**{**POLICY, "l_min": 3.6}))
    lost = [s.information_lost for s in found.frontier]
    more = [s.kept for s in found.frontier]
    assert lost == sorted(lost)
    assert all(a < b for a, b in pairwise(more))


def many(seed: int, values: int = 14) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = []
    for cell in [*RING, *ROW[2:]]:
        taste = rng.dirichlet(np.full(values, 0.2))
        rows += [
            (cell, f"{cell}{i}", f"v{v:02d}") for i, v in enumerate(rng.choice(values, size=40, p=taste))
        ]
    return pd.DataFrame(rows, columns=["cell", "person", "activity"])


def test_of_many_values_what_is_said_is_counted() -> None:
    frame, policy = many(3), gd.Policy(k_min=10, l_min=4, share_max=0.5)
    found = gd.suggest_taxonomy(tabulate(frame), policy)
    assert found.frontier
    for suggestion in found.frontier:
        table = tabulate(frame, gd.Nominal("activity", taxonomy=suggestion.taxonomy))
        scores = gd.score(table, policy)
        passing = scores["remedy"] != "merge_or_suppress"
        assert suggestion.kept == pytest.approx(
            scores.loc[passing, "persons"].sum() / scores["persons"].sum()
        )
        assert suggestion.cleared == (scores["remedy"] == "publish_coarsened").sum()
        assert suggestion.labels == len(suggestion.taxonomy.labels(1))


def test_the_order_of_rows_and_names_of_persons_change_nothing() -> None:
    frame, policy = many(5), gd.Policy(k_min=10, l_min=4)
    other = frame.sample(frac=1, random_state=1).assign(person=lambda f: "x" + f["person"])
    a, b = (gd.suggest_taxonomy(tabulate(f), policy) for f in (frame, other))
    assert [s.taxonomy for s in a.frontier] == [s.taxonomy for s in b.frontier]
    assert [s.kept for s in a.frontier] == [s.kept for s in b.frontier]


def test_wishes_are_kept() -> None:
    policy = gd.Policy(k_min=10, l_min=4)
    wishes = gd.Wishes(
        join=[["v00", "v05"], ["v05", "v09"]],
        apart=[["v01", "v02"], [["v03", "v04"], "v06"]],
        names={"errands": "v05"},
        fewest=3,
        most=6,
    )
    found = gd.suggest_taxonomy(tabulate(many(5)), policy, wishes=wishes)
    assert found.frontier
    for suggestion in found.frontier:
        at = dict(suggestion.taxonomy.rows)
        assert at["v00"] == at["v05"] == at["v09"] == "errands"
        assert at["v01"] != at["v02"]
        assert at["v06"] not in (at["v03"], at["v04"])
        assert 3 <= suggestion.labels <= 6


def test_wishes_that_cannot_be_kept() -> None:
    table, policy = street(None), gd.Policy(**POLICY)
    with pytest.raises(gd.PolicyError, match="join and apart contradict each other"):
        gd.suggest_taxonomy(
            table, policy, wishes=gd.Wishes(join=[["clinic", "dentist"]], apart=[["dentist", "clinic"]])
        )
    with pytest.raises(gd.PolicyError, match=r"join: .clinics. not among the values\. Did you mean .clinic."):
        gd.suggest_taxonomy(table, policy, wishes=gd.Wishes(join=[["clinics", "dentist"]]))
    with pytest.raises(gd.PolicyError, match="expected at least 2"):
        gd.Wishes(fewest=1)


def test_a_map_of_places_is_minded() -> None:
    """Of every coarse value that holds the clinic, the map says that it is the clinic: nothing clears that cell."""
    places = gd.Places("activity", {CLUSTER: {"clinic": 1}})
    found = gd.suggest_taxonomy(street(None), gd.Policy(**POLICY, places=(places,)))
    assert max(s.cleared for s in found.frontier) == 1


def test_missing_values_and_values_without_visits_join_nothing() -> None:
    counts = {cell: {**values, None: 3} for cell, values in VISITS.items()}
    taxonomy = gd.Taxonomy.of({v: "x" for cell in VISITS.values() for v in cell} | {"museum": "y"})
    table = tabulate(counts, gd.Nominal("activity", taxonomy=taxonomy))
    found = gd.suggest_taxonomy(table, gd.Policy(**{**POLICY, "l_min": 4.5}))
    assert found.frontier
    for suggestion in found.frontier:
        at = dict(suggestion.taxonomy.rows)
        assert at["museum"] == "museum"
        assert "(missing)" not in at
        assert suggestion.labels == len(set(at.values())) - 1


def test_ordered_values_join_their_neighbours() -> None:
    rng = np.random.default_rng(2)
    order = [str(i) for i in range(9)]
    mixes = {cell: rng.multinomial(40, rng.dirichlet(np.full(9, 0.3))) for cell in ROW}
    counts = {cell: {order[v]: n for v, n in enumerate(mix) if n} for cell, mix in mixes.items()}
    table = tabulate(counts, gd.Ordinal("activity", order=order))
    found = gd.suggest_taxonomy(table, gd.Policy(k_min=10, l_min=4))
    assert found.frontier
    for suggestion in found.frontier:
        gd.Ordinal("activity", order=order, taxonomy=suggestion.taxonomy)


def test_too_few_values() -> None:
    with pytest.raises(gd.TaxonomyError, match="at least three values"):
        gd.suggest_taxonomy(tabulate({"c": {"a": 9, "b": 3}}), gd.Policy(k_min=2, l_min=2))


def test_labels_of_sensitive_values_only_are_said() -> None:
    tier = ["clinic", "pharmacy", "dentist"]
    table = street(None, sensitive=tier)
    wishes = gd.Wishes(join=[tier], apart=[[tier, ["salon", "law office", "cafe", "shop"]]])
    found = gd.suggest_taxonomy(table, gd.Policy(**{**POLICY, "l_min": 3.5}), wishes=wishes)
    assert all(s.sensitive_only == ("clinic, dentist, pharmacy",) for s in found.frontier)


def test_names_of_groups() -> None:
    values = [f"value number {i}" for i in range(9)]
    group = np.array([0, 0, 0, 0, 0, 0, 0, 1, 2])
    labels = labels_for(group, values, np.arange(9.0)[::-1].tolist(), {"last": "value number 8"})
    assert labels[0] == "value number 0, value number 1, value number 2 and 4 more"
    assert labels[7:] == ["value number 7", "last"]
    assert labels_for(np.array([0, 0, 1]), ["a", "b", "a, b"], [2, 1, 1], {})[:2] == ["a, b (2)"] * 2


def test_the_csv_is_read_back(tmp_path: Path) -> None:
    taxonomy = gd.Taxonomy.of({"Café & Bar / 24h": 'so "called", food', "gym": "sport"}, name="taxonomy")
    (tmp_path / "taxonomy.csv").write_text(taxonomy_csv(taxonomy), encoding="utf-8")
    assert gd.Taxonomy.read(tmp_path / "taxonomy.csv") == taxonomy


def counted(frame: pd.DataFrame, policy: gd.Policy, suggestion: Any) -> None:
    """What a suggestion says of itself is what scoring under it gives."""
    scores = gd.score(tabulate(frame, gd.Nominal("activity", taxonomy=suggestion.taxonomy)), policy)
    passing = scores["remedy"] != "merge_or_suppress"
    assert suggestion.kept == pytest.approx(scores.loc[passing, "persons"].sum() / scores["persons"].sum())
    assert suggestion.cleared == (scores["remedy"] == "publish_coarsened").sum()


def test_of_more_values_than_pairs_can_be_tried_what_is_said_is_counted() -> None:
    frame, policy = many(4, values=48), gd.Policy(k_min=10, l_min=11)
    found = gd.suggest_taxonomy(tabulate(frame), policy, wishes=gd.Wishes(most=20))
    assert found.frontier
    for suggestion in found.frontier:
        counted(frame, policy, suggestion)
        assert suggestion.labels <= 20


@pytest.mark.parametrize(
    ("module", "name", "most"), [("estimate", "MOST_CELLS", 3), ("suggest", "RECOUNTED", 2)]
)
def test_a_look_at_fewer_cells_or_groupings_changes_no_figure(
    module: str, name: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, policy = many(3), gd.Policy(k_min=10, l_min=4, share_max=0.5)
    whole = gd.suggest_taxonomy(tabulate(frame), policy)
    monkeypatch.setattr(f"geodiv.taxonomies.{module}.{name}", most)
    found = gd.suggest_taxonomy(tabulate(frame), policy)
    assert (found.kept_without, found.failing) == (whole.kept_without, whole.failing)
    assert found.frontier
    for suggestion in found.frontier:
        counted(frame, policy, suggestion)
    if name == "RECOUNTED":
        assert len(found.frontier) <= most


def test_a_lift_is_a_gate_like_others() -> None:
    """In the first cell a clinic is believed 3.6 times as often as elsewhere; joined with what is common it is not."""
    rest = {"cafe": 12, "shop": 12, "gym": 11, "clinic": 5}
    counts = {ROW[0]: {"cafe": 8, "shop": 8, "gym": 6, "clinic": 18}, **dict.fromkeys(ROW[2:6], rest)}
    policy = gd.Policy(k_min=10, lift_max=1.8)
    found = gd.suggest_taxonomy(tabulate(counts), policy)
    assert found.failing == 1
    assert found.best is not None
    assert found.best.kept == 1
    label = dict(found.best.taxonomy.rows)
    assert any(label[value] == label["clinic"] for value in ("cafe", "shop", "gym"))


def test_of_several_attributes_one_is_named() -> None:
    rows = many(3, values=4).assign(band="low")
    table = tabulate(rows, gd.Nominal("activity"), gd.Nominal("band"))
    with pytest.raises(gd.PolicyError, match="expected the name of one attribute, got none; there are"):
        gd.suggest_taxonomy(table, gd.Policy(k_min=10, share_max=0.5))
    with pytest.raises(gd.PolicyError, match="expected an attribute of the visits, got 'other'"):
        gd.suggest_taxonomy(table, gd.Policy(k_min=10, share_max=0.5), attribute="other")
