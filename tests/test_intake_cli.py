"""Every way in, through the command line: formats, standard input, bad rows and their list, ids with zeros."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import geopandas as gpd
import pandas as pd
import pyarrow as pa
import pytest

import geodiv as gd
from geodiv import cli
from geodiv.suggest import suggested_policy

Run = Callable[..., tuple[int, str, str]]
FLAGS = ("--h3", 8, "--person", "who", "--attribute", "poi")
COUNTED = ("--l", 2, "--json")


@pytest.fixture
def geodiv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """One command in an empty folder: exit code, standard output, standard error; `stdin` are bytes."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: Any, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = cli.run([str(a) for a in arguments])
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        return code, shown.out, shown.err

    return command


def visits() -> pd.DataFrame:
    """Persons 001 to 012, each at three places; two cells."""
    rows = [
        (f"{i:03}", 16.37 + (i % 2) * 0.05, 48.2, poi)
        for i in range(1, 31)
        for poi in ("shop", "food", "school")
    ]
    return pd.DataFrame(rows, columns=["who", "lon", "lat", "poi"])


def points() -> gpd.GeoDataFrame:
    frame = visits()
    places = gpd.points_from_xy(frame["lon"], frame["lat"])
    return gpd.GeoDataFrame(frame[["who", "poi"]], geometry=places, crs="EPSG:4326")


def halves(write: Callable[[pd.DataFrame, Path], Any], folder: Path, suffix: str) -> str:
    (folder / "parts").mkdir()
    frame = visits()
    for i, part in enumerate((frame.iloc[:40], frame.iloc[40:])):
        write(part, folder / "parts" / f"p{i}{suffix}")
    return f"parts/*{suffix}"


def layered(folder: Path) -> str:
    points().iloc[:3].to_file(folder / "v.gpkg", layer="few")
    points().to_file(folder / "v.gpkg", layer="all")
    return "v.gpkg|layername=all"


def put(name: str, write: Callable[[Path], Any]) -> Callable[[Path], str]:
    def build(folder: Path) -> str:
        write(folder / name)
        return name

    return build


FORMATS: dict[str, Callable[[Path], str]] = {
    "csv": put("v.csv", lambda p: visits().to_csv(p, index=False)),
    "tsv": put("v.tsv", lambda p: visits().to_csv(p, index=False, sep="\t")),
    "csv.gz": put("v.csv.gz", lambda p: visits().to_csv(p, index=False, compression="gzip")),
    "parquet": put("v.parquet", lambda p: visits().to_parquet(p)),
    "geoparquet": put("g.parquet", lambda p: points().to_parquet(p)),
    "geoparquet in metres": put("m.parquet", lambda p: points().to_crs("EPSG:3035").to_parquet(p)),
    "gpkg": put("v.gpkg", lambda p: points().to_file(p)),
    "gpkg layer": layered,
    "shp": put("v.shp", lambda p: points().to_file(p)),
    "geojson": put("v.geojson", lambda p: points().to_file(p)),
    "fgb": put("v.fgb", lambda p: points().to_file(p)),
    "glob of csv": lambda folder: halves(lambda f, p: f.to_csv(p, index=False), folder, ".csv"),
    "glob of parquet": lambda folder: halves(lambda f, p: f.to_parquet(p), folder, ".parquet"),
    "folder": lambda folder: halves(lambda f, p: f.to_parquet(p), folder, ".parquet").partition("/")[0],
}


@pytest.mark.parametrize("build", FORMATS.values(), ids=FORMATS)
def test_every_format_gives_the_same_release(
    build: Callable[[Path], str], geodiv: Run, tmp_path: Path
) -> None:
    code, out, err = geodiv("enforce", build(tmp_path), *FLAGS, *COUNTED, "-o", "r.gpkg")
    assert code == 0, err
    figures = json.loads(out)
    assert (figures["cells"], figures["persons"], figures["dropped"]) == (2, 30, {})
    expected = gd.tabulate(visits(), grid=gd.H3Grid(8), person="who", attributes=[gd.Nominal("poi")])
    cells = gd.read_release(tmp_path / "r.gpkg").cells
    assert cells["cell_id"].tolist() == expected.cells.tolist()
    assert cells["persons"].tolist() == expected.persons.tolist()


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("verb", ["score", "enforce", "info", "init"])
def test_standard_input(verb: str, pack: Callable[[bytes], bytes], geodiv: Run, tmp_path: Path) -> None:
    more = {
        "score": (*FLAGS, *COUNTED),
        "enforce": (*FLAGS, *COUNTED, "-o", "r.gpkg"),
        "info": ("--json",),
        "init": ("--person", "who"),
    }
    text = visits().to_csv(index=False).encode()
    code, out, err = geodiv(verb, "-", *more[verb], stdin=pack(text))
    assert code == 0, err
    visits().to_csv(tmp_path / "v.csv", index=False)
    _, same, _ = geodiv(verb, "v.csv", *more[verb], *(["--overwrite"] if verb == "enforce" else []))
    assert out.replace("standard input", "v.csv").replace('"-"', '"v.csv"') == same


