"""A stranger who has what was written, and reads it to the last byte: no part of geodiv is used here."""

from __future__ import annotations

import base64
import re
import sqlite3
import struct
import zlib
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import h3
import numpy as np
import shapely

Row = dict[str, Any]
TABLES = {"cells", "counts", "taxonomy", "reference", "layer_styles"}
"""Tables of a release that hold rows of its own, with a wide `shares_...` for each attribute."""


def tables(path: Path) -> dict[str, list[Row]]:
    """Every table of a GeoPackage, those of SQLite and of the standard too."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
        database.row_factory = sqlite3.Row
        names = [r[0] for r in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        quoted = {name: name.replace('"', '""') for name in names}
        return {n: [dict(r) for r in database.execute(f'SELECT * FROM "{q}"')] for n, q in quoted.items()}


def free_pages(path: Path) -> int:
    """Pages of a database that hold nothing any more."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
        return int(database.execute("PRAGMA freelist_count").fetchone()[0])


def words_in(raw: bytes, words: Iterable[str]) -> list[str]:
    """The words that stand in some bytes, as text or as the number of an H3 cell, whichever way it is written."""
    return [word for word in words if any(form in raw for form in forms(word))]


def forms(word: str) -> set[bytes]:
    """A cell id as text, with its white space escaped, in capitals, as number and as 64-bit integer."""
    found = {word.encode(), word.replace(" ", "%20").encode(), word.upper().encode()}
    if len(word) == 15 and h3.is_valid_cell(word):
        number = int(word, 16)
        found |= {str(number).encode(), struct.pack(">q", number), struct.pack("<q", number)}
    return found


def figures_in(raw: bytes, figures: Iterable[float]) -> list[float]:
    """The floats that stand in some bytes, as a double of either order or as text."""
    return [
        x
        for x in figures
        if struct.pack(">d", x) in raw or struct.pack("<d", x) in raw or repr(x).encode() in raw
    ]


def telling(figures: Iterable[float]) -> set[float]:
    """Figures that nobody would write by chance: neither round nor simple, as thresholds and published mixes are."""
    finite = {float(x) for x in figures if np.isfinite(x)}
    return {x for x in finite if abs(x * 645120 - round(x * 645120)) > 1e-4 and abs(x - round(x, 3)) > 1e-9}


def corners(outlines: Iterable[Any], decimals: int) -> set[tuple[float, float]]:
    """Corners of some polygons."""
    xy = shapely.get_coordinates(np.asarray(list(outlines), dtype=object)).round(decimals)
    return {(float(x), float(y)) for x, y in xy}


def unfolded(page: bytes) -> bytes:
    """A page, and everything that it carries in base64, inflated where that can be."""
    parts = [page]
    for text in re.findall(rb"[A-Za-z0-9+/=]{80,}", page):
        with suppress(ValueError):
            parts.append(base64.b64decode(text))
            for window in (15, 31, -15):
                with suppress(zlib.error):
                    parts.append(zlib.decompress(parts[-1], window))
    return b"\n".join(parts)


def packed(points: Iterable[tuple[float, float]]) -> list[bytes]:
    """Corners as they stand in well-known binary, those on whole metres apart: such pairs occur by chance."""
    return [struct.pack("<dd", x, y) for x, y in points if x != round(x) and y != round(y)]


def not_read_off(found: Mapping[str, list[Row]]) -> set[str]:
    """Texts of every table of a release and whole rows of no known table."""
    known = {*TABLES, *(name for name in found if name.startswith("shares_"))}
    standard = ("gpkg_", "rtree_", "sqlite_")
    return {name for name in found if name not in known and not name.startswith(standard)}


def members(row: Row) -> list[str]:
    """Member ids of a row of `cells`."""
    return [member.replace("%20", " ") for member in row["members"].split(" ")]


def left_over(found: Mapping[str, list[Row]], attribute: str, level: int, total: int) -> dict[str, float]:
    """What is left of Q x total once the counts of the zones that show a level are taken off it.

    The stranger is told the total, which nobody publishes: none has more to go by.
    """
    mix = {
        row["value"]: row["share"] * total
        for row in found["reference"]
        if (row["attribute"], row["level"]) == (attribute, level)
    }
    for row in found["counts"]:
        if row["attribute"] == attribute and row["level"] == level and row["value"] in mix:
            mix[row["value"]] -= row["persons"] or 0
    return mix
