"""Releases by extension: what each format carries comes back, and what it does not is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import geopandas as gpd
import pandas as pd
import pytest
from handmade import release
from hypothesis import given, settings
from hypothesis import strategies as st
from test_geopackage import same

import geodiv as gd
from geodiv.demo import fixtures
from geodiv.errors import SourceError, UsageError, WriteError
from geodiv.formats import FORMATS, format_of, read_release, write
from geodiv.release import Release

OUTLINED = [".gpkg", ".parquet", ".geoparquet", ".geojson", ".fgb"]


def test_every_format_has_a_test() -> None:
    assert set(FORMATS) == {*OUTLINED, ".csv"}


@pytest.mark.parametrize("zones", [4, 0])
@pytest.mark.parametrize("suffix", OUTLINED)
def test_zones_come_back(tmp_path: Path, suffix: str, zones: int) -> None:
    made = release(zones=zones)
    made.to_file(tmp_path / f"r{suffix}")
    found = read_release(tmp_path / f"r{suffix}")
    if zones:
        same(found.cells, made.cells)
        assert found.cells.crs == "EPSG:4326"
    assert not set(made.cells.columns[:6]) - set(found.cells.columns)
    missing = found.metadata.pop("not_carried", [])
    assert found.metadata == made.metadata
    expected = {
        ".gpkg": [],
        ".geojson": ["counts", "taxonomy", "reference", "crs: the outlines are in EPSG:4326"],
    }
    assert missing == expected.get(suffix, ["counts", "taxonomy", "reference"])
    assert list(found.reference.columns) == ["attribute", "level", "value", "share"]


@pytest.mark.parametrize("suffix", list(FORMATS))
def test_metadata_lies_beside(tmp_path: Path, suffix: str) -> None:
    write(release(), tmp_path / f"r{suffix}")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([f"r{suffix}", "r.json"])
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8")) == release().metadata


@pytest.mark.parametrize("suffix", [".geojson", ".fgb", ".csv"])
def test_missing_metadata_is_said(tmp_path: Path, suffix: str) -> None:
    write(release(), tmp_path / f"r{suffix}")
    (tmp_path / "r.json").unlink()
    found = read_release(tmp_path / f"r{suffix}")
    assert list(found.metadata) == ["not_carried"]
    assert found.metadata["not_carried"][-1].startswith("metadata: there is no 'r.json'")


@pytest.mark.parametrize("suffix", list(FORMATS))
def test_bytes_repeat(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    for name in ("one", "two"):
        write(release(), tmp_path / f"{name}{suffix}")
    assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"two{suffix}").read_bytes()


@pytest.mark.parametrize("suffix", list(FORMATS))
def test_existing_files_are_kept(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "r.json").write_text("mine")
    with pytest.raises(UsageError, match="--overwrite"):
        write(release(), tmp_path / f"r{suffix}")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("r.json", "mine")]
    write(release(), tmp_path / f"r{suffix}", overwrite=True)
    write(release(), tmp_path / f"r{suffix}", overwrite=True)


@pytest.mark.parametrize("suffix", list(FORMATS))
def test_no_folder(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(WriteError, match="folder"):
        write(release(), tmp_path / "none" / f"r{suffix}")


@pytest.mark.parametrize("suffix", list(FORMATS))
def test_files_of_others(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(SourceError, match="no such file"):
        read_release(tmp_path / f"r{suffix}")
    (tmp_path / f"r{suffix}").write_text("something else\n1,2\n")
    with pytest.raises(SourceError):
        read_release(tmp_path / f"r{suffix}")


@pytest.mark.parametrize("suffix", [".geojson", ".fgb"])
def test_a_layer_of_others(tmp_path: Path, suffix: str) -> None:
    release().cells[["persons", "geometry"]].to_file(tmp_path / f"r{suffix}")
    with pytest.raises(SourceError, match="without 'cell_id'"):
        read_release(tmp_path / f"r{suffix}")


@pytest.mark.parametrize("name", ["r.shp", "r", "r.json", "r.gpk"])
def test_other_extensions(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"ends in \.gpkg, \.parquet"):
        write(release(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_extensions_in_capitals() -> None:
    assert format_of("R.GPKG") is format_of("r.gpkg")


@pytest.mark.parametrize("suffix", [".geojson", ".fgb"])
def test_zones_without_outlines_need_another_format(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(UsageError, match="no outlines"):
        write(release(located=False), tmp_path / f"r{suffix}")
    assert list(tmp_path.iterdir()) == []


def test_geojson_is_in_degrees(tmp_path: Path) -> None:
    write(release(crs="EPSG:3035"), tmp_path / "r.geojson")
    read = json.loads((tmp_path / "r.geojson").read_text(encoding="utf-8"))
    assert "crs" not in read
    assert {f["geometry"]["type"] for f in read["features"]} == {"MultiPolygon"}
    x, y = read["features"][0]["geometry"]["coordinates"][0][0][0]
    assert -180 <= x <= 180
    assert 49 < y < 51
    assert read["features"][3]["properties"]["poi_effective"] is None


def test_flatgeobuf_keeps_the_crs_of_the_grid(tmp_path: Path) -> None:
    write(release(crs="EPSG:3035"), tmp_path / "r.fgb")
    same(read_release(tmp_path / "r.fgb").cells, release(crs="EPSG:3035").cells)


@pytest.mark.parametrize("zones", [4, 0])
def test_counts_come_back_from_csv(tmp_path: Path, zones: int) -> None:
    write(release(zones=zones), tmp_path / "r.csv")
    found = read_release(tmp_path / "r.csv")
    same(found.counts, release(zones=zones).counts)
    assert found.metadata["not_carried"] == ["cells", "taxonomy", "reference"]
    assert len(found.cells) == 0
    if zones:
        assert found.counts["persons"].isna().sum() == 2


@settings(max_examples=25)
@given(
    text=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
    | st.sampled_from(["NA", "2020-01-01", "1e5", "true"])
)
@pytest.mark.parametrize("suffix", [".csv", ".geojson", ".parquet", ".fgb"])
def test_any_text_survives(tmp_path_factory: pytest.TempPathFactory, suffix: str, text: str) -> None:
    path = tmp_path_factory.mktemp("text") / f"r{suffix}"
    made = release(zones=1)
    made = replace(made, counts=made.counts.assign(value=text), cells=made.cells.assign(poi_top=text))
    write(made, path)
    found = read_release(path)
    texts = found.counts["value"] if suffix == ".csv" else found.cells["poi_top"]
    assert set(texts) == {text}


def test_the_columns_of_an_empty_release_come_from_the_metadata(tmp_path: Path) -> None:
    made = release(zones=0)
    record = {
        "kind": "nominal", "levels": [["a"]], "above": [[0]], "taxonomy": None, "missing": [], "sensitive": None,
        "level": 0, "distance": "total variation", "positions": None, "gates": {},
    }  # fmt: skip
    attributes = [{"column": column, **record} for column in ("poi", "band")]
    made = replace(made, metadata=made.metadata | {"attributes": attributes})
    for suffix in OUTLINED:
        write(made, tmp_path / f"{suffix[1:]}{suffix}")
        found = read_release(tmp_path / f"{suffix[1:]}{suffix}").cells
        assert list(found.columns.drop("geometry", errors="ignore")) == list(made.cells.columns[:-1]), suffix


def test_plain_tables_too(tmp_path: Path) -> None:
    for suffix in (".gpkg", ".parquet", ".csv"):
        write(release(located=False), tmp_path / f"{suffix[1:]}{suffix}")
        assert not isinstance(read_release(tmp_path / f"{suffix[1:]}{suffix}").cells, gpd.GeoDataFrame)
    same(read_release(tmp_path / "parquet.parquet").cells, pd.DataFrame(release(located=False).cells))


def test_a_geopackage_gives_back_the_very_tables(tmp_path: Path) -> None:
    city = fixtures()
    made = gd.read_run(city / "policy.toml").enforce(str(city / "visits.parquet")).release
    made.to_file(tmp_path / "r.gpkg")
    again = read_release(tmp_path / "r.gpkg")
    for name in ("counts", "taxonomy", "reference"):
        pd.testing.assert_frame_equal(getattr(again, name), getattr(made, name))
    pd.testing.assert_frame_equal(
        pd.DataFrame(again.cells.drop(columns="geometry")), pd.DataFrame(made.cells.drop(columns="geometry"))
    )
    assert again.cells.geometry.geom_equals(made.cells.geometry).all()
    assert again.metadata == made.metadata


@pytest.mark.parametrize("suffix", list(FORMATS))
def test_a_release_is_written_as_it_was_made(tmp_path: Path, suffix: str) -> None:
    for table, column in (
        ("cells", "distance"),
        ("cells", "other_level"),
        ("counts", "top"),
        ("taxonomy", "note"),
    ):
        made = release()
        made.metadata["attributes"] = [{"column": "poi"}, {"column": "band"}]
        getattr(made, table)[column] = 1
        with pytest.raises(WriteError, match=f"release.{table}: expected the columns .* got also '{column}'"):
            made.to_file(tmp_path / f"r{suffix}")
    made = replace(release(zones=3), metadata=release().metadata | {"zones": 4})
    with pytest.raises(WriteError, match="expected its 4 zones, got 3"):
        made.to_file(tmp_path / f"r{suffix}")
    assert not list(tmp_path.iterdir())


def many() -> Release:
    """A release larger than its metadata: the same zones over and over, under other ids."""
    made = release()
    cells, counts = (
        pd.concat([table.assign(cell_id=f"{i}-" + table["cell_id"]) for i in range(100)], ignore_index=True)
        for table in (made.cells, made.counts)
    )
    return replace(made, cells=cells, counts=counts, metadata=made.metadata | {"zones": len(cells)})


@pytest.mark.skipif(os.name != "posix", reason="limits of the file size are POSIX")
@pytest.mark.parametrize("suffix", [s for s in FORMATS if s != ".gpkg"])  # which has a test of its own
def test_a_disk_that_is_too_small_by_a_byte_is_an_error_and_loses_nothing(
    tmp_path: Path, suffix: str
) -> None:
    """Writers may keep the last bytes until the file is closed, and say nothing then."""
    path = tmp_path / f"r{suffix}"
    write(many(), path)
    size, former = path.stat().st_size, path.read_bytes()
    room = (tmp_path / "r.json").stat().st_size  # which is written first
    limits = sorted({room, (room + size) // 2, size - 4096, size - 1} & set(range(room, size)))
    code = (
        "import resource, sys; sys.path[:0] = sys.argv[3:]\n"
        "from test_formats import many; from geodiv.formats import write; from geodiv.errors import WriteError\n"
        "path, made = sys.argv[1], many()\n"
        "for limit in eval(sys.argv[2]):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))\n"
        "    try: write(made, path, overwrite=True)\n"
        "    except WriteError as error: assert 'Nothing was changed' in str(error), error\n"
        "    else: print('written with', limit)\n"
    )
    where = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
    command = [sys.executable, "-c", code, str(path), str(limits), *where]
    run = subprocess.run(command, capture_output=True, text=True)
    assert len(limits) >= 2
    assert (run.returncode, run.stdout) == (0, ""), run.stderr
    assert path.read_bytes() == former
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([path.name, "r.json"])
