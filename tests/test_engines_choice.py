"""The choice of an engine, and that none outlives what it was chosen for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import geodiv as gd
from geodiv.cli import run
from geodiv.engines import choice
from geodiv.engines.choice import engine_of, opened
from geodiv.engines.memory import MemoryEngine

VISITS = "fixtures/visits.parquet"
POLICY = "fixtures/policy.toml"
SCORE = ("score", VISITS, "-p", POLICY)


class Recorder:
    """A memory engine that says when it is closed."""

    made: list[Recorder]

    def __init__(self) -> None:
        self.inner, self.closed = MemoryEngine(), 0
        self.made.append(self)

    def reduce(self, *given: Any) -> Any:
        if self.error is not None:
            raise self.error
        return self.inner.reduce(*given)

    error: BaseException | None = None

    def count(self, *given: Any) -> Any:
        assert not self.closed
        return self.inner.count(*given)

    def describe(self) -> dict[str, str]:
        return {"name": "recorder"}

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Recorder]:
    """The engines that are made for the name 'memory'."""
    monkeypatch.setattr(Recorder, "made", [], raising=False)
    monkeypatch.setattr(choice, "MemoryEngine", Recorder)
    return Recorder.made


def test_a_name_makes_an_engine_and_an_engine_is_taken_as_it_is() -> None:
    assert isinstance(engine_of("memory"), MemoryEngine)
    mine = MemoryEngine()
    assert engine_of(mine) is mine


@pytest.mark.parametrize("wrong", ["abacus", "", "MEMORY", None, 7, MemoryEngine])
def test_anything_else_is_an_error_that_lists_what_is_expected(wrong: Any) -> None:
    with pytest.raises(gd.UsageError, match="engine: expected 'memory'"):
        engine_of(wrong)


def test_a_block_closes_what_was_made_for_it_and_nothing_else(made: list[Recorder]) -> None:
    with opened("memory"):
        assert [engine.closed for engine in made] == [0]
    assert [engine.closed for engine in made] == [1]
    mine = Recorder()
    with opened(mine) as same:
        assert same is mine
    assert mine.closed == 0
    with pytest.raises(ZeroDivisionError), opened("memory"):
        raise ZeroDivisionError
    assert made[-1].closed == 1


def visits() -> pd.DataFrame:
    return pd.DataFrame({"cell": ["c", "c"], "person": ["p", "q"], "activity": ["a", "b"]})


def test_a_table_keeps_its_engine_open(made: list[Recorder]) -> None:
    gd.tabulate(visits(), grid=gd.ColumnGrid("cell"), person="person", attributes=[gd.Nominal("activity")])
    assert [engine.closed for engine in made] == [0]


def test_a_table_that_cannot_be_made_leaves_no_engine_open(made: list[Recorder]) -> None:
    with pytest.raises(gd.SourceError):
        gd.tabulate(visits(), grid=gd.ColumnGrid("no"), person="person", attributes=[gd.Nominal("activity")])
    assert [engine.closed for engine in made] == [1]


def test_scores_need_no_engine_once_they_are_there(made: list[Recorder]) -> None:
    found = gd.read_run(POLICY)
    assert len(found.score(VISITS)) > 0
    assert [engine.closed for engine in made] == [1]
    outcome = found.enforce(VISITS)
    assert made[-1].closed == 0
    assert outcome.table.engine is made[-1]


COMMANDS = (
    SCORE,
    ("enforce", VISITS, "-p", POLICY, "-o", "{}/release.gpkg"),
    ("sweep", VISITS, "-p", POLICY, "--over-l", "2,3", "--no-remedies", "-o", "{}/sweep.csv"),
    ("sweep", VISITS, "-p", POLICY, "--sizes", "7,8", "--no-remedies", "-o", "{}/sweep.csv"),
    ("taxonomy", "check", VISITS, "-p", POLICY, "--of", "poi_category"),
    ("taxonomy", "suggest", VISITS, "-p", POLICY, "--of", "income_band", "-o", "{}/taxonomy.csv"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: " ".join(c[:2]))
def test_every_command_that_counts_closes_its_engine(
    command: tuple[str, ...], made: list[Recorder], tmp_path: Path
) -> None:
    assert run([word.format(tmp_path) for word in (*command, "--engine", "memory")]) in (0, 1)
    assert [engine.closed for engine in made] == [1]


@pytest.mark.parametrize(
    ("error", "code"), [(gd.SourceError("broken"), 3), (KeyboardInterrupt(), 130), (OSError(28, "full"), 3)]
)
def test_errors_and_interrupts_close_it_too(
    error: BaseException, code: int, made: list[Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Recorder, "error", error)
    assert run(SCORE) == code
    assert [engine.closed for engine in made] == [1]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: " ".join(c[:2]))
def test_every_command_that_counts_knows_the_engines(command: tuple[str, ...], tmp_path: Path) -> None:
    assert run([word.format(tmp_path) for word in (*command, "--engine", "abacus")]) == 2
