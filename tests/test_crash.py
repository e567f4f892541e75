"""Runs that die or must not write: whoever comes next finds the former files or the new ones, whole, and no rubbish."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from test_invariants import LONG

import geodiv as gd
from geodiv import cli

ROOT = Path(gd.__file__).parent.parent
KILLS = 40 if LONG else 3
posix = pytest.mark.skipif(os.name != "posix", reason="SIGKILL and file modes are of POSIX")

FORMATS = {".": ".gpkg", "parquet": ".parquet", "geojson": ".geojson", "fgb": ".fgb", "csv": ".csv"}
_WRITE = f"""
import sys
FORMATS = {FORMATS}
from pathlib import Path
import geodiv as gd
folder = Path(sys.argv[1])
runs = [gd.read_run(folder / name) for name in ("one.toml", "two.toml")]
outcomes = [run.enforce(folder / "visits.csv") for run in runs]
out, number = folder / "out", 0
print("ready", flush=True)
while True:
    outcome, number = outcomes[number % 2], number + 1
    for home, suffix in FORMATS.items():
        (out / home).mkdir(exist_ok=True)
        outcome.release.to_file(out / home / ("release" + suffix), overwrite=True)
    outcome.to_work(out / "work.gpkg", overwrite=True)
"""
POLICY = """
[visits]
person = "person"
[grid]
kind = "h3"
resolution = 8
[[attribute]]
column = "poi"
[gates]
k_min = 5
[release]
title = "TITLE"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two policies over the same visits, and an empty folder for what they write."""
    spots = [(24.9 + 0.02 * i, 60.17) for i in range(6)]
    rows = [(f"p{i}", *spot, poi) for spot in spots for i in range(9) for poi in ("shop", "food", "gym")]
    pd.DataFrame(rows, columns=["person", "lon", "lat", "poi"]).to_csv(tmp_path / "visits.csv", index=False)
    for name in ("one", "two"):
        (tmp_path / f"{name}.toml").write_text(POLICY.replace("TITLE", name), encoding="utf-8")
    (tmp_path / "out").mkdir()
    return tmp_path


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def rubbish(folder: Path) -> list[str]:
    """Hidden files, temporary ones, journals."""
    ends = (".tmp", ".lock", ".part", "-journal", "-wal", "-shm", ".former")
    return [str(p) for p in folder.rglob("*") if p.name.startswith(".") or p.name.endswith(ends)]


def finished(folder: Path) -> list[Path]:
    """Releases and work files, those still in the making left out."""
    found = (p for p in folder.rglob("*.*") if p.is_file() and p.suffix != ".json")
    return [p for p in found if not any(part.startswith(".") for part in p.relative_to(folder).parts)]


def whole(path: Path) -> str:
    """The title of a release or work file, which must be whole: every page, every row, and JSON that parses."""
    if path.name == "work.gpkg":
        with closing(sqlite3.connect(path)) as database:
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            query = "SELECT metadata FROM gpkg_metadata WHERE md_standard_uri = 'urn:geodiv:work'"
            return str(json.loads(database.execute(query).fetchone()[0])["title"])
    release = gd.read_release(path)
    assert len(release.cells if path.suffix != ".csv" else release.counts) in (6, 18)
    inside = path.suffix in (".gpkg", ".parquet")  # the others carry no metadata of their own
    beside = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["title"]
    assert beside in ("one", "two")
    return str(release.metadata["title"]) if inside else str(beside)


@posix
def test_killed_at_random_moments_every_file_is_whole_and_the_next_run_tidies(folder: Path) -> None:
    rng, out = random.Random(20261130), folder / "out"
    command = [sys.executable, "-c", _WRITE, str(folder)]
    for _ in range(KILLS):
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment()) as run:
            assert run.stdout is not None
            assert run.stdout.readline() == b"ready\n"
            time.sleep(rng.uniform(0.0, 1.5))
            run.send_signal(signal.SIGKILL)
        for path in finished(out):
            assert whole(path) in ("one", "two")
    outcome = gd.read_run(folder / "one.toml").enforce(folder / "visits.csv")
    outcome.to_work(out / "work.gpkg", overwrite=True)
    for home, suffix in FORMATS.items():
        if (out / home).is_dir():
            outcome.release.to_file(out / home / f"release{suffix}", overwrite=True)
    assert {whole(path) for path in finished(out)} == {"one"}
    assert rubbish(out) == []


@posix
def test_a_command_that_is_killed_leaves_the_former_release(folder: Path) -> None:
    out = folder / "out"
    arguments = [
        "enforce",
        str(folder / "visits.csv"),
        "-o",
        str(out / "release.gpkg"),
        "--work",
        str(out / "work.gpkg"),
    ]
    assert cli.run([*arguments, "-p", str(folder / "one.toml")]) == 0
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    command = [sys.executable, "-m", "geodiv", *arguments, "-p", str(folder / "two.toml"), "--overwrite"]
    with subprocess.Popen(command, env=environment()) as run:
        while run.poll() is None and not rubbish(out):
            time.sleep(0.001)
        run.send_signal(signal.SIGKILL)  # the moment it starts to write
    titles = {gd.read_release(out / "release.gpkg").metadata["title"], whole(out / "work.gpkg")}
    assert titles <= {"one", "two"}
    assert (
        titles != {"one"}
        or {p.name: p.read_bytes() for p in out.iterdir() if str(p) not in rubbish(out)} == before
    )
    assert cli.run([*arguments, "-p", str(folder / "two.toml"), "--overwrite"]) == 0
    assert {gd.read_release(out / "release.gpkg").metadata["title"], whole(out / "work.gpkg")} == {"two"}
    assert sorted(p.name for p in out.iterdir()) == ["release.gpkg", "release.json", "work.gpkg"]


@posix
def test_two_runs_on_one_target_end_with_one_whole_release(folder: Path) -> None:
    out = folder / "out"
    runs = [
        subprocess.Popen(
            [sys.executable, "-m", "geodiv", "enforce", str(folder / "visits.csv"), "-p", str(folder / f"{name}.toml"),
             "-o", str(out / "release.gpkg"), "--overwrite"],
            env=environment(), stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for name in ("one", "two")
    ]  # fmt: skip
    told = [(run.communicate()[1], run.returncode) for run in runs]
    assert all(code == 0 or (code == 3 and "another run is writing" in text) for text, code in told), told
    assert 0 in [code for _, code in told]
    release = gd.read_release(out / "release.gpkg")
    assert "not_carried" not in release.metadata
    assert sorted(p.name for p in out.iterdir()) == ["release.gpkg", "release.json"]


@posix
def test_rejects_of_a_killed_run_are_tidied_by_the_next_and_those_of_a_living_one_are_not(
    folder: Path,
) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as run:
        dead, living = (folder / "out" / f".r.csv.{pid}.part" for pid in (run.pid, os.getppid()))
        run.kill()
    for path in (dead, living, folder / "out" / ".other.csv.1.part"):
        path.write_text("half", encoding="utf-8")
    arguments = ["score", str(folder / "visits.csv"), "-p", str(folder / "one.toml")]
    assert cli.run([*arguments, "--rejects", str(folder / "out" / "r.csv")]) == 0
    assert sorted(p.name for p in (folder / "out").iterdir()) == sorted(
        [living.name, ".other.csv.1.part", "r.csv"]
    )


def test_init_keeps_the_former_policy_when_it_cannot_write(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, *_: Any, **__: Any) -> int:
        self.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    policy = folder / "one.toml"
    before = policy.read_bytes()
    monkeypatch.setattr(Path, "write_text", full)
    assert cli.run(["init", str(folder / "visits.csv"), "-o", str(policy), "--overwrite"]) == 3
    monkeypatch.undo()
    assert policy.read_bytes() == before
    assert rubbish(folder) == []


def locked(out: Path) -> Callable[[], None]:
    """Another program holds the release."""
    database = sqlite3.connect(out / "release.gpkg", isolation_level=None)
    database.execute("BEGIN EXCLUSIVE")
    return database.close


def read_only(out: Path) -> Callable[[], None]:
    """The folder may not be written to."""
    out.chmod(0o500)
    return lambda: out.chmod(0o700)


def a_folder(out: Path) -> Callable[[], None]:
    """A folder stands where the JSON is to go."""
    text = (out / "release.json").read_bytes()
    (out / "release.json").unlink()
    (out / "release.json").mkdir()

    def back() -> None:
        (out / "release.json").rmdir()
        (out / "release.json").write_bytes(text)

    return back


@pytest.mark.parametrize("hindrance", [locked, read_only, a_folder])
def test_what_cannot_be_written_is_a_clear_error_and_loses_nothing(
    folder: Path, capsys: Any, hindrance: Callable[[Path], Callable[[], None]]
) -> None:
    out = folder / "out"
    arguments = ["enforce", str(folder / "visits.csv"), "-o", str(out / "release.gpkg")]
    assert cli.run([*arguments, "-p", str(folder / "one.toml")]) == 0
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    undo = hindrance(out)
    if hindrance is read_only and os.access(out, os.W_OK):
        undo()
        pytest.skip("this user may write to read-only folders")
    capsys.readouterr()
    code = cli.run([*arguments, "-p", str(folder / "two.toml"), "--overwrite"])
    undo()
    said = capsys.readouterr().err
    assert (code, "Traceback" in said) == (3, False)
    assert "release" in said
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before
    assert cli.run([*arguments, "-p", str(folder / "two.toml"), "--overwrite"]) == 0
    assert sorted(p.name for p in out.iterdir()) == ["release.gpkg", "release.json"]
