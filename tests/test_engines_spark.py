"""The Spark engine: what goes to the workers, what is read there, and what is said when something is wrong."""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import clusters
import geopandas as gpd
import pyarrow as pa
import pytest
import shapely

import geodiv as gd
from geodiv.engines.spark import SparkEngine
from geodiv.engines.spark.failures import explanation
from geodiv.engines.spark.session import is_address, within
from geodiv.engines.spark.workers import ROWS, reduced, sampled, schema_of, tally_of, versions
from geodiv.intake import VisitSpec
from geodiv.intake.table import Layout
from geodiv.sources import open_source

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
