"""The map of a release as one HTML file that needs no network: `geodiv map`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import geopandas as gpd
import numpy as np
import pandas as pd

from . import __version__, vendor
from .errors import UsageError
from .mapviews import coded, views
from .outlines import ALPHABET, centre_longitude, geographic, packed, packed_outlines
from .page import Markup, Page, asset, table, text
from .wording import judged_by

if TYPE_CHECKING:
    from .release import Release

MOST_STATIC = 500
"""Zones in the table that a browser without scripts shows."""


def write_map(
    release: Release,
    path: str | Path,
    *,
    tiles: str | None = None,
    attribution: str = "",
    overwrite: bool = False,
) -> None:
    """Write the map of a release as one HTML file.

    Parameters
    ----------
    release : Release
    path : path
    tiles : str, optional
        Address of map tiles, such as ``https://tiles.example.org/{z}/{x}/{y}.png``, to draw under the zones. Without
        it the file asks nothing of any network.
    attribution : str
        Whose tiles they are.
    overwrite : bool, default False

    Raises
    ------
    UsageError
        The file exists and `overwrite` is false, its name is none of a page, or the zones have no outlines or no CRS.
    WriteError
        It cannot be written; what stood there before still stands.
    """
    map_page(release, tiles=tiles, attribution=attribution).write(path, overwrite=overwrite)


def map_page(release: Release, *, tiles: str | None = None, attribution: str = "") -> Page:
    """The page of `write_map`: published figures only, whatever else the release's frames might hold."""
    cells, metadata = release.cells, release.metadata
    if not isinstance(cells, gpd.GeoDataFrame):
        raise UsageError(
            "a map needs the outlines of the zones, and this release has none: its cells are ids without "
            "a place, or "
            "its format holds no geometry. Use the GeoPackage of a release on H3 cells, squares or zones."
        )
    cells = cells.reset_index(drop=True)
    data = _data(cells, metadata)
    libraries = [vendor.LEAFLET, *([vendor.H3] if data["h3"] else [])]
    images = ["data:"]
    if tiles is not None:
        data["tiles"] = {"url": tiles, "attribution": attribution}
        images.append(_host(tiles))
    title = str(metadata.get("title") or "geodiv release")
    return Page(
        title=title,
        body=_body(title, cells, metadata, libraries, tiles is not None),
        styles=[*(vendor.read(name) for lib in libraries for name in lib.styles), asset("map.css")],
        scripts=[*(vendor.read(name) for lib in libraries for name in lib.scripts), asset("map.js")],
        data={"geodiv-data": data},
        images=images,
        notices=[
            f"This page carries {lib.name} {lib.version}, {lib.licence}:\n\n{vendor.read(name)}"
            for lib in libraries
            for name in lib.notices
        ],
    )


def _data(cells: gpd.GeoDataFrame, metadata: Mapping[str, Any]) -> dict[str, Any]:
    outlines = geographic(cells)
    h3 = _h3(cells, metadata)
    place = (
        {"ids": "", "outlines": None}
        if h3
        else {
            "ids": _front_coded(cells["cell_id"].astype(str).tolist()),
            "outlines": asdict(packed_outlines(outlines)),
        }
    )
    return {
        "centre": centre_longitude(outlines),
        "h3": h3,
        **place,
        "sizes": packed(cells["members"].astype(str).str.split().str.len() if h3 else cells["n_members"]),
        "persons": packed(cells["persons"]),
        "attributes": [_attribute(cells, record["column"]) for record in metadata.get("attributes", [])],
        "views": views(cells, metadata),
        "tiles": None,
    }


def _attribute(cells: pd.DataFrame, column: str) -> dict[str, Any]:
    top, labels = coded(cells[f"{column}_top"])
    scope, scopes = coded(cells[f"{column}_reference"].fillna("none"))
    effective = np.round(cells[f"{column}_effective"].to_numpy(dtype=float, na_value=np.nan) * 100)
    return {
        "name": column,
        "labels": labels,
        "scopes": scopes,
        "level": packed(cells[f"{column}_level"]),
        "top": packed(top + 1),
        "effective": packed(np.nan_to_num(effective)),
        "reference": packed(scope),
    }


