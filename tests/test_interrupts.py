"""Ctrl-C at every stage: one line, exit code 130, and nothing half-written is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pandas as pd
import pytest

import geodiv as gd
from geodiv import cli
from geodiv.atomic import replacing
from geodiv.interrupts import ENDINGS, Ended, ending_in_order, uninterrupted

ROOT = Path(gd.__file__).parent.parent
PACKAGE = str(Path(gd.__file__).parent)
TOLD = "geodiv: interrupted. Nothing half-written is left."
ENDS = {
    "SIGINT": (130, TOLD),
    "SIGTERM": (143, "geodiv: ended by SIGTERM. Nothing half-written is left."),
    "SIGHUP": (129, "geodiv: ended by SIGHUP. Nothing half-written is left."),
}
"""The exit code and the message of each signal that asks for an end."""
POINTS = int(os.environ.get("GEODIV_INTERRUPTS", "24"))
"""Moments of a run at which it is interrupted; each is a run of its own."""
pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Visits with a bad row among them, a policy, a former release, and a folder for temporary files."""
    spots = [(24.9 + 0.02 * i, 60.17) for i in range(8)]
    values = ("shop", "food", "gym", "clinic")
    rows = [
        (f"p{i}", *spot, poi) for n, spot in enumerate(spots) for i in range(9) for poi in values[: 1 + n % 4]
    ]
    pd.DataFrame([*rows, ("p0", None, None, "shop")], columns=["person", "lon", "lat", "poi"]).to_csv(
        tmp_path / "visits.csv", index=False
    )
    (tmp_path / "policy.toml").write_text(
        '[visits]\nperson = "person"\non_bad_rows = "skip"\n'
        '[grid]\nkind = "h3"\nresolution = 8\n[[attribute]]\ncolumn = "poi"\n'
        "[gates]\nk_min = 5\nl_min = 2\n",
        encoding="utf-8",
    )
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


ENFORCE = (
    "enforce", "visits.csv", "-p", "policy.toml", "-o", "r.gpkg", "--work", "w.gpkg", "--report", "r.html",
    "--rejects", "rejects.csv", "--overwrite",
)  # fmt: skip
COMMANDS: tuple[tuple[str, ...], ...] = (
    ENFORCE,
    ("score", "visits.csv", "-p", "policy.toml", "--rejects", "rejects.csv", "-o", "w.gpkg", "--overwrite"),
    ("sweep", "visits.csv", "-p", "policy.toml", "--sizes", "7,8", "-o", "s.csv", "--overwrite"),
    ("map", "r.gpkg", "-o", "m.html", "--overwrite"),
    ("init", "visits.csv", "-o", "new.toml", "--overwrite"),
)


def listing(folder: Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


@contextmanager
def calls(tell: Callable[[int, FrameType], None]) -> Iterator[None]:
    """`tell` hears of every call of a function of geodiv, and of whatever is called while it writes a file."""
    number = 0

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal number
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            number += 1
            tell(number, frame)

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)


def interrupted(arguments: tuple[str, ...], at: int) -> int:
    """The exit code of a command that gets a real SIGINT at its call number `at`.

    Python drops what is raised while it clears away a generator that nobody asks any more, so then the next call does.
    """
    dropped: list[Any] = []

    def tell(number: int, _: FrameType) -> None:
        if number == at + len(dropped):
            signal.raise_signal(signal.SIGINT)

    hook, sys.unraisablehook = sys.unraisablehook, dropped.append
    try:
        with calls(tell):
            return cli.run(arguments)
    except KeyboardInterrupt:  # before the command began
        return cli.INTERRUPTED
    finally:
        sys.unraisablehook = hook


