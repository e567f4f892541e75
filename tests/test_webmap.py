"""The map page: published figures only, names as data, a policy that lets nothing in, and small files."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import html
import json
import re
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import geopandas as gpd
import h3
import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import geodiv as gd
from geodiv import cli, demo, vendor
from geodiv.outlines import centre_longitude, packed, packed_outlines, unpacked
from geodiv.page import Page, cell, script_json, table, text
from geodiv.styles import COLOURS
from geodiv.webmap import map_page, write_map

CITY = demo.fixtures()
NASTY = "</script><img src=x onerror=alert(1)>\u2028`${1}'\"&=cmd|' /C calc'!A0"


@pytest.fixture(scope="module")
def outcome() -> gd.Outcome:
    return gd.read_run(CITY / "policy.toml").enforce(CITY / "visits.parquet")


def data_of(page: str) -> dict[str, Any]:
    """The data block of a map page."""
    return dict(
        json.loads(
            re.search(r'<script type="application/json" id="geodiv-data">(.*?)</script>', page, re.S)[1]
        )
    )  # type: ignore[index]


def ids_of(data: dict[str, Any]) -> list[str]:
    """Member ids of the zones of an H3 map, zone by zone."""
    part = data["h3"]
    rest = [part["ids"][i : i + part["width"]] for i in range(0, len(part["ids"]), part["width"])]
    return [part["prefix"] + one + part["suffix"] for one in rest]


def places(outlines: list[Any], columns: dict[str, Any] | None = None, crs: str = "EPSG:4326") -> gd.Release:
    """A release of zones at these places, one attribute."""
    n = len(outlines)
    ids = [f"z{i:06d}" for i in range(n)]
    frame = {
        "cell_id": ids,
        "members": ids,
        "n_members": 1,
        "persons": np.arange(n) + 10,
        "area_m2": 1.0,
        "remedy": "publish",
        "poi_level": 0,
        "poi_top": "gym",
        "poi_effective": np.linspace(3, 9, n),
        "poi_reference": "global",
    } | (columns or {})
    cells = gpd.GeoDataFrame(frame, geometry=outlines, crs=crs)
    record = {"column": "poi", "gates": {"k_min": 10, "l_min": 3, "t_max": 0.3}}
    metadata = {"title": "t", "grid": {"kind": "zones"}, "attributes": [record], "not_published": 2}
    metadata |= {"policy": {"gates": {}, "reference": {"scope": "global"}}}
    return gd.Release(cells, pd.DataFrame(), pd.DataFrame(), pd.DataFrame(), metadata)


# packing


@given(st.lists(st.integers(-(2**52), 2**52)))
def test_packed_numbers_come_back(numbers: list[int]) -> None:
    assert unpacked(packed(numbers)).tolist() == numbers


def test_packed_numbers_by_hand() -> None:
    assert packed([0, -1, 1, 15, 16]) == "ABCegB"
    assert packed([]) == ""


@pytest.mark.parametrize("digits_of", [0.01, 0.0001])
def test_outlines_come_back_to_the_last_decimal(digits_of: float) -> None:
    hole = shapely.Polygon([(0, 0), (4, 0), (4, 4), (0, 4)], [[(1, 1), (1, 2), (2, 2), (2, 1)]])
    shapes = [hole, shapely.MultiPolygon([shapely.box(5, 5, 6, 6), shapely.box(7, 7, 8, 9)])]
    shapes = list(shapely.transform(shapes, lambda xy: xy * digits_of))
    found = packed_outlines(shapes)
    xy = np.cumsum(unpacked(found.xy).reshape(-1, 2), axis=0) / 10**found.digits
    rings = [r for shape in shapes for part in shapely.get_parts(shape) for r in shapely.get_rings(part)]
    true = np.concatenate([shapely.get_coordinates(r)[:-1] for r in rings])
    assert np.abs(xy - true).max() <= 0.5 * 10**-found.digits + 1e-12
    assert unpacked(found.rings).tolist() == [4, 4, 4, 4]
    assert unpacked(found.polygons).tolist() == [2, 1, 1]
    assert unpacked(found.zones).tolist() == [1, 2]


def test_many_vertices_are_simplified_and_borders_stay_common(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("geodiv.outlines.MOST_VERTICES", 400)
    wave = [(0.1 * np.sin(y * 40) / 40 + 1, y) for y in np.linspace(0, 1, 2000)]
    left = shapely.Polygon([(0, 0), *wave, (0, 1)])
    right = shapely.Polygon([(2, 0), *wave, (2, 1)])
    found = packed_outlines([left, right])
    sizes = unpacked(found.rings)
    assert sizes.sum() < 3000
    xy = np.cumsum(unpacked(found.xy).reshape(-1, 2), axis=0)
    first, second = {tuple(p) for p in xy[: sizes[0]]}, {tuple(p) for p in xy[sizes[0] :]}
    if hasattr(shapely, "coverage_simplify"):
        assert len(first & second) >= min(sizes) - 3


def test_the_centre_lies_in_the_zones_also_across_180_degrees() -> None:
    shapes = [shapely.box(179.0, 0, 179.9, 1), shapely.box(-179.9, 0, -179.0, 1)]
    assert abs(abs(centre_longitude(shapes)) - 180) < 0.1
    assert centre_longitude([]) == 0.0


# escaping


@given(st.text())
def test_text_and_json_hold_no_markup(value: str) -> None:
    assert not set("<>\"'") & set(text(value).replace("&#x27;", "").replace("&quot;", ""))
    data = script_json([value])
    assert not {"<", ">", "&", "\u2028", "\u2029"} & set(data)
    data.encode("utf-8")
    if value.isprintable():
        assert html.unescape(text(value)) == value
        assert json.loads(data) == [value]


def test_tables_escape_their_cells() -> None:
    shown = table([NASTY], [[NASTY], [None]])
    assert "<img" not in shown
    assert shown.count("&lt;img") == 2
    assert cell(None) == "–"


def test_names_stay_names(outcome: gd.Outcome, tmp_path: Path) -> None:
    release = outcome.release
    cells = release.cells.assign(poi_category_top=NASTY, remedy="publish")
    metadata = {**release.metadata, "title": NASTY, "abstract": NASTY, "note": NASTY, "licence": NASTY}
    page = map_page(dataclasses.replace(release, cells=cells, metadata=metadata)).html()
    assert "<img src=x" not in page
    assert "\u2028" not in re.search(r'id="geodiv-data">(.*?)</script>', page, re.S)[1]  # type: ignore[index]
    scripts = re.findall(r"<script[^>]*>", page)
    assert len(scripts) == page.count("</script>") == 4
    assert data_of(page)["attributes"][0]["labels"] == [NASTY]


# what a page holds


def test_only_published_zones_and_their_figures(outcome: gd.Outcome) -> None:
    page = map_page(outcome.release).html()
    data = data_of(page)
    released = outcome.release.cells
    assert sorted(ids_of(data)) == sorted(" ".join(released["members"]).split())
    assert unpacked(data["persons"]).tolist() == released["persons"].tolist()
    for cell_id in outcome.scores["cell_id"][outcome.scores["zone_id"].isna()]:
        assert cell_id not in page
        assert cell_id not in ids_of(data)


def test_first_members_are_the_zones(outcome: gd.Outcome) -> None:
    data = data_of(map_page(outcome.release).html())
    starts = np.cumsum([0, *unpacked(data["sizes"])[:-1]])
    members = ids_of(data)
    assert [members[i] for i in starts] == outcome.release.cells["cell_id"].tolist()


def test_legends_count_every_zone_once(outcome: gd.Outcome) -> None:
    data = data_of(map_page(outcome.release).html())
    zones = len(outcome.release.cells)
    remedy = data["views"][0]
    metadata = outcome.release.metadata
    words = ("publish", "publish_coarsened", "publish_merged")
    told = [*(metadata["remedies"][word] for word in words), metadata["not_published"]]
    assert [entry["count"] for entry in remedy["legend"]] == told
    assert [entry["colour"] for entry in remedy["legend"][:3]] == [COLOURS[word] for word in words]
    for view in data["views"]:
        place = unpacked(view["classes"])
        entries = [e for e in view["legend"] if e["of"] in ("zone", "zones")]
        assert np.bincount(place, minlength=len(entries)).tolist() == [e["count"] for e in entries]
        assert sum(e["count"] for e in entries) == zones == len(place)


def test_effective_counts_lie_in_their_class(outcome: gd.Outcome) -> None:
    data = data_of(map_page(outcome.release).html())
    view = next(v for v in data["views"] if v["title"] == "poi_category: effective count")
    values = outcome.release.cells["poi_category_effective"].to_numpy()
    for value, place in zip(values, unpacked(view["classes"]), strict=True):
        label = view["legend"][place]["label"]
        if np.isnan(value):
            assert label.startswith("no figure")
        else:
            low, high = map(float, label.split(" to "))
            assert low - 1e-9 <= value <= high + 1e-9


def test_every_t_stands_beside_its_reference(outcome: gd.Outcome) -> None:
    page = map_page(outcome.release).html()
    assert page.count("a distance of at most") == 2
    assert page.count("to the ring of order 1 around it (up to order 3 for 30 persons, else") >= 2


def test_the_policy_lets_nothing_in(outcome: gd.Outcome) -> None:
    page = map_page(outcome.release).html()
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1])  # type: ignore[index]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "http" not in policy
    for tag in ("style", "script"):
        for content in re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.S):
            digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy
    assert not re.search(r"<(script|link|img|iframe)[^>]+(src|href)=", page)
    assert " style=" not in re.sub(r"<script>.*?</script>", "", page, flags=re.S)


def test_tiles_are_asked_for_by_name_only(outcome: gd.Outcome) -> None:
    page = map_page(
        outcome.release, tiles="https://{s}.tiles.example.org/{z}/{x}/{y}.png", attribution="<b>us</b>"
    )
    assert "img-src data: https://*.tiles.example.org" in page.policy()
    assert "<b>us" not in page.html()
    for wrong in ("tiles", "javascript:alert(1)//{z}", "https://x.org;script-src *//{z}"):
        with pytest.raises(gd.UsageError, match="expected an address"):
            map_page(outcome.release, tiles=wrong)


def test_a_script_that_would_end_early_is_refused() -> None:
    with pytest.raises(ValueError, match="closing tag"):
        Page("t", "", scripts=["'</script>'"]).html()


# vendored files


def test_vendored_files_are_what_they_were() -> None:
    folder = resources.files("geodiv.vendor")
    sums = dict(line.split()[::-1] for line in (folder / "SHA256SUMS").read_text().splitlines())
    for library in (vendor.LEAFLET, vendor.H3):
        assert set(library.scripts + library.styles + library.notices) <= set(sums)
        assert library.version in (folder / "README.md").read_text()
        assert any(re.search(rf"{library.version}|h3", vendor.read(name)[:200]) for name in library.scripts)
    for name, digest in sums.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest


def test_licences_go_along(outcome: gd.Outcome) -> None:
    page = map_page(outcome.release).html()
    assert "Leaflet 1.9.4, BSD-2-Clause" in page
    assert "Redistributions in binary form must reproduce" in page
    assert "h3-js 4.5.0, Apache-2.0" in page


# other grids, sizes, errors


def test_squares_and_zones_travel_as_outlines() -> None:
    grid = gd.SquareGrid(500, "EPSG:3035")
    x, y = np.meshgrid(4_321_000 + 500 * np.arange(5), 3_210_000 + 500 * np.arange(4))
    keys = grid.locate(x.ravel().astype(float), y.ravel().astype(float))
    release = places(
        list(grid.geometry(keys)), {"cell_id": grid.ids(keys), "members": grid.ids(keys)}, "EPSG:3035"
    )
    page = map_page(release).html()
    data = data_of(page)
    assert data["h3"] is None
    assert "h3-js" not in page
    assert unpacked(data["outlines"]["rings"]).tolist() == [4] * 20
    xy = np.cumsum(unpacked(data["outlines"]["xy"]).reshape(-1, 2), axis=0) / 10 ** data["outlines"]["digits"]
    true = release.cells.to_crs("EPSG:4326").total_bounds
    assert np.allclose([*xy.min(axis=0), *xy.max(axis=0)], true, atol=1e-5)


def test_ids_that_are_no_h3_cells_are_not_handed_to_h3() -> None:
    release = places([shapely.box(0, 0, 1, 1)], {"members": "8' + alert(1)"})
    release.metadata["grid"] = {"kind": "h3", "resolution": 8}
    assert data_of(map_page(release).html())["h3"] is None


@pytest.mark.parametrize(
    "ids", [["8828308281fffff"], ["8828308281fffff", "8828308283fffff"], h3.get_res0_cells()]
)
def test_h3_ids_come_back(ids: Any) -> None:
    ids = sorted(ids)
    shapes = [shapely.box(0, 0, 1, 1)] * len(ids)
    release = places(shapes, {"cell_id": ids, "members": ids})
    release.metadata["grid"] = {"kind": "h3"}
    assert ids_of(data_of(map_page(release).html())) == ids


def test_a_hundred_thousand_cells_are_below_5_megabytes() -> None:
    rng = np.random.default_rng(0)
    ids = sorted(h3.grid_disk(h3.latlng_to_cell(50, 10, 8), 183))[:100_000]
    n = len(ids)
    columns = {
        "cell_id": ids,
        "members": ids,
        "persons": rng.integers(10, 5000, n),
        "remedy": rng.choice(["publish", "publish_coarsened", "publish_merged"], n),
        "poi_level": rng.integers(0, 2, n),
        "poi_top": rng.choice([f"label {i}" for i in range(40)], n),
        "poi_effective": rng.uniform(2, 30, n),
    }
    column = np.arange(n)
    corners = np.column_stack([column % 400, column // 400]) * 0.01
    release = places(list(shapely.box(*corners.T, *(corners + 0.01).T)), columns)
    plain = len(map_page(release).html().encode())
    release.metadata["grid"] = {"kind": "h3"}
    assert n == 100_000
    assert len(map_page(release).html().encode()) < 4_000_000
    assert plain < 5_000_000


def test_an_empty_release_has_a_map() -> None:
    release = places([])
    assert data_of(map_page(release).html())["persons"] == ""


def test_without_outlines_there_is_no_map(outcome: gd.Outcome, tmp_path: Path) -> None:
    bare = dataclasses.replace(
        outcome.release, cells=pd.DataFrame(outcome.release.cells.drop(columns="geometry"))
    )
    with pytest.raises(gd.UsageError, match="outlines of the zones"):
        write_map(bare, tmp_path / "map.html")
    nowhere = dataclasses.replace(
        outcome.release, cells=outcome.release.cells.set_crs(None, allow_override=True)
    )
    with pytest.raises(gd.UsageError, match="known CRS"):
        write_map(nowhere, tmp_path / "map.html")


def test_the_verb_writes_and_never_replaces_unasked(
    outcome: gd.Outcome, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome.release.to_file(tmp_path / "r.gpkg")
    outcome.to_work(tmp_path / "w.gpkg")
    command: Callable[..., int] = lambda *a: cli.run([str(x) for x in a])  # noqa: E731
    assert command("map", tmp_path / "r.gpkg", "-o", tmp_path / "m.html") == 0
    first = (tmp_path / "m.html").read_bytes()
    assert command("map", tmp_path / "r.gpkg", "-o", tmp_path / "m.html") == 2
    assert command("map", tmp_path / "w.gpkg", "-o", tmp_path / "n.html") == 3
    assert command("map", tmp_path / "none.gpkg", "-o", tmp_path / "n.html") == 3
    assert "Traceback" not in capsys.readouterr().err
    assert command("map", tmp_path / "r.gpkg", "-o", tmp_path / "m.html", "--overwrite") == 0
    assert (tmp_path / "m.html").read_bytes() == first
    assert not (tmp_path / "n.html").exists()
