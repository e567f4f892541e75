"""The DuckDB engine: contributions in a database of a private folder, larger than memory if need be."""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..arrays import IntArray
from ..errors import SourceError, UsageError, VerificationError
from ..intake import VisitSpec, check
from . import statements
from .background import in_background
from .feed import Feed
from .folder import checked_folder, private_folder, remove_folder
from .partner import partner
from .protocol import Contributions, Groups, Pairs, Progress

_SIZE = re.compile(r"\d+(\.\d+)?\s*[KMGT]i?B", re.IGNORECASE)
_REASONS = (
    "No space left on device",
    "Disk quota exceeded",
    "File too large",
    "Permission denied",
    "Read-only file system",
    "No such file or directory",
)
"""What the system says of a file that cannot be written, as it stands in DuckDB's messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DuckDBEngine:
    """Counts in DuckDB: Parquet or CSV files larger than memory, on one machine. Needs ``geodiv[duckdb]``.

    Parameters
    ----------
    memory_limit : str, optional
        What DuckDB may take, such as ``"4GB"``; four fifths of the memory unless given. The batch that is being
        read comes on top of it.
    threads : int, optional
        All cores unless given.
    folder : path, optional
        Where the private folder with the contributions is made, and what does not fit into memory is spilled to;
        the folder for temporary files unless given. Each contribution takes some 10 to 30 bytes there.
    rows_per_batch : int
        Visits read at a time.

    Raises
    ------
    UsageError
        DuckDB is not installed, or an option is not what it must be.

    Examples
    --------
    >>> import geodiv as gd
    >>> from contextlib import closing
    >>> run = gd.read_run("fixtures/policy.toml")
    >>> with closing(gd.DuckDBEngine(memory_limit="1GB", threads=2)) as engine:
    ...     outcome = run.enforce("fixtures/visits.parquet", engine=engine)
    >>> outcome.release.metadata["engine"]["name"]
    'duckdb'
    """

    memory_limit: str | None = None
    threads: int | None = None
    folder: str | Path | None = None
    rows_per_batch: int = 1 << 20
    _stores: weakref.WeakSet[_Store] = field(
        default_factory=weakref.WeakSet, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        partner("duckdb", "duckdb")
        if self.memory_limit is not None and not _SIZE.fullmatch(str(self.memory_limit).strip()):
            raise UsageError(
                f"memory limit: expected a size such as '4GB' or '500MB', got {self.memory_limit!r}."
            )
        for name in ("threads", "rows_per_batch"):
            number = getattr(self, name)
            if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
                raise UsageError(f"{name}: expected a whole number of at least 1, got {number!r}.")
        object.__setattr__(self, "folder", checked_folder(self.folder, "spill folder"))

    def reduce(self, source: Any, spec: VisitSpec, progress: Progress | None = None) -> Contributions:
        """Distinct contributions of the visits; see `Engine`.

        Raises
        ------
        SourceError
            As `geodiv.tabulate`, and when the contributions fit into neither the memory limit nor the folder.
        """
        with ExitStack() as after_an_error:
            store = _Store(self)
            after_an_error.callback(store.close)
            contributions = _reduced(store, Feed(source, spec, self.rows_per_batch, progress), spec, progress)
            after_an_error.pop_all()
        self._stores.add(store)
        return contributions

    def count(self, contributions: Contributions, groups: Groups) -> IntArray:
        """(groups,) distinct persons; see `Engine`.

        Raises
        ------
        UsageError
            The engine was closed after the contributions were reduced.
        """
        mapping = pa.table({"cell": pa.array(groups.cell, pa.int32()), "of_group": pa.array(groups.group)})
        if groups.value is not None:
            mapping = mapping.append_column("value", pa.array(groups.value, pa.int32()))
        found = contributions.handle.rows(statements.count(groups.attribute), mapping)
        persons = np.zeros(groups.size, dtype=np.int64)
        persons[found["of_group"]] = found["persons"]
        return persons

    def describe(self) -> dict[str, str]:
        """Name and versions; see `Engine`."""
        version = partner("duckdb", "duckdb").__version__
        return {"name": "duckdb", "duckdb": version, "pyarrow": pa.__version__}

    def close(self) -> None:
        """Forget all contributions and remove their folders. The engine can be used again."""
        for store in list(self._stores):
            store.close()


class _Store:
    """A database with the contributions of one reduction. It vanishes when it is closed or no longer referred to."""

    def __init__(self, engine: DuckDBEngine) -> None:
        self._engine = engine
        path = private_folder(Path(engine.folder or "."))
        self._remove = weakref.finalize(self, remove_folder, path, os.getpid())
        options: dict[str, Any] = {
            "temp_directory": str(path / "spilled"),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
        }
        if engine.memory_limit is not None:
            options["memory_limit"] = engine.memory_limit
        if engine.threads is not None:
            options["threads"] = engine.threads
        with ExitStack() as after_an_error, self.plainly():
            after_an_error.callback(self._remove)
            database = partner("duckdb", "duckdb").connect(str(path / "contributions.duckdb"), config=options)
            after_an_error.pop_all()
        self._database = database
        self._disconnect = weakref.finalize(self, database.close)

    def close(self) -> None:
        """Disconnect and remove the folder."""
        self._disconnect()
        self._remove()

    def run(self, statement: str, **tables: Any) -> None:
        """Run a statement; `tables` are Arrow tables or readers that it names."""
        with self._cursor(tables) as cursor:
            in_background(lambda: cursor.execute(statement), cursor.interrupt)

    def stream(self, statement: str, feed: Feed) -> None:
        """Run a statement on the table ``visits``, while these are read."""
        with self._cursor({}) as cursor:

            def consume(visits: pa.RecordBatchReader) -> None:
                cursor.register("visits", visits)
                cursor.execute(statement)

            feed.to(consume, cursor.interrupt)

    def rows(self, statement: str, mapping: pa.Table | None = None) -> dict[str, NDArray[np.int64]]:
        """The columns of what a statement gives: (rows,) int64 each."""
        with self._cursor({} if mapping is None else {"mapping": mapping}) as cursor:
            found = in_background(lambda: cursor.execute(statement).fetchnumpy(), cursor.interrupt)
        return {name: np.asarray(column).astype(np.int64) for name, column in found.items()}

    @contextmanager
    def _cursor(self, tables: dict[str, Any]) -> Iterator[Any]:
        if not self._disconnect.alive:
            raise UsageError(
                "engine 'duckdb': expected contributions that are kept, got those of an engine that was closed. "
                "Tabulate again, and close the engine last."
            )
        with self.plainly(), self._database.cursor() as cursor:
            # a progress bar would go to standard output, where results are
            cursor.execute("SET enable_progress_bar = false")
            for name, table in tables.items():
                cursor.register(name, table)
            yield cursor

    @contextmanager
    def plainly(self) -> Iterator[None]:
        """DuckDB's errors as what a user can do about them. Its own texts may hold values, and stay out."""
        duckdb = partner("duckdb", "duckdb")
        try:
            yield
        except duckdb.Error as error:
            raise self._spoken(error) from error

    def _spoken(self, error: Exception) -> SourceError:
        folder = self._engine.folder
        reason = next((reason for reason in _REASONS if reason in str(error)), None)
        duckdb = partner("duckdb", "duckdb")
        if reason is None and isinstance(error, duckdb.OutOfMemoryException):
            limit = self._engine.memory_limit or "four fifths of the memory"
            return SourceError(
                f"engine 'duckdb': the contributions need more than memory limit ({limit}) and spill folder "
                f"('{folder}') have room for. Give more memory, fewer threads, or a folder with more space."
            )
        if reason is not None or isinstance(error, duckdb.IOException):
            return SourceError(
                f"engine 'duckdb': expected to write to the spill folder '{folder}', got: "
                f"{reason or 'an error of the file system'}. Free some space there, or name another folder."
            )
        return SourceError(
            f"engine 'duckdb': counting failed ({type(error).__name__}). "
            "Use the memory engine, and report this with the versions in use."
        )


