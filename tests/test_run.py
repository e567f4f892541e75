"""A run in a policy file: every key is the Python keyword of the same name, and a mistake is named with its place."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import geopandas as gpd
import pandas as pd
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import geodiv as gd
from geodiv import policy_file
from geodiv.policy import Gates
from geodiv.policy_file import parse, quoted, written
from geodiv.reference_files import RegionLayer, read_graph, read_regions

DESIGN = """
[visits]
person = "person_id"
lon = "lon"
lat = "lat"
crs = "EPSG:4326"
on_bad_rows = "skip"

[grid]
kind = "h3"
resolution = 8

[[attribute]]
column = "poi_category"
kind = "nominal"
taxonomy = "poi_taxonomy.csv"
missing = ["", "Unknown"]
sensitive = ["clinic", "church"]
level = 0
unknown = "error"
taxonomy_version = "2026-11"

[[attribute]]
column = "band"
kind = "ordinal"
order = [1, 2, 3]
positions = [0.5, 2, 9]
gates = { l_min = 2, t_max = 0.15 }

[[attribute]]
column = "income"
kind = "numeric"
edges = [-inf, 0, 1000, inf]

[gates]
k_min = 12
l_min = 3
t_max = 0.3
shift_max = 0.3
incidence_max = 0.8

[reference]
scope = "ring"
order = 1
max_order = 3
min_persons = 30
fallback = "none"

[remedies]
ladder = ["merge", "suppress"]
recode_scope = "release"
max_members = 5
max_rounds = 9
residual = false

