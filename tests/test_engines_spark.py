"""The Spark engine: what goes to the workers, what is read there, and what is said when something is wrong."""

from __future__ import annotations

import gc
import gzip
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import date
from decimal import Decimal
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any

import clusters
import geopandas as gpd
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import shapely

import geodiv as gd
from geodiv.arrays import CSR
from geodiv.cli import run
from geodiv.engines.choice import engine_of
from geodiv.engines.memory import MemoryEngine
from geodiv.engines.protocol import Groups
from geodiv.engines.spark import SparkEngine
from geodiv.engines.spark.failures import explanation
from geodiv.engines.spark.session import is_address, within
from geodiv.engines.spark.workers import ROWS, reduced, sampled, schema_of, tally_of, versions
from geodiv.intake import VisitSpec
from geodiv.intake.table import Layout
from geodiv.sources import open_source

FIXTURES = Path(__file__).parent.parent / "fixtures"
needs_pyspark = pytest.mark.skipif(
    importlib.util.find_spec("pyspark") is None, reason="pyspark is not installed"
)


def zones() -> gd.ZoneGrid:
    boxes = [shapely.box(x, 48.8, x + 0.05, 48.95) for x in (2.4, 2.3, 2.35)]
    layer = gpd.GeoDataFrame({"zone": ["b", "10", "9"]}, geometry=boxes, crs="EPSG:4326")
    return gd.ZoneGrid(layer, id="zone")


GRIDS = {
    "h3": lambda: gd.H3Grid(8),
    "square": lambda: gd.SquareGrid(500, crs="EPSG:32631"),
    "zones": zones,
    "column": lambda: gd.ColumnGrid("cell"),
}
VISITS = pa.table(
    {
        "person": ["007", "7", "007", None, " ", "p", "q"],
        "lon": [2.35, 2.35, 2.36, 2.35, 2.35, 2.41, 500.0],
        "lat": [48.85, 48.85, 48.86, 48.85, 48.8, 48.9, 48.8],
        "cell": ["c-1", "c-1", "c-2", "c-1", "c-1", "c-9", "c-1"],
        "activity": ["gym", "bar", None, "gym", "gym", "", "gym"],
    }
)

# --- what goes to the workers -------------------------------------------------------------------------------

WORKER = """
import io, pickle, sys
import pyarrow as pa
work, visits = pickle.load(sys.stdin.buffer)
with pa.OSFile(sys.argv[1], "wb") as file:
    batches = list(work(iter(visits.to_batches(max_chunksize=3))))
    with pa.ipc.new_file(file, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
assert not [name for name in sys.modules if name.split(".")[0] == "geodiv"]
"""


def spec(grid: Any) -> VisitSpec:
    return VisitSpec(person="person", grid=grid, attributes=(gd.Nominal("activity"),))


@needs_pyspark
@pytest.mark.parametrize("kind", list(GRIDS))
def test_a_worker_without_geodiv_does_what_this_machine_does(kind: str, tmp_path: Any) -> None:
    from pyspark import cloudpickle

    from geodiv.engines.spark.shipping import shipped

    grid = GRIDS[kind]()
    layout = Layout.of(open_source(VISITS), spec(grid))
    schema = schema_of(1, kind == "column")
    visits = VISITS.select(layout.columns)
    work = shipped(reduced, layout, schema, False)
    with clusters.bare_python() as python:
        missing = subprocess.run([python, "-c", "import geodiv"], env=clusters.plain_environment(), cwd=tmp_path,
                                 capture_output=True)  # fmt: skip
        assert b"No module named 'geodiv'" in missing.stderr
        subprocess.run([python, "-c", WORKER, "out.arrow"], input=cloudpickle.dumps((work, visits)), check=True,
                       env=clusters.plain_environment(), cwd=tmp_path)  # fmt: skip
    with pa.OSFile(str(tmp_path / "out.arrow")) as file:
        there = pa.ipc.open_file(file).read_all()
    here = pa.Table.from_batches(list(reduced(iter(visits.to_batches()), layout, schema, False)))
    assert there.to_pylist() == here.to_pylist()
    assert there.num_rows > 1


@needs_pyspark
@pytest.mark.parametrize("kind", list(GRIDS))
def test_the_sample_of_places_lies_in_cells_and_goes_along(kind: str) -> None:
    from geodiv.engines.spark.shipping import by_value

    grid = GRIDS[kind]()
    found = sampled(grid)
    assert len(set(found)) > 3
    code = "import pickle, sys; f, g = pickle.load(sys.stdin.buffer); print(f(g))"
    with clusters.bare_python() as python:
        said = subprocess.run([python, "-c", code], input=by_value((sampled, grid)), check=True, capture_output=True,
                              env=clusters.plain_environment()).stdout  # fmt: skip
    assert said.decode().strip() == str(found)


