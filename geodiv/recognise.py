"""Recognising columns: which one names the person, which the place, which could be sensitive. Guesses, and said so."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import h3
import pyarrow as pa
import pyarrow.compute as pc

from .sources import Source
from .text import MISSING, as_text

PERSON = ("personid", "person", "userid", "user", "uid", "deviceid", "device", "travellerid", "travelerid",
          "participantid", "participant", "respondentid", "respondent", "subjectid", "agentid", "agent", "memberid",
          "customerid", "pid")  # fmt: skip
"""Usual names of the column that names the person, lower case without signs, the likeliest first."""
LON = ("lon", "lng", "long", "longitude", "x", "xcoord", "coordx", "easting")
LAT = ("lat", "latitude", "y", "ycoord", "coordy", "northing")
SENSITIVE = (
    "category",
    "purpose",
    "activity",
    "amenity",
    "poi",
    "placetype",
    "venue",
    "diagnosis",
    "service",
    "type",
)
"""Parts of names that tell what people did; the first match is proposed as an active attribute."""
CELLS = ("cellid", "cell", "zoneid", "zone", "taz", "tract", "gridid", "hexid", "destination")
MARKERS = frozenset({"", "-", "?", "n/a", "na", "nan", "null", "nil", "none", "unknown", "unspecified", "undefined",
                     "missing", "not available", "not stated", "no answer", "no data"})  # fmt: skip
"""Texts, lower case and stripped, that usually mean missing."""
SENTINELS = frozenset({"-1", "-9", "-99", "-999", "-9999", "-99999"})
"""Numbers that usually mean missing where every other number is at least 0."""
MOST_VALUES = 60


@dataclass(frozen=True, slots=True)
class Candidate:
    """A column that could be a sensitive attribute.

    Parameters
    ----------
    column : str
    kind : {"text", "whole", "real"}
        What its values are.
    values : tuple of str
        Distinct values as text, missing ones apart; sorted, numbers by size.
    markers : tuple of str
        Values that probably mean missing.
    """

    column: str
    kind: Literal["text", "whole", "real"]
    values: tuple[str, ...]
    markers: tuple[str, ...]

    @property
    def listable(self) -> bool:
        """Whether there are at least two values and few enough to be a category."""
        return 2 <= len(self.values) <= MOST_VALUES and self.kind != "real"


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of visits and what they seem to be.

    Parameters
    ----------
    person, lon, lat, geometry : str or None
    degrees : bool
        Whether the numbers of lon and lat can be degrees.
    cell : str or None
        A column of cell ids.
    resolution : int or None
        H3 resolution of these ids; None for other ids.
    candidates : tuple of Candidate
        The likeliest first.
    """

    person: str | None
    lon: str | None
    lat: str | None
    geometry: str | None
    degrees: bool
    cell: str | None
    resolution: int | None
    candidates: tuple[Candidate, ...]


def recognised(source: Source, table: pa.Table, person: str | None = None) -> Columns:
    """What the columns of a source seem to be, by their names and values.

    Parameters
    ----------
    source : Source
    table : pyarrow.Table
        Its rows, without the geometry.
    person : str, optional
        Column of the person, when it is known.
    """
    names = [name for name in table.column_names if name != source.geometry]
    person = person or _named(names, PERSON)
    lon, lat = _named(names, LON), _named(names, LAT)
    if lon is None or lat is None:
        lon, lat = _pair(names)
    rest = [name for name in names if name not in (person, lon, lat)]
    hexagons = {name: r for name in rest if (r := _h3_resolution(table[name])) is not None}
    placed = source.geometry is not None or lon is not None
    cell = next(iter(hexagons), None) if hexagons else None if placed else _named(rest, CELLS)
    found = [
        c for name in rest if name != cell and name not in hexagons and (c := _candidate(name, table[name]))
    ]
    found.sort(key=lambda c: (not c.listable, c.kind != "text", _rank(c.column)))
    degrees = lon is not None and lat is not None and _in_degrees(table, lon, lat)
    resolution = hexagons.get(cell or "")
    return Columns(person, lon, lat, source.geometry, degrees, cell, resolution, tuple(found))


def distinct_texts(column: pa.ChunkedArray) -> list[str]:
    """Distinct values as text, nulls as ``(missing)``."""
    return list(dict.fromkeys(as_text(value) for value in pc.unique(_plain(column)).to_pylist()))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    return column.cast(kind.value_type) if pa.types.is_dictionary(kind) else column


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _named(names: Sequence[str], usual: Sequence[str]) -> str | None:
    keys: Mapping[str, str] = {_key(name): name for name in reversed(names)}
    return next((keys[name] for name in usual if name in keys), None)


def _pair(names: Sequence[str]) -> tuple[str | None, str | None]:
    """Two columns whose names differ as longitude and latitude do; those of an end rather than of a start."""
    found = []
    for x, y in (("longitude", "latitude"), ("lon", "lat"), ("lng", "lat"), ("x", "y")):
        for name in names:
            partner = re.sub(x, y, name, count=1, flags=re.IGNORECASE)
            if partner != name and partner in names:
                found.append((name, partner))
    ends = [pair for pair in found if re.search("dest|drop|end|to_", pair[0], flags=re.IGNORECASE)]
    return next(iter(ends or found), (None, None))


def _in_degrees(table: pa.Table, lon: str, lat: str) -> bool:
    """Whether the numbers of these columns can be degrees."""
    for column, limit in ((lon, 180), (lat, 90)):
        numbers = [float(t) for t in distinct_texts(table[column]) if _is_number(t)]
        if numbers and sorted(map(abs, numbers))[len(numbers) // 2] > limit:
            return False
    return True


def _rank(column: str) -> int:
    return next((i for i, part in enumerate(SENSITIVE) if part in _key(column)), len(SENSITIVE))


def _h3_resolution(column: pa.ChunkedArray) -> int | None:
    kind = _plain(column.slice(0, 0)).type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return None
    texts = [t for t in distinct_texts(column.slice(0, 1000)) if t != MISSING]
    if not texts or not all(h3.is_valid_cell(t) for t in texts):
        return None
    resolutions = {h3.get_resolution(t) for t in texts}
    return resolutions.pop() if len(resolutions) == 1 else None


def _candidate(name: str, column: pa.ChunkedArray) -> Candidate | None:
    kind = _plain(column.slice(0, 0)).type
    texts = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_boolean(kind)
    if not (texts or pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return None
    found = [text for text in distinct_texts(column) if text != MISSING]
    markers = [text for text in found if text.strip().lower() in MARKERS]
    values = sorted(set(found) - set(markers))
    if not values or not all(_is_number(value) for value in values):
        return Candidate(name, "text", tuple(values), tuple(sorted(markers)))
    low = _sentinels(values)
    values = sorted(set(values) - set(low), key=float)
    whole = all(float(value).is_integer() for value in values)
    return Candidate(name, "whole" if whole else "real", tuple(values), (*sorted(markers), *low))


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _sentinels(texts: Sequence[str]) -> list[str]:
    low = sorted((text for text in texts if text in SENTINELS), key=float)
    others = [float(text) for text in texts if text not in SENTINELS]
    return low if others and min(others) >= 0 else []
