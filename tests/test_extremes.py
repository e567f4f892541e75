"""Visits at the edges of what can come: nothing, one of everything, odd column types, the ends of the world."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import geodiv as gd
from geodiv import cli

FLAGS = ("--h3", "8", "--person", "who", "--attribute", "poi", "--k", "5", "--l", "2")


def crowd(persons: int = 6, values: tuple[Any, ...] = ("a", "b", "c"), spots: int = 3) -> pd.DataFrame:
    rows = [
        (f"p{i}", 16.37 + 0.02 * spot, 48.2, v)
        for spot in range(spots)
        for i in range(persons)
        for v in values
    ]
    return pd.DataFrame(rows, columns=["who", "lon", "lat", "poi"])


@pytest.fixture
def enforce(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Any]:
    """Exit code, standard error and the release of visits (a frame or an Arrow table) that are in a Parquet file."""
    monkeypatch.chdir(tmp_path)

    def call(visits: pd.DataFrame | pa.Table, *more: str) -> tuple[int, str, gd.Release | None]:
        table = visits if isinstance(visits, pa.Table) else pa.Table.from_pandas(visits, preserve_index=False)
        pq.write_table(table, "v.parquet")
        code = cli.run(
            ["enforce", "v.parquet", *FLAGS, *more, "-o", "r.gpkg", "--report", "r.html", "--overwrite"]
        )
        told = capfd.readouterr().err
        assert "Traceback" not in told
        if Path("r.gpkg").exists():
            assert cli.run(["map", "r.gpkg", "-o", "m.html", "--overwrite"]) == 0
            assert cli.run(["info", "r.gpkg"]) == 0
        return code, told, gd.read_release("r.gpkg") if Path("r.gpkg").exists() else None

    return call


def test_no_visits_all_below_k_one_cell_and_one_person(enforce: Any) -> None:
    empty = crowd().iloc[:0]
    for visits in (empty, crowd(persons=2), pd.concat([crowd(persons=1)] * 1000)):
        code, told, release = enforce(visits)
        assert code == 1, told
        assert release is not None
        assert len(release.cells) == len(release.counts) == 0
    code, told, release = enforce(crowd(spots=1))
    assert (code, len(release.cells)) == (0, 1), told


def test_every_value_missing_is_one_value_that_no_gate_on_diversity_can_pass(enforce: Any) -> None:
    for nothing in (None, float("nan")):
        code, told, release = enforce(crowd(values=(nothing,)))
        assert (code, release) == (3, None)
        assert "it has 1 values, and no zone can be more diverse" in told


def test_a_person_with_very_many_visits_is_one_person(enforce: Any) -> None:
    many = pd.DataFrame(
        {"who": "p0", "lon": 16.37, "lat": 48.2, "poi": np.array(list("abc"))[np.arange(60_000) % 3]}
    )
    _, _, with_them = enforce(pd.concat([crowd(), many]))
    _, _, without = enforce(crowd())
    pd.testing.assert_frame_equal(with_them.counts, without.counts)


def test_very_many_values_are_no_trouble(enforce: Any) -> None:
    values = tuple(f"v{i}" for i in range(2_500))  # more than a table of SQLite has columns
    code, told, release = enforce(crowd(values=values, spots=1), "--t", "0.5")
    assert code == 0, told
    assert len(release.counts) == len(values)
    assert "note: invalid value" not in told


@pytest.mark.parametrize(
    "place", [(0, 90), (0, -90), (180, 0), (-180, 0), (180, 90), (-180, -90), (179.999, -16.5)]
)
def test_the_ends_of_the_world_are_places(place: tuple[float, float], enforce: Any) -> None:
    code, told, release = enforce(crowd(spots=1).assign(lon=float(place[0]), lat=float(place[1])))
    assert code == 0, told
    assert (len(release.cells), int(release.cells["persons"].iloc[0])) == (1, 6)


def column(visits: pd.DataFrame, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    table = pa.Table.from_pandas(visits, preserve_index=False)
    return table.set_column(table.column_names.index(name), name, values)


def kinds(texts: list[str]) -> dict[str, pa.Array]:
    """The same three values as columns of many types."""
    codes = [("a", "b", "c").index(text) for text in texts]
    return {
        "dictionary": pa.array(texts).dictionary_encode(),
        "dictionary with what nobody has": pa.DictionaryArray.from_arrays(
            pa.array(codes, pa.int8()), ["a", "b", "c", "z"]
        ),
        "dictionary with a value twice": pa.DictionaryArray.from_arrays(
            pa.array(codes), ["a", "b", "c", "a"]
        ),
        "large text": pa.array(texts, pa.large_string()),
        "bytes": pa.array([text.encode() for text in texts]),
        "decimals": pa.array([decimal.Decimal(code) / 4 for code in codes], pa.decimal128(9, 2)),
        "large decimals": pa.array([decimal.Decimal(code) for code in codes], pa.decimal256(60, 10)),
        "numbers": pa.array(codes, pa.uint8()),
        "halves": pa.array([code / 2 for code in codes], pa.float64()),
        "dates": pa.array(codes, pa.int32()).cast(pa.date32()),
        "instants": pa.array(codes, pa.int64()).cast(pa.timestamp("us", "UTC")),
        "flags and none": pa.array([{0: True, 1: False, 2: None}[code] for code in codes]),
    }


@pytest.mark.parametrize("name", kinds(["a", "b", "c"]))
def test_values_of_every_column_type_are_values(name: str, enforce: Any) -> None:
    frame = crowd()
    code, told, release = enforce(column(frame, "poi", kinds(frame["poi"].tolist())[name]))
    assert code == 0, told
    assert len(release.cells) == 3
    assert release.counts.groupby("cell_id").size().tolist() == [3, 3, 3]
    assert set(release.counts["persons"]) == {6}


def test_a_column_of_nothing_is_missing_and_nested_ones_are_refused(enforce: Any) -> None:
    frame = crowd()
    assert "it has 1 values" in enforce(column(frame, "poi", pa.nulls(len(frame))))[1]
    pairs = pa.array([[("a", 1)]] * len(frame), pa.map_(pa.string(), pa.int64()))
    for values in (pa.array([["a"]] * len(frame)), pa.array([{"a": 1}] * len(frame)), pairs):
        Path("r.gpkg").unlink(missing_ok=True)
        code, told, release = enforce(column(frame, "poi", values))
        assert (code, told.count("\n"), release) == (3, 1, None), told
        assert "'poi'" in told


def test_persons_and_coordinates_of_odd_types(enforce: Any) -> None:
    frame = crowd()
    for name, values in (
        ("who", pa.array([decimal.Decimal(w[1:]) for w in frame["who"]], pa.decimal128(5, 0))),
        ("lon", pa.array([decimal.Decimal(f"{x:.2f}") for x in frame["lon"]], pa.decimal128(9, 4))),
        ("lat", pa.array(frame["lat"].astype(str)).dictionary_encode()),
    ):
        code, told, release = enforce(column(frame, name, values))
        assert (code, len(release.cells)) == (0, 3), told
    for name in ("who", "lon"):
        Path("r.gpkg").unlink(missing_ok=True)
        code, told, release = enforce(column(frame, name, pa.nulls(len(frame))))
        assert (code, release) == (3, None)
        assert "no person" in told or "no coordinate" in told


def test_statistics_that_lie_change_nothing(tmp_path: Path, enforce: Any) -> None:
    """The footer's smallest and largest values are overwritten: nothing may be left out for them."""
    frame = crowd(values=("mmmm", "nnnn", "oooo"))
    _, _, honest = enforce(frame)
    path = tmp_path / "v.parquet"
    data = path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    lying = data[:footer] + data[footer:].replace(b"mmmm", b"zzzz").replace(b"oooo", b"aaaa")
    assert lying != data
    path.write_bytes(lying)
    assert pq.read_metadata(path).row_group(0).column(3).statistics.min == "zzzz"
    assert cli.run(["enforce", str(path), *FLAGS, "-o", "lying.gpkg"]) == 0
    pd.testing.assert_frame_equal(gd.read_release("lying.gpkg").counts, honest.counts)