def _reduced(store: _Store, feed: Feed, spec: VisitSpec, progress: Progress | None) -> Contributions:
    attributes = len(spec.attributes)
    reduced = f"CREATE TABLE reduced AS {statements.distinct(attributes)}"
    store.stream(reduced, feed)
    check(feed.intake, spec)
    if progress:
        progress("read", feed.intake.rows, feed.intake.rows)
    position, keys = feed.cells.sorted(spec.grid)
    spaces = [values.space() for values in feed.values]
    _sort(store, [position, *(codes for codes, _ in spaces)])
    pairs = []
    for a in range(attributes):
        pairs.append(_whole(Pairs(**store.rows(statements.pairs(a, attributes))), feed.intake.counted))
        if progress:
            progress("count", a + 1, attributes)
    return Contributions(
        keys=keys,
        spaces=tuple(space for _, space in spaces),
        pairs=tuple(pairs),
        persons=store.rows(statements.persons())["persons"],
        intake=feed.intake,
        handle=store,
    )


def _whole(pairs: Pairs, counted: int) -> Pairs:
    """The pairs, if every visit that was read is behind one of them."""
    if (visits := int(pairs.visits.sum())) != counted:
        raise VerificationError(
            f"engine 'duckdb': {counted} visits were read and {visits} are counted: an internal error. "
            "Use the memory engine, and report this with the versions in use."
        )
    return pairs


def _sort(store: _Store, positions: list[IntArray]) -> None:
    """Contributions by cell, with positions of cells and values, and numbers that stand for persons."""
    cell, *values, person = statements.columns(len(positions) - 1)
    store.run(
        "CREATE TABLE persons AS SELECT person AS name, ROW_NUMBER() OVER () AS number "
        "FROM (SELECT DISTINCT person FROM reduced)"
    )
    taken, joined = [], [f"JOIN persons ON reduced.{person} = persons.name"]
    for column, position in zip((cell, *values), positions, strict=True):
        codes = pa.table(
            {"code": np.arange(len(position)).astype(np.int32), "number": position.astype(np.int32)}
        )
        store.run(f"CREATE TABLE codes_{column} AS SELECT code, number FROM codes", codes=codes)
        taken.append(f"codes_{column}.number AS {column}")
        joined.append(f"JOIN codes_{column} ON reduced.{column} = codes_{column}.code")
    store.run(
        f"CREATE TABLE contributions AS SELECT {', '.join(taken)}, persons.number AS person, reduced.visits "
        f"FROM reduced {' '.join(joined)} ORDER BY codes_{cell}.number"
    )
    for table in ("reduced", "persons"):
        store.run(f"DROP TABLE {table}")