@needs_pyspark
def test_shipping_leaves_pickling_as_it_was() -> None:
    from pyspark import cloudpickle

    from geodiv.engines.spark.shipping import by_value

    before = cloudpickle.dumps(sampled)
    assert len(by_value(sampled)) > 10 * len(before)
    assert cloudpickle.dumps(sampled) == before


def test_versions_are_those_of_what_decides_cells_and_texts() -> None:
    found = versions()
    assert found["python"] == f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert {"numpy", "pyarrow", "h3", "pyproj", "shapely", "pyproj's library"} <= found.keys()
    assert found["pyarrow"] == pa.__version__
    assert all(found.values())


# --- rows of a worker ---------------------------------------------------------------------------------------


def reduced_here(visits: pa.Table, grid: Any, csv: bool = False) -> tuple[list[dict[str, Any]], list[str]]:
    layout = Layout.of(open_source(visits), spec(grid))
    schema = schema_of(1, True)
    batches = visits.select(layout.columns).to_batches(max_chunksize=2)
    rows = [row for batch in reduced(iter(batches), layout, schema, csv) for row in batch.to_pylist()]
    return [row for row in rows if row["said"] is None], [
        row["said"] for row in rows if row["said"] is not None
    ]


def test_rows_are_distinct_and_carry_their_visits() -> None:
    visits = pa.concat_tables([VISITS, VISITS.slice(0, 1)])
    rows, said = reduced_here(visits, gd.ColumnGrid("cell"))
    assert {(row["cell"], row["person"], row["v0"]): row["visits"] for row in rows} == {
        ("c-1", "007", "gym"): 2, ("c-1", "7", "bar"): 1, ("c-2", "007", "(missing)"): 1,
        ("c-9", "p", ""): 1, ("c-1", "q", "gym"): 1,
    }  # fmt: skip
    tally = tally_of(said, "d")
    assert (tally.rows, tally.counted, tally.dropped, tally.digest) == (8, 6, {"no person": 2}, "d")
    assert tally.first_rows == {}


def test_an_empty_field_of_a_text_file_is_missing() -> None:
    rows, _ = reduced_here(VISITS, gd.ColumnGrid("cell"), csv=True)
    assert {row["v0"] for row in rows} == {"gym", "bar", "(missing)"}


def test_bytes_that_were_no_utf8_are_an_error() -> None:
    visits = VISITS.set_column(0, "person", pa.array(["a\ufffd"] * len(VISITS)))
    _, said = reduced_here(visits, gd.ColumnGrid("cell"), csv=True)
    with pytest.raises(gd.SourceError, match="expected UTF-8 text in column 'person'"):
        tally_of(said, "")


def test_visits_that_cannot_be_read_come_back_as_an_error_and_all_is_taken() -> None:
    visits = VISITS.set_column(4, "activity", pa.array([["gym"]] * len(VISITS)))
    layout = Layout.of(open_source(visits), spec(gd.ColumnGrid("cell")))
    batches = iter(visits.select(layout.columns).to_batches(max_chunksize=1))
    said = [row["said"] for b in reduced(batches, layout, schema_of(1, True), False) for row in b.to_pylist()]
    assert next(batches, None) is None
    with pytest.raises(gd.SourceError, match="expected plain values in column 'activity'"):
        tally_of(said, "")


def test_no_batches_at_all_are_no_visits() -> None:
    layout = Layout.of(open_source(VISITS), spec(gd.H3Grid(8)))
    for csv in (False, True):
        said = [b.to_pylist()[0]["said"] for b in reduced(iter(()), layout, schema_of(1, False), csv)]
        assert (tally_of(said, "").rows, len(said)) == (0, 1)
    assert ROWS > 1000


# --- where Spark is -----------------------------------------------------------------------------------------