READERS = (["score", "bad.parquet", *FLAGS, "-o", "w.gpkg"], ["init", "bad.parquet"])
NO_TEXT = b"\xfc"
"""No UTF-8 begins like this."""


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Exit code of a command in a folder of its own, and what it printed, on both streams."""
    monkeypatch.chdir(tmp_path)

    def call(*command: str) -> tuple[int, str]:
        code = cli.run(list(command))
        return code, "".join(capfd.readouterr())

    return call


@pytest.mark.parametrize("column", ["who", "poi"])
@pytest.mark.parametrize("kind", ["plain", "dictionary"])
def test_text_that_is_no_utf8_is_one_line(said: Any, column: str, kind: str) -> None:
    frame = pa.Table.from_pandas(crowd(), preserve_index=False)
    values = pa.array([NO_TEXT if row == 3 else b"x" for row in range(frame.num_rows)], pa.binary())
    values = pa.Array.from_buffers(pa.string(), len(values), values.buffers())
    if kind == "dictionary":
        values = values.dictionary_encode()
    table = frame.set_column(frame.column_names.index(column), column, values)
    pq.write_table(table, "bad.parquet")
    expected = f"expected text in UTF-8 in column '{column}', got bytes that are not"
    for source in (table, "bad.parquet"):
        with pytest.raises(gd.SourceError, match=expected):
            gd.tabulate(
                source, grid=gd.H3Grid(8), person="who", attributes=[gd.Nominal("poi")], on_bad_rows="skip"
            )
    for command in READERS:
        code, told = said(*command)
        assert code == 3
        assert expected in told
        assert told.count("\n") == 1


@pytest.mark.parametrize("at", [0, 1, 2], ids=["in a chunk", "in the schema", "everywhere"])
def test_names_that_are_no_utf8_are_one_line(said: Any, at: int) -> None:
    pq.write_table(pa.Table.from_pandas(crowd().assign(other=1)), "v.parquet", store_schema=False)
    data = Path("v.parquet").read_bytes()
    places = [i for i in range(len(data)) if data.startswith(b"other", i)]
    for place in places if at == 2 else [places[at]]:
        data = data[:place] + NO_TEXT + data[place + 1 :]
    Path("bad.parquet").write_bytes(data)
    for command in READERS:
        code, told = said(*command)
        assert code == 3
        assert "bad.parquet" in told
        assert told.count("\n") == 1
