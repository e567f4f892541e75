"""Nothing that is written says what a release must not: files to the last byte, output, messages, and what adds up."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tomllib
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import attacker
import geopandas as gpd
import numpy as np
import oracles
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import World, worlds
from test_invariants import LONG, UNSHRUNK, releasing

import geodiv as gd
from geodiv import cli

FIXTURES = Path(__file__).parent.parent / "fixtures"
WORLDS = int(os.environ.get("GEODIV_WORLDS", "500")) if LONG else 15
OTHERS = (".parquet", ".geojson", ".fgb", ".csv")


@dataclass(frozen=True)
class Case:
    """What was written, and the truth behind it: who is in no file, and every count by the oracle."""

    answer: oracles.Table
    outcome: gd.Outcome
    people: list[str]
    folder: Path

    @property
    def gpkg(self) -> Path:
        return self.folder / "release.gpkg"

    @property
    def dark(self) -> set[str]:
        """Cells that are not published, by the file."""
        shown = {m for row in attacker.tables(self.gpkg)["cells"] for m in attacker.members(row)}
        return set(self.answer.persons) - shown


def named(person: Any) -> str:
    """A name of a person that no byte of a file is by chance."""
    return f"Xq7-{person}-7qX"


def case_of(world: World, folder: Path) -> Case:
    """A world's release in every format."""
    visits = world.visits_frame()
    visits["person"] = visits["person"].map(named)
    table = gd.tabulate(visits, grid=world.grid(), person="person", attributes=world.attributes())
    outcome = gd.enforce(table, world.policy(), world.publication())
    return written(
        Case(oracles.tabulate(*world.oracle_input()), outcome, sorted(set(visits["person"])), folder)
    )


def written(case: Case) -> Case:
    release = case.outcome.release
    release.to_file(case.gpkg)
    for suffix in OTHERS:
        if suffix == ".csv" or suffix == ".parquet" or hasattr(release.cells, "geometry"):
            (case.folder / suffix[1:]).mkdir()
            release.to_file(case.folder / suffix[1:] / f"release{suffix}")
    return case


def raw(case: Case) -> bytes:
    """Every byte of every file, and Parquet once more without its compression."""
    files = [path for path in case.folder.rglob("*") if path.is_file()]
    plain = [
        repr(pq.read_table(p).to_pydict()) + repr(pq.read_schema(p)) for p in files if p.suffix == ".parquet"
    ]
    return b"\n".join([*(p.read_bytes() for p in files), *(text.encode() for text in plain)])


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """The fixture city, counted by the oracle too."""
    run = gd.read_run(FIXTURES / "policy.toml")
    outcome = run.enforce(FIXTURES / "visits.parquet")
    frame = pq.read_table(FIXTURES / "visits.parquet").to_pandas()
    there = frame["lon"].between(-180, 180) & frame["lat"].between(-90, 90) & frame["person_id"].notna()
    frame = frame[there].reset_index(drop=True)
    at = run.grid.ids(run.grid.locate(frame["lon"].to_numpy(), frame["lat"].to_numpy()))
    columns = ["poi_category", "income_band"]
    rows = frame[columns].astype(object).where(frame[columns].notna(), None).to_dict("records")
    visits = list(zip(at, frame["person_id"], rows, strict=True))
    text = tomllib.loads((FIXTURES / "policy.toml").read_text(encoding="utf-8"))
    taxonomy = pd.read_csv(FIXTURES / "poi_taxonomy.csv", dtype=str)
    declared = [
        oracles.Declared(
            "poi_category",
            taxonomy=tuple(taxonomy.itertuples(index=False, name=None)),
            missing=("", "Unknown"),
        ),
        oracles.Declared(
            "income_band",
            "ordinal",
            tuple(text["attribute"][1]["order"]),
            gates=text["attribute"][1]["gates"],
        ),
    ]
    policy = {**text["gates"], "count_min": text["release"]["count_min"]}
    answer = oracles.tabulate(visits, {}, declared, policy)
    folder = tmp_path_factory.mktemp("city")
    return written(Case(answer, outcome, sorted(set(frame["person_id"])), folder))


