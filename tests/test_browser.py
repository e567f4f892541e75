"""Pages in a real browser without any network: drawn, switched by keyboard, printed; no error, nothing asked for."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pytest
import shapely
from chromium import PROGRAM, Chromium

import geodiv as gd
from geodiv import demo
from geodiv.mapviews import LABELS
from geodiv.page import Page
from geodiv.report import write_report
from geodiv.styles import COLOURS, SEQUENCE
from geodiv.webmap import write_map
from geodiv.workfile import read_work

image = pytest.importorskip("matplotlib.image", reason="reading pictures needs matplotlib, the extra 'map'")
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium here: apt-get install chromium")

NASTY = "</script><img src=x onerror=alert(1)>\u2028`${1}'\"&"
READY = "document.documentElement.dataset.ready === 'yes'"
WORDS = ("publish", "publish_coarsened", "publish_merged")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """One browser for all of these tests."""
    running = Chromium(tmp_path_factory.mktemp("profile"))
    yield running
    running.close()


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Map and reports of the fixture city."""
    folder = tmp_path_factory.mktemp("pages")
    demo.make_demo(folder)
    release = gd.read_release(folder / "release.gpkg")
    write_map(release, folder / "map.html")
    write_report(release, folder / "public.html")
    write_report(read_work(folder / "work.gpkg"), folder / "internal.html")
    return folder


def shares(picture: Path) -> dict[str, float]:
    """Share of a picture's pixels by colour, #RRGGBB."""
    pixels = (image.imread(picture)[..., :3] * 255).round().astype(np.uint32).reshape(-1, 3)
    codes, counts = np.unique(pixels @ [65536, 256, 1], return_counts=True)
    return {f"#{code:06X}": n / counts.sum() for code, n in zip(codes.tolist(), counts.tolist(), strict=True)}


def inside(picture: Path, colour: str) -> tuple[int, int]:
    """A point in the midst of a patch of a colour, right of the map's buttons."""
    pixels = (image.imread(picture)[..., :3] * 255).round().astype(np.uint32) @ np.array(
        [65536, 256, 1], dtype=np.uint32
    )
    same = pixels == int(colour[1:], 16)
    same[:, :420] = False
    for _ in range(6):  # what is left after six pixels are taken off all around
        same = same & np.roll(same, 1, 0) & np.roll(same, -1, 0) & np.roll(same, 1, 1) & np.roll(same, -1, 1)
    y, x = np.argwhere(same)[0].tolist()
    return x, y


def fine(browser: Chromium, path: Path) -> None:
    """The page had no error and asked for itself only."""
    assert browser.complaints() == []
    assert browser.asked_for() == [path.as_uri()]


def test_the_map_is_drawn_and_switched_by_keyboard(browser: Chromium, city: Path, tmp_path: Path) -> None:
    browser.open(city / "map.html")
    browser.until(READY)
    first = shares(browser.picture(tmp_path / "remedy.png"))
    assert all(first.get(COLOURS[word], 0) > 0.002 for word in WORDS)
    for _ in range(4):  # the link past the map, then the views
        browser.press("Tab")
        if browser.run("document.activeElement.name === 'view'"):
            break
    assert browser.run("document.activeElement.value") == "0"
    titles = [browser.run("document.getElementById('legend-title').textContent")]
    pictures = [first]
    for number in (1, 2):
        browser.press("ArrowDown")
        assert browser.run("document.querySelector('input[name=view]:checked').value") == str(number)
        titles.append(browser.run("document.getElementById('legend-title').textContent"))
        pictures.append(shares(browser.picture(tmp_path / f"{number}.png")))
    assert titles == ["Remedy", "poi_category: effective count", "poi_category: most common"]
    assert not any(COLOURS[word] in pictures[1] and pictures[1][COLOURS[word]] > 0.002 for word in WORDS)
    assert sum(pictures[1].get(colour, 0) > 0.0005 for colour in SEQUENCE) >= 4
    assert sum(pictures[2].get(colour, 0) > 0.0005 for colour in LABELS) >= 8
    assert "poi_category: most common" in browser.run(
        "document.getElementById('map').getAttribute('aria-label')"
    )
    fine(browser, city / "map.html")


