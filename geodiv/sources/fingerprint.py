"""Fingerprint: a digest of the columns that were read of a frame, which has no bytes of its own as a file has."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

STEP = 1 << 16
"""Rows hashed at a time; another number would give other digests."""


class Fingerprint:
    """sha256 of names, types and values of some tables of the same columns, in order, however they were cut.

    Texts are hashed as texts, whether a dictionary holds them or not.

    Examples
    --------
    >>> whole, parts = Fingerprint(), Fingerprint()
    >>> whole.update(pa.table({"a": ["x", None, "y"]}))
    >>> parts.update(pa.table({"a": ["x"]}))
    >>> parts.update(pa.table({"a": [None, "y"]}).cast(pa.schema([("a", pa.string())])))
    >>> whole.hexdigest() == parts.hexdigest()
    True
    """

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._held: pa.Table | None = None

    def update(self, table: pa.Table) -> None:
        """Take one more table."""
        if self._held is None:
            for field in table.schema:
                self._hash.update(f"{field.name}\0{_sort(field.type)}\0".encode())
        else:
            table = pa.concat_tables([self._held, table], promote_options="permissive")
        whole = table.num_rows // STEP * STEP
        self._take(table.slice(0, whole))
        self._held = table.slice(whole)

    def hexdigest(self) -> str:
        """The digest of all tables; call it once, at the end."""
        if self._held is not None:
            self._take(self._held)
        return self._hash.hexdigest()

    def _take(self, table: pa.Table) -> None:
        for start in range(0, table.num_rows, STEP):
            for column in table.slice(start, STEP).columns:
                for part in _parts(column.combine_chunks()):
                    self._hash.update(part)


def _sort(kind: pa.DataType) -> str:
    """A name for types whose values are hashed alike."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if "string" in str(kind) and not pa.types.is_nested(kind):
        return "text"
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return "integer"
    return "float" if pa.types.is_floating(kind) else str(kind)


def _parts(array: pa.Array) -> Iterator[Any]:
    """Bytes that depend on the values alone, not on what lies in the buffers beside or below nulls."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        yield from _parts(array.storage)
    elif pa.types.is_dictionary(kind):
        yield from _parts(array.dictionary_decode())
    elif pa.types.is_struct(kind):
        yield _bytes(array.is_valid(), np.uint8)
        for child in array.flatten():
            yield from _parts(child)
    elif pa.types.is_fixed_size_list(kind):
        yield _bytes(array.is_valid(), np.uint8)
        yield from _parts(array.flatten())
    elif _sort(kind) in ("text", "binary", "large_binary"):
        yield from _texts(array.cast(pa.large_binary()))
    elif _sort(kind) in ("integer", "float", "bool") or pa.types.is_temporal(kind):
        yield _bytes(array.is_valid(), np.uint8)
        plain = array.cast(pa.int32()) if kind.bit_width == 32 and pa.types.is_temporal(kind) else array
        number = pa.float64() if pa.types.is_floating(kind) else pa.int64()
        yield _bytes(plain.cast(number).fill_null(0), np.dtype(number.to_pandas_dtype()))
    else:
        yield repr(array.to_pylist()).encode()


def _texts(array: pa.Array) -> Iterator[Any]:
    """Lengths, -1 for null, and then the bytes of all."""
    yield _bytes(pc.binary_length(array).fill_null(-1), np.int64)
    filled = array.fill_null(b"") if array.null_count else array
    if len(filled):
        _, offsets, data = filled.buffers()
        ends = np.frombuffer(offsets, np.int64)[filled.offset : filled.offset + len(filled) + 1]
        yield memoryview(data)[ends[0] : ends[-1]] if data is not None else b""


def _bytes(array: pa.Array, kind: Any) -> Any:
    return np.ascontiguousarray(array.to_numpy(zero_copy_only=False), dtype=kind)