def test_a_real_pipe() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "geodiv", "init", "-", "--person", "who"],
        input=visits().to_csv(index=False).encode(),
        capture_output=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(Path(gd.__file__).parent.parent)},
    )
    assert done.returncode == 0, done.stderr
    assert b'person = "who"' in done.stdout
    assert b"suggested for k_min" in done.stdout


def test_init_reads_a_stream_once() -> None:
    table = pa.Table.from_pandas(visits(), preserve_index=False)

    expected = suggested_policy(table, person="who").splitlines()[1:]
    assert any("suggested for k_min" in line for line in expected)
    assert suggested_policy(table.to_reader(), person="who").splitlines()[1:] == expected


def polars_frame(table: pa.Table) -> Any:
    return pytest.importorskip("polars", reason="polars is not installed").from_arrow(table)


def duckdb_relation(table: pa.Table) -> Any:
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    return duckdb.from_arrow(table).filter("who IS NOT NULL")


FRAMES: dict[str, Callable[[pa.Table], Any]] = {
    "polars": polars_frame,
    "duckdb": duckdb_relation,
    "table": lambda table: table,
    "reader": lambda table: table.to_reader(),
    "batch": lambda table: table.to_batches()[0],
    "pandas": lambda table: table.to_pandas(),
}


@pytest.mark.parametrize("build", FRAMES.values(), ids=FRAMES)
def test_frames_of_other_libraries(build: Callable[[pa.Table], Any]) -> None:
    keywords: dict[str, Any] = {"grid": gd.H3Grid(8), "person": "who", "attributes": [gd.Nominal("poi")]}
    expected = gd.tabulate(visits(), **keywords)
    got = gd.tabulate(build(pa.Table.from_pandas(visits(), preserve_index=False)), **keywords)
    assert got.cells.tolist() == expected.cells.tolist()
    assert got.persons.tolist() == expected.persons.tolist()
    assert got.intake.digest == expected.intake.digest


BAD = """who,lon,lat,poi,zone
001,16.37,48.2,shop,007
,16.37,48.2,shop,007
002,,48.2,food,007
003,east,48.2,food,007
004,"16,37","48,2",food,007
005,196.5,48.2,food,007
"006
",16.37,48.2,food,007
007,0,0,food,7
1,16.37,48.2,food,
"""
EXPECTED = [
    ("3", "no person"),
    ("4", "no coordinate"),
    ("5", "not a number"),
    ("6", "not a number"),
    ("7", "out of range"),
]


@pytest.mark.parametrize("pack", [None, gzip.compress], ids=["plain", "gzip"])
def test_rejects_name_lines_and_reasons(pack: Any, geodiv: Run, tmp_path: Path) -> None:
    name = "bad.csv" if pack is None else "bad.csv.gz"
    (tmp_path / name).write_bytes(BAD.encode() if pack is None else pack(BAD.encode()))
    code, out, err = geodiv(
        "score", name, *FLAGS, "--k", 1, "--on-bad-rows", "skip", "--rejects", "rejects.csv", "--json"
    )
    assert code == 0, err
    with (tmp_path / "rejects.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["row", "reason"]
    assert [tuple(row) for row in rows] == EXPECTED
    figures = json.loads(out)
    table = gd.tabulate(
        tmp_path / name, grid=gd.H3Grid(8), person="who", attributes=[gd.Nominal("poi")], on_bad_rows="skip"
    )
    assert table.intake.rows == 9 == table.intake.counted + sum(figures["dropped"].values())
    assert figures["dropped"] == {"no person": 1, "no coordinate": 1, "not a number": 2, "out of range": 1}
    assert "(0, 0)" in err
    assert "006" not in err


def test_bad_rows_stop_a_run_that_does_not_say_skip(geodiv: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text(BAD, encoding="utf-8")
    code, out, err = geodiv("enforce", "bad.csv", *FLAGS, "-o", "r.gpkg")
    assert (code, out) == (3, "")
    for part in ("no person in 1 row: row 3", "on_bad_rows", "--rejects"):
        assert part in err
    assert [p.name for p in tmp_path.iterdir()] == ["bad.csv"]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "gpkg"])
