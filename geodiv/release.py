"""Release: published zones only, nothing else that was ever measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from numpy.typing import NDArray

from .arrays import IntArray
from .attribute import Attribute
from .labels import LabelSpace
from .measures import effective_count, shares
from .plan import Plan
from .publication import Publication
from .records import release_record
from .scores import Judge, label_names
from .subtraction import tells_no_zone
from .tabulation import Counts, Tabulation


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """What may leave the building.

    Parameters
    ----------
    cells : GeoDataFrame (DataFrame where the grid has no geometry)
        One row a published zone: cell_id, members, n_members, persons, area_m2, remedy, and per attribute
        ``<column>_level``, ``<column>_top``, ``<column>_effective``, ``<column>_reference``.
    counts : DataFrame
        cell_id, attribute, value, level, persons, share; hidden counts are null.
    taxonomy : DataFrame
        attribute, value, level1, ..., name, version, digest.
    reference : DataFrame
        attribute, level, value, share: the global mix, to 3 decimals.
    metadata : dict
        What `release.json` holds.
    """

    cells: pd.DataFrame
    counts: pd.DataFrame
    taxonomy: pd.DataFrame
    reference: pd.DataFrame
    metadata: dict[str, Any]

    def to_file(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the release, in the format of the path's extension (.gpkg holds all of it).

        Raises
        ------
        UsageError
            The file exists and `overwrite` is false, or the extension is unknown.
        WriteError
            A table was changed since, or the file cannot be written; whatever stood there before still stands.
        """
        from .formats import write

        write(self, path, overwrite=overwrite)

    def explore(self, column: str = "remedy", **options: Any) -> Any:
        """An interactive map of the published zones, coloured by remedy unless told otherwise: a folium Map.

        Parameters
        ----------
        column : str
            Of `cells`.
        **options
            As for ``GeoDataFrame.explore``.

        Raises
        ------
        UsageError
            The ``map`` extra is not installed, or the zones have no outlines. Its background needs internet;
            ``geodiv map`` writes a page that needs none.
        """
        from .notebook import explored

        return explored(self, column, **options)

    def plot(self, ax: Any = None) -> Any:
        """The published zones by remedy with matplotlib (the ``map`` extra): the Axes; see `geodiv.plots` for more."""
        from .plots import remedy_map

        return remedy_map(self, ax=ax)

    def _repr_html_(self) -> str:
        from .notebook import release_html

        return release_html(self)


def release_of(
    judge: Judge, plan: Plan, counts: Counts, rounds: int, publication: Publication, run_text: str = ""
) -> Release:
    """The release of a final plan.

    Parameters
    ----------
    judge : Judge
    plan : Plan
    counts : Counts
        Of the published zones, in the order of their smallest members.
    rounds : int
    publication : Publication
    run_text : str
    """
    zones = plan.zones[~plan.suppressed[plan.zones]]
    levels = plan.level[zones]
    ids = judge.table.cells[zones].astype(str).astype(object)
    scope = judge.references.of_zones(counts.members).scope
    shown = [
        _shown(judge.table.spaces[a], counts, a, levels[:, a], publication.count_min)
        for a in range(levels.shape[1])
    ]
    cells = _cells(judge.table, counts, ids, levels, scope, shown)
    return Release(
        cells=cells,
        counts=_counts(judge.table, ids, levels, shown),
        taxonomy=taxonomy_table(judge.table.attributes),
        reference=_reference(judge, counts, levels),
        metadata=release_record(judge, counts, cells, scope, rounds, publication, run_text),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """The label counts of one attribute as they are published: one entry a label with n > 0.

    ``zone``, ``label``, ``persons`` are (entries,) int64, zone by zone in label order; ``hidden`` (entries,) bool;
    ``share`` (entries,) float64, nan in a zone with a hidden count.
    """

    zone: IntArray
    label: IntArray
    persons: IntArray
    hidden: NDArray[np.bool_]
    share: NDArray[np.float64]


def _shown(space: LabelSpace, counts: Counts, attribute: int, level: IntArray, count_min: int) -> Shown:
    parts = []
    for h in range(len(space.levels)):
        found = counts.labels[attribute][h].tocoo()
        at = (level[found.coords[0]] == h) & (found.data > 0)
        parts.append((found.coords[0][at], found.coords[1][at], found.data[at]))
    zone, label, n = (np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True))
    order = np.lexsort((label, zone))
    zone, label, n = zone[order], label[order], n[order]
    hidden = n < count_min
    covered = np.zeros(len(level), bool)
    covered[zone[hidden]] = True
    left = np.flatnonzero(~hidden & covered[zone])
    left = left[np.lexsort((label[left], n[left], zone[left]))]
    hidden[left[np.unique(zone[left], return_index=True)[1]]] = True
    total = np.bincount(zone, weights=n, minlength=len(level))
    share = np.where(covered[zone], np.nan, n / total[zone])
    return Shown(zone, label, n, hidden, share)


