"""What a run reads is never written by it, and a file is named after what is in it."""

from __future__ import annotations

import shutil
from pathlib import Path

import geopandas as gpd
import pandas as pd
import pytest
from shapely import box

import geodiv as gd
from geodiv.cli import run
from geodiv.sources import files_of

FIXTURES = Path(__file__).parent.parent / "fixtures"
FLAGS = ["--h3", "8", "--person", "person_id", "--attribute", "poi_category", "--on-bad-rows", "skip"]
REGIONS = ["--regions", "zones.gpkg", "--regions-column", "name"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    visits = pd.read_parquet(FIXTURES / "visits.parquet")
    (tmp_path / "days").mkdir()
    shutil.copy(FIXTURES / "visits.parquet", "days/one.parquet")
    shutil.copy(FIXTURES / "visits.parquet", "visits.parquet")
    shutil.copy(FIXTURES / "poi_taxonomy.csv", "classes.csv")
    points = gpd.GeoDataFrame(
        visits[["person_id", "poi_category"]],
        geometry=gpd.points_from_xy(visits["lon"], visits["lat"]),
        crs=4326,
    )
    points.to_file("points.gpkg", layer="monday")
    points.head(3).to_file("points.gpkg", layer="tuesday")
    zone = gpd.GeoDataFrame({"id": ["all"], "name": ["all"]}, geometry=[box(0, 40, 30, 60)], crs=4326)
    zone.to_file("zones.gpkg")
    Path("places.csv").write_text("value,place\n")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (["enforce", "points.gpkg|layername=monday", *FLAGS, "-o"], "points.gpkg"),
        (["enforce", "points.gpkg", "--layer", "monday", *FLAGS, "-o"], "points.gpkg"),
        (["score", "points.gpkg|layername=monday", *FLAGS, "-o"], "points.gpkg"),
        (["enforce", "days", *FLAGS, "-o"], "days/one.parquet"),
        (["enforce", "days/*.parquet", *FLAGS, "-o"], "days/../days/one.parquet"),
        (["enforce", "visits.parquet", *FLAGS, *REGIONS, "-o"], "zones.gpkg"),
        (["enforce", "visits.parquet", *FLAGS[2:], "--zones", "zones.gpkg", "--zones-id", "id", "-o"], "zones.gpkg"),
        (["enforce", "visits.parquet", *FLAGS, "--taxonomy", "classes.csv", "-o"], "classes.csv"),
        (["taxonomy", "suggest", "visits.parquet", *FLAGS, "--taxonomy", "classes.csv", "-o"], "classes.csv"),
        (["sweep", "visits.parquet", *FLAGS, "--taxonomy", "classes.csv", "--sizes", "8", "-o"], "classes.csv"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else value,
)  # fmt: skip
def test_an_input_is_never_overwritten(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], written: str
) -> None:
    before = Path(written).read_bytes()
    assert run([*arguments, written, "--overwrite"]) == 2
    assert "is read by this run and cannot be written by it too" in capsys.readouterr().err
    assert Path(written).read_bytes() == before


def test_files_of_a_policy_are_inputs_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(FIXTURES / "policy.toml", "policy.toml")
    shutil.copy(FIXTURES / "poi_taxonomy.csv", "poi_taxonomy.csv")
    before = Path("poi_taxonomy.csv").read_bytes()
    for flags in ([], ["--k", "11"]):
        arguments = ["score", "visits.parquet", "-p", "policy.toml", *flags, "--overwrite", "--rejects"]
        assert run([*arguments, "poi_taxonomy.csv"]) == 2
        assert "is read by this run" in capsys.readouterr().err
    assert Path("poi_taxonomy.csv").read_bytes() == before
    assert Path("policy.toml") in gd.read_run("policy.toml").files


def test_the_metadata_of_a_release_is_not_overwritten_by_its_report(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gd.read_run(FIXTURES / "policy.toml").enforce("visits.parquet").release.to_file("r.html.gpkg")
    before = Path("r.html.json").read_bytes()
    assert run(["report", "r.html.gpkg", "-o", "r.html", "--overwrite"]) == 2
    assert "is read by this run" in capsys.readouterr().err
    assert Path("r.html.json").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["score", "visits.parquet", *FLAGS, "-o", "work.csv"], "a work file: expected a name that ends in .gpkg"),
        (["score", "visits.parquet", *FLAGS, "-o", "-"], "a work file: expected a name that ends in .gpkg, got '-'"),
        (["enforce", "visits.parquet", *FLAGS, "-o", "r.gpkg", "--work", "w.geojson"], "a work file: expected"),
        (["enforce", "visits.parquet", *FLAGS, "-o", "r.gpkg", "--report", "r.pdf"], "a page: expected"),
        (["sweep", "visits.parquet", *FLAGS, "--sizes", "8", "-o", "s.parquet"], "a sweep: expected a name"),
        (["taxonomy", "suggest", "visits.parquet", *FLAGS, "-o", "t.toml"], "a taxonomy: expected a name"),
        (["taxonomy", "check", "visits.parquet", *FLAGS, "--plot", "t.xyz"], "--plot: expected a name"),
        (["init", "visits.parquet", "-o", "policy.csv"], "a policy: expected a name that ends in .toml"),
        (["map", "r.gpkg", "-o", "r.json"], "a page: expected a name that ends in .html, .htm, got 'r.json'"),
        (["report", "r.gpkg", "-o", "r.json"], "a page: expected a name that ends in .html, .htm, got 'r.json'"),
    ],
)  # fmt: skip
def test_a_name_says_what_is_in_the_file(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    pytest.importorskip("matplotlib")
    files = {path.name for path in folder.iterdir()}
    assert run(arguments) == 2
    assert told in capsys.readouterr().err
    assert {path.name for path in folder.iterdir()} == files


def test_a_work_file_is_a_geopackage_from_python_too(folder: Path) -> None:
    outcome = gd.read_run(FIXTURES / "policy.toml").enforce("visits.parquet")
    with pytest.raises(gd.UsageError, match="a work file: expected a name that ends in"):
        outcome.to_work("work.csv")


def test_the_files_of_visits(folder: Path) -> None:
    assert files_of("-") == files_of("https://example.org/a.csv") == []
    assert files_of("points.gpkg|layername=monday") == files_of("points.gpkg") == [Path("points.gpkg")]
    assert files_of("days") == files_of("days/*.parquet") == [Path("days/one.parquet")]
    assert files_of("nothing.csv") == [Path("nothing.csv")]
    assert files_of("nothing*.csv") == []