# --- what is in the files ---------------------------------------------------------------------------------------


@settings(max_examples=WORLDS, phases=UNSHRUNK)
@given(world=releasing())
def test_no_world_leaks(world: World, tmp_path_factory: pytest.TempPathFactory) -> None:
    case = case_of(world, tmp_path_factory.mktemp("world"))
    for attack in ATTACKS:
        attack(case)


def nothing_that_is_not_published(case: Case) -> None:
    """No cell by name, number or corner, no person, no free page, no table that nobody declared."""
    found, everything = attacker.tables(case.gpkg), raw(case)
    assert attacker.words_in(everything, sorted(case.dark)) == []
    assert attacker.words_in(everything, case.people) == []
    assert attacker.free_pages(case.gpkg) == 0
    assert attacker.not_read_off(found) == set()
    outlines = case.outcome.table.geometry()
    if outlines is not None:
        dark = np.isin(case.outcome.table.cells, sorted(case.dark))
        decimals = 10 if case.outcome.table.grid.crs == "EPSG:4326" else 6
        drawn = attacker.corners(gpd.read_file(case.gpkg, layer="cells").geometry, decimals)
        for places in (decimals, 17):  # as written, and as they were
            alone = attacker.corners(outlines[dark], places) - attacker.corners(outlines[~dark], places)
            assert not alone & drawn
            assert not [pair for pair in attacker.packed(alone) if pair in everything]


def no_failing_figure(case: Case) -> None:
    """No measure of a cell that fails, or is not published, unless the release shows the same of another."""
    scores, final = case.outcome.scores, case.outcome.final_scores
    measures = [c for c in scores.columns if scores[c].dtype == float]
    bad = scores[(scores["fails"] != "") | scores["zone_id"].isna()]
    release = case.outcome.release
    shown = {float(x) for frame in (release.cells, release.counts, release.reference) for c in frame.columns
             if frame[c].dtype == float for x in frame[c].dropna()}  # fmt: skip
    fine = final[final["effective_fine"].notna() & (_levels(case) > 0)]["effective_fine"]
    secret = attacker.telling([*bad[measures].to_numpy(dtype=float).ravel(), *fine])
    secret -= {x for x in secret if any(abs(x - y) < 1e-9 for y in shown)}
    assert attacker.figures_in(raw(case), secret) == []


def _levels(case: Case) -> Any:
    names = [f"{d.column}_level" for d in case.answer.attributes]
    return case.outcome.release.cells[names].to_numpy(dtype=int).ravel()


def rows_are_what_they_may_be(case: Case) -> None:
    """Every row of every table, counted again from the visits; nothing finer than its zone, nothing small."""
    found, t = attacker.tables(case.gpkg), case.answer
    zones = {row["cell_id"]: row for row in found["cells"]}
    count_min, k_min = t.policy["count_min"], t.policy["k_min"]
    expected = {}
    for zone, row in zones.items():
        cells = attacker.members(row)
        assert (zone, row["n_members"]) == (min(cells), len(cells))
        assert row["persons"] == len(t.people(cells)) >= k_min
        for a, declared in enumerate(t.attributes):
            level = row[f"{declared.column}_level"]
            n = {v: x for v, x in t.counts(cells, a, level).items() if x}
            dark = oracles.hidden(n, count_min)
            for v, x in n.items():
                share = None if dark else x / sum(n.values())
                expected[zone, declared.column, v] = (level, None if v in dark else x, share)
            if level or dark:
                assert row[f"{declared.column}_effective"] is None
            assert row[f"{declared.column}_top"] not in dark
    keys = ("cell_id", "attribute", "value")
    assert len(found["counts"]) == len(expected)
    for row in found["counts"]:
        level, n, share = expected[tuple(row[k] for k in keys)]
        assert (row["level"], row["persons"]) == (level, n)
        assert n is None or n >= count_min
        assert row["share"] == (None if share is None else pytest.approx(share, rel=1e-12))
    wide_tables_hide_as_much(found, expected)


