"""The DuckDB engine: its options, its private folder and what becomes of it, and errors that say what to do."""

from __future__ import annotations

import gc
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import geodiv as gd
from geodiv.cli import run
from geodiv.engines import statements
from geodiv.engines.memory import MemoryEngine
from geodiv.engines.protocol import Groups
from geodiv.intake import VisitSpec

ROOT = Path(__file__).parent.parent
VISITS, POLICY = str(ROOT / "fixtures" / "visits.parquet"), str(ROOT / "fixtures" / "policy.toml")
SPEC = VisitSpec(person="person", grid=gd.ColumnGrid("cell"), attributes=(gd.Nominal("activity"),))
WHOLE = Groups(None, np.array([0]), None, np.array([0]), 1)


def visits(rows: int = 20) -> pd.DataFrame:
    return pd.DataFrame({"cell": "c", "person": [f"p{i % 7}" for i in range(rows)], "activity": "a"})


def made(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


# --- options ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", ["lots", "4", "4 G", "-1GB", "", "GB", 4, "80%"])
def test_a_memory_limit_is_a_size(limit: Any) -> None:
    with pytest.raises(gd.UsageError, match="memory limit: expected a size such as '4GB'"):
        gd.DuckDBEngine(memory_limit=limit)


@pytest.mark.parametrize("limit", ["300MB", "0.3GB", "300 MiB", "300mb"])
def test_sizes_as_duckdb_writes_them(limit: str, tmp_path: Path) -> None:
    engine = gd.DuckDBEngine(memory_limit=limit, folder=tmp_path)
    assert engine.reduce(visits(), SPEC).persons.tolist() == [7]
    engine.close()


@pytest.mark.parametrize("name", ["threads", "rows_per_batch"])
@pytest.mark.parametrize("number", [0, -1, 1.5, True, "2"])
def test_numbers_are_whole_and_positive(name: str, number: Any) -> None:
    keywords: dict[str, Any] = {name: number}
    with pytest.raises(gd.UsageError, match=f"{name}: expected a whole number of at least 1"):
        gd.DuckDBEngine(**keywords)


def test_the_folder_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "none", tmp_path / "file"):
        with pytest.raises(gd.UsageError, match="spill folder: expected a folder that can be written to"):
            gd.DuckDBEngine(folder=path)


