"""The choice of an engine: by its name, or one that is there already. Never by a guessed size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import UsageError
from .memory import MemoryEngine
from .protocol import Engine

EXPECTED = "'memory', 'duckdb' or an Engine"


def engine_of(choice: str | Engine, **options: Any) -> Engine:
    """The engine of a name; an engine is returned as it is.

    Parameters
    ----------
    choice : "memory", "duckdb" or Engine
    options
        What the engine takes: memory_limit, threads and folder, for "duckdb".

    Raises
    ------
    UsageError
        No such name, options that the engine does not take, or a package that it needs is not installed.

    Examples
    --------
    >>> engine_of("memory").describe()["name"]
    'memory'
    """
    if not isinstance(choice, str):
        if isinstance(choice, type) or not hasattr(choice, "reduce"):
            raise UsageError(f"engine: expected {EXPECTED}, got {choice!r}.")
        return choice
    if choice == "duckdb":
        from .duckdb import DuckDBEngine

        return DuckDBEngine(**options)
    if options:
        raise UsageError(
            f"memory limit, threads and spill folder belong to engine 'duckdb', got engine {choice!r}."
        )
    if choice == "memory":
        return MemoryEngine()
    raise UsageError(f"engine: expected {EXPECTED}, got {choice!r}.")


@contextmanager
def opened(choice: str | Engine, **options: Any) -> Iterator[Engine]:
    """An engine for the length of a block: what was made for a name is closed at its end, errors included."""
    engine = engine_of(choice, **options)
    try:
        yield engine
    finally:
        if engine is not choice:
            engine.close()