def test_a_zone_tells_its_published_figures(browser: Chromium, city: Path) -> None:
    browser.open(city / "map.html")
    browser.until(READY)
    release = gd.read_release(city / "release.gpkg")
    zone = release.cells[release.cells["n_members"] > 1].iloc[0]
    browser.run(f"document.querySelector('button[aria-label*=\"{zone['cell_id']}\"]').focus()")
    browser.press("Enter")
    browser.until("document.querySelector('.leaflet-popup .zone') !== null")
    shown = browser.run("document.querySelector('.leaflet-popup .zone').innerText")
    assert zone["cell_id"] in shown
    assert re.search(rf"Persons\s+{zone['persons']:,}\b", shown)
    assert re.search(rf"Cells\s+{zone['n_members']}\b", shown)
    fine(browser, city / "map.html")


def test_the_mouse_over_a_zone_shows_a_card(browser: Chromium, city: Path, tmp_path: Path) -> None:
    browser.open(city / "map.html")
    browser.until(READY)
    x, y = inside(browser.picture(tmp_path / "map.png"), COLOURS["publish_merged"])
    browser.move(1, 1)
    browser.until("document.querySelector('.leaflet-tooltip') === null")
    browser.run("new Promise(done => setTimeout(done, 60, true))")  # the map looks at the mouse every 32 ms
    browser.move(x, y)
    browser.until("document.querySelector('.leaflet-tooltip .zone') !== null")
    shown = browser.run("document.querySelector('.leaflet-tooltip .zone').innerText")
    cells = gd.read_release(city / "release.gpkg").cells.set_index("cell_id")
    zone = cells.loc[re.search(r"Zone (\w+)", shown)[1]]  # type: ignore[index]
    assert zone["remedy"] == "publish_merged"
    assert re.search(rf"Persons\s+{zone['persons']:,}\b", shown)
    fine(browser, city / "map.html")


def test_the_table_holds_every_zone_and_finds_words(browser: Chromium, city: Path) -> None:
    browser.open(city / "map.html")
    browser.until(READY)
    release = gd.read_release(city / "release.gpkg")
    rows = browser.run("[...document.querySelectorAll('#rows th')].map(h => h.textContent)")
    assert rows == release.cells["cell_id"].tolist()
    browser.run(
        "(f => { f.value = 'together'; f.dispatchEvent(new Event('input')); })(document.getElementById('filter'))"
    )
    merged = release.cells.loc[release.cells["remedy"] == "publish_merged", "cell_id"].tolist()
    assert browser.run("[...document.querySelectorAll('#rows th')].map(h => h.textContent)") == merged
    assert f"{len(merged)} zones" in browser.run("document.getElementById('page').textContent")


def placed(outlines: Any, ids: list[str], top: str, crs: str) -> gd.Release:
    """A release of zones at these places, one attribute."""
    n = len(ids)
    frame = {
        "cell_id": ids,
        "members": [i.replace(" ", "%20") for i in ids],
        "n_members": 1,
        "persons": 12,
        "area_m2": 1.0,
        "remedy": [WORDS[i % 3] for i in range(n)],
        "poi_level": 0,
        "poi_top": top,
        "poi_effective": np.linspace(3, 9, n),
        "poi_reference": "global",
    }
    metadata = {
        "title": top,
        "abstract": top,
        "grid": {"kind": "zones"},
        "not_published": 0,
        "policy": {"reference": {"scope": "global"}},
        "attributes": [{"column": "poi", "gates": {"t_max": 0.3}}],
    }
    empty = gpd.pd.DataFrame()
    return gd.Release(gpd.GeoDataFrame(frame, geometry=outlines, crs=crs), empty, empty, empty, metadata)


