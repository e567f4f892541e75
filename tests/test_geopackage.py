"""GeoPackages: every table, name and null of a release is written and read back; nothing half-written."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import geopandas as gpd
import pandas as pd
import pyogrio
import pytest
from handmade import MESSY, Work, release, work
from hypothesis import given, settings
from hypothesis import strategies as st

from geodiv.columns import release_tables, work_tables
from geodiv.errors import SourceError, UsageError, WriteError
from geodiv.geopackage import read_release, write_release, write_work
from geodiv.release import Release


def same(found: Any, expected: Any) -> None:
    """Raise unless both frames hold the same values, nulls and outlines."""
    plain = [
        pd.DataFrame(f.drop(columns=f.geometry.name)) if isinstance(f, gpd.GeoDataFrame) else f
        for f in (found, expected)
    ]
    nulls = [f.astype(object).where(f.notna(), None).reset_index(drop=True) for f in plain]
    pd.testing.assert_frame_equal(nulls[0], nulls[1], check_dtype=False)
    if isinstance(expected, gpd.GeoDataFrame):
        assert found.crs == expected.crs
        assert found.geometry.geom_equals(expected.geometry, align=False).all()


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute(query).fetchall()


def write_all(tables: Work, path: Path, **options: Any) -> None:
    write_work(
        tables.layer, tables.scores, tables.final_scores, tables.rounds, tables.intake, path,
        title="Study", metadata={"format": "geodiv work 1"}, **options,
    )  # fmt: skip


@pytest.mark.parametrize("located", [True, False])
@pytest.mark.parametrize("zones", [4, 1, 0])
def test_a_release_comes_back_as_it_was(tmp_path: Path, zones: int, located: bool) -> None:
    made = release(zones=zones, located=located)
    write_release(made, tmp_path / "r.gpkg")
    found = read_release(tmp_path / "r.gpkg")
    for name in ("cells", "counts", "taxonomy", "reference"):
        same(getattr(found, name), getattr(made, name))
    assert found.metadata == made.metadata
    assert isinstance(found.cells, gpd.GeoDataFrame) == located


def test_the_crs_of_the_grid_is_kept(tmp_path: Path) -> None:
    write_release(release(crs="EPSG:3035"), tmp_path / "r.gpkg")
    assert read_release(tmp_path / "r.gpkg").cells.crs == "EPSG:3035"


def test_layers_columns_and_types_are_those_of_the_design(tmp_path: Path) -> None:
    path = tmp_path / "r.gpkg"
    write_release(release(), path)
    names = [name for (name,) in rows(path, "SELECT table_name FROM gpkg_contents ORDER BY rowid")]
    assert names == ["cells", "shares_poi", "shares_band", "counts", "taxonomy", "reference", "layer_styles"]
    shown = rows(path, "SELECT name, type FROM pragma_table_info('cells')")
    assert shown[:8] == [
        ("fid", "INTEGER"), ("geom", "MULTIPOLYGON"), ("cell_id", "TEXT"), ("members", "TEXT"),
        ("n_members", "INTEGER"), ("persons", "INTEGER"), ("area_m2", "REAL"), ("remedy", "TEXT"),
    ]  # fmt: skip
    assert [kind for _, kind in shown[8:12]] == ["INTEGER", "TEXT", "REAL", "TEXT"]
    assert pyogrio.list_layers(path)[0].tolist() == ["cells", "MultiPolygon"]


def test_an_empty_release_has_every_column(tmp_path: Path) -> None:
    write_release(release(zones=0), tmp_path / "none.gpkg")
    write_release(release(), tmp_path / "some.gpkg")
    for table in ("cells", "counts", "taxonomy", "reference"):
        query = f"SELECT name, type FROM pragma_table_info('{table}')"
        assert rows(tmp_path / "none.gpkg", query) == rows(tmp_path / "some.gpkg", query)


def test_hidden_counts_are_true_nulls(tmp_path: Path) -> None:
    path = tmp_path / "r.gpkg"
    write_release(release(), path)
    assert (
        rows(path, "SELECT persons, share FROM counts WHERE cell_id = 'd' AND attribute = 'poi'")
        == [(None, None)] * 2
    )
    assert rows(path, "SELECT typeof(poi_effective) FROM cells ORDER BY fid") == [("real",), ("null",)] * 2
    assert rows(path, "SELECT poi_top FROM cells WHERE cell_id = 'd'") == [(None,)]


def test_the_same_json_is_inside_and_beside(tmp_path: Path) -> None:
    path = tmp_path / "r.gpkg"
    write_release(release(), path)
    query = "SELECT metadata, mime_type FROM gpkg_metadata WHERE md_standard_uri = 'urn:geodiv:release'"
    ((inside, mime),) = rows(path, query)
    assert mime == "application/json"
    assert inside == (tmp_path / "r.json").read_text(encoding="utf-8")
    assert json.loads(inside) == release().metadata


def test_a_json_of_another_release_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "r.gpkg"
    write_release(release(), path)
    (tmp_path / "r.json").write_text(json.dumps(release(title="another").metadata))
    assert "another release" in read_release(path).metadata["not_carried"][0]
    (tmp_path / "r.json").unlink()
    assert "no such file" in read_release(path).metadata["not_carried"][0]


def test_shares_lie_side_by_side(tmp_path: Path) -> None:
    path = tmp_path / "r.gpkg"
    write_release(release(), path)
    wide = gpd.read_file(path, layer="shares_poi")
    assert list(wide.columns) == [
        "cell_id", "persons", "level", "cafe_bar_24h", "shop", "gym", "shop_2", "health_level1", "geometry",
    ]  # fmt: skip
    titles = dict(
        rows(path, "SELECT column_name, title FROM gpkg_data_columns WHERE table_name = 'shares_poi'")
    )
    assert (titles["cafe_bar_24h"], titles["shop_2"], titles["health_level1"]) == (
        MESSY,
        "shop",
        "health (level 1)",
    )
    table = wide.set_index("cell_id").drop(columns=["persons", "level", "geometry"])
    assert table.loc["a"].dropna().to_dict() == {
        "shop": 0.0,
        "cafe_bar_24h": 0.75,
        "gym": 0.0,
        "shop_2": 0.25,
    }
    assert table.loc["b"].dropna().to_dict() == {"health_level1": 1.0}
    assert table.loc["d"].isna().all()


def test_bytes_repeat_under_source_date_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    contents = []
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        write_release(release(), tmp_path / str(number) / "r.gpkg")
        write_all(work(), tmp_path / str(number) / "w.gpkg")
        contents.append([path.read_bytes() for path in sorted((tmp_path / str(number)).iterdir())])
    assert contents[0] == contents[1]
    assert rows(tmp_path / "0" / "r.gpkg", "SELECT DISTINCT last_change FROM gpkg_contents") == [
        ("2023-11-14T22:13:20.000Z",)
    ]


@pytest.fixture
def options() -> Iterator[dict[str, str]]:
    """GDAL's configuration as somebody else may have set it."""
    theirs = {"GDAL_PAM_ENABLED": "PERHAPS", "OGR_CURRENT_DATE": "2001-02-03T04:05:06.000Z"}
    pyogrio.set_gdal_config_options(theirs)
    yield theirs
    pyogrio.set_gdal_config_options(dict.fromkeys(theirs))


