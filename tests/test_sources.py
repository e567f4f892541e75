"""Opening any source: the same visits, whatever holds them, and a clear error for what cannot be read."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import itertools
import json
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from geodiv.errors import SourceError, UsageError
from geodiv.sources import open_source
from geodiv.sources.fingerprint import Fingerprint
from geodiv.sources.lines import Lines
from geodiv.sources.source import plain_types, regroup

VISITS = pd.DataFrame({
    "person": ["ann", "bob", "ann", "cem", "dee"],
    "stars": [1, 2, 3, 4, 5],
    "poi": ["café", "gym", None, "gym", "work"],
    "lon": [16.1, 16.2, 16.3, 16.4, 16.5],
    "lat": [48.1, 48.2, 48.3, 48.4, 48.5],
})  # fmt: skip


def located(crs: str | None = "EPSG:4326") -> gpd.GeoDataFrame:
    points = gpd.points_from_xy(VISITS["lon"], VISITS["lat"])
    return gpd.GeoDataFrame(VISITS[["person", "stars", "poi"]], geometry=points, crs=crs)


def rows(source: Any, columns: list[str], rows_per_batch: int | None = None) -> dict[str, list[Any]]:
    tables = [plain_types(t) for t in open_source(source).batches(columns, rows_per_batch)]
    return {c: [v for t in tables for v in t.column(c).to_pylist()] for c in columns}


class Capsule:
    """A frame of which only the Arrow stream is known."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def _csv(path: Path) -> Any:
    VISITS.to_csv(path / "v.csv", index=False)
    return path / "v.csv"


def _gz(path: Path) -> Any:
    VISITS.to_csv(path / "v.csv.gz", index=False)
    return str(path / "v.csv.gz")


def _semicolons(path: Path) -> Any:
    VISITS.to_csv(path / "v.txt", index=False, sep=";")
    return path / "v.txt"


def _tabs(path: Path) -> Any:
    VISITS.to_csv(path / "v.tsv", index=False, sep="\t", lineterminator="\r\n", encoding="utf-8-sig")
    return path / "v.tsv"


def _parquet(path: Path) -> Any:
    VISITS.to_parquet(path / "v.parquet")
    return path / "v.parquet"


def _glob(path: Path) -> Any:
    VISITS.iloc[:2].to_parquet(path / "v1.parquet")
    VISITS.iloc[2:].to_parquet(path / "v2.parquet")
    return str(path / "v*.parquet")


def _folder(path: Path) -> Any:
    (path / "some" / "below").mkdir(parents=True)
    VISITS.iloc[:2].to_parquet(path / "some" / "a.parquet")
    VISITS.iloc[2:].to_parquet(path / "some" / "below" / "b.parquet")
    (path / "some" / "_SUCCESS").touch()
    (path / "some" / ".hidden.parquet").write_text("no Parquet")
    return path / "some"


def _list(path: Path) -> Any:
    VISITS.iloc[:2].to_csv(path / "b.csv", index=False)
    VISITS.iloc[2:].to_csv(path / "a.csv", index=False)
    return [path / "b.csv", str(path / "a.csv")]


def _geoparquet(path: Path) -> Any:
    located().to_parquet(path / "v.parquet")
    return path / "v.parquet"


def _written(name: str) -> Callable[[Path], Any]:
    def write(path: Path) -> Any:
        located().to_file(path / name)
        return path / name

    return write


PLAIN: dict[str, Callable[[Path], Any]] = {
    "csv": _csv,
    "csv.gz": _gz,
    "semicolons": _semicolons,
    "tabs, BOM, CRLF": _tabs,
    "parquet": _parquet,
    "glob": _glob,
    "folder": _folder,
    "list": _list,
    "DataFrame": lambda _: VISITS,
    "Table": lambda _: pa.Table.from_pandas(VISITS),
    "RecordBatch": lambda _: pa.RecordBatch.from_pandas(VISITS),
    "RecordBatchReader": lambda _: pa.Table.from_pandas(VISITS).to_reader(max_chunksize=2),
    "Arrow stream": lambda _: Capsule(pa.Table.from_pandas(VISITS)),
}
SPATIAL: dict[str, Callable[[Path], Any]] = {
    "geoparquet": _geoparquet,
    "gpkg": _written("v.gpkg"),
    "geojson": _written("v.geojson"),
    "fgb": _written("v.fgb"),
    "shp": _written("v.shp"),
    "GeoDataFrame": lambda _: located(),
    "GeoArrow": lambda _: Capsule(pa.table(located().to_arrow())),
}


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("rows_per_batch", [None, 1, 2, 100])
def test_a_table_gives_the_same_rows(kind: str, rows_per_batch: int | None, tmp_path: Path) -> None:
    read = rows(PLAIN[kind](tmp_path), ["stars", "person", "poi"], rows_per_batch)
    assert read["person"] == VISITS["person"].tolist()
    assert [str(s) for s in read["stars"]] == ["1", "2", "3", "4", "5"]
    assert read["poi"] == ["café", "gym", None, "gym", "work"]


