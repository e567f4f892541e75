"""The fixture city is made again the same, holds what its README says, and its policy shows every remedy."""

from __future__ import annotations

import importlib.util
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import doggerton
import h3
import oracles
import pandas as pd
import pyarrow.parquet as pq
import pytest
from doggerton import FIXTURES

import geodiv as gd


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_fixture", FIXTURES / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up by name while they are built
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def policy() -> dict[str, Any]:
    return doggerton.policy()


@pytest.fixture(scope="module")
def taxonomy() -> list[tuple[str, ...]]:
    return doggerton.taxonomy()


@pytest.fixture(scope="module")
def visits() -> pd.DataFrame:
    return doggerton.visits()


@pytest.fixture(scope="module")
def by_letter(generator: ModuleType) -> dict[str, list[str]]:
    cells: dict[str, list[str]] = defaultdict(list)
    for cell, letter in generator.town():
        cells[letter].append(cell)
    return cells


def test_making_it_again_gives_the_same_table(generator: ModuleType) -> None:
    again, stored = generator.visits(), pq.read_table(FIXTURES / "visits.parquet")
    assert again.cast(stored.schema).equals(stored)


def test_the_same_writer_gives_the_same_bytes(generator: ModuleType, tmp_path: Path) -> None:
    table = generator.visits()
    generator.write(table, tmp_path / "a.parquet")
    generator.write(generator.visits(), tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_all_files_together_are_small() -> None:
    assert sum(path.stat().st_size for path in FIXTURES.iterdir() if path.is_file()) < 200_000


def test_size_of_the_town(visits: pd.DataFrame) -> None:
    assert visits.person_id.nunique() == 797
    assert visits.cell.nunique() == 92
    assert 8_000 <= len(visits) <= 12_000


def test_eight_rows_cannot_be_counted_for_three_reasons() -> None:
    table = pq.read_table(FIXTURES / "visits.parquet").to_pandas()
    assert table.person_id.isna().sum() == 3
    assert (table.lon.isna() & table.lat.isna()).sum() == 3
    assert (table.lat.abs() > 90).sum() == 2


def test_every_value_is_declared(
    visits: pd.DataFrame, policy: dict[str, Any], taxonomy: list[tuple[str, ...]]
) -> None:
    poi, income = policy["attribute"]
    assert set(visits.poi_category.dropna()) == {row[0] for row in taxonomy[1:]} | set(poi["missing"])
    assert set(visits.income_band.dropna()) == set(income["order"])
    assert visits.income_band.isna().any()


def test_classes_mix_activities_that_share_streets(
    visits: pd.DataFrame, taxonomy: list[tuple[str, ...]]
) -> None:
    classes = defaultdict(set)
    for value, label in taxonomy[1:]:
        classes[label].add(value)
    old_town = visits.groupby("cell").poi_category.agg(set)
    for values in classes.values():
        assert len(values) >= 3
        assert old_town.map(lambda found, values=values: values <= found).any()


def test_persons_hold_several_values_in_one_cell(visits: pd.DataFrame) -> None:
    values = visits.groupby(["cell", "person_id"]).poi_category.nunique()
    assert (values > 1).mean() > 0.2


def test_regulars_make_the_rows_of_the_minster_look_diverse(
    visits: pd.DataFrame, by_letter: dict[str, list[str]]
) -> None:
    minster = visits[visits.cell == by_letter["W"][0]]
    rows = minster.poi_category.value_counts(normalize=True)
    persons = minster.drop_duplicates(["person_id", "poi_category"]).poi_category.value_counts(normalize=True)
    assert rows["worship"] < 0.5 < 0.75 < persons["worship"]


def test_the_pier_has_no_neighbour(visits: pd.DataFrame, by_letter: dict[str, list[str]]) -> None:
    pier = by_letter["P"][0]
    assert set(h3.grid_disk(pier, 3)) & set(visits.cell) == {pier}


def test_a_facility_gives_its_activity_away(visits: pd.DataFrame) -> None:
    known = visits[visits.poi_category.notna() & ~visits.poi_category.isin(["", "Unknown"])]
    assert known.groupby("facility_id").poi_category.nunique().max() == 1


def test_a_person_has_one_income(visits: pd.DataFrame) -> None:
    assert visits.groupby("person_id").income_band.nunique().max() == 1


def test_the_plan_in_the_readme_is_the_one_that_was_built(generator: ModuleType) -> None:
    assert generator.TOWN.strip() in (FIXTURES / "README.md").read_text(encoding="utf-8")


# --- The story that the policy tells, by the brute-force oracle


@pytest.fixture(scope="module")
def outcome() -> oracles.Outcome:
    return oracles.enforce(doggerton.table())


def fate(outcome: oracles.Outcome, cell: str) -> str:
    zone = next((z for z in outcome.published if cell in z.members), None)
    return oracles.remedy(zone) if zone else "not published"


def fails(outcome: oracles.Outcome, cell: str, column: str) -> str:
    row = next(r for r in outcome.scores if r["cell_id"] == cell and r["attribute"] == column)
    return str(row["fails"])


def test_every_remedy_occurs_and_most_cells_need_none(outcome: oracles.Outcome) -> None:
    remedies = outcome.metadata["remedies"]
    assert remedies == {"publish": 53, "publish_coarsened": 12, "publish_merged": 12}
    assert outcome.metadata["not_published"] == 3
    assert round(outcome.coverage, 2) == 0.97


@pytest.mark.parametrize(
    ("letter", "column", "gate", "expected"),
    [
        ("H", "poi_category", "l_min", "not published"),
        ("H", "poi_category", "incidence_max", "not published"),
        ("M", "poi_category", "incidence_max", "publish_merged"),
        ("W", "poi_category", "incidence_max", "publish_merged"),
        ("Y", "income_band", "l_min", "publish_merged"),
        ("x", "poi_category", "shift_max", "publish_merged"),
        ("C", "poi_category", "l_min", "publish_coarsened"),
    ],
)
def test_fate_of_the_landmarks(
    outcome: oracles.Outcome,
    by_letter: dict[str, list[str]],
    letter: str,
    column: str,
    gate: str,
    expected: str,
) -> None:
    cell = by_letter[letter][0]
    assert gate in fails(outcome, cell, column)
    assert fate(outcome, cell) == expected


def test_clustered_trades_are_cleared_by_their_class(
    outcome: oracles.Outcome, by_letter: dict[str, list[str]]
) -> None:
    fates = [fate(outcome, cell) for letter in "cslfoa" for cell in by_letter[letter]]
    assert fates.count("publish_coarsened") > len(fates) / 2


def test_the_pier_is_published_against_the_whole_town(
    outcome: oracles.Outcome, by_letter: dict[str, list[str]]
) -> None:
    assert fate(outcome, by_letter["P"][0]) == "publish"
    assert outcome.metadata["reference"]["global"] == 1


def test_the_hospital_is_not_the_only_eligible_cell_left_out(outcome: oracles.Outcome) -> None:
    out = {cell for zone in outcome.published for cell in zone.members}
    eligible = {row["cell_id"] for row in outcome.scores if row["persons"] >= 10}
    assert len(eligible - out) >= 2


# --- The same story, by geodiv


@pytest.fixture(scope="module")
def enforced() -> gd.Outcome:
    return gd.read_run(FIXTURES / "policy.toml").enforce(FIXTURES / "visits.parquet")


def test_geodiv_publishes_the_zones_of_the_oracle(enforced: gd.Outcome, outcome: oracles.Outcome) -> None:
    cells = enforced.release.cells
    found = {
        frozenset(members.split()): remedy
        for members, remedy in zip(cells.members, cells.remedy, strict=True)
    }
    assert found == {zone.members: oracles.remedy(zone) for zone in outcome.published}


def test_geodiv_tells_every_remedy_and_the_rows_it_could_not_count(enforced: gd.Outcome) -> None:
    told = enforced.release.metadata
    assert told["remedies"] == {"publish": 53, "publish_coarsened": 12, "publish_merged": 12}
    assert (told["not_published"], told["coverage"]) == (3, 0.97)
    assert told["dropped"] == {"no person": 3, "no coordinate": 3, "out of range": 2}
