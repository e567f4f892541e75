"""Intake: how many rows were read, how many count, and why the others do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..errors import SourceError
from .spec import VisitSpec

REASONS = (
    "no person",
    "no coordinate",
    "not a number",
    "out of range",
    "no cell id",
    "not a cell id",
    "outside the zones",
)
"""Why a row is not counted; a row with several faults is tallied under the first of them."""
FIRST = 5
"""Row numbers kept for each reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """The tally of what was read: ``rows == counted + sum(dropped.values())``. Tallies add up with ``+``.

    Parameters
    ----------
    rows, counted : int
        Rows read, and rows that count.
    dropped : mapping of str to int
        Rows that do not, by reason (`REASONS`); no reason stands with 0.
    first_rows : mapping of str to tuple of int
        The first row numbers of each reason, 1-based. For one CSV file they are its line numbers (the header
        is line 1); several files are numbered through, from the first row of the first on. A distributed read
        knows none: this stays empty.
    digest : str
        sha256 of the input, in hexadecimal: of the bytes of a file, of the names and digests of several, or
        of the columns read of a frame. It comes with the last batch and is empty before.
    examples : mapping of str to str
        For a reason, an example of what is the matter, in words.
    causes : mapping of str to mapping of str to int
        For a reason, what may be its cause, in words, and how many of its rows that would explain.
    at_origin : int
        Counted rows at the coordinates (0, 0), which often stand for none.
    remarks : tuple of str
        What else a reader should know.

    Examples
    --------
    >>> second = Intake(rows=2, counted=1, dropped={"no person": 1}, first_rows={"no person": (4,)})
    >>> whole = Intake(rows=3, counted=3) + second
    >>> whole.rows, whole.counted, whole.dropped
    (5, 4, {'no person': 1})
    """

    rows: int
    counted: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    first_rows: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    digest: str = ""
    examples: Mapping[str, str] = field(default_factory=dict)
    causes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    at_origin: int = 0
    remarks: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What looks suspicious, although it was counted, in words."""
        one = self.at_origin == 1
        where = f"{_rows(self.at_origin)} {'lies' if one else 'lie'} at (0, 0), often a missing place"
        origin = (f"{where}: {'it counts' if one else 'they count'} there. Leave out what does not belong.",)
        return (*self.remarks, *(origin if self.at_origin else ()))

    def __add__(self, other: Intake) -> Intake:
        """The tally of two batches, this one the earlier."""
        reasons = [reason for reason in REASONS if reason in self.dropped or reason in other.dropped]
        first = {r: (*self.first_rows.get(r, ()), *other.first_rows.get(r, ()))[:FIRST] for r in reasons}
        causes = {**self.causes, **other.causes}
        return Intake(
            rows=self.rows + other.rows,
            counted=self.counted + other.counted,
            dropped={r: self.dropped.get(r, 0) + other.dropped.get(r, 0) for r in reasons},
            first_rows=first,
            digest=other.digest or self.digest,
            examples={**other.examples, **self.examples},
            causes={r: _added(self.causes.get(r, {}), other.causes.get(r, {})) for r in causes},
            at_origin=self.at_origin + other.at_origin,
            remarks=tuple(dict.fromkeys((*self.remarks, *other.remarks))),
        )


def check(intake: Intake, spec: VisitSpec) -> None:
    """Raise when rows were lost and the spec does not allow it.

    When most rows are out of range, the coordinates are not what they are said to be: always an error.

    Raises
    ------
    SourceError
        It names each reason, its number of rows and the first of them, and what to do.
    """
    mistaken = 2 * intake.dropped.get("out of range", 0) > intake.rows
    if not intake.dropped or (spec.skips and not mistaken):
        return
    found = "; ".join(_found(intake, reason) for reason in intake.dropped)
    do = 'Mend the visits, or set on_bad_rows = "skip" or --rejects FILE to go on without these rows.'
    if mistaken:
        do = "Most rows are out of range: name the right crs, or the right columns for lon and lat."
    elif 2 * intake.dropped.get("outside the zones", 0) > intake.rows:
        do = f"Most rows lie outside the zones: name the right crs, or the layer that covers the visits. Else: {do}"
    raise SourceError(f"expected a person and a place in each of {_rows(intake.rows)}, got: {found}. {do}")


def _found(intake: Intake, reason: str) -> str:
    """A reason, its rows, and what may be the matter; a cause is named when it would explain most of them."""
    number, first = intake.dropped[reason], intake.first_rows.get(reason, ())
    said = [intake.examples[reason]] if reason in intake.examples else []
    if reason != "out of range" or 2 * number > intake.rows:
        said += [cause for cause, rows in intake.causes.get(reason, {}).items() if 2 * rows > number]
    more = ", ..." if number > len(first) else ""
    where = f": row{'s' * (number > 1)} {', '.join(map(str, first))}{more}" if first else ""
    why = f" ({'; '.join(said)})" if said else ""
    return f"{reason} in {_rows(number)}{why}{where}"


def _added(one: Mapping[str, int], two: Mapping[str, int]) -> dict[str, int]:
    return {text: one.get(text, 0) + two.get(text, 0) for text in {**one, **two}}


def _rows(number: int) -> str:
    return f"{number} row{'s' * (number != 1)}"
