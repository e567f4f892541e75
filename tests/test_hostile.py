"""Names, policies and releases made to do harm: they are data, and nothing they say is done."""

from __future__ import annotations

import copy
import csv
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as Xml
from collections.abc import Callable, Iterator
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import geodiv as gd
from geodiv import cli
from geodiv.demo import make_demo
from geodiv.policy_file import quoted
from geodiv.text import printable

VALUES = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</script><script>alert(2)</script>", "<!--", "]]>",
    "'; DROP TABLE cells; --", 'a"b', "a'b", "line\nbreak", "\r\n", "a\tb", "\u202egnp.exe",
    "\U0001f468\u200d\U0001f469",
    "x" * 10_000, "=cmd|' /C calc'!A0", "+1+1", "@SUM(A1)", "-1+1|x", "[red]bold[/red]",
    "\x1b[31mred\x1b[0m", "\x9b31m",
    "[% 'x' %]", "${7*7}{{7*7}}", "%s%n", "\u2028", "\\", "../../etc/passwd", "NULL", " ", "\ufeffbom",
)  # fmt: skip
COLUMNS = (
    '<b onclick="x">', "a'; DROP TABLE cells;--", "=cmd|x", "-poi", "esc\x1b[31m", "\u202ertl", "\U0001f600", "a/b",
    "../x",
    "y" * 3000, "%s", " ", "SELECT", "rowid", "layer_styles", "new\nline", "gpkg_contents", "sqlite_x", "a|layername=b",
)  # fmt: skip
STEERING = "\x1b\x9b\u202e\u2028\r\x07\x08"
"""What no output of the command line may hold."""
ESCAPES = "".join(map(chr, (*range(32), *range(127, 160), 0x202A, 0x202E, 0x2066, 0x200F, 0x2028, 0xD800)))


def visits(column: str = "poi", values: tuple[str, ...] = VALUES) -> pd.DataFrame:
    spots = [(f"p{i}", 16.37 + 0.02 * spot, 48.2) for spot in range(3) for i in range(6)]
    return pd.DataFrame([(*spot, v) for spot in spots for v in values], columns=["who", "lon", "lat", column])


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs a command in a folder of its own: exit code, standard output, standard error. None may steer a screen."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: Any) -> tuple[int, str, str]:
        code = cli.run([str(a) for a in arguments])
        shown = capfd.readouterr()
        for text in shown:
            assert not set(STEERING) & set(text)
            assert "Traceback" not in text
        return code, shown.out, shown.err

    return call


def flags(column: str = "poi") -> tuple[str, ...]:
    return ("--h3", "8", "--person", "who", f"--attribute={column}", "--k", "5")


