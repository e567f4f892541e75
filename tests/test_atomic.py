"""Files are whole or not there: replacement, locks, full disks, killed processes."""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from geodiv.atomic import replacing
from geodiv.errors import UsageError, WriteError


def _write_new(*paths: Path) -> None:
    for path in paths:
        path.write_text("new")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_files_appear_together_and_nothing_else_stays(tmp_path: Path) -> None:
    with replacing(tmp_path / "a.json", tmp_path / "a.gpkg") as (one, two):
        one.write_text("1")
        two.write_text("2")
        assert not (tmp_path / "a.json").exists()
    assert names(tmp_path) == ["a.gpkg", "a.json"]
    assert (tmp_path / "a.json").read_text() == "1"


def test_existing_file_needs_overwrite(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("former")
    with pytest.raises(UsageError, match="--overwrite"), replacing(target):
        raise AssertionError("not reached")
    with replacing(target, overwrite=True) as (temporary,):
        temporary.write_text("new")
    assert target.read_text() == "new"
    assert names(tmp_path) == ["a.txt"]


def _half_written(path: Path, problem: BaseException) -> BaseException:
    path.write_text("half")
    return problem


@pytest.mark.parametrize(
    "problem", [OSError(errno.ENOSPC, "No space left on device"), RuntimeError("x"), KeyboardInterrupt()]
)
def test_error_inside_leaves_the_former_file(tmp_path: Path, problem: BaseException) -> None:
    target = tmp_path / "a.txt"
    target.write_text("former")
    expected = WriteError if isinstance(problem, OSError) else type(problem)
    with pytest.raises(expected), replacing(target, overwrite=True) as (temporary,):
        raise _half_written(temporary, problem)
    assert target.read_text() == "former"
    assert names(tmp_path) == ["a.txt"]


def test_full_disk_says_so(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="disk is full"), replacing(tmp_path / "a.txt"):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="folder"), replacing(tmp_path / "no" / "a.txt"):
        pass


def test_target_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.gpkg").mkdir()
    with pytest.raises(WriteError, match="is a folder"), replacing(tmp_path / "a.gpkg", overwrite=True):
        pass


def test_read_only_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(WriteError, match="Permission denied"), replacing(tmp_path / "a.txt"):
        pass


def test_read_only_file_is_respected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a.txt"
    target.write_text("former")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(WriteError, match="read-only"), replacing(target, overwrite=True):
        pass


