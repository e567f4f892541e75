"""What a file is: a release, a work file, a policy, or visits. Figures for machines, sentences for people."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from .errors import SourceError
from .formats import FORMATS, read_release
from .geopackage import RELEASE_URI, WORK_URI
from .metadata import parsed
from .sidecar import read_json, sidecar
from .summary import public_figures, release_text
from .text import in_lines
from .wording import number, reference_words
from .workfile import stored_json

_GPKG = b"SQLite format 3"


def described(file: str, layer: str | None = None) -> dict[str, Any]:
    """What a file is, as plain values; ``what`` is release, work, policy or visits.

    Raises
    ------
    SourceError
        The file is missing or cannot be read.
    PolicyError
        A .toml file is no policy.
    """
    path = Path(file)
    if path.suffix.lower() == ".toml":
        return _policy(path)
    stored = _stored(path)
    if RELEASE_URI in stored or _has_release_beside(path):
        return _release(path)
    if WORK_URI in stored:
        return _work(path)
    return _visits(file, layer)


def described_text(found: Mapping[str, Any]) -> str:
    """`described` for people."""
    return _TEXTS[found["what"]](found)


def _stored(path: Path) -> frozenset[str]:
    """URIs of the metadata that a GeoPackage holds; empty for any other file."""
    try:
        with path.open("rb") as file:
            if not file.read(16).startswith(_GPKG):
                return frozenset()
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            rows = database.execute("SELECT md_standard_uri FROM gpkg_metadata").fetchall()
    except (OSError, sqlite3.DatabaseError):
        return frozenset()
    return frozenset(row[0] for row in rows)


def _has_release_beside(path: Path) -> bool:
    """Whether a file is a release in another format, or the metadata of one: its JSON says so."""
    if path.suffix.lower() not in {".json", *FORMATS} or path.suffix.lower() == ".gpkg" or not path.is_file():
        return False
    try:
        metadata = read_json(sidecar(path))
    except SourceError:
        return False
    return metadata is not None and str(metadata.get("format", "")).startswith("geodiv release")


def _release(path: Path) -> dict[str, Any]:
    metadata = read_json(path) if path.suffix.lower() == ".json" else read_release(path).metadata
    metadata = metadata or {}
    keys = ("title", "abstract", "licence", "note", "format", "grid", "policy", "attributes", "not_carried")
    about = {key: metadata[key] for key in keys if key in metadata}
    return {"what": "release", "file": str(path), **about, **public_figures(metadata)}


def _work(path: Path) -> dict[str, Any]:
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
        cells = database.execute("SELECT count(*) FROM cells").fetchone()[0]
        before = database.execute(
            "SELECT remedy, count(*) FROM cells GROUP BY remedy ORDER BY remedy"
        ).fetchall()
        after = database.execute(
            "SELECT final_remedy, count(*) FROM cells WHERE final_remedy IS NOT NULL "
            "GROUP BY final_remedy ORDER BY final_remedy"
        ).fetchall()
    metadata = parsed(stored_json(path)[WORK_URI], f"'{path}'")
    keys = ("title", "note", "grid", "policy", "attributes")
    about: dict[str, Any] = {key: metadata[key] for key in keys if key in metadata}
    return {
        "what": "work",
        "file": str(path),
        **about,
        "cells": cells,
        "remedy": dict(before),
        "final_remedy": dict(after),
    }


def _policy(path: Path) -> dict[str, Any]:
    from .records import policy_record
    from .run import read_run

    run = read_run(path)
    gates = {a.column: run.policy.thresholds(a) for a in run.attributes}
    return {
        "what": "policy",
        "file": str(path),
        "visits": dict(run.visits),
        "grid": run.grid.describe(),
        "attributes": {
            column: {name: value for name in gate.__slots__ if (value := getattr(gate, name)) is not None}
            for column, gate in gates.items()
        },
        "reference": type(run.policy.reference).__name__.lower(),
        "ladder": list(run.policy.ladder),
        "policy": policy_record(run.policy),
    }


def _visits(file: str, layer: str | None) -> dict[str, Any]:
    from .recognise import recognised
    from .sources import open_source

    source = open_source(file, layer)
    names = [name for name in source.columns if name != source.geometry]
    table = next(iter(source.batches(names, None)))
    columns = recognised(source, table)
    candidates = {c.column: len(c.values) for c in columns.candidates if c.listable}
    crs = source.crs
    return {
        "what": "visits",
        "file": file,
        "rows": table.num_rows,
        "columns": {name: str(source.columns[name]) for name in names},
        "geometry": source.geometry,
        "crs": None if crs is None else crs.to_string() if len(crs.to_string()) < 40 else crs.name,
        "person": columns.person,
        "lon": columns.lon,
        "lat": columns.lat,
        "cell": columns.cell,
        "attributes": candidates,
    }


def _release_text(found: Mapping[str, Any]) -> str:
    lines = [f"{found['file']}: a release, '{found.get('title', '')}', public.", *_rules(found)]
    lacks = found.get("not_carried")
    tail = in_lines([f"Not carried by this file: {', '.join(lacks)}."] if lacks else [])
    return "\n".join(filter(None, [in_lines(lines), release_text(found), tail]))


def _rules(found: Mapping[str, Any]) -> list[str]:
    """Grid, gates, what they are measured against, taxonomies and the note, as the metadata have them."""
    grid = ", ".join(f"{key} {value}" for key, value in found.get("grid", {}).items() if value is not None)
    lines = [f"Grid: {grid}."]
    for record in found.get("attributes", []):
        column = record.get("column", "an attribute without a name")
        lines.append(f"{column}: {_gates(record.get('gates', {}))}")
        if taxonomy := record.get("taxonomy"):
            named = " ".join(filter(None, [taxonomy.get("name"), taxonomy.get("version")]))
            lines.append(f"  taxonomy {named} ({taxonomy.get('digest', '')[:12]})")
    lines.append(f"Distance, shift and lift are to {reference_words(found.get('policy'))}.")
    return [*lines, f"Note: {found['note']}"] if found.get("note") else lines


def _gates(gates: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {number(value)}" for name, value in gates.items())


def _work_text(found: Mapping[str, Any]) -> str:
    lines = [
        f"{found['file']}: a work file, INTERNAL: failing cells and their figures. Not for publication.",
        *_rules(found),
        f"{found['cells']:,} occupied cells.",
        *(f"  {remedy:<20} {n:>7,}" for remedy, n in found["remedy"].items()),
    ]
    if found["final_remedy"]:
        lines += [
            "After remedies:",
            *(f"  {remedy:<20} {n:>7,}" for remedy, n in found["final_remedy"].items()),
        ]
    return in_lines(lines)


def _policy_text(found: Mapping[str, Any]) -> str:
    lines = [f"{found['file']}: a policy, valid.", f"Grid: {json.dumps(found['grid'])}"]
    for column, gates in found["attributes"].items():
        lines.append(f"{column}: {_gates(gates)}")
    lines.append(f"Distance, shift and lift are to {reference_words(found['policy'])}.")
    lines.append(f"Remedies: {', '.join(found['ladder']) or 'none'}.")
    return in_lines(lines)


def _visits_text(found: Mapping[str, Any]) -> str:
    place = found["geometry"] or (found["lon"] and f"{found['lon']}, {found['lat']}") or found["cell"]
    lines = [
        f"{found['file']}: visits, {found['rows']:,} rows.",
        "Columns: " + ", ".join(f"{name} ({kind})" for name, kind in found["columns"].items()),
        f"Person: {found['person'] or 'not recognised'} (a guess by the name).",
        f"Place: {place or 'not recognised'}; CRS: {found['crs'] or 'not said by the file'}.",
    ]
    for column, n in found["attributes"].items():
        lines.append(f"Could be sensitive: {column}, {n} values.")
    return in_lines([*lines, "geodiv init writes a policy.toml for it."])


_TEXTS = {"release": _release_text, "work": _work_text, "policy": _policy_text, "visits": _visits_text}
