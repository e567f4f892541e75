"""Progress on standard error: a bar for people, a line of JSON for programs, or nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, int, int], None]
MODES = ("auto", "bar", "json", "none")


@contextmanager
def reporting(mode: str) -> Iterator[Progress | None]:
    """A function ``(stage, done, total)`` that shows how far a run is, or None when nothing is to be shown.

    Parameters
    ----------
    mode : {"auto", "bar", "json", "none"}
        auto: a bar when standard error is a terminal. json: one object a line,
        ``{"event": "progress", "stage": "read", "done": 0, "total": 0}``; a total of 0 means unknown.
    """
    if mode == "auto":
        mode = "bar" if sys.stderr.isatty() else "none"
    if mode == "json":
        yield _json_line
    elif mode == "bar":
        with _bar() as report:
            yield report
    else:
        yield None


def _json_line(stage: str, done: int, total: int) -> None:
    line = {"event": "progress", "stage": str(stage), "done": int(done), "total": int(total)}
    sys.stderr.write(json.dumps(line) + "\n")
    sys.stderr.flush()


@contextmanager
def _bar() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description:<12}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, int] = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=None)
            bars.update(tasks[stage], completed=done, total=total or None)  # type: ignore[arg-type]

        yield report