def test_ids_that_look_like_numbers_stay_text(suffix: str, geodiv: Run, tmp_path: Path) -> None:
    rows = [
        (f"{i:03}", zone, poi)
        for zone in ("007", "7", "1e3")
        for i in range(10, 30)
        for poi in ("a", "b", "c")
    ]
    frame = pd.DataFrame(rows, columns=["who", "zone", "poi"])
    if suffix == "csv":
        frame.to_csv(tmp_path / "v.csv", index=False)
    elif suffix == "parquet":
        frame.to_parquet(tmp_path / "v.parquet")
    else:
        places = gpd.points_from_xy([1.0] * len(frame), [1.0] * len(frame))
        gpd.GeoDataFrame(frame, geometry=places, crs="EPSG:4326").to_file(tmp_path / "v.gpkg")
    flags = ("--cell-column", "zone", "--person", "who", "--attribute", "poi", "--l", 2)
    code, _, err = geodiv("enforce", f"v.{suffix}", *flags, "-o", "r.csv")
    assert code == 0, err
    counts = pd.read_csv(tmp_path / "r.csv", dtype=str)
    assert sorted(set(counts["cell_id"])) == ["007", "1e3", "7"]


def test_persons_with_zeros_are_others_than_those_without(geodiv: Run, tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text(
        "who,lon,lat,poi\n007,16.37,48.2,a\n7,16.37,48.2,b\n7.0,16.37,48.2,c\n", encoding="utf-8"
    )
    code, out, _ = geodiv("score", "v.csv", *FLAGS, "--k", 3, "--json")
    assert code == 0
    table = gd.tabulate(tmp_path / "v.csv", grid=gd.H3Grid(8), person="who", attributes=[gd.Nominal("poi")])
    assert table.persons.tolist() == [3]
    assert json.loads(out)["cells"] == 1


def test_a_layer_that_lies_about_its_crs_reads_once_told(geodiv: Run, tmp_path: Path) -> None:
    lying = points().to_crs("EPSG:3035").set_crs("EPSG:4326", allow_override=True)
    lying.to_parquet(tmp_path / "lying.parquet")
    code, _, err = geodiv("enforce", "lying.parquet", *FLAGS, *COUNTED, "-o", "r.gpkg")
    assert code == 3
    assert "EPSG:4326" in err
    assert "metres" in err
    code, out, err = geodiv(
        "enforce", "lying.parquet", *FLAGS, *COUNTED, "-o", "r.gpkg", "--crs", "EPSG:3035"
    )
    assert code == 0, err
    assert json.loads(out)["persons"] == 30
    assert "as told" in err


def test_polygons_stand_for_a_point_inside_when_told(geodiv: Run, tmp_path: Path) -> None:
    mixed = points().to_crs("EPSG:3035")
    mixed.loc[::2, "geometry"] = mixed.geometry[::2].buffer(5)
    mixed.to_parquet(tmp_path / "mixed.parquet")
    code, _, err = geodiv("enforce", "mixed.parquet", *FLAGS, *COUNTED, "-o", "r.gpkg")
    assert code == 3
    assert "got also 'Polygon'" in err
    code, out, err = geodiv(
        "enforce", "mixed.parquet", *FLAGS, *COUNTED, "-o", "r.gpkg", "--points", "representative"
    )
    assert code == 0, err
    assert json.loads(out)["persons"] == 30
    assert 'points = "representative"' in gd.read_release(tmp_path / "r.gpkg").metadata["run"]


def test_rejects_are_not_written_when_the_coordinates_are_not_what_they_are_said_to_be(
    geodiv: Run, tmp_path: Path
) -> None:
    visits().assign(lon=lambda f: f["lon"] * 1000).to_csv(tmp_path / "v.csv", index=False)
    code, _, err = geodiv("score", "v.csv", *FLAGS, "--rejects", "rejects.csv")
    assert code == 3
    assert "Most rows are out of range" in err
    assert [p.name for p in tmp_path.iterdir()] == ["v.csv"]


def test_a_list_of_rejects_alone_goes_on(geodiv: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text(BAD, encoding="utf-8")
    assert geodiv("score", "bad.csv", *FLAGS, "--k", 1, "--rejects", "rejects.csv")[0] == 0
    assert len(pd.read_csv(tmp_path / "rejects.csv")) == len(EXPECTED)


def test_an_audit_reads_standard_input_once(geodiv: Run, tmp_path: Path) -> None:
    text = visits().assign(hour=lambda f: f.index % 5).to_csv(index=False)
    (tmp_path / "v.csv").write_text(text, encoding="utf-8")
    (tmp_path / "policy.toml").write_text(
        '[visits]\nperson = "who"\n[grid]\nkind = "h3"\nresolution = 8\n'
        '[[attribute]]\ncolumn = "poi"\n[gates]\nl_min = 2\n',
        encoding="utf-8",
    )
    assert geodiv("enforce", "v.csv", "-p", "policy.toml", "-o", "r.gpkg")[0] == 0
    arguments = ("audit", "r.gpkg", "-p", "policy.toml", "--column", "hour", "--json", "--visits")
    expected = geodiv(*arguments, "v.csv")
    got = geodiv(*arguments, "-", stdin=text.encode())
    assert expected[0] == got[0] == 0, got[2]
    assert got[1] == expected[1]
