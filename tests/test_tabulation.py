"""Counting people: distinct persons of cells, labels and zones, counted again for every partition."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import World, worlds

import geodiv as gd
from geodiv import tabulation
from geodiv.measures import effective_count, shares


def frame(rows: list[tuple[Any, ...]], *columns: str) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["cell", "person", *(columns or ["activity"])])


def tabulate(visits: pd.DataFrame, *attributes: Any, **keywords: Any) -> gd.Tabulation:
    attributes = attributes or (gd.Nominal("activity"),)
    return gd.tabulate(visits, grid=gd.ColumnGrid("cell"), person="person", attributes=attributes, **keywords)


def dense(table: gd.Tabulation, counts: Any = None, attribute: int = 0, level: int = 0) -> Any:
    return (counts or table.base).labels[attribute][level].todense().tolist()


def members(*zones: list[int], cells: int) -> sparse.csr_array:
    return sparse.csr_array([[float(c in zone) for c in range(cells)] for zone in zones])


# --- worked examples ------------------------------------------------------------------------------------------


def test_persons_are_counted_once_whatever_they_did() -> None:
    """15 persons, all at the shop, 5 in transit too, 4 for food too."""
    rows = [("c", f"p{i}", "shop") for i in range(15)]
    rows += [("c", f"p{i}", "transit") for i in range(5)] + [("c", f"p{i}", "food") for i in range(3, 7)]
    table = tabulate(frame(rows))
    assert table.spaces[0].values == ("food", "shop", "transit")
    assert table.persons.tolist() == [15]
    assert dense(table) == [[4, 15, 5]]
    found = gd.score(table, gd.Policy(k_min=10))
    assert found["incidence"].tolist() == [1.0]
    assert (found["top_value"].tolist(), found["top_share"].tolist()) == (["shop"], [0.625])


def test_a_coarse_label_is_counted_again_and_not_summed() -> None:
    rows = [("c", f"p{i}", v) for i in range(10) for v in ("clinic", "pharmacy")]
    rows += [("c", f"q{i}", "retail") for i in range(10)]
    taxonomy = gd.Taxonomy([("clinic", "health"), ("pharmacy", "health"), ("retail", "retail")])
    table = tabulate(frame(rows), gd.Nominal("activity", taxonomy))
    assert dense(table, level=1) == [[10, 10]]
    assert effective_count(shares(dense(table, level=1)))[0] == pytest.approx(2.0)
    assert effective_count(shares([20, 10])) == pytest.approx(1.8899, abs=1e-4)


def test_a_union_is_counted_again_and_not_summed() -> None:
    """(A10, B10) and (A10, B10) with the same B persons: 2.00 each, together (A20, B10) and 1.890."""
    rows = [("c1", f"p{i}", "A") for i in range(10)] + [("c2", f"q{i}", "A") for i in range(10)]
    rows += [(cell, f"b{i}", "B") for cell in ("c1", "c2") for i in range(10)]
    table = tabulate(frame(rows))
    assert effective_count(shares(dense(table))).tolist() == pytest.approx([2.0, 2.0])
    union = table.recount(table.start().merge(members([0, 1], cells=2)))
    assert union.persons.tolist() == [30]
    assert dense(table, union) == [[20, 10]]
    assert effective_count(shares(dense(table, union)))[0] == pytest.approx(1.890, abs=5e-4)


@pytest.mark.parametrize(
    "nothing",
    [None, float("nan"), pd.NA, "", "-999", "Unknown"],
)
@pytest.mark.parametrize("dtype", [object, "string", "category"])
def test_missing_is_a_value_of_its_own(nothing: Any, dtype: Any) -> None:
    values = pd.Series(["clinic"] * 6 + [nothing] * 5, dtype=object).astype(dtype)
    visits = pd.DataFrame({"cell": "c", "person": range(11), "activity": values})
    table = tabulate(visits, gd.Nominal("activity", missing=["", -999, "Unknown"]))
    assert table.spaces[0].values == ("clinic", "(missing)")
    assert (table.persons.tolist(), dense(table)) == ([11], [[6, 5]])
    assert gd.score(table, gd.Policy()).effective_fine[0] == pytest.approx(1.99, abs=0.005)


def test_a_visit_without_a_person_is_tallied() -> None:
    visits = frame([("c", "p1", "a"), ("c", None, "a"), ("c", float("nan"), "b"), ("c", "p2", "b")])
    table = tabulate(visits, on_bad_rows="skip")
    assert table.persons.tolist() == [2]
    assert table.intake.dropped == {"no person": 2}
    with pytest.raises(gd.SourceError, match="no person"):
        tabulate(visits)


def test_values_and_persons_are_compared_as_text() -> None:
    visits = pd.DataFrame({"cell": ["c"] * 4, "person": [1, 1.0, 2, 3], "activity": [1.0, 1, "1", True]})
    table = tabulate(visits.astype({"person": object, "activity": object}))
    assert table.spaces[0].values == ("1", "true")
    assert (table.persons.tolist(), dense(table)) == ([3], [[2, 1]])


def test_values_that_differ_in_case_are_two_values() -> None:
    table = tabulate(frame([("c", "p", "work"), ("c", "p", "Work")]))
    assert table.spaces[0].values == ("Work", "work")


def test_cells_are_sorted_by_id_as_text() -> None:
    table = tabulate(frame([("c10", "p", "a"), ("c9", "p", "a"), ("C1", "p", "a")]))
    assert table.cells.tolist() == ["C1", "c10", "c9"]


def test_several_attributes_are_counted_each_on_its_own() -> None:
    rows = [("c", "p1", "a", 3), ("c", "p2", "b", 14), ("c", "p2", "b", 3), ("d", "p1", "a", 20)]
    table = tabulate(
        frame(rows, "activity", "income"), gd.Nominal("activity"), gd.Numeric("income", edges=[0, 10, 20])
    )
    assert table.spaces[1].values == ("[0, 10)", "[10, 20]")
    assert dense(table, attribute=0) == [[1, 1], [1, 0]]
    assert dense(table, attribute=1) == [[2, 1], [0, 1]]


def test_input_rows_are_kept_beside_the_persons() -> None:
    table = tabulate(frame([("c", "p1", "a")] * 3 + [("c", "p2", "a"), ("d", "p1", "b")]))
    assert table.visits[0].todense().tolist() == [[4, 0], [0, 1]]


def test_no_visits_at_all() -> None:
    table = tabulate(frame([]).astype(str))
    assert (len(table.cells), table.persons.tolist(), table.intake.rows) == (0, [], 0)
    assert gd.score(table, gd.Policy(l_min=3)).empty


def test_no_attribute_is_an_error() -> None:
    with pytest.raises(gd.PolicyError, match="at least one"):
        gd.tabulate(frame([]), grid=gd.ColumnGrid("cell"), person="person", attributes=[])


def test_attributes_that_differ_in_case_only_are_an_error() -> None:
    visits = frame([("c", "p", "a", "b")], "Activity", "activity")
    with pytest.raises(gd.PolicyError, match="different columns"):
        tabulate(visits, gd.Nominal("Activity"), gd.Nominal("activity"))


def test_an_unknown_engine_is_an_error() -> None:
    with pytest.raises(gd.UsageError, match="engine"):
        tabulate(frame([("c", "p", "a")]), engine="postgres")


def test_the_callers_frame_is_never_written_to() -> None:
    visits = frame([("c", "p1", None), ("d", "p2", "a")])
    before = visits.copy(deep=True)
    gd.score(tabulate(visits), gd.Policy(k_min=1))
    pd.testing.assert_frame_equal(visits, before)


def test_a_tabulation_does_not_show_persons() -> None:
    table = tabulate(frame([("c", "a-secret-person", "a")]))
    assert repr(table) == "<Tabulation of 1 column cells, activity>"
    assert "secret" not in str(dataclasses.asdict(table.intake))


def test_progress_is_told() -> None:
    heard: list[tuple[str, int, int]] = []
    tabulate(frame([("c", "p", "a")]), progress=lambda *step: heard.append(step))
    assert ("count", 1, 1) in heard


# --- laws -----------------------------------------------------------------------------------------------------


def counted(table: gd.Tabulation) -> list[Any]:
    return [
        table.cells.tolist(),
        table.persons.tolist(),
        *(level.todense().tolist() for levels in table.base.labels for level in levels),
    ]


def of(world: World, visits: pd.DataFrame | None = None) -> gd.Tabulation:
    visits = world.visits_frame() if visits is None else visits
    return gd.tabulate(visits, grid=world.grid(), person="person", attributes=world.attributes())


@given(world=worlds(), seed=st.integers(0, 999))
def test_repeats_order_and_names_change_nothing(world: World, seed: int) -> None:
    visits = world.visits_frame()
    other = pd.concat([visits, visits.sample(frac=0.5, random_state=seed)], ignore_index=True)
    other = other.sample(frac=1, random_state=seed)
    names = other["person"].unique()
    renamed = np.random.default_rng(seed).permutation(len(names))
    other["person"] = other["person"].map(dict(zip(names, renamed, strict=True)))
    assert counted(of(world, other)) == counted(of(world))


@st.composite
def partitions(draw: st.DrawFn, cells: int) -> list[list[int]]:
    label = draw(st.lists(st.integers(0, 3), min_size=cells, max_size=cells))
    return [[c for c in range(cells) if label[c] == z] for z in sorted(set(label))]


@given(world=worlds(), data=st.data())
def test_counts_of_zones_are_those_of_sets_of_persons(world: World, data: st.DataObject) -> None:
    """Counted again from the visits themselves, in plain sets; and persons lie between max and sum."""
    table = of(world)
    zones = data.draw(partitions(len(table.cells)))
    counts = table.count(members(*zones, cells=len(table.cells)))
    position = {cell: i for i, cell in enumerate(table.cells)}
    for row, zone in enumerate(zones):
        inside = [v for v in world.visits if position[v[0]] in zone]
        assert counts.persons[row] == len({person for _, person, _ in inside})
        assert table.persons[zone].max() <= counts.persons[row] <= table.persons[zone].sum()
        for a, space in enumerate(table.spaces):
            for level, labels in enumerate(space.levels):
                found = dict(zip(labels, counts.labels[a][level][[row]].todense()[0], strict=True))
                held: dict[str, set[Any]] = {label: set() for label in labels}
                for _, person, raw in inside:
                    held[labels[space.up[level][_code(world, a, raw[a], space)]]].add(person)
                assert found == {label: len(persons) for label, persons in held.items()}


def _code(world: World, attribute: int, raw: Any, space: Any) -> int:
    subject = world.subjects[attribute]
    value = subject.value(raw)
    text = "(missing)" if value is None or str(value) in subject.declared.missing else str(value)
    return space.values.index(text)


@given(world=worlds(), data=st.data())
def test_counting_what_changed_is_counting_all(world: World, data: st.DataObject) -> None:
    table = of(world)
    cells = len(table.cells)
    first = table.start().merge(members(*data.draw(partitions(cells)), cells=cells))
    known = table.recount(first)
    coarser = data.draw(st.lists(st.integers(0, len(first.zones) - 1), min_size=1, max_size=3))
    second = first.merge(
        members([c for c in range(cells) if first.zone[c] in first.zones[coarser]], cells=cells)
    )
    for plan in (first, second, table.start()):
        quick, full = table.recount(plan, known), table.recount(plan)
        assert quick.persons.tolist() == full.persons.tolist()
        assert (quick.members != full.members).nnz == 0
        for mine, theirs in zip(quick.labels, full.labels, strict=True):
            assert all((a != b).nnz == 0 for a, b in zip(mine, theirs, strict=True))


def test_arrays_of_a_plan_cannot_be_written() -> None:
    plan = tabulate(frame([("c", "p", "a")])).start()
    with pytest.raises(ValueError, match="read-only"):
        plan.zone[0] = 1


def test_other_labels_are_counted_again() -> None:
    rows = [("c", f"p{i}", value) for i in range(3) for value in ("a", "b")] + [
        ("c", "q", "b"),
        ("d", "q", "a"),
    ]
    attributes = [gd.Nominal("activity", taxonomy=gd.Taxonomy.of(dict(zip("abx", names, strict=True))))
                  for names in (("a", "b", "b"), ("ab", "ab", "x"))]  # fmt: skip
    first, second = (tabulate(frame(rows), attribute) for attribute in attributes)
    other = first.relabelled(second.spaces)
    assert dense(other, level=1) == dense(second, level=1) == [[4, 0], [1, 0]]
    assert dense(first, level=1) == [[3, 4], [1, 0]]
    assert other.base.persons.tolist() == [4, 1]


def test_outlines_are_made_once_and_cannot_be_written() -> None:
    table = gd.tabulate(
        pd.DataFrame({"lon": [2.35], "lat": [48.85], "person": ["p"], "activity": ["shop"]}),
        grid=gd.H3Grid(9),
        person="person",
        attributes=[gd.Nominal("activity")],
    )
    outlines = table.geometry()
    assert table.geometry() is outlines
    assert outlines[0].equals(table.grid.geometry(table.keys)[0])
    with pytest.raises(ValueError, match="read-only"):
        outlines[0] = None
    assert tabulate(frame([("c", "p", "shop")])).geometry() is None


@given(st.lists(st.integers(0, 20), max_size=30), st.integers(21, 400))
def test_codes_are_grouped_as_by_sorting(codes: list[int], size: int) -> None:
    array = np.array(codes, dtype=np.int64)
    expected = np.unique(array, return_inverse=True, return_counts=True)
    for found, right in zip(tabulation._grouped(array, size), expected, strict=True):
        assert found.tolist() == right.tolist()
