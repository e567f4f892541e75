"""On which line of a text table each row starts: rows may hold line breaks, and blank lines are no rows."""

from __future__ import annotations

import csv
import io
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from .source import BLOCK, IntArray

PIECE = 1 << 16
NEWLINE, RETURN, QUOTE = b'\n\r"'


class Lines:
    """Line numbers of rows. It reads on where it stopped, so that ascending questions cost one pass.

    Parameters
    ----------
    stream : function
        Opens the table as a stream of bytes.
    delimiter : str
    """

    def __init__(self, stream: Callable[[], Any], delimiter: str) -> None:
        self._stream, self._delimiter = stream, delimiter
        self._start = 0
        self._lines: IntArray | None = None
        self._following: Iterator[IntArray] = iter(())

    def at(self, positions: IntArray) -> IntArray:
        """Line, from 1, on which each row starts: (rows,) int64.

        Parameters
        ----------
        positions : (rows,) int64
            Ascending, 0 for the first row under the header.
        """
        found = np.zeros(len(positions), dtype=np.int64)
        done = 0
        while done < len(positions):
            if self._lines is None or positions[done] < self._start:
                self._following, self._start = self._rows(), 0
                self._lines = next(self._following)
            end = self._start + len(self._lines)
            stop = int(np.searchsorted(positions, end))
            found[done:stop] = self._lines[positions[done:stop] - self._start]
            done = stop
            if done < len(positions):
                self._start, self._lines = end, next(self._following)
        return found

    def _rows(self) -> Iterator[IntArray]:
        """Lines on which the rows start, in pieces."""
        given = 0
        try:
            for lines in _regular(self._stream, self._delimiter):
                yield lines[1:] if not given else lines
                given += len(lines)
        except _Irregular:
            yield from _irregular(self._stream, self._delimiter, given)


class _Irregular(Exception):
    """Quotes within a field that has none around it, or lines that end otherwise than in a line feed."""


def _regular(stream: Callable[[], Any], delimiter: str) -> Iterator[IntArray]:
    """Lines on which records start that are not blank, the header's among them; a few array steps a block."""
    line, rest = 1, b""
    with stream() as file:
        if (first := file.read(len(BOM_UTF8))) != BOM_UTF8:
            rest = first
        while block := file.read(BLOCK):
            data = rest + block
            starts, passed, length = _starts(data, delimiter)
            if len(starts):
                yield starts + line
            line, rest = line + passed, data[length:]
    if rest.strip(b"\r"):
        yield np.array([line])


def _starts(data: bytes, delimiter: str) -> tuple[IntArray, int, int]:
    """Of whole records: line breaks before those not blank, line breaks in all of them, and their length."""
    text = np.frombuffer(data, dtype=np.uint8)
    breaks, quotes = np.flatnonzero(text == NEWLINE), np.flatnonzero(text == QUOTE)
    returns = np.flatnonzero(text[:-1] == RETURN)
    opening = quotes[::2]
    before = text[opening[opening > 0] - 1]
    if (text[returns + 1] != NEWLINE).any() or not np.isin(before, [*b'\n\r"', ord(delimiter)]).all():
        raise _Irregular
    outside = np.flatnonzero(np.searchsorted(quotes, breaks) % 2 == 0)
    if not len(outside):
        return outside, 0, 0
    ends = breaks[outside]
    begins = np.append(0, ends[:-1] + 1)
    blank = (ends == begins) | ((ends == begins + 1) & (text[begins] == RETURN))
    return np.append(0, outside[:-1] + 1)[~blank], int(outside[-1]) + 1, int(ends[-1]) + 1


def _irregular(stream: Callable[[], Any], delimiter: str, given: int) -> Iterator[IntArray]:
    """Lines on which rows start, after the first `given` records; record by record."""
    with stream() as raw:
        rows = csv.reader(io.TextIOWrapper(raw, "utf-8-sig", newline=""), delimiter=delimiter)
        lines = islice(_record_lines(rows), max(given, 1), None)
        while piece := list(islice(lines, PIECE)):
            yield np.array(piece)


def _record_lines(rows: Any) -> Iterator[int]:
    start = 1
    for row in rows:
        if row:
            yield start
        start = rows.line_num + 1
