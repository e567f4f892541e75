"""Mismatches: where a release is not what the visits give."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..arrays import IntArray
from ..errors import SourceError
from ..measures import effective_count, shares
from ..policy import Gates, Policy
from ..records import policy_record
from ..release import Release
from .facts import Facts
from .mixes import Mixes
from .published import Published
from .subtracted import tells_no_zone

Mismatch = tuple[str, str | None, str | None, str | None, Any, Any]
"""what, cell_id, attribute, value, published, counted."""


def of_zones(
    release: Release, facts: Facts, members: list[list[str]], persons: IntArray
) -> Iterator[Mismatch]:
    """Zones whose members nobody visited, or whose persons are not those counted.

    ``members`` are the cell ids of each zone of the release, ``persons`` (zones,) int64 their distinct persons.
    """
    occupied = set(pd.Series(facts.cells.astype(str)).str.replace(r"\s", "%20", regex=True))
    for cell, ids, said, counted in zip(
        release.cells["cell_id"], members, release.cells["persons"], persons.tolist(), strict=True
    ):
        for stranger in sorted(set(ids) - occupied):
            yield "member without a visit", str(cell), None, stranger, None, None
        if int(said) != counted:
            yield "persons", str(cell), None, None, int(said), counted


def of_attribute(
    release: Release,
    facts: Facts,
    mixes: Mixes,
    one: Published,
    a: int,
    zone: IntArray,
    record: Any,
    gates: Gates,
) -> Iterator[Mismatch]:
    """Figures of one attribute that the visits contradict: labels, references, counts, effective counts, global mix.

    ``zone`` is (cells,) int64, the zone of each cell or -1; ``a`` the attribute's position among the facts, ``record``
    what the metadata say of it, and ``gates`` its thresholds in force.
    """
    space = facts.spaces[a]
    if tuple(tuple(labels) for labels in record["levels"]) != space.levels:
        yield "labels", None, one.column, None, None, None
    ids = release.cells["cell_id"].to_numpy(dtype=object)
    for z in np.flatnonzero(one.scope != mixes.scope):
        yield "reference", str(ids[z]), one.column, None, str(one.scope[z]), str(mixes.scope[z])
    yield from _labels(release, facts, one, a, zone)
    level = np.where(one.level < len(space.levels), one.level, 0)
    fine = effective_count(shares(facts.counts(a, 0, zone, len(level))))
    told = release.cells[f"{one.column}_effective"].to_numpy(dtype=float, na_value=np.nan)
    for z in np.flatnonzero(~np.isnan(told) & ~np.isclose(told, fine, rtol=0, atol=1e-9)):
        yield "effective", str(ids[z]), one.column, None, float(told[z]), float(fine[z])
    for h, labels in enumerate(space.levels):
        mix = shares(mixes.overall(a, h)).tolist()
        true = {
            label: round(q, 3) for label, q in zip(labels, mix, strict=True)
        }  # as it is published, to the half
        table = release.reference
        rows = table[(table["attribute"] == one.column) & (table["level"] == h)]
        if len(rows) and not tells_no_zone(facts, mixes, a, h, one.level, zone, gates):
            yield "global mix tells a zone", None, one.column, f"level {h}", None, None
        for label, said in zip(rows["value"], rows["share"].astype(float), strict=True):
            if abs(said - true.get(label, np.nan)) > 1e-9 or (label not in true):
                yield "global mix", None, one.column, label, said, true.get(label)


def _labels(release: Release, facts: Facts, one: Published, a: int, zone: IntArray) -> Iterator[Mismatch]:
    """Label counts of the file and of the visits, side by side."""
    ids = release.cells["cell_id"].to_numpy(dtype=object)
    said = release.counts[release.counts["attribute"] == one.column]
    hidden = {
        (str(c), str(v))
        for c, v, n in zip(said["cell_id"], said["value"], said["persons"].isna(), strict=True)
        if n
    }
    shown = {
        (str(c), str(v)): int(n)
        for c, v, n in zip(said["cell_id"], said["value"], said["persons"].fillna(-1), strict=True)
        if n >= 0
    }
    true: dict[tuple[str, str], int] = {}
    rank: dict[tuple[str, str], int] = {}
    for h, labels in enumerate(facts.spaces[a].levels):
        n = facts.counts(a, h, zone, len(ids))
        for z, v in zip(*np.nonzero((n > 0) & (one.level == h)[:, None]), strict=True):
            true[str(ids[z]), labels[v]] = int(n[z, v])
            rank[str(ids[z]), labels[v]] = int(v)
    covered = _covered(true, rank, int(release.metadata["count_min"]))
    for key in sorted({*true, *shown, *hidden}):
        told, is_ = shown.get(key), true.get(key, 0)
        if key in hidden and key not in covered:
            yield "hidden without need" if is_ else "label", key[0], one.column, key[1], None, is_
        elif key not in hidden and (key in covered or told != is_):
            yield (
                "label" if key not in covered else "shown, to be hidden",
                key[0],
                one.column,
                key[1],
                told,
                is_,
            )


def _covered(
    true: dict[tuple[str, str], int], rank: dict[tuple[str, str], int], count_min: int
) -> set[tuple[str, str]]:
    """The labels whose counts a release hides, worked out zone by zone from the rule in words."""
    by_zone: dict[str, list[tuple[int, int, str]]] = {}
    for (cell, label), n in true.items():
        by_zone.setdefault(cell, []).append((n, rank[cell, label], label))
    out = set()
    for cell, rows in by_zone.items():
        small = [row for row in rows if row[0] < count_min]
        if small:
            rest = sorted(row for row in rows if row[0] >= count_min)[:1]
            out |= {(cell, label) for _, _, label in [*small, *rest]}
    return out


def of_run(
    release: Release, facts: Facts, policy: Policy, mixes: Mixes, zone: IntArray, persons: IntArray
) -> Iterator[Mismatch]:
    """Metadata that the policy or the visits contradict: thresholds, tallies, coverage, rows that were not counted.

    ``zone`` is (cells,) int64, the zone of each cell or -1.
    """
    metadata = release.metadata
    record = json.loads(json.dumps(policy_record(policy)))
    for name in sorted({*record, *metadata["policy"]}):
        if record.get(name) != metadata["policy"].get(name):
            yield f"policy: {name}", None, None, None, metadata["policy"].get(name), record.get(name)
    alone = facts.persons(np.arange(len(facts.cells)), len(facts.cells))
    inside = zone >= 0
    kept, all_ = int(alone[inside & mixes.eligible].sum()), int(alone[mixes.eligible].sum())
    one = np.where(inside, 0, -1)
    true = {
        "cells": int(inside.sum()),
        "not_published": int((~inside).sum()),
        "persons": int(facts.persons(one, 1)[0]) if inside.any() else 0,
        "coverage": round(kept / all_, 2) if all_ else 0.0,
        "dropped": dict(sorted(facts.intake.dropped.items())),
    }
    for name, value in true.items():
        if metadata.get(name) != value:
            yield f"metadata: {name}", None, None, None, metadata.get(name), value


def strays(release: Release, facts: Facts, zone: IntArray, file: str | Path | None) -> Iterator[Mismatch]:
    """Cells that are not published and stand somewhere in the file all the same."""
    dark = pd.Series(facts.cells[zone < 0].astype(str)).str.replace(r"\s", "%20", regex=True)
    lost = {*dark, *facts.cells[zone < 0].astype(str)}
    texts = {"counts": {str(c) for c in release.counts["cell_id"]}}
    if file is not None:
        texts |= dict(_texts(Path(file)))
    for table in sorted(texts):
        words = {word for text in texts[table] for word in (text, *text.split(" "))}
        for cell in sorted(words & lost):
            yield "unpublished cell in the file", cell, None, table, None, None


def _texts(file: Path) -> Iterator[tuple[str, set[str]]]:
    """Every text in every table of a GeoPackage: (table.column, texts)."""
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as database:
            tables = [
                row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            ]
            for table in tables:
                if table.startswith(("rtree_", "sqlite_", "gpkg_")):
                    continue
                name = '"' + table.replace('"', '""') + '"'
                for column in [row[1] for row in database.execute(f"PRAGMA table_info({name})")]:
                    quoted = '"' + column.replace('"', '""') + '"'
                    query = f"SELECT DISTINCT {quoted} FROM {name} WHERE typeof({quoted}) = 'text'"
                    if column in ("cell_id", "members", "zone_id") or table not in ("taxonomy", "reference"):
                        yield f"{table}.{column}", {row[0] for row in database.execute(query)}
    except sqlite3.Error as error:
        raise SourceError(f"expected a GeoPackage at '{file}', got: {error}.") from error