@pytest.mark.parametrize("kind", SPATIAL)
@pytest.mark.parametrize("rows_per_batch", [None, 2])
def test_a_layer_gives_the_same_rows_and_its_crs(
    kind: str, rows_per_batch: int | None, tmp_path: Path
) -> None:
    given = SPATIAL[kind](tmp_path)
    opened = open_source(given)
    assert opened.geometry is not None
    assert opened.crs is not None
    assert opened.crs.equals("EPSG:4326", ignore_axis_order=True)
    read = rows(given, [opened.geometry, "person", "poi"], rows_per_batch)
    order = np.argsort(shapely.get_x(_points(read[opened.geometry])))  # FlatGeobuf sorts by place
    assert [read["person"][i] for i in order] == VISITS["person"].tolist()
    assert [read["poi"][i] for i in order] == ["café", "gym", None, "gym", "work"]
    assert np.allclose(shapely.get_x(_points(read[opened.geometry]))[order], VISITS["lon"])


def _points(values: list[Any]) -> Any:
    if isinstance(values[0], dict):
        return shapely.points([v["x"] for v in values], [v["y"] for v in values])
    return shapely.from_wkb(values)


def test_only_the_columns_asked_for_come(tmp_path: Path) -> None:
    for kind, make in PLAIN.items():
        if kind not in ("glob", "folder", "list"):
            [table] = open_source(make(tmp_path)).batches(["poi"], None)
            assert table.column_names == ["poi"], kind


def test_an_opened_source_is_returned_as_it_is() -> None:
    opened = open_source(VISITS)
    assert open_source(opened) is opened


def test_columns_have_types(tmp_path: Path) -> None:
    assert open_source(VISITS).columns["stars"] == pa.int64()
    assert open_source(_parquet(tmp_path)).columns["stars"] == pa.int64()
    assert set(open_source(_csv(tmp_path)).columns.values()) == {pa.string()}
    assert list(open_source(located()).columns) == ["person", "stars", "poi", "geometry"]


def test_standard_input_is_a_csv(monkeypatch: pytest.MonkeyPatch) -> None:
    text = VISITS.to_csv(index=False).encode()
    for data in (text, gzip.compress(text)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        opened = open_source("-")
        assert opened.digest() == hashlib.sha256(data).hexdigest()
        assert rows(opened, ["person"])["person"] == VISITS["person"].tolist()
        assert rows(opened, ["person"], 2)["person"] == VISITS["person"].tolist()


# ---- frames of many kinds


def test_the_frame_is_not_written_to() -> None:
    before, frame = located(), located()
    rows(frame, ["geometry", "person"], 2)
    pd.testing.assert_frame_equal(pd.DataFrame(frame), pd.DataFrame(before))
    assert frame.crs == before.crs


def test_a_geometry_column_with_another_name() -> None:
    assert open_source(located().rename_geometry("where")).geometry == "where"


def test_a_plain_frame_with_one_geometry_column_has_a_geometry() -> None:
    opened = open_source(pd.DataFrame(located("EPSG:3035")))
    assert opened.geometry == "geometry"
    assert opened.crs == "EPSG:3035"


def test_of_two_geometry_columns_the_active_one_counts() -> None:
    frame = located().assign(other=located().geometry)
    assert open_source(frame).geometry == "geometry"
    assert open_source(frame.set_geometry("other")).geometry == "other"
    assert open_source(pd.DataFrame(frame)).geometry is None


def test_names_that_are_no_text_are_taken_as_text() -> None:
    frame = pd.DataFrame([[1, 2]], columns=[0, 1])
    assert rows(frame, ["1"]) == {"1": [2]}


@pytest.mark.parametrize(
    "values",
    [
        pd.Series(["a", None, "b", "a"], dtype="string"),
        pd.Series(["a", None, "b", "a"], dtype="str"),
        pd.Series(["a", None, "b", "a"], dtype=object),
        pd.Series(["a", np.nan, "b", "a"], dtype=object),
        pd.Series(["a", pd.NA, "b", "a"], dtype=object),
        pd.Series(["a", pd.NaT, "b", "a"], dtype=object),
        pd.Series(["a", None, "b", "a"], dtype="category"),
        pd.Series(["a", None, "b", "a"], dtype=pd.ArrowDtype(pa.string())),
        pd.Series(["a", None, "b", "a"], dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))),
    ],
    ids=lambda s: str(s.dtype),
)
def test_texts_of_every_pandas_type(values: pd.Series) -> None:
    assert rows(pd.DataFrame({"v": values}), ["v"])["v"] == ["a", None, "b", "a"]