def _cells(
    table: Tabulation,
    counts: Counts,
    ids: NDArray[Any],
    levels: IntArray,
    scope: NDArray[Any],
    shown: list[Shown],
) -> pd.DataFrame:
    zones = len(ids)
    row = np.repeat(np.arange(zones), counts.sizes)
    area = np.bincount(row, weights=table.grid.area(table.keys)[counts.members.indices], minlength=zones)
    remedy = np.where(
        counts.sizes > 1, "publish_merged", np.where((levels > 0).any(axis=1), "publish_coarsened", "publish")
    )
    columns: dict[str, Any] = {
        "cell_id": pd.Series(ids, dtype=object),
        "members": _members(table.cells[counts.members.indices], counts.members.indptr),
        "n_members": counts.sizes.astype(np.int64),
        "persons": counts.persons.astype(np.int64),
        "area_m2": area,
        "remedy": pd.Series(remedy, dtype=object),
    }
    for a, (attribute, space) in enumerate(zip(table.attributes, table.spaces, strict=True)):
        columns[f"{attribute.column}_level"] = levels[:, a]
        columns[f"{attribute.column}_top"] = pd.Series(_tops(space, shown[a], levels[:, a]), dtype=object)
        columns[f"{attribute.column}_effective"] = _effective(counts, a, levels[:, a], shown[a])
        columns[f"{attribute.column}_reference"] = pd.Series(scope, dtype=object)
    frame = pd.DataFrame(columns)
    geometry = zone_geometry(table, counts)
    return frame if geometry is None else gpd.GeoDataFrame(frame, geometry=geometry, crs=table.grid.crs)


def _members(ids: NDArray[Any], start: IntArray) -> pd.Series[str]:
    """(zones,) ids of each zone's cells, space-separated; white space inside an id is written %20."""
    texts = pc.replace_substring_regex(pa.array(ids.astype(str), pa.string()), r"\s", "%20")
    lists = pa.ListArray.from_arrays(pa.array(start, pa.int32()), texts)
    return pd.Series(pc.binary_join(lists, " ").to_pylist(), dtype=object)


def _tops(space: LabelSpace, shown: Shown, level: IntArray) -> NDArray[np.object_]:
    """(zones,) most common label whose count is shown, ties by label order; None where all counts are hidden.

    No hidden count is larger: of those that reach `count_min`, the smallest is hidden.
    """
    told = np.flatnonzero(~shown.hidden)
    order = told[np.lexsort((shown.label[told], -shown.persons[told], shown.zone[told]))]
    zone, first = np.unique(shown.zone[order], return_index=True)
    code = np.full(len(level), -1, dtype=np.int64)
    code[zone] = shown.label[order[first]]
    return label_names(space, level, code)


def _effective(counts: Counts, attribute: int, level: IntArray, shown: Shown) -> NDArray[np.float64]:
    """(zones,) effective count at the finest level; nan where the zone is coarser or hides a count."""
    covered = np.zeros(len(level), bool)
    covered[shown.zone[shown.hidden]] = True
    effective = np.full(len(level), np.nan)
    rows = np.flatnonzero((level == 0) & ~covered)
    effective[rows] = effective_count(shares(counts.labels[attribute][0][rows].todense()))
    return effective