@contextmanager
def listening(answer: bytes | None) -> Iterator[int]:
    """The port of a server that takes connections and says nothing, or nothing sensible."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@needs_pyspark
@pytest.mark.parametrize("scheme", ["spark", "sc"])
def test_nobody_there_is_said_at_once(scheme: str) -> None:
    port = free_port()
    with pytest.raises(gd.UsageError, match=f"expected a Spark server at {scheme}://127.0.0.1:{port}, got: "):
        SparkEngine(f"{scheme}://127.0.0.1:{port}")


@needs_pyspark
def test_a_server_that_says_nothing_is_not_waited_for() -> None:
    if importlib.util.find_spec("grpc") is None:
        clusters.missing("grpcio is not installed")
    with listening(None) as port, pytest.raises(gd.UsageError, match=r"no answer in 1 s"):
        SparkEngine(f"sc://127.0.0.1:{port}", patience=1)


@needs_pyspark
def test_a_secret_in_an_address_is_not_repeated() -> None:
    port = free_port()
    with pytest.raises(gd.UsageError) as error:
        SparkEngine(f"sc://me:word@127.0.0.1:{port}/;token=hush;user_id=x")
    assert "hush" not in str(error.value)
    assert "word" not in str(error.value)
    assert f"sc://127.0.0.1:{port}" in str(error.value)


@needs_pyspark
@pytest.mark.parametrize(
    "address", ["spark://", "sc://:99", "spark://h:port", "spark://h:99999999", "local[0x]"]
)
def test_an_address_that_is_none_is_said_so(address: str) -> None:
    with pytest.raises(gd.UsageError, match="expected"):
        SparkEngine(address)


def test_addresses() -> None:
    good = ["local", "local[2]", "local[*]", "local[2,3]", "spark://h:7077", "spark://a:1,b:2", "sc://h"]
    assert all(map(is_address, good))
    assert not any(map(is_address, ["localhost", "local[]", "local[a]", "http://h", "memory", "yarn", ""]))


def test_without_pyspark_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(gd.UsageError, match=r"needs the package pyspark. Install geodiv\[spark\]"):
        SparkEngine("local[2]")


@needs_pyspark
def test_without_java_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(gd.UsageError, match=r"local\[2\] needs Java 17 or newer"):
        SparkEngine("local[2]")


@needs_pyspark
def test_an_older_pyspark_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", "3.5.6")
    with pytest.raises(gd.UsageError, match=r"needs pyspark 4\.1 or newer, got 3\.5\.6"):
        SparkEngine("local[2]")


def test_within_a_time() -> None:
    def late() -> gd.GeodivError:
        return gd.UsageError("late")

    assert within(60, lambda: 7, late) == 7
    with pytest.raises(ZeroDivisionError):
        within(60, lambda: 1 // 0, late)
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(gd.UsageError, match="late"):
        within(0.05, server.accept, late)


# --- what Spark says ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("Python in worker has different version: 3.10", gd.UsageError, "another version of Python"),
        ("[JAVA_GATEWAY_EXITED] Java gateway process exited", gd.UsageError, "Java does not start Spark"),
        ('Cannot run program "python3": error=2', gd.UsageError, "find no Python"),
        ("java.io.IOException: No space left on device", gd.SourceError, "disk of the cluster is full"),
        ("java.lang.OutOfMemoryError: Java heap space", gd.SourceError, "out of memory"),
        ("[MALFORMED_CSV_RECORD.X] record: p-1,secret", gd.SourceError, "more or fewer fields"),
        ("[PATH_NOT_FOUND] Path does not exist: file:/x", gd.SourceError, "every worker sees it"),
        ("Job 3 cancelled", gd.SourceError, "was cancelled"),
        ("All masters are unresponsive! Giving up.", gd.SourceError, "are gone"),
        ("ModuleNotFoundError: No module named 'h3'", gd.UsageError, "the workers lack the package 'h3'"),
        (
            "something of p-1\n\tat org.apache.spark.Thing(Thing.scala:7)",
            gd.SourceError,
            r"job failed \(OSError\)",
        ),
    ],
)
def test_failures_are_told_without_sparks_words(text: str, kind: type[gd.GeodivError], said: str) -> None:
    found = explanation(OSError(text), "spark://h:7077")
    assert type(found) is kind
    assert str(found).startswith("spark://h:7077: ")
    with pytest.raises(kind, match=said):
        raise found
    assert not [word for word in ("p-1", "secret", "scala", "org.apache") if word in str(found)]


# --- what the workers read ----------------------------------------------------------------------------------

MEMORY = MemoryEngine()


@pytest.fixture(scope="module", params=["sail", "local"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkEngine]:
    """An engine without a JVM and one with."""
    folder = tmp_path_factory.mktemp("engine")
    made = {"sail": lambda: clusters.sail_engine(folder), "local": clusters.local_engine}
    with made[request.param]() as chosen:
        yield chosen


def same(engine: SparkEngine, source: Any, spec: VisitSpec, other: Any = None) -> None:
    """The engine finds what the memory engine finds, in `other` if that is given."""
    found = engine.reduce(source, spec)
    expected = MEMORY.reduce(source if other is None else other, spec)
    assert found.keys.tolist() == expected.keys.tolist()
    assert found.persons.tolist() == expected.persons.tolist()
    assert [space.values for space in found.spaces] == [space.values for space in expected.spaces]
    for one, two in zip(found.pairs, expected.pairs, strict=True):
        for name in ("cell", "value", "persons", "visits"):
            assert getattr(one, name).tolist() == getattr(two, name).tolist()
    assert (found.intake.rows, found.intake.counted) == (expected.intake.rows, expected.intake.counted)
    assert found.intake.dropped == expected.intake.dropped
    assert found.intake.causes == expected.intake.causes
    if other is None:
        assert found.intake.digest == expected.intake.digest


def of(column: str = "activity", person: str = "person", **reading: Any) -> VisitSpec:
    reading = {"grid": gd.ColumnGrid("cell"), "on_bad_rows": "skip", **reading}
    return VisitSpec(person=person, attributes=(gd.Nominal(column),), **reading)


KINDS = {
    "int8": pa.array([1, 2, None], pa.int8()),
    "int16": pa.array([-1, 2, None], pa.int16()),
    "int32": pa.array([1, -999, None], pa.int32()),
    "int64": pa.array([2**53 + 1, -(2**63), None], pa.int64()),
    "uint8": pa.array([1, 255, None], pa.uint8()),
    "uint16": pa.array([1, 65535, None], pa.uint16()),
    "uint32": pa.array([1, 2**32 - 1, None], pa.uint32()),
    "uint64": pa.array([1, 2**64 - 1, None], pa.uint64()),
    "float": pa.array([0.1, 7.0, None], pa.float32()),
    "double": pa.array([0.1, -7.0, float("nan")], pa.float64()),
    "endless": pa.array([float("inf"), -0.0, 1e22], pa.float64()),
    "boolean": pa.array([True, False, None]),
    "decimal": pa.array([Decimal("1.50"), Decimal("7.00"), None], pa.decimal128(9, 2)),
    "date": pa.array([date(2026, 11, 30), date(1969, 12, 31), None], pa.date32()),
    "text": pa.array(["007", "", None]),
    "large": pa.array(["007", " 7 ", None], pa.large_string()),
    "dictionary": pa.array(["é", "e\u0301", None]).dictionary_encode(),
    "bytes": pa.array([b"007", b"x", None], pa.binary()),
}


def test_values_of_every_type_have_the_text_of_the_file(engine: SparkEngine, tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"cell": ["c", "c", "d"], "person": ["p", "q", "r"], **KINDS}), tmp_path / "v.parquet"
    )
    attributes = tuple(gd.Nominal(kind) for kind in KINDS)
    same(
        engine,
        tmp_path / "v.parquet",
        VisitSpec(person="person", grid=gd.ColumnGrid("cell"), attributes=attributes),
    )


@pytest.mark.parametrize("kind", ["int64", "double", "text", "bytes"])
def test_persons_and_cells_of_every_type_too(engine: SparkEngine, kind: str, tmp_path: Path) -> None:
    visits = pa.table({"cell": KINDS[kind], "person": KINDS[kind], "activity": ["a", "b", "c"]})
    pq.write_table(visits, tmp_path / "v.parquet")
    same(engine, tmp_path / "v.parquet", of())


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("ns", "UTC"), pa.time32("ms")])
def test_times_are_refused_since_spark_writes_them_otherwise(
    engine: SparkEngine, kind: pa.DataType, tmp_path: Path
) -> None:
    visits = pa.table({"cell": ["c"], "person": ["p"], "activity": pa.array([1], kind)})
    pq.write_table(visits, tmp_path / "v.parquet")
    with pytest.raises(gd.SourceError, match=r"texts, numbers, dates or true and false in column 'activity'"):
        engine.reduce(tmp_path / "v.parquet", of())
    if kind != pa.time32("ms"):  # of which Spark does not even read the file
        pq.write_table(visits.append_column("other", pa.array(["a"])), tmp_path / "v.parquet")
        same(engine, tmp_path / "v.parquet", of("other"))


LINES = {
    "plain": 'person,cell,activity\n007,c,gym\n7,c,\n,c,gym\n" ",d,"a, b"\n',
    "semicolons": "person;cell;activity\n007;c;1,5\n7;d;gym\n",
    "tabs": "person\tcell\tactivity\n007\tc\tgym\n",
    "quoted": 'person,cell,activity\n"0""07",c,"two\nlines"\n"7","d",""\n',
    "no last line end": "person,cell,activity\n7,c,gym",
    "carriage returns": "person,cell,activity\r\n7,c,gym\r\n8,d,bar\r\n",
    "byte order mark": "\ufeffperson,cell,activity\n7,c,gym\n",
    "blank lines": "person,cell,activity\n7,c,gym\n\n8,c,bar\n\n",
    "white space": "person,cell,activity\n 7 , c , gym \n7,c,gym\n",
    "backslash": 'person,cell,activity\n7\\,c,"a\\b"\n',
    "awkward names": "a.b,`x`,activity\n7,c,gym\n",
    "header only": "person,cell,activity\n",
}


@pytest.mark.parametrize("kind", list(LINES))
def test_csv_is_read_as_here(engine: SparkEngine, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_bytes(LINES[kind].encode())
    columns = {"person": "a.b", "grid": gd.ColumnGrid("`x`")} if kind == "awkward names" else {}
    same(engine, path, of(**columns))


def test_csv_in_gzip(engine: SparkEngine, tmp_path: Path) -> None:
    (tmp_path / "v.csv.gz").write_bytes(gzip.compress(LINES["plain"].encode()))
    same(engine, tmp_path / "v.csv.gz", of())


def test_csv_files_with_columns_in_another_order(engine: SparkEngine, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("person,cell,activity\n7,c,gym\n")
    (tmp_path / "b.csv").write_text("activity;person;cell\nbar;8;d\n")
    (tmp_path / "c.csv").write_text("person,cell,activity\n9,c,gym\n")
    same(engine, str(tmp_path / "*.csv"), of())
    same(engine, tmp_path, of())


@pytest.mark.parametrize("line", ["7,c", "7,c,gym,more"])
def test_a_line_of_a_csv_that_does_not_fit_is_an_error(
    engine: SparkEngine, line: str, tmp_path: Path
) -> None:
    (tmp_path / "v.csv").write_text(f"person,cell,activity\n7,c,gym\n{line}\n8,d,bar\n")
    with pytest.raises(gd.SourceError, match="more or fewer fields"):
        engine.reduce(tmp_path / "v.csv", of())


def visits(rows: int = 6) -> pa.Table:
    names = {"cell": ["c", "c", "d"], "person": ["p", "q", "p"], "activity": ["gym", None, "bar"]}
    return pa.table({name: (values * rows)[:rows] for name, values in names.items()})


@pytest.mark.parametrize(
    "name", ["a b.parquet", "a[1].parquet", "a{1,2}*?.parquet", "a#b%20.parquet", "é.parquet"]
)
def test_any_name_of_a_file(engine: SparkEngine, name: str, tmp_path: Path) -> None:
    pq.write_table(visits(), tmp_path / name)
    if engine._session.connect and set(name) & set("[]{}*?#%"):
        with pytest.raises(gd.SourceError, match="Rename the file"):
            engine.reduce(tmp_path / name, of())
    else:
        same(engine, tmp_path / name, of())


def test_folders_and_lists(engine: SparkEngine, tmp_path: Path) -> None:
    (tmp_path / "day=1").mkdir()
    pq.write_table(visits(), tmp_path / "day=1" / "a.parquet")
    pq.write_table(visits(4), tmp_path / "b.parquet")
    (tmp_path / "_hidden.parquet").write_bytes(b"no")
    same(engine, tmp_path, of())
    same(engine, [tmp_path / "b.parquet", str(tmp_path / "day=1" / "a.parquet")], of())


def test_files_that_lack_a_column_are_an_error(engine: SparkEngine, tmp_path: Path) -> None:
    pq.write_table(visits(), tmp_path / "a.parquet")
    pq.write_table(visits().drop_columns("activity"), tmp_path / "b.parquet")
    with pytest.raises(gd.SourceError, match=r"expected the column 'activity' \(as in '.*a.parquet'\)"):
        engine.reduce(tmp_path, of())
    with pytest.raises(gd.SourceError, match=r"the column 'nothing' \(an attribute\)"):
        engine.reduce(tmp_path / "a.parquet", of("nothing"))


def test_nothing_there(engine: SparkEngine, tmp_path: Path) -> None:
    for path in (tmp_path / "no.parquet", f"file://{tmp_path}/no.parquet", f"file://{tmp_path}/no.csv"):
        with pytest.raises(gd.SourceError):
            engine.reduce(path, of())


def test_an_address_is_read_by_the_cluster_alone(engine: SparkEngine, tmp_path: Path) -> None:
    for i in range(3):
        pq.write_table(visits(5 + i), tmp_path / f"{i}.parquet")
    same(engine, f"file://{tmp_path}", of(), other=tmp_path)
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "v.csv").write_text(LINES["semicolons"])
    same(engine, f"file://{tmp_path}/csv/v.csv", of(), other=tmp_path / "csv" / "v.csv")
    with pytest.raises(gd.SourceError, match="Parquet or CSV files on the cluster"):
        engine.reduce(f"file://{tmp_path}/v.gpkg", of())
    with pytest.raises(gd.SourceError, match="a file with layers"):
        engine.reduce(f"file://{tmp_path}", of(layer="x"))


def test_geometries(engine: SparkEngine, tmp_path: Path) -> None:
    points = shapely.points([2.35, 2.36, 2.41, 2.35], [48.85, 48.86, 48.9, 48.85])
    frame = gpd.GeoDataFrame(visits(4).to_pandas(), geometry=points, crs="EPSG:4326").to_crs("EPSG:2154")
    frame.loc[1, "geometry"] = None
    for i, encoding in enumerate(("WKB", "geoarrow")):
        frame.to_parquet(tmp_path / f"{i}.parquet", geometry_encoding=encoding)
        same(engine, tmp_path / f"{i}.parquet", of(grid=gd.H3Grid(9)))
    frame.to_file(tmp_path / "v.gpkg")
    same(engine, tmp_path / "v.gpkg", of(grid=gd.H3Grid(9)))
    frame.buffer(5).to_frame("geometry").join(frame[["person", "activity"]]).to_parquet(
        tmp_path / "p.parquet"
    )
    with pytest.raises(gd.SourceError, match="expected points in column 'geometry'"):
        engine.reduce(tmp_path / "p.parquet", of(grid=gd.H3Grid(9)))


def test_a_spark_frame(engine: SparkEngine, tmp_path: Path) -> None:
    pq.write_table(visits(), tmp_path / "v.parquet")
    spark = engine._session.spark
    frame = spark.read.parquet(f"file://{tmp_path}/v.parquet")
    same(engine, frame, of(), other=visits())
    same(engine, frame.filter("cell = 'c'"), of(), other=visits().filter(pc.equal(visits()["cell"], "c")))
    with pytest.raises(gd.SourceError, match=r"the column 'nothing' \(an attribute\) in the Spark DataFrame"):
        engine.reduce(frame, of("nothing"))
    at = frame.selectExpr("cell", "person", "timestamp'2026-11-30 00:00:00' AS activity")
    with pytest.raises(gd.SourceError, match="got timestamp"):
        engine.reduce(at, of())
    twice = frame.selectExpr("cell", "person", "activity", "cell AS activity")
    with pytest.raises(gd.SourceError, match="expected one column 'activity'"):
        engine.reduce(twice, of())


def test_a_live_session_is_used_and_left_as_it_was(engine: SparkEngine, tmp_path: Path) -> None:
    pq.write_table(visits(), tmp_path / "v.parquet")
    spark = engine._session.spark
    before = [table.name for table in spark.catalog.listTables()]
    with closing(SparkEngine(spark, few=0)) as mine:
        table = gd.tabulate(tmp_path / "v.parquet", grid=gd.ColumnGrid("cell"), person="person",
                            attributes=[gd.Nominal("activity")], engine=mine)  # fmt: skip
        assert len(spark.catalog.listTables()) == len(before) + 1
        assert table.persons.tolist() == [2, 1]
    assert [table.name for table in spark.catalog.listTables()] == before
    with pytest.raises(gd.UsageError, match="those of an engine that was closed"):
        table.count(CSR(np.ones((1, 2))))
    same(engine, tmp_path / "v.parquet", of())


def test_few_contributions_are_counted_here(engine: SparkEngine) -> None:
    """The same counts, and nothing is left on the cluster; one more than few stay there."""
    spark, rows = engine._session.spark, visits(3)
    before = len(spark.catalog.listTables())
    expected = MEMORY.reduce(rows, of())
    groups = [
        Groups(None, np.array([0, 1, 1]), None, np.array([0, 0, 1]), 3),
        Groups(0, np.array([0, 0, 1]), np.array([1, 2, 0]), np.array([2, 2, 0]), 3),
    ]
    counted = [MEMORY.count(expected, group).tolist() for group in groups]
    for few, held in ((2, 1), (3, 0)):
        with closing(engine_of(spark, few=few)) as mine:
            found = mine.reduce(rows, of())
            assert len(spark.catalog.listTables()) == before + held
            assert [mine.count(found, group).tolist() for group in groups] == counted
            assert mine.reduce(rows.slice(0, 0), of()).persons.tolist() == []
    assert len(spark.catalog.listTables()) == before


def test_a_table_that_nobody_refers_to_is_given_up(engine: SparkEngine) -> None:
    spark = engine._session.spark
    before = len(spark.catalog.listTables())
    found = engine.reduce(visits(), of())
    assert len(spark.catalog.listTables()) == before + 1
    del found
    gc.collect()
    assert len(spark.catalog.listTables()) == before
    with pytest.raises(gd.UnknownValueError):
        engine.reduce(visits(), VisitSpec(person="person", grid=gd.ColumnGrid("cell"),
                                          attributes=(gd.Ordinal("activity", order=["a", "b"]),)))  # fmt: skip
    gc.collect()
    assert len(spark.catalog.listTables()) == before


# --- interrupts ---------------------------------------------------------------------------------------------

STEPS = 300


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_an_interrupt_cancels_the_job_and_the_session_stays_usable(
    engine: SparkEngine, tmp_path: Path
) -> None:
    spark, steps = engine._session.spark, tmp_path / "steps"
    steps.mkdir()
    where = str(steps)

    def slow(batches: Any) -> Any:
        import time
        import uuid

        for batch in batches:
            for _ in range(STEPS):
                open(f"{where}/{uuid.uuid4().hex}", "x").close()
                time.sleep(0.1)
                yield batch.slice(0, 1)

    def interrupt() -> None:
        while not list(steps.iterdir()):
            sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    sender = Thread(target=interrupt)
    sender.start()
    with pytest.raises(KeyboardInterrupt):
        engine._session.job(lambda: spark.range(0, 4, 1, 2).mapInArrow(slow, "id bigint").toArrow())
    sender.join()
    before = 0
    while (now := len(list(steps.iterdir()))) > before:  # what was at work may end
        before = now
        sleep(1)
    assert now < 2 * STEPS
    pq.write_table(visits(), tmp_path / "v.parquet")
    same(engine, tmp_path / "v.parquet", of())


@pytest.mark.parametrize("stage", ["read", "count"])
def test_an_error_on_the_way_leaves_nothing_on_the_cluster(
    engine: SparkEngine, stage: str, tmp_path: Path
) -> None:
    """Not even while somebody still looks at the error, whose frames refer to the tables."""
    pq.write_table(visits(), tmp_path / "v.parquet")
    before = len(engine._session.spark.catalog.listTables())

    def stop(now: str, done: int, total: int) -> None:
        if now == stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as error:
        engine.reduce(tmp_path / "v.parquet", of(), stop)
    assert len(engine._session.spark.catalog.listTables()) == before
    assert error.tb is not None


def test_jobs_carry_what_the_owner_of_the_session_set(engine: SparkEngine) -> None:
    spark = engine._session.spark
    if engine._session.connect:
        spark.addTag("theirs")
        found = engine._session.job(spark.getTags)
        spark.removeTag("theirs")
        assert "theirs" in found
        assert len(found) == 2
        assert spark.getTags() == set()
    else:
        context = spark.sparkContext
        context.setLocalProperty("spark.scheduler.pool", "theirs")
        assert engine._session.job(lambda: context.getLocalProperty("spark.scheduler.pool")) == "theirs"
        assert len(engine._session.job(context.getJobTags)) == 1
        context.setLocalProperty("spark.scheduler.pool", None)
        assert len(context.getJobTags()) == 0


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_an_interrupt_while_java_starts_does_not_leave_it_behind(
    name: str, code: int, tmp_path: Path
) -> None:
    """Java holds standard output, which ends when the last of both has."""
    clusters.need_java()
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text(f'#!/bin/sh\ntouch "{tmp_path}/started"\nexec "{java}" "$@"\n')
    (tmp_path / "bin" / "java").chmod(0o755)
    command = [
        sys.executable,
        "-m",
        "geodiv",
        "score",
        f"{FIXTURES}/visits.parquet",
        "-p",
        f"{FIXTURES}/policy.toml",
    ]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = {**os.environ, "JAVA_HOME": str(tmp_path), "PYTHONPATH": str(FIXTURES.parent)}
    with subprocess.Popen(
        [*command, "--engine", "local[1]"], env=environment, start_new_session=True, **pipes
    ) as run:
        try:
            while not (tmp_path / "started").exists():
                assert run.poll() is None
                sleep(0.02)
            run.send_signal(signal.Signals[name])
            _, said = run.communicate(timeout=120)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)
    assert run.returncode == code
    assert said.strip().endswith("Nothing half-written is left.")
    assert "Traceback" not in said


def test_a_frame_of_another_session_is_refused(engine: SparkEngine) -> None:
    class Elsewhere:
        sparkSession = object()

        def mapInArrow(self) -> None: ...

    with pytest.raises(gd.UsageError, match="data frame of another Spark session"):
        engine.reduce(Elsewhere(), of())


# --- workers that are not what this machine is, and servers that go away --------------------------------------

BROKEN = {
    "import h3; h3.__version__ = '0.0.1'": r"other versions than this machine.*h3 0\.0\.1 \(here",
    "import sys; sys.modules['shapely'] = None": "the workers lack (the package ')?shapely",
    "import h3.api.basic_int as h; h.latlng_to_cell = lambda *place: 7": "into another cell than this machine",
}


@pytest.mark.parametrize("first", list(BROKEN))
def test_workers_that_would_count_otherwise_are_refused(first: str, tmp_path: Path) -> None:
    points = visits().append_column("lon", pa.array([2.35] * 6)).append_column("lat", pa.array([48.85] * 6))
    pq.write_table(points, tmp_path / "v.parquet")
    with clusters.sail(first) as (address, _), closing(SparkEngine(address)) as engine:
        with pytest.raises(gd.UsageError, match=BROKEN[first]):
            engine.reduce(tmp_path / "v.parquet", of(grid=gd.H3Grid(8)))
        same(engine, points, of(grid=gd.H3Grid(8)))


def test_a_server_that_dies_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "spilled"
    folder.mkdir()
    pq.write_table(visits(), tmp_path / "v.parquet")
    with clusters.sail() as (address, server):
        engine = SparkEngine(address, folder=folder, few=0)
        engine._session.spark.client.set_retry_policies([])
        table = gd.tabulate(tmp_path / "v.parquet", grid=gd.ColumnGrid("cell"), person="person",
                            attributes=[gd.Nominal("activity")], engine=engine)  # fmt: skip
        assert [path.stat().st_mode & 0o777 for path in folder.iterdir()] == [0o700]
        clusters.end(server)
        with pytest.raises(
            gd.SourceError, match=f"^{address}: the cluster, or too many of its workers, are gone"
        ):
            table.count(CSR(np.ones((1, 2))))
        engine.close()
    assert list(folder.iterdir()) == []


def test_on_the_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The same files as the memory engine's; a wrong address is a usage error that leaves no file."""
    command = ["enforce", f"{FIXTURES}/visits.parquet", "-p", f"{FIXTURES}/policy.toml", "--json"]
    said = []
    with clusters.sail() as (address, _):
        for name, engine in (("memory", "memory"), ("spark", address)):
            (tmp_path / name).mkdir()
            assert run([*command, "--engine", engine, "-o", str(tmp_path / name / "release.csv")]) == 0
            said.append(capfd.readouterr())
    assert (tmp_path / "spark" / "release.csv").read_bytes() == (
        tmp_path / "memory" / "release.csv"
    ).read_bytes()
    assert not [line for line in said[1].err.splitlines() if "Warning" in line or "Traceback" in line]
    out = tmp_path / "none.csv"
    assert run([*command, "--engine", address, "-o", str(out)]) == 2
    assert f"expected a Spark server at {address}, got: " in capfd.readouterr().err
    assert run([*command, "--engine", "local[2]", "--threads", "2", "-o", str(out)]) == 2
    assert "memory limit and threads belong to engine 'duckdb'" in capfd.readouterr().err
    assert not out.exists()


def test_java_that_is_too_old_or_broken_is_said(tmp_path: Path) -> None:
    clusters.need_java()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("#!/bin/sh\necho secret >&2\nexit 1\n")
    (tmp_path / "bin" / "java").chmod(0o755)
    command = [
        sys.executable,
        "-m",
        "geodiv",
        "score",
        f"{FIXTURES}/visits.parquet",
        "-p",
        f"{FIXTURES}/policy.toml",
    ]
    said = subprocess.run([*command, "--engine", "local[1]"], capture_output=True, text=True,
                          env={**os.environ, "JAVA_HOME": str(tmp_path)})  # fmt: skip
    assert said.returncode == 2
    assert "local[1]: Java does not start Spark" in said.stderr
    assert "secret" not in said.stderr
    assert "Traceback" not in said.stderr