def test_a_column_of_mixed_types_becomes_text() -> None:
    mixed = pd.Series([1, "1", 2.0, True, None, np.nan, pd.NA, 0.5], dtype=object)
    expected = ["1", "1", "2", "true", None, None, None, "0.5"]
    assert rows(pd.DataFrame({"v": mixed}), ["v"])["v"] == expected
    assert rows(pd.DataFrame({"v": mixed.astype("category")}), ["v"])["v"][:3] == ["1", "1", "2"]


def test_periods_become_text() -> None:
    frame = pd.DataFrame({"v": pd.period_range("2026-01", periods=2, freq="M")})
    assert rows(frame, ["v"])["v"] == ["2026-01", "2026-02"]


@pytest.mark.skipif(not hasattr(pa, "string_view"), reason="this pyarrow has no views yet")
def test_views_half_floats_and_runs_become_plain() -> None:
    view = pa.array(["a", None], pa.string_view())
    table = pa.table({
        "view": view,
        "coded": pa.DictionaryArray.from_arrays(pa.array([0, None], pa.uint8()), view),
        "half": pa.array([np.float16(0.5), None], pa.float16()),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array(["r"])),
        "bytes": pa.array([b"b", None], pa.binary_view()),
    })  # fmt: skip
    plain = plain_types(table)
    assert [str(t) for t in plain.schema.types[:1]] == ["large_string"]
    assert plain.to_pydict() == table.to_pydict()
    assert not any("view" in str(t) or "run_end" in str(t) or "half" in str(t) for t in plain.schema.types)


def test_a_lazy_frame_is_told_to_collect() -> None:
    class LazyFrame:
        def collect(self) -> None: ...

    with pytest.raises(SourceError, match=r"LazyFrame\. Call \.collect\(\) first"):
        open_source(LazyFrame())


# ---- digests


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_a_file_has_the_digest_of_its_bytes(kind: str, tmp_path: Path) -> None:
    path = Path(PLAIN[kind](tmp_path))
    assert open_source(path).digest() == hashlib.sha256(path.read_bytes()).hexdigest()


def test_several_files_have_the_digest_of_their_names_and_digests(tmp_path: Path) -> None:
    opened = open_source(_glob(tmp_path))
    lines = [
        f"{hashlib.sha256((tmp_path / n).read_bytes()).hexdigest()}  {n}\n"
        for n in ("v1.parquet", "v2.parquet")
    ]
    assert opened.digest() == hashlib.sha256("".join(lines).encode()).hexdigest()
    assert open_source([tmp_path / "v2.parquet", tmp_path / "v1.parquet"]).digest() == opened.digest()


def test_a_shapefile_has_the_digest_of_its_companions_too(tmp_path: Path) -> None:
    path = _written("v.shp")(tmp_path)
    before = open_source(path).digest()
    located().to_file(tmp_path / "other.shp")
    assert open_source(path).digest() == before
    frame = located().assign(poi="changed")
    frame.to_file(path)  # the geometry in v.shp stays the same; v.dbf does not
    assert open_source(path).digest() != before


LONG = pa.table({
    "who": [f"p{i % 7}" if i % 5 else None for i in range(70_000)],
    "x": np.arange(70_000, dtype=float),
})  # fmt: skip
"""Longer than what is hashed at a time."""


