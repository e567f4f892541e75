"""Codes: small numbers for keys and texts that come in batches, in the order in which they first come."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from ..attribute import Attribute
from ..grids.protocol import Grid
from ..labels import LabelSpace


class Codes:
    """A code for each thing, from 0."""

    def __init__(self) -> None:
        self._code: dict[Hashable, int] = {}

    def of(self, things: Sequence[Any]) -> NDArray[np.int32]:
        """(things,) int32; what is new gets the next code."""
        known = self._code
        return np.fromiter((known.setdefault(t, len(known)) for t in things), np.int32, len(things))

    @property
    def things(self) -> list[Any]:
        """The things in the order of their codes."""
        return list(self._code)


class CellCodes:
    """Codes of grid keys."""

    def __init__(self) -> None:
        self._codes = Codes()
        self._dtype: np.dtype[Any] = np.dtype(np.int64)

    def of(self, keys: NDArray[Any]) -> NDArray[np.int32]:
        """(rows,) int32 codes of the key of each row."""
        self._dtype = keys.dtype
        code, found = pd.factorize(keys)
        return self._codes.of(found.tolist())[code]

    def sorted(self, grid: Grid) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """(cells,) position of each code among the keys sorted by id as text, and these keys."""
        keys = np.array(self._codes.things, dtype=self._dtype)
        order = np.argsort(grid.ids(keys).astype(str), kind="stable")
        position = np.empty(len(keys), dtype=np.int64)
        position[order] = np.arange(len(keys))
        return position, keys[order]


class ValueCodes:
    """Codes of the declared values of an attribute."""

    def __init__(self, attribute: Attribute) -> None:
        self._attribute = attribute
        self._codes = Codes()

    def of(self, texts: pa.DictionaryArray) -> NDArray[np.int32]:
        """(rows,) int32 codes of the value of each row; its dictionary holds no text that does not occur."""
        code = self._codes.of(self._attribute.recognise(texts.dictionary.to_pylist()))
        return code[texts.indices.to_numpy(zero_copy_only=False)]

    def space(self) -> tuple[NDArray[np.int64], LabelSpace]:
        """(codes,) position of each code among the values of the label space, and that space."""
        values = self._codes.things
        space = self._attribute.space(values)
        index = {value: i for i, value in enumerate(space.values)}
        return np.array([index[value] for value in values], dtype=np.int64), space