def test_two_runs_on_one_target(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    with replacing(target) as (temporary,):
        with pytest.raises(WriteError, match="another run"), replacing(target):
            pass
        temporary.write_text("first")
    assert target.read_text() == "first"
    assert names(tmp_path) == ["a.txt"]


def test_second_target_is_locked_too(tmp_path: Path) -> None:
    with replacing(tmp_path / "a.json", tmp_path / "a.gpkg") as temporary:
        with (
            pytest.raises(WriteError, match=r"another run is writing .*a\.json"),
            replacing(tmp_path / "a.json"),
        ):
            pass
        for path in temporary:
            path.write_text("x")


def test_a_failed_second_replacement_restores_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = tmp_path / "a.json", tmp_path / "a.gpkg"
    one.write_text("former 1")
    two.write_text("former 2")
    replace = os.replace

    def refuse(source: Path, target: Path) -> None:
        if Path(target).name == "a.gpkg":
            raise PermissionError(errno.EACCES, "in use")
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(WriteError), replacing(one, two, overwrite=True) as temporary:
        _write_new(*temporary)
    assert (one.read_text(), two.read_text()) == ("former 1", "former 2")
    assert names(tmp_path) == ["a.gpkg", "a.json"]


def test_a_failed_second_replacement_takes_a_first_one_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def refuse(source: Path, target: Path) -> None:
        if Path(target).name == "a.gpkg":
            raise PermissionError(errno.EACCES, "in use")
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(WriteError), replacing(tmp_path / "a.json", tmp_path / "a.gpkg") as temporary:
        _write_new(*temporary)
    assert names(tmp_path) == []


def test_a_database_in_use_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "a.gpkg"
    other = sqlite3.connect(target, isolation_level=None)
    other.execute("CREATE TABLE t (x)")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(WriteError, match="in use by another program"), replacing(target, overwrite=True):
        pass
    other.close()


def test_a_database_open_with_a_write_ahead_log_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "a.gpkg"
    other = sqlite3.connect(target, isolation_level=None)
    other.execute("PRAGMA journal_mode=WAL")
    other.execute("CREATE TABLE t (x)")
    with pytest.raises(WriteError, match="in use by another program"), replacing(target, overwrite=True):
        pass
    assert other.execute("SELECT count(*) FROM t").fetchone() == (0,)
    other.close()


def test_a_write_ahead_log_left_behind_never_reaches_the_new_file(tmp_path: Path) -> None:
    target = tmp_path / "a.gpkg"
    code = (
        "import os, sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('PRAGMA journal_mode=WAL'); c.execute('CREATE TABLE former (x)')\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(target)], check=True)
    assert (tmp_path / "a.gpkg-wal").exists()
    with replacing(target, overwrite=True) as (temporary,):
        fresh = sqlite3.connect(temporary, isolation_level=None)
        fresh.execute("CREATE TABLE new (x)")
        fresh.close()
    assert names(tmp_path) == ["a.gpkg"]
    found = sqlite3.connect(target)
    assert found.execute("SELECT name FROM sqlite_schema").fetchall() == [("new",)]
    found.close()


def test_a_symbolic_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("former")
    link = tmp_path / "link.txt"
    link.symlink_to("real.txt")
    with replacing(link, overwrite=True) as (temporary,):
        temporary.write_text("new")
    assert link.is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_permissions_of_the_former_file_stay(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("former")
    target.chmod(0o640)
    with replacing(target, overwrite=True) as (temporary,):
        temporary.write_text("new")
    assert target.stat().st_mode & 0o777 == 0o640


_WRITER = """
import sys, time
from geodiv.atomic import replacing
with replacing(sys.argv[1], overwrite=True) as (temporary,):
    temporary.write_text("new " * 1000)
    print("writing", flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL exists on POSIX only")
def test_a_killed_run_leaves_the_former_file_and_the_next_run_tidies(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("former")
    with subprocess.Popen([sys.executable, "-c", _WRITER, str(target)], stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        run.stdout.readline()
        with pytest.raises(WriteError, match="another run"), replacing(target, overwrite=True):
            pass
        run.send_signal(signal.SIGKILL)
        run.wait()
    assert target.read_text() == "former"
    assert len(names(tmp_path)) > 1
    with replacing(target, overwrite=True) as (temporary,):
        temporary.write_text("next")
    assert target.read_text() == "next"
    assert names(tmp_path) == ["a.txt"]


def test_files_of_others_are_not_tidied(tmp_path: Path) -> None:
    for name in (".b.txt.12.tmp", ".a.txt.tmp", "a.txt.12.tmp"):
        (tmp_path / name).mkdir()
    with replacing(tmp_path / "a.txt") as (temporary,):
        temporary.write_text("new")
    assert names(tmp_path) == [".a.txt.tmp", ".b.txt.12.tmp", "a.txt", "a.txt.12.tmp"]


_RACER = """
import sys, time
from geodiv.atomic import replacing
from geodiv.errors import WriteError
while not __import__("os").path.exists(sys.argv[2]): time.sleep(0.001)
for number in range(40):
    try:
        with replacing(sys.argv[1], overwrite=True) as (temporary,):
            temporary.write_text("whole" * 1000)
    except WriteError as error:
        assert "another run" in str(error), error
"""


def test_many_runs_at_once_exclude_each_other_cleanly(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    command = [sys.executable, "-c", _RACER, str(folder / "a.txt"), str(tmp_path / "go")]
    runs = [subprocess.Popen(command) for _ in range(3)]
    time.sleep(0.5)
    (tmp_path / "go").touch()
    assert [run.wait() for run in runs] == [0, 0, 0]
    assert (folder / "a.txt").read_text() == "whole" * 1000
    assert names(folder) == ["a.txt"]