class Tags(HTMLParser):
    """Elements of a page, and the attributes that would run something."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, list[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, sorted(name for name, _ in attrs)))


def tags(page: Path) -> list[tuple[str, list[str]]]:
    reader = Tags()
    reader.feed(page.read_text(encoding="utf-8"))
    return reader.found


def elements(page: Path) -> set[str]:
    return {tag for tag, _ in tags(page)}


@pytest.mark.parametrize("suffix", [".gpkg", ".parquet", ".geojson", ".fgb", ".csv"])
def test_values_of_every_kind_come_through_every_file(suffix: str, run: Any) -> None:
    visits().to_parquet("v.parquet")
    code, _, err = run("enforce", "v.parquet", *flags(), "-o", f"r{suffix}", "--work", "w.gpkg")
    assert code == 0, err
    release = gd.read_release(f"r{suffix}")
    assert set(release.metadata["attributes"][0]["levels"][0]) == set(VALUES)
    if len(release.counts):
        assert set(release.counts["value"]) == set(VALUES)
    for command in (
        ("info", f"r{suffix}"),
        ("info", "w.gpkg"),
        ("audit", f"r{suffix}"),
        ("score", "v.parquet", *flags()),
    ):
        assert run(*command)[0] in (0, 3)  # an audit needs counts, which some formats do not carry


def test_pages_hold_no_element_that_a_name_asks_for(run: Any) -> None:
    for name, values in (("plain", tuple(f"v{i}" for i in range(len(VALUES)))), ("hostile", VALUES)):
        visits(values=values).to_parquet(f"{name}.parquet")
        assert (
            run("enforce", f"{name}.parquet", *flags(), "-o", f"{name}.gpkg", "--work", f"{name}-w.gpkg")[0]
            == 0
        )
        assert run("map", f"{name}.gpkg", "-o", f"{name}-map.html")[0] == 0
        assert run("report", f"{name}.gpkg", "-o", f"{name}-public.html")[0] == 0
        assert run("report", f"{name}-w.gpkg", "-o", f"{name}-internal.html")[0] == 0
    for page in ("map", "public", "internal"):
        plain, hostile = tags(Path(f"plain-{page}.html")), tags(Path(f"hostile-{page}.html"))
        assert [tag for tag, _ in plain].count("script") == [tag for tag, _ in hostile].count("script")
        assert {tag for tag, _ in hostile} <= {tag for tag, _ in plain}
        assert not [names for _, names in hostile if any(name.startswith("on") for name in names)]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda c: repr(c)[:20])
def test_columns_of_every_name_are_columns(column: str, run: Any) -> None:
    values = ("<b>", "\x1b[31m", "=1")
    visits(column, values).to_parquet("v.parquet")
    code, _, err = run(
        "enforce", "v.parquet", *flags(column), "-o", "r.gpkg", "--work", "w.gpkg", "--report", "r.html"
    )
    assert code == 0, err
    release = gd.read_release("r.gpkg")
    assert set(release.counts["attribute"]) == {column}
    assert f"{column}_level" in release.cells.columns
    with closing(sqlite3.connect("r.gpkg")) as database:
        tables = {name for (name,) in database.execute("SELECT table_name FROM gpkg_contents")}
        assert {"cells", "counts", "taxonomy", "reference", "layer_styles"} <= tables
        for (style,) in database.execute("SELECT styleQML FROM layer_styles"):
            Xml.fromstring(style.split("\n", 1)[1])
    for command in (
        ("info", "r.gpkg"),
        ("info", "v.parquet"),
        ("audit", "r.gpkg"),
        ("map", "r.gpkg", "-o", "m.html"),
    ):
        assert run(*command)[0] == 0
    assert sorted(p.name for p in Path().iterdir()) == [
        "m.html", "r.gpkg", "r.html", "r.html.json", "r.json", "v.parquet", "w.gpkg",
    ]  # fmt: skip


def test_no_file_for_a_spreadsheet_begins_a_field_like_a_formula(run: Any) -> None:
    visits("=poi").to_parquet("v.parquet")
    assert run("enforce", "v.parquet", *flags("=poi"), "-o", "r.csv")[0] == 0
    assert run("sweep", "v.parquet", *flags("=poi"), "--sizes", "7,8", "-o", "s.csv")[0] == 0
    for name in ("r.csv", "s.csv"):
        with Path(name).open(encoding="utf-8", newline="") as file:
            fields = [field for row in csv.reader(file) for field in row]
        risky = [field for field in fields if field.startswith(("=", "+", "-", "@", "\t", "\r"))]
        assert all(pd.notna(pd.to_numeric(field, errors="coerce")) for field in risky), risky


def test_a_name_with_a_zero_byte_is_refused_before_anything_is_written(run: Any) -> None:
    visits(values=("a\0b", "a\0c")).to_parquet("v.parquet")
    code, _, err = run("enforce", "v.parquet", *flags(), "-o", "r.gpkg")
    assert (code, "NUL" in err) == (3, True)
    assert [p.name for p in Path().iterdir()] == ["v.parquet"]


def test_the_policy_that_init_writes_holds_names_as_texts_only(run: Any) -> None:
    column = 'x"\nk_min = 1\n[gates]\u2028'
    frame = visits(column, ('"]\nk_min = 1 #', "\x1b[31m", "\u202e"))
    name = "a\nk_min = 1\n.csv"
    frame.to_csv(name, index=False)
    code, text, _ = run("init", name, "--person", "who")
    assert code == 0
    tables = tomllib.loads(text)
    assert set(tables) - {"reference"} == {"visits", "grid", "attribute", "gates", "remedies", "release"}
    assert tables["gates"]["k_min"] == 10


@given(st.text() | st.text(alphabet=ESCAPES + 'ab"\\'))
def test_a_text_in_a_policy_is_that_text_and_steers_nothing(text: str) -> None:
    fits = not any("\ud800" <= c <= "\udfff" for c in text)
    written = quoted(text)
    assert printable(written) == written
    if fits:
        assert tomllib.loads(f"x = {written}") == {"x": text}


@given(st.text(alphabet=ESCAPES + "ab é\U0001f600") | st.text())
def test_printable_text_is_one_line_and_stays_as_it_is(text: str) -> None:
    shown = printable(text)
    assert printable(shown) == shown
    assert len(shown.splitlines()) <= 1
    assert not set(shown) & set(ESCAPES)
    if not set(text) & set(ESCAPES) and text.isprintable():
        assert shown == text


def test_errors_of_the_python_interface_are_one_line_too() -> None:
    frame = visits("poi").rename(columns={"lat": "\x1b[2Jlat\nnext"})
    with pytest.raises(gd.SourceError) as caught:
        gd.tabulate(frame, grid=gd.H3Grid(8), person="nobody", attributes=[gd.Nominal("poi")])
    assert not set(STEERING + "\n") & set(str(caught.value))


GOOD = """
[visits]
person = "who"
[grid]
kind = "h3"
resolution = 8
[[attribute]]
column = "poi"
[gates]
k_min = 5
"""
MANY = "9" * 400
POLICIES = {
    "brackets without end": GOOD + "[x]\na = " + "[" * 100_000,
    "brackets in brackets": GOOD + "l_min = " + "[" * 3000 + "]" * 3000,
    "tables in tables": GOOD + "{a = " * 2000,
    "dots": "a" + ".a" * 20_000 + " = 1\n" + GOOD,
    "a number of thousands of digits": GOOD.replace("k_min = 5", "k_min = " + "9" * 5000),
    "a number that no float holds": GOOD.replace("k_min = 5", f"k_min = {MANY}"),
    "such a gate": GOOD + f"l_min = {MANY}",
    "such an edge": GOOD.replace('"poi"', f'"poi"\nkind = "numeric"\nedges = [0, {MANY}]'),
    "such a position": GOOD.replace(
        '"poi"', f'"poi"\nkind = "ordinal"\norder = ["a", "b"]\npositions = [1, {MANY}]'
    ),
    "such a marker": GOOD.replace('"poi"', f'"poi"\nmissing = [{MANY}]'),
    "such a level": GOOD.replace('"poi"', f'"poi"\nlevel = {MANY}'),
    "such a square": GOOD.replace('"h3"\nresolution = 8', f'"square"\ncrs = "EPSG:3035"\nsize = {MANY}'),
    "a square of nothing": GOOD.replace('"h3"\nresolution = 8', '"square"\ncrs = "EPSG:3035"\nsize = 1e-300'),
    "a square larger than the Earth": GOOD.replace(
        '"h3"\nresolution = 8', '"square"\ncrs = "EPSG:3035"\nsize = 1e300'
    ),
    "a ring around the world": GOOD + '[reference]\nscope = "ring"\norder = 100000',
    "a ring without end": GOOD + f'[reference]\nscope = "ring"\norder = 1\nmax_order = {MANY}',
    "zones of everything": GOOD + f"[remedies]\nmax_members = {2**62}",
    "rounds without end": GOOD + f"[remedies]\nmax_rounds = {MANY}",
    "a zero in a path": GOOD.replace('"poi"', '"poi"\ntaxonomy = "a\\u0000b"'),
    "a zero in a CRS": GOOD.replace('"h3"\nresolution = 8', '"square"\nsize = 5\ncrs = "\\u0000"'),
    "a zero in a title": GOOD + '[release]\ntitle = "\\u0000"',
    "a path that is too long": GOOD.replace('"poi"', '"poi"\ntaxonomy = "' + "a" * 5000 + '"'),
    "a folder for a taxonomy": GOOD.replace('"poi"', '"poi"\ntaxonomy = "."'),
    "a key that steers": GOOD + '["\\u001b[31mx\\u202e\\n"]\na = 1',
    "a date": GOOD.replace("k_min = 5", "k_min = 2020-01-01"),
    "a count_min": GOOD + f"[release]\ncount_min = {2**62}",
}


@pytest.mark.parametrize("name", POLICIES)
def test_a_hostile_policy_is_one_line_of_error(name: str, run: Any) -> None:
    visits(values=("a", "b")).to_csv("v.csv", index=False)
    Path("p.toml").write_text(POLICIES[name], encoding="utf-8")
    for command in (("enforce", "v.csv", "-p", "p.toml", "-o", "r.gpkg"), ("info", "p.toml")):
        code, out, err = run(*command)
        assert (code, out, err.count("\n")) == (3, "", 1), err
    assert sorted(p.name for p in Path().iterdir()) == ["p.toml", "v.csv"]


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("k_min", 10**400),
        ("l_min", 10**400),
        ("max_members", 10**9),
        ("label_min", 2**70),
        ("max_rounds", 2**70),
    ],
)
def test_numbers_beyond_all_bounds_are_policy_errors(keyword: str, value: int) -> None:
    with pytest.raises(gd.PolicyError, match=keyword):
        gd.Policy(**{keyword: value})


def test_a_run_that_needs_more_memory_than_there_is_says_so(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_much(*_: Any, **__: Any) -> None:
        raise MemoryError

    visits(values=("a", "b")).to_csv("v.csv", index=False)
    monkeypatch.setattr("geodiv.scores.score", too_much)
    code, out, err = run("score", "v.csv", *flags())
    assert (code, out) == (3, "")
    assert "more memory than there is" in err


TAXONOMIES = {
    "quotes without end": 'value,level1\n"' + "a" * 200_000,
    "a field without end": "value,level1\n" + "a" * 200_000 + ",b\n",
    "columns without end": "value,"
    + ",".join(f"level{i}" for i in range(1, 3000))
    + "\na"
    + ",b" * 2999
    + "\na,b\n",
    "zeros": "value,level1\na\0b,c\n",
    "a name that steers": "value,level1\n\x1b[31m,a\n\x1b[31m,b\n",
    "a tree that is none": "value,level1,level2\na,x,1\nb,x,2\n",
    "nothing": "\n\n\n",
    "another encoding": "value,level1\ncaf\xe9,b\n",
}


@pytest.mark.parametrize("name", TAXONOMIES)
def test_a_hostile_taxonomy_is_one_line_of_error(name: str, run: Any) -> None:
    visits(values=("a", "b")).to_csv("v.csv", index=False)
    Path("t.csv").write_bytes(TAXONOMIES[name].encode("latin-1"))
    Path("p.toml").write_text(GOOD.replace('"poi"', '"poi"\ntaxonomy = "t.csv"'), encoding="utf-8")
    code, out, err = run("score", "v.csv", "-p", "p.toml")
    assert (code, out, err.count("\n")) == (3, "", 1), err


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("city")
    make_demo(folder)
    return folder


WRONG: tuple[Any, ...] = (
    None, 0, -1, 1.5, 10**30, float("inf"), float("nan"), "x", "<script>", "\x1b[31m", True, [], {}, [[]], [None],
    {"a": {"b": 1}}, [10**30], {"x": None},
)  # fmt: skip


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a JSON value, not deeper than four steps."""
    if at:
        yield at
    if len(at) < 4:
        pairs = (
            value.items()
            if isinstance(value, dict)
            else enumerate(value[:2])
            if isinstance(value, list)
            else ()
        )
        for key, inner in pairs:
            yield from places(inner, (*at, key))