def test_a_read_only_folder_is_an_error_too(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        if os.access(tmp_path, os.W_OK):
            pytest.skip("this user may write to read-only folders")
        with pytest.raises(gd.UsageError, match="spill folder"):
            gd.DuckDBEngine(folder=tmp_path)
    finally:
        tmp_path.chmod(0o700)


def test_without_duckdb_there_is_a_hint(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(gd.UsageError, match=r"not installed: pip install 'geodiv\[duckdb\]'"):
        gd.DuckDBEngine()
    assert run(["score", VISITS, "-p", POLICY, "--engine", "duckdb"]) == 2
    assert "pip install 'geodiv[duckdb]'" in capsys.readouterr().err


def test_the_command_line_takes_the_options(tmp_path: Path, capsys: Any) -> None:
    for name in ("spill", "mine", "theirs"):
        (tmp_path / name).mkdir()
    limits = ("--engine", "duckdb", "--memory-limit", "300MB", "--threads", "1")
    spill = ("--spill-folder", str(tmp_path / "spill"))
    given = {"mine": (*limits, *spill), "theirs": ()}
    said = []
    for name, words in given.items():
        out = str(tmp_path / name / "release.csv")
        assert run(["enforce", VISITS, "-p", POLICY, "-o", out, "--json", *words]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert made(tmp_path / "spill") == []
    assert (tmp_path / "mine" / "release.csv").read_bytes() == (
        tmp_path / "theirs" / "release.csv"
    ).read_bytes()


OTHERS = (
    ("score", VISITS, "-p", POLICY, "--json"),
    ("sweep", VISITS, "-p", POLICY, "--over-l", "2,3", "-o", "{}/table.csv", "--overwrite", "--json"),
    ("sweep", VISITS, "-p", POLICY, "--sizes", "7,8", "--no-remedies", "-o", "{}/table.csv", "--overwrite", "--json"),
    ("taxonomy", "check", VISITS, "-p", POLICY, "--of", "poi_category", "--json"),
    ("taxonomy", "suggest", VISITS, "-p", POLICY, "--of", "income_band", "-o", "{}/table.csv", "--overwrite", "--json"),
)  # fmt: skip


@pytest.mark.parametrize("words", OTHERS, ids=lambda words: " ".join(words[:1] + words[4:6]))
def test_every_verb_that_counts_says_the_same(words: tuple[str, ...], tmp_path: Path, capsys: Any) -> None:
    spill = tmp_path / "spill"
    spill.mkdir()
    said = []
    for engine in (("duckdb", "--spill-folder", str(spill)), ("memory",)):
        code = run([*(word.format(tmp_path) for word in words), "--engine", *engine])
        said.append((code, capsys.readouterr().out))
    assert said[0] == said[1]
    assert made(spill) == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--memory-limit", "4GB"), "belong to engine 'duckdb'"),
        (("--threads", "2"), "belong to engine 'duckdb'"),
        (("--spill-folder", "."), "belong to engine 'duckdb'"),
        (("--engine", "duckdb", "--memory-limit", "4"), "memory limit: expected a size"),
        (("--engine", "duckdb", "--threads", "0"), "threads: expected a whole number"),
        (("--engine", "duckdb", "--threads", "two"), "not a valid integer"),
        (("--engine", "duckdb", "--spill-folder", "no-such-folder"), "spill folder: expected a folder"),
    ],
)
def test_wrong_options_are_usage_errors(words: tuple[str, ...], expected: str, capsys: Any) -> None:
    assert run(["score", VISITS, "-p", POLICY, *words]) == 2
    said = capsys.readouterr().err
    assert expected in said
    assert "Traceback" not in said


# --- the folder ---------------------------------------------------------------------------------------------


def test_the_folder_is_private_and_holds_no_person_by_name(tmp_path: Path) -> None:
    engine = gd.DuckDBEngine(folder=tmp_path)
    kept = engine.reduce(visits(), SPEC)
    [folder] = made(tmp_path)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    tables = kept.handle.rows(
        "SELECT COUNT(*) AS n FROM duckdb_tables() WHERE table_name IN ('reduced', 'persons')"
    )
    assert tables["n"].tolist() == [0]
    engine.close()
    assert made(tmp_path) == []


def test_contributions_that_nobody_needs_vanish(tmp_path: Path) -> None:
    engine = gd.DuckDBEngine(folder=tmp_path)
    kept = [engine.reduce(visits(), SPEC) for _ in range(3)]
    assert len(made(tmp_path)) == 3
    del kept[0]
    gc.collect()
    assert len(made(tmp_path)) == 2
    assert [engine.count(k, WHOLE).tolist() for k in kept] == [[7], [7]]
    engine.close()
    assert made(tmp_path) == []


def test_a_closed_engine_says_so_and_can_be_used_again(tmp_path: Path) -> None:
    engine = gd.DuckDBEngine(folder=tmp_path)
    kept = engine.reduce(visits(), SPEC)
    engine.close()
    engine.close()
    with pytest.raises(gd.UsageError, match="engine that was closed"):
        engine.count(kept, WHOLE)
    again = engine.reduce(visits(), SPEC)
    assert engine.count(again, WHOLE).tolist() == [7]
    engine.close()
    assert made(tmp_path) == []


@pytest.mark.parametrize("error", [ZeroDivisionError("mine"), KeyboardInterrupt(), gd.SourceError("mine")])
@pytest.mark.parametrize("stage", ["read", "count"])
def test_a_job_that_is_cancelled_leaves_nothing(error: BaseException, stage: str, tmp_path: Path) -> None:
    def stop(now: str, done: int, total: int) -> None:
        if now == stage:
            raise error

    engine = gd.DuckDBEngine(folder=tmp_path, rows_per_batch=3)
    with pytest.raises(type(error)):
        engine.reduce(visits(), SPEC, stop)
    assert made(tmp_path) == []


def test_visits_that_cannot_be_read_leave_nothing(tmp_path: Path) -> None:
    engine = gd.DuckDBEngine(folder=tmp_path)
    broken = tmp_path / "in"
    broken.mkdir()
    good = broken / "1.parquet"
    visits(2000).to_parquet(good)
    (broken / "2.parquet").write_bytes(good.read_bytes()[:-200] + b"PAR1")
    with pytest.raises(gd.SourceError):
        engine.reduce(str(broken), SPEC)
    lacking = visits().assign(person=None)
    with pytest.raises(gd.SourceError, match="no person"):
        engine.reduce(lacking, SPEC)
    assert made(tmp_path) == [broken]


@contextmanager
def child(folder: Path, end: str = "sys.stdin.read()") -> Iterator[subprocess.Popen[str]]:
    """A process that holds contributions in this folder; it has said so, and does `end` next."""
    code = (
        "import sys, pandas as pd, geodiv as gd\n"
        "visits = pd.DataFrame({'cell': ['c'], 'person': ['p'], 'activity': ['a']})\n"
        "table = gd.tabulate(visits, grid=gd.ColumnGrid('cell'), person='person',\n"
        f"    attributes=[gd.Nominal('activity')], engine=gd.DuckDBEngine(folder={str(folder)!r}))\n"
        f"print('ready', flush=True)\n{end}\n"
    )
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, **pipes) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("end", ["pass", "sys.exit(3)", "raise ZeroDivisionError"])
def test_a_process_that_ends_without_closing_leaves_nothing(end: str, tmp_path: Path) -> None:
    with child(tmp_path, end) as process:
        process.wait(timeout=60)
    assert made(tmp_path) == []