@settings(max_examples=20)
@given(cuts=st.lists(st.integers(0, 80_000), max_size=4), coded=st.booleans())
def test_a_fingerprint_does_not_depend_on_how_rows_are_cut(cuts: list[int], coded: bool) -> None:
    size, table = LONG.num_rows, LONG
    whole = Fingerprint()
    whole.update(table)
    if coded:
        table = table.set_column(0, "who", table.column("who").dictionary_encode())
    parts = Fingerprint()
    edges = [0, *sorted(min(c, size) for c in cuts), size]
    for a, b in itertools.pairwise(edges):
        parts.update(table.slice(a, b - a))
    assert parts.hexdigest() == whole.hexdigest()


def test_a_fingerprint_tells_rows_values_and_names_apart() -> None:
    def of(table: pa.Table) -> str:
        fingerprint = Fingerprint()
        fingerprint.update(table)
        return fingerprint.hexdigest()

    tables = [
        pa.table({"a": [1, 2]}),
        pa.table({"a": [2, 1]}),
        pa.table({"a": [1, None]}),
        pa.table({"b": [1, 2]}),
        pa.table({"a": ["1", "2"]}),
        pa.table({"a": pa.array([], pa.int64())}),
    ]
    assert len({of(table) for table in tables}) == len(tables)
    assert len(Fingerprint().hexdigest()) == 64


@given(st.lists(st.integers(0, 5), max_size=6), st.integers(1, 7))
def test_regrouped_rows_keep_their_order(sizes: list[int], wanted: int) -> None:
    start, tables = 0, []
    for size in sizes:
        tables.append(pa.table({"n": pa.array(range(start, start + size), pa.int64())}))
        start += size
    schema = pa.schema([("n", pa.int64())])
    parts = list(regroup(tables, schema, wanted))
    assert [v for t in parts for v in t["n"].to_pylist()] == list(range(start))
    assert parts
    assert all(t.num_rows == wanted for t in parts[:-1])
    assert [t["n"].to_pylist() for t in regroup(tables, schema, None)] == [list(range(start))]


# ---- CSV

CELLS = st.text(st.sampled_from("ab, ;\"\n\r'é"), max_size=6)


@given(
    st.lists(st.tuples(CELLS, CELLS), max_size=8),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.lists(st.integers(0, 8), max_size=3),
    st.booleans(),
    st.booleans(),
)
def test_rows_have_the_line_they_start_on(
    cells: list[tuple[str, str]], end: str, quoting: Any, blanks: list[int], bom: bool, last: bool
) -> None:
    lines = []
    for row in [("one", "two"), *cells]:
        out = io.StringIO(newline="")
        csv.writer(out, lineterminator="", quoting=quoting).writerow(row)
        lines.append(out.getvalue())
    for blank in blanks:
        lines.insert(min(blank, len(lines)), "")
    text = end.join(lines) + (end if last else "")
    data = (b"\xef\xbb\xbf" if bom else b"") + text.encode()
    reader, start, expected = csv.reader(io.StringIO(text, newline="")), 1, []
    for record in reader:
        if record:
            expected.append(start)
        start = reader.line_num + 1
    found = Lines(lambda: io.BytesIO(data), ",").at(np.arange(len(expected) - 1))
    assert found.tolist() == expected[1:]


def test_lines_of_many_blocks() -> None:
    text = "a,b\n" + '"x\ny",1\n' * 300_000 + '5" pipe,2\n' + "z,3\n" * 10
    lines = Lines(lambda: io.BytesIO(text.encode()), ",")
    assert lines.at(np.array([0, 1, 299_999])).tolist() == [2, 4, 600_000]
    assert lines.at(np.array([300_000, 300_001])).tolist() == [600_002, 600_003]
    assert lines.at(np.array([5])).tolist() == [12]


def test_lines_of_a_field_longer_than_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("geodiv.sources.lines.BLOCK", 8)
    text = 'a,b\n1,2\n"' + "long\n" * 20 + '",3\n4,5\n'
    for mark in (b"", b"\xef\xbb\xbf"):
        lines = Lines(lambda mark=mark: io.BytesIO(mark + text.encode()), ",")
        assert lines.at(np.array([0, 1, 2])).tolist() == [2, 3, 24]


def read_csv(path: Path, data: bytes | str, rows_per_batch: int | None = None) -> list[dict[str, Any]]:
    file = path / "t.csv"
    file.write_bytes(data.encode() if isinstance(data, str) else data)
    opened = open_source(file)
    return pa.concat_tables(opened.batches(list(opened.columns), rows_per_batch)).to_pylist()