def zone_geometry(table: Tabulation, counts: Counts) -> NDArray[np.object_] | None:
    """(zones,) outlines of zones, the shared borders of their cells dissolved; None where the grid has none."""
    outlines = table.geometry()
    if outlines is None:
        return None
    decimals = 10 if table.grid.crs and _geographic(table.grid.crs) else 6
    outlines = shapely.transform(outlines, lambda xy: xy.round(decimals))
    zones = np.empty(len(counts.persons), dtype=object)
    for size in np.unique(counts.sizes):
        rows = np.flatnonzero(counts.sizes == size)
        cells = counts.members.indices[counts.members.indptr[rows][:, None] + np.arange(size)]
        zones[rows] = outlines[cells[:, 0]] if size == 1 else _dissolved(outlines[cells])
    return zones


def _dissolved(groups: NDArray[np.object_]) -> NDArray[np.object_]:
    """(zones, cells) outlines -> (zones,) unions; borders that do not match to the last digit take the slower way."""
    try:
        union = np.asarray(shapely.coverage_union_all(groups, axis=1), dtype=object)
    except shapely.GEOSException:
        return np.asarray(shapely.union_all(groups, axis=1), dtype=object)
    odd = np.flatnonzero(~shapely.is_valid(union))
    if len(odd):
        union[odd] = shapely.union_all(groups[odd], axis=1)
    return union


def _geographic(crs: str) -> bool:
    from pyproj import CRS

    return bool(CRS.from_user_input(crs).is_geographic)


def _counts(table: Tabulation, ids: NDArray[Any], levels: IntArray, shown: list[Shown]) -> pd.DataFrame:
    frames = []
    for a, (attribute, space, part) in enumerate(zip(table.attributes, table.spaces, shown, strict=True)):
        level = levels[part.zone, a]
        frames.append(
            pd.DataFrame(
                {
                    "zone": part.zone,
                    "attribute": np.full(len(level), attribute.column, dtype=object),
                    "value": label_names(space, level, part.label),
                    "level": level,
                    "persons": pd.Series(part.persons).astype("Int64").mask(part.hidden),
                    "share": part.share,
                }
            )
        )
    table_ = pd.concat(frames, ignore_index=True).sort_values("zone", kind="stable", ignore_index=True)
    table_.insert(0, "cell_id", pd.Series(ids[table_.pop("zone").to_numpy()], dtype=object))
    return table_.astype({"attribute": object, "value": object})  # texts as the other tables hold them


def taxonomy_table(attributes: tuple[Attribute, ...]) -> pd.DataFrame:
    """attribute, value, level1, ..., name, version, digest: one row a value of each attribute with a taxonomy."""
    taxonomies = [(a.column, a.taxonomy) for a in attributes if a.taxonomy is not None]
    height = max((t.height for _, t in taxonomies), default=1)
    names = ["value", *(f"level{h}" for h in range(1, height + 1))]
    rows = [
        {
            "attribute": column,
            **dict(zip(names, row, strict=False)),
            "name": t.name,
            "version": t.version,
            "digest": t.digest,
        }
        for column, t in taxonomies
        for row in t.rows
    ]
    return pd.DataFrame(rows, columns=["attribute", *names, "name", "version", "digest"], dtype=object)


def _reference(judge: Judge, counts: Counts, levels: IntArray) -> pd.DataFrame:
    """The global mix of each level, but where taking the map off it would tell a zone."""
    rows = []
    for a, (attribute, space) in enumerate(zip(judge.table.attributes, judge.table.spaces, strict=True)):
        safe = tells_no_zone(judge, counts, a, levels[:, a])
        for level in np.flatnonzero(safe).tolist():
            pooled = judge.references.overall[a][level]
            if pooled.sum() > 0:
                mix = zip(space.levels[level], shares(pooled).tolist(), strict=True)
                rows += [(attribute.column, level, label, round(q, 3)) for label, q in mix]
    frame = pd.DataFrame(rows, columns=["attribute", "level", "value", "share"])
    return frame.astype({"attribute": object, "level": np.int64, "value": object, "share": float})
