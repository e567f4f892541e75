"""What runs on the workers: batches of visits to distinct rows, and a word on the worker itself.

Whatever a worker has to say comes back as a row: a tally, or what is wrong with the visits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from pyproj import CRS

from ...errors import GeodivError, SourceError
from ...grids.protocol import Grid
from ...intake.coordinates import WGS84, reproject
from ...intake.table import Layout, VisitBatch, visits_of
from ...intake.tally import Intake
from ...sources.source import plain_types, regroup

ROWS = 1 << 17
"""Rows that are reduced at a time."""
IDS = (
    "882A100D67FFFFF",
    "0x882a100d67fffff",
    "613229524246593535",
    " c-41 ",
    "CRS3035RES500mN2599500E4695000",
    "",
)
"""Ids of cells, as visits may carry them."""


def schema_of(attributes: int, texts: bool) -> pa.Schema:
    """Rows of a worker.

    Parameters
    ----------
    attributes : int
    texts : bool
        Whether the grid's keys are texts.

    Returns
    -------
    Schema
        said (a word of the worker, as JSON; then all else is null), cell, person, v0, v1, ... and visits.
    """
    values = [(f"v{i}", pa.string()) for i in range(attributes)]
    cell = pa.string() if texts else pa.int64()
    return pa.schema(
        [("said", pa.string()), ("cell", cell), ("person", pa.string()), *values, ("visits", pa.int64())]
    )


def reduced(
    batches: Iterator[pa.RecordBatch], layout: Layout, schema: pa.Schema, csv: bool
) -> Iterator[pa.RecordBatch]:
    """Distinct (cell, person, values) of each `ROWS` visits, with their number, and the tally.

    Parameters
    ----------
    batches : iterator of RecordBatch
        With the columns of `layout`, in its order.
    layout : Layout
    schema : Schema
        As `schema_of` gives it.
    csv : bool
        Whether the visits come of text files, in which an empty field is a missing value.
    """
    columns = layout.columns
    parts = (pa.Table.from_batches([batch]).rename_columns(columns) for batch in batches)
    try:
        kind = pa.string() if csv else pa.null()
        for table in regroup(parts, pa.schema([(column, kind) for column in columns]), ROWS):
            table = plain_types(_from_text(table) if csv else table)
            batch, _ = visits_of(table, layout)
            yield _said({"tally": asdict(batch.intake)}, schema)
            yield from distinct(batch, schema).to_batches()
    except GeodivError as error:
        yield _said({"error": str(error)}, schema)
        for _ in batches:
            pass  # Spark goes on writing until all is read


def distinct(batch: VisitBatch, schema: pa.Schema) -> pa.Table:
    """Distinct (cell, person, values) of a batch, with the number of visits of each."""
    cells = pa.array(batch.key, schema.field("cell").type).dictionary_encode()
    encoded = [cells, batch.person, *batch.values]
    names = [name for name in schema.names if name not in ("said", "visits")]
    codes = pa.table([column.indices for column in encoded], names=names)
    groups = codes.group_by(names, use_threads=False).aggregate([([], "count_all")])
    columns = [
        column.dictionary.take(groups.column(name)).cast(schema.field(name).type)
        for name, column in zip(names, encoded, strict=True)
    ]
    said = pa.nulls(groups.num_rows, pa.string())
    return pa.table([said, *columns, groups.column("count_all")], schema=schema)


def tally_of(said: list[str], digest: str) -> Intake:
    """The tally of all batches, from what the workers said of them; it names no rows.

    Raises
    ------
    SourceError
        A worker met visits that cannot be read as what they are said to be.
    """
    words = [json.loads(text) for text in sorted(said)]
    for word in words:
        if "error" in word:
            raise SourceError(word["error"])
    total = Intake(rows=0, counted=0, digest=digest)
    for word in words:
        tally = word["tally"]
        total += Intake(**{**tally, "remarks": tuple(tally["remarks"])})
    return replace(total, first_rows={})


def _said(word: dict[str, Any], schema: pa.Schema) -> pa.RecordBatch:
    nothing = [pa.nulls(1, field.type) for field in schema]
    nothing[0] = pa.array([json.dumps(word)], pa.string())
    return pa.RecordBatch.from_arrays(nothing, schema=schema)


def _from_text(table: pa.Table) -> pa.Table:
    """Columns of a text file: an empty field is null, and bytes that were no UTF-8 are an error."""
    columns = []
    table = table.combine_chunks()  # pyarrow 22 and older fail to choose from slices
    for name in table.column_names:
        column = table.column(name)
        if pc.any(pc.match_substring(column, "\ufffd")).as_py():
            raise SourceError(
                f"expected UTF-8 text in column {name!r}, got bytes that are none, or the sign for them (U+FFFD). "
                "Save the file as UTF-8."
            )
        columns.append(pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column))
    return pa.table(columns, names=table.column_names)


def about(batches: Iterator[pa.RecordBatch], cells: bytes) -> Iterator[pa.RecordBatch]:
    """For each batch, the versions of this worker's packages, the cells of a sample, and a word of its own.

    Parameters
    ----------
    batches : iterator of RecordBatch
    cells : bytes
        `sampled` and a grid, pickled; it is not touched where a package is missing.
    """
    import os
    import pickle

    for _ in batches:
        found = versions()
        sample, grid = (None, None) if "" in found.values() else pickle.loads(cells)
        word = {"versions": found, "cells": sample and sample(grid), "word": os.urandom(8).hex()}
        yield pa.RecordBatch.from_pydict({"said": [json.dumps(word)]})


def versions() -> dict[str, str]:
    """Versions of what decides cells and texts; empty for a package that is not there."""
    import importlib
    import platform

    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in ("numpy", "scipy", "pandas", "pyarrow", "shapely", "pyproj", "h3"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            found[name] = ""
        else:
            found[name] = str(module.__version__)
            inside = {"pyproj": "proj_version_str", "shapely": "geos_version_string"}.get(name)
            if inside:
                found[f"{name}'s library"] = str(getattr(module, inside))
    return found


def sampled(grid: Grid) -> list[str]:
    """Keys, as text, of places all over the world, where the grid's CRS is made for, and inside zones; or of ids."""
    if grid.column is not None:
        return [str(key) for key in grid.parse(np.array(IDS, dtype=object))]
    crs = CRS.from_user_input(grid.crs)
    lon, lat = np.meshgrid(np.arange(-150.5, 180, 30), np.arange(-60.25, 90, 30))
    west, south, east, north = crs.area_of_use.bounds if crs.area_of_use is not None else (0, 0, 0, 0)
    x, y = reproject(
        np.append(lon, np.linspace(west, east, 9)[1:-1]),
        np.append(lat, np.linspace(south, north, 9)[1:-1]),
        WGS84,
        crs,
    )
    there = np.isfinite(x) & np.isfinite(y)
    inside = shapely.point_on_surface(getattr(grid, "shapes", np.zeros(0, dtype=object))[:100])
    x, y = np.append(x[there], shapely.get_x(inside)), np.append(y[there], shapely.get_y(inside))
    try:
        return [str(key) for key in grid.locate(x, y)]
    except GeodivError as error:
        return [type(error).__name__]