def test_csv_values_stay_text(tmp_path: Path) -> None:
    text = 'id,n,t\n007,1.0,true\n"",,NaN\n x ,1e3,"a ""b"", c"\n'
    assert read_csv(tmp_path, text) == [
        {"id": "007", "n": "1.0", "t": "true"},
        {"id": None, "n": None, "t": "NaN"},
        {"id": " x ", "n": "1e3", "t": 'a "b", c'},
    ]


@pytest.mark.parametrize("text", ["a,b", "a,b\n", "\n\na,b\r\n\n", "\ufeffa,b\n"])
@pytest.mark.parametrize("rows_per_batch", [None, 3])
def test_a_csv_with_a_header_only_has_no_rows(text: str, rows_per_batch: int | None, tmp_path: Path) -> None:
    assert read_csv(tmp_path, text, rows_per_batch) == []
    assert list(open_source(tmp_path / "t.csv").columns) == ["a", "b"]


def test_a_header_may_hold_quotes_separators_and_line_breaks(tmp_path: Path) -> None:
    assert read_csv(tmp_path, '"a;b\nc";"d ""e"""\n1;2\n') == [{"a;b\nc": "1", 'd "e"': "2"}]


def test_a_csv_of_one_column(tmp_path: Path) -> None:
    assert read_csv(tmp_path, "a\n1\n\n2\n") == [{"a": "1"}, {"a": "2"}]


@pytest.mark.parametrize("rows_per_batch", [None, 1])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "empty file"),
        ("\n\n", "empty file"),
        ("a,b\n1,2\n\n3,4,secret\n", r"expected 2 fields in each line of '.*t\.csv', got 3 in line 4"),
        ('a,b\n"1\n2",2\nsecret\n', "got 1 in line 4"),
        ("a,b\n1,2\nsecret,\xe9\n".encode("latin-1"), "UTF-8"),
        ("caf\xe9,b\n1,2\n".encode("latin-1"), "UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), "UTF-8"),
        (gzip.compress(b"a,b\n" + b"1,secret\n" * 10_000)[:60], "cannot be read to its end"),
        (b"PK\x03\x04\0\0\0\0", "UTF-8"),
    ],
    ids=["empty", "blank", "long row", "short row", "latin-1", "latin-1 header", "utf-16", "cut gzip", "zip"],
)
def test_a_broken_csv_is_named_and_its_text_is_not(
    data: str | bytes, message: str, rows_per_batch: int | None, tmp_path: Path
) -> None:
    with pytest.raises(SourceError, match=message) as caught:
        read_csv(tmp_path, data, rows_per_batch)
    assert "secret" not in str(caught.value)
    assert "t.csv" in str(caught.value)


# ---- Parquet


def write_geo(path: Path, column: Any, geo: Any) -> Path:
    table = pa.table({"person": ["a"], "geometry": column})
    text = geo if isinstance(geo, str) else json.dumps(geo)
    pq.write_table(table.replace_schema_metadata({"geo": text}), path / "g.parquet")
    return path / "g.parquet"


def test_geoparquet_without_a_crs_key_is_crs84_and_with_null_has_none(tmp_path: Path) -> None:
    wkb = pa.array([shapely.Point(1, 2).wkb])
    geo: dict[str, Any] = {"primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB"}}}
    crs = open_source(write_geo(tmp_path, wkb, geo)).crs
    assert crs is not None
    assert crs.to_authority() == ("OGC", "CRS84")
    geo["columns"]["geometry"]["crs"] = None
    opened = open_source(write_geo(tmp_path, wkb, geo))
    assert opened.geometry == "geometry"
    assert opened.crs is None


@pytest.mark.parametrize("geo", ["{", "[]", {"columns": {}}, {"primary_column": "g", "columns": {}}])
def test_broken_geoparquet_metadata_is_an_error(geo: Any, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="GeoParquet metadata"):
        open_source(write_geo(tmp_path, pa.array([b""]), geo))


def test_a_crs_that_is_none_is_an_error(tmp_path: Path) -> None:
    geo = {"primary_column": "geometry", "columns": {"geometry": {"crs": {"type": "no CRS"}}}}
    with pytest.raises(SourceError, match="declares a CRS that cannot be read"):
        open_source(write_geo(tmp_path, pa.array([b""]), geo))