@pytest.mark.parametrize("where", ["squares", "180 degrees"])
def test_outlines_are_drawn_and_names_stay_names(where: str, browser: Chromium, tmp_path: Path) -> None:
    if where == "squares":
        x, y = np.meshgrid(4_321_000 + 500 * np.arange(6), 3_210_000 + 500 * np.arange(6))
        shapes, crs = shapely.box(x.ravel(), y.ravel(), x.ravel() + 500, y.ravel() + 500), "EPSG:3035"
        ids = [f"Zone {NASTY} ä {i:02d}" for i in range(36)]
    else:
        shapes = [
            shapely.box(179.8, 0, 180, 0.2),
            shapely.box(-180, 0, -179.8, 0.2),
            shapely.box(179.6, 0, 179.8, 0.2),
        ]
        ids, crs = [f"Zone {NASTY} {i}" for i in range(3)], "EPSG:4326"
    write_map(placed(shapes, ids, NASTY, crs), tmp_path / "map.html")
    browser.open(tmp_path / "map.html")
    browser.until(READY)
    found = shares(browser.picture(tmp_path / "map.png"))
    assert all(found.get(COLOURS[word], 0) > 0.02 for word in WORDS)
    assert browser.run("[...document.querySelectorAll('#rows th')].map(h => h.textContent)") == ids
    assert browser.run("document.querySelectorAll('img').length") == 0
    fine(browser, tmp_path / "map.html")


def test_h3_cells_across_180_degrees(browser: Chromium, tmp_path: Path) -> None:
    import h3

    ids = sorted(h3.grid_disk(h3.latlng_to_cell(-17.0, 180.0, 6), 2))
    grid = gd.H3Grid(6)
    release = placed(grid.geometry(grid.keys(np.array(ids, dtype=object))), ids, "gym", "EPSG:4326")
    release.metadata["grid"] = grid.describe()
    write_map(release, tmp_path / "map.html")
    browser.open(tmp_path / "map.html")
    browser.until(READY)
    found = shares(browser.picture(tmp_path / "map.png"))
    assert all(found.get(COLOURS[word], 0) > 0.02 for word in WORDS)
    fine(browser, tmp_path / "map.html")


@pytest.mark.parametrize("variant", ["public", "internal"])
def test_the_report_is_read_and_printed(variant: str, browser: Chromium, city: Path, tmp_path: Path) -> None:
    browser.open(city / f"{variant}.html")
    browser.until("[...document.images].every(i => i.complete && i.naturalWidth > 0)")
    browser.run("document.querySelector('figure').scrollIntoView()")
    found = shares(browser.picture(tmp_path / "report.png"))
    assert found.get(COLOURS["publish"] if variant == "public" else "#C9DDEC", 0) > 0.01
    fine(browser, city / f"{variant}.html")
    printed = browser.printed(tmp_path / "report.pdf")
    if shutil.which("pdftotext") is None:
        pytest.skip("there is no pdftotext here to read the print with: apt-get install poppler-utils")
    text = subprocess.run(["pdftotext", printed, "-"], capture_output=True, text=True, check=True).stdout
    pages = text.split("\f")[:-1]
    notice = {"public": "PUBLIC: every figure", "internal": "INTERNAL: failing cells"}[variant]
    assert len(pages) > 3
    assert all(notice in page for page in pages)


def test_a_page_lets_nothing_run_that_it_does_not_name(browser: Chromium, tmp_path: Path) -> None:
    page = Page(
        "t",
        "<p id='p'>kept</p><script>document.getElementById('p').textContent = 'lost'</script>",
        styles=["p{}"],
    )
    page.write(tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    assert browser.run("document.getElementById('p').textContent") == "kept"
    assert any("Content Security Policy" in line for line in browser.complaints())


def test_nothing_else_is_released_by_a_name(browser: Chromium, city: Path, tmp_path: Path) -> None:
    release = gd.read_release(city / "release.gpkg")
    cells = release.cells.assign(poi_category_top=NASTY)
    nasty = dataclasses.replace(
        release, cells=cells, metadata={**release.metadata, "title": NASTY, "run": NASTY}
    )
    write_report(nasty, tmp_path / "report.html")
    browser.open(tmp_path / "report.html")
    assert NASTY.replace("\u2028", "") in browser.run("document.querySelector('pre').textContent").replace(
        "\u2028", ""
    )
    fine(browser, tmp_path / "report.html")
