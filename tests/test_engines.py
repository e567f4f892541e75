"""The contract of an engine: the same integers as plain loops find, whatever the order, the files and the batches."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import clusters
import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from handful import Row, drawn_groups, frame, held, some_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import MISSING, text
from strategies import World, worlds
from test_worlds import differences, fewer

import geodiv as gd
from geodiv.arrays import CSR
from geodiv.engines.memory import MemoryEngine
from geodiv.engines.protocol import Contributions, Engine, Groups
from geodiv.intake import VisitSpec
from geodiv.labels import LabelSpace, label_space
from geodiv.taxonomy import Taxonomy

FIXTURES = Path(__file__).parent.parent / "fixtures"
MEMORY = MemoryEngine()


# Every engine stands here once: what makes it, given a folder of the tests. Small batches and little memory, so that
# whatever happens between batches, and on a disk, happens.
ENGINES: dict[str, Callable[[Path], AbstractContextManager[Engine]]] = {
    "memory": lambda folder: closing(MemoryEngine()),
    "duckdb": lambda folder: closing(
        gd.DuckDBEngine(memory_limit="200MB", threads=2, folder=folder, rows_per_batch=7)
    ),
    "sail": lambda folder: clusters.sail_engine(folder),
    "local": lambda folder: clusters.local_engine(),
    "standalone": lambda folder: clusters.standalone_engine(),
}
SLOW = ("local", "standalone")
"""Some tenths of a second a statement: these are spared the tests of many small worlds."""


@pytest.fixture(scope="module", params=list(ENGINES))
def name(request: pytest.FixtureRequest) -> str:
    """The name of each engine."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def engine(name: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Each engine, closed after the tests of this file; nothing of it is left then."""
    folder = tmp_path_factory.mktemp("engine")
    with ENGINES[name](folder) as chosen:
        yield chosen
    assert list(folder.iterdir()) == []


@pytest.fixture(scope="module")
def many(name: str, engine: Engine) -> Engine:
    """The engine, for tests of many small worlds."""
    if name in SLOW:
        pytest.skip("many statements: run on Sail, by the same class")
    return engine


def spec(*attributes: Any, **reading: Any) -> VisitSpec:
    reading = {"grid": gd.ColumnGrid("cell"), "person": "person", **reading}
    return VisitSpec(attributes=attributes or (gd.Nominal("activity"),), **reading)


def equal_arrays(one: Any, two: Any) -> bool:
    one, two = np.asarray(one), np.asarray(two)
    return one.dtype == two.dtype and one.shape == two.shape and one.tolist() == two.tolist()


def equal_spaces(one: LabelSpace, two: LabelSpace) -> bool:
    return (one.levels, one.publishable) == (two.levels, two.publishable) and all(
        equal_arrays(a, b)
        for name in ("up", "sensitive", "certain")
        for a, b in zip(getattr(one, name), getattr(two, name), strict=True)
    )


def differing(one: Contributions, two: Contributions) -> list[str]:
    """What of two engines' contributions is not the same, to the last bit."""
    found = [name for name in ("keys", "persons") if not equal_arrays(getattr(one, name), getattr(two, name))]
    for a, (mine, theirs) in enumerate(zip(one.pairs, two.pairs, strict=True)):
        names = ("cell", "value", "persons", "visits")
        found += [f"{n} {a}" for n in names if not equal_arrays(getattr(mine, n), getattr(theirs, n))]
    same = [equal_spaces(a, b) for a, b in zip(one.spaces, two.spaces, strict=True)]
    return found + [f"space {a}" for a, ok in enumerate(same) if not ok]


# --- contributions ------------------------------------------------------------------------------------------


@fewer
@given(rows=some_rows)
def test_pairs_are_the_distinct_persons_of_each_cell_and_value(many: Engine, rows: list[Row]) -> None:
    found, expected = many.reduce(frame(rows), spec(), None), held(rows)
    pairs, values = found.pairs[0], found.spaces[0].values
    named = [(found.keys[c], values[v]) for c, v in zip(pairs.cell, pairs.value, strict=True)]
    assert named == sorted(expected, key=lambda pair: (pair[0], values.index(pair[1])))
    assert pairs.persons.tolist() == [len(set(expected[pair])) for pair in named]
    assert pairs.visits.tolist() == [len(expected[pair]) for pair in named]
    assert found.persons.tolist() == [len({p for c, p, _ in rows if c == cell}) for cell in found.keys]