def test_text_columns_of_parquet_come_as_dictionaries_where_the_file_holds_them(tmp_path: Path) -> None:
    few = pa.table({"person": [f"p{i % 7}" for i in range(700)], "stars": list(range(700))})
    many = pa.table({"person": [f"person {i}" for i in range(700)], "stars": list(range(700))})
    for visits, dictionary in ((few, True), (many, False)):
        pq.write_table(visits, tmp_path / "v.parquet", use_dictionary=dictionary)
        [table] = open_source(tmp_path / "v.parquet").batches(["person", "stars"], None)
        assert pa.types.is_dictionary(table.schema.field("person").type) == dictionary
        assert table.schema.field("stars").type == pa.int64()
        assert table["person"].to_pylist() == visits["person"].to_pylist()


# ---- layers


def layers(path: Path) -> Path:
    file = path / "two.gpkg"
    located().to_file(file, layer="visits")
    located("EPSG:3857").iloc[:1].to_file(file, layer="Other one")
    return file


def test_several_layers_need_a_name(tmp_path: Path) -> None:
    file = layers(tmp_path)
    with pytest.raises(
        SourceError, match=r"got 2: 'visits', 'Other one'\. Name one: layer = 'visits', or 'two"
    ):
        open_source(file)
    assert len(rows(f"{file}|layername=Other one", ["person"])["person"]) == 1
    opened = open_source(file, layer="Other one")
    assert opened.crs == "EPSG:3857"
    assert "Other one" in opened.name
    assert open_source(f"{file}|layername=visits", layer="visits").crs == "EPSG:4326"
    with pytest.raises(SourceError, match=r"expected the layer 'visit' in .* Did you mean 'visits'\?"):
        open_source(file, layer="visit")
    with pytest.raises(SourceError, match="expected one layer, got 'visits' in the path and 'Other one'"):
        open_source(f"{file}|layername=visits", layer="Other one")
    for wrong in ("|layerid=0", "|layername=", "|layername=visits|subset=x"):
        with pytest.raises(SourceError, match="layername=NAME"):
            open_source(f"{file}{wrong}")


def test_the_table_of_styles_is_no_layer(tmp_path: Path) -> None:
    file = tmp_path / "v.gpkg"
    located().to_file(file)
    pyogrio.write_dataframe(pd.DataFrame({"styleName": ["s"]}), file, layer="layer_styles", append=True)
    assert open_source(file).geometry == "geom"


def test_a_table_without_geometry_in_a_geopackage(tmp_path: Path) -> None:
    file = tmp_path / "v.gpkg"
    pyogrio.write_dataframe(VISITS, file, layer="table")
    opened = open_source(file)
    assert opened.geometry is None
    assert rows(file, ["lon", "person"], 2)["person"] == VISITS["person"].tolist()


@pytest.mark.filterwarnings("ignore:'crs' was not provided")
def test_a_geopackage_with_an_undefined_crs_has_none(tmp_path: Path) -> None:
    file = tmp_path / "v.gpkg"
    located(None).to_file(file)
    assert open_source(file).crs is None


@pytest.mark.parametrize("kind", ["csv", "parquet", "DataFrame", "Table"])
def test_what_has_no_layers_takes_no_layer(kind: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="a file with layers, such as a GeoPackage, for layer 'x'"):
        open_source(PLAIN[kind](tmp_path), layer="x")


# ---- several files


def test_a_file_of_another_format_crs_or_column_is_named(tmp_path: Path) -> None:
    VISITS.to_csv(tmp_path / "a.csv", index=False)
    VISITS.to_parquet(tmp_path / "b.parquet")
    with pytest.raises(SourceError, match=r"one format, got '.*a\.csv' and '.*b\.parquet'"):
        open_source(tmp_path)
    VISITS.drop(columns="poi").to_csv(tmp_path / "c.csv", index=False)
    opened = open_source(str(tmp_path / "*.csv"))
    assert len(list(opened.batches(["person"], None))) == 2
    with pytest.raises(SourceError, match=r"expected the column 'poi' .* in '.*c\.csv'"):
        list(opened.batches(["poi"], None))
    located().to_parquet(tmp_path / "d1.parquet")
    located("EPSG:3035").to_parquet(tmp_path / "d2.parquet")
    with pytest.raises(SourceError, match=r"expected the geometry and CRS of '.*d1.*' in all files.*d2"):
        open_source(str(tmp_path / "d*.parquet"))


