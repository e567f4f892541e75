"""policy.toml as tables: which tables and keys there are, what each must be, and how a run is written as TOML.

Every key is the Python keyword of the same name; what it means stands with that keyword.
"""

from __future__ import annotations

import json
import math
import reprlib
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .errors import PolicyError, did_you_mean, listed
from .text import printable

Tables = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """What a key may hold: in words, and as a test."""

    words: str
    holds: Callable[[Any], bool]


def _text(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _number(value: Any) -> bool:
    return isinstance(value, float) or _whole(value)


def _list(value: Any, of: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(of(item) for item in value)


TEXT = Kind("a text in quotes", _text)
WHOLE = Kind("a whole number", _whole)
NUMBER = Kind("a number", _number)
FLAG = Kind("true or false", lambda v: isinstance(v, bool))
TEXTS = Kind("a list of texts", lambda v: _list(v, _text))
NUMBERS = Kind("a list of numbers", lambda v: _list(v, _number))
VALUES = Kind("a list of values", lambda v: _list(v, lambda x: _text(x) or isinstance(x, bool) or _number(x)))

GATE_KEYS = {
    "k_min": WHOLE,
    "l_min": NUMBER,
    "c_l": WHOLE,
    "c_max": NUMBER,
    "t_max": NUMBER,
    "shift_max": NUMBER,
    "lift_max": NUMBER,
    "share_max": NUMBER,
    "incidence_max": NUMBER,
    "label_min": WHOLE,
    "tier_max": NUMBER,
    "tier_incidence_max": NUMBER,
}
VISIT_KEYS = {
    "person": TEXT,
    "lon": TEXT,
    "lat": TEXT,
    "crs": TEXT,
    "layer": TEXT,
    "on_bad_rows": TEXT,
    "points": TEXT,
}
GRID_KEYS = {
    "h3": {"resolution": WHOLE, "column": TEXT},
    "square": {"size": NUMBER, "crs": TEXT},
    "zones": {
        "path": TEXT,
        "id": TEXT,
        "layer": TEXT,
        "column": TEXT,
        "contiguity": TEXT,
        "tolerance": NUMBER,
    },
    "column": {"column": TEXT, "resolution": WHOLE},
}
GATES = Kind("a table of gates", lambda v: isinstance(v, dict))
_ANY_ATTRIBUTE = {
    "column": TEXT,
    "taxonomy": TEXT,
    "taxonomy_version": TEXT,
    "missing": VALUES,
    "sensitive": VALUES,
    "level": WHOLE,
    "gates": GATES,
}
ATTRIBUTE_KEYS = {
    "nominal": {**_ANY_ATTRIBUTE, "unknown": TEXT, "distance": TEXT},
    "ordinal": {**_ANY_ATTRIBUTE, "order": VALUES, "positions": NUMBERS},
    "numeric": {**_ANY_ATTRIBUTE, "edges": NUMBERS, "positions": NUMBERS},
}
REFERENCE_KEYS = {
    "global": {},
    "ring": {"order": WHOLE, "max_order": WHOLE, "min_persons": WHOLE, "fallback": TEXT},
    "region": {"regions": TEXT, "column": TEXT, "layer": TEXT, "min_persons": WHOLE, "fallback": TEXT},
    "weights": {"graph": TEXT, "min_persons": WHOLE, "fallback": TEXT},
}
REMEDY_KEYS = {
    "ladder": TEXTS,
    "recode_scope": TEXT,
    "max_members": WHOLE,
    "max_rounds": WHOLE,
    "residual": FLAG,
}
RELEASE_KEYS = {
    "title": TEXT,
    "abstract": TEXT,
    "licence": TEXT,
    "keywords": TEXTS,
    "note": TEXT,
    "count_min": WHOLE,
}
PLACE_KEYS = {
    "attribute": TEXT,
    "path": TEXT,
    "layer": TEXT,
    "column": Kind("a text in quotes, or a list of texts", lambda v: _text(v) or TEXTS.holds(v)),
    "mapping": TEXT,
    "crs": TEXT,
}
TABLES = ("visits", "grid", "attribute", "gates", "reference", "remedies", "places", "release")


def parse(text: str, name: str) -> Tables:
    """The tables of a policy file, each key checked for its name and kind.

    Parameters
    ----------
    text : str
        TOML.
    name : str
        What messages call the file.

    Raises
    ------
    PolicyError
        Not TOML (with line and column), an unknown table or key (with the nearest known one), a value of the wrong
        kind (with its place, such as ``[gates] k_min``).
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(
            f"'{name}' is not TOML: {error}. Texts stand in quotes, decimals have a point."
        ) from None
    except (
        RecursionError,
        ValueError,
    ) as error:  # brackets in brackets without end; a number of thousands of digits
        why = "too deeply nested" if isinstance(error, RecursionError) else "a number in it is too long"
        raise PolicyError(f"'{name}' cannot be read as a policy: {why}.") from None
    check(tables, name)
    return tables


def named_files(tables: Mapping[str, Any]) -> list[str]:
    """The paths of files that the tables name, as they stand there."""
    grid, reference = tables.get("grid", {}), tables.get("reference", {})
    paths = [row.get("taxonomy") for row in tables.get("attribute", [])]
    paths += [row.get(key) for row in tables.get("places", []) for key in ("path", "mapping")]
    return [
        path for path in (grid.get("path"), reference.get("regions"), reference.get("graph"), *paths) if path
    ]


def check(tables: Mapping[str, Any], name: str) -> None:
    """Raise `PolicyError` unless every table and key is known and of its kind; see `parse`."""
    for table in tables:
        if table not in TABLES:
            raise PolicyError(
                f"'{name}' has an unknown table or key '{table}'.{did_you_mean(table, TABLES)} "
                f"Expected the tables {listed(TABLES)}."
            )
    for table, keys in (("visits", VISIT_KEYS), ("gates", GATE_KEYS), ("remedies", REMEDY_KEYS),
                        ("release", RELEASE_KEYS)):  # fmt: skip
        _check_table(tables.get(table, {}), keys, f"[{table}]", name)
    _check_variant(tables.get("grid", {}), GRID_KEYS, "kind", "[grid]", name)
    reference = {"scope": "global"} | _table(tables, "reference", name)
    _check_variant(reference, REFERENCE_KEYS, "scope", "[reference]", name)
    attributes = tables.get("attribute", [])
    if not isinstance(attributes, list) or not all(isinstance(a, dict) for a in attributes):
        raise PolicyError(f"'{name}': expected attributes as [[attribute]], with two pairs of brackets.")
    for number, attribute in enumerate(attributes, start=1):
        where = f"[[attribute]] {attribute.get('column', number)!r}"
        _check_variant({"kind": "nominal"} | attribute, ATTRIBUTE_KEYS, "kind", where, name)
        _check_table(attribute.get("gates", {}), GATE_KEYS, f"{where} gates", name)
    places = tables.get("places", [])
    if not isinstance(places, list) or not all(isinstance(p, dict) for p in places):
        raise PolicyError(f"'{name}': expected maps of places as [[places]], with two pairs of brackets.")
    for number, table in enumerate(places, start=1):
        _check_table(table, PLACE_KEYS, f"[[places]] {table.get('attribute', number)!r}", name)


def _shown(value: Any) -> str:
    """A value as messages show it, cut off where it is long."""
    return reprlib.repr(value)


def _table(tables: Mapping[str, Any], key: str, name: str) -> dict[str, Any]:
    table = tables.get(key, {})
    if not isinstance(table, dict):
        raise PolicyError(f"'{name}': expected a table [{key}], got {_shown(table)}.")
    return table


def _check_variant(
    table: Any, variants: Mapping[str, Mapping[str, Kind]], selector: str, where: str, name: str
) -> None:
    """Check a table whose keys depend on the value of one of them."""
    if not isinstance(table, dict):
        raise PolicyError(f"'{name}': expected a table {where}, got {_shown(table)}.")
    if not table:
        return
    chosen = table.get(selector)
    if not isinstance(chosen, str) or chosen not in variants:
        raise PolicyError(
            f"'{name}', {where} {selector}: expected one of {listed(variants)}, got "
            f"{'none' if chosen is None else _shown(chosen)}.{did_you_mean(chosen, variants)}"
        )
    for key in table:
        owners = [variant for variant, keys in variants.items() if key in keys]
        if key != selector and owners and chosen not in owners:
            raise PolicyError(
                f"'{name}', {where} {key}: belongs to {selector} {listed(owners)}, not to {chosen!r}."
            )
    _check_table(table, {selector: TEXT, **variants[chosen]}, where, name)


def _check_table(table: Any, keys: Mapping[str, Kind], where: str, name: str) -> None:
    if not isinstance(table, dict):
        raise PolicyError(f"'{name}': expected a table {where}, got {_shown(table)}.")
    for key, value in table.items():
        if key not in keys:
            raise PolicyError(
                f"'{name}', {where}: unknown key '{key}'.{did_you_mean(key, keys)} Expected {listed(keys, 12)}."
            )
        if not keys[key].holds(value):
            raise PolicyError(f"'{name}', {where} {key}: expected {keys[key].words}, got {_shown(value)}.")


def written(tables: Mapping[str, Any]) -> str:
    """The same tables as TOML text: what a run from flags alone puts into the release.

    Examples
    --------
    >>> print(written({"gates": {"k_min": 10}, "attribute": [{"column": "poi"}]}))
    [[attribute]]
    column = "poi"
    <BLANKLINE>
    [gates]
    k_min = 10
    <BLANKLINE>
    """
    blocks = []
    for table in TABLES:
        rows = tables.get(table) or []
        head = f"[[{table}]]" if isinstance(rows, list) else f"[{table}]"
        for row in rows if isinstance(rows, list) else [rows]:
            blocks.append("\n".join([head, *(f"{quoted_key(k)} = {quoted(v)}" for k, v in row.items())]))
    return "\n\n".join(blocks) + "\n"


def quoted(value: Any) -> str:
    """One value as TOML.

    Examples
    --------
    >>> quoted('a "b"'), quoted([1, 2.5, float("inf")]), quoted(True)
    ('"a \\\\"b\\\\""', '[1, 2.5, inf]', 'true')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(quoted(item) for item in value) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{quoted_key(k)} = {quoted(v)}" for k, v in value.items()) + " }"
    return printable(json.dumps(value, ensure_ascii=False))


def quoted_key(key: str) -> str:
    """A key as TOML: bare when it can be."""
    bare = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if bare else quoted(key)
