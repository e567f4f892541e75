"""Both files in the real QGIS and GDAL: renderers, categories, labels, metadata, pixels; valid GeoPackages."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from handmade import MESSY, release, work
from test_geopackage import write_all

from geodiv.geopackage import write_release
from geodiv.styles import COLOURS

SYSTEM_PYTHON = Path("/usr/bin/python3")
has_qgis = pytest.mark.skipif(
    not Path("/usr/bin/qgis_process.bin").exists(), reason="QGIS is not installed (see ci/install-qgis.sh)"
)
has_gdal = pytest.mark.skipif(
    shutil.which("ogrinfo") is None or not Path("/usr/lib/python3/dist-packages/osgeo_utils").exists(),
    reason="GDAL's programs are not installed (see ci/install-qgis.sh)",
)


def environment(folder: Path) -> dict[str, str]:
    """A clean environment in which QGIS runs without a screen."""
    (folder / "run").mkdir(mode=0o700, exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "QT_QPA_PLATFORM": "offscreen",
        "XDG_RUNTIME_DIR": str(folder / "run"),
    }


def look(file: Path, folder: Path, *layers: str) -> dict[str, Any]:
    """What QGIS sees; PNGs are drawn into the folder."""
    script = Path(__file__).with_name("qgis_look.py")
    command = [str(SYSTEM_PYTHON), str(script), str(file), str(folder), *layers]
    shown = subprocess.run(command, capture_output=True, text=True, env=environment(folder), check=False)
    assert shown.returncode == 0, shown.stderr
    seen: dict[str, Any] = json.loads(shown.stdout.splitlines()[-1])
    return seen


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("qgis")
    write_release(release(), folder / "r.gpkg")
    return look(folder / "r.gpkg", folder, "cells", "shares_poi", "counts", "taxonomy", "reference")


@pytest.fixture(scope="module")
def internal(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("qgis")
    write_all(work(), folder / "w.gpkg")
    return look(folder / "w.gpkg", folder, "cells", "scores", "rounds", "intake")


@has_qgis
def test_qgis_lists_the_layers(released: dict[str, Any]) -> None:
    tables = dict.fromkeys(("counts", "taxonomy", "reference"), "None")
    outlines = dict.fromkeys(("cells", "shares_poi", "shares_band"), "MultiPolygon")
    assert released["sublayers"] == outlines | tables
    assert all(layer["valid"] for layer in released["layers"].values())


@has_qgis
def test_a_release_opens_styled_by_remedy(released: dict[str, Any]) -> None:
    cells = released["layers"]["cells"]
    assert cells["renderer"] == "categorizedSymbol"
    assert [(value, colour, layers) for value, _, colour, layers in cells["categories"]] == [
        ("publish", "#0B4F8A", 1), ("publish_coarsened", "#6BAED6", 1), ("publish_merged", "#C4660A", 1),
    ]  # fmt: skip
    assert cells["categories"][1][1] == "published with coarser categories"
    remedies = ("publish", "publish_coarsened", "publish_merged")
    assert all(cells["pixels"].get(COLOURS[remedy], 0) > 5000 for remedy in remedies)


@has_qgis
def test_other_styles_of_a_release(released: dict[str, Any]) -> None:
    cells, shares = released["layers"]["cells"], released["layers"]["shares_poi"]
    assert cells["styles"] == ["by remedy", "by effective count of poi", "by effective count of band"]
    effective = cells["by style"]["by effective count of poi"]
    assert (effective["read"], effective["renderer"]) == (True, "RuleRenderer")
    assert effective["categories"][-1] == ["no figure (another level, or hidden)", "ELSE"]
    assert effective["pixels"]["#E4E4E4"] > 5000
    assert len(set(effective["pixels"]) & {"#8856A7", "#810F7C", "#8C96C6"}) >= 1
    assert shares["renderer"] == "RuleRenderer"
    assert f"share of {MESSY}" in shares["styles"]
    assert all(style["read"] for style in shares["by style"].values())


@has_qgis
def test_aliases_and_value_labels(released: dict[str, Any]) -> None:
    cells = released["layers"]["cells"]
    assert cells["aliases"]["area_m2"] == "Area (m²)"
    assert cells["aliases"]["poi_effective"] == "poi: effective count"
    assert all(alias for name, alias in cells["aliases"].items() if name != "fid")
    assert {"published together with neighbours": "publish_merged"} in cells["values"]["remedy"]
    assert released["layers"]["shares_poi"]["aliases"]["cafe_bar_24h"] == MESSY
    assert released["layers"]["counts"]["aliases"]["persons"] == "Persons"
    assert cells["types"]["cell_id"] == "String"
    assert cells["types"]["poi_effective"] == "Real"


@has_qgis
def test_metadata_of_a_release(released: dict[str, Any]) -> None:
    cells = released["layers"]["cells"]
    assert (cells["title"], cells["abstract"]) == ("Étude «1»", "Who goes where & why")
    assert cells["keywords"] == {"geodiv": ["mobility", "<privacy>"]}
    assert cells["licences"] == ["CC-BY-4.0"]
    assert cells["history"][0].startswith("Released by geodiv")
    assert "Gates: k_min = 10, l_min = 3.0." in cells["history"]
    assert "k = 10 was agreed on" in cells["history"]


@has_qgis
def test_a_work_file_opens_styled_by_final_remedy(internal: dict[str, Any]) -> None:
    cells = internal["layers"]["cells"]
    assert cells["styles"] == ["by final remedy", "by remedy", "by effective count of poi"]
    assert cells["categories"][3] == ["suppress", "not published", "#E4E4E4", 2]
    assert cells["pixels"]["#E4E4E4"] > 5000
    dark = [
        n for colour, n in cells["pixels"].items() if colour[1:3] == colour[3:5] and "40" < colour[1:3] < "70"
    ]
    assert sum(dark) > 1000, "no hatch"
    before = cells["by style"]["by remedy"]
    assert [c[0] for c in before["categories"]] == ["publish", "publish_coarsened", "merge_or_suppress"]
    assert all(layer["title"].startswith("INTERNAL Study") for layer in internal["layers"].values())
    assert all(layer["keywords"] == {"geodiv": ["internal"]} for layer in internal["layers"].values())


@has_qgis
@pytest.mark.parametrize(("zones", "located"), [(0, True), (4, False)])
def test_empty_and_unlocated_releases_open(tmp_path: Path, zones: int, located: bool) -> None:
    write_release(release(zones=zones, located=located), tmp_path / "r.gpkg")
    cells = look(tmp_path / "r.gpkg", tmp_path, "cells")["layers"]["cells"]
    assert cells["valid"]
    assert cells["rows"] == zones
    assert cells["renderer"] == ("categorizedSymbol" if located else None)
    assert cells["aliases"]["persons"] == "Persons"
    assert "remedy" in cells["values"]


@has_gdal
@pytest.mark.parametrize("zones", [4, 0])
@pytest.mark.parametrize("located", [True, False])
@pytest.mark.parametrize("crs", ["EPSG:4326", "EPSG:3035"])
def test_gdal_says_valid(tmp_path: Path, zones: int, located: bool, crs: str) -> None:
    write_release(release(zones=zones, located=located, crs=crs), tmp_path / "r.gpkg")
    write_all(work(located=located), tmp_path / "w.gpkg")
    for name in ("r.gpkg", "w.gpkg"):
        command = [str(SYSTEM_PYTHON), "-m", "osgeo_utils.samples.validate_gpkg", "-k", str(tmp_path / name)]
        shown = subprocess.run(
            command, capture_output=True, text=True, env=environment(tmp_path), check=False
        )
        assert (shown.returncode, shown.stdout, shown.stderr) == (0, "", "")


@has_gdal
def test_ogrinfo_shows_metadata_and_layers(tmp_path: Path) -> None:
    write_release(release(), tmp_path / "r.gpkg")
    shown = subprocess.run(
        ["ogrinfo", "-so", "-al", str(tmp_path / "r.gpkg")], capture_output=True, text=True, check=True
    )
    assert "Warning" not in shown.stdout + shown.stderr
    assert '"format": "geodiv release 1"' in shown.stdout
    for line in ("cell_id: String", "persons: Integer64", "poi_effective: Real", "Geometry: Multi Polygon"):
        assert line in shown.stdout
    assert "IDENTIFIER=Étude «1»" in shown.stdout
