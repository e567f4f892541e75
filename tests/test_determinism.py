"""The same visits give the same tables, byte for byte: whatever their order and chunks, the locale, the threads."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import World
from test_invariants import LONG, UNSHRUNK, releasing

import geodiv as gd

FIXTURES = Path(__file__).parent.parent / "fixtures"
SUFFIXES = (".gpkg", ".parquet", ".geoparquet", ".geojson", ".fgb", ".csv")
WORLDS = 300 if LONG else 6


def tables(path: Path) -> bytes:
    """Every row of a release's own tables, outlines too, and of those that QGIS reads; not the metadata."""
    with closing(sqlite3.connect(path)) as database:
        names = database.execute("SELECT table_name FROM gpkg_contents ORDER BY table_name").fetchall()
        rows = {name: database.execute(f'SELECT * FROM "{name}"').fetchall() for (name,) in names}
        extent = database.execute("SELECT * FROM gpkg_contents ORDER BY table_name").fetchall()
    return repr((rows, extent)).encode()


def shuffled(table: pa.Table, folder: Path) -> Any:
    return table.take(np.random.default_rng(5).permutation(table.num_rows))


def backwards(table: pa.Table, folder: Path) -> Any:
    return table.to_pandas()[::-1]


def chunked(table: pa.Table, folder: Path) -> Any:
    """Chunks of very different lengths, an empty one among them, text columns as dictionaries of their own."""
    cuts = [0, 1, 1, 7, 900, 901, 5000, table.num_rows]
    parts = [table.slice(a, b - a) for a, b in pairwise(cuts)]
    coded = table.schema.get_field_index("poi_category")
    codes = pa.chunked_array([part["poi_category"].combine_chunks().dictionary_encode() for part in parts])
    return pa.concat_tables(parts).set_column(coded, "poi_category", codes)


def several_files(table: pa.Table, folder: Path) -> Any:
    for number, start in enumerate(range(0, table.num_rows, 3001)):
        pq.write_table(table.slice(start, 3001), folder / f"part-{9 - number}.parquet", row_group_size=500)
    return str(folder / "part-*.parquet")


def text_file(table: pa.Table, folder: Path) -> Any:
    table.to_pandas().to_csv(folder / "visits.csv", index=False)
    return folder / "visits.csv"


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> tuple[gd.Run, pa.Table, bytes]:
    """The run of the fixture city, its visits, and the tables of its release."""
    run = gd.read_run(FIXTURES / "policy.toml")
    return (
        run,
        pq.read_table(FIXTURES / "visits.parquet"),
        released(run, FIXTURES / "visits.parquet", tmp_path_factory.mktemp("city")),
    )


def released(run: gd.Run, visits: Any, folder: Path) -> bytes:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        run.enforce(visits).release.to_file(folder / "release.gpkg", overwrite=True)
    return tables(folder / "release.gpkg")


@pytest.mark.parametrize("change", [shuffled, backwards, chunked, several_files, text_file])
def test_order_chunks_and_files_change_no_byte(
    city: tuple[gd.Run, pa.Table, bytes], tmp_path: Path, change: Callable[[pa.Table, Path], Any]
) -> None:
    run, visits, expected = city
    assert released(run, change(visits, tmp_path), tmp_path) == expected


@settings(max_examples=WORLDS, phases=UNSHRUNK)
@given(world=releasing(), seed=st.integers(0, 99))
def test_order_and_chunks_change_no_world(world: World, seed: int) -> None:
    visits, rng = world.visits_frame(), np.random.default_rng(seed)
    other = pa.Table.from_pandas(visits, preserve_index=False).take(rng.permutation(len(visits)))
    cuts = [0, *np.sort(rng.integers(0, len(visits) + 1, size=3)).tolist(), len(visits)]
    chunks = pa.concat_tables([other.slice(a, b - a) for a, b in pairwise(cuts)])
    releases = [
        gd.enforce(
            gd.tabulate(v, grid=world.grid(), person="person", attributes=world.attributes()), world.policy()
        ).release
        for v in (visits, chunks)
    ]
    for name in ("cells", "counts", "reference", "taxonomy"):
        one, two = (pd.DataFrame(getattr(release, name)) for release in releases)
        if "geometry" in one:
            assert (
                one["geometry"].map(lambda g: g.wkb).tolist() == two["geometry"].map(lambda g: g.wkb).tolist()
            )
        pd.testing.assert_frame_equal(
            *(f.drop(columns="geometry", errors="ignore") for f in (one, two)), check_exact=True
        )


_RUN = """
import locale, sys, time
from pathlib import Path
import geodiv as gd
try: locale.setlocale(locale.LC_ALL, "")
except locale.Error: pass
city, folder = Path(sys.argv[1]), Path(sys.argv[2])
outcome = gd.read_run(city / "policy.toml").enforce(city / "visits.parquet")
for suffix in sys.argv[3:]:
    (folder / suffix[1:]).mkdir(parents=True)
    outcome.release.to_file(folder / suffix[1:] / f"release{suffix}")
outcome.to_work(folder / "work.gpkg")
"""


def files(folder: Path, **environment: str) -> dict[str, bytes]:
    """Every file that a run of its own writes: each format with the JSON beside it, and the work file."""
    given = {
        **os.environ,
        "PYTHONPATH": str(FIXTURES.parent),
        "SOURCE_DATE_EPOCH": "1700000000",
        **environment,
    }
    command = [sys.executable, "-c", _RUN, str(FIXTURES), str(folder), *SUFFIXES]
    subprocess.run(command, check=True, env=given, cwd=FIXTURES.parent)
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_hash_seed_locale_zone_and_threads_change_no_byte_of_any_file(tmp_path: Path) -> None:
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARROW_IO_THREADS", "GDAL_NUM_THREADS")
    first = files(tmp_path / "a", PYTHONHASHSEED="0", LC_ALL="C", TZ="UTC", **dict.fromkeys(threads, "1"))
    other = files(
        tmp_path / "elsewhere",
        PYTHONHASHSEED="4242",
        LC_ALL="de_DE.UTF-8",
        LANGUAGE="de",
        TZ="Pacific/Kiritimati",
        **dict.fromkeys(threads, "4"),
    )
    assert len(first) == 2 * len(SUFFIXES) + 1
    assert sorted(first) == sorted(other)
    assert [name for name in first if first[name] != other[name]] == []