def test_gdal_options_are_as_before(tmp_path: Path, options: dict[str, str]) -> None:
    write_release(release(), tmp_path / "r.gpkg")
    assert {name: pyogrio.get_gdal_config_option(name) for name in options} == options


def test_an_overwritten_release_leaves_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "r.gpkg"
    write_release(release(title="the former title"), path)
    with pytest.raises(UsageError, match="--overwrite"):
        write_release(release(), path)
    write_release(release(zones=1, title="new"), path, overwrite=True)
    assert b"the former title" not in path.read_bytes()
    assert b"publish_merged" not in rows(path, "SELECT group_concat(remedy) FROM cells")[0][0].encode()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.gpkg", "r.json"]


@pytest.mark.parametrize("column", ["FID", "geom", "Geometry", "Persons", "POI_top"])
def test_names_that_cannot_live_together_are_refused(tmp_path: Path, column: str) -> None:
    made = release()
    broken = replace(made, cells=made.cells.assign(**{column: 1}))
    with pytest.raises(WriteError, match="cannot hold the column"):
        write_release(broken, tmp_path / "r.gpkg")
    assert list(tmp_path.iterdir()) == []


def test_values_that_differ_in_case_are_two(tmp_path: Path) -> None:
    made = release()
    counts = made.counts.assign(value=made.counts["value"].replace({"gym": "SHOP"}))
    write_release(replace(made, counts=counts), tmp_path / "r.gpkg")
    assert {"shop", "Shop", "SHOP"} <= set(read_release(tmp_path / "r.gpkg").counts["value"])


