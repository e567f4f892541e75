"""Feed: the visits of a source as Arrow record batches with small codes, given to who counts them.

Batches are read in the thread that asks for them, where Ctrl-C and callbacks arrive and PROJ's objects are at
home; who counts them runs in a thread beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from queue import Full, Queue
from typing import Any

import pyarrow as pa

from ..intake import Intake, VisitSpec, batches
from .background import in_background
from .codes import CellCodes, ValueCodes
from .protocol import Progress
from .statements import columns

_END, _STOP = object(), object()
_PATIENCE = 0.1
"""Seconds after which a full queue is looked at again: who takes from it may have failed."""


class Feed:
    """A stream of visits, and what is known once it has been read.

    Parameters
    ----------
    source, spec, progress
        As for `Engine.reduce`.
    rows_per_batch : int

    Attributes
    ----------
    cells : CellCodes
    values : tuple over attributes of ValueCodes
    intake : Intake
        The tally of what has been read so far.
    """

    def __init__(
        self, source: Any, spec: VisitSpec, rows_per_batch: int, progress: Progress | None = None
    ) -> None:
        self._source, self._spec, self._rows_per_batch = source, spec, rows_per_batch
        self._progress = progress
        self.cells = CellCodes()
        self.values = tuple(ValueCodes(attribute) for attribute in spec.attributes)
        self.intake = Intake(rows=0, counted=0)

    def to(self, consume: Callable[[pa.RecordBatchReader], None], cancel: Callable[[], None]) -> None:
        """Read the visits for who counts them. An error on either side ends the other and is raised.

        Parameters
        ----------
        consume : callable
            Called in another thread with a reader of cell and a value of each attribute as int32 codes, and the
            person as text.
        cancel : callable
            Makes `consume` end early; see `in_background`.
        """
        handed: Queue[Any] = Queue(maxsize=1)
        reader = pa.RecordBatchReader.from_batches(self._schema, _taken(handed))

        def end() -> None:
            with suppress(Full):
                handed.put_nowait(_STOP)
            cancel()

        def read(consumed: Future[None]) -> None:
            for batch in self._batches():
                if not _put(handed, batch, consumed):
                    return
            _put(handed, _END, consumed)

        in_background(lambda: consume(reader), end, read)

    @property
    def _schema(self) -> pa.Schema:
        text = pa.dictionary(pa.int32(), pa.large_string())
        names = columns(len(self.values))
        return pa.schema([(name, text if name == "person" else pa.int32()) for name in names])

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for batch in batches(self._source, self._spec, rows_per_batch=self._rows_per_batch):
            self.intake += batch.intake
            values = [codes.of(texts) for codes, texts in zip(self.values, batch.values, strict=True)]
            arrays = [pa.array(column) for column in (self.cells.of(batch.key), *values)]
            yield pa.RecordBatch.from_arrays([*arrays, batch.person], schema=self._schema)
            if self._progress:
                self._progress("read", self.intake.rows, 0)


def _taken(handed: Queue[Any]) -> Iterator[pa.RecordBatch]:
    while (batch := handed.get()) is not _END:
        if batch is _STOP:
            raise RuntimeError("the visits could not be read to their end")
        yield batch


def _put(handed: Queue[Any], batch: Any, consumed: Future[None]) -> bool:
    """Hand a batch over, waiting for room; False when nobody takes any more."""
    while not consumed.done():
        with suppress(Full):
            handed.put(batch, timeout=_PATIENCE)
            return True
    return False
