"""Places: how many places of each value stand in each cell, which a reader with a public map knows too."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .errors import PolicyError, listed
from .text import MISSING, as_text


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """An inventory of places for one attribute.

    Parameters
    ----------
    attribute : str
        Column of the attribute whose values the places are of.
    inventory : mapping of str to mapping of str to int
        For each cell id, the number of places of each value in it, both compared as text. Cells without visits are
        ignored.
    name : str, default ""
        Where the map comes from; it stands in the release's metadata.
    ignored : mapping of str to int, optional
        Places that were read and are not in the inventory, by reason.

    Raises
    ------
    PolicyError
        A number of places that is no whole number of at least 0, or places of ``(missing)``.

    Examples
    --------
    >>> Places("poi", {"c-58": {"clinic": 1, "cafe": 4}}).total
    5
    """

    attribute: str
    inventory: Mapping[str, Mapping[str, int]]
    name: str = ""
    ignored: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.inventory, Mapping) or not all(
            isinstance(cell, Mapping) for cell in self.inventory.values()
        ):
            raise PolicyError(
                f"places of '{self.attribute}': expected a mapping of cell id to a mapping of value to number, "
                f"got {type(self.inventory).__name__}."
            )
        kept: dict[str, dict[str, int]] = {}
        for cell, values in self.inventory.items():
            there = kept.setdefault(as_text(cell), {})
            for value, n in values.items():
                there[as_text(value)] = there.get(as_text(value), 0) + _whole(self.attribute, n)
        if any(MISSING in values for values in kept.values()):
            raise PolicyError(
                f"places of '{self.attribute}': no place is of the value {MISSING}. Leave it out."
            )
        object.__setattr__(self, "inventory", kept)
        object.__setattr__(self, "ignored", dict(self.ignored))

    @property
    def total(self) -> int:
        """Number of places."""
        return sum(n for values in self.inventory.values() for n in values.values())

    @property
    def values(self) -> tuple[str, ...]:
        """The values that have a place, sorted as text."""
        return tuple(sorted({v for values in self.inventory.values() for v, n in values.items() if n}))

    @property
    def digest(self) -> str:
        """sha256 of the inventory: the same in whatever order it came."""
        rows = sorted((c, v, n) for c, values in self.inventory.items() for v, n in values.items() if n)
        return hashlib.sha256(json.dumps(rows, ensure_ascii=False).encode()).hexdigest()


def _whole(attribute: str, n: Any) -> int:
    if isinstance(n, bool) or not hasattr(n, "__index__") or int(n) < 0:
        raise PolicyError(
            f"places of '{attribute}': expected whole numbers of at least 0, got {listed([n])}."
        )
    return int(n)