def changed(value: Any, at: tuple[Any, ...], to: Any, gone: bool) -> Any:
    value = copy.deepcopy(value)
    inner = value
    for key in at[:-1]:
        inner = inner[key]
    if gone:
        del inner[at[-1]]
    else:
        inner[at[-1]] = to
    return value


def put(folder: Path, city: Path, text: str) -> None:
    """A release with this text for its metadata, inside and beside."""
    shutil.copy(city / "release.gpkg", folder / "r.gpkg")
    (folder / "r.json").write_text(text, encoding="utf-8")
    with closing(sqlite3.connect(folder / "r.gpkg", isolation_level=None)) as database:
        database.execute(
            "UPDATE gpkg_metadata SET metadata = ? WHERE md_standard_uri = 'urn:geodiv:release'", [text]
        )


READERS: tuple[tuple[str, ...], ...] = (
    ("info", "r.gpkg"), ("info", "r.json"), ("audit", "r.gpkg"), ("map", "r.gpkg", "-o", "m.html", "--overwrite"),
    ("report", "r.gpkg", "-o", "p.html", "--overwrite"),
)  # fmt: skip


def test_metadata_that_is_not_what_it_should_be_is_an_error_or_is_shown_as_data(
    city: Path, tmp_path: Path, run: Any
) -> None:
    metadata = json.loads((city / "release.json").read_text(encoding="utf-8"))
    cases = [(at, to, to == "gone") for at in places(metadata) for to in (*WRONG, "gone")]
    several = int(os.environ.get("GEODIV_HOSTILE_CASES", "40"))
    for at, to, gone in random.Random(20261130).sample(cases, several):
        put(tmp_path, city, json.dumps(changed(metadata, at, to, gone)))
        for command in READERS:
            code, _, err = run(*command)
            assert code in (0, 1, 3), (at, to, err)
            assert code != 3 or err, (at, to)


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "1", '"x"', "{", "[" * 100_000, '{"zones": ' + "[" * 100_000, "\ufeff{}"]
)
def test_metadata_that_is_no_object_is_an_error(text: str, city: Path, tmp_path: Path, run: Any) -> None:
    put(tmp_path, city, text)
    for command in READERS[:1] + READERS[2:]:
        code, _, err = run(*command)
        assert (code, err.count("\n")) == (3, 1), err


