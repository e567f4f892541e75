"""Arrow tables of this machine as Spark data frames."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pyarrow as pa

PIECE = 32 << 20
"""Bytes that are sent at a time."""

KINDS = {pa.string(): "string", pa.int32(): "int", pa.int64(): "bigint"}


def sql_of(schema: pa.Schema) -> str:
    """A schema as Spark writes it.

    Examples
    --------
    >>> sql_of(pa.schema([("cell", pa.int64()), ("person", pa.string())]))
    'cell bigint, person string'
    """
    return ", ".join(f"{field.name} {KINDS[field.type]}" for field in schema)


def frame_of(spark: Any, table: pa.Table) -> Any:
    """A data frame of a table, sent in pieces: a server takes messages of a limited size only."""
    rows = max(1, table.num_rows * PIECE // max(table.nbytes, 1))
    starts = range(0, max(table.num_rows, 1), rows)
    schema = sql_of(table.schema)
    frames = [spark.createDataFrame(table.slice(start, rows).combine_chunks(), schema) for start in starts]
    return reduce(lambda one, other: one.unionAll(other), frames)