def _h3(cells: pd.DataFrame, metadata: Mapping[str, Any]) -> dict[str, Any] | None:
    """Member ids without what they share, when the grid is H3 and all of them are ids of H3 cells."""
    if (metadata.get("grid") or {}).get("kind") != "h3" or not len(cells):
        return None
    members = [one for zone in cells["members"].astype(str).tolist() for one in sorted(zone.split())]
    if not all(re.fullmatch("8[0-9a-f]{14}", one) for one in members):
        return None
    prefix = _shared(members)[:13]
    rest = [one[len(prefix) :] for one in members]
    suffix = _shared([one[:0:-1] for one in rest])[::-1]
    width = 15 - len(prefix) - len(suffix)
    ids = "".join(one[len(prefix) : len(prefix) + width] for one in members)
    return {"prefix": prefix, "suffix": suffix, "width": width, "ids": ids}


def _shared(texts: Sequence[str]) -> str:
    """The beginning that all of these texts share."""
    first, last = min(texts), max(texts)
    size = min(len(first), len(last))
    return first[: next((i for i in range(size) if first[i] != last[i]), size)]


def _front_coded(ids: Iterable[str]) -> str:
    """Ids, one a line, each as the number of characters that it shares with the one before, and the rest of it."""
    lines, before = [], ""
    for one in ids:
        same = min(len(_shared([before, one])), len(ALPHABET) - 1)
        lines.append(ALPHABET[same] + one[same:].replace("\n", "\ufffd"))
        before = one
    return "\n".join(lines)


def _host(tiles: str) -> str:
    """The source of tiles as a content security policy names it."""
    parts = urlsplit(tiles)
    host = re.sub(r"\{[^}]*\}", "*", parts.netloc.rpartition("@")[2])
    if (
        parts.scheme not in ("http", "https")
        or not re.fullmatch(r"(\*\.)?[\w.-]+(:\d+)?", host)
        or "{z}" not in tiles
    ):
        raise UsageError(
            f"tiles: expected an address such as https://tiles.example.org/{{z}}/{{x}}/{{y}}.png, got "
            f"{tiles!r}."
        )
    return f"{parts.scheme}://{host}"


def _body(
    title: str,
    cells: pd.DataFrame,
    metadata: Mapping[str, Any],
    libraries: Sequence[vendor.Library],
    tiled: bool,
) -> str:
    abstract = f"<p>{text(metadata['abstract'])}</p>" if metadata.get("abstract") else ""
    note = f"<p><b>Note.</b> {text(metadata['note'])}</p>" if metadata.get("note") else ""
    licence = f" Licence: {text(metadata['licence'])}." if metadata.get("licence") else ""
    network = (
        "Its background map is loaded from the network."
        if tiled
        else "This file asks nothing of any network."
    )
    judged = "".join(f"<p><b>{text(name)}</b> {text(said)}</p>" for name, said in judged_by(metadata))
    return Template(asset("map.html")).substitute(
        title=text(title),
        abstract=abstract,
        zones=_static(cells, metadata),
        judged=judged,
        note=note,
        licence=licence,
        network=network,
        version=text(__version__),
        carried=" and ".join(lib.name for lib in libraries),
    )


def _static(cells: pd.DataFrame, metadata: Mapping[str, Any]) -> str:
    columns = [record["column"] for record in metadata.get("attributes", [])]
    head = ["Zone", "Persons", "Cells", "Remedy", *(f"{c}: most common" for c in columns)]
    names = ["cell_id", "persons", "n_members", "remedy", *(f"{c}_top" for c in columns)]
    rows = cells[names].astype(object).where(cells[names].notna(), None).itertuples(index=False)
    left = len(cells) - MOST_STATIC
    more = f"<p>And {left:,} more.</p>" if left > 0 else ""
    return Markup(table(head, islice(rows, MOST_STATIC)) + more)
