"""A column of any type as text: distinct texts by the rules of `geodiv.text`, and a code per row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..errors import SourceError
from ..text import MISSING, as_text

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class TextColumn:
    """Codes into distinct texts.

    Parameters
    ----------
    codes : (rows,) int32
        Position in `texts`; -1 for null, None, NaN and NA.
    texts : (distinct,) Arrow large_string
        Distinct texts; some may have no row.
    """

    codes: NDArray[np.int32]
    texts: pa.Array

    @classmethod
    def of(cls, column: pa.ChunkedArray, name: str) -> TextColumn:
        """The texts of a column; only its distinct values are converted.

        Raises
        ------
        SourceError
            The column holds lists, structs or bytes that are no text in UTF-8.
        """
        try:
            encoded = _encoded(column, name)
            texts = _texts(encoded.dictionary)
            texts.validate(full=True)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError) as error:
            if _textual(column.type):
                raise _no_text(name) from error
            raise SourceError(
                f"expected values that can be written as text in column {name!r}, got {column.type}."
            ) from error
        codes = encoded.indices.cast(pa.int32())
        codes = np.asarray(codes.fill_null(-1) if codes.null_count else codes)
        return TextColumn(codes, texts) if _sure(column.type) else _distinct(codes, texts)

    def where(self, kept: BoolArray | None) -> TextColumn:
        """The rows that are kept (None: all)."""
        return self if kept is None else TextColumn(self.codes[kept], self.texts)

    def blank(self) -> BoolArray:
        """(rows,) bool: nothing there, or white space only."""
        empty = pc.equal(pc.utf8_length(pc.utf8_trim_whitespace(self.texts)), 0)
        return np.append(np.asarray(empty.fill_null(True)).astype(bool), True)[self.codes]

    def filled(self) -> TextColumn:
        """With the text ``(missing)`` where there is nothing."""
        if not (self.codes < 0).any():
            return self
        at = pc.index(self.texts, MISSING).as_py()
        texts = (
            self.texts if at >= 0 else pa.concat_arrays([self.texts, pa.array([MISSING], pa.large_string())])
        )
        at = at if at >= 0 else len(texts) - 1
        return TextColumn(np.where(self.codes < 0, np.int32(at), self.codes), texts)

    def dictionary(self) -> pa.DictionaryArray:
        """As an Arrow array whose dictionary holds the texts that occur, and no others."""
        used = np.bincount(self.codes, minlength=len(self.texts)) > 0
        codes, texts = self.codes, self.texts
        if not used.all():
            codes = (np.cumsum(used, dtype=np.int32) - 1)[codes]
            texts = texts.filter(pa.array(used))
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), texts)


def check_encoding(column: pa.ChunkedArray, name: str) -> None:
    """Raise a SourceError where a column of text holds bytes that are no UTF-8; other columns are not looked at."""
    if _textual(column.type):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise _no_text(name) from error


def _no_text(name: str) -> SourceError:
    return SourceError(
        f"expected text in UTF-8 in column {name!r}, got bytes that are not. Write the column anew as UTF-8."
    )


def _encoded(column: pa.ChunkedArray, name: str) -> pa.DictionaryArray:
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _encoded_extension(column, name)
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_nested(value) or pa.types.is_fixed_size_list(value):
        raise SourceError(
            f"expected plain values in column {name!r}, got {column.type}. "
            "Give each visit one row and one value."
        )
    if pa.types.is_null(value) or not len(column):
        nothing = pa.array(np.full(len(column), -1, np.int32), mask=np.ones(len(column), bool))
        return pa.DictionaryArray.from_arrays(nothing, pa.array([], pa.large_string()))
    return (column if pa.types.is_dictionary(kind) else column.dictionary_encode()).combine_chunks()


def _encoded_extension(column: pa.ChunkedArray, name: str) -> pa.DictionaryArray:
    stored = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    encoded = _encoded(stored, name)
    values = pa.ExtensionArray.from_storage(column.type, encoded.dictionary).to_pylist()
    texts = pa.array([as_text(value) for value in values], pa.large_string())
    return pa.DictionaryArray.from_arrays(encoded.indices, texts)


def _texts(values: pa.Array) -> pa.Array:
    """The text of each value, null where it is missing."""
    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return values.cast(pa.large_string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return values.cast(pa.large_binary()).cast(pa.large_string())
    texts = [as_text(value) for value in values.to_pylist()]
    return pa.array([None if text == MISSING else text for text in texts], pa.large_string())


def _textual(kind: pa.DataType) -> bool:
    """Whether a type promises text."""
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return str(value) in ("string", "large_string", "string_view")


def _sure(kind: pa.DataType) -> bool:
    """Whether values that were just encoded are different texts without nulls, since they were different values."""
    return bool(pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _distinct(codes: NDArray[np.int32], texts: pa.Array) -> TextColumn:
    """Equal texts made one, and null texts made the code -1."""
    if texts.null_count == 0 and pc.count_distinct(texts).as_py() == len(texts):
        return TextColumn(codes, texts)
    encoded = texts.dictionary_encode()
    to = np.append(np.asarray(encoded.indices.fill_null(-1)).astype(np.int32), np.int32(-1))
    return TextColumn(to[codes], encoded.dictionary)
