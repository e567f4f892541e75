"""Bad inputs through the command line: one message, an exit code, no traceback, nothing written."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import geopandas as gpd
import pandas as pd
import pytest
import shapely

import geodiv as gd
from geodiv import cli
from geodiv.policy_file import written

GOOD: dict[str, Any] = {
    "visits": {"person": "who", "lon": "lon", "lat": "lat"},
    "grid": {"kind": "h3", "resolution": 8},
    "attribute": [{"column": "poi"}],
    "gates": {"k_min": 10, "l_min": 2},
}
HEADER = "who,lon,lat,poi,age,cell"
ROW = "p1,16.37,48.2,shop,30,881e15b46dfffff"
FLAGS = ("--person", "who", "--attribute", "poi")
SECRETS = ("p-secret", "16.3712345")
"""A person and a coordinate of the bad rows: no message may hold them."""


def visits() -> pd.DataFrame:
    rows = [
        (f"p{i}", 16.37, 48.2, value, 20 + i, "881e15b46dfffff")
        for i in range(12)
        for value in ("shop", "food", "school")
    ]
    return pd.DataFrame(rows, columns=HEADER.split(","))


def points(crs: str | None = "EPSG:4326", scale: float = 1.0) -> gpd.GeoDataFrame:
    frame = visits()
    return gpd.GeoDataFrame(
        frame[["who", "poi"]],
        geometry=gpd.points_from_xy(frame["lon"] * scale, frame["lat"] * scale),
        crs=crs,
    )


def layer(shapes: list[Any], ids: list[Any], crs: str | None = "EPSG:4326") -> gpd.GeoDataFrame:
    return gpd.GeoDataFrame({"zone": ids}, geometry=shapes, crs=crs)


WEST, EAST = shapely.box(16, 48, 16.5, 48.5), shapely.box(16.5, 48, 17, 48.5)


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Good and bad layers and files that take a library to write."""
    folder = tmp_path_factory.mktemp("stock")
    visits().to_csv(folder / "visits.csv", index=False)
    visits().to_parquet(folder / "visits.parquet")
    (folder / "policy.toml").write_text(written(GOOD), encoding="utf-8")
    points().to_file(folder / "points.gpkg")
    points().to_file(folder / "two.gpkg", layer="first")
    points().to_file(folder / "two.gpkg", layer="second")
    points(None).to_file(folder / "nocrs.gpkg")
    points("EPSG:4326", 100_000).to_file(folder / "metres.gpkg")
    layer([WEST], ["a"]).assign(who="p1", poi="shop").to_file(folder / "polygons.gpkg")
    layer([WEST, EAST], ["a", "b"]).to_file(folder / "zones.gpkg")
    layer([WEST, shapely.box(16.2, 48, 17, 48.5)], ["a", "b"]).to_file(folder / "overlap.gpkg")
    layer([WEST, EAST], ["a", "a"]).to_file(folder / "twice.gpkg")
    layer([WEST, EAST], ["a", None]).to_file(folder / "noid.gpkg")
    layer([WEST, EAST], ["a", "b"], None).to_file(folder / "nocrszones.gpkg")
    layer([WEST, None], ["a", "b"]).to_file(folder / "nooutline.gpkg")
    layer([shapely.Point(16, 48)], ["a"]).to_file(folder / "spots.gpkg")
    layer([], []).to_parquet(folder / "nozones.parquet")
    layer([WEST], ["a"]).to_file(folder / "twolayers.gpkg", layer="one")
    layer([EAST], ["b"]).to_file(folder / "twolayers.gpkg", layer="other")
    run = gd.read_run(folder / "policy.toml")
    outcome = run.enforce(folder / "visits.csv")
    outcome.release.to_file(folder / "release.gpkg")
    outcome.to_work(folder / "work.gpkg")
    whole = (folder / "visits.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    (folder / "cut.csv.gz").write_bytes(gzip.compress((folder / "visits.csv").read_bytes())[:-20])
    (folder / "cut.gpkg").write_bytes((folder / "points.gpkg").read_bytes()[:5000])
    (folder / "bad.json").write_text("{", encoding="utf-8")
    shutil.copy(folder / "release.gpkg", folder / "other.gpkg")
    (folder / "other.json").write_text('{"format": "geodiv release 99"}', encoding="utf-8")
    return folder


def toml(**tables: Mapping[str, Any] | list[Any] | None) -> str:
    """The good policy with these tables instead; None leaves one out."""
    return written({k: v for k, v in {**GOOD, **tables}.items() if v is not None})


def table(*rows: str, header: str = HEADER) -> str:
    return "\n".join([header, *rows, ""])


def case(message: str, *arguments: Any, code: int = 3, name: str | None = None, **files: str | bytes) -> Any:
    """A case: the message's part, the command, its exit code, and files to write first (``a__csv`` is a.csv)."""
    given = {key.replace("__", "."): content for key, content in files.items()}
    return pytest.param(
        arguments, given, code, message, id=name or " ".join(map(str, arguments))[:60] + " " + message[:40]
    )


def by_policy(message: str, text: str, code: int = 3, **files: str | bytes) -> Any:
    """A case: visits.csv scored under a policy."""
    return case(
        message,
        "score",
        "visits.csv",
        "-p",
        "bad.toml",
        code=code,
        name=message[:60],
        bad__toml=text,
        **files,
    )


def by_rows(message: str, *rows: str, header: str = HEADER, **keys: Any) -> Any:
    """A case: a CSV of these rows, scored under the good policy."""
    return case(
        message,
        "score",
        "bad.csv",
        "-p",
        "policy.toml",
        name=message[:60],
        bad__csv=table(*rows, header=header),
        **keys,
    )


def attribute(**keys: Any) -> str:
    return toml(attribute=[{"column": "poi", **keys}])


def zones(path: str, message: str, *more: Any) -> Any:
    return case(message, "score", "visits.csv", *FLAGS, "--zones", path, "--zones-id", "zone", *more)


FILES = [
    case("expected a file at 'none.csv', got none", "score", "none.csv", "-p", "policy.toml"),
    case("Did you mean 'visits.csv'?", "score", "visit.csv", "-p", "policy.toml"),
    case(
        "expected a format that geodiv reads", "score", "visits.xlsx", "-p", "policy.toml", visits__xlsx="x"
    ),
    case("expected files that match 'no*.csv', got none", "score", "no*.csv", "-p", "policy.toml"),
    case(
        "got the address 'https://example.org/v.csv'",
        "score",
        "https://example.org/v.csv",
        "-p",
        "policy.toml",
    ),
    case("got an empty file", "score", "bad.csv", "-p", "policy.toml", bad__csv=""),
    case(
        "expected UTF-8 text",
        "score",
        "bad.csv",
        "-p",
        "policy.toml",
        bad__csv=table("p1,16,48,caf\u00e9,1,x").encode("latin-1"),
    ),
    case(
        "expected UTF-8 text",
        "score",
        "bad.csv",
        "-p",
        "policy.toml",
        name="utf-16",
        bad__csv=table(ROW).encode("utf-16"),
    ),
    by_rows("expected 6 fields in each line of 'bad.csv', got 5 in line 3", ROW, "p2,16.37,48.2,shop,30"),
    case("'cut.csv.gz'", "score", "cut.csv.gz", "-p", "policy.toml"),
    case("'cut.parquet'", "score", "cut.parquet", "-p", "policy.toml"),
    case("'cut.gpkg'", "score", "cut.gpkg", "-p", "policy.toml"),
    case("expected a vector file at 'bad.json'", "score", "bad.json", "-p", "policy.toml"),
    case("expected files of one format", "score", "visits.[cp]*", "-p", "policy.toml"),
    case("got 2: 'first', 'second'", "score", "two.gpkg", *FLAGS, "--h3", 8),
    case("Did you mean 'first'?", "score", "two.gpkg|layername=frst", *FLAGS, "--h3", 8),
    case("expected 'file.gpkg|layername=NAME'", "score", "two.gpkg|layer=first", *FLAGS, "--h3", 8),
    case(
        "expected one layer, got 'first' in the path",
        "score",
        "two.gpkg|layername=first",
        *FLAGS,
        "--h3",
        8,
        "--layer",
        "second",
    ),
    case("expected a file with layers", "score", "visits.csv", *FLAGS, "--h3", 8, "--layer", "first"),
    case(
        "expected files of visits in the folder",
        "score",
        "folder",
        "-p",
        "policy.toml",
        name="a folder without visits",
    ),
]
PLACES = [
    case("expected a CRS in 'nocrs.gpkg', got none", "score", "nocrs.gpkg", *FLAGS, "--h3", 8),
    case("look like metres of a projected one", "score", "metres.gpkg", *FLAGS, "--h3", 8),
    case("'EPSG:0'", "score", "points.gpkg", *FLAGS, "--h3", 8, "--crs", "EPSG:0"),
    case("expected points", "score", "polygons.gpkg", *FLAGS, "--h3", 8),
    by_rows("lon and lat look swapped", "p-secret,48.2,116.3712345,shop,30,x"),
    by_rows("expected -180 to 180", "p-secret,196.3712345,48.2,shop,30,x"),
    by_rows("with decimal commas: write 16.3 for 16,3", 'p-secret,"16,3712345","48,2",shop,30,x'),
    by_rows("no coordinate", "p-secret,,48.2,shop,30,x"),
    by_rows("not a number", "p-secret,east,48.2,shop,30,x"),
    by_rows("no person", ",16.3712345,48.2,shop,30,x"),
    by_rows("row", "p-secret,inf,48.2,shop,30,x"),
    case(
        "expected the column 'lng' (lon)",
        "score",
        "visits.csv",
        *FLAGS,
        "--h3",
        8,
        "--lon",
        "lng",
        "--lat",
        "lat",
    ),
    case("expected lon and lat together", "score", "visits.csv", *FLAGS, "--h3", 8, "--lon", "lon", code=2),
    case(
        "expected a geometry, or columns lon and lat",
        "score",
        "bad.csv",
        *FLAGS,
        "--h3",
        8,
        bad__csv="who,poi\np1,shop\n",
    ),
    case(
        "outside the zones",
        "score",
        "bad.csv",
        *FLAGS,
        "--zones",
        "zones.gpkg",
        "--zones-id",
        "zone",
        bad__csv=table("p-secret,6.3712345,48.2,shop,30,x"),
    ),
    case(
        "not a cell id",
        "score",
        "bad.csv",
        *FLAGS,
        "--h3",
        8,
        "--cell-column",
        "cell",
        bad__csv=table("p-secret,1,2,shop,30,x"),
    ),
    case(
        "no cell id",
        "score",
        "bad.csv",
        *FLAGS,
        "--cell-column",
        "cell",
        bad__csv=table("p-secret,1,2,shop,30,"),
    ),
]
COLUMNS = [
    case(
        "expected the column 'whom' (the person)",
        "score",
        "visits.csv",
        "-p",
        "policy.toml",
        "--person",
        "whom",
    ),
    case(
        "expected the column 'po' (an attribute)",
        "score",
        "visits.csv",
        "-p",
        "policy.toml",
        "--attribute",
        "po",
    ),
    case("expected the column 'hex' (the cell id)", "score", "visits.csv", *FLAGS, "--cell-column", "hex"),
    by_rows(
        "expected one column 'poi' (an attribute)",
        "p1,16.37,48.2,shop,30,x",
        header="who,lon,lat,poi,poi,cell",
    ),
    by_policy("this name is a column of the files that geodiv writes", attribute(column="persons")),
    by_policy(
        "different columns (without regard to case)", toml(attribute=[{"column": "poi"}, {"column": "POI"}])
    ),
]
POLICIES = [
    case("expected a policy file at 'none.toml'", "score", "visits.csv", "-p", "none.toml"),
    by_policy("'bad.toml' is not TOML", "[gates\nk_min = 10"),
    by_policy("unknown table or key 'gate'. Did you mean 'gates'?", toml() + "[gate]\nk_min = 5\n"),
    by_policy("unknown key 'k'", toml(gates={"k": 10})),
    by_policy("[gates] k_min: expected a whole number", toml(gates={"k_min": "ten"})),
    by_policy("k_min: expected a whole number of at least", toml(gates={"k_min": 0})),
    by_policy("[gates] k_min: expected a whole number, got True", toml(gates={"k_min": True})),
    by_policy("t_max: expected a number from 0 to 1", toml(gates={"t_max": 1.5})),
    by_policy("share_max: expected a number", toml(gates={"share_max": -1})),
    by_policy("l_min: expected a number", toml(gates={"l_min": float("nan")})),
    by_policy(
        "no zone can be",
        toml(
            gates={"k_min": 10, "l_min": 40},
            attribute=[{"column": "poi", "kind": "ordinal", "order": ["shop", "food", "school"]}],
        ),
    ),
    by_policy("c_l", toml(gates={"c_max": 3})),
    by_policy(
        "tier_max for 'poi': expected an attribute that names its sensitive values",
        toml(gates={"tier_max": 0.5}),
    ),
    by_policy("[visits] person: expected the column", toml(visits={"lon": "lon", "lat": "lat"})),
    by_policy("expected a text, got an empty one", toml(visits={"person": ""})),
    by_policy(
        "on_bad_rows: expected 'error' or 'skip', got 'ignore'",
        toml(visits={"person": "who", "on_bad_rows": "ignore"}),
    ),
    by_policy(
        "points: expected 'only' or 'representative', got 'all'",
        toml(visits={"person": "who", "points": "all"}),
    ),
    by_policy("at least one [[attribute]]", toml(attribute=None)),
    by_policy("with two pairs of brackets", toml(attribute=None) + '[attribute]\ncolumn = "poi"\n'),
    by_policy("ladder: expected a sub-list", toml(remedies={"ladder": ["suppress", "merge"]})),
    by_policy("max_members", toml(remedies={"max_members": 0})),
    by_policy("recode_scope: expected 'zone' or 'release'", toml(remedies={"recode_scope": "all"})),
    by_policy("count_min", toml(release={"count_min": -1})),
    case(
        "expected UTF-8 text in 'bad.toml'",
        "score",
        "visits.csv",
        "-p",
        "bad.toml",
        bad__toml="\u00e4".encode("latin-1"),
    ),
]
ATTRIBUTES = [
    by_policy(
        "kind: expected one of 'nominal', 'ordinal', 'numeric', got 'nominel'", attribute(kind="nominel")
    ),
    by_policy("order: belongs to kind 'ordinal'", attribute(order=["a"])),
    by_policy("order of 'poi': expected the values", attribute(kind="ordinal", order=[])),
    by_policy("expected different values", attribute(kind="ordinal", order=["shop", "shop"])),
    by_policy("not in its order", attribute(kind="ordinal", order=["shop", "food"])),
    by_policy(
        "edges of 'age': expected at least two ascending numbers",
        toml(attribute=[{"column": "age", "kind": "numeric", "edges": [10, 5]}]),
    ),
    by_policy(
        "values of 'age' are outside its edges [0.0, 25.0]",
        toml(attribute=[{"column": "age", "kind": "numeric", "edges": [0, 25]}]),
    ),
    by_policy(
        "values of 'poi' are no numbers",
        toml(attribute=[{"column": "poi", "kind": "numeric", "edges": [0, 25]}]),
    ),
    by_policy("distance = 'hierarchical' needs a taxonomy", attribute(distance="hierarchical")),
    by_policy("level of 'poi': expected 0", attribute(level=3)),
    by_policy(
        "sensitive of 'poi'",
        attribute(kind="ordinal", order=["shop", "food", "school"], sensitive=["clinic"]),
    ),
    by_policy(
        "declared as missing and as a value",
        attribute(kind="ordinal", order=["shop", "food", "school"], missing=["shop"]),
    ),
    by_policy("unknown key 'k'", attribute(gates={"k": 1})),
    by_policy("gates an attribute may override", attribute(gates={"k_min": 1})),
    by_policy("taxonomy_version stands without a taxonomy", attribute(taxonomy_version="1")),
]
TAXONOMIES = [
    by_policy("expected a taxonomy at 'none.csv'", attribute(taxonomy="none.csv")),
    by_policy(
        "expected the columns value, level1",
        attribute(taxonomy="t.csv"),
        t__csv="value,parent\nshop,retail\n",
    ),
    by_policy(
        "expected 2 columns in 't.csv', line 3; got 3",
        attribute(taxonomy="t.csv"),
        t__csv="value,level1\nshop,a\nfood,b,c\n",
    ),
    by_policy("got several for 'shop'", attribute(taxonomy="t.csv"), t__csv="value,level1\nshop,a\nshop,b\n"),
    by_policy(
        "got several parents for 'a'",
        attribute(taxonomy="t.csv"),
        t__csv="value,level1,level2\nshop,a,x\nfood,a,y\n",
    ),
    by_policy("expected at least one row", attribute(taxonomy="t.csv"), t__csv="value,level1\n"),
    by_policy("not in taxonomy 't'", attribute(taxonomy="t.csv"), t__csv="value,level1\nshop,a\nfood,a\n"),
]
GRIDS = [
    by_policy("needs resolution", toml(grid={"kind": "h3"})),
    by_policy(
        "expected one of 'h3', 'square', 'zones', 'column', got 'hex'",
        toml(grid={"kind": "hex", "resolution": 8}),
    ),
    by_policy("16", toml(grid={"kind": "h3", "resolution": 16})),
    by_policy("size: belongs to kind 'square'", toml(grid={"kind": "h3", "resolution": 8, "size": 10})),
    by_policy("expected a grid, such as", toml(grid=None)),
    by_policy("EPSG:4326", toml(grid={"kind": "square", "size": 500, "crs": "EPSG:4326"})),
    by_policy("-5", toml(grid={"kind": "square", "size": -5, "crs": "EPSG:3035"})),
    by_policy(
        "Zone contiguity: expected 'queen' or 'rook', got 'bishop'",
        toml(grid={"kind": "zones", "path": "zones.gpkg", "id": "zone", "contiguity": "bishop"}),
    ),
    by_policy(
        "Zone tolerance", toml(grid={"kind": "zones", "path": "zones.gpkg", "id": "zone", "tolerance": -1})
    ),
    by_policy("Zones: no file", toml(grid={"kind": "zones", "path": "no.gpkg", "id": "zone"})),
    zones(
        "overlap.gpkg",
        "Zones overlap: 'a and b'",
    ),
    zones("twice.gpkg", "must be unique, but occur more than once: 'a'"),
    zones("noid.gpkg", "have no 'zone'. Every zone needs an id"),
    zones("nocrszones.gpkg", "Zones: the layer has no CRS"),
    zones("nooutline.gpkg", "Zones without an outline: 'b'"),
    zones("spots.gpkg", "Zones must be polygons, but 'a' are Point"),
    zones("nozones.parquet", "Zones: the layer is empty"),
    zones("twolayers.gpkg", "has several layers: 'one', 'other'"),
    case(
        "no column 'zon' for their ids. Did you mean 'zone'?",
        "score",
        "visits.csv",
        *FLAGS,
        "--zones",
        "zones.gpkg",
        "--zones-id",
        "zon",
    ),
    case("not a cell id", "score", "visits.csv", *FLAGS, "--h3", 7, "--cell-column", "cell"),
]
REFERENCES = [
    by_policy("scope: expected one of", toml(reference={"scope": "local"})),
    by_policy("order: belongs to scope 'ring'", toml(reference={"scope": "global", "order": 1})),
    by_policy("max_order", toml(reference={"scope": "ring", "order": 3, "max_order": 1})),
    by_policy(
        "fallback: expected 'global' or 'none'",
        toml(reference={"scope": "ring", "order": 1, "fallback": "all"}),
    ),
    by_policy("needs regions, the path of a file", toml(reference={"scope": "region"})),
    by_policy("expected a table at 'no.csv'", toml(reference={"scope": "region", "regions": "no.csv"})),
    by_policy(
        "'region' is not among",
        toml(reference={"scope": "region", "regions": "r.csv"}),
        r__csv="cell_id,name\na,b\n",
    ),
    by_policy(
        "got several for '881e15b46dfffff'",
        toml(reference={"scope": "region", "regions": "r.csv"}),
        r__csv="cell_id,region\n881e15b46dfffff,n\n881e15b46dfffff,s\n",
    ),
    by_policy(
        "found none of them",
        toml(reference={"scope": "region", "regions": "r.csv"}),
        r__csv="cell_id,region\nx,n\n",
    ),
    by_policy(
        "Did you mean 'zone'?", toml(reference={"scope": "region", "regions": "zones.gpkg", "column": "zon"})
    ),
    by_policy(
        "has several layers",
        toml(reference={"scope": "region", "regions": "twolayers.gpkg", "column": "zone"}),
    ),
    by_policy(
        "expected polygons that name regions",
        toml(reference={"scope": "region", "regions": "spots.gpkg", "column": "zone"}),
    ),
    by_policy(
        "with a CRS at 'nocrszones.gpkg'",
        toml(reference={"scope": "region", "regions": "nocrszones.gpkg", "column": "zone"}),
    ),
    by_policy("needs graph, the path of a file", toml(reference={"scope": "weights"})),
    by_policy("expected weights at 'no.gal'", toml(reference={"scope": "weights", "graph": "no.gal"})),
    by_policy(
        "expected a .gal file of weights",
        toml(reference={"scope": "weights", "graph": "w.gal"}),
        w__gal="three\n",
    ),
    by_policy(
        "found none of them in it",
        toml(reference={"scope": "weights", "graph": "w.csv"}),
        w__csv="focal,neighbor,weight\na,b,1\nb,a,1\n",
    ),
    by_policy(
        "weights: expected finite weights of at least 0",
        toml(reference={"scope": "weights", "graph": "w.csv"}),
        w__csv="focal,neighbor,weight\n881e15b46dfffff,881e15b46dfffff,-1\n",
    ),
    by_policy(
        "one number a pair of cells",
        toml(reference={"scope": "weights", "graph": "w.csv"}),
        w__csv="focal,neighbor,weight\na,b,much\nb,a,1\n",
    ),
    by_policy(
        "expected each pair of cells once",
        toml(reference={"scope": "weights", "graph": "w.csv"}),
        w__csv="focal,neighbor,weight\na,b,1\na,b,2\n",
    ),
    by_policy(
        "expected a .parquet file of weights", toml(reference={"scope": "weights", "graph": "cut.parquet"})
    ),
]
RELEASES = [
    case("none.gpkg", "info", "none.gpkg"),
    case("visits.csv", "info", "visits.csv.gz"),
    case("release", "audit", "points.gpkg"),
    case("release", "audit", "work.gpkg"),
    case("visits.parquet", "audit", "visits.parquet"),
    case("none.gpkg", "audit", "none.gpkg"),
    case("ends in .gpkg", "audit", "release.xlsx", code=2),
    case("none.gpkg", "audit", "release.gpkg", "--against", "none.gpkg"),
    case("none.csv", "audit", "release.gpkg", "--visits", "none.csv", "-p", "policy.toml"),
    case("cut.gpkg", "map", "cut.gpkg", "-o", "m.html"),
    case("points.gpkg", "report", "points.gpkg", "-o", "r.html"),
]
TARGETS = [
    case(
        "'release.gpkg' exists. Give --overwrite",
        "enforce",
        "visits.csv",
        "-p",
        "policy.toml",
        "-o",
        "release.gpkg",
        code=2,
    ),
    case("'work.gpkg' exists", "score", "visits.csv", "-p", "policy.toml", "-o", "work.gpkg", code=2),
    case("'bad.json' exists", "enforce", "visits.csv", "-p", "policy.toml", "-o", "bad.gpkg", code=2),
    case(
        "would be written twice",
        "enforce",
        "visits.csv",
        "-p",
        "policy.toml",
        "-o",
        "new.gpkg",
        "--work",
        "new.gpkg",
        code=2,
    ),
    case(
        "is read by this run",
        "enforce",
        "points.gpkg",
        "-p",
        "policy.toml",
        "-o",
        "points.gpkg",
        "--overwrite",
        code=2,
    ),
    case(
        "is read by this run",
        "score",
        "visits.csv",
        "-p",
        "policy.toml",
        "--rejects",
        "visits.csv",
        "--overwrite",
        code=2,
    ),
    case("ends in .gpkg", "enforce", "visits.csv", "-p", "policy.toml", "-o", "new.shp", code=2),
    case("ends in .gpkg", "enforce", "visits.csv", "-p", "policy.toml", "-o", "new", code=2),
    case("Did you mean '.gpkg'?", "enforce", "visits.csv", "-p", "policy.toml", "-o", "new.gpk", code=2),
    case(
        "expected a folder to write 'new.gpkg' to",
        "enforce",
        "visits.csv",
        "-p",
        "policy.toml",
        "-o",
        "no/new.gpkg",
    ),
    case("no/r.csv", "score", "visits.csv", "-p", "policy.toml", "--rejects", "no/r.csv"),
    case("'policy.toml' exists", "init", "visits.csv", "-o", "policy.toml", code=2),
]
USAGE = [
    case("No such command", "scroe", "visits.csv", code=2),
    case("No such option", "score", "visits.csv", "--kk", 3, code=2),
    case("Missing option '-o'", "enforce", "visits.csv", "-p", "policy.toml", code=2),
    case("is not a valid integer", "score", "visits.csv", "--k", "ten", code=2),
    case(
        "expected one grid",
        "score",
        "visits.csv",
        *FLAGS,
        "--h3",
        8,
        "--square",
        5,
        "--square-crs",
        "EPSG:3035",
        code=2,
    ),
    case(
        "--zones and --zones-id belong together",
        "score",
        "visits.csv",
        *FLAGS,
        "--zones",
        "zones.gpkg",
        code=2,
    ),
    case("expected -p policy.toml", "score", "visits.csv", code=2),
    case("expected COLUMN=VALUE", "score", "visits.csv", "-p", "policy.toml", "--ordinal", "poi", code=2),
    case(
        "expected numbers, got '0', 'many'",
        "score",
        "visits.csv",
        "-p",
        "policy.toml",
        "--numeric",
        "age=0,many",
        code=2,
    ),
    case(
        "expected one reference",
        "score",
        "visits.csv",
        "-p",
        "policy.toml",
        "--ring",
        1,
        "--weights",
        "w.gal",
        code=2,
    ),
    case(
        "engine: expected 'memory'", "score", "visits.csv", "-p", "policy.toml", "--engine", "abacus", code=2
    ),
    case("got an empty file", "score", "-", "-p", "policy.toml", name="standard input that is empty"),
    case(
        "ladder: expected a sub-list",
        "score",
        "visits.csv",
        "-p",
        "policy.toml",
        "--ladder",
        "recode,burn",
        code=2,
    ),
]
CASES = [
    *FILES,
    *PLACES,
    *COLUMNS,
    *POLICIES,
    *ATTRIBUTES,
    *TAXONOMIES,
    *GRIDS,
    *REFERENCES,
    *RELEASES,
    *TARGETS,
    *USAGE,
]


def listing(folder: Path) -> dict[str, bytes | None]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() if p.is_file() else None
        for p in sorted(folder.rglob("*"))
    }


