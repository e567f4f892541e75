"""Taxonomies: trees and nothing else, read from UTF-8 tables and nothing else."""

from __future__ import annotations

import dataclasses
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geodiv import SourceError, Taxonomy, TaxonomyError

POI = "value,level1,level2\nclinic,health,care\npharmacy,health,care\ncafe,food,leisure\ngym,sport,leisure\n"


@pytest.fixture
def written(tmp_path):
    """A function that writes bytes or text to a CSV and gives its path."""

    def write(content: str | bytes, name: str = "poi.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


# --- what it is ---------------------------------------------------------------------------------------------


def test_levels_and_labels(written):
    poi = Taxonomy.read(written(POI), version="2026-11")
    assert (poi.name, poi.version, poi.height) == ("poi", "2026-11", 2)
    assert poi.values == poi.labels(0) == ("cafe", "clinic", "gym", "pharmacy")
    assert poi.labels(1) == ("food", "health", "sport")
    assert poi.labels(2) == ("care", "leisure")
    assert poi.path("clinic") == ("clinic", "health", "care")
    with pytest.raises(KeyError):
        poi.path("dentist")


def test_it_cannot_be_changed_and_can_be_sent():
    poi = Taxonomy.of({"a": "x"})
    with pytest.raises(dataclasses.FrozenInstanceError):
        poi.name = "other"
    assert pickle.loads(pickle.dumps(poi)) == poi
    assert hash(poi) == hash(Taxonomy.of({"a": "x"}))


@given(st.permutations([("a", "x", "1"), ("b", "x", "1"), ("c", "y", "1"), ("d", "z", "2")]))
def test_the_order_of_rows_changes_nothing(rows):
    one = Taxonomy((("a", "x", "1"), ("b", "x", "1"), ("c", "y", "1"), ("d", "z", "2")))
    assert Taxonomy(tuple(rows)) == one
    assert Taxonomy(tuple(rows)).digest == one.digest


def test_the_digest_follows_the_labels_not_the_name():
    a = Taxonomy.of({"a": "x", "b": "y"}, name="one", version="1")
    assert a.digest == Taxonomy.of({"b": "y", "a": "x"}, name="two").digest
    assert a.digest != Taxonomy.of({"a": "x", "b": "z"}).digest
    assert a.digest != Taxonomy.of({"a": "x", "b": "x"}).digest
    assert len(a.digest) == 64


def test_entries_are_texts():
    assert Taxonomy(((1.0, True), (2, math.nan))).rows == (("1", "true"), ("2", "2"))  # type: ignore[arg-type]


def test_a_blank_level_repeats_the_label_before():
    ragged = Taxonomy((("a", "", "x"), ("b", " ", ""), ("c", None, None)))  # type: ignore[arg-type]
    assert ragged.rows == (("a", "a", "x"), ("b", "b", "b"), ("c", "c", "c"))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((), "at least one row"),
        ((("a",),), "at least one level"),
        ((("a", "x"), ("b", "x", "y")), "one length"),
        ((("a", "x"), ("a", "y")), "several for 'a'"),
        ((("a", "x"), ("a", "x")), "several for 'a'"),
        (((1, "x"), ("1", "y")), "several for '1'"),
        ((("", "x"),), "expected values"),
        ((("(missing)", "x"),), r"missing=\[...\]"),
        (((None, "x"),), "class of their own"),
        ((("a", "x", "1"), ("b", "x", "2")), "several parents for 'x'"),
        ((("a", "x", "1", "p"), ("b", "y", "1", "q")), "level2 label below one level3"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_what_is_no_tree(rows, message):
    with pytest.raises(TaxonomyError, match=message):
        Taxonomy(rows)


# --- from parents -------------------------------------------------------------------------------------------


def test_parents_of_parents_are_levels():
    up = {"clinic": "health", "gp": "health", "health": "care", "cafe": "leisure"}
    assert Taxonomy.of(up).rows == (
        ("cafe", "leisure", "leisure"),
        ("clinic", "health", "care"),
        ("gp", "health", "care"),
    )


def test_a_value_may_be_its_own_class():
    assert Taxonomy.of({"clinic": "health", "cafe": "cafe"}).rows == (("cafe", "cafe"), ("clinic", "health"))
    assert Taxonomy.of({"cafe": "food", "food": "food"}).rows == (("cafe", "food"), ("food", "food"))
    assert Taxonomy.of({"cafe": "cafe"}).rows == (("cafe", "cafe"),)


@pytest.mark.parametrize(
    "parents",
    [
        {"a": "b", "b": "a"},
        {"a": "b", "b": "c", "c": "a"},
        {"x": "a", "a": "b", "b": "a"},
        {"x": "y", "a": "b", "b": "a"},
    ],
    ids=str,
)
def test_a_cycle_is_named(parents):
    with pytest.raises(TaxonomyError, match=r"cycle through .*'a'.*'b'|cycle through .*'b'.*'a'"):
        Taxonomy.of(parents)


def test_two_keys_with_one_text_are_refused():
    with pytest.raises(TaxonomyError, match="several for '1'"):
        Taxonomy.of({1: "a", "1": "b"})


def test_no_parents_are_no_taxonomy():
    with pytest.raises(TaxonomyError, match="at least one row"):
        Taxonomy.of({})


# --- from a file --------------------------------------------------------------------------------------------


def test_what_spreadsheets_write_is_read(written):
    plain = Taxonomy.read(written(POI))
    assert Taxonomy.read(written(b"\xef\xbb\xbf" + POI.encode())) == plain
    assert Taxonomy.read(written(POI.replace("\n", "\r\n"))) == plain
    assert Taxonomy.read(written(POI.replace("value,level1", " Value , LEVEL1 "))) == plain
    assert Taxonomy.read(written(POI.replace("cafe,food", '"cafe","food"') + "\n,,\n\n")) == plain
    assert Taxonomy.read(str(written(POI))) == plain


def test_texts_are_kept_to_the_letter(written):
    text = 'value,level1\n"Café & Bar / 24h",food\nwork,job\nWork,other\n"a, b",food\n'
    assert Taxonomy.read(written(text)).values == ("Café & Bar / 24h", "Work", "a, b", "work")


def test_a_short_row_repeats_its_last_label(written):
    assert Taxonomy.read(written("value,level1,level2\na,x,1\nb\n")).rows == (
        ("a", "x", "1"),
        ("b", "b", "b"),
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "got: nothing"),
        ("value\na\n", "'value'"),
        ("name,group\na,x\n", "'name', 'group'"),
        ("value,level2,level1\na,x,y\n", "value, level1, level2"),
        ("value;level1\na;x\n", "'value;level1'"),
        ("value,level1\na,x,y\n", "expected 2 columns .* line 2; got 3"),
        ("value,level1\n\n\na,x\nb,x,y\n", "line 5; got 3"),
        ("value,level1\nCafé,x\n".encode("latin-1"), "UTF-8"),
        (POI.encode("utf-16"), "UTF-8"),
    ],
    ids=str,
)
def test_what_is_no_such_table(written, content, message):
    path = written(content)
    with pytest.raises(SourceError, match=message) as caught:
        Taxonomy.read(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("value,level1\n", "at least one row"),
        ("value,level1\na,x\na,y\n", "several for 'a'"),
        ("value,level1,level2\na,x,1\nb,x,2\n", "several parents for 'x'"),
        ("value,level1\n,x\n", "expected values"),
    ],
    ids=str,
)
def test_a_table_that_is_no_tree_is_named(written, content, message):
    path = written(content)
    with pytest.raises(TaxonomyError, match=message) as caught:
        Taxonomy.read(path)
    assert str(path) in str(caught.value)


def test_no_file_and_a_folder(tmp_path):
    with pytest.raises(SourceError, match=r"absent\.csv"):
        Taxonomy.read(tmp_path / "absent.csv")
    with pytest.raises(SourceError, match="directory"):
        Taxonomy.read(tmp_path)
