"""Reading: batches of visits from a source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

from ..sources import open_source
from ..sources.fingerprint import Fingerprint
from ..sources.source import plain_types
from .faults import Rejects
from .spec import VisitSpec
from .table import Layout, VisitBatch, visits_of
from .tally import Intake, check


def whole(source: Any, spec: VisitSpec) -> tuple[list[VisitBatch], Intake]:
    """Every batch of a source, read whole, and the tally of all its rows.

    Raises
    ------
    SourceError, GridError
        As `batches`, and as `check` when rows cannot be counted and `spec` does not skip them.
    """
    parts = list(batches(source, spec, rows_per_batch=None))
    intake = reduce(add, (part.intake for part in parts))
    check(intake, spec)
    return parts, intake


def batches(source: Any, spec: VisitSpec, *, rows_per_batch: int | None) -> Iterator[VisitBatch]:
    """The visits of any source, in order, in batches; at least one, which may be empty.

    Parameters
    ----------
    source : path, glob, folder, list of paths, ``"-"``, frame or Source
        See `geodiv.sources.open_source`.
    spec : VisitSpec
    rows_per_batch : int or None
        Rows read at a time; None reads a frame or a file whole. A batch never spans two files.

    Yields
    ------
    VisitBatch
        Rows that cannot be counted are gone and tallied in its ``intake``; these add up to the whole tally.

    Raises
    ------
    SourceError
        The source cannot be read, lacks a column or a CRS, or holds other geometries than points.

    Examples
    --------
    >>> import pandas as pd
    >>> from geodiv.grids.column import ColumnGrid
    >>> visits = pd.DataFrame({"who": [7.0, None], "cell": ["c-41", "c-58"]})
    >>> spec = VisitSpec(person="who", grid=ColumnGrid("cell"))
    >>> [batch] = batches(visits, spec, rows_per_batch=None)
    >>> batch.person.to_pylist(), batch.key, batch.intake.dropped
    (['7'], array(['c-41'], dtype=object), {'no person': 1})
    """
    opened = open_source(source, spec.layer)
    layout = Layout.of(opened, spec)
    with Rejects(spec.rejects) as rejects:
        digest = opened.digest()
        fingerprint = None if digest else Fingerprint()
        held: VisitBatch | None = None
        rows, total = 0, Intake(rows=0, counted=0)
        for table in opened.batches(layout.columns, rows_per_batch):
            if held is not None:
                yield held
            table = plain_types(table)
            held, faults = visits_of(table, layout)
            first = rejects.first_rows(faults, opened, rows)
            held = replace(held, intake=replace(held.intake, first_rows=first))
            if fingerprint is not None:
                fingerprint.update(table)
            rows, total = rows + table.num_rows, total + held.intake
            del table
        assert held is not None
        if fingerprint is not None:
            digest = fingerprint.hexdigest()
        if spec.rejects is not None:
            check(total, spec)  # before the list of rows takes the place of an earlier one
        held = replace(held, intake=replace(held.intake, digest=digest or ""))
    yield held