@fewer
@given(rows=some_rows, data=st.data())
def test_groups_are_counted_as_sets(many: Engine, rows: list[Row], data: st.DataObject) -> None:
    """A pair may feed several groups, several times; a group may have none."""
    found = many.reduce(frame(rows), spec(), None)
    for groups, expected in drawn_groups(data, rows, found):
        assert equal_arrays(many.count(found, groups), np.array(expected, dtype=np.int64))


def test_no_groups_at_all(engine: Engine) -> None:
    none = np.zeros(0, dtype=np.int64)
    found = engine.reduce(frame([("c", "p", "a")]), spec(), None)
    for size in (0, 2):
        assert engine.count(found, Groups(0, none, none, none, size)).tolist() == [0] * size
        assert engine.count(found, Groups(None, none, None, none, size)).tolist() == [0] * size


def test_numbers_of_groups_are_large(engine: Engine) -> None:
    found = engine.reduce(frame([("c", "p", "a")]), spec(), None)
    one, last = np.zeros(1, dtype=np.int64), np.array([2**20])
    counted = engine.count(found, Groups(0, one, one, last, 2**20 + 1))
    assert (counted.sum(), counted[-1]) == (1, 1)


def test_no_rows_at_all(engine: Engine) -> None:
    found = engine.reduce(frame([]), spec(), None)
    assert (len(found.keys), len(found.persons), found.spaces[0].values) == (0, 0, ())
    assert differing(found, MEMORY.reduce(frame([]), spec())) == []


def test_no_attributes_at_all(engine: Engine) -> None:
    visits = frame([("d", "p", "a"), ("c", "p", "b"), ("d", "q", "b"), ("d", "p", "a")])
    found = engine.reduce(visits, VisitSpec(grid=gd.ColumnGrid("cell"), person="person"), None)
    assert (found.keys.tolist(), found.persons.tolist(), found.pairs) == (["c", "d"], [1, 2], ())
    both = np.array([0, 1])
    assert engine.count(found, Groups(None, both, None, np.zeros(2, dtype=np.int64), 1)).tolist() == [2]


@fewer
@given(rows=some_rows, size=st.integers(1, 7))
def test_chunks_change_nothing(many: Engine, rows: list[Row], size: int) -> None:
    table = pa.Table.from_pandas(frame(rows), schema=pa.schema([(n, pa.string()) for n in frame([])]))
    chunked = pa.concat_tables([table.slice(i, size) for i in range(0, len(rows), size)])
    assert differing(many.reduce(chunked, spec(), None), MEMORY.reduce(frame(rows), spec())) == []


def test_a_dictionary_with_values_that_nobody_has_declares_nothing(engine: Engine) -> None:
    values = pd.Categorical(["a", "a"], categories=["a", "ghost"])
    visits = pd.DataFrame({"cell": ["c", "c"], "person": ["p", "q"], "activity": values})
    assert engine.reduce(visits, spec(), None).spaces[0].values == ("a",)


def test_persons_are_compared_as_text_in_full(engine: Engine) -> None:
    """Zeros, case, accents, blanks and long ends tell persons apart; nothing is shortened, folded or hashed away."""
    long = "x" * 300
    who = [
        "7",
        "007",
        "7.0",
        "a",
        "A",
        "\u00e1",
        "a\u0301",
        "ß",
        "ss",
        "a\0b",
        "a\0c",
        " 7",
        "7 ",
        "'",
        '"',
        "\\",
        long,
        long + "1",
    ]
    visits = pd.DataFrame({"cell": "c", "person": who * 3, "activity": "a"})
    found = engine.reduce(visits, spec(), None)
    assert (found.persons.tolist(), found.pairs[0].persons.tolist()) == ([len(who)], [len(who)])
    assert found.pairs[0].visits.tolist() == [3 * len(who)]


# --- worlds -------------------------------------------------------------------------------------------------


def oracle_pairs(world: World, attribute: int) -> dict[tuple[str, str], tuple[int, int]]:
    """Distinct persons and visits of each cell id and declared value, in a plain loop."""
    persons: dict[tuple[str, str], set[str]] = {}
    visits: dict[tuple[str, str], int] = {}
    subject = world.subjects[attribute]
    for cell, person, raw in world.visits:
        value = subject.value(raw[attribute])
        missing = value is None or text(value) in (*subject.declared.missing, MISSING)
        pair = (cell, MISSING if missing else text(value))
        persons.setdefault(pair, set()).add(person)
        visits[pair] = visits.get(pair, 0) + 1
    return {pair: (len(who), visits[pair]) for pair, who in persons.items()}


