"""Publication: the texts that travel with a release, and the smallest label count it shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .errors import PolicyError


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What a release says of itself.

    Parameters
    ----------
    title, abstract, licence, note : str
        The note is the choice that was made, in words.
    keywords : tuple of str
    count_min : int, default 3
        Label counts below it are hidden, and one more beside them; a view, not a remedy, and no gate relies
        on it.
    """

    title: str = "geodiv release"
    abstract: str = ""
    licence: str = ""
    keywords: tuple[str, ...] = ()
    note: str = ""
    count_min: int = 3

    def __post_init__(self) -> None:
        for name in ("title", "abstract", "licence", "note"):
            _check_text(name, getattr(self, name))
        if isinstance(self.keywords, str):
            raise PolicyError(f"keywords: expected a list of texts, got {self.keywords!r}.")
        object.__setattr__(self, "keywords", tuple(self.keywords))
        for keyword in self.keywords:
            _check_text("keywords", keyword)
        whole = isinstance(self.count_min, int) and not isinstance(self.count_min, bool)
        if not whole or not 1 <= self.count_min < 2**53:
            raise PolicyError(f"count_min: expected a whole number of at least 1, got {self.count_min!r}.")


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise PolicyError(f"{name}: expected a text, got {value!r}.")
    if any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in value):
        raise PolicyError(
            f"{name}: expected a text that files can hold, got one with NUL or half a pair in it."
        )