@pytest.mark.parametrize("text", ["a\0b", "half \ud800 a pair"])
def test_characters_that_files_cannot_hold_are_an_error(tmp_path: Path, text: str) -> None:
    made = release()
    in_table = replace(
        made, counts=made.counts.assign(value=pd.Series([text] * len(made.counts), dtype=object))
    )
    in_metadata = replace(made, metadata=made.metadata | {"note": text})
    for broken in (in_table, in_metadata):
        with pytest.raises(WriteError, match="NUL or half a pair"):
            write_release(broken, tmp_path / "r.gpkg")
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=20)
@given(text=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_any_text_survives(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("text")
    made = release(zones=1)
    made = replace(
        made,
        counts=made.counts.assign(value=text),
        cells=made.cells.assign(poi_top=text),
        metadata=made.metadata | {"title": text, "abstract": text, "note": text, "keywords": [text]},
    )
    write_release(made, folder / "r.gpkg")
    found = read_release(folder / "r.gpkg")
    assert set(found.counts["value"]) == {text}
    assert set(found.cells["poi_top"]) == {text}
    assert found.metadata == made.metadata


def test_an_attribute_may_have_any_name(tmp_path: Path) -> None:
    made = release()
    name = 'Wöchentl. "Ziel" (1; 2)'
    cells = made.cells.rename(columns=lambda c: c.replace("poi_", f"{name}_"))
    counts = made.counts.assign(attribute=made.counts["attribute"].replace({"poi": name}))
    write_release(replace(made, cells=cells, counts=counts), tmp_path / "r.gpkg")
    same(read_release(tmp_path / "r.gpkg").cells, cells)
    assert "shares_wochentl_ziel_1_2" in set(pyogrio.list_layers(tmp_path / "r.gpkg")[:, 0])


def test_an_attribute_of_very_many_labels_has_no_wide_table(tmp_path: Path) -> None:
    made = release()
    counts = pd.DataFrame({"cell_id": "a", "attribute": "poi", "value": [f"place {i}" for i in range(600)],
                           "level": 0, "persons": 5, "share": 1 / 600})  # fmt: skip
    write_release(replace(made, counts=counts), tmp_path / "r.gpkg")
    assert "shares_poi" not in set(pyogrio.list_layers(tmp_path / "r.gpkg")[:, 0])
    assert len(read_release(tmp_path / "r.gpkg").counts) == 600


@pytest.mark.parametrize("column", ["members", "poi_top"])
def test_a_missing_column_or_wrong_type_is_an_error(tmp_path: Path, column: str) -> None:
    made = release()
    with pytest.raises(WriteError, match=column):
        write_release(replace(made, cells=made.cells.drop(columns=column)), tmp_path / "r.gpkg")
    with pytest.raises(WriteError, match=column):
        write_release(replace(made, cells=made.cells.assign(**{column: [[1]] * 4})), tmp_path / "r.gpkg")


def test_metadata_that_json_cannot_hold(tmp_path: Path) -> None:
    made = release()
    with pytest.raises(WriteError, match=r"metadata\.x: expected"):
        write_release(replace(made, metadata={"x": {1, 2}}), tmp_path / "r.gpkg")
    odd = replace(made, metadata=made.metadata | {"edges": [float("-inf"), 0.0, float("inf"), float("nan")]})
    write_release(odd, tmp_path / "r.gpkg")
    assert read_release(tmp_path / "r.gpkg").metadata["edges"] == ["-inf", 0.0, "inf", None]


def test_a_work_file_says_that_it_is_internal(tmp_path: Path) -> None:
    path = tmp_path / "w.gpkg"
    write_all(work(), path)
    found = rows(path, "SELECT table_name, identifier, description FROM gpkg_contents ORDER BY rowid")[:-1]
    assert [name for name, _, _ in found] == ["cells", "scores", "final_scores", "rounds", "intake"]
    assert all(title.startswith("INTERNAL Study") for _, title, _ in found)
    assert all("Not for publication" in text for _, _, text in found)
    same(gpd.read_file(path, layer="cells"), work().layer)
    same(pd.DataFrame(pyogrio.read_dataframe(path, layer="scores")), work().scores)


@pytest.mark.parametrize("located", [True, False])
def test_a_work_file_after_score_alone(tmp_path: Path, located: bool) -> None:
    path = tmp_path / "w.gpkg"
    tables = work(enforced=False, located=located)
    write_work(tables.layer, tables.scores, None, None, tables.intake, path, title="Study", metadata={})
    assert rows(path, "SELECT count(*) FROM final_scores") == [(0,)]
    assert rows(path, "SELECT DISTINCT final_remedy, zone_id FROM cells") == [(None, None)]
    assert rows(path, "SELECT name, type FROM pragma_table_info('final_scores')") == rows(
        path, "SELECT name, type FROM pragma_table_info('scores')"
    )


def test_scores_with_outlines_are_a_plain_table(tmp_path: Path) -> None:
    tables = work()
    scores = gpd.GeoDataFrame(tables.scores, geometry=tables.layer.geometry)
    write_all(replace(tables, scores=scores), tmp_path / "w.gpkg")
    assert dict(pyogrio.list_layers(tmp_path / "w.gpkg"))["scores"] is None


def test_a_work_file_is_no_release(tmp_path: Path) -> None:
    write_all(work(), tmp_path / "w.gpkg")
    with pytest.raises(SourceError, match="internal work file"):
        read_release(tmp_path / "w.gpkg")


def test_other_files_are_no_release(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such file"):
        read_release(tmp_path / "none.gpkg")
    (tmp_path / "text.gpkg").write_text("text" * 1000)
    release().cells.to_file(tmp_path / "other.gpkg", driver="GPKG")
    for name in ("text.gpkg", "other.gpkg"):
        with pytest.raises(SourceError, match="another kind of file"):
            read_release(tmp_path / name)


def test_descriptions_of_every_column(tmp_path: Path) -> None:
    write_release(release(), tmp_path / "r.gpkg")
    write_all(work(), tmp_path / "w.gpkg")
    for path in (tmp_path / "r.gpkg", tmp_path / "w.gpkg"):
        tables = "SELECT table_name FROM gpkg_contents WHERE table_name <> 'layer_styles'"
        for (table,) in rows(path, tables):
            columns = {name for (name,) in rows(path, f"SELECT name FROM pragma_table_info('{table}')")}
            query = (
                f"SELECT column_name FROM gpkg_data_columns WHERE table_name = '{table}' "
                "AND description > '' AND description <> title"
            )
            assert {name for (name,) in rows(path, query)} == columns


def test_schemas_have_no_column_twice() -> None:
    for tables in (release_tables(["x_level"], ["level1"]), work_tables(["x_fails"])):
        for table in tables.values():
            names = [c.name for c in table.columns]
            assert len(names) == len(set(names))


@pytest.mark.skipif(os.name != "posix", reason="file size limits are of POSIX")
def test_a_full_disk_is_a_clear_error_and_loses_nothing(tmp_path: Path) -> None:
    code = (
        "import resource, sys; sys.path[:0] = sys.argv[2:]\n"
        "from handmade import release; from geodiv.geopackage import write_release\n"
        "from geodiv.errors import WriteError\n"
        "path, made = sys.argv[1], release(title='new')\n"
        "for kb in (1, 8, 40, 90, 120):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (kb * 1024, resource.RLIM_INFINITY))\n"
        "    try: write_release(made, path, overwrite=True)\n"
        "    except WriteError as error: assert 'annot be written' in str(error), error\n"
        "    else: print('written', kb)\n"
    )
    path = tmp_path / "r.gpkg"
    write_release(release(), path)
    before = path.read_bytes()
    where = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
    run = subprocess.run([sys.executable, "-c", code, str(path), *where], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, ""), run.stderr
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.gpkg", "r.json"]


@pytest.mark.parametrize(
    ("free", "said"),
    [
        (0, "the disk is full"),
        (2**16 - 1, "the disk is full"),
        (2**16, "cannot rollback - no transaction is active"),
    ],
)
def test_no_room_is_said_so(free: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **options: Any) -> None:
        raise pyogrio.errors.DataLayerError("cannot rollback - no transaction is active")

    monkeypatch.setattr(pyogrio, "write_dataframe", full)
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=free))
    with pytest.raises(WriteError, match=rf"cannot be written: {said}\..*Nothing was changed"):
        write_release(release(), tmp_path / "r.gpkg")
    assert list(tmp_path.iterdir()) == []


_KILLED = """
import sys; sys.path[:0] = sys.argv[2:]
from handmade import release
from geodiv.geopackage import write_release
made = [release(title="one"), release(title="two", zones=2)]
print("ready", flush=True)
for number in range(10_000):
    write_release(made[number % 2], sys.argv[1], overwrite=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL exists on POSIX only")
def test_killed_at_any_moment_the_file_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "r.gpkg"
    write_release(release(title="one"), path)
    where = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
    for number in range(40 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else 2):
        with subprocess.Popen(
            [sys.executable, "-c", _KILLED, str(path), *where], stdout=subprocess.PIPE
        ) as run:
            assert run.stdout is not None
            run.stdout.readline()
            try:
                run.wait(0.07 + 0.31 * number % 1.3)
            except subprocess.TimeoutExpired:
                run.send_signal(signal.SIGKILL)
        found = read_release(path)
        assert (found.metadata["title"], len(found.cells)) in {("one", 4), ("two", 2)}
        assert "not_carried" not in found.metadata or "another release" in found.metadata["not_carried"][0]
        assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    write_release(release(), path, overwrite=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.gpkg", "r.json"]


def test_anything_with_the_fields_of_a_release_can_be_written(tmp_path: Path) -> None:
    assert isinstance(release(), Release)
    bare = replace(release(), metadata={})
    write_release(bare, tmp_path / "r.gpkg")
    assert read_release(tmp_path / "r.gpkg").metadata == {}


def test_titles_and_descriptions_of_a_release(tmp_path: Path) -> None:
    path = tmp_path / "r.gpkg"
    write_release(release(title="Who goes where"), path)
    query = "SELECT table_name, identifier, description FROM gpkg_contents"
    found = {name: (title, text) for name, title, text in rows(path, query)}
    assert found["cells"] == ("Who goes where", "Who goes where & why")
    assert found["counts"][0] == "Who goes where: counts"
    assert found["shares_poi"][0].startswith("Who goes where: ")
    assert all(found[name][1] for name in ("counts", "taxonomy", "reference", "shares_poi"))
    for metadata in ({}, {"title": "", "abstract": ""}):
        write_release(replace(release(), metadata=metadata), path, overwrite=True)
        found = {name: (title, text) for name, title, text in rows(path, query)}
        assert found["cells"] == ("geodiv release", "")
        assert found["counts"][0] == "geodiv release: counts"


def test_titles_of_a_work_file_hold_what_is_known(tmp_path: Path) -> None:
    tables, path = work(), tmp_path / "w.gpkg"
    for metadata, text in (({}, ""), ({"abstract": ""}, ""), ({"abstract": "Two weeks."}, " Two weeks.")):
        write_work(
            tables.layer, tables.scores, None, None, tables.intake, path,
            title="Study", metadata=metadata, overwrite=True,
        )  # fmt: skip
        query = "SELECT identifier, description FROM gpkg_contents WHERE table_name = 'cells'"
        internal = "Internal: failing cells and their figures. Not for publication."
        assert rows(path, query) == [("INTERNAL Study", internal + text)]


def test_a_work_file_that_is_there_stays_unless_told_otherwise(tmp_path: Path) -> None:
    write_all(work(), tmp_path / "w.gpkg")
    before = (tmp_path / "w.gpkg").read_bytes()
    with pytest.raises(UsageError, match="--overwrite"):
        write_all(work(enforced=False), tmp_path / "w.gpkg")
    assert (tmp_path / "w.gpkg").read_bytes() == before
    write_all(work(enforced=False), tmp_path / "w.gpkg", overwrite=True)
    assert rows(tmp_path / "w.gpkg", "SELECT DISTINCT zone_id FROM cells") == [(None,)]


def test_rows_that_did_not_reach_the_disk_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = pyogrio.write_dataframe

    def lossy(frame: Any, *args: Any, **options: Any) -> None:
        whole(frame.iloc[:-1] if options["layer"] == "cells" else frame, *args, **options)

    monkeypatch.setattr(pyogrio, "write_dataframe", lossy)
    with pytest.raises(WriteError, match="table 'cells': expected 4 rows on the disk, got 3"):
        write_release(release(), tmp_path / "r.gpkg")
    assert list(tmp_path.iterdir()) == []


def test_gdal_options_are_as_before_after_a_failure_too(
    tmp_path: Path, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: Any, **options: Any) -> None:
        assert pyogrio.get_gdal_config_option("GDAL_PAM_ENABLED") == "NO"
        raise pyogrio.errors.DataSourceError("no such driver")

    monkeypatch.setattr(pyogrio, "write_dataframe", fails)
    with pytest.raises(WriteError, match=r"cannot be written: no such driver\. Check"):
        write_release(release(), tmp_path / "r.gpkg")
    assert {name: pyogrio.get_gdal_config_option(name) for name in options} == options


def test_every_outline_is_a_multipolygon(tmp_path: Path) -> None:
    """As the layer says of itself: readers that trust it fail on a lone polygon."""
    write_release(release(), tmp_path / "r.gpkg")
    write_all(work(), tmp_path / "w.gpkg")
    for path in (tmp_path / "r.gpkg", tmp_path / "w.gpkg"):
        assert set(pyogrio.read_dataframe(path, layer="cells").geom_type) == {"MultiPolygon"}


def test_a_title_that_files_cannot_hold_is_an_error(tmp_path: Path) -> None:
    tables = work()
    with pytest.raises(WriteError, match="title or abstract of 'cells'"):
        write_work(
            tables.layer, tables.scores, None, None, tables.intake, tmp_path / "w.gpkg",
            title="a\0b", metadata={},
        )  # fmt: skip
    assert list(tmp_path.iterdir()) == []


def test_files_are_of_a_version_that_older_readers_know(tmp_path: Path) -> None:
    write_release(release(), tmp_path / "r.gpkg")
    write_all(work(), tmp_path / "w.gpkg")
    for path in (tmp_path / "r.gpkg", tmp_path / "w.gpkg"):
        assert rows(path, "PRAGMA user_version") == [(10300,)]


@pytest.mark.parametrize("table", ["cells", "counts", "taxonomy", "reference"])
def test_a_release_without_one_of_its_tables_is_an_error(table: str, tmp_path: Path) -> None:
    path = tmp_path / "r.gpkg"
    write_release(release(located=False), path)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"DROP TABLE {table}")
        database.execute(f"DELETE FROM gpkg_contents WHERE table_name = '{table}'")
    with pytest.raises(SourceError, match=rf"expected a table '{table}' in '.*r\.gpkg', got"):
        read_release(path)


def test_a_work_file_is_a_geopackage_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a work file"):
        write_all(work(), tmp_path / "work.geojson")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("change", ["cells SET cell_id", "gpkg_geometry_columns SET column_name"])
def test_text_that_is_no_utf8_is_an_error_of_one_line(tmp_path: Path, change: str) -> None:
    path = tmp_path / "r.gpkg"
    write_release(release(), path)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for (name,) in rows(path, "SELECT name FROM sqlite_master WHERE type = 'trigger'"):
            database.execute(f'DROP TRIGGER "{name}"')
        database.execute(f"UPDATE {change} = CAST(x'fc' AS TEXT)")
    with pytest.raises(SourceError, match="UTF-8"):
        read_release(path)
