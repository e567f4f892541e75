"""Recount from the visits, and the truth that only the visits tell: planted faults and figures by hand."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from people import enforced, facts, visits, with_counts, with_metadata

import geodiv as gd
from geodiv import audits

EVEN = {"clinic": 6, "gym": 6, "retail": 6}
CITY = {"a": EVEN, "b": {**EVEN, "gym": 7}, "c": {"clinic": 34}}
POLICY = gd.Policy(k_min=10, l_min=2.5, residual=False)


def what(found: audits.Recount) -> set[tuple[str, str | None]]:
    return set(zip(found.mismatches["what"], found.mismatches["cell_id"], strict=True))


def put_back(made: gd.Release, cell: str, counts: dict[str, int]) -> gd.Release:
    """A release with one more zone in every table, and in the tallies of the metadata."""
    zone = made.cells.iloc[[0]].assign(cell_id=cell, members=cell, persons=sum(counts.values()))
    rows = made.counts.iloc[[0]].assign(cell_id=cell, value="clinic", persons=1, share=1.0)
    forged = replace(
        made,
        cells=pd.concat([made.cells, zone], ignore_index=True),
        counts=pd.concat([made.counts, rows], ignore_index=True),
    )
    forged = with_counts(forged, cell, counts)
    zones = len(forged.cells)
    remedies = {"publish": zones, "publish_coarsened": 0, "publish_merged": 0}
    return with_metadata(forged, zones=zones, cells=zones, remedies=remedies, reference={"global": zones})


def test_a_share_at_the_half_of_the_last_decimal_is_no_mismatch() -> None:
    frame = visits({"a": {"clinic": 13, "gym": 67}})  # 0.1625, which Python rounds up and NumPy down
    policy = gd.Policy(k_min=10, residual=False)
    made = enforced(frame, policy, count_min=1).release
    assert 0.163 in made.reference["share"].tolist()
    assert audits.recount(made, facts(frame), policy).mismatches.empty


def test_an_honest_release_is_what_the_visits_give() -> None:
    frame = visits(CITY)
    made = enforced(frame, POLICY, count_min=3).release
    found = audits.recount(made, facts(frame), POLICY)
    assert list(made.cells["cell_id"]) == ["a", "b"]
    assert not found.failed
    assert found.zones["effective"].tolist() == pytest.approx([3, gd.entropy_diversity([6, 7, 6])])


def test_a_forged_count_is_found_although_the_gates_hold() -> None:
    frame = visits(CITY)
    made = enforced(frame, POLICY).release
    found = audits.recount(with_counts(made, "a", {"clinic": 5, "gym": 7, "retail": 6}), facts(frame), POLICY)
    assert not len(found.broken)
    rows = found.mismatches.set_index("value").loc[["clinic", "gym"]]
    assert rows["published"].tolist() == [5, 7]
    assert rows["counted"].tolist() == [6, 6]


def test_a_suppressed_zone_put_back_fails_its_gates() -> None:
    frame = visits(CITY)
    made = enforced(frame, POLICY).release
    found = audits.recount(put_back(made, "c", {"clinic": 34}), facts(frame), POLICY)
    assert found.broken.to_dict("records") == [{"cell_id": "c", "attribute": "poi", "gate": "l_min"}]
    assert {name for name, _ in what(found)} >= {
        "metadata: not_published",
        "metadata: coverage",
        "metadata: persons",
    }


def test_where_nothing_is_published_nothing_is_left_to_subtract() -> None:
    """Both cells fail, and all of them together are below l_min too: the release is empty, and honest."""
    frame = visits({"a": {"clinic": 34, "gym": 1}, "b": {"clinic": 30, "gym": 1}})
    policy = gd.Policy(k_min=10, l_min=2)
    made = enforced(frame, policy).release
    assert made.cells.empty
    assert not audits.recount(made, facts(frame), policy).failed


@pytest.mark.parametrize("reference", [gd.Global(), gd.Ring(order=1, min_persons=1)])
def test_where_no_cell_has_k_persons_no_zone_has_a_reference(reference: gd.Global | gd.Ring) -> None:
    one, other = "88196352e9fffff", "88196352edfffff"
    frame = visits({one: {"clinic": 2, "gym": 1}, other: {"gym": 1, "retail": 2}})
    policy = gd.Policy(k_min=5, l_min=2, reference=reference, residual=False)
    made = enforced(frame, policy).release
    assert made.cells["poi_reference"].tolist() == ["none"]
    assert not audits.recount(made, facts(frame), policy).failed


def test_a_zone_suppressed_for_the_rest_put_back_leaves_a_rest_that_is_not_safe() -> None:
    """c fails; a goes with it, so that the two together are diverse. With a put back c can be told by subtraction."""
    policy = gd.Policy(k_min=10, l_min=2, residual=True)
    frame = visits({"a": EVEN, "b": {**EVEN, "gym": 7}, "c": {"clinic": 12}})
    made = enforced(frame, policy).release
    assert list(made.cells["cell_id"]) == ["b"]
    assert audits.recount(made, facts(frame), policy).residual == ()
    found = audits.recount(put_back(made, "a", EVEN), facts(frame), policy)
    assert not len(found.broken)
    assert found.residual == ("a single eligible cell is left out", "poi: what is left out is below l_min")


def test_an_unpublished_cell_in_another_table_of_the_file_is_found(tmp_path: Path) -> None:
    cells = {
        "88196352e9fffff": EVEN,
        "88196352edfffff": {**EVEN, "gym": 7},
        "881963503bfffff": {"clinic": 34},
    }
    frame, grid = visits(cells), gd.H3Grid(8, column="cell")
    made = enforced(
        frame, gd.Policy(k_min=10, l_min=2.5, ladder=("suppress",), residual=False), grid=grid
    ).release
    file = tmp_path / "release.gpkg"
    made.to_file(file)
    policy = gd.Policy(k_min=10, l_min=2.5, ladder=("suppress",), residual=False)
    known = facts(frame, grid=grid)
    assert not audits.recount(gd.read_release(file), known, policy, file=file).failed
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE notes (remark TEXT)")
        database.execute("INSERT INTO notes VALUES ('see 881963503bfffff')")
    found = audits.recount(gd.read_release(file), known, policy, file=file)
    assert what(found) == {("unpublished cell in the file", "881963503bfffff")}


def test_a_reader_with_a_map_is_decided_too() -> None:
    """Classes of two values each, even: L 4. A map shows clinics and gyms only in a: there the belief is two values."""
    classes = gd.Taxonomy.of({"clinic": "errand", "retail": "errand", "gym": "leisure", "cafe": "leisure"})
    attribute = gd.Nominal("poi", taxonomy=classes, level=1)
    even = {"clinic": 6, "retail": 6, "gym": 6, "cafe": 6}
    frame = visits({"a": even, "b": even})
    made = enforced(frame, gd.Policy(k_min=10, l_min=3, residual=False), attribute).release
    places = gd.policy.Places(
        "poi", {"a": {"clinic": 2, "gym": 1}, "b": {"retail": 1, "clinic": 1, "gym": 1, "cafe": 1}}
    )
    policy = gd.Policy(k_min=10, l_min=3, residual=False, places=(places,))
    found = audits.recount(made, facts(frame, attribute), policy)
    assert found.broken.to_dict("records") == [{"cell_id": "a", "attribute": "poi", "gate": "l_min"}]
    assert what(found) == {("policy: places", None)}


def test_a_global_mix_that_tells_the_suppressed_zone_is_found() -> None:
    """Taking a and b off the mix leaves c, the clinic: the release keeps it back, and who puts it in is found."""
    frame = visits(CITY)
    made = enforced(frame, POLICY).release
    assert not len(made.reference)
    shares = [46 / 71, 13 / 71, 12 / 71]
    mix = pd.DataFrame(
        {"attribute": "poi", "level": 0, "value": ["clinic", "gym", "retail"], "share": shares}
    ).round(3)
    found = audits.recount(replace(made, reference=mix), facts(frame), POLICY)
    assert what(found) == {("global mix tells a zone", None)}


def test_another_policy_is_named() -> None:
    frame = visits(CITY)
    made = enforced(frame, POLICY).release
    found = audits.recount(made, facts(frame), gd.Policy(k_min=10, l_min=2.9, residual=False))
    assert what(found) == {("policy: gates", None)}
    stricter = audits.recount(made, facts(frame), gd.Policy(k_min=19, l_min=2.5, residual=False))
    assert stricter.broken["gate"].tolist() == ["k_min"]


def test_an_attribute_that_was_not_read_is_an_error() -> None:
    frame = visits(CITY).assign(other="x")
    made = enforced(frame, POLICY).release
    with pytest.raises(gd.SourceError, match="without it"):
        audits.recount(made, facts(frame, gd.Nominal("other")), POLICY)


def test_the_best_guess_by_hand() -> None:
    """All: clinic 40, gym 26, retail 6, so the prior's guess is the clinic. a: 6/18 by either guess; b, all 20 at the
    gym: 1 against 0; c, all 34 at the clinic: 1 by either."""
    frame = visits({"a": EVEN, "b": {"gym": 20}, "c": {"clinic": 34}})
    made = enforced(frame, POLICY).release
    assert list(made.cells["cell_id"]) == ["a"]
    overall = audits.truth(made, facts(frame), POLICY).overall.set_index("stage")
    before = (6 + 20 + 34) / 72
    prior = (6 + 0 + 34) / 72
    assert overall.loc["before", ["success", "prior_success", "advantage"]].tolist() == pytest.approx(
        [before, prior, before - prior]
    )
    assert overall.loc["before", ["worst_zone", "worst_success", "worst_prior"]].tolist() == ["b", 1.0, 0.0]
    assert overall.loc["after", ["zones", "success", "prior_success"]].tolist() == pytest.approx(
        [1, 1 / 3, 1 / 3]
    )


def test_a_person_with_two_values_is_guessed_right_by_either() -> None:
    frame = pd.DataFrame({"who": [*range(10), *range(10)], "cell": "a", "poi": ["bar"] * 10 + ["gym"] * 10})
    made = enforced(frame, gd.Policy(k_min=10, residual=False)).release
    overall = audits.truth(made, facts(frame), gd.Policy(k_min=10, residual=False)).overall
    assert overall["success"].tolist() == [1.0, 1.0]


def test_facts_count_persons_once() -> None:
    """15 persons at the shop, 5 of them in transit too, 4 at the food hall; each came twice."""
    rows = (
        [(i, "shop") for i in range(15)]
        + [(i, "transit") for i in range(5)]
        + [(i, "food") for i in range(4)]
    )
    frame = pd.DataFrame([*rows, *rows], columns=["who", "poi"]).assign(cell="a")
    known = facts(frame)
    zone = np.zeros(1, dtype=np.int64)
    assert known.persons(zone, 1).tolist() == [15]
    assert known.spaces[0].values == ("food", "shop", "transit")
    assert known.counts(0, 0, zone, 1).tolist() == [[4, 15, 5]]
    assert known.visits(0, zone, 1).tolist() == [[8, 30, 10]]


def test_members_that_nobody_visited_and_persons_that_were_not_counted() -> None:
    frame = visits(CITY)
    made = enforced(frame, POLICY).release
    cells = made.cells.copy()
    cells.loc[0, ["members", "n_members"]] = ["a z", 2]
    cells.loc[1, "persons"] = 20
    found = audits.recount(replace(made, cells=cells), facts(frame), POLICY).mismatches
    rows = found.set_index("what")
    assert rows.loc["member without a visit", ["cell_id", "value"]].tolist() == ["a", "z"]
    assert rows.loc["persons", ["cell_id", "published", "counted"]].tolist() == ["b", 20, 19]


def test_labels_references_effective_counts_and_a_mix_that_the_visits_do_not_give() -> None:
    frame = visits({"a": EVEN, "b": {**EVEN, "gym": 7}})
    made = enforced(frame, POLICY).release
    assert not audits.recount(made, facts(frame), POLICY).failed
    assert made.reference["share"].tolist() == pytest.approx([12 / 37, 13 / 37, 12 / 37], abs=5e-4)

    def mismatches(forged: gd.Release) -> list[tuple[object, ...]]:
        rows = audits.recount(forged, facts(frame), POLICY).mismatches
        columns = ["what", "cell_id", "value", "published", "counted"]
        return list(rows[columns].itertuples(index=False, name=None))

    scope = replace(made, cells=made.cells.assign(poi_reference=["ring:1", "global"]))
    assert mismatches(scope) == [("reference", "a", None, "ring:1", "global")]
    flat = replace(made, cells=made.cells.assign(poi_effective=[3.0, 2.5]))
    ((what_, cell, _, said, counted),) = mismatches(flat)
    assert (what_, cell, said) == ("effective", "b", 2.5)
    assert counted == pytest.approx(gd.entropy_diversity([6, 7, 6]))
    mix = replace(made, reference=made.reference.assign(share=[0.324, 0.352, 0.324]))
    assert mismatches(mix) == [("global mix", None, "gym", 0.352, 0.351)]
    other = replace(made, reference=made.reference.assign(value=["clinic", "spa", "retail"]))
    assert mismatches(other) == [("global mix", None, "spa", 0.351, None)]
    record = made.metadata["attributes"][0]
    turned = with_metadata(made, attributes=[{**record, "levels": [["gym", "clinic", "retail"]]}])
    assert ("labels", None) in what(audits.recount(turned, facts(frame), POLICY))


def test_counts_that_are_hidden_without_need_or_shown_against_the_rule() -> None:
    """With count_min 3 a zone of 10, 8, 2, 6 hides the 2 and the next smallest, the 6."""
    mix = {"clinic": 10, "gym": 8, "cafe": 2, "retail": 6}
    frame = visits({"a": mix, "b": {**mix, "cafe": 6}})
    made = enforced(frame, POLICY, count_min=3).release
    hidden = made.counts[made.counts["persons"].isna()]
    assert list(zip(hidden["cell_id"], hidden["value"], strict=True)) == [("a", "cafe"), ("a", "retail")]
    assert not audits.recount(made, facts(frame), POLICY).failed

    def mismatches(counts: dict[str, int | None]) -> list[tuple[object, ...]]:
        found = audits.recount(with_counts(made, "a", counts), facts(frame), POLICY).mismatches
        return list(
            found[["what", "cell_id", "value", "published", "counted"]].itertuples(index=False, name=None)
        )

    more = {"clinic": 10, "gym": None, "cafe": None, "retail": None}
    assert mismatches(more) == [("hidden without need", "a", "gym", None, 8)]
    shown = {"clinic": 10, "gym": 8, "cafe": None, "retail": 6}
    assert mismatches(shown) == [("shown, to be hidden", "a", "retail", 6, 6)]
    absent = {"clinic": 10, "gym": 8, "retail": None}
    assert mismatches(absent) == [("shown, to be hidden", "a", "cafe", None, 2)]
    invented = {"clinic": 10, "gym": 8, "cafe": None, "retail": None, "spa": None}
    assert mismatches(invented) == [("label", "a", "spa", None, 0)]


def test_an_empty_release_is_recounted_and_has_no_best_guess() -> None:
    frame = visits({"c": {"clinic": 34}, "d": {"clinic": 30, "gym": 1}})
    policy = gd.Policy(k_min=10, l_min=1.9)
    made = enforced(frame, policy).release
    assert len(made.cells) == 0
    assert not len(audits.recount(made, facts(frame), policy).mismatches)
    after = audits.truth(made, facts(frame), policy).overall.set_index("stage").loc["after"]
    assert after["zones"] == 0
    assert np.isnan(after[["success", "prior_success", "advantage"]].astype(float)).all()
    assert pd.isna(after["worst_zone"])


def test_a_file_that_is_no_geopackage_is_an_error(tmp_path: Path) -> None:
    frame = visits(CITY)
    made = enforced(frame, POLICY).release
    (tmp_path / "release.gpkg").write_text("cell_id,persons\n" * 100)
    with pytest.raises(gd.SourceError, match="expected a GeoPackage"):
        audits.recount(made, facts(frame), POLICY, file=tmp_path / "release.gpkg")


def test_a_rest_in_which_everybody_did_the_same_is_not_safe() -> None:
    """c and d: 24 persons, all at the clinic and the gym. Of everybody 24 of 60 were at the clinic: .4."""
    both = [(f"{cell}{i}", cell, value) for cell in "cd" for i in range(12) for value in ("clinic", "gym")]
    rest = visits({"a": {"gym": 9, "retail": 9}, "b": {"gym": 9, "retail": 9}})
    frame = pd.concat([rest, pd.DataFrame(both, columns=rest.columns)], ignore_index=True)
    policy = gd.Policy(k_min=10, l_min=1.9, incidence_max=0.8)
    made = enforced(frame, gd.Policy(k_min=10, l_min=1.9, incidence_max=0.8, residual=False)).release
    assert list(made.cells["cell_id"]) == ["a", "b"]
    found = audits.recount(made, facts(frame), policy)
    assert found.residual == ("poi: what is left out is above incidence_max",)
    limit = gd.Policy(k_min=10, l_min=1.9, incidence_max=1.0)
    assert audits.recount(made, facts(frame), limit).residual == ()


def test_a_rest_in_which_everybody_did_something_sensitive_is_not_safe() -> None:
    """In c and d a third is at the clinic, a third at the lab and a third in the ward: all 24 did one of these."""
    care = {"clinic": 4, "lab": 4, "ward": 4}
    frame = visits({"a": {"gym": 9, "bar": 9}, "b": {"gym": 9, "bar": 9}, "c": care, "d": care})
    poi = gd.Nominal("poi", sensitive=["clinic", "lab", "ward"])
    loose = {"k_min": 10, "l_min": 1.9, "ladder": ("suppress",)}
    made = enforced(frame, gd.Policy(**loose, tier_incidence_max=0.8, residual=False), poi).release
    assert list(made.cells["cell_id"]) == ["a", "b"]
    found = audits.recount(made, facts(frame, poi), gd.Policy(**loose, tier_incidence_max=0.8))
    assert found.residual == ("poi: what is left out is above tier_incidence_max",)


def test_weights_of_a_graph_are_the_same_whatever_holds_them() -> None:
    """A ring of four cells with numbers for ids; one edge, and it weighs twice, to a cell that nobody else sees."""
    from libpysal.graph import Graph
    from libpysal.weights import W

    mixes = [{"gym": 9, "bar": 3}, {"gym": 3, "bar": 9}, {"gym": 6, "bar": 6}, {"gym": 8, "bar": 4}]
    frame = visits({str(i + 1): mix for i, mix in enumerate(mixes)})
    near = {1: [2, 3], 2: [1], 3: [1, 4], 4: [3]}
    weight = {1: [2.0, 1.0], 2: [2.0], 3: [1.0, 1.0], 4: [1.0]}
    pairs = [(f, n, w) for f in near for n, w in zip(near[f], weight[f], strict=True)]
    graph = Graph.from_arrays(*(list(column) for column in zip(*pairs, strict=True)))
    told = []
    for form in (graph, W(near, weight, silence_warnings=True), W({float(f): near[f] for f in near}, weight)):
        policy = gd.Policy(k_min=10, t_max=0.6, reference=gd.Weights(form, min_persons=1), residual=False)
        made = enforced(frame, policy).release
        found = audits.recount(made, facts(frame), policy)
        assert not found.failed
        told.append(found.zones.set_index("cell_id")["distance"])
    assert told[0]["1"] == pytest.approx(abs(9 / 12 - (2 * 3 + 6) / (2 * 12 + 12)))
    assert told[0]["2"] == pytest.approx(abs(3 / 12 - 9 / 12))
    pd.testing.assert_series_equal(told[0], told[1])
    pd.testing.assert_series_equal(told[0], told[2])