CHANGES = (
    "UPDATE cells SET cell_id = NULL", "UPDATE cells SET cell_id = 'x' || cell_id",
    "UPDATE cells SET cell_id = '<script>alert(1)</script>'", "DELETE FROM cells",
    "UPDATE cells SET persons = 'many'", "UPDATE cells SET persons = -5", "UPDATE cells SET persons = 9e99",
    "UPDATE cells SET persons = NULL", "UPDATE cells SET members = NULL", "UPDATE cells SET remedy = '<b>'",
    "UPDATE cells SET poi_category_level = 99", "UPDATE cells SET poi_category_level = -1",
    "UPDATE cells SET poi_category_level = 'x'", "UPDATE cells SET poi_category_level = NULL",
    "UPDATE cells SET geom = NULL", "UPDATE cells SET geom = x'47500001'", "UPDATE cells SET area_m2 = 'wide'",
    "UPDATE counts SET persons = 0.5", "UPDATE counts SET persons = -1", "UPDATE counts SET share = 'x'",
    "UPDATE counts SET value = NULL", "UPDATE counts SET attribute = NULL", "UPDATE counts SET level = 1000000",
    "DELETE FROM counts", "UPDATE reference SET share = 'x'", "UPDATE reference SET share = -3",
    *(f"UPDATE {column.replace('.', ' SET ')} = CAST(x'fc' AS TEXT) WHERE rowid = 2"  # no UTF-8
      for column in ("cells.cell_id", "cells.remedy", "counts.value", "taxonomy.value", "reference.value")),
    "UPDATE gpkg_geometry_columns SET column_name = CAST(x'fc' AS TEXT)",
    "DROP TABLE counts", "DROP TABLE reference", "ALTER TABLE counts DROP COLUMN share",
    "UPDATE taxonomy SET value = NULL",
    "UPDATE gpkg_metadata SET metadata = 7",
    "UPDATE gpkg_contents SET srs_id = 12345", "DELETE FROM gpkg_contents",
    "UPDATE gpkg_geometry_columns SET srs_id = 3857",
)  # fmt: skip


