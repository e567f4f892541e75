"""Wishes: what a searched taxonomy must join, keep apart and be called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..arrays import BoolArray, IntArray
from ..errors import PolicyError, did_you_mean, listed
from ..labels import LabelSpace

Group = str | Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """Constraints on the taxonomies that are searched.

    Parameters
    ----------
    join : sequence of sequence of str
        Values of each of these must share a label.
    apart : sequence of sequence of str or sequence of str
        In each of these, no value may share a label with a value of another entry; an entry is a value or several
        values, which may share one. The groups that the map's question needs apart.
    names : mapping of str to str
        Label to the value whose group is to bear it.
    fewest, most : int
        Number of labels, ``(missing)`` and values that nobody visited left out.
    """

    join: Sequence[Sequence[str]] = ()
    apart: Sequence[Sequence[Group]] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    fewest: int = 2
    most: int | None = None

    def __post_init__(self) -> None:
        if self.fewest < 2 or (self.most is not None and self.most < self.fewest):
            raise PolicyError(
                f"number of labels: expected at least 2 and no more than the most, got {self.fewest} to {self.most}."
            )

    def start(self, space: LabelSpace, occurs: BoolArray) -> tuple[IntArray, BoolArray]:
        """What the search starts from.

        Returns
        -------
        group : (values,) int64
            Each value on its own but for those that are to be joined.
        forbidden : (values, values) bool
            Pairs of values that must not share a label, for themselves or through what is joined to them; those that
            nobody visited, and ``(missing)``, with all others.
        """
        codes = {value: i for i, value in enumerate(space.values)}
        group = np.arange(len(codes))
        for values in self.join:
            wanted = _codes(values, codes, "join")
            group[np.isin(group, group[wanted])] = group[wanted].min()
        forbidden = np.zeros((len(codes), len(codes)), bool)
        for entry in self.apart:
            sides = [_codes([s] if isinstance(s, str) else s, codes, "apart") for s in entry]
            for i, one in enumerate(sides):
                for other in sides[:i]:
                    forbidden[np.ix_(one, other)] = forbidden[np.ix_(other, one)] = True
        for value in self.names.values():
            _codes([value], codes, "names")
        together = group[:, None] == group[None, :]
        if (clash := np.argwhere(forbidden & together)).size:
            names = [space.values[i] for i in clash[0]]
            raise PolicyError(
                f"join and apart contradict each other: {listed(names)} are in both. Drop one wish."
            )
        lonely = ~occurs.copy()
        if space.missing is not None:
            lonely[space.missing] = True
        forbidden |= (lonely[:, None] | lonely[None, :]) & ~together
        return group, forbidden


def labels_for(
    group: IntArray, values: Sequence[str], weight: Sequence[float], names: Mapping[str, str]
) -> list[str]:
    """(values,) a label for each value: the wished one, the value of a group of one, or the group's values in a row.

    Values are named the most common first; a label that is taken gets a number.
    """
    wished = {group[list(values).index(value)]: label for label, value in names.items()}
    labels: dict[int, str] = {}
    taken = set(values) | set(names)
    for g in dict.fromkeys(group.tolist()):
        members = sorted(np.flatnonzero(group == g).tolist(), key=lambda i: (-weight[i], values[i]))
        if g in wished or len(members) == 1:
            labels[g] = wished.get(g, values[members[0]])
            continue
        label = free = _in_a_row([values[i] for i in members])
        number = 2
        while free in taken:
            free, number = f"{label} ({number})", number + 1
        labels[g] = free
        taken.add(free)
    return [labels[g] for g in group.tolist()]


def _in_a_row(names: Sequence[str], longest: int = 60) -> str:
    text = ", ".join(names)
    shown = len(names)
    while len(text) > longest and shown > 1:
        shown -= 1
        text = ", ".join(names[:shown]) + f" and {len(names) - shown} more"
    return text


def _codes(values: Iterable[str], codes: Mapping[str, int], where: str) -> IntArray:
    given = [values] if isinstance(values, str) else list(values)
    if strange := [value for value in given if value not in codes]:
        raise PolicyError(
            f"{where}: {listed(strange)} not among the values.{did_you_mean(strange[0], codes)}"
        )
    return np.array([codes[value] for value in given], dtype=np.int64)