[release]
title = "A city"
count_min = 5
"""
MINIMAL: dict[str, Any] = {
    "visits": {"person": "who"},
    "grid": {"kind": "h3", "resolution": 8},
    "attribute": [{"column": "poi"}],
}


def policy(folder: Path, text: str) -> Path:
    (folder / "poi_taxonomy.csv").write_text(
        "value,level1\nclinic,visit\nchurch,visit\ncafe,food\n", encoding="utf-8"
    )
    path = folder / "policy.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_whole_file_of_the_design(tmp_path: Path) -> None:
    run = gd.read_run(policy(tmp_path, DESIGN))
    assert dict(run.visits) == {
        "person": "person_id", "lon": "lon", "lat": "lat", "crs": "EPSG:4326", "on_bad_rows": "skip",
    }  # fmt: skip
    assert run.grid == gd.H3Grid(8)
    poi, band, income = run.attributes
    assert isinstance(poi, gd.Nominal)
    assert isinstance(band, gd.Ordinal)
    assert isinstance(income, gd.Numeric)
    assert poi.taxonomy is not None
    assert (poi.taxonomy.version, poi.missing, poi.sensitive) == (
        "2026-11",
        ("", "Unknown"),
        ("clinic", "church"),
    )
    assert (band.order, band.positions, dict(band.gates)) == (
        ("1", "2", "3"),
        (0.5, 2, 9),
        {"l_min": 2, "t_max": 0.15},
    )
    assert income.edges == (-math.inf, 0, 1000, math.inf)
    assert run.policy == gd.Policy(
        k_min=12, l_min=3, t_max=0.3, shift_max=0.3, incidence_max=0.8,
        reference=gd.Ring(order=1, max_order=3, min_persons=30, fallback="none"),
        ladder=("merge", "suppress"), recode_scope="release", max_members=5, max_rounds=9, residual=False,
    )  # fmt: skip
    assert run.publication == gd.Publication(title="A city", count_min=5)
    assert run.text == DESIGN


def test_defaults() -> None:
    run = gd.Run.of(MINIMAL)
    assert run.policy == gd.Policy(k_min=10, reference=gd.Global())
    assert run.visits["on_bad_rows"] == "error"
    assert run.publication.count_min == 3
    assert isinstance(run.attributes[0], gd.Nominal)


def test_a_ring_alone_has_its_defaults() -> None:
    run = gd.Run.of(MINIMAL | {"reference": {"scope": "ring"}})
    assert run.policy.reference == gd.Ring(order=1, max_order=1, min_persons=1, fallback="global")


@pytest.mark.parametrize(
    ("table", "grid"),
    [
        ({"kind": "h3", "resolution": 9, "column": "hex"}, lambda: gd.H3Grid(9, column="hex")),
        ({"kind": "square", "size": 500, "crs": "EPSG:3035"}, lambda: gd.SquareGrid(500, "EPSG:3035")),
        ({"kind": "column", "column": "tract"}, lambda: gd.ColumnGrid("tract")),
    ],
)
def test_grids(table: dict[str, Any], grid: Any) -> None:
    assert gd.Run.of(MINIMAL | {"grid": table}).grid == grid()


def test_zones_are_read_beside_the_policy(tmp_path: Path) -> None:
    squares = gpd.GeoDataFrame(
        {"taz": ["a", "b"]}, geometry=[shapely.box(0, 0, 1, 1), shapely.box(1, 0, 2, 1)], crs="EPSG:4326"
    )
    squares.to_file(tmp_path / "zones.gpkg")
    table = {"kind": "zones", "path": "zones.gpkg", "id": "taz"}
    assert gd.Run.of(MINIMAL | {"grid": table}, tmp_path).grid.kind == "zones"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("[visits]\nperson = 3", r"\[visits\] person: expected a text in quotes, got 3"),
        ("[visits]\nperson = ''", r"\[visits\] person: expected a text, got an empty one. Fill it in"),
        ("[visits]\npersn = 'a'", r"\[visits\]: unknown key 'persn'. Did you mean 'person'\?"),
        ("[gates]\nk_min = 'ten'", r"\[gates\] k_min: expected a whole number, got 'ten'"),
        ("[gates]\nk_min = 10.5", r"\[gates\] k_min: expected a whole number, got 10.5"),
        ("[gates]\nk_min = true", r"\[gates\] k_min: expected a whole number, got True"),
        ("[gates]\nk_min = 0", r"k_min: expected a whole number of at least 1, got 0"),
        ("[gates]\nt_max = 3", r"t_max: expected a number from 0 to 1, got 3"),
        ("[gates]\nkmin = 10", r"\[gates\]: unknown key 'kmin'. Did you mean 'k_min'\?"),
        ("[gate]\nk_min = 10", r"unknown table or key 'gate'. Did you mean 'gates'\?"),
        ("gates = 3", r"expected a table \[gates\], got 3"),
        ("[attribute]\ncolumn = 'a'", r"expected attributes as \[\[attribute\]\]"),
        ("[[attribute]]\nkind = 'nominal'", r"\[\[attribute\]\]: expected a column"),
        (
            "[[attribute]]\ncolumn = 'a'\nkind = 'ordered'",
            r"\[\[attribute\]\] 'a' kind: expected one of 'nominal'",
        ),
        ("[[attribute]]\ncolumn = 'a'\norder = [1]", r"order: belongs to kind 'ordinal', not to 'nominal'"),
        ("[[attribute]]\ncolumn = 'a'\ngates = { k_min = 3 }", r"\[\[attribute\]\]: gates of 'a'.*k_min"),
        (
            "[[attribute]]\ncolumn = 'a'\ngates = { l_mn = 3 }",
            r"\[\[attribute\]\] 'a' gates: unknown key 'l_mn'",
        ),
        (
            "[[attribute]]\ncolumn = 'a'\ntaxonomy_version = '1'",
            r"taxonomy_version stands without a taxonomy",
        ),
        (
            "[[attribute]]\ncolumn = 'a'\ntaxonomy = 'no.csv'",
            r"\[\[attribute\]\]: expected a taxonomy at '.*no.csv'",
        ),
        (
            "[grid]\nkind = 'hex'",
            r"\[grid\] kind: expected one of 'h3', 'square', 'zones', 'column', got 'hex'",
        ),
        ("[grid]\nresolution = 8", r"\[grid\] kind: expected one of .*, got none"),
        ("[grid]\nkind = 'h3'\nsize = 500", r"\[grid\] size: belongs to kind 'square', not to 'h3'"),
        ("[grid]\nkind = 'h3'", r"\[grid\]: kind = 'h3' needs resolution"),
        ("[grid]\nkind = 'h3'\nresolution = 99", r"\[grid\]: .*99"),
        (
            "[reference]\nscope = 'ring'\norder = 0",
            r"\[reference\]: order: expected a whole number of at least 1",
        ),
        ("[reference]\norder = 1", r"\[reference\] order: belongs to scope 'ring', not to 'global'"),
        ("[reference]\nscope = 'region'", r"\[reference\]: scope = 'region' needs regions"),
        ("[remedies]\nladder = ['suppress', 'merge']", r"ladder: expected a sub-list"),
        ("[remedies]\nladder = 'merge'", r"\[remedies\] ladder: expected a list of texts"),
        ("[release]\ntitle = 3", r"\[release\] title: expected a text in quotes"),
        ("[release]\ncount_min = 0", r"\[release\]: count_min: expected a whole number of at least 1"),
        (
            "[visits]\nperson = 'a'\non_bad_rows = 'drop'",
            r"on_bad_rows: expected 'error' or 'skip', got 'drop'",
        ),
        ("[gates]\nk_min = ten\nl_min = 3", r"is not TOML: .*line 1[0-9]"),
    ],
)
def test_a_mistake_is_named_with_its_place(change: str, message: str, tmp_path: Path) -> None:
    table = re.match(r"\[+(\w+)", change)
    kept = {k: v for k, v in MINIMAL.items() if table is None or k != table.group(1)}
    text = change + "\n" + written(kept) if table is None else written(kept) + change
    with pytest.raises(gd.GeodivError, match=message) as caught:
        gd.read_run(policy(tmp_path, text))
    assert "policy.toml" in str(caught.value)
    assert caught.value.exit_code == 3


def test_what_is_needed() -> None:
    for lacking, message in (
        ("visits", "person"),
        ("grid", "expected a grid"),
        ("attribute", "at least one"),
    ):
        with pytest.raises(gd.PolicyError, match=message):
            gd.Run.of({k: v for k, v in MINIMAL.items() if k != lacking})


def test_a_missing_or_binary_file(tmp_path: Path) -> None:
    with pytest.raises(gd.PolicyError, match="No such file"):
        gd.read_run(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes("title = 'Gen\xe8ve'".encode("latin-1"))
    with pytest.raises(gd.PolicyError, match="UTF-8"):
        gd.read_run(tmp_path / "latin.toml")


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_bytes(b"\xef\xbb\xbf" + written(MINIMAL).encode())
    assert gd.read_run(path).text == written(MINIMAL)


def test_the_keys_are_the_keywords() -> None:
    assert set(policy_file.GATE_KEYS) == set(Gates.__slots__)
    assert set(policy_file.RELEASE_KEYS) == set(gd.Publication.__slots__)
    tables = {"reference", "places"}
    assert set(policy_file.GATE_KEYS) | set(policy_file.REMEDY_KEYS) | tables == set(gd.Policy.__slots__)
    for kind, of in (("nominal", gd.Nominal), ("ordinal", gd.Ordinal), ("numeric", gd.Numeric)):
        assert set(policy_file.ATTRIBUTE_KEYS[kind]) - {"taxonomy_version"} == set(of.__slots__)
    assert set(policy_file.REFERENCE_KEYS["ring"]) == set(gd.Ring.__slots__)


KEYS = st.text(min_size=1, max_size=8)
SCALARS = st.text() | st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.floats(allow_nan=False)


@given(
    st.dictionaries(
        KEYS, SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(KEYS, SCALARS, max_size=3)
    )
)
def test_written_toml_reads_back(table: dict[str, Any]) -> None:
    import tomllib

    assert tomllib.loads(written({"gates": table})).get("gates", {}) == table


def test_quoted_is_toml() -> None:
    assert quoted('a "b" \\ \n') == '"a \\"b\\" \\\\ \\n"'
    assert quoted([1, 2.5, math.inf]) == "[1, 2.5, inf]"


def test_a_written_run_is_the_same_run(tmp_path: Path) -> None:
    tables = parse(DESIGN, "policy.toml")
    policy(tmp_path, "")
    run = gd.Run.of(tables, tmp_path)
    again = gd.Run.of(parse(run.text, "again"), tmp_path)
    assert (again.policy, again.attributes, again.publication) == (
        run.policy,
        run.attributes,
        run.publication,
    )


def test_regions_in_a_csv(tmp_path: Path) -> None:
    path = tmp_path / "regions.csv"
    path.write_text("cell_id,region\n007,north\n8,south\n", encoding="utf-8")
    assert read_regions(path) == {"007": "north", "8": "south"}
    run = gd.Run.of(
        MINIMAL | {"reference": {"scope": "region", "regions": "regions.csv", "min_persons": 20}}, tmp_path
    )
    assert run.policy.reference == gd.Region({"007": "north", "8": "south"}, min_persons=20)


def test_regions_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "regions.csv"
    path.write_text("cell_id,region\na,north\na,south\n", encoding="utf-8")
    with pytest.raises(gd.SourceError, match=r"one region a cell.*'a'"):
        read_regions(path)
    path.write_text("cell,region\na,north\n", encoding="utf-8")
    with pytest.raises(gd.SourceError, match="'cell_id' is not among 'cell', 'region'"):
        read_regions(path)
    with pytest.raises(gd.SourceError, match=r"no\.csv"):
        read_regions(tmp_path / "no.csv")
    with pytest.raises(gd.SourceError, match=r"no\.gpkg"):
        read_regions(tmp_path / "no.gpkg", "name")


def district_layer(folder: Path) -> Path:
    boxes = [shapely.box(0, 0, 1000, 1000), shapely.box(1000, 0, 2000, 1000)]
    frame = gpd.GeoDataFrame({"name": ["west", "east"]}, geometry=boxes, crs="EPSG:3035")
    path = folder / "districts.gpkg"
    frame.to_file(path)
    return path


def test_regions_of_a_layer_go_by_the_middle_of_the_cell(tmp_path: Path) -> None:
    layer = read_regions(district_layer(tmp_path), "name")
    assert isinstance(layer, RegionLayer)
    cells = gpd.GeoSeries([shapely.box(x, 0, x + 200, 90) for x in (100, 1400, 100_000)])
    found = layer.regions(["a", "b", "c"], cells.set_crs("EPSG:3035").to_crs("EPSG:4326"))
    assert found == {"a": "west", "b": "east"}
    with pytest.raises(gd.SourceError, match="Did you mean 'name'"):
        read_regions(tmp_path / "districts.gpkg", "nam")


def test_a_region_layer_is_applied_once_the_cells_are_known(tmp_path: Path) -> None:
    district_layer(tmp_path)
    x = [50, 150, 1050, 1950]
    visits = gpd.GeoDataFrame(
        {"who": list("abcd"), "poi": list("xyxy")}, geometry=gpd.points_from_xy(x, [50] * 4), crs="EPSG:3035"
    )
    run = gd.Run.of(
        MINIMAL | {
            "grid": {"kind": "square", "size": 100, "crs": "EPSG:3035"},
            "reference": {"scope": "region", "regions": "districts.gpkg", "column": "name"},
        },
        tmp_path,
    )  # fmt: skip
    policy = run.policy_for(run.tabulate(visits))
    assert isinstance(policy.reference, gd.Region)
    assert sorted(policy.reference.regions.values()) == ["east", "east", "west", "west"]


def test_weights_in_files(tmp_path: Path) -> None:
    table = pd.DataFrame({"focal": ["1", "2", "3"], "neighbor": ["2", "1", "3"], "weight": [0.5, 2, 0]})
    table.to_csv(tmp_path / "w.csv", index=False)
    (tmp_path / "w.gal").write_text("3\n1 1\n2\n2 1\n1\n3 0\n\n")
    for name, expected in (("w.csv", 0.5), ("w.gal", 1.0)):
        graph = read_graph(tmp_path / name)
        assert graph.adjacency["1", "2"] == expected
        run = gd.Run.of(MINIMAL | {"reference": {"scope": "weights", "graph": name}}, tmp_path)
        assert isinstance(run.policy.reference, gd.Weights)
    with pytest.raises(gd.SourceError, match="no such file"):
        read_graph(tmp_path / "none.gal")
    (tmp_path / "bad.csv").write_text("focal,neighbor,weight\na,b,much\n")
    with pytest.raises(gd.SourceError, match="one number a pair"):
        read_graph(tmp_path / "bad.csv")