def wide_tables_hide_as_much(found: dict[str, list[attacker.Row]], expected: dict[Any, Any]) -> None:
    """A zone's row of a `shares_...` table is empty where any of its counts is hidden, and else adds up to 1."""
    for name in (name for name in found if name.startswith("shares_")):
        attribute = next(k[1] for k in expected) if len({k[1] for k in expected}) == 1 else name[7:]
        for row in found[name]:
            known = {"fid", "geom", "cell_id", "persons", "level"}
            figures = [x for column, x in row.items() if column not in known and x is not None]
            own = [v[2] for k, v in expected.items() if k[:2] == (row["cell_id"], attribute)]
            assert figures == [] if None in own else sum(figures) == pytest.approx(1)


def hidden_labels_are_not_told_apart(case: Case) -> None:
    """Any hidden label could be the one that is not small, unless a shown label has as many persons as that one."""
    t = case.answer
    for row in attacker.tables(case.gpkg)["cells"]:
        for a, declared in enumerate(t.attributes):
            n = t.counts(attacker.members(row), a, row[f"{declared.column}_level"])
            dark = oracles.hidden(n, t.policy["count_min"])
            companion = [v for v in dark if n[v] >= t.policy["count_min"]]
            least = min((x for v, x in n.items() if x and v not in dark), default=None)
            if not companion or n[companion[0]] == least:
                continue  # SECURITY.md: a tie, or only small counts
            for small in dark - set(companion):
                other = {**n, small: n[companion[0]], companion[0]: n[small]}
                assert oracles.hidden(other, t.policy["count_min"]) == dark


# --- what can be computed from the files ------------------------------------------------------------------------


def the_rest_is_safe(case: Case) -> None:
    """The eligible cells that are not published: two at least, k persons, every attribute diverse, no label certain."""
    t, rest = case.answer, sorted(case.dark & set(case.answer.eligible))
    if not rest or not t.policy["residual"] or len(case.dark) == len(t.persons):
        return
    everyone = t.people(t.eligible)
    assert len(rest) > 1
    assert len(t.people(rest)) >= t.policy["k_min"]
    for a, labels in enumerate(t.labels):
        gates, n = t.gates(a), t.counts(rest, a, 0)
        pooled = {v: sum(t.counts([cell], a, 0)[v] for cell in rest) for v in n}
        if gates["l_min"] is not None:
            assert oracles.holds("l_min", oracles.effective(oracles.shares(n)), gates["l_min"])
            assert oracles.holds("l_min", oracles.effective(oracles.shares(pooled)), gates["l_min"])
        for v in labels.certain if gates["incidence_max"] is not None else ():
            usual = t.counts(t.eligible, a, 0)[v] / len(everyone)
            assert n[v] / len(t.people(rest)) <= max(gates["incidence_max"], usual) + 1e-9


def coverage_tells_no_lone_cell(case: Case) -> None:
    """The size of the rest follows from coverage; with the rest safe, it is that of two cells at least."""
    t, metadata = case.answer, json.loads((case.folder / "release.json").read_text(encoding="utf-8"))
    pairs = {cell: len(t.persons[cell]) for cell in t.eligible}
    kept = sum(n for cell, n in pairs.items() if cell not in case.dark)
    assert metadata["coverage"] == (round(kept / sum(pairs.values()), 2) if pairs else 0)
    assert metadata["not_published"] == len(case.dark)
    assert metadata["persons"] == len(t.people(set(t.persons) - case.dark))


