"""Faults: where a release contradicts itself, its metadata, or the rule by which it hides small counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..measures import effective_count, shares
from ..policy import Gates
from ..release import Release
from ..taxonomy import Taxonomy
from .published import (
    Published,
    attribute_records,
    blocks,
    located,
    member_ids,
    published,
    zone_index,
)
from .surroundings import grid_of, known_keys

Fault = tuple[str, str | None, str | None, str]
REMEDIES = ("publish", "publish_coarsened", "publish_merged")


def faults_of(release: Release) -> pd.DataFrame:
    """What a release says against itself: fault, cell_id, attribute, detail; empty for a sound one.

    Parameters
    ----------
    release : Release

    Notes
    -----
    ``unknown zone``: a table names a zone that the layer does not have (a suppressed zone put back).
    ``unknown label``: a label that its taxonomy does not hold at the zone's level (a label renamed).
    ``impossible counts``: no hidden counts fit the persons and the rule of hiding. ``small count``,
    ``share``, ``top``, ``effective``, ``members``, ``remedy``, ``tally``, ``taxonomy``, ``reference``,
    ``missing counts``: what their names say.
    """
    found = [*_zones(release), *_tallies(release)]
    for record in attribute_records(release):
        one = published(release, record)
        found += [
            *_labels(release, one),
            *_counts(release, one),
            *_taxonomy(release, record),
            *_mix(release, one),
        ]
    known = {str(record["column"]) for record in attribute_records(release)}
    for column in sorted({str(a) for a in release.counts["attribute"]} - known):
        found.append(
            ("unknown attribute", None, column, "counts of an attribute that the metadata does not name")
        )
    return pd.DataFrame(found, columns=["fault", "cell_id", "attribute", "detail"], dtype=object)


def _zones(release: Release) -> Iterator[Fault]:
    cells = release.cells
    ids = [str(cell) for cell in cells["cell_id"]]
    for twice in sorted({cell for cell in ids if ids.count(cell) > 1} if len(set(ids)) < len(ids) else ()):
        yield "members", twice, None, "this zone stands twice in the layer"
    index = zone_index(release)
    for stray in sorted({str(c) for c in release.counts["cell_id"]} - set(index)):
        yield "unknown zone", stray, None, "counts of a zone that the layer does not have"
    grid = grid_of(release.metadata.get("grid", {}))
    owner: dict[str, str] = {}
    for cell, members, size in zip(ids, member_ids(release), cells["n_members"], strict=True):
        if len(members) != size or len(set(members)) != len(members):
            yield "members", cell, None, "n_members is not the number of its members"
        if min(members).replace("%20", " ") != cell.replace("%20", " ") and "%" not in "".join(members):
            yield "members", cell, None, "the zone's id is not its smallest member"
        if grid is not None and not known_keys(grid.parse(np.array(members, dtype=object))).all():
            yield "members", cell, None, "a member is no cell of the grid"
        for member in members:
            if owner.setdefault(member, cell) != cell:
                yield "members", cell, None, f"a member of {owner[member]} too"
    levels = [name for name in cells.columns if str(name).endswith("_level")]
    above = (cells[levels] > 0).any(axis=1) if levels else pd.Series(False, index=cells.index)
    remedy = np.where(cells["n_members"] > 1, REMEDIES[2], np.where(above, REMEDIES[1], REMEDIES[0])).tolist()
    for cell, said, is_ in zip(ids, cells["remedy"], remedy, strict=True):
        if said != is_:
            yield "remedy", cell, None, f"it says {said}, its members and levels say {is_}"


def _tallies(release: Release) -> Iterator[Fault]:
    metadata, cells = release.metadata, release.cells
    found: dict[str, Any] = {
        "zones": len(cells),
        "cells": int(cells["n_members"].sum()),
        "remedies": {name: int((cells["remedy"] == name).sum()) for name in REMEDIES},
    }
    scope = next(name for name in cells.columns if str(name).endswith("_reference"))
    found["reference"] = {str(k): int(v) for k, v in cells[scope].value_counts().items()}
    for name, value in found.items():
        if metadata.get(name, value) != value:
            yield "tally", None, None, f"metadata: {name} is {metadata[name]}, the layer has {value}"
    most = int(cells["persons"].sum())
    if not max(cells["persons"], default=0) <= metadata.get("persons", most) <= most:
        yield "tally", None, None, "metadata: persons does not fit those of the zones"
    k_min = Gates(**metadata["policy"]["gates"]).k_min
    for record in attribute_records(release):
        if Gates(**record["gates"]).k_min != k_min:
            yield (
                "tally",
                None,
                str(record["column"]),
                "metadata: k_min of the attribute is not that of the policy",
            )


def _labels(release: Release, one: Published) -> Iterator[Fault]:
    rows = release.counts[release.counts["attribute"] == one.column]
    for cell, level in zip(release.cells["cell_id"], one.level.tolist(), strict=True):
        if not (0 <= level < len(one.space.levels) and one.space.publishable[level]):
            yield "unknown label", str(cell), one.column, f"level {level} is none that can be published"
    zone, label = located(release, one.space, one.level, rows)
    for at in np.flatnonzero((zone >= 0) & (label < 0)):
        row = rows.iloc[at]
        yield (
            "unknown label",
            str(row["cell_id"]),
            one.column,
            f"{row['value']!r} is no label of the zone's level",
        )
    code = zone * (max((len(names) for names in one.space.levels), default=1) + 1) + label
    _, first, seen = np.unique(code, return_index=True, return_counts=True)
    for at in first[(seen > 1) & (label[first] >= 0)]:
        yield "unknown label", str(rows["cell_id"].iloc[at]), one.column, "a label stands twice"
    said = rows["level"].to_numpy(dtype=np.int64)
    for at in np.flatnonzero(
        (zone >= 0) & (said != np.where(zone >= 0, one.level[zone] if len(one.level) else 0, 0))
    ):
        yield "unknown label", str(rows["cell_id"].iloc[at]), one.column, "its level is not that of the zone"


def _counts(release: Release, one: Published) -> Iterator[Fault]:
    count_min = int(release.metadata["count_min"])
    ids = release.cells["cell_id"].to_numpy(dtype=object)
    column = one.column
    small = np.flatnonzero(one.persons < count_min)
    for zone in np.unique(one.zone[small]):
        yield "small count", str(ids[zone]), column, f"a count below count_min = {count_min} is shown"
    told = release.cells[f"{column}_top"].to_numpy(dtype=object)
    for h, names in enumerate(one.space.levels):
        for block in blocks(release, one, h):
            none = np.bincount(block.boxes.row, minlength=len(block.rows)) == 0
            for zone, n in zip(block.rows[none], (block.n + block.hidden)[none], strict=True):
                what = "no counts fit its persons and what is hidden" if n.any() else "it has no counts"
                yield "impossible counts" if n.any() else "missing counts", str(ids[zone]), column, what
            shown = np.where(block.hidden, 0, block.n)
            best = shown.argmax(axis=1) if names else np.zeros(0, int)
            for zone, some, code in zip(
                block.rows, np.asarray(shown.any(axis=1)).tolist(), best.tolist(), strict=True
            ):
                if told[zone] != (names[code] if some else None):
                    yield "top", str(ids[zone]), column, "the most common label is another one"
    yield from _derived(release, one)


def _derived(release: Release, one: Published) -> Iterator[Fault]:
    """Shares and effective counts must follow from the counts, and be absent where one is hidden."""
    ids = release.cells["cell_id"].to_numpy(dtype=object)
    rows = release.counts[release.counts["attribute"] == one.column]
    label = located(release, one.space, one.level, rows)[1]
    said = rows["share"].to_numpy(dtype=float)[label >= 0]
    covered = np.zeros(len(one.level), bool)
    covered[one.zone[np.isnan(one.persons)]] = True
    total = np.bincount(one.zone, weights=np.nan_to_num(one.persons), minlength=len(one.level))
    share = np.where(covered[one.zone], np.nan, one.persons / np.maximum(total[one.zone], 1))
    wrong = ~np.isclose(said, share, rtol=0, atol=1e-9, equal_nan=True)
    for at in np.unique(one.zone[wrong]):
        yield "share", str(ids[at]), one.column, "shares do not follow from the counts"
    told = release.cells[f"{one.column}_effective"].to_numpy(dtype=float, na_value=np.nan)
    is_ = np.full(len(one.level), np.nan)
    fine = np.flatnonzero((one.level == 0) & ~covered)
    is_[fine] = effective_count(shares(one.table(fine, 0)[0]))
    for at in np.flatnonzero(~np.isclose(told, is_, rtol=0, atol=1e-9, equal_nan=True)):
        yield "effective", str(ids[at]), one.column, "the effective count does not follow from the counts"


def _taxonomy(release: Release, record: Mapping[str, Any]) -> Iterator[Fault]:
    column, declared = str(record["column"]), record["taxonomy"]
    table = release.taxonomy
    rows = table[table["attribute"] == column]
    if declared is None:
        if len(rows):
            yield "taxonomy", None, column, "a table for an attribute that has no taxonomy"
        return
    names = ["value", *(f"level{h}" for h in range(1, len(record["levels"])))]
    paths = (
        tuple(tuple(str(x) for x in row) for row in rows[names].itertuples(index=False)) if len(rows) else ()
    )
    if (
        not paths
        or Taxonomy(paths).digest != declared["digest"]
        or set(rows["digest"]) != {declared["digest"]}
    ):
        yield "taxonomy", None, column, "the table is not the taxonomy that the metadata names"
        return
    above = {
        value: tuple(record["levels"][h][codes[v]] for h, codes in enumerate(record["above"]))
        for v, value in enumerate(record["levels"][0])
    }
    if any(above.get(path[0], path) != path for path in paths):
        yield "taxonomy", None, column, "the labels of the metadata are not those of the taxonomy"


def _mix(release: Release, one: Published) -> Iterator[Fault]:
    if not len(release.cells):
        return
    for h, mix in enumerate(one.mix):
        if np.isnan(mix).all():
            continue  # the mix of a level that would tell a zone is not published
        if np.isnan(mix).any():
            yield "reference", None, one.column, f"the global mix of level {h} lacks a label"
        elif abs(mix.sum() - 1) > 0.0005 * len(mix) + 1e-9:
            yield "reference", None, one.column, f"the global mix of level {h} does not sum to 1"
    rows = release.reference[release.reference["attribute"] == one.column]
    known = {(h, label) for h, labels in enumerate(one.space.levels) for label in labels}
    if set(zip(rows["level"].astype(int), rows["value"], strict=True)) - known:
        yield "reference", None, one.column, "the global mix has a label that the taxonomy does not hold"
