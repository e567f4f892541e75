"""What can go wrong, said so that the reader knows what to do about it.

Every error is a `GeodivError`, a `ValueError`. Messages say what was expected, what came, where, and what to
do; they never hold a person id or a small count, since messages end up in logs. For the same reason a message is one
line, whatever names it quotes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from .text import printable


class GeodivError(ValueError):
    """Base of every error that geodiv raises on purpose. ``exit_code`` is what the command line returns."""

    exit_code = 3

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class UsageError(GeodivError):
    """The call itself is wrong: a flag, a keyword, a file that would be overwritten."""

    exit_code = 2


class SourceError(GeodivError):
    """Visits, a layer or a file cannot be read as what it was said to be."""


class TaxonomyError(GeodivError):
    """A taxonomy is not a tree, or does not fit its attribute."""


class PolicyError(GeodivError):
    """A gate, remedy or reference is out of range or does not fit the attributes."""


class GridError(GeodivError):
    """A grid cannot be built, or cannot place these coordinates or ids."""


class UnknownValueError(GeodivError):
    """Values of an attribute that its declaration does not hold."""


class WriteError(GeodivError):
    """A file cannot be written; whatever stood there before still stands."""


class VerificationError(GeodivError):
    """A published zone failed the independent check: an internal error, never a release."""

    exit_code = 1


class NotConverged(GeodivError):
    """The remedies reached ``max_rounds``, or the ladder ended, while zones still failed.

    Attributes
    ----------
    zones : tuple of str
        Ids of the zones that still fail: for the caller, not for a log.
    """

    exit_code = 4

    def __init__(self, message: str, zones: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.zones = tuple(zones)


def expect(value: Any, kind: type, name: str, hint: str) -> None:
    """Raise a UsageError unless an argument is an instance of a class; the class itself is none."""
    if isinstance(value, type) or not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        got = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
        raise UsageError(f"{name}: expected {article} {kind.__name__}, got {got}. {hint}")


def did_you_mean(name: Any, known: Iterable[Any]) -> str:
    """A hint such as `` Did you mean 'poi_category'?`` (empty when nothing is near)."""
    near = difflib.get_close_matches(str(name), [str(k) for k in known], n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def listed(names: Iterable[Any], most: int = 8) -> str:
    """Names in quotes, the first `most` of them, and how many more there are."""
    names = [str(n) if len(str(n)) <= 60 else str(n)[:57] + "..." for n in names]
    shown = ", ".join(repr(n) for n in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
