"""What a stranger reads in a release: its label spaces, thresholds, counts and global mix, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..arrays import BoolArray, FloatArray, IntArray
from ..errors import SourceError, listed
from ..ground import Tree, hierarchy, path, star
from ..labels import LabelSpace
from ..policy import Gates
from ..release import Release
from ..text import MISSING
from .bounds import Boxes, boxes

WIDE = ("global", "none")
"""Scopes under which the reader's mix within a class is the published global one."""
BLOCK = 250_000
"""Zones x values held at a time, some eight boxes each; it bounds memory, not results."""
RECORD = ("column", "levels", "above", "sensitive", "distance", "positions", "gates", "level", "taxonomy")
"""What the metadata must say of an attribute."""
COLUMNS = ("level", "top", "effective", "reference")
"""Columns of the layer for each attribute, after its name."""
HALF = 0.0005 + 1e-9
"""How far a published share of the global mix, 3 decimals, may be from the true one."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some zones of one level: positions, published counts and which are hidden (zones, labels), possible counts."""

    rows: IntArray
    n: FloatArray
    hidden: BoolArray
    persons: FloatArray
    boxes: Boxes


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """One attribute of a release, as its own metadata and tables describe it.

    Parameters
    ----------
    column : str
    space : LabelSpace
    gates : Gates
        The thresholds in force.
    level : (zones,) int64
        Level at which each zone publishes the attribute.
    scope : (zones,) object
        What each zone was judged against.
    zone, label : (entries,) int64
        The rows of ``counts``: position of the zone, code of the label at the zone's level.
    persons : (entries,) float64
        Distinct persons; nan where hidden.
    mix : tuple over levels of (labels,) float64
        The global Q, 3 decimals; nan where the file does not give it.
    """

    column: str
    space: LabelSpace
    gates: Gates
    level: IntArray
    scope: NDArray[np.object_]
    zone: IntArray
    label: IntArray
    persons: FloatArray
    mix: tuple[FloatArray, ...]

    @property
    def placed(self) -> BoolArray:
        """(zones,) whether the attribute has the level at which the zone says that it publishes it."""
        return np.asarray((self.level >= 0) & (self.level < len(self.space.levels)))

    def table(self, rows: IntArray, level: int) -> tuple[FloatArray, BoolArray]:
        """Counts of zones at one level, (rows, labels) float64 with 0 for no row, and which of them are hidden."""
        position = np.full(len(self.level), -1, dtype=np.int64)
        position[rows] = np.arange(len(rows))
        at = position[self.zone] >= 0
        where = (position[self.zone[at]], self.label[at])
        n = np.zeros((len(rows), len(self.space.levels[level])))
        n[where] = np.nan_to_num(self.persons[at])
        hidden = np.zeros(n.shape, bool)
        hidden[where] = np.isnan(self.persons[at])
        return n, hidden

    def box(self, level: int) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest Q that round to the published one, (labels,) each; 0 to 1 where it is not
        given.

        Notes
        -----
        ``Q`` sums to 1, so that a share is also at least 1 minus the largest that all others may have.
        """
        mix = self.mix[level]
        low = np.where(np.isnan(mix), 0.0, np.maximum(mix - HALF, 0.0))
        high = np.where(np.isnan(mix), 1.0, np.minimum(mix + HALF, 1.0))
        tight_low = np.maximum(low, 1.0 - (high.sum() - high) - 1e-9)
        tight_high = np.minimum(high, 1.0 - (low.sum() - low) + 1e-9)
        return tight_low, tight_high


def blocks(release: Release, one: Published, level: int) -> Iterator[Block]:
    """The zones that publish an attribute at one level, with what their counts can be, some at a time."""
    persons = release.cells["persons"].to_numpy(dtype=float)
    count_min = int(release.metadata["count_min"])
    at = np.flatnonzero(one.level == level)
    size = max(BLOCK // max(len(one.space.values), 1), 1)
    for start in range(0, len(at), size):
        rows = at[start : start + size]
        n, hidden = one.table(rows, level)
        yield Block(rows, n, hidden, persons[rows], boxes(n, hidden, persons[rows], count_min))


def zone_index(release: Release) -> dict[str, int]:
    """Position of each published zone by its id."""
    return {str(cell): i for i, cell in enumerate(release.cells["cell_id"])}


def member_ids(release: Release) -> list[list[str]]:
    """Member cell ids of each zone, as the file writes them (white space in an id is %20)."""
    return [str(text).split(" ") for text in release.cells["members"]]


def attribute_records(release: Release) -> list[dict[str, Any]]:
    """What the metadata says of each attribute.

    Raises
    ------
    SourceError
        The metadata does not hold what an audit needs.
    """
    metadata = release.metadata
    records: list[dict[str, Any]] = metadata.get("attributes") or []
    policy = metadata.get("policy") or {}
    whole = bool(records) and "gates" in policy and "count_min" in metadata
    if not whole or any(not set(RECORD) <= set(record) for record in records):
        raise SourceError(
            "expected a release whose metadata holds its policy, count_min and attributes, got one without. "
            "Audit the GeoPackage that geodiv wrote."
        )
    needed = [f"{record['column']}_{name}" for record in records for name in COLUMNS]
    if lacking := [name for name in needed if name not in release.cells.columns]:
        raise SourceError(
            f"expected the columns {listed(needed)} in the layer of the release, got none called {listed(lacking)}."
        )
    if {"cells", "counts"} & set(release.metadata.get("not_carried", ())):
        raise SourceError(
            "expected a release with its zones and its counts, got a file of a format that does not carry both. "
            "Audit the GeoPackage."
        )
    return records


def published(release: Release, record: Mapping[str, Any]) -> Published:
    """One attribute of a release.

    Parameters
    ----------
    release : Release
    record : mapping
        One of `attribute_records`.

    Notes
    -----
    Rows of ``counts`` that name no published zone, or a label that is not one of the zone's level, are left
    out here: `geodiv.audits.faults` reports them.
    """
    column = str(record["column"])
    space = _space(record)
    level = release.cells[f"{column}_level"].to_numpy(dtype=np.int64)
    rows = release.counts[release.counts["attribute"] == column]
    zone, label = located(release, space, level, rows)
    known = label >= 0
    return Published(
        column=column,
        space=space,
        gates=Gates(**record["gates"]),
        level=level,
        scope=release.cells[f"{column}_reference"].to_numpy(dtype=object),
        zone=zone[known],
        label=label[known],
        persons=rows["persons"].to_numpy(dtype=float, na_value=np.nan)[known],
        mix=tuple(_mix(release, column, h, labels) for h, labels in enumerate(space.levels)),
    )


def located(
    release: Release, space: LabelSpace, level: IntArray, rows: pd.DataFrame
) -> tuple[IntArray, IntArray]:
    """Zone and label code of rows of ``counts``, -1 where there is none: (rows,) int64 each."""
    index = zone_index(release)
    zone = np.array([index.get(str(cell), -1) for cell in rows["cell_id"]], dtype=np.int64)
    codes = [{label: i for i, label in enumerate(labels)} for labels in space.levels]
    at = np.where(zone >= 0, level[zone] if len(level) else -1, -1)
    label = [
        codes[h].get(value, -1) if 0 <= h < len(codes) else -1
        for h, value in zip(at.tolist(), rows["value"], strict=True)
    ]
    return zone, np.array(label, dtype=np.int64)


def _mix(release: Release, column: str, level: int, labels: tuple[str, ...]) -> FloatArray:
    table = release.reference
    rows = table[(table["attribute"] == column) & (table["level"] == level)]
    found = dict(zip(rows["value"], rows["share"].astype(float), strict=True))
    return np.array([found.get(label, np.nan) for label in labels], dtype=float)


def _space(record: Mapping[str, Any]) -> LabelSpace:
    levels = tuple(tuple(labels) for labels in record["levels"])
    up = tuple(np.asarray(codes, dtype=np.int64) for codes in record["above"])
    values = levels[0]
    missing = bool(values) and values[-1] == MISSING
    named = record["sensitive"]
    tier = np.ones(len(values), bool) if named is None else np.isin(values, [*named, MISSING])
    certain = tier.copy()
    if missing and (named is None or MISSING not in named):
        certain[-1] = False
    sizes = [len(labels) for labels in levels]
    return LabelSpace(
        levels=levels,
        up=up,
        publishable=tuple(h == 0 or size - missing > 1 for h, size in enumerate(sizes)),
        sensitive=tuple(_below(tier, codes, size) for codes, size in zip(up, sizes, strict=True)),
        certain=tuple(_below(certain, codes, size) for codes, size in zip(up, sizes, strict=True)),
        tree=_tree(record, levels, up, missing),
    )


def _below(flags: BoolArray, codes: IntArray, labels: int) -> BoolArray:
    return np.asarray(np.bincount(codes, weights=flags, minlength=labels) > 0)


def _tree(
    record: Mapping[str, Any], levels: tuple[tuple[str, ...], ...], up: tuple[IntArray, ...], missing: bool
) -> Tree:
    known = len(levels[0]) - missing
    if record["distance"] == "ordered":
        return path(record["positions"] or range(known), missing)
    if record["distance"] == "hierarchical":
        return hierarchy([codes[:known] for codes in up], len(levels[-1]) - missing == 1, missing)
    return star(len(levels[0]))
