"""Records: what a release, a policy and an attribute say of themselves, as plain values that JSON can hold."""

from __future__ import annotations

import platform
from dataclasses import asdict
from functools import cache
from importlib import metadata as packages
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from . import __version__
from .attribute import Attribute
from .engines.protocol import Groups
from .labels import LabelSpace
from .policy import Gates, Policy, Region, Ring, Weights
from .publication import Publication
from .scores import Judge
from .tabulation import Counts, Tabulation

LIBRARIES = (
    "numpy",
    "scipy",
    "pandas",
    "pyarrow",
    "geopandas",
    "pyogrio",
    "shapely",
    "pyproj",
    "h3",
    "libpysal",
)


def release_record(
    judge: Judge,
    counts: Counts,
    cells: pd.DataFrame,
    scope: NDArray[Any],
    rounds: int,
    publication: Publication,
    run_text: str,
) -> dict[str, Any]:
    """The metadata of a release: what `release.json` holds.

    Parameters
    ----------
    judge : Judge
    counts : Counts
        Of the published zones.
    cells : DataFrame
        The release's cells.
    scope : (zones,) object
        What each was judged against.
    rounds : int
    publication : Publication
    run_text : str
    """
    table, policy = judge.table, judge.policy
    eligible = judge.references.eligible
    published = np.zeros(len(table.cells), bool)
    published[counts.members.indices] = True
    kept, all_ = int(table.persons[published & eligible].sum()), int(table.persons[eligible].sum())
    remedies = {
        name: int((cells["remedy"] == name).sum())
        for name in ("publish", "publish_coarsened", "publish_merged")
    }
    return {
        "format": "geodiv release 1",
        **{k: list(v) if isinstance(v, tuple) else v for k, v in asdict(publication).items()},
        "run": run_text,
        "policy": policy_record(policy),
        "grid": table.grid.describe(),
        "attributes": [
            attribute_record(a, s, policy) for a, s in zip(table.attributes, table.spaces, strict=True)
        ],
        "count_basis": "distinct persons",
        "cells": int(published.sum()),
        "zones": len(cells),
        "persons": _distinct_persons(table, counts),
        "rounds": rounds,
        "remedies": remedies,
        "not_published": int((~published).sum()),
        "coverage": round(kept / all_, 2) if all_ else 0.0,
        "reference": {name: int((scope == name).sum()) for name in sorted(set(scope))},
        "dropped": {reason: int(n) for reason, n in sorted(table.intake.dropped.items())},
        "engine": table.engine.describe(),
        "versions": versions(),
        "input_digest": table.intake.digest,
    }


def _distinct_persons(table: Tabulation, counts: Counts) -> int:
    """Distinct persons in published zones: counted over their union, never summed."""
    cell = counts.members.indices.astype(np.int64)
    if not len(cell):
        return 0
    return int(table.engine.count(table.contributions, Groups(None, cell, None, np.zeros_like(cell), 1))[0])


def policy_record(policy: Policy) -> dict[str, Any]:
    """The policy as plain values: its gates, its reference with its scope, its remedies."""
    gates = {k: v for k, v in asdict(policy.thresholds()).items() if v is not None}
    reference = policy.reference
    scope = type(reference).__name__.lower()
    record: dict[str, Any] = {"scope": scope}
    if isinstance(reference, Ring):
        record |= {"order": reference.order, "max_order": reference.max_order}
    if isinstance(reference, Ring | Region | Weights):
        record |= {"min_persons": reference.min_persons, "fallback": reference.fallback}
    maps = [
        {"attribute": p.attribute, "name": p.name, "places": p.total, "digest": p.digest}
        for p in policy.places
    ]
    return {
        "gates": gates,
        "reference": record,
        **({"places": maps} if maps else {}),
        "ladder": list(policy.ladder),
        "recode_scope": policy.recode_scope,
        "max_members": policy.max_members,
        "max_rounds": policy.max_rounds,
        "residual": policy.residual,
    }


def attribute_record(attribute: Attribute, space: LabelSpace, policy: Policy) -> dict[str, Any]:
    """One attribute as plain values: its kind, labels of each level, taxonomy, tier and gates in force."""
    taxonomy = attribute.taxonomy
    gates: Gates = policy.thresholds(attribute)
    return {
        "column": attribute.column,
        "kind": type(attribute).__name__.lower(),
        "levels": [list(labels) for labels in space.levels],
        "above": [codes.tolist() for codes in space.up],
        "taxonomy": None
        if taxonomy is None
        else {"name": taxonomy.name, "version": taxonomy.version, "digest": taxonomy.digest},
        "missing": list(attribute.missing),
        "sensitive": None if attribute.sensitive is None else list(attribute.sensitive),
        "level": attribute.level,
        "distance": getattr(attribute, "distance", "ordered"),
        "positions": _positions(attribute),
        "gates": {k: v for k, v in asdict(gates).items() if v is not None},
    }


def _positions(attribute: Attribute) -> list[float] | None:
    positions = getattr(attribute, "positions", None)
    return None if positions is None else [float(x) for x in positions]


def versions() -> dict[str, str]:
    """Of Python, of the geodiv that runs, installed or not, and of its libraries."""
    return {
        "python": platform.python_version(),
        "geodiv": __version__,
        **{name: _version(name) for name in LIBRARIES},
    }


@cache
def _version(name: str) -> str:
    try:
        return packages.version(name)
    except packages.PackageNotFoundError:
        return "unknown"
