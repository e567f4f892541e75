"""The choice of an engine: by its name, or one that is there already. Never by a guessed size."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import UsageError
from .memory import MemoryEngine
from .protocol import Engine

EXPECTED = "'memory', 'duckdb', spark://host:port, sc://host:port, local[2], a SparkSession or an Engine"

_ADDRESS = re.compile(r"(spark|sc)://.*|local(\[.*\])?", re.DOTALL)


def engine_of(choice: str | Engine, **options: Any) -> Engine:
    """The engine of a name; an engine is returned as it is.

    Parameters
    ----------
    choice : "memory", "duckdb", address of Spark, SparkSession or Engine
        Spark is ``spark://host:port``, ``sc://host:port`` (Spark Connect), ``local[2]``, or a live session.
    options
        What the engine takes: memory_limit, threads and folder for "duckdb", folder for Spark.

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
        if _is_session(choice):
            from .spark import SparkEngine

            return SparkEngine(choice, **options)
        if isinstance(choice, type) or not hasattr(choice, "reduce"):
            raise UsageError(f"engine: expected {EXPECTED}, got {choice!r}.")
        return choice
    if choice == "duckdb":
        from .duckdb import DuckDBEngine

        return DuckDBEngine(**options)
    spark = _ADDRESS.fullmatch(choice) is not None
    if choice != "memory" and not spark:
        raise UsageError(f"engine: expected {EXPECTED}, got {choice!r}.")
    if options.keys() - ({"folder"} if spark else set()):
        raise UsageError(
            "memory limit and threads belong to engine 'duckdb', a spill folder to 'duckdb' and Spark, "
            f"got engine {'spark' if spark else choice!r}."
        )
    if not spark:
        return MemoryEngine()
    from .spark import SparkEngine

    return SparkEngine(choice, **options)


def _is_session(choice: Any) -> bool:
    """Whether it is a session of classic Spark or of Spark Connect, found without importing either."""
    kind = type(choice)
    return kind.__name__ == "SparkSession" and kind.__module__.partition(".")[0] == "pyspark"


@contextmanager
def opened(choice: str | Engine, **options: Any) -> Iterator[Engine]:
    """An engine for the length of a block: what was made for a name is closed at its end, errors included."""
    engine = engine_of(choice, **options)
    try:
        yield engine
    finally:
        if engine is not choice:
            engine.close()