def test_a_file_with_another_type_of_column_is_named(tmp_path: Path) -> None:
    for name, values in {"a": [7, 8], "b": [7.0, None], "c": ["007", "8"], "d": [None, None]}.items():
        pd.DataFrame({"person": values}).to_parquet(tmp_path / f"{name}.parquet")
    opened = open_source([tmp_path / "a.parquet", tmp_path / "b.parquet", tmp_path / "d.parquet"])
    assert [t["person"].to_pylist() for t in opened.batches(["person"], None)] == [
        [7, 8],
        [7, None],
        [None] * 2,
    ]
    with pytest.raises(SourceError, match=r"expected int64 in column 'person' of '.*c\.parquet'"):
        list(open_source(str(tmp_path / "*.parquet")).batches(["person"], None))


def test_rows_of_several_files_are_numbered_through(tmp_path: Path) -> None:
    assert open_source(_list(tmp_path)).row_numbers(np.array([0, 3])).tolist() == [1, 4]


def test_a_glob_that_matches_one_file_is_that_file(tmp_path: Path) -> None:
    assert open_source(str(_csv(tmp_path)).replace("v.csv", "?.csv")).name.endswith("v.csv'")


def test_a_name_with_brackets_is_no_glob_when_it_is_there(tmp_path: Path) -> None:
    VISITS.to_csv(tmp_path / "v[1].csv", index=False)
    assert rows(tmp_path / "v[1].csv", ["person"])["person"] == VISITS["person"].tolist()


# ---- what cannot be opened


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("nowhere.csv", None, "expected a file at '.*nowhere.csv', got none"),
        ("nowhere.gpkg", None, "expected a file at '.*nowhere.gpkg', got none"),
        ("nowhere.parquet", None, "expected a file at '.*nowhere.parquet', got none"),
        ("sheet.xlsx", b"x", "expected a format that geodiv reads, got '.*sheet.xlsx'. Readable: CSV"),
        ("broken.parquet", b"no parquet", "expected a Parquet file at '.*broken.parquet'"),
        ("empty.parquet", b"", "expected a Parquet file at '.*empty.parquet'"),
        ("broken.gpkg", b"no geopackage", "expected a vector file at '.*broken.gpkg'"),
        ("empty.geojson", b"", "expected a vector file at '.*empty.geojson'"),
        ("none*.csv", None, "expected files that match '.*none.*csv', got none"),
    ],
)
def test_what_cannot_be_read_says_so(name: str, content: bytes | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=message) as caught:
        open_source(str(tmp_path / name))
    assert caught.value.exit_code == 3


def test_a_cut_file_is_an_error(tmp_path: Path) -> None:
    pd.DataFrame({"a": np.random.default_rng(1).normal(size=100_000)}).to_parquet(tmp_path / "v.parquet")
    data = bytearray((tmp_path / "v.parquet").read_bytes())
    data[4:400_000] = bytes(400_000 - 4)
    (tmp_path / "v.parquet").write_bytes(data)
    with pytest.raises(SourceError, match="cannot be read to its end"):
        list(open_source(tmp_path / "v.parquet").batches(["a"], None))


def test_a_near_name_is_offered(tmp_path: Path) -> None:
    VISITS.to_csv(tmp_path / "visits.csv", index=False)
    with pytest.raises(SourceError, match=r"Did you mean 'visits\.csv'\?"):
        open_source(tmp_path / "vists.csv")


@pytest.mark.parametrize("source", [3, None, {"a": [1]}, object(), [1, 2]])
def test_what_is_no_source_says_so(source: Any) -> None:
    with pytest.raises(SourceError, match="expected visits as a path"):
        open_source(source)


def test_other_places_say_so(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"the folder '.*', got none"):
        open_source(tmp_path)
    with pytest.raises(SourceError, match="Download it first"):
        open_source("https://example.org/visits.csv")
    with pytest.raises(SourceError, match="empty list"):
        open_source([])


@pytest.mark.parametrize("kind", [*PLAIN])
def test_a_batch_has_at_least_a_row(kind: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="rows_per_batch"):
        list(open_source(PLAIN[kind](tmp_path)).batches(["person"], 0))


def test_a_cut_header_and_other_bytes_further_down_are_errors(tmp_path: Path) -> None:
    (tmp_path / "v.csv.gz").write_bytes(gzip.compress(b"person,lon\n1,2\n")[:12])
    with pytest.raises(SourceError, match=r"expected a CSV file at '.*v\.csv\.gz', got"):
        open_source(tmp_path / "v.csv.gz")
    (tmp_path / "v.csv").write_bytes(b"person\n" + b"ann\n" * 400_000 + b"caf\xe9\n")
    with pytest.raises(SourceError, match=r"expected UTF-8 text in '.*v\.csv'"):
        list(open_source(tmp_path / "v.csv").batches(["person"], None))


