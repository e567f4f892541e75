"""Faults: why each row of a batch is not counted, and the file that lists such rows."""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import WriteError
from ..interrupts import uninterrupted
from ..leftovers import clear
from ..sources import Source
from ..sources.source import first_line
from .tally import FIRST, REASONS

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]


class Faults:
    """The reason, if any, for which each row of a batch is not counted. The first reason marked stays."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._reason: NDArray[np.uint8] | None = None
        self.examples: dict[str, str] = {}
        self.causes: dict[str, dict[str, int]] = {}

    def mark(self, reason: str, rows: BoolArray | np.bool_) -> BoolArray | None:
        """Mark rows, (rows,) bool, that have no fault yet; which these were, or None for none."""
        if not rows.any():
            return None
        if self._reason is None:
            self._reason = np.zeros(self._rows, np.uint8)
        new = rows & (self._reason == 0)
        self._reason[new] = REASONS.index(reason) + 1
        return new if new.any() else None

    def mark_kept(self, reason: str, rows: BoolArray) -> None:
        """As `mark`, with a bool for each row that has no fault yet."""
        kept = self.kept
        spread = np.zeros(self._rows, bool)
        spread[slice(None) if kept is None else kept] = rows
        self.mark(reason, spread)

    def explain(self, reason: str, example: str, causes: dict[str, int]) -> None:
        """Say more of a reason: an example, and how many of its rows each possible cause would explain."""
        self.examples[reason] = example
        self.causes[reason] = causes

    @property
    def kept(self) -> BoolArray | None:
        """(rows,) bool: no fault; None when no row has one."""
        return None if self._reason is None or not self._reason.any() else self._reason == 0

    def positions(self) -> dict[str, IntArray]:
        """Positions of the rows with each fault, ascending."""
        if self._reason is None:
            return {}
        found = {reason: np.flatnonzero(self._reason == code) for code, reason in enumerate(REASONS, start=1)}
        return {reason: at for reason, at in found.items() if len(at)}


class Rejects:
    """The file of rows that are not counted, written completely or not at all.

    Parameters
    ----------
    path : Path or None
        A CSV file, replaced when the block ends without an error: row and reason, no person and no place.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = Path(path) if path is not None else None
        self._part = self._path.with_name(f".{self._path.name}.{os.getpid()}.part") if self._path else None
        self._file: Any = None

    def __enter__(self) -> Rejects:
        if self._path is not None and self._part is not None:
            try:
                with uninterrupted():
                    clear(self._path.parent, re.compile(rf"\.{re.escape(self._path.name)}\.(\d+)\.part"))
                    self._file = self._part.open("w", encoding="utf-8", newline="")
                    csv.writer(self._file).writerow(("row", "reason"))
            except OSError as error:
                raise self._error(error) from error
            except (KeyboardInterrupt, SystemExit):
                self._part.unlink(missing_ok=True)
                raise
        return self

    def first_rows(self, faults: Faults, source: Source, start: int) -> dict[str, tuple[int, ...]]:
        """Write the faulty rows of one batch, and give the first row numbers of each reason.

        Parameters
        ----------
        faults : Faults
        source : Source
            It numbers the rows; its numbers are asked for once, since a CSV file must be read for them.
        start : int
            Position of the batch's first row in the source.
        """
        found = faults.positions()
        wanted = {reason: at if self._file is not None else at[:FIRST] for reason, at in found.items()}
        at = np.unique(np.concatenate([*wanted.values(), np.zeros(0, np.int64)]))
        numbers = source.row_numbers(at + start) if len(at) else at
        if self._file is not None:
            reasons = np.empty(len(at), dtype=object)
            for reason, rows in found.items():
                reasons[np.searchsorted(at, rows)] = reason
            csv.writer(self._file).writerows(zip(numbers.tolist(), reasons.tolist(), strict=True))
        return {
            reason: tuple(numbers[np.searchsorted(at, rows[:FIRST])].tolist())
            for reason, rows in found.items()
        }

    def __exit__(self, kind: Any, *_: Any) -> None:
        if self._file is None or self._part is None or self._path is None:
            return
        with uninterrupted():
            try:
                self._file.close()
                if kind is None:
                    os.replace(self._part, self._path)
            except OSError as error:
                raise self._error(error) from error
            finally:
                self._part.unlink(missing_ok=True)

    def _error(self, error: OSError) -> WriteError:
        return WriteError(f"rejects: expected a file to write at '{self._path}', got: {first_line(error)}.")