COUNTED = ("persons", "members", "level", "cell_id", "counts", "remedy")
"""What an audit looks at."""


@pytest.mark.parametrize("change", CHANGES)
def test_a_release_that_was_tampered_with_is_an_error_or_fails_its_audit(
    change: str, city: Path, tmp_path: Path, run: Any
) -> None:
    shutil.copy(city / "release.gpkg", tmp_path / "r.gpkg")
    shutil.copy(city / "release.json", tmp_path / "r.json")
    with closing(sqlite3.connect(tmp_path / "r.gpkg", isolation_level=None)) as database:
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f'DROP TRIGGER "{name}"')
        if "DROP COLUMN" in change and sqlite3.sqlite_version_info < (3, 35):
            pytest.skip("SQLite before 3.35 drops no column")
        database.execute(change)
    for command in READERS:
        code, _, err = run(*command)
        assert code in (0, 1, 3) or (command[0] == "map" and code == 2 and "gpkg_" in change), err
        if command[0] == "audit" and any(word in change for word in COUNTED):
            assert code != 0, "an audit passed what was tampered with"


def test_bytes_of_a_release_cut_or_overwritten_are_an_error_or_a_release(
    city: Path, tmp_path: Path, run: Any
) -> None:
    whole = (city / "release.gpkg").read_bytes()
    rng = random.Random(7)
    for number in range(12):
        data = bytearray(whole)
        if number % 3:
            for _ in range(200):
                data[rng.randrange(100, len(data))] = rng.randrange(256)
        else:
            data = data[: rng.randrange(len(data))]
        (tmp_path / "r.gpkg").write_bytes(data)
        for command in READERS[:1] + READERS[2:]:
            code, _, err = run(*command)
            assert code in (0, 1, 3), err


