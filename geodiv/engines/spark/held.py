"""Tables that the cluster holds for an engine, and gives up when they are no longer needed. They are personal data."""

from __future__ import annotations

import os
import weakref
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

from ...errors import UsageError
from ...interrupts import uninterrupted
from ...leftovers import remove
from ..folder import checked_folder, private_folder, remove_folder
from .failures import kinds
from .session import Session


class Table:
    """A table on the cluster, held until it is dropped or no longer referred to.

    Parameters
    ----------
    spark : SparkSession
    name : str
        Of a temporary view. Dropping the view gives up what is held for it.
    path : Path or None
        The folder that holds its rows; None when the workers do.
    """

    def __init__(self, spark: Any, name: str, path: Path | None) -> None:
        self.name = name
        self._spark = spark
        self.drop = weakref.finalize(self, _drop, spark, name, path, os.getpid())
        self.drop.atexit = False

    @property
    def frame(self) -> Any:
        """The table as a data frame."""
        return self._spark.table(self.name)

    @property
    def held(self) -> bool:
        """Whether it is still there."""
        return self.drop.alive


class Held:
    """Tables held in the memory and on the disks of the workers, or in a private folder where these hold none.

    Parameters
    ----------
    session : Session
    folder : path, optional
        Where the private folder is made: this machine and all workers see it. Unless given, it is the folder for
        temporary files, and only used when the server holds no tables itself.
    """

    def __init__(self, session: Session, folder: str | Path | None) -> None:
        self._session = session
        self._within = None if folder is None else checked_folder(folder, "spill folder")
        self._remove: weakref.finalize[Any, Any] | None = None
        self._folder: Path | None = None
        self._tables: weakref.WeakSet[Table] = weakref.WeakSet()

    def use_folder(self) -> None:
        """From now on hold tables in a folder: this server takes the wish to hold one, and does not.

        Raises
        ------
        UsageError
            The server runs on another machine, and no folder was given.
        SourceError
            The folder cannot be made.
        """
        if self._folder is not None:
            return
        if self._within is None and not self._session.near:
            raise UsageError(
                f"{self._session.name} holds no tables between two queries. Name a spill folder that this machine "
                "and the server see: --spill-folder, or SparkEngine(address, folder=...)."
            )
        self._folder = private_folder(self._within or checked_folder(None, "spill folder"))
        self._remove = weakref.finalize(self, remove_folder, self._folder, os.getpid())

    def keep(self, frame: Any, after_an_error: ExitStack) -> Table:
        """The same table, computed once and held; dropped when `after_an_error` unwinds."""
        if self._within is not None:
            self.use_folder()
        name, path = new_name(), None
        with ExitStack() as half_made:
            if self._folder is None:
                kept = frame.persist()
                half_made.callback(kept.unpersist)
            else:
                path = self._folder / name
                half_made.callback(remove, path)
                frame.write.parquet(f"file://{path}")
                kept = self._session.spark.read.schema(frame.schema).parquet(f"file://{path}")
            table = Table(self._session.spark, name, path)
            kept.createOrReplaceTempView(name)
            self._tables.add(table)
            after_an_error.callback(table.drop)
            half_made.pop_all()
        return table

    def close(self, gone: bool) -> None:
        """Drop all tables, unless the server is gone and they with it, and remove the folder."""
        try:
            for table in list(self._tables):
                table.drop.detach() if gone else table.drop()
        finally:
            if self._remove is not None:
                self._remove()
            self._folder = None


def new_name() -> str:
    """A name that no other view of the session has."""
    return f"geodiv_{uuid4().hex}"


def _drop(spark: Any, name: str, path: Path | None, process: int) -> None:
    if os.getpid() != process:
        return
    with uninterrupted():
        try:
            spark.catalog.dropTempView(name)
        except kinds():
            pass  # the cluster is gone, and the table with it
        if path is not None:
            remove(path)