def moments(arguments: tuple[str, ...]) -> list[int]:
    """Numbers of calls: the first in each file of geodiv that works on the command, of each function that writes."""
    first: dict[str, int] = {}

    def tell(number: int, frame: FrameType) -> None:
        name = Path(frame.f_code.co_filename).name
        first.setdefault(
            f"{name} {frame.f_code.co_name}" if name in ("atomic.py", "faults.py") else name, number
        )

    assert cli.run(arguments) == 0  # what is imported and remembered once is not called again
    with calls(tell):
        assert cli.run(arguments) == 0
    inside = sorted(number for name, number in first.items() if not name.startswith("cli"))
    return (
        inside[:: max(len(inside) * len(COMMANDS) // (2 * POINTS), 1)] if arguments is not ENFORCE else inside
    )


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda a: a[0])
def test_an_interrupt_leaves_what_was_there_or_what_was_to_be(
    arguments: tuple[str, ...], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(ENFORCE) == 0
    found = moments(arguments)
    names = set(listing(folder))
    step = max(len(found) // POINTS, 1)
    for at in found[::step]:
        capfd.readouterr()
        code = interrupted(arguments, at)
        assert (code, capfd.readouterr().err.strip()) == (130, TOLD), at
        assert set(listing(folder)) == names, at
        assert "not_carried" not in gd.read_release("r.gpkg").metadata, at
    assert cli.run(arguments) == 0


STAGES = ("read", "count", "remedy", "refine", "verify")


@pytest.mark.parametrize(
    ("stage", "name"),
    [
        *((stage, "SIGINT") for stage in (*STAGES, "write")),
        ("count", "SIGTERM"),
        ("write", "SIGTERM"),
        ("refine", "SIGHUP"),
    ],
)
def test_the_program_is_interrupted_at_each_stage(stage: str, name: str, folder: Path) -> None:
    """A process of its own that sends itself the signal at the stage; "write": while the release is written."""
    code = f"""
import os, signal, sys
import geodiv.progress as progress, geodiv.geopackage as geopackage, geodiv.cli as cli
def stop(*_):
    os.kill(os.getpid(), signal.{name})
def report(stage, done, total):
    if stage == {stage!r}:
        stop()
progress._json_line = report
if {stage!r} == "write":
    write = geopackage._write
    geopackage._write = lambda *a: (write(*a), stop())
sys.argv = ["geodiv", *{list(ENFORCE)!r}, "--progress", "json"]
cli.main()
"""
    before = set(listing(folder))
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr.strip()) == ENDS[name]
    assert done.stdout == ""
    assert set(listing(folder)) - before <= {"rejects.csv"}  # whole: reading had ended


def test_interrupts_wait_for_the_end_of_the_block_and_are_not_lost() -> None:
    handler = signal.getsignal(signal.SIGINT)
    done: list[str] = []

    def work() -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            done.append("went on")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["went on"]
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_pause_lets_them_through_also_one_that_had_to_wait() -> None:
    handler = signal.getsignal(signal.SIGINT)

    def work(before: bool) -> None:
        with uninterrupted() as pause:
            if before:
                signal.raise_signal(signal.SIGINT)
            with pause():
                signal.raise_signal(signal.SIGINT)
                pytest.fail("went on")

    for before in (True, False):
        with pytest.raises(KeyboardInterrupt):
            work(before)
        assert signal.getsignal(signal.SIGINT) is handler


def test_other_threads_get_none_and_take_no_handler() -> None:
    handler, seen = signal.getsignal(signal.SIGINT), []

    def work() -> None:
        with uninterrupted() as pause, pause():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [handler]


def test_the_callers_own_handler_is_called_and_stays(tmp_path: Path) -> None:
    told: list[int] = []
    former = signal.signal(signal.SIGINT, lambda number, _: told.append(number))
    try:
        with replacing(tmp_path / "a.json") as (file,):
            signal.raise_signal(signal.SIGINT)
            file.write_text(json.dumps(1))
        assert told == [signal.SIGINT]
        assert (tmp_path / "a.json").read_text() == "1"
    finally:
        signal.signal(signal.SIGINT, former)


def test_a_wish_to_end_is_taken_over_for_the_length_of_the_block_only() -> None:
    before = [signal.getsignal(number) for number in ENDINGS]
    for number in ENDINGS:
        with pytest.raises(Ended) as ended, ending_in_order():
            signal.raise_signal(number)
        assert (ended.value.code, ended.value.name) == (128 + number, number.name)
    assert [signal.getsignal(number) for number in ENDINGS] == before


@pytest.mark.parametrize("theirs", [signal.SIG_IGN, lambda *_: None], ids=["nohup", "a handler"])
def test_what_somebody_else_sees_to_or_ignores_stays_so(theirs: Any) -> None:
    former = signal.signal(signal.SIGHUP, theirs)
    try:
        with ending_in_order():
            signal.raise_signal(signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is theirs
    finally:
        signal.signal(signal.SIGHUP, former)


def test_of_several_that_wait_none_is_lost() -> None:
    """Ctrl-C and a wish to end, both held back: whoever catches the one still gets the other."""
    told: list[str] = []
    former = signal.signal(signal.SIGINT, lambda *_: told.append("interrupt"))

    def work() -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)
            told.append("went on")

    try:
        with pytest.raises(Ended), ending_in_order():
            work()
    finally:
        signal.signal(signal.SIGINT, former)
    assert told == ["went on", "interrupt"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