def test_results_that_the_terminal_cannot_show_are_escaped_and_a_closed_pipe_is_no_failure(
    tmp_path: Path,
) -> None:
    visits(values=("\u65e5\u672c", "\u65e5")).to_parquet(tmp_path / "v.parquet")
    env = {**os.environ, "PYTHONPATH": str(Path(gd.__file__).parent.parent), "PYTHONIOENCODING": "latin-1"}
    command = [sys.executable, "-m", "geodiv"]
    made = subprocess.run(
        [*command, "enforce", "v.parquet", *flags(), "-o", "\u65e5.gpkg"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
    )
    assert made.returncode == 0, made.stderr
    told = subprocess.run(
        [*command, "audit", "\u65e5.gpkg"], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert (told.returncode, told.stderr) == (0, "")
    assert "\\u65e5" in told.stdout
    reader, writer = os.pipe()
    os.close(reader)
    unread = subprocess.run(
        [*command, "info", "\u65e5.gpkg"],
        cwd=tmp_path,
        env=env,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writer)
    assert (unread.returncode, unread.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_results_that_cannot_be_written_are_an_error(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(gd.__file__).parent.parent)}
    with Path("/dev/full").open("w") as full:
        told = subprocess.run(
            [sys.executable, "-m", "geodiv", "--help"],
            env=env,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert told.returncode == 3
    assert told.stderr.count("\n") == 1