@pytest.fixture
def folder(stock: Path, tmp_path: Path) -> Path:
    work = tmp_path / "work"
    shutil.copytree(stock, work)
    (work / "folder").mkdir()
    return work


def put(folder: Path, files: Mapping[str, str | bytes]) -> dict[str, bytes | None]:
    for name, content in files.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return listing(folder)


@pytest.mark.parametrize(("arguments", "files", "code", "message"), CASES)
def test_bad_input(
    arguments: tuple[Any, ...],
    files: dict[str, str | bytes],
    code: int,
    message: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    before = put(folder, files)
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    got = cli.run([str(a) for a in arguments])
    shown = capfd.readouterr()
    assert got == code, shown.err
    assert message in shown.err
    assert shown.out == ""
    assert "Traceback" not in shown.err
    for secret in SECRETS:
        assert secret not in shown.err
    assert listing(folder) == before


def test_there_are_enough_of_them() -> None:
    assert len(CASES) >= 60


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("score", "none.csv", "-p", "policy.toml"), 3, "geodiv: expected a file at 'none.csv', got none"),
        (("score", "cut.gpkg", "-p", "policy.toml"), 3, "geodiv: expected a vector file at 'cut.gpkg'"),
        (
            ("enforce", "visits.csv", "-p", "policy.toml", "-o", "new.shp"),
            2,
            "geodiv: expected a file name that ends in",
        ),
        (("score", "visits.csv", "--kk", "3"), 2, "No such option"),
        (("score", "metres.gpkg", *FLAGS, "--h3", "8"), 3, "look like metres"),
        (("score", "overlap.gpkg", "--on-bad-rows", "never"), 2, "'never' is not one of"),
    ],
)
def test_bad_input_to_the_program(arguments: tuple[str, ...], code: int, message: str, folder: Path) -> None:
    before = listing(folder)
    env = {**os.environ, "PYTHONPATH": str(Path(gd.__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, "-m", "geodiv", *arguments],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert listing(folder) == before
