"""Many runs in one process, in threads, in processes: the same results, and memory stays where it was."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd

import geodiv as gd

ROOT = Path(gd.__file__).parent.parent
RUNS = int(os.environ.get("GEODIV_RUNS", "12"))
"""Runs in one process; 200 were measured once, see docs/hardening.md."""
GROWTH = 100_000
"""Bytes that a run may leave behind: a table of this size holds a hundred times as many."""
LEFT = 50
"""Python objects that a run may leave behind: one frame or release holds hundreds."""


def world(path: Path) -> None:
    """Three hundred thousand bytes of visits, so that whatever a run kept of them would show."""
    values = ("shop", "food", "gym", "clinic", "school")
    rows = [
        (f"p{i}", 24.9 + 0.01 * (spot % 6), 60.17 + 0.01 * (spot // 6), values[(i * spot) % (1 + spot % 5)])
        for spot in range(36)
        for i in range(60)
        for _ in range(3)
    ]
    pd.DataFrame(rows, columns=["who", "lon", "lat", "poi"]).to_csv(path, index=False)


def once(folder: Path) -> None:
    """Everything: reading, counting, judging, repairing, checking, writing, reading back."""
    poi = gd.Nominal("poi")
    table = gd.tabulate(folder / "v.csv", grid=gd.H3Grid(8), person="who", attributes=[poi])
    policy = gd.Policy(k_min=10, l_min=2, t_max=0.5, reference=gd.Ring(max_order=3))
    gd.score(table, policy)
    outcome = gd.enforce(table, policy)
    outcome.release.to_file(folder / "r.gpkg", overwrite=True)
    gd.read_release(folder / "r.gpkg")


def test_memory_is_flat(tmp_path: Path) -> None:
    world(tmp_path / "v.csv")
    for _ in range(3):  # what is imported and remembered once
        once(tmp_path)
    gc.collect()
    tracemalloc.start()
    try:
        once(tmp_path)
        gc.collect()
        before, objects = tracemalloc.get_traced_memory()[0], len(gc.get_objects())
        for _ in range(RUNS):
            once(tmp_path)
        gc.collect()
        after, left = tracemalloc.get_traced_memory()[0], len(gc.get_objects())
    finally:
        tracemalloc.stop()
    assert (after - before) / RUNS < GROWTH
    assert (left - objects) / RUNS < LEFT


def test_threads_do_not_disturb_each_other(tmp_path: Path) -> None:
    world(tmp_path / "v.csv")

    def released(number: int) -> Any:
        k = 10 + 40 * (number % 2)
        table = gd.tabulate(
            tmp_path / "v.csv", grid=gd.H3Grid(8), person="who", attributes=[gd.Nominal("poi")]
        )
        release = gd.enforce(table, gd.Policy(k_min=k, l_min=2)).release
        release.to_file(tmp_path / f"r{number}.gpkg")
        return gd.read_release(tmp_path / f"r{number}.gpkg")

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(released, range(8)))
    alone = [released(number) for number in (8, 9)]
    for number, release in enumerate(found):
        pd.testing.assert_frame_equal(release.cells, alone[number % 2].cells)
        pd.testing.assert_frame_equal(release.counts, alone[number % 2].counts)
    assert not [p.name for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_threads_that_write_one_file_leave_one_whole(tmp_path: Path) -> None:
    world(tmp_path / "v.csv")
    table = gd.tabulate(tmp_path / "v.csv", grid=gd.H3Grid(8), person="who", attributes=[gd.Nominal("poi")])
    titles = [f"title {number}" for number in range(6)]
    releases = [
        gd.enforce(table, gd.Policy(k_min=10), gd.Publication(title=title)).release for title in titles
    ]

    def written(release: gd.Release) -> str:
        try:
            release.to_file(tmp_path / "r.gpkg", overwrite=True)
        except gd.WriteError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(6) as pool:
        told = list(pool.map(written, releases))
    assert "" in told
    assert all(text == "" or "another run is writing" in text for text in told), told
    release = gd.read_release(tmp_path / "r.gpkg")
    assert "not_carried" not in release.metadata
    assert release.metadata["title"] in [title for title, text in zip(titles, told, strict=True) if not text]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.gpkg", "r.json", "v.csv"]


def test_processes_do_not_disturb_each_other(tmp_path: Path) -> None:
    world(tmp_path / "v.csv")
    flags = ["--h3", "8", "--person", "who", "--attribute", "poi", "--k", "10", "--l", "2"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SOURCE_DATE_EPOCH": "0"}
    runs = [
        subprocess.Popen(
            [sys.executable, "-m", "geodiv", "enforce", "v.csv", *flags, "-o", f"r{number}.gpkg"],
            cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for number in range(2)
    ]  # fmt: skip
    told = [run.communicate() for run in runs]
    assert [run.returncode for run in runs] == [0, 0], told
    assert (tmp_path / "r0.gpkg").read_bytes() == (tmp_path / "r1.gpkg").read_bytes()
    assert (tmp_path / "r0.json").read_bytes() == (tmp_path / "r1.json").read_bytes()
