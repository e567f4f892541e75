"""Taxonomy: which coarser label a value takes at each level."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import SourceError, TaxonomyError, listed
from .text import MISSING, as_text


@dataclass(frozen=True, slots=True)
class Taxonomy:
    """A tree of labels over the values of one attribute.

    Parameters
    ----------
    rows : tuple of tuple of str
        One row a value: the value, its level-1 label, its level-2 label, ..., all of one length. A blank
        level repeats the label before it.
    name : str, default "taxonomy"
    version : str, default ""
        Two releases under different taxonomies cannot be compared, so the version travels with the data.

    Raises
    ------
    TaxonomyError
        Two rows for a value, a label with two parents, rows of different lengths, an empty value, or
        ``(missing)`` as a value (it is its own class at every level).

    Examples
    --------
    >>> poi = Taxonomy.of({"clinic": "appointment", "salon": "appointment", "cafe": "food"})
    >>> poi.height, poi.labels(1)
    (1, ('appointment', 'food'))
    """

    rows: tuple[tuple[str, ...], ...]
    name: str = "taxonomy"
    version: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(sorted(_filled(row) for row in self.rows)))
        _check(self)

    @classmethod
    def of(cls, parents: Mapping[Any, Any], name: str = "taxonomy", version: str = "") -> Taxonomy:
        """The taxonomy in which each key's parent is its value.

        A parent that is itself a key has a parent of its own one level up, so chains give several levels; a
        value whose chain is shorter repeats its last label. A chain that returns to itself is a
        `TaxonomyError`.
        """
        up = {as_text(k): as_text(v) for k, v in parents.items()}
        if len(up) < len(parents):
            twice = _repeated(as_text(k) for k in parents)
            raise TaxonomyError(f"expected one parent a value, got several for {listed(sorted(twice))}.")
        inner = {v for k, v in up.items() if k != v}
        chains = [
            chain for leaf in up if (chain := _chain(leaf, up)) and (leaf not in inner or up[leaf] == leaf)
        ]
        height = max((len(chain) for chain in chains), default=1)
        return cls(tuple(c + (c[-1],) * (max(height, 2) - len(c)) for c in chains), name, version)

    @classmethod
    def read(cls, path: str | Path, version: str = "") -> Taxonomy:
        """The taxonomy in a UTF-8 CSV with the columns value, level1, level2, ... (finest first).

        Raises
        ------
        SourceError
            The file is missing, not UTF-8 or not such a table.
        TaxonomyError
            Its rows are not a tree; the message names the file.
        """
        path = Path(path)
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                reader = csv.reader(file)
                lines = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
        except OSError as error:
            raise SourceError(f"expected a taxonomy at '{path}', got: {error.strerror or error}.") from error
        except (UnicodeDecodeError, csv.Error) as error:
            raise SourceError(f"expected a UTF-8 CSV at '{path}', got: {error}. Save it as UTF-8.") from error
        header = [cell.strip().lower() for cell in lines[0][1]] if lines else []
        expected = ["value", *(f"level{i}" for i in range(1, len(header)))]
        if len(header) < 2 or header != expected:
            raise SourceError(
                f"expected the columns value, level1, level2, ... in '{path}', "
                f"got: {listed(header) or 'nothing'}."
            )
        for number, row in lines[1:]:
            if len(row) > len(header):
                raise SourceError(
                    f"expected {len(header)} columns in '{path}', line {number}; got {len(row)}."
                )
        rows = tuple(tuple(row) + ("",) * (len(header) - len(row)) for _, row in lines[1:])
        try:
            return cls(rows, path.stem, version)
        except TaxonomyError as error:
            raise TaxonomyError(f"'{path}': {error}") from None

    @property
    def height(self) -> int:
        """Number of levels above the values."""
        return len(self.rows[0]) - 1

    @property
    def values(self) -> tuple[str, ...]:
        """The values, sorted as text."""
        return tuple(row[0] for row in self.rows)

    def labels(self, level: int) -> tuple[str, ...]:
        """The labels of a level, sorted as text; level 0 are the values."""
        return tuple(sorted({row[level] for row in self.rows}))

    def path(self, value: str) -> tuple[str, ...]:
        """The labels of one value at levels 0, 1, ... (KeyError when it is not in the taxonomy)."""
        return {row[0]: row for row in self.rows}[value]

    @property
    def digest(self) -> str:
        """sha256 of the sorted rows: the same for every order of the rows, another for any changed label."""
        return hashlib.sha256(json.dumps(self.rows, ensure_ascii=False).encode()).hexdigest()


def _filled(row: Sequence[Any]) -> tuple[str, ...]:
    cells = [as_text(cell) for cell in row]
    for i in range(1, len(cells)):
        if not cells[i].strip() or cells[i] == MISSING:
            cells[i] = cells[i - 1]
    return tuple(cells)


def _chain(leaf: str, up: Mapping[str, str]) -> tuple[str, ...]:
    chain = [leaf]
    while (parent := up.get(chain[-1])) is not None and parent != chain[-1]:
        if parent in chain:
            raise TaxonomyError(f"expected a tree, got a cycle through {listed([*chain, parent])}.")
        chain.append(parent)
    return tuple(chain)


def _check(taxonomy: Taxonomy) -> None:
    rows = taxonomy.rows
    if not rows:
        raise TaxonomyError("expected at least one row of value and level1, got none.")
    if len({len(row) for row in rows}) > 1 or len(rows[0]) < 2:
        raise TaxonomyError("expected rows of one length, a value and at least one level.")
    values = [row[0] for row in rows]
    if blank := [v for v in values if not v or v == MISSING]:
        raise TaxonomyError(
            f"expected values, got {listed(blank)}: missing values are declared on the attribute "
            "(missing=[...]) and are a class of their own at every level."
        )
    if twice := sorted(_repeated(values)):
        raise TaxonomyError(f"expected one row a value, got several for {listed(twice)}.")
    for level in range(1, len(rows[0]) - 1):
        pairs = {(row[level], row[level + 1]) for row in rows}
        if torn := sorted(_repeated(label for label, _ in pairs)):
            raise TaxonomyError(
                f"expected each level{level} label below one level{level + 1} label, "
                f"got several parents for {listed(torn)}."
            )


def _repeated(names: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    return {name for name in names if name in seen or seen.add(name)}  # type: ignore[func-returns-value]
