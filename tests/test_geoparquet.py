"""GeoParquet: version 1.1, covering, zstd, conformant."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import geopandas as gpd
import pyarrow.parquet as pq
import pytest
from handmade import release
from test_geopackage import same

from geodiv.errors import SourceError
from geodiv.geoparquet import read_release, write_release


def test_the_file_says_what_it_is(tmp_path: Path) -> None:
    write_release(release(), tmp_path / "r.parquet")
    file = pq.ParquetFile(tmp_path / "r.parquet")
    geo = json.loads(file.schema_arrow.metadata[b"geo"])
    assert geo["version"] == "1.1.0"
    assert set(geo["columns"]["geometry"]["covering"]["bbox"]) == {"xmin", "ymin", "xmax", "ymax"}
    group = file.metadata.row_group(0)
    assert {group.column(i).compression for i in range(group.num_columns)} == {"ZSTD"}
    assert json.loads(file.schema_arrow.metadata[b"geodiv"]) == release().metadata


def test_the_crs_of_the_grid_is_kept(tmp_path: Path) -> None:
    write_release(release(crs="EPSG:3035"), tmp_path / "r.parquet")
    same(read_release(tmp_path / "r.parquet").cells, release(crs="EPSG:3035").cells)


def test_metadata_needs_no_file_beside(tmp_path: Path) -> None:
    write_release(release(), tmp_path / "r.parquet")
    (tmp_path / "r.json").unlink()
    found = read_release(tmp_path / "r.parquet")
    assert found.metadata.pop("not_carried") == ["counts", "taxonomy", "reference"]
    assert found.metadata == release().metadata


def test_others_read_it(tmp_path: Path) -> None:
    write_release(release(), tmp_path / "r.parquet")
    inside = gpd.read_parquet(tmp_path / "r.parquet", bbox=(0.001, 50.001, 0.002, 50.002))
    assert list(inside["cell_id"]) == ["a"]
    assert pq.read_schema(tmp_path / "r.parquet").field("poi_level").type == "int64"


def test_files_of_others_are_no_release(tmp_path: Path) -> None:
    release().cells.to_parquet(tmp_path / "r.parquet")
    with pytest.raises(SourceError, match="another kind of file"):
        read_release(tmp_path / "r.parquet")


@pytest.mark.skipif(find_spec("geoparquet_validator") is None, reason="geoparquet-validator is not installed")
@pytest.mark.parametrize("zones", [4, 0])
def test_the_validator_agrees(tmp_path: Path, zones: int) -> None:
    import geoparquet_validator

    write_release(release(zones=zones), tmp_path / "r.parquet")
    report = geoparquet_validator.check(str(tmp_path / "r.parquet"))
    assert [geoparquet_validator.failed(report, part) for part in ("core", "covering")] == [[], []]
    assert any(o["id"].startswith("/conf/covering/") and o["status"] == "pass" for o in report["outcomes"])
