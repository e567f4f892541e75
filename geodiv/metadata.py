"""What the metadata of a release must be, key by key: the file that it is read from may come from anybody."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from .errors import PolicyError, SourceError
from .policy import Gates

Test = Callable[[Any], bool]


def parsed(text: Any, where: str) -> dict[str, Any]:
    """The metadata that a text holds.

    Parameters
    ----------
    text : str or bytes
        JSON in UTF-8; what else a column may hold is no metadata.
    where : str
        What messages call the file.

    Raises
    ------
    SourceError
        It is no JSON object, or a key that it has is not what geodiv writes under that name. A key that is not there is
        no fault here: who needs it says so.
    """
    try:
        metadata = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        why = "brackets in brackets without end" if isinstance(error, RecursionError) else error
        raise SourceError(f"expected the metadata of a release in {where}, got: {why}.") from error
    if not isinstance(metadata, dict):
        raise SourceError(f"expected the metadata of a release in {where}, got a {type(metadata).__name__}.")
    if (wrong := _wrong(metadata, SHAPE, "")) is not None:
        raise SourceError(
            f"expected the metadata of a release in {where}; its '{wrong}' is not what geodiv writes there."
        )
    return metadata


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _number(value: Any) -> bool:
    return _whole(value) or (isinstance(value, float) and math.isfinite(value))


def _plain(value: Any) -> bool:
    return value is None or _text(value) or _flag(value) or _number(value) or _list(_text)(value)


def _list(of: Test) -> Test:
    return lambda value: isinstance(value, list) and all(of(each) for each in value)


def _map(of: Test) -> Test:
    return lambda value: isinstance(value, dict) and all(of(each) for each in value.values())


def _or_none(of: Test) -> Test:
    return lambda value: value is None or of(value)


def _record(shape: Mapping[str, Test]) -> Test:
    return lambda value: isinstance(value, dict) and _wrong(value, shape, "") is None


def _gates(value: Any) -> bool:
    if not isinstance(value, dict) or not set(value) <= set(Gates.__slots__):
        return False
    try:
        Gates(**value)
    except PolicyError:
        return False
    return True


def _attribute(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and set(ATTRIBUTE) <= set(value)
        and _wrong(value, ATTRIBUTE, "") is None
        and _is_tree(value["levels"], value["above"], value["level"])
        and (value["positions"] is None or _is_ascending(value["positions"], len(value["levels"][0])))
    )


def _is_tree(levels: Sequence[Sequence[str]], above: Sequence[Sequence[int]], level: int) -> bool:
    """Whether labels differ in each level, and each value has one label of each level above it."""
    if not levels or len(above) != len(levels) or level >= len(levels):
        return False
    return all(
        len(set(labels)) == len(labels)
        and len(codes) == len(levels[0])
        and set(codes) == set(range(len(labels)))
        for labels, codes in zip(levels, above, strict=True)
    )


def _is_ascending(positions: Sequence[float], values: int) -> bool:
    """Whether positions rise, one a value; the missing value has none."""
    return all(a < b for a, b in pairwise(positions)) and len(positions) in (values, values - 1)


def _taxonomy(value: Any) -> bool:
    return _map(_text)(value) and {"name", "version", "digest"} <= set(value)


def _grid(value: Any) -> bool:
    if not _map(_plain)(value):
        return False
    needed = {"h3": {"resolution"}, "square": {"size", "crs"}, "column": {"column"}}
    return needed.get(str(value.get("kind")), set()) <= set(value)


ATTRIBUTE: Mapping[str, Test] = {
    "column": _text,
    "kind": _text,
    "levels": _list(_list(_text)),
    "above": _list(_list(_whole)),
    "taxonomy": _or_none(_taxonomy),
    "missing": _list(_text),
    "sensitive": _or_none(_list(_text)),
    "level": _whole,
    "distance": _text,
    "positions": _or_none(_list(lambda v: isinstance(v, int | float) and math.isfinite(v))),
    "gates": _gates,
}
REFERENCE: Mapping[str, Test] = {
    "scope": _text,
    "order": _whole,
    "max_order": _whole,
    "min_persons": _whole,
    "fallback": _text,
}
POLICY: Mapping[str, Test] = {
    "gates": _gates,
    "reference": _record(REFERENCE),
    "places": _list(_map(_plain)),
    "ladder": _list(_text),
    "recode_scope": _text,
    "max_members": _whole,
    "max_rounds": _whole,
    "residual": _flag,
}
SHAPE: Mapping[str, Test] = {
    "format": _text,
    "title": _text,
    "abstract": _text,
    "licence": _text,
    "keywords": _list(_text),
    "note": _text,
    "count_min": _whole,
    "run": _text,
    "policy": _record(POLICY),
    "grid": _grid,
    "attributes": _list(_attribute),
    "count_basis": _text,
    "cells": _whole,
    "zones": _whole,
    "persons": _whole,
    "rounds": _whole,
    "remedies": _map(_whole),
    "not_published": _whole,
    "coverage": _number,
    "reference": _map(_whole),
    "dropped": _map(_whole),
    "engine": _map(_text),
    "versions": _map(_text),
    "input_digest": _text,
    "not_carried": _list(_text),
}
"""Tests of the keys that geodiv writes; others are let be."""


def _wrong(record: Mapping[str, Any], shape: Mapping[str, Test], at: str) -> str | None:
    """The first key of a record that is not of its kind, or None."""
    return next((at + key for key, test in shape.items() if key in record and not test(record[key])), None)