def subtraction_tells_no_zone(case: Case) -> None:
    """Q x total - map: what is left belongs to two zones at least and holds l, or drowns in the third decimal."""
    t, found = case.answer, attacker.tables(case.gpkg)
    for a, declared in enumerate(t.attributes):
        for level in {row["level"] for row in found["reference"] if row["attribute"] == declared.column}:
            shows = [r for r in found["cells"] if r[f"{declared.column}_level"] <= level]
            away = set(t.eligible) - {m for row in shows for m in attacker.members(row)}
            each = {c: sum(t.counts([c], a, level).values()) for c in t.eligible}
            if sum(each[c] for c in away) <= sum(each.values()) / 2000:
                continue
            coarser = [row for row in found["cells"] if away & set(attacker.members(row))]
            assert len(coarser) + len(away - {m for row in coarser for m in attacker.members(row)}) > 1
            simple = all(row["n_members"] == 1 and row[f"{declared.column}_level"] == level for row in shows)
            if (
                simple
                and level == 0
                and t.gates(a)["l_min"] is not None
                and not _hides(found, declared.column)
            ):
                left = attacker.left_over(found, declared.column, level, sum(each.values()))
                guess = oracles.shares({v: max(round(x), 0) for v, x in left.items()})
                fuzz = len(left) * sum(each.values()) / 2000
                assert fuzz > 0.5 or oracles.holds("l_min", oracles.effective(guess), t.gates(a)["l_min"])


def a_finer_mix_adds_up_to_no_zone(case: Case) -> None:
    """Taken off the finest mix, level by level, the zones leave no cell by itself, nor one below k among others."""
    t, found = case.answer, attacker.tables(case.gpkg)
    for a, declared in enumerate(t.attributes):
        column, mixes = f"{declared.column}_level", found["reference"]
        finest = min((r["level"] for r in mixes if r["attribute"] == declared.column), default=99)
        for level in sorted({finest, *(r[column] for r in found["cells"] if r[column] > finest)} - {99}):
            each = {c: sum(t.counts([c], a, level).values()) for c in t.persons}
            shows = [set(attacker.members(r)) for r in found["cells"] if r[column] <= level]
            away = set(t.eligible).difference(*shows)
            coarser = [set(attacker.members(r)) & away for r in found["cells"]]
            behind = [part for part in coarser if part] + [{c} for c in away.difference(*coarser)]
            among = [zone - set(t.eligible) for zone in shows if zone & set(t.eligible)]
            for parts in (behind, [part for part in among if part]):
                told = sum(each[c] for part in parts for c in part)
                assert len(parts) > 1 or 2000 * told <= sum(each[c] for c in t.eligible)


def _hides(found: dict[str, list[attacker.Row]], attribute: str) -> bool:
    return any(row["persons"] is None for row in found["counts"] if row["attribute"] == attribute)


ATTACKS: tuple[Callable[[Case], None], ...] = (
    nothing_that_is_not_published,
    no_failing_figure,
    rows_are_what_they_may_be,
    hidden_labels_are_not_told_apart,
    the_rest_is_safe,
    coverage_tells_no_lone_cell,
    subtraction_tells_no_zone,
    a_finer_mix_adds_up_to_no_zone,
)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_the_city_does_not_leak(city: Case, attack: Callable[[Case], None]) -> None:
    assert len(city.dark) > 1
    assert {"publish", "publish_coarsened", "publish_merged"} == set(city.outcome.release.cells["remedy"])
    attack(city)


def test_the_attacker_would_see_it(city: Case) -> None:
    """The work file, which holds it all, is not missed."""
    path = city.folder.parent / "work.gpkg"
    city.outcome.to_work(path, overwrite=True)
    everything, scores = path.read_bytes(), city.outcome.scores
    assert attacker.words_in(everything, sorted(city.dark)) == sorted(city.dark)
    secret = attacker.telling(scores[scores["fails"] != ""]["effective_fine"])
    assert secret
    assert len(attacker.figures_in(everything, secret)) == len(secret)
    outlines = city.outcome.table.geometry()
    dark = np.isin(city.outcome.table.cells, sorted(city.dark))
    assert [pair for pair in attacker.packed(attacker.corners(outlines[dark], 17)) if pair in everything]


