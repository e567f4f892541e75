"""Taking visits in: who, where and what of each row, and a tally of every row that cannot be counted."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import add
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyproj
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from geodiv import leftovers
from geodiv.attribute import Nominal
from geodiv.errors import SourceError, UsageError, WriteError
from geodiv.grids.column import ColumnGrid
from geodiv.grids.h3 import H3Grid
from geodiv.grids.protocol import Grid
from geodiv.intake import REASONS, Intake, VisitBatch, VisitSpec, batches, check, faults
from geodiv.intake.coordinates import numbers, points, reproject
from geodiv.intake.textcolumn import TextColumn
from geodiv.sources import open_source
from geodiv.text import MISSING, as_text


@dataclass(frozen=True)
class Lattice:
    """A grid of unit squares with 1000 columns from -500 on, in any CRS; nothing lies west of `west`."""

    crs: str = "EPSG:4326"
    west: float = -math.inf
    kind: str = "square"
    column: str | None = None

    def locate(self, x: Any, y: Any) -> Any:
        assert np.isfinite(x).all()
        assert np.isfinite(y).all()
        key = (np.floor(y) + 500) * 1000 + np.floor(x) + 500
        return np.where(x < self.west, -1, key).astype(np.int64)


def spec_of(grid: Any = None, *columns: str, **more: Any) -> VisitSpec:
    place: Grid = grid or Lattice()
    attributes = tuple(Nominal(column) for column in columns)
    return VisitSpec(**{"person": "person", "grid": place, "attributes": attributes, **more})


def take(source: Any, spec: VisitSpec, rows_per_batch: int | None = None) -> list[VisitBatch]:
    return list(batches(source, spec, rows_per_batch=rows_per_batch))


def whole(parts: list[VisitBatch]) -> Intake:
    return reduce(add, (part.intake for part in parts))


def plain(parts: list[VisitBatch]) -> list[tuple[Any, ...]]:
    """Counted rows as tuples of person, key and values."""
    return [
        row
        for part in parts
        for row in zip(
            part.person.to_pylist(),
            part.key.tolist(),
            *(value.to_pylist() for value in part.values),
            strict=True,
        )
    ]


def frame(**columns: Any) -> pd.DataFrame:
    size = len(next(iter(columns.values())))
    return pd.DataFrame(
        {"person": [f"p{i}" for i in range(size)], "lon": [16.5] * size, "lat": [48.5] * size, **columns}
    )


# ---- persons and values as text


def values_of(column: Any) -> list[str]:
    table = pa.table({"person": pa.array(range(len(column))), "cell": ["c"] * len(column), "v": column})
    [part] = take(table, spec_of(ColumnGrid("cell"), "v"))
    return part.values[0].to_pylist()


def persons_of(column: Any) -> tuple[list[str], Intake]:
    source = pd.DataFrame({"person": column, "cell": "c"}) if isinstance(column, pd.Series) else column
    source = (
        source
        if isinstance(source, pd.DataFrame)
        else pa.table({"person": column, "cell": ["c"] * len(column)})
    )
    [part] = take(source, spec_of(ColumnGrid("cell")))
    return part.person.to_pylist(), part.intake


ARROW = st.one_of(
    st.tuples(st.just(pa.int64()), st.lists(st.none() | st.integers(-(2**63), 2**63 - 1))),
    st.tuples(st.just(pa.uint64()), st.lists(st.none() | st.integers(0, 2**64 - 1))),
    st.tuples(st.just(pa.int8()), st.lists(st.none() | st.integers(-128, 127))),
    st.tuples(st.just(pa.float64()), st.lists(st.none() | st.floats())),
    st.tuples(st.just(pa.float64()), st.lists(st.none() | st.integers(-9, 9).map(float))),
    st.tuples(st.just(pa.float32()), st.lists(st.none() | st.floats(width=32))),
    st.tuples(st.just(pa.bool_()), st.lists(st.none() | st.booleans())),
    st.tuples(
        st.just(pa.decimal128(12, 3)),
        st.lists(st.none() | st.decimals(-1000, 1000, places=3)),
    ),
    st.tuples(st.just(pa.date32()), st.lists(st.none() | st.dates())),
    st.tuples(
        st.just(pa.timestamp("us")),
        st.lists(st.none() | st.datetimes(datetime.datetime(1970, 1, 1), datetime.datetime(2200, 1, 1))),
    ),
    st.tuples(st.sampled_from([pa.string(), pa.large_string()]), st.lists(st.none() | st.text(max_size=3))),
    st.tuples(st.just(pa.null()), st.lists(st.none())),
)


@given(ARROW, st.booleans())
def test_texts_are_those_of_as_text(kind_and_values: tuple[pa.DataType, list[Any]], coded: bool) -> None:
    kind, given_values = kind_and_values
    array = pa.array(given_values, kind)
    expected = [as_text(value) for value in array.to_pylist()]
    if coded and kind != pa.null():
        array = array.dictionary_encode()
    chunks = pa.chunked_array([array[: len(array) // 2], array[len(array) // 2 :]])
    column = TextColumn.of(chunks, "v").filled().dictionary()
    assert column.to_pylist() == expected
    assert sorted(column.dictionary.to_pylist()) == sorted(set(expected))


@given(st.lists(st.none() | st.floats() | st.integers() | st.booleans() | st.text(max_size=2), max_size=8))
def test_texts_of_mixed_objects_are_those_of_as_text(values: list[Any]) -> None:
    table = pd.DataFrame({"v": pd.Series(values, dtype=object), "person": "p", "cell": "c"})
    [part] = take(table, spec_of(ColumnGrid("cell"), "v"))
    assert part.values[0].to_pylist() == [as_text(v) for v in values]


MISSING_KINDS = {
    "object None": pd.Series(["clinic"] * 6 + [None] * 5, dtype=object),
    "object NaN": pd.Series(["clinic"] * 6 + [np.nan] * 5, dtype=object),
    "object NA": pd.Series(["clinic"] * 6 + [pd.NA] * 5, dtype=object),
    "object all": pd.Series(["clinic"] * 6 + [None, np.nan, pd.NA, pd.NaT, None], dtype=object),
    "str": pd.Series(["clinic"] * 6 + [None] * 5, dtype="str"),
    "string": pd.Series(["clinic"] * 6 + [pd.NA] * 5, dtype="string"),
    "category": pd.Series(["clinic"] * 6 + [None] * 5, dtype="category"),
    "Arrow": pd.Series(["clinic"] * 6 + [None] * 5, dtype=pd.ArrowDtype(pa.string())),
}


@pytest.mark.parametrize("kind", MISSING_KINDS)
@pytest.mark.parametrize("through", ["frame", "parquet", "csv"])
def test_a_missing_value_is_a_value_and_its_visit_counts(kind: str, through: str, tmp_path: Path) -> None:
    source: Any = frame(v=MISSING_KINDS[kind])
    if through == "parquet":
        source.to_parquet(tmp_path / "v.parquet")
        source = tmp_path / "v.parquet"
    elif through == "csv":
        source.to_csv(tmp_path / "v.csv", index=False)
        source = tmp_path / "v.csv"
    [part] = take(source, spec_of(None, "v"))
    assert Counter(part.values[0].to_pylist()) == {"clinic": 6, MISSING: 5}
    assert sorted(part.values[0].dictionary.to_pylist()) == [MISSING, "clinic"]
    assert part.intake.dropped == {}


def test_an_empty_text_is_a_text_but_an_empty_csv_field_is_missing(tmp_path: Path) -> None:
    table = frame(v=["", "a", " "])
    assert take(table, spec_of(None, "v"))[0].values[0].to_pylist() == ["", "a", " "]
    table.to_csv(tmp_path / "v.csv", index=False)
    assert take(tmp_path / "v.csv", spec_of(None, "v"))[0].values[0].to_pylist() == [MISSING, "a", " "]
    (tmp_path / "q.csv").write_text('person,lon,lat,v\na,1,2,""\nb,1,2,"(missing)"\n')
    [part] = take(tmp_path / "q.csv", spec_of(None, "v"))
    assert part.values[0].to_pylist() == [MISSING, MISSING]
    assert part.values[0].dictionary.to_pylist() == [MISSING]


def test_the_text_missing_and_a_missing_value_are_one() -> None:
    column = values_of(pa.array([None, MISSING, "a"]))
    assert column == [MISSING, MISSING, "a"]


def test_values_differ_by_case_and_keep_every_sign() -> None:
    texts = ["work", "Work", " work", "Café & Bar / 24h", "wörk\n", "007", "7", "7.0"]
    assert values_of(pa.array(texts)) == texts


def test_bands_of_pandas_cut_have_the_texts_that_pandas_shows() -> None:
    bands = pd.cut(pd.Series([1, 5, 15, None]), [0, 10, 20])
    [part] = take(frame(v=bands), spec_of(None, "v"))
    assert part.values[0].to_pylist() == ["(0, 10]", "(0, 10]", "(10, 20]", MISSING]


def test_categories_that_are_numbers_have_the_texts_of_numbers() -> None:
    for categories, texts in (
        ([7.0, 8.5], ["7", "8.5"]),
        ([True, False], ["true", "false"]),
        ([1, "a"], ["1", "a"]),
    ):
        [part] = take(frame(v=pd.Categorical([*categories, None], categories=categories)), spec_of(None, "v"))
        assert part.values[0].to_pylist() == [*texts, MISSING]


def test_unused_categories_and_values_of_lost_rows_are_gone() -> None:
    table = frame(v=pd.Categorical(["a", "b", "a"], categories=["z", "b", "a"]))
    table.loc[1, "person"] = None
    [part] = take(table, spec_of(None, "v"))
    assert part.values[0].dictionary.to_pylist() == ["a"]
    assert part.person.dictionary.to_pylist() == ["p0", "p2"]


def test_equal_texts_of_a_dictionary_are_one() -> None:
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3]), pa.array(["a", "b", "a", None]))
    assert values_of(coded) == ["a", "b", "a", MISSING]
    assert persons_of(coded)[0] == ["a", "b", "a"]
    zeros = pa.array([0.0, -0.0])
    assert persons_of(zeros)[0] == ["0", "0"]
    source = pa.table({"person": zeros, "cell": ["c", "c"]})
    assert len(take(source, spec_of(ColumnGrid("cell")))[0].person.dictionary) == 1


@pytest.mark.parametrize(
    "column",
    [
        pa.array([7, 7]),
        pa.array([7.0, 7.0]),
        pa.array(["7", "7"]),
        pa.array([Decimal("7.00"), Decimal("7.00")]),
        pa.array([b"7", b"7"]),
        pd.Series([7, "7"], dtype=object),
        pd.Series([7, 7.0], dtype=object),
        pd.Series([7, None], dtype="Int64").fillna(7),
        pd.Series([7, 7], dtype="category"),
    ],
    ids=str,
)
def test_a_person_is_the_same_whatever_the_type(column: Any) -> None:
    assert persons_of(column)[0] == ["7", "7"]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", None, "", " \t", "b"]),
        pa.array([1, None, None, None, 2]),
        pd.Series([1.0, np.nan, np.nan, None, 2.0]),
        pd.Series([1, pd.NA, None, pd.NA, 2], dtype="Int64"),
        pd.Series(["a", None, np.nan, pd.NA, "b"], dtype=object),
        pd.Series(["a", None, None, None, "b"], dtype="category"),
        pa.array([1.5, None, math.nan, math.nan, 2.5]),
    ],
    ids=str,
)
def test_a_visit_without_a_person_is_tallied(column: Any) -> None:
    persons, intake = persons_of(column)
    assert len(persons) == 2
    assert intake.dropped == {"no person": 3}
    assert intake.first_rows == {"no person": (2, 3, 4)}
    assert (intake.rows, intake.counted) == (5, 2)


def test_leading_zeros_of_a_csv_stay(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("person,lon,lat,v\n007,1,2,01\n7,1,2,1\n7.0,1,2,1.0\n")
    parts = take(tmp_path / "v.csv", spec_of(None, "v"))
    assert [(p, v) for p, _, v in plain(parts)] == [("007", "01"), ("7", "1"), ("7.0", "1.0")]


@pytest.mark.parametrize("column", ["person", "v"])
@pytest.mark.parametrize(
    "values",
    [
        pa.array([["a"], None]),
        pa.array([{"a": 1}, None]),
        pa.array([[1, 2], [3, 4]], pa.list_(pa.int8(), 2)),
    ],
    ids=["list", "struct", "fixed list"],
)
def test_lists_and_structs_are_an_error(column: str, values: Any) -> None:
    table = pa.table({"person": ["a", "b"], "cell": ["c", "c"], "v": ["x", "y"]})
    table = table.set_column(table.column_names.index(column), column, values)
    with pytest.raises(SourceError, match=f"expected plain values in column '{column}'"):
        take(table, spec_of(ColumnGrid("cell"), "v"))


def test_lists_in_a_pandas_column_are_an_error() -> None:
    for values in ([["a"], ["b"]], ["a", ["b"]], [{"k": 1}, None], [1, (2, 3)]):
        with pytest.raises(SourceError, match="column 'v'"):
            take(frame(v=pd.Series(values, dtype=object)), spec_of(None, "v"))


def test_bytes_that_are_no_text_are_an_error() -> None:
    with pytest.raises(
        SourceError, match=r"expected values that can be written as text in column 'v', got binary"
    ):
        values_of(pa.array([b"\xff\xfe"]))


def test_extension_types_are_written_as_their_values() -> None:
    ids = ["6d9b2f31-6f8a-4c38-9d2a-111111111111", "6d9b2f31-6f8a-4c38-9d2a-222222222222"]
    stored = pa.array([bytes.fromhex(i.replace("-", "")) for i in ids], pa.binary(16))
    if hasattr(pa, "uuid"):
        assert persons_of(pa.ExtensionArray.from_storage(pa.uuid(), stored))[0] == ids


# ---- numbers of coordinates

NUMBERS = {
    "16.3": 16.3, " 16.3\t": 16.3, "+16.3": 16.3, "-4": -4, "1.6e1": 16, "1.6E+1": 16, ".5": 0.5, "5.": 5,
    "": math.nan, "  ": math.nan, "NaN": math.nan, "nan": math.nan, "NA": math.nan, "null": math.nan,
    "None": math.nan, "inf": math.inf, "-Infinity": math.inf,
}  # fmt: skip
NO_NUMBERS = ("abc", "16,3", "1 6", "16.3°", "0x10", "1_0", "16.3.1", "--1", "e5", ".", "١٦")


@pytest.mark.parametrize("coded", [False, True])
def test_texts_become_numbers_none_or_no_number(coded: bool) -> None:
    texts = [*NUMBERS, *NO_NUMBERS, None]
    column = pa.array(texts)
    found = numbers(pa.chunked_array([column.dictionary_encode() if coded else column]), "lon")
    expected = [*NUMBERS.values(), *([math.nan] * (len(NO_NUMBERS) + 1))]
    assert np.array_equal(found.values, expected, equal_nan=True)
    assert [t for t, wrong in zip(texts, found.wrong, strict=True) if wrong] == list(NO_NUMBERS)
    assert [t for t, comma in zip(texts, found.commas, strict=True) if comma] == ["16,3"]


@given(st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_are_the_same_as_texts_and_as_numbers(values: list[float | None]) -> None:
    expected = [math.nan if v is None else v for v in values]
    for column in (
        pa.array(values, pa.float64()),
        pa.array([None if v is None else repr(v) for v in values], pa.string()),
    ):
        assert np.array_equal(numbers(pa.chunked_array([column]), "lon").values, expected, equal_nan=True)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([16, None]),
        pa.array([Decimal("16.00"), None]),
        pa.array([16.0, None], pa.float32()),
        pa.array([16, None], pa.uint8()),
    ],
    ids=lambda a: str(a.type),
)
def test_numbers_of_every_type(column: pa.Array) -> None:
    found = numbers(pa.chunked_array([column]), "lon")
    assert np.array_equal(found.values, [16, math.nan], equal_nan=True)
    assert found.values.dtype == np.float64


@pytest.mark.parametrize(
    "column", [pa.array([True]), pa.array([datetime.date(2026, 1, 1)]), pa.array([[1.0]])], ids=str
)
def test_what_is_no_column_of_numbers_is_an_error(column: pa.Array) -> None:
    table = pa.table({"person": ["a"], "lon": column, "lat": [48.0]})
    with pytest.raises(SourceError, match="expected numbers in column 'lon'"):
        take(table, spec_of())


# ---- every row is counted or tallied

PERSONS = ("ann", "bob", "", None)
PLACES: dict[str, str | None] = {
    "16.5": None, "-179.5": None, "": "no coordinate", "nan": "no coordinate", "abc": "not a number",
    "16,5": "not a number", "200": "out of range", "inf": "out of range", "-300.25": "out of range",
}  # fmt: skip


@given(
    st.lists(
        st.tuples(
            st.sampled_from(PERSONS), st.sampled_from(list(PLACES)), st.sampled_from(["48.5", "91", "", "x"])
        ),
        max_size=12,
    ),
    st.none() | st.integers(1, 13),
    st.sampled_from([-math.inf, 0.0]),
)
def test_rows_in_are_rows_counted_and_rows_tallied(
    rows: list[tuple[str | None, str, str]], rows_per_batch: int | None, west: float
) -> None:
    def reason(person: str | None, lon: str, lat: str) -> str | None:
        found = {PLACES[lon], {"91": "out of range", "": "no coordinate", "x": "not a number"}.get(lat)}
        if not person:
            return "no person"
        for name in ("no coordinate", "not a number", "out of range"):
            if name in found:
                return name
        return "outside the zones" if float(lon) < west else None

    table = pa.table(
        {
            name: pa.array([row[i] for row in rows], pa.string())
            for i, name in enumerate(("person", "lon", "lat"))
        }
    )
    parts = take(table, spec_of(Lattice(west=west)), rows_per_batch)
    intake = whole(parts)
    reasons = [reason(*row) for row in rows]
    assert intake.rows == len(rows)
    assert intake.dropped == Counter(r for r in reasons if r)
    assert intake.counted == reasons.count(None) == sum(len(part.key) for part in parts)
    assert intake.rows == intake.counted + sum(intake.dropped.values())
    for name, first in intake.first_rows.items():
        assert list(first) == [i + 1 for i, r in enumerate(reasons) if r == name][:5]
    assert [row[0] for row in plain(parts)] == [
        row[0] for row, r in zip(rows, reasons, strict=True) if r is None
    ]
    once = take(table, spec_of(Lattice(west=west)))
    assert plain(parts) == plain(once)
    assert intake == whole(once)


@pytest.mark.parametrize("rows_per_batch", [None, 1, 2, 3])
def test_the_same_visits_from_a_csv_have_the_lines_of_the_file(
    rows_per_batch: int | None, tmp_path: Path
) -> None:
    text = 'person,lon,lat,v\na,1.5,2.5,x\n\n,1.5,2.5,x\n"b\nc",,2.5,x\nd,1.5,2.5,"y\nz"\ne,"1,5",2.5,x\nf,1.5,95,x\n'
    (tmp_path / "v.csv").write_text(text)
    spec = spec_of(None, "v", rejects=tmp_path / "rejects.csv")
    parts = take(tmp_path / "v.csv", spec, rows_per_batch)
    intake = whole(parts)
    assert [(p, v) for p, _, v in plain(parts)] == [("a", "x"), ("d", "y\nz")]
    assert intake.first_rows == {
        "no person": (4,),
        "no coordinate": (5,),
        "not a number": (9,),
        "out of range": (10,),
    }
    assert (tmp_path / "rejects.csv").read_text().split() == [
        "row,reason", "4,no", "person", "5,no", "coordinate", "9,not", "a", "number", "10,out", "of", "range",
    ]  # fmt: skip
    assert [p.name for p in tmp_path.iterdir() if "rejects" in p.name] == ["rejects.csv"]


def test_rows_of_several_files_are_numbered_through(tmp_path: Path) -> None:
    for name, person in (("a", ["x", None]), ("b", [None, "y"])):
        pd.DataFrame({"person": person, "lon": 1.0, "lat": 2.0}).to_csv(tmp_path / f"{name}.csv", index=False)
    parts = take(str(tmp_path / "*.csv"), spec_of())
    assert whole(parts).first_rows == {"no person": (2, 3)}
    assert [row[0] for row in plain(parts)] == ["x", "y"]


@pytest.mark.parametrize("rows_per_batch", [None, 10])
def test_an_empty_source_is_an_empty_batch(rows_per_batch: int | None, tmp_path: Path) -> None:
    empty = frame(v=["a"]).iloc[:0]
    empty.to_parquet(tmp_path / "e.parquet")
    empty.to_csv(tmp_path / "e.csv", index=False)
    geo = gpd.GeoDataFrame({"person": [], "v": []}, geometry=[], crs="EPSG:4326")
    geo.to_parquet(tmp_path / "g.parquet")
    geo.to_file(tmp_path / "g.gpkg")
    pa_empty = pa.Table.from_pandas(empty)
    files = [tmp_path / name for name in ("e.parquet", "e.csv", "g.parquet", "g.gpkg")]
    for source in (empty, geo, pa_empty, pa_empty.to_reader(), *files):
        [part] = take(source, spec_of(None, "v"), rows_per_batch)
        assert (part.intake.rows, part.intake.counted, part.intake.dropped) == (0, 0, {})
        assert len(part.intake.digest) == 64
        assert len(part.key) == len(part.person) == len(part.values[0]) == 0
        check(part.intake, spec_of())


def test_when_no_row_counts_the_batch_is_empty() -> None:
    [part] = take(frame(person=[None, None]), spec_of())
    assert len(part.key) == 0
    assert part.key.dtype == np.int64
    assert part.intake.dropped == {"no person": 2}


def test_the_digest_is_that_of_the_columns_that_matter() -> None:
    def digest(table: Any, rows_per_batch: int | None = None) -> str:
        return whole(take(table, spec_of(None, "v"), rows_per_batch)).digest

    table = frame(v=["a", "b", None])
    once = digest(table)
    assert digest(table, 2) == digest(pa.Table.from_pandas(table)) == digest(table.assign(other=1)) == once
    assert digest(table.assign(v="a")) != once
    assert digest(table.iloc[::-1]) != once


def test_the_file_has_the_digest_of_its_bytes_with_the_last_batch(tmp_path: Path) -> None:
    frame(v=["a", "b", "c"]).to_parquet(tmp_path / "v.parquet")
    parts = take(tmp_path / "v.parquet", spec_of(None, "v"), 2)
    assert [len(part.intake.digest) for part in parts] == [0, 64]


# ---- cells by id


def test_cell_ids_in_a_column() -> None:
    table = pd.DataFrame({"person": ["a", "b", "c", "d"], "cell": ["c-41", None, " ", "c-58"]})
    [part] = take(table, spec_of(ColumnGrid("cell")))
    assert part.key.tolist() == ["c-41", "c-58"]
    assert part.key.dtype == object
    assert part.intake.dropped == {"no cell id": 2}


def test_h3_ids_in_a_column_and_what_is_none() -> None:
    grid = H3Grid(8)
    key = int(grid.locate(np.array([16.5]), np.array([48.5]))[0])
    text = grid.ids(np.array([key]))[0]
    table = pd.DataFrame({"person": list("abcd"), "cell": [text, text.upper(), "871e15b71ffffff", None]})
    [part] = take(table, spec_of(H3Grid(8, column="cell")))
    assert part.key.tolist() == [key, key]
    assert part.intake.dropped == {"no cell id": 1, "not a cell id": 1}
    numbers_ = pd.DataFrame({"person": ["a"], "cell": np.array([key], dtype=np.uint64)})
    assert take(numbers_, spec_of(H3Grid(8, column="cell")))[0].key.tolist() == [key]


def test_with_a_cell_column_no_coordinate_is_read() -> None:
    table = pd.DataFrame({"person": ["a"], "cell": ["x"], "lon": ["nonsense"], "lat": [math.nan]})
    assert take(table, spec_of(ColumnGrid("cell")))[0].intake.dropped == {}


# ---- which columns hold the place


@pytest.mark.parametrize("lon", ["lon", "Lon", "LNG", "longitude", "Long", "X", " lon "])
@pytest.mark.parametrize("lat", ["lat", "LAT", "Latitude", "y"])
def test_the_usual_names_are_found(lon: str, lat: str) -> None:
    table = pd.DataFrame({"person": ["a"], lat: [48.5], lon: [16.5]})
    assert plain(take(table, spec_of())) == [("a", 548516)]


def test_named_columns_go_before_the_usual_names_and_the_geometry() -> None:
    table = gpd.GeoDataFrame(
        {"person": ["a"], "lon": [1.0], "lat": [1.0], "e": [3.5], "n": [4.5]},
        geometry=[shapely.Point(5, 5)],
        crs="EPSG:3035",
    )
    assert plain(take(table, spec_of(lon="e", lat="n"))) == [("a", 504503)]


def test_the_geometry_goes_before_the_usual_names() -> None:
    table = gpd.GeoDataFrame(frame(v=["a"]), geometry=[shapely.Point(5.5, 6.5)], crs="EPSG:4326")
    assert plain(take(table, spec_of())) == [("p0", 506505)]


def test_no_place_lists_the_columns() -> None:
    with pytest.raises(
        SourceError, match=r"expected a geometry, or columns lon and lat, .* 'person', 'east'"
    ):
        take(pd.DataFrame({"person": ["a"], "east": [1]}), spec_of())


def test_two_columns_of_a_usual_name_are_an_error() -> None:
    with pytest.raises(SourceError, match=r"expected one column 'lon' .* got 'lon', 'LON'"):
        take(frame(LON=[1.0]), spec_of())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"person": "persn"},
            r"expected the column 'persn' \(the person\) in the DataFrame.* Did you mean 'person'\?",
        ),
        (
            {"attributes": (Nominal("poi_categry"),)},
            r"'poi_categry' \(an attribute\).*Did you mean 'poi_category'\?",
        ),
        ({"lon": "lo", "lat": "lat"}, r"expected the column 'lo' \(lon\)"),
        ({"grid": ColumnGrid("cel")}, r"expected the column 'cel' \(the cell id\)"),
    ],
)
def test_a_column_that_is_not_there_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        take(frame(poi_category=["a"], cell=["c"]), spec_of(**change))


def test_a_name_that_two_columns_have_is_an_error_only_when_it_is_needed() -> None:
    table = pd.DataFrame([["a", 1.5, 2.5, "x", "y"]], columns=["person", "lon", "lat", "v", "v"])
    assert len(plain(take(table, spec_of()))) == 1
    with pytest.raises(SourceError, match=r"expected one column 'v' .* got several of this name"):
        take(table, spec_of(None, "v"))
    with pytest.raises(SourceError, match="got several of this name"):
        take(
            pa.Table.from_arrays([pa.array(["a"])] * 3, names=["person", "person", "cell"]),
            spec_of(ColumnGrid("cell")),
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attributes": (Nominal("person"),)}, "'person': this column is the person already"),
        ({"attributes": (Nominal("v"), Nominal("v"))}, "'v': this column is an attribute already"),
        ({"attributes": (Nominal("c"),), "grid": ColumnGrid("c")}, "'c': this column is the cell id already"),
        ({"grid": ColumnGrid("person")}, "expected the person or the cell id, got both"),
        ({"lon": "x"}, "expected lon and lat together"),
        ({"on_bad_rows": "ignore"}, "on_bad_rows: expected 'error' or 'skip', got 'ignore'"),
        ({"points": "all"}, "points: expected 'only' or 'representative'"),
    ],
)
def test_a_spec_that_contradicts_itself_is_an_error(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        spec_of(**change)


# ---- coordinate reference systems


def new_york(crs: str) -> gpd.GeoDataFrame:
    rng = np.random.default_rng(3)
    points = gpd.points_from_xy(rng.uniform(-74.1, -73.8, 300), rng.uniform(40.6, 40.9, 300))
    return gpd.GeoDataFrame(
        {"person": [f"p{i}" for i in range(300)]}, geometry=points, crs="EPSG:4326"
    ).to_crs(crs)


@pytest.mark.parametrize("crs", ["EPSG:2263", "EPSG:3857", "EPSG:32618", "OGC:CRS84", "EPSG:4269"])
def test_visits_in_any_crs_give_the_cells_of_their_twin(crs: str, tmp_path: Path) -> None:
    expected = plain(take(new_york("EPSG:4326"), spec_of(H3Grid(9))))
    twin = new_york(crs)
    twin.to_parquet(tmp_path / "t.parquet")
    twin.to_file(tmp_path / "t.gpkg")
    columns = pd.DataFrame({"person": twin["person"], "east": twin.geometry.x, "north": twin.geometry.y})
    for source, spec in (
        (twin, spec_of(H3Grid(9))),
        (tmp_path / "t.parquet", spec_of(H3Grid(9))),
        (tmp_path / "t.gpkg", spec_of(H3Grid(9))),
        (columns, spec_of(H3Grid(9), lon="east", lat="north", crs=crs)),
    ):
        parts = take(source, spec)
        assert plain(parts) == expected
        assert whole(parts).notes == ()


def test_coordinates_come_in_the_crs_of_the_grid() -> None:
    to = pyproj.Transformer.from_crs("EPSG:4326", "EPSG:3035", always_xy=True)
    x, y = to.transform(16.5, 48.5)

    @dataclass(frozen=True)
    class Seen(Lattice):
        crs: str = "EPSG:3035"

        def locate(self, gx: Any, gy: Any) -> Any:
            assert np.allclose((gx, gy), [[x], [y]], atol=1e-6)
            return np.zeros(1, dtype=np.int64)

    take(frame(v=["a"]), spec_of(Seen()))
    take(pd.DataFrame({"person": ["a"], "x": [x], "y": [y]}), spec_of(Seen(), crs="EPSG:3035"))


def test_a_layer_without_crs_asks_for_one(tmp_path: Path) -> None:
    frame_ = gpd.GeoDataFrame({"person": ["a"]}, geometry=[shapely.Point(600000, 200000)])
    frame_.to_parquet(tmp_path / "v.parquet")
    for source in (frame_, tmp_path / "v.parquet"):
        with pytest.raises(SourceError, match=r'expected a CRS in .* got none\. .*crs = "EPSG:3035"'):
            take(source, spec_of())
        [part] = take(source, spec_of(crs="EPSG:21781"))
        assert part.key.tolist() == [546507]  # Bern
        assert part.intake.notes == ()


def test_a_crs_that_is_none_is_an_error() -> None:
    with pytest.raises(SourceError, match=r"crs: expected a CRS such as 'EPSG:4326', got 'EPSG:0'"):
        take(frame(v=["a"]), spec_of(crs="EPSG:0"))


def london() -> gpd.GeoDataFrame:
    points = gpd.points_from_xy([524877, 531200, 530000], [181350, 180100, 182000])
    return gpd.GeoDataFrame({"person": ["a", "b", "c"]}, geometry=points, crs="OGC:CRS84")


@pytest.mark.parametrize("on_bad_rows", ["error", "skip"])
def test_a_layer_that_claims_degrees_but_holds_metres_is_an_error(on_bad_rows: Any) -> None:
    spec = spec_of(on_bad_rows=on_bad_rows)
    intake = whole(take(london(), spec))
    assert intake.dropped == {"out of range": 3}
    with pytest.raises(
        SourceError, match=r"x = 525000.* CRS is said to be OGC:CRS84.* metres.* name the right crs"
    ):
        check(intake, spec)


def test_a_crs_that_is_told_counts_and_is_noted() -> None:
    intake = whole(take(london(), spec_of(H3Grid(8), crs="EPSG:27700")))
    assert intake.counted == 3
    assert intake.notes == ("the visits declare OGC:CRS84; they were read as EPSG:27700, as told",)


def test_swapped_columns_are_named() -> None:
    table = pd.DataFrame({"person": ["a", "b"], "lat": [-122.4194, -122.5], "lon": [37.7, 37.8]})
    with pytest.raises(
        SourceError, match=r"such as lat = -122, expected -90 to 90; lon and lat look swapped"
    ):
        check(whole(take(table, spec_of())), spec_of())


def test_one_latitude_out_of_range_names_the_column_and_its_rounded_value() -> None:
    table = pd.DataFrame({"person": list("abcd"), "lat": [48, 48, -122.4194, 48], "lon": 170.0})
    intake = whole(take(table, spec_of()))
    with pytest.raises(
        SourceError, match=r"out of range in 1 row \(such as lat = -122, expected -90 to 90\): row 3\."
    ):
        check(intake, spec_of())
    check(intake, spec_of(on_bad_rows="skip"))


def test_the_ends_of_the_range_are_in_range() -> None:
    table = pd.DataFrame(
        {"person": list("abcd"), "lon": [-180.0, 180.0, 0.5, 0.5], "lat": [0.5, 0.5, -90.0, 90.0]}
    )
    assert whole(take(table, spec_of(H3Grid(3)))).counted == 4
    out = pd.DataFrame(
        {"person": list("ab"), "lon": [np.nextafter(180, 181), 0], "lat": [0, np.nextafter(90, 91)]}
    )
    assert whole(take(out, spec_of())).dropped == {"out of range": 2}


def test_coordinates_that_cannot_be_reprojected_are_out_of_range() -> None:
    table = pd.DataFrame({"person": ["a", "b"], "x": [4_500_000, 1e30], "y": [2_500_000, 1e30]})
    intake = whole(take(table, spec_of(crs="EPSG:3035")))
    assert intake.dropped == {"out of range": 1}
    assert intake.examples == {"out of range": "x and y do not fit EPSG:3035"}


def test_decimal_commas_are_named(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("person;lon;lat\na;16,3;48,2\nb;16,4;48,3\n")
    intake = whole(take(tmp_path / "v.csv", spec_of()))
    assert intake.dropped == {"not a number": 2}
    with pytest.raises(
        SourceError, match=r"such as in column 'lon'; with decimal commas: write 16\.3 for 16,3\): rows 2, 3"
    ):
        check(intake, spec_of())


def test_where_most_rows_lie_outside_the_zones_the_crs_or_the_layer_is_suspected() -> None:
    table = pd.DataFrame({"person": list("abc"), "lon": [0.5, 0.6, 5.0], "lat": [0.0, 7, 0]})
    spec = spec_of(Lattice(west=1))
    with pytest.raises(
        SourceError, match="Most rows lie outside the zones: name the right crs, or the layer"
    ):
        check(whole(take(table, spec)), spec)
    with pytest.raises(SourceError) as few:
        check(whole(take(table.iloc[[0, 2, 2]], spec)), spec)
    assert "Most rows" not in str(few.value)


@pytest.mark.parametrize("rows_per_batch", [None, 1])
def test_rows_at_zero_are_counted_and_noted(rows_per_batch: int | None) -> None:
    table = pd.DataFrame({"person": list("abcd"), "lon": [0.0, 0, 5, -0.0], "lat": [0.0, 7, 0, 0.0]})
    intake = whole(take(table, spec_of(), rows_per_batch))
    assert intake.counted == 4
    leave = "Leave out what does not belong."
    assert intake.notes == (f"2 rows lie at (0, 0), often a missing place: they count there. {leave}",)
    (one,) = whole(take(table.iloc[:1], spec_of())).notes
    assert one == f"1 row lies at (0, 0), often a missing place: it counts there. {leave}"
    assert whole(take(table.iloc[1:3], spec_of())).notes == ()
    assert whole(take(table, spec_of(Lattice(west=1)))).notes == ()


# ---- geometries


def layer(*geometries: Any) -> gpd.GeoDataFrame:
    people = [f"p{i}" for i in range(len(geometries))]
    return gpd.GeoDataFrame({"person": people}, geometry=list(geometries), crs="EPSG:4326")


SQUARE = shapely.box(2, 3, 2.5, 3.5)


@pytest.mark.parametrize("through", ["frame", "parquet", "gpkg", "arrow"])
def test_null_and_empty_geometries_have_no_coordinate(through: str, tmp_path: Path) -> None:
    source: Any = layer(shapely.Point(1.5, 2.5), None, shapely.Point())
    if through == "parquet":
        source.to_parquet(tmp_path / "v.parquet")
        source = tmp_path / "v.parquet"
    elif through == "gpkg":
        source.to_file(tmp_path / "v.gpkg")
        source = tmp_path / "v.gpkg"
    elif through == "arrow":
        source = pa.table(source.to_arrow())
    parts = take(source, spec_of())
    assert plain(parts) == [("p0", 502501)]
    assert whole(parts).dropped == {"no coordinate": 2}
    assert whole(parts).first_rows == {"no coordinate": (2, 3)}


@pytest.mark.parametrize("through", ["frame", "parquet", "gpkg"])
def test_other_geometries_are_an_error_unless_a_point_may_stand_for_them(
    through: str, tmp_path: Path
) -> None:
    source: Any = layer(shapely.Point(1.5, 2.5), shapely.MultiPolygon([SQUARE]), None, shapely.Polygon())
    if through == "parquet":
        source.to_parquet(tmp_path / "v.parquet")
        source = tmp_path / "v.parquet"
    elif through == "gpkg":
        source.to_file(tmp_path / "v.gpkg", geometry_type="Unknown")
        source = tmp_path / "v.gpkg"
    for on_bad_rows in ("error", "skip"):
        with pytest.raises(
            SourceError, match=r"expected points in column 'geom\w*', got also 'MultiPolygon'\. Set points"
        ):
            take(source, spec_of(on_bad_rows=on_bad_rows))
    parts = take(source, spec_of(points="representative"))
    assert plain(parts) == [("p0", 502501), ("p1", 503502)]
    assert whole(parts).dropped == {"no coordinate": 2}


def test_a_representative_point_lies_in_its_geometry() -> None:
    crescent = shapely.Point(5, 5).buffer(4).difference(shapely.Point(6, 5).buffer(4))
    [part] = take(layer(crescent), spec_of(H3Grid(12), points="representative"))
    [outline] = H3Grid(12).geometry(part.key)
    assert outline.intersects(crescent)
    [line] = take(layer(shapely.LineString([(1.5, 1.5), (1.6, 1.6)])), spec_of(points="representative"))
    assert line.key.tolist() == [501501]


def wkb_column(*shapes: Any, **how: Any) -> pa.Table:
    column = pa.array(shapely.to_wkb(np.array(shapes, dtype=object), **how), pa.binary())
    meta = {"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": '{"crs": "EPSG:4326"}'}
    field = pa.field("shape", column.type, metadata=meta)
    people = pa.array([f"p{i}" for i in range(len(shapes))])
    return pa.Table.from_arrays([people, column], schema=pa.schema([pa.field("person", pa.string()), field]))


POINTS = (shapely.Point(1.5, 2.5), None, shapely.Point(-3.5, 4.5))


@pytest.mark.parametrize(
    "table",
    [
        wkb_column(*POINTS),
        wkb_column(*POINTS, byte_order=0),
        wkb_column(*(p and shapely.Point(p.x, p.y, 9) for p in POINTS)),
        wkb_column(*(p and shapely.Point(p.x, p.y, 9) for p in POINTS), flavor="iso"),
        wkb_column(*(p and shapely.set_srid(p, 4326) for p in POINTS), include_srid=True),
        wkb_column(POINTS[0], None, shapely.Point(-3.5, 4.5, 1)),
        pa.concat_tables([wkb_column(shapely.Point(9, 9)), wkb_column(*POINTS)]).slice(1),
        wkb_column(shapely.Point(9, 9), *POINTS)
        .slice(1)
        .set_column(0, "person", pa.array(["p0", "p1", "p2"])),
    ],
    ids=["plain", "big-endian", "z", "iso z", "srid", "mixed", "sliced table", "sliced array"],
)
def test_well_known_binary_of_every_kind(table: pa.Table) -> None:
    parts = take(table, spec_of())
    assert [(row[0], row[1]) for row in plain(parts)] == [("p0", 502501), ("p2", 504496)]
    assert whole(parts).dropped == {"no coordinate": 1}


def test_geoarrow_points_as_structs_and_as_lists() -> None:
    meta = {"ARROW:extension:name": "geoarrow.point", "ARROW:extension:metadata": '{"crs": "EPSG:4326"}'}
    struct = pa.array([{"x": 1.5, "y": 2.5}, None, {"x": math.nan, "y": math.nan}])
    pairs = pa.array([[1.5, 2.5], None, [math.nan, math.nan]], pa.list_(pa.float64(), 2))
    for column in (struct, pairs):
        schema = pa.schema([("person", pa.string()), pa.field("at", column.type, metadata=meta)])
        parts = take(pa.Table.from_arrays([pa.array(["a", "b", "c"]), column], schema=schema), spec_of())
        assert plain(parts) == [("a", 502501)]
        assert whole(parts).dropped == {"no coordinate": 2}


def test_what_is_no_geometry_is_an_error() -> None:
    table = wkb_column(*POINTS)
    broken = table.set_column(
        1, table.schema.field("shape"), [pa.array([b"\x01\x01", None, b"x"], pa.binary())]
    )
    with pytest.raises(SourceError, match="expected well-known binary in column 'shape'"):
        take(broken, spec_of())


def test_infinite_points_are_out_of_range() -> None:
    assert whole(take(layer(shapely.Point(math.inf, 1)), spec_of())).dropped == {"out of range": 1}


# ---- what is said of lost rows


def lost() -> tuple[Intake, pd.DataFrame]:
    table = frame(v=["a"] * 40)
    table.loc[3:14, "person"] = None
    table.loc[20, "lon"] = math.nan
    table.loc[30, "lat"] = 95.0
    return whole(take(table, spec_of(None, "v"))), table


def test_check_names_reasons_rows_and_what_to_do() -> None:
    intake, _ = lost()
    with pytest.raises(SourceError) as caught:
        check(intake, spec_of())
    assert str(caught.value) == (
        "expected a person and a place in each of 40 rows, got: "
        "no person in 12 rows: rows 4, 5, 6, 7, 8, ...; no coordinate in 1 row: row 21; "
        "out of range in 1 row (such as lat = 95, expected -90 to 90): row 31. "
        'Mend the visits, or set on_bad_rows = "skip" or --rejects FILE to go on without these rows.'
    )
    assert caught.value.exit_code == 3


def test_check_lets_go_on_when_told_or_when_nothing_was_lost(tmp_path: Path) -> None:
    intake, _ = lost()
    check(intake, spec_of(on_bad_rows="skip"))
    check(intake, spec_of(rejects=tmp_path / "r.csv"))
    check(Intake(rows=3, counted=3), spec_of())
    check(Intake(rows=0, counted=0), spec_of())


@given(
    st.lists(st.integers(0, 3), min_size=3, max_size=3), st.lists(st.integers(0, 3), min_size=3, max_size=3)
)
def test_tallies_add_up(one: list[int], two: list[int]) -> None:
    def tally(numbers_: list[int], at: int) -> Intake:
        dropped = {r: n for r, n in zip(REASONS, numbers_, strict=False) if n}
        first = {r: tuple(range(at, at + n)) for r, n in dropped.items()}
        return Intake(rows=sum(numbers_) + 1, counted=1, dropped=dropped, first_rows=first, at_origin=1)

    both = tally(one, 1) + tally(two, 100)
    assert both.rows == both.counted + sum(both.dropped.values()) == sum(one) + sum(two) + 2
    assert both.at_origin == 2
    for i, reason in enumerate(REASONS[:3]):
        assert both.dropped.get(reason, 0) == one[i] + two[i]
        expected = [*range(1, 1 + one[i]), *range(100, 100 + two[i])][:5]
        assert list(both.first_rows.get(reason, ())) == expected
    assert list(both.dropped) == [r for r in REASONS if r in both.dropped]


def test_rejects_hold_row_and_reason_and_nothing_of_a_person(tmp_path: Path) -> None:
    _, table = lost()
    file = tmp_path / "rejects.csv"
    file.write_text("what was here before")
    take(table, spec_of(None, "v", rejects=file), 7)
    written = pd.read_csv(file)
    assert list(written.columns) == ["row", "reason"]
    assert written["row"].tolist() == [*range(4, 16), 21, 31]
    assert written["reason"].tolist() == ["no person"] * 12 + ["no coordinate", "out of range"]


def test_rejects_stay_as_they_were_after_an_error(tmp_path: Path) -> None:
    file = tmp_path / "rejects.csv"
    file.write_text("before")
    with pytest.raises(SourceError):
        take(layer(shapely.Point(1, 1), SQUARE), spec_of(rejects=file))
    reading = batches(frame(v=["a", "b"]), spec_of(None, "v", rejects=file), rows_per_batch=1)
    next(reading)
    reading.close()
    assert file.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["rejects.csv"]


def test_rejects_without_lost_rows_are_a_header(tmp_path: Path) -> None:
    take(frame(v=["a"]), spec_of(rejects=tmp_path / "rejects.csv"))
    assert (tmp_path / "rejects.csv").read_text().split() == ["row,reason"]


def test_rejects_that_cannot_be_written_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match=r"rejects: expected a file to write at '.*no folder.*rejects\.csv'"):
        take(frame(v=["a"]), spec_of(rejects=tmp_path / "no folder" / "rejects.csv"))
    (tmp_path / "folder").mkdir()
    with pytest.raises(WriteError, match="rejects"):
        take(frame(v=["a"]), spec_of(rejects=tmp_path / "folder"))


def test_no_message_holds_a_person_or_a_full_coordinate(tmp_path: Path) -> None:
    secret, place = "secret-person-id", "95.123456789"
    text = f"person,lon,lat,v\n{secret},16.5,{place},x\n{secret},{secret},48.5,x\n"
    (tmp_path / "v.csv").write_text(text)
    intake = whole(take(tmp_path / "v.csv", spec_of(None, "v", rejects=tmp_path / "r.csv")))
    with pytest.raises(SourceError) as caught:
        check(intake, spec_of())
    for shown in (str(caught.value), repr(intake), (tmp_path / "r.csv").read_text()):
        assert secret not in shown
        assert place not in shown


def test_the_callers_frame_is_not_written_to() -> None:
    table, before = lost()[1], lost()[1]
    take(table, spec_of(None, "v"), 3)
    pd.testing.assert_frame_equal(table, before)


# ---- coordinates, whatever holds them


def test_a_column_of_nothing_holds_no_numbers_and_no_points() -> None:
    nothing = pa.chunked_array([pa.nulls(2)])
    assert np.isnan(numbers(nothing, "lon").values).all()
    assert numbers(nothing, "lon").nothing.tolist() == [True, True]
    x, y = points(nothing, "geometry", "only")
    assert np.isnan(x).tolist() == np.isnan(y).tolist() == [True, True]


def test_points_are_the_same_in_every_encoding() -> None:
    shapes = [shapely.Point(16.5, 48.25), None, shapely.Point(-3, 7)]
    wkb = [None if s is None else shapely.to_wkb(s) for s in shapes]
    big = [None if s is None else shapely.to_wkb(s, byte_order=0) for s in shapes]
    pairs = [None if s is None else [s.x, s.y] for s in shapes]
    columns = [
        pa.chunked_array([pa.array(wkb, pa.binary())]),
        pa.chunked_array([pa.array(wkb[:1], pa.large_binary()), pa.array(wkb[1:], pa.large_binary())]),
        pa.chunked_array([pa.array(big, pa.binary())]),
        pa.chunked_array([pa.array(pairs, pa.list_(pa.float64(), 2))]),
        pa.chunked_array([pa.array([None if p is None else {"x": p[0], "y": p[1]} for p in pairs])]),
    ]
    for column in columns:
        x, y = points(column, "geometry", "only")
        assert np.array_equal(x, [16.5, np.nan, -3], equal_nan=True)
        assert np.array_equal(y, [48.25, np.nan, 7], equal_nan=True)
    with pytest.raises(SourceError, match="expected geometries in column 'where', got string"):
        points(pa.chunked_array([pa.array(["POINT (1 2)"])]), "where", "only")


def test_reprojecting_nothing_gives_nothing() -> None:
    none = np.zeros(0)
    x, y = reproject(none, none, pyproj.CRS("EPSG:4326"), pyproj.CRS("EPSG:3857"))
    assert len(x) == len(y) == 0
    x, y = reproject(np.array([180.0]), np.array([0.0]), pyproj.CRS("EPSG:4326"), pyproj.CRS("EPSG:3857"))
    assert [*x, *y] == pytest.approx([20037508.342789244, 0.0], abs=1e-6)


def test_a_rejects_file_of_another_users_process_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(process: int, signal: int) -> None:
        raise PermissionError

    left = tmp_path / ".r.csv.7.part"
    left.write_text("")
    monkeypatch.setattr("os.kill", refused)
    with faults.Rejects(tmp_path / "r.csv"):
        pass
    assert left.exists()


def test_where_asking_would_end_a_process_it_is_taken_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "os", SimpleNamespace(name="nt"))
    assert leftovers._runs(2**30)
    monkeypatch.undo()
    assert not leftovers._runs(2**30)


def test_the_numbers_of_a_frame_in_memory_are_not_copied() -> None:
    lon = np.linspace(2.3, 2.4, 1000)
    for frame in (pd.DataFrame({"lon": lon}, copy=False), pa.table({"lon": lon})):
        [table] = open_source(frame).batches(["lon"], None)
        assert np.shares_memory(numbers(table["lon"], "lon").values, lon)