def test_the_next_start_tidies_after_a_kill_and_spares_the_living(tmp_path: Path) -> None:
    with child(tmp_path) as killed:
        pass
    [left] = made(tmp_path)
    assert f".{killed.pid}." in left.name
    with child(tmp_path) as living:
        engine = gd.DuckDBEngine(folder=tmp_path)
        engine.reduce(visits(), SPEC)
        numbers = [path.name.split(".")[1] for path in made(tmp_path)]
        assert str(living.pid) in numbers
        assert not left.exists()
        assert living.stdin is not None
        living.stdin.close()
        living.wait(timeout=60)
    engine.close()
    assert made(tmp_path) == []


def test_what_a_former_process_of_the_same_number_left_is_tidied_and_nothing_else(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine.txt").touch()
    spill = tmp_path / "spill"
    spill.mkdir()
    former = spill / f"geodiv-contributions.{os.getpid()}.abc"
    (former / "spilled").mkdir(parents=True)
    others = [
        spill / f"geodiv-contributions.{os.getppid()}.abc",
        spill / "geodiv-contributions.x.abc",
        spill / "a",
    ]
    for path in others:
        path.mkdir()
    (former / "link").symlink_to(outside, target_is_directory=True)
    engine = gd.DuckDBEngine(folder=spill)
    kept = [engine.reduce(visits(), SPEC) for _ in range(2)]
    assert [engine.count(k, WHOLE).tolist() for k in kept] == [[7], [7]]
    assert not former.exists()
    engine.close()
    assert made(spill) == sorted(others)
    assert made(outside) == [outside / "mine.txt"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only POSIX copies processes")
def test_a_copy_of_the_process_removes_nothing(tmp_path: Path) -> None:
    """A fork that ends takes its parent's folder with it in no case."""
    parent = "    os.waitpid(pid, 0)\n    print('waited', flush=True)\n    sys.stdin.read()"
    end = f"import os\npid = os.fork()\nif pid:\n{parent}"
    with child(tmp_path, end) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waited\n"
        assert len(made(tmp_path)) == 1
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=60)
    assert made(tmp_path) == []


# --- errors -------------------------------------------------------------------------------------------------


def command(tmp_path: Path, before: str = "", *words: str) -> list[str]:
    """Python code that runs `enforce` with the engine on a folder of its own, after `before`."""
    (tmp_path / "spill").mkdir()
    arguments = ["enforce", VISITS, "-p", POLICY, "-o", str(tmp_path / "release.gpkg"), "--engine", "duckdb"]
    arguments += ["--spill-folder", str(tmp_path / "spill"), *words]
    return [sys.executable, "-c", f"{before}\nfrom geodiv.cli import main; main({arguments!r})"]


FULL = "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (100_000, r.getrlimit(r.RLIMIT_FSIZE)[1]))"


@pytest.mark.skipif(os.name != "posix", reason="limits of the file size are POSIX")
def test_a_full_disk_is_a_clear_error_and_leaves_nothing(tmp_path: Path) -> None:
    ended = subprocess.run(command(tmp_path, FULL), capture_output=True, text=True, cwd=ROOT, check=False)
    assert (ended.returncode, ended.stdout) == (3, "")
    assert "geodiv: engine 'duckdb': expected to write to the spill folder" in ended.stderr
    assert "File too large. Free some space there" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert made(tmp_path) == [tmp_path / "spill"]
    assert made(tmp_path / "spill") == []


def test_too_little_memory_is_a_clear_error_and_leaves_nothing(tmp_path: Path) -> None:
    words = ("--memory-limit", "1MB")
    ended = subprocess.run(
        command(tmp_path, "", *words), capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert (ended.returncode, ended.stdout) == (3, "")
    assert "memory limit (1MB)" in ended.stderr
    assert "Give more memory, fewer threads, or a folder with more" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert made(tmp_path) == [tmp_path / "spill"]
    assert made(tmp_path / "spill") == []


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_an_interrupt_while_visits_are_read_leaves_nothing(name: str, code: int, tmp_path: Path) -> None:
    words = command(tmp_path)
    words[2] = words[2].replace(repr(VISITS), "'-'")
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    waited = threading.Event()
    with subprocess.Popen(words, cwd=ROOT, **pipes) as process:
        try:
            while not made(tmp_path / "spill"):  # it then waits for the visits
                assert process.poll() is None
                waited.wait(0.05)
            process.send_signal(signal.Signals[name])
            process.wait(timeout=60)
            assert process.stderr is not None
            said = process.stderr.read()
        finally:
            process.kill()
    assert process.returncode == code
    assert "Traceback" not in said
    assert made(tmp_path) == [tmp_path / "spill"]
    assert made(tmp_path / "spill") == []


ENDLESS = "SELECT SUM(i % 7) AS persons, 0 AS of_group FROM range(100000000000) AS a(i)"


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_an_interrupt_while_duckdb_counts_is_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = gd.DuckDBEngine(folder=tmp_path)
    kept = engine.reduce(visits(), SPEC)
    monkeypatch.setattr(statements, "count", lambda attribute: ENDLESS)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        engine.count(kept, WHOLE)
    timer.join()
    monkeypatch.undo()
    assert engine.count(kept, WHOLE).tolist() == [7]
    engine.close()


@pytest.mark.parametrize(
    "wrong", ["SELECT error('p-secret')", "SELECT CAST('p-secret' AS INTEGER)", "p-secret"]
)
def test_other_errors_of_duckdb_are_told_without_its_text(
    wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = gd.DuckDBEngine(folder=tmp_path)
    kept = engine.reduce(visits(), SPEC)
    monkeypatch.setattr(statements, "count", lambda attribute: wrong)
    with pytest.raises(gd.SourceError, match=r"engine 'duckdb': counting failed \(\w+\)") as error:
        engine.count(kept, WHOLE)
    assert "p-secret" not in str(error.value)
    monkeypatch.setattr(statements, "distinct", lambda attributes: "SELECT error('p-secret')")
    with pytest.raises(gd.SourceError, match="counting failed"):
        engine.reduce(visits(), SPEC)
    assert len(made(tmp_path)) == 1
    engine.close()


def test_visits_that_get_lost_on_the_way_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = statements.distinct
    monkeypatch.setattr(statements, "distinct", lambda attributes: f"{whole(attributes)} LIMIT 3")
    engine = gd.DuckDBEngine(folder=tmp_path)
    with pytest.raises(gd.VerificationError, match="20 visits were read and 9 are counted"):
        engine.reduce(visits(), SPEC)
    assert made(tmp_path) == []


def test_duckdb_draws_no_progress_bar_on_standard_output(tmp_path: Path) -> None:
    """It would where it takes Python for interactive, as with ``python -c``, amid the JSON of a command."""
    asked = "SELECT CAST(current_setting('enable_progress_bar') AS INTEGER) AS drawn"
    with child(tmp_path, f"print(table.contributions.handle.rows({asked!r})['drawn'].tolist())") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "[0]\n"


# --- size and threads ---------------------------------------------------------------------------------------


def test_what_is_spilled_counts_as_well(tmp_path: Path) -> None:
    """Long names of many persons need more than the limit; the counts are those of the memory engine."""
    rng, rows = np.random.default_rng(2), 300_000
    many = pd.DataFrame(
        {
            "cell": rng.integers(0, 40, rows).astype(str),
            "person": [f"{'x' * 40}{i}" for i in rng.integers(0, 200_000, rows)],
            "activity": rng.choice(["a", "b", "c"], rows),
        }
    )
    engine = gd.DuckDBEngine(memory_limit="50MB", threads=2, folder=tmp_path, rows_per_batch=50_000)
    found, expected = engine.reduce(many, SPEC), MemoryEngine().reduce(many, SPEC)
    assert found.persons.tolist() == expected.persons.tolist()
    for name in ("cell", "value", "persons", "visits"):
        assert getattr(found.pairs[0], name).tolist() == getattr(expected.pairs[0], name).tolist()
    cells = np.arange(40)
    groups = Groups(None, cells, None, cells % 3, 3)
    assert engine.count(found, groups).tolist() == MemoryEngine().count(expected, groups).tolist()
    engine.close()


def test_several_threads_count_at_once(tmp_path: Path) -> None:
    engine = gd.DuckDBEngine(folder=tmp_path)
    kept = engine.reduce(visits(), SPEC)
    with ThreadPoolExecutor(4) as pool:
        counted = list(pool.map(lambda _: engine.count(kept, WHOLE).tolist(), range(40)))
    assert counted == [[7]] * 40
    engine.close()
