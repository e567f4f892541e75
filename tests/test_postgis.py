"""Visits out of a real PostGIS and cells into it, as the page for analysts says; a server of the test's own."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import geopandas as gpd
import pandas as pd
import pytest

import geodiv as gd
from geodiv import demo

PAGE = Path(__file__).parent.parent / "docs" / "how-to" / "analyst.md"
POLICY = demo.fixtures() / "policy.toml"
VISITS = demo.fixtures() / "visits.parquet"


def missing(reason: str) -> None:
    """Skip, or fail where the installation says that PostGIS is there."""
    if os.environ.get("GEODIV_NEEDS_POSTGIS"):
        pytest.fail(reason)
    pytest.skip(reason)


def binaries() -> Path:
    """The folder of initdb and pg_ctl of the newest PostgreSQL that has PostGIS."""
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        control = Path("/usr/share/postgresql") / folder.parent.name / "extension" / "postgis.control"
        if (folder / "initdb").exists() and control.exists():
            return folder
    missing("no PostgreSQL with PostGIS below /usr/lib/postgresql; .ci/postgis.sh installs it on Debian")
    raise AssertionError


def as_other(*command: Any) -> list[str]:
    """The command as a user that initdb accepts: it refuses to run as root."""
    words = [str(word) for word in command]
    return ["runuser", "-u", "postgres", "--", *words] if os.geteuid() == 0 else words


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def call(*command: Any) -> None:
    done = subprocess.run(as_other(*command), capture_output=True, text=True, cwd="/", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def start(bin_: Path, home: Path) -> str:
    """The address of a server with its data in `home`, which listens on loopback alone."""
    data = home / "data"
    call(
        bin_ / "initdb", "-D", data, "-U", "analyst", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"
    )
    for _ in range(3):
        port = free_port()
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={home} -c fsync=off"
        started = subprocess.run(
            as_other(
                bin_ / "pg_ctl", "-D", data, "-w", "-t", 120, "-l", home / "log", "-o", options, "start"
            ),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            timeout=300,
        )
        if started.returncode == 0:
            return f"postgresql+psycopg://analyst@127.0.0.1:{port}/postgres"
        time.sleep(1)
    raise AssertionError((home / "log").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    """An SQLAlchemy engine on an empty database with PostGIS."""
    for module in ("sqlalchemy", "geoalchemy2", "psycopg"):
        try:
            __import__(module)
        except ImportError:
            missing(f"{module} is not installed")
    import sqlalchemy

    bin_ = binaries()
    if os.geteuid() == 0 and not any(user.pw_name == "postgres" for user in pwd.getpwall()):
        missing("initdb refuses to run as root, and there is no user postgres")
    home = Path(tempfile.mkdtemp(prefix="geodiv-postgis-", dir="/tmp"))
    try:
        if os.geteuid() == 0:
            shutil.chown(home, "postgres")
        engine = sqlalchemy.create_engine(start(bin_, home))
        with engine.begin() as connection:
            connection.execute(sqlalchemy.text("CREATE EXTENSION postgis"))
        yield engine
        engine.dispose()
    finally:
        if (home / "data" / "postmaster.pid").exists():
            call(bin_ / "pg_ctl", "-D", home / "data", "-m", "immediate", "stop")
        shutil.rmtree(home)


def visits() -> gpd.GeoDataFrame:
    """The visits of the fixture as a table of points; those that cannot be counted have no person or no point."""
    table = pd.read_parquet(VISITS)
    places = gpd.points_from_xy(table["lon"], table["lat"])
    frame = gpd.GeoDataFrame(table.drop(columns=["lon", "lat"]), geometry=places, crs="EPSG:4326")
    return frame.rename_geometry("geom")


@pytest.fixture(scope="module")
def filled(engine: Any) -> Any:
    visits().to_postgis("visits", engine)
    return engine


def snippet() -> str:
    (code,) = (
        block
        for block in re.findall(
            r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S
        )
        if "to_postgis" in block
    )
    return code


def test_the_page_for_analysts_runs(filled: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(POLICY.parent, tmp_path / "fixtures")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"gd": gd, "engine": filled}
    exec(compile(snippet(), str(PAGE), "exec"), names)
    back = gpd.read_postgis("SELECT * FROM release_cells", filled, geom_col="geometry")
    cells = names["outcome"].release.cells
    assert len(cells) > 0
    assert sorted(back.columns) == sorted(cells.columns)
    assert back.crs.to_epsg() == 4326
    back, cells = (frame.sort_values("cell_id", ignore_index=True) for frame in (back, cells))
    for column in cells.columns:
        if column == "geometry":
            assert cells.geometry.geom_equals(back.geometry).all()
        else:
            missing_ = cells[column].isna()
            assert back[column].isna().equals(missing_), column
            assert back[column][~missing_].tolist() == cells[column][~missing_].tolist(), column


def counted(source: Any, crs: str | None = None) -> gd.Tabulation:
    activity = gd.Nominal("poi_category", missing=["", "Unknown"])
    return gd.tabulate(
        source, grid=gd.H3Grid(8), person="person_id", attributes=[activity], on_bad_rows="skip", crs=crs
    )


def test_visits_of_a_database_are_those_of_the_file(filled: Any) -> None:
    read = gpd.read_postgis("SELECT * FROM visits", filled, geom_col="geom")
    assert read.crs.to_epsg() == 4326
    stored, file = counted(read), counted(VISITS, "EPSG:4326")
    assert stored.cells.tolist() == file.cells.tolist()
    assert stored.persons.tolist() == file.persons.tolist()
    assert (stored.intake.rows, stored.intake.counted) == (file.intake.rows, file.intake.counted)


def test_a_table_in_another_crs_gives_the_same_cells(filled: Any) -> None:
    where = "WHERE ST_X(geom) BETWEEN -10 AND 30 AND ST_Y(geom) BETWEEN 40 AND 70"
    tables = []
    for shape, code in (("geom", 4326), ("ST_Transform(geom, 3035) AS geom", 3035)):
        query = f"SELECT person_id, poi_category, {shape} FROM visits {where}"
        read = gpd.read_postgis(query, filled, geom_col="geom")
        assert read.crs.to_epsg() == code
        tables.append(counted(read))
    assert tables[0].cells.tolist() == tables[1].cells.tolist()
    assert tables[0].persons.tolist() == tables[1].persons.tolist()
