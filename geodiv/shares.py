"""The shares of a release in wide form: a row a zone, a column a published label, for maps without a join."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

import geopandas as gpd
import numpy as np
import pandas as pd

from .columns import Column, Table, attributes_of

MOST_LABELS = 500
"""An attribute with more published labels gets no wide table: databases and attribute windows have limits."""


def shares_tables(cells: pd.DataFrame, counts: pd.DataFrame) -> Iterator[tuple[pd.DataFrame, Table]]:
    """For each attribute the frame ``shares_<column>`` and its description, in the order of the attributes.

    Parameters
    ----------
    cells, counts : DataFrame
        Those of a release; when `cells` has a geometry, so has the result.

    Yields
    ------
    frame : (zones,) DataFrame
        cell_id, persons, level and a column for each label that some zone publishes: its share, 0 to 1. It is 0
        where the zone publishes the label's level without the label, null where it publishes another level or
        hides counts.
    table : Table
        Titles are the labels themselves; names are safe (a-z, 0-9, _).
    """
    attributes = attributes_of(cells.columns, "_level")
    for attribute, safe in zip(attributes, safe_names([f"shares_{a}" for a in attributes], ()), strict=True):
        rows = counts[counts["attribute"] == attribute]
        labels = rows[["level", "value"]].drop_duplicates().sort_values(["level", "value"], kind="stable")
        if len(labels) <= MOST_LABELS:
            yield _wide(cells, rows, labels, attribute, safe)


def _wide(
    cells: pd.DataFrame, rows: pd.DataFrame, labels: pd.DataFrame, attribute: str, safe: str
) -> tuple[pd.DataFrame, Table]:
    level = cells[f"{attribute}_level"].to_numpy(dtype=np.int64)
    zone = pd.Index(cells["cell_id"]).get_indexer(pd.Index(rows["cell_id"]))
    pairs = pd.MultiIndex.from_frame(labels)
    label = pairs.get_indexer(pd.MultiIndex.from_frame(rows[["level", "value"]]))
    shares = np.where(level[:, None] == labels["level"].to_numpy(dtype=np.int64)[None, :], 0.0, np.nan)
    known = rows["share"].to_numpy(dtype=np.float64, na_value=np.nan)
    shares[zone, label] = known
    shares[np.unique(zone[np.isnan(known)])] = np.nan
    columns = list(_label_columns(labels, attribute))
    frame = cells[["cell_id", "persons", f"{attribute}_level", *_geometry(cells)]].reset_index(drop=True)
    frame = frame.rename(columns={f"{attribute}_level": "level"})
    wide = pd.DataFrame(shares, columns=[c.name for c in columns])
    head = (
        Column("cell_id", "text", "Zone", "Id of the zone"),
        Column("persons", "integer", "Persons", "Distinct persons with a visit in the zone"),
        Column(
            "level", "integer", "Level", f"Level at which the zone publishes '{attribute}'; 0 is the finest"
        ),
    )
    text = (
        f"Share of each published label of '{attribute}' in each zone; empty at another level or where hidden"
    )
    return frame.join(wide), Table(safe, (*head, *columns), f"shares of {attribute}", text)


def _geometry(cells: pd.DataFrame) -> list[str]:
    return [str(cells.geometry.name)] if isinstance(cells, gpd.GeoDataFrame) else []


def _label_columns(labels: pd.DataFrame, attribute: str) -> Iterator[Column]:
    pairs = [(int(level), str(value)) for level, value in labels.itertuples(index=False)]
    wanted = [value if level == 0 else f"{value}_level{level}" for level, value in pairs]
    for (level, value), name in zip(pairs, safe_names(wanted, ("cell_id", "persons", "level")), strict=True):
        title = value if level == 0 else f"{value} (level {level})"
        yield Column(name, "real", title, f"Share of '{value}' of '{attribute}' at level {level}, 0 to 1")


def safe_names(texts: Iterable[str], taken: Iterable[str]) -> list[str]:
    """A name of a-z, 0-9 and _ for each text, no two alike, none of `taken`, fid or geom.

    Examples
    --------
    >>> safe_names(["Café & Bar / 24h", "cafe bar 24h", "", "7 Eleven", "fid"], ())
    ['cafe_bar_24h', 'cafe_bar_24h_2', 'label', 'label_7_eleven', 'fid_2']
    """
    used = {"fid", "geom", "geometry", "ogc_fid", "rowid", *taken}
    names = []
    for text in texts:
        plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
        base = re.sub(r"[^a-z0-9]+", "_", plain).strip("_")[:50].strip("_") or "label"
        base = base if base[0].isalpha() else f"label_{base}"
        name, number = base, 1
        while name in used:
            number += 1
            name = f"{base}_{number}"
        used.add(name)
        names.append(name)
    return names