# --- output, logs, messages -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [("--json", "--progress", "json"), ("--work", "work.gpkg")],
    ids=" ".join,
)
def test_the_command_says_nothing_else(city: Case, tmp_path: Path, options: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "geodiv", "enforce", str(FIXTURES / "visits.parquet"), *options]
    command += ["-p", str(FIXTURES / "policy.toml"), "-o", "release.gpkg"]
    run = subprocess.run(
        command, capture_output=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(FIXTURES.parent)}
    )
    assert run.returncode == 0, run.stderr
    said = run.stdout + run.stderr
    assert attacker.words_in(said, [*sorted(city.answer.persons), *city.people]) == []
    figures = city.outcome.scores.select_dtypes(float).to_numpy().ravel()
    assert attacker.figures_in(said, attacker.telling(figures)) == []
    if "--json" in options:
        public = json.loads((tmp_path / "release.json").read_text(encoding="utf-8"))
        assert json.loads(run.stdout).items() <= public.items()
        lines = [json.loads(line) for line in run.stderr.splitlines() if line.startswith(b"{")]
        assert {tuple(line) for line in lines} == {("event", "stage", "done", "total")}


def test_the_report_and_the_map_say_nothing_else(city: Case, tmp_path: Path) -> None:
    """Pages for people, with whatever they carry inside."""
    pytest.importorskip("matplotlib")
    release, report, page = (str(tmp_path / name) for name in ("r.gpkg", "report.html", "map.html"))
    run = ["enforce", str(FIXTURES / "visits.parquet"), "-p", str(FIXTURES / "policy.toml"), "-o", release]
    assert cli.run([*run, "--report", report]) == 0
    assert cli.run(["map", release, "-o", page]) == 0
    scores, final = city.outcome.scores, city.outcome.final_scores
    secret = attacker.telling(scores[scores["fails"] != ""].select_dtypes(float).to_numpy().ravel())
    secret -= set(final.select_dtypes(float).to_numpy().ravel()) | set(city.outcome.release.counts["share"])
    for file in tmp_path.glob("*.*"):
        everything = attacker.unfolded(file.read_bytes())
        assert attacker.words_in(everything, [*sorted(city.dark), *city.people]) == [], file.name
        assert attacker.figures_in(everything, secret) == [], file.name


@settings(max_examples=WORLDS, phases=UNSHRUNK)
@given(world=worlds(), bad=st.sampled_from(["", "person", "value"]))
def test_no_message_and_no_log_names_a_cell_or_a_person(world: World, bad: str) -> None:
    records: list[logging.LogRecord] = []
    handler = logging.Handler(logging.DEBUG)
    handler.emit = records.append  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    visits = world.visits_frame()
    visits["person"] = visits["person"].map(named)
    people, cells = sorted(set(visits["person"])), sorted({visit[0] for visit in world.visits})
    attributes: list[Any] = world.attributes()
    if bad == "person":
        visits.loc[0, "person"] = None
    if bad == "value":
        attributes[0] = gd.Nominal(attributes[0].column, taxonomy=gd.Taxonomy((("q", "Q"), ("r", "R"))))
    told = []
    try:
        gd.enforce(
            gd.tabulate(visits, grid=world.grid(), person="person", attributes=attributes), world.policy()
        )
    except gd.GeodivError as error:
        told = [*traceback.format_exception_only(error), repr(error)]
    finally:
        logging.getLogger().removeHandler(handler)
    said = "\n".join([*told, *(record.getMessage() for record in records)]).encode()
    assert attacker.words_in(said, [*people, *cells]) == []
