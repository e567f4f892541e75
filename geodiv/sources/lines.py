"""On which line of a text table each row starts: rows may hold line breaks, and blank lines are no rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .source import BLOCK, IntArray

QUOTE, NEWLINE, RETURN = 34, 10, 13


class Lines:
    """Line numbers of rows. It reads on where it stopped, so that ascending questions cost one pass.

    Parameters
    ----------
    stream : function
        Opens the table as a stream of bytes.
    """

    def __init__(self, stream: Callable[[], Any]) -> None:
        self._stream = stream
        self._blocks: Iterator[IntArray] = iter(())
        self._start = 0
        self._lines: IntArray | None = None

    def at(self, positions: IntArray) -> IntArray:
        """Line, from 1, on which each row starts.

        Parameters
        ----------
        positions : (rows,) int64
            Ascending, 0 for the first row under the header.
        """
        found = np.asarray(positions, dtype=np.int64) + 2
        done = 0
        while done < len(positions):
            if self._lines is None or positions[done] < self._start:
                self._blocks, self._start = _row_lines(self._stream), 0
                self._lines = next(self._blocks, np.zeros(0, np.int64))
            end = self._start + len(self._lines)
            stop = int(np.searchsorted(positions, end))
            found[done:stop] = self._lines[positions[done:stop] - self._start]
            done = stop
            if done < len(positions):
                following = next(self._blocks, None)
                if following is None:
                    self._lines = None
                    return found
                self._start, self._lines = end, following
        return found


def _row_lines(stream: Callable[[], Any]) -> Iterator[IntArray]:
    """Lines on which the rows under the header start, block by block."""
    header = True
    for lines in _record_lines(stream):
        if header and len(lines):
            lines, header = lines[1:], False
        yield lines


def _record_lines(stream: Callable[[], Any]) -> Iterator[IntArray]:
    """Lines on which the records that are not blank start, the header among them, block by block."""
    line, length, quoted, last = 1, 0, 0, NEWLINE
    passed = 0
    with stream() as file:
        while True:
            block = file.read(BLOCK)
            ended = not block
            data = np.frombuffer(block if block else b"\n", dtype=np.uint8)
            if ended and last == NEWLINE and passed == 0:
                return
            breaks = np.flatnonzero(data == NEWLINE)
            quotes = np.flatnonzero(data == QUOTE)
            outside = (quoted + np.searchsorted(quotes, breaks)) % 2 == 0
            ends, numbers = breaks[outside], np.flatnonzero(outside)
            before = np.where(ends > 0, data[ends - 1], last) if len(ends) else data[:0]
            sizes = np.diff(ends, prepend=-1 - passed) - 1
            starts = line + np.concatenate(([0], numbers[:-1] + 1)) if len(ends) else numbers
            starts[:1] -= length
            blank = (sizes == 0) | ((sizes == 1) & (before == RETURN))
            yield starts[~blank]
            if ended:
                return
            open_breaks = len(breaks) - (int(numbers[-1]) + 1 if len(ends) else 0)
            length = open_breaks + (0 if len(ends) else length)
            passed = len(data) - (int(ends[-1]) + 1) if len(ends) else passed + len(data)
            line += len(breaks)
            quoted = (quoted + len(quotes)) % 2
            last = int(data[-1])