def test_a_stream_that_breaks_is_an_error(tmp_path: Path) -> None:
    schema = pa.schema({"person": pa.string()})

    def broken() -> Any:
        yield pa.record_batch([["ann"]], schema)
        raise OSError("the line went dead")

    for read in (lambda s: list(s.batches(["person"], None)), lambda s: s.held()):
        opened = open_source(pa.RecordBatchReader.from_batches(schema, broken()))
        with pytest.raises(SourceError, match=r"cannot be read to its end: .*the line went dead"):
            read(opened)


def test_a_file_that_went_away_has_no_digest(tmp_path: Path) -> None:
    VISITS.to_csv(tmp_path / "v.csv", index=False)
    opened = open_source(tmp_path / "v.csv")
    (tmp_path / "v.csv").unlink()
    with pytest.raises(SourceError, match=r"expected a file to read at '.*v\.csv', got: No such file"):
        opened.digest()


def test_a_folder_that_is_a_layer_has_the_digest_of_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "v.gdb"
    pyogrio.write_dataframe(located().drop(columns="stars"), folder, layer="visits", driver="OpenFileGDB")
    lines = "".join(
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
        for file in sorted(folder.iterdir(), key=lambda f: f.name)
    )
    assert open_source(folder).digest() == hashlib.sha256(lines.encode()).hexdigest()
    assert rows(folder, ["person"])["person"] == VISITS["person"].tolist()


def test_a_list_takes_no_folder_of_tables(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    with pytest.raises(SourceError, match=r"expected a file at '.*more', got a folder"):
        open_source([tmp_path / "more"])


def test_a_file_of_styles_alone_has_no_layer(tmp_path: Path) -> None:
    pyogrio.write_dataframe(pd.DataFrame({"styleName": ["s"]}), tmp_path / "s.gpkg", layer="layer_styles")
    with pytest.raises(SourceError, match="got a file without any"):
        open_source(tmp_path / "s.gpkg")


def test_a_cut_layer_is_an_error(tmp_path: Path) -> None:
    many = pd.concat([located()] * 4000, ignore_index=True)
    gpd.GeoDataFrame(many, crs="EPSG:4326").to_file(
        tmp_path / "v.fgb", driver="FlatGeobuf", SPATIAL_INDEX="NO"
    )
    data = (tmp_path / "v.fgb").read_bytes()
    (tmp_path / "v.fgb").write_bytes(data[: len(data) // 2])
    with pytest.raises(SourceError, match="cannot be read to its end"):
        list(open_source(tmp_path / "v.fgb").batches(["person"], None))


@pytest.mark.parametrize("number", [0, -1])
def test_a_crs_that_a_geopackage_calls_undefined_is_none(number: int, tmp_path: Path) -> None:
    file = tmp_path / "v.gpkg"
    located().to_file(file)
    with closing(sqlite3.connect(file)) as database, database:
        for table in ("gpkg_geometry_columns", "gpkg_contents"):
            database.execute(f"UPDATE {table} SET srs_id = {number}")
    assert open_source(file).crs is None


def test_several_layers_have_the_crs_of_all(tmp_path: Path) -> None:
    for name in ("a.gpkg", "b.gpkg"):
        located("EPSG:3857").to_file(tmp_path / name)
    assert open_source([tmp_path / "a.gpkg", tmp_path / "b.gpkg"]).crs == "EPSG:3857"


class Wkb(pa.ExtensionType):
    """As another library may have registered it."""

    def __init__(self, crs: str) -> None:
        self.crs = crs
        super().__init__(pa.binary(), "geoarrow.wkb")

    def __arrow_ext_serialize__(self) -> bytes:
        return json.dumps({"crs": self.crs}).encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: Any, serialized: bytes) -> Wkb:
        return cls(json.loads(serialized)["crs"])


def test_a_registered_extension_tells_its_crs_too() -> None:
    points = pa.array([shapely.to_wkb(p) for p in located().geometry], pa.binary())
    kind = Wkb("EPSG:3067")
    table = pa.table({"person": VISITS["person"], "where": pa.ExtensionArray.from_storage(kind, points)})
    opened = open_source(table)
    assert (opened.geometry, opened.crs) == ("where", "EPSG:3067")
