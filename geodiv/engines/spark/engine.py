"""The Spark engine itself: visits to contributions on the cluster, and groups of them counted there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...arrays import IntArray
from ...errors import SourceError, UsageError
from ...intake import Intake, VisitSpec, check, whole
from ...interrupts import uninterrupted
from .. import statements
from ..memory import Handle, MemoryEngine, handle_of
from ..protocol import Contributions, Groups, Pairs, Progress
from .arrow import frame_of, sql_of
from .failures import explained
from .held import Held, Table, new_name
from .probe import probe
from .reading import distributed
from .session import session_of
from .shipping import shipped
from .workers import distinct, reduced, schema_of, tally_of

PART = 1 << 18
"""Visits in a part of the contributions, roughly."""
MOST_PARTS = 1 << 12


class SparkEngine:
    """Counts on a cluster, beyond one machine. Needs ``geodiv[spark]`` or ``geodiv[spark-connect]``, Spark >= 4.1.

    Parameters
    ----------
    where : str or SparkSession
        ``spark://host:port``, ``sc://host:port`` (Spark Connect), ``local[2]``, or a live session, which is left
        running.
    folder : path, optional
        A folder that this machine and all workers see. Contributions are kept in a private folder there instead of
        the workers' memory and disks.
    few : int
        Contributions up to this number are brought to this machine and counted here, since a count takes a cluster some
        tenths of a second and remedies ask for many; more stay on the cluster.
    patience : float
        Seconds to wait for the first answer of a server, and of a worker.

    Raises
    ------
    UsageError
        Nobody answers at this address, or a package, Java or a recent Spark is missing.

    Notes
    -----
    Workers need numpy, scipy, pandas, pyarrow, shapely, pyproj and h3 in the versions of this machine, which is
    checked before anything is counted; they need no geodiv.
    """

    def __init__(
        self, where: Any, *, folder: str | Path | None = None, few: int = 2_000_000, patience: float = 120.0
    ) -> None:
        self._few = few
        self._session = session_of(where, patience)
        self._held = Held(self._session, folder)
        self._patience = patience

    def reduce(self, source: Any, spec: VisitSpec, progress: Progress | None = None) -> Contributions:
        """Distinct contributions of the visits; see `Engine`.

        Parquet and CSV files, and Spark data frames, are read by the workers. Whatever else `geodiv.tabulate` takes
        is read here, and what is distinct of it is sent; so are files of which the rejected rows are to be listed,
        since rows have no numbers where a cluster reads them.

        Raises
        ------
        SourceError, UsageError
            As `geodiv.tabulate`; the workers are not what this machine is; the cluster is gone, or out of space.
        """
        with ExitStack() as after_an_error:
            found = self._reduced(source, spec, progress, after_an_error)
            after_an_error.pop_all()
        return found

    def _reduced(
        self, source: Any, spec: VisitSpec, progress: Progress | None, after_an_error: ExitStack
    ) -> Contributions:
        visits, intake = self._visits(source, spec, after_an_error)
        if progress:
            progress("read", intake.rows, intake.rows)
        attributes = len(spec.attributes)
        keys, cells = self._cells(visits, spec)
        values = [self._values(visits, a, attribute) for a, attribute in enumerate(spec.attributes)]
        coded = [cells, *(codes for _, codes in values)]
        handle = self._contributions(visits, coded, intake.counted, after_an_error)
        pairs = []
        for a in range(attributes):
            pairs.append(Pairs(**self._rows(statements.pairs(a, attributes), handle)))
            if int(pairs[a].visits.sum()) != intake.counted:
                raise SourceError(
                    "the visits changed while they were read. Start again, with files that stay as they are."
                )
            if progress:
                progress("count", a + 1, attributes)
        found = Contributions(
            keys=keys,
            spaces=tuple(space for space, _ in values),
            pairs=tuple(pairs),
            persons=self._rows(statements.persons(), handle)["persons"],
            intake=intake,
            handle=handle,
        )
        return self._brought(found, handle)

    def count(self, contributions: Contributions, groups: Groups) -> IntArray:
        """(groups,) distinct persons; see `Engine`.

        Raises
        ------
        UsageError
            The engine was closed after the contributions were reduced.
        """
        if isinstance(contributions.handle, Handle):
            return MemoryEngine().count(contributions, groups)
        if not contributions.handle.held:
            raise UsageError(
                "engine 'spark': expected contributions that are kept, got those of an engine that was closed. "
                "Tabulate again, and close the engine last."
            )
        persons = np.zeros(groups.size, dtype=np.int64)
        if not len(groups.cell):
            return persons
        columns = {"cell": groups.cell, "of_group": groups.group}
        if groups.value is not None:
            columns["value"] = groups.value
        mapping = pa.table({name: pa.array(column, pa.int32()) for name, column in columns.items()})
        found = self._rows(statements.count(groups.attribute), contributions.handle, mapping)
        persons[found["of_group"]] = found["persons"]
        return persons

    def describe(self) -> dict[str, str]:
        """Name and versions; see `Engine`."""
        version = self._session.job(lambda: str(self._session.spark.version))
        return {"name": "spark", "spark": version, "pyarrow": pa.__version__}

    def close(self) -> None:
        """Give up all contributions, and stop the session if it was started here."""
        with explained(self._session.name), uninterrupted():
            try:
                self._held.close(self._session.gone)
            finally:
                self._session.stop()

    def _visits(self, source: Any, spec: VisitSpec, after_an_error: ExitStack) -> tuple[Table, Intake]:
        """Rows as `schema_of` says, held until they are no longer referred to, and the tally."""
        name, texts = self._session.name, spec.grid.parse(np.zeros(0, dtype=object)).dtype == object
        schema = schema_of(len(spec.attributes), texts)

        def ready() -> None:
            if not probe(self._session, spec.grid, self._patience):
                self._held.use_folder()

        given = None if spec.rejects is not None else distributed(source, spec, self._session, ready)
        if given is None:
            parts, intake = whole(source, spec)
            rows = pa.concat_tables(distinct(part, schema) for part in parts)
            visits = self._session.job(
                lambda: self._held.keep(frame_of(self._session.spark, rows), after_an_error)
            )
            return visits, intake
        work = shipped(reduced, given.layout, schema, given.csv)
        visits = self._session.job(
            lambda: self._held.keep(given.frame.mapInArrow(work, sql_of(schema)), after_an_error)
        )
        said = self._session.job(lambda: visits.frame.filter("said IS NOT NULL").select("said").toArrow())
        intake = tally_of(said.column("said").to_pylist(), given.digest)
        if given.rows not in (None, intake.rows):
            raise SourceError(
                f"{name}: expected {given.rows} rows in the files, got {intake.rows} from the cluster. "
                "See that it reads the same files as this machine."
            )
        check(intake, spec)
        return visits, intake

    def _cells(self, visits: Table, spec: VisitSpec) -> tuple[NDArray[Any], pa.Table]:
        """The keys of the occupied cells sorted by id as text, and the position of each."""
        found = self._distinct(visits, "cell")
        texts = found.type == pa.string()
        keys = np.array(found.to_pylist(), dtype=object) if texts else found.to_numpy().astype(np.int64)
        keys = keys[np.argsort(spec.grid.ids(keys).astype(str), kind="stable")]
        return keys, _codes(pa.array(keys, found.type), np.arange(len(keys)))

    def _values(self, visits: Table, a: int, attribute: Any) -> tuple[Any, pa.Table]:
        """The label space of an attribute, and the code of each text of its column."""
        texts = self._distinct(visits, f"v{a}")
        values = attribute.recognise(texts.to_pylist())
        space = attribute.space(values)
        index = {value: i for i, value in enumerate(space.values)}
        return space, _codes(texts, np.array([index[value] for value in values], dtype=np.int64))

    def _distinct(self, visits: Table, column: str) -> pa.ChunkedArray:
        rows = self._session.job(
            lambda: visits.frame.filter("said IS NULL").select(column).distinct().toArrow()
        )
        return rows.column(0)

    def _contributions(
        self, visits: Table, codes: Sequence[pa.Table], counted: int, after_an_error: ExitStack
    ) -> Table:
        """Distinct (cell, values, person) as codes, with their visits: by person, and sorted by cell."""
        parts = min(counted // PART + 1, MOST_PARTS)
        columns = statements.columns(len(codes) - 1)
        coded = columns[:-1]
        taken = [*(f"codes_{column}.code" for column in coded), "visits.person"]
        named = ", ".join(f"{source} AS {column}" for source, column in zip(taken, columns, strict=True))
        joined = " ".join(f"JOIN codes_{c} ON visits.{c} = codes_{c}.name" for c in coded)
        text = (
            f"SELECT {named}, CAST(SUM(visits.visits) AS BIGINT) AS visits FROM visits {joined} "
            f"GROUP BY {', '.join(taken)}"
        )

        def kept() -> Table:
            frames = {f"codes_{c}": self._sent(table) for c, table in zip(coded, codes, strict=True)}
            frames["visits"] = visits.frame.filter("said IS NULL").repartition(parts, "person")
            with self._query(text, frames) as found:
                return self._held.keep(found.sortWithinPartitions("cell"), after_an_error)

        return self._session.job(kept)

    def _brought(self, found: Contributions, table: Table) -> Contributions:
        """The contributions on this machine and no longer on the cluster, if they are few."""
        rows = self._session.job(
            lambda: None if table.frame.count() > self._few else table.frame.drop("visits").toArrow()
        )
        if rows is None:
            return found
        table.drop()
        person = rows.column("person").combine_chunks().dictionary_encode()
        cell, *values = (
            rows.column(name).to_numpy().astype(np.int64)
            for name in statements.columns(len(found.spaces))[:-1]
        )
        codes, persons = person.indices.to_numpy(zero_copy_only=False), len(person.dictionary)
        return replace(found, handle=handle_of(cell, values, codes, persons, len(found.keys), found.spaces))

    def _rows(
        self, statement: str, contributions: Table, mapping: pa.Table | None = None
    ) -> dict[str, IntArray]:
        """The columns of what a statement gives: (rows,) int64 each."""
        statement = re.sub(r"\bcontributions\b", contributions.name, statement)

        def asked() -> pa.Table:
            sent = {} if mapping is None else {"mapping": self._sent(mapping)}
            with self._query(statement, sent) as query:
                return query.toArrow()

        found = self._session.job(asked)
        return {name: found.column(name).to_numpy().astype(np.int64) for name in found.column_names}

    @contextmanager
    def _query(self, text: str, frames: Mapping[str, Any]) -> Iterator[Any]:
        """What a statement gives, while the tables that it names stand there under names of their own.

        Spark's own way of naming data frames in a statement gives up what is held of them.
        """
        spark, names = self._session.spark, {name: new_name() for name in frames}
        try:
            for name, frame in frames.items():
                frame.createOrReplaceTempView(names[name])
                text = re.sub(rf"\b(FROM|JOIN) {name}\b(?! AS)", rf"\1 {names[name]} AS {name}", text)
                text = re.sub(rf"\b(FROM|JOIN) {name} AS", rf"\1 {names[name]} AS", text)
            yield spark.sql(text)
        finally:
            for name in names.values():
                spark.catalog.dropTempView(name)

    def _sent(self, table: pa.Table) -> Any:
        """A small table, for all workers."""
        return frame_of(self._session.spark, table).hint("broadcast")


def _codes(names: pa.Array | pa.ChunkedArray, codes: NDArray[Any]) -> pa.Table:
    return pa.table({"name": names, "code": pa.array(codes, pa.int32())})