@settings(max_examples=-(-settings.default.max_examples // 2))
@given(world=worlds(), seed=st.integers(0, 99))
def test_worlds_in_any_order_are_reduced_to_what_a_plain_loop_finds(
    many: Engine, world: World, seed: int
) -> None:
    visits, grid = world.visits_frame(), world.grid()
    of = spec(*world.attributes(), grid=grid)
    shuffled = visits.iloc[np.random.default_rng(seed).permutation(len(visits))]
    found = many.reduce(shuffled, of, None)
    assert differing(found, MEMORY.reduce(visits, of)) == []
    ids = grid.ids(found.keys)
    for a, (pairs, space) in enumerate(zip(found.pairs, found.spaces, strict=True)):
        named = [(ids[c], space.values[v]) for c, v in zip(pairs.cell, pairs.value, strict=True)]
        numbers = zip(pairs.persons.tolist(), pairs.visits.tolist(), strict=True)
        assert dict(zip(named, numbers, strict=True)) == oracle_pairs(world, a)


@fewer
@given(world=worlds())
def test_the_oracle_enforces_the_same(many: Engine, world: World) -> None:
    assert differences(world, many) == []


@fewer
@given(world=worlds(), data=st.data())
def test_what_changed_alone_is_counted_as_everything_again(
    many: Engine, world: World, data: st.DataObject
) -> None:
    keywords: dict[str, Any] = {"grid": world.grid(), "person": "person", "attributes": world.attributes()}
    table = gd.tabulate(world.visits_frame(), engine=many, **keywords)
    theirs = gd.tabulate(world.visits_frame(), **keywords)
    cells = len(table.cells)
    zone = np.array(data.draw(st.lists(st.integers(0, 3), min_size=cells, max_size=cells)))
    unions = CSR(np.array([zone == z for z in range(4)]))
    plan = table.start()
    known = table.recount(plan)
    merged = plan.merge(unions)
    for counts in (table.recount(merged, known), table.recount(merged), table.count(merged.members())):
        assert_same_counts(counts, theirs.recount(merged))
    overlapping = CSR(np.array([zone == 0, zone <= 1, zone <= 2, zone >= 1]))
    assert_same_counts(table.count(overlapping), theirs.count(overlapping))
    spaces = [halved(space) for space in table.spaces]
    assert_same_counts(table.relabelled(spaces).base, theirs.relabelled(spaces).base)


def halved(space: LabelSpace) -> LabelSpace:
    """The same values under a taxonomy with two labels, every other value under each."""
    values = [value for value in space.values if value != MISSING]
    rows = tuple((value, f"half {i % 2}") for i, value in enumerate(values))
    return label_space(Taxonomy(rows) if rows else None, values, space.missing is not None, None)


def assert_same_counts(one: Any, two: Any) -> None:
    assert equal_arrays(one.persons, two.persons)
    assert equal_arrays(one.tier, two.tier)
    for mine, theirs in zip(one.labels, two.labels, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            assert equal_arrays(a.toarray(), b.toarray())


# --- input as it comes --------------------------------------------------------------------------------------

DIRTY = pd.DataFrame(
    [
        ("007", 2.35, 48.85, "c-1", "gym", 1.5),
        ("7", 2.35, 48.85, "c-1", "bar", 10.0),
        ("007", 2.36, 48.86, "c-2", "", np.nan),
        (None, 2.35, 48.85, "c-1", "gym", 3.0),
        (" ", 2.35, 48.80, "c-1", "gym", 3.0),
        ("p", 0.0, 0.0, "c-10", "-999", -999.0),  # Null Island, and markers
        ("q", 2.35, 91.5, "c-1", "gym", 9.99),
        ("q", None, 48.80, None, "bar", 20.0),
        ("r", 2.40, np.nan, " ", "bar", 20.0),
        ("r", 500.0, 48.80, "c-1", "Bar", 19.0),
        ("s", 2.30, 48.90, "c-3", None, 0.0),
        ("t", 2.41, 48.90, "c-9", "NA", 20.0),
        ("u", 2.35, 48.85, "c-1", "gym", 5.0),
        ("p", 2.36, 48.85, "c-2", "gym", 5.1),
        ("p", 2.35, 48.85, "c-1", "gym", 1.5),
        ("7", 2.35, 48.85, "c-1", "gym", 10.0),
    ],
    columns=["person", "lon", "lat", "cell", "activity", "income"],
)
ACTIVITY = gd.Nominal("activity", missing=["", "NA", "-999"])
INCOME = gd.Numeric("income", edges=[0, 10, 20], missing=[-999, "-999.0"])


def zones() -> gd.ZoneGrid:
    boxes = [shapely.box(x, 48.8, x + 0.05, 48.95) for x in (2.4, 2.3, 2.35)]
    layer = gpd.GeoDataFrame({"zone": ["b", "10", "9"]}, geometry=boxes, crs="EPSG:4326")
    return gd.ZoneGrid(layer, id="zone")


GRIDS: dict[str, Callable[[], Any]] = {
    "h3": lambda: gd.H3Grid(8),
    "square": lambda: gd.SquareGrid(500, crs="EPSG:32631"),
    "zones": zones,
    "column": lambda: gd.ColumnGrid("cell"),
}


def as_frame(visits: pd.DataFrame, folder: Path) -> Any:
    return visits


def as_parquet(visits: pd.DataFrame, folder: Path) -> Any:
    pq.write_table(pa.Table.from_pandas(visits, preserve_index=False), folder / "v.parquet", row_group_size=3)
    return folder / "v.parquet"


def as_16_files(visits: pd.DataFrame, folder: Path) -> Any:
    table = pa.Table.from_pandas(visits, preserve_index=False)
    cuts = np.linspace(0, len(visits), 17).astype(int)
    for i, (a, b) in enumerate(pairwise(cuts)):
        pq.write_table(table.slice(a, b - a), folder / f"part-{i:02}.parquet")
    return str(folder / "part-*.parquet")


def as_csv(visits: pd.DataFrame, folder: Path) -> Any:
    visits.to_csv(folder / "v.csv", index=False)
    return folder / "v.csv"


PACKED = (as_frame, as_parquet, as_16_files, as_csv)


@pytest.mark.parametrize("kind", list(GRIDS))
@pytest.mark.parametrize("pack", PACKED)
def test_dirty_visits_are_reduced_and_tallied_alike(
    engine: Engine, kind: str, pack: Callable[[pd.DataFrame, Path], Any], tmp_path: Path
) -> None:
    """One row is lost for each fault, and the list of these rows is the same."""
    visits = pack(DIRTY, tmp_path)
    keywords: dict[str, Any] = {"grid": GRIDS[kind](), "on_bad_rows": "skip"}
    found, expected = (
        each.reduce(visits, spec(ACTIVITY, INCOME, **keywords, rejects=tmp_path / name), None)
        for each, name in ((engine, "found.csv"), (MEMORY, "expected.csv"))
    )
    assert differing(found, expected) == []
    assert found.intake == expected.intake
    assert found.intake.dropped["no person"] == 2
    assert (tmp_path / "found.csv").read_text() == (tmp_path / "expected.csv").read_text()
    again = engine.reduce(visits, spec(ACTIVITY, INCOME, **keywords), None)
    assert differing(again, expected) == []
    assert unplaced(again.intake) == unplaced(expected.intake)
    grouped = Groups(None, np.arange(len(found.keys)), None, np.zeros(len(found.keys), dtype=np.int64), 1)
    assert engine.count(again, grouped).tolist() == MEMORY.count(expected, grouped).tolist()


def unplaced(intake: Any) -> Any:
    """A tally without what depends on where rows stand, which a distributed read does not know."""
    return replace(intake, first_rows={}, examples=dict.fromkeys(intake.examples, ""))


@pytest.mark.parametrize("kind", list(GRIDS))
def test_the_order_of_rows_changes_nothing(engine: Engine, kind: str) -> None:
    visits = DIRTY
    of = spec(ACTIVITY, INCOME, grid=GRIDS[kind](), on_bad_rows="skip")
    expected = MEMORY.reduce(visits, of)
    for order in (np.arange(len(visits))[::-1], np.random.default_rng(3).permutation(len(visits))):
        assert differing(engine.reduce(visits.iloc[order], of, None), expected) == []


def test_rows_that_cannot_be_counted_are_the_same_error(engine: Engine) -> None:
    visits = DIRTY
    said = []
    for each in (engine, MEMORY):
        with pytest.raises(gd.SourceError) as error:
            each.reduce(visits, spec(ACTIVITY, grid=gd.H3Grid(8)), None)
        said.append(str(error.value))
    assert said[0] == said[1]


SPORT = Taxonomy((("gym", "sport"), ("pool", "sport")))


@pytest.mark.parametrize(
    ("visits", "attribute", "error", "said"),
    [
        (DIRTY, gd.Nominal("activity", taxonomy=SPORT), gd.UnknownValueError, "not in"),
        (
            DIRTY,
            gd.Numeric("income", edges=[0, 5], missing=[-999]),
            gd.UnknownValueError,
            "outside its edges",
        ),
        (DIRTY, gd.Nominal("nothing"), gd.SourceError, "the column 'nothing'"),
        (DIRTY.assign(lat=4850.0), ACTIVITY, gd.SourceError, "Most rows are out of range"),
        ("no.parquet", ACTIVITY, gd.SourceError, "expected a file"),
    ],
)
def test_what_cannot_be_read_is_an_error_of_geodivs_own(
    engine: Engine, visits: Any, attribute: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        engine.reduce(visits, spec(attribute, grid=gd.H3Grid(8), on_bad_rows="skip"), None)
    assert engine.reduce(frame([("c", "p", "a")]), spec(), None).persons.tolist() == [1]


def test_an_error_of_the_callers_own_comes_through_as_it_is(engine: Engine) -> None:
    def stop(stage: str, done: int, total: int) -> None:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        engine.reduce(frame([("c", "p", "a")] * 20), spec(), stop)


def test_progress_says_how_far_it_is_read_and_what_is_counted(engine: Engine) -> None:
    said: list[tuple[str, int, int]] = []
    engine.reduce(DIRTY, spec(ACTIVITY, INCOME, on_bad_rows="skip"), lambda *step: said.append(step))
    assert said[-3:] == [("read", 16, 16), ("count", 1, 2), ("count", 2, 2)]
    assert [done for _, done, _ in said[:-2]] == sorted(done for _, done, _ in said[:-2])


# --- whole runs ---------------------------------------------------------------------------------------------


def rows_of(path: Path) -> dict[str, list[Any]]:
    """Every row of every table of a GeoPackage, but for when it was written and with what."""
    with closing(sqlite3.connect(path)) as database:
        names = database.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
        ).fetchall()
        rows = {name: database.execute(f'SELECT * FROM "{name}"').fetchall() for (name,) in names}
    del rows["gpkg_metadata"]
    return rows


def plain(release: gd.Release) -> dict[str, Any]:
    return {k: v for k, v in release.metadata.items() if k not in ("engine", "created")}


@pytest.mark.parametrize("file", ["policy.toml"])
def test_a_whole_run_writes_the_same_files(
    engine: Engine, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Release and work file, row by row, of 30 000 visits with faults; written at the same time."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    run = gd.read_run(FIXTURES / file)
    outcomes = [run.enforce(FIXTURES / "visits.parquet", engine=each) for each in (larger(engine), MEMORY)]
    for name in ("cells", "counts", "reference", "taxonomy"):
        one, two = (getattr(outcome.release, name) for outcome in outcomes)
        pd.testing.assert_frame_equal(pd.DataFrame(one), pd.DataFrame(two), check_exact=True)
    assert plain(outcomes[0].release) == plain(outcomes[1].release)
    written = []
    for number, outcome in enumerate(outcomes):
        folder = tmp_path / str(number)
        folder.mkdir()
        outcome.release.to_file(folder / "release.gpkg")
        outcome.to_work(folder / "work.gpkg")
        written.append([rows_of(folder / "release.gpkg"), rows_of(folder / "work.gpkg")])
    assert written[0] == written[1]


def larger(engine: Engine) -> Engine:
    """The same engine with batches of a size for more visits."""
    return replace(engine, rows_per_batch=5000) if isinstance(engine, gd.DuckDBEngine) else engine


def test_the_release_says_what_counted(engine: Engine) -> None:
    table = gd.tabulate(frame([("c", "p", "a"), ("c", "q", "b")]), grid=gd.ColumnGrid("cell"), person="person",
                        attributes=[gd.Nominal("activity")], engine=engine)  # fmt: skip
    said = gd.enforce(table, gd.Policy(k_min=1)).release.metadata["engine"]
    assert said == engine.describe()
    assert said["name"] in ("memory", "duckdb", "spark")
    assert all(isinstance(text, str) and text for text in said.values())


def test_contributions_of_several_reductions_are_kept_apart(engine: Engine) -> None:
    one, two = [("c", "p", "a"), ("c", "q", "a")], [("c", "p", "a"), ("d", "p", "a"), ("d", "q", "b")]
    kept = [engine.reduce(frame(rows), spec(), None) for rows in (one, two, one)]
    whole = [
        Groups(None, np.arange(len(k.keys)), None, np.zeros(len(k.keys), dtype=np.int64), 1) for k in kept
    ]
    assert [engine.count(k, g).tolist() for k, g in zip(kept, whole, strict=True)] == [[2], [2], [2]]
