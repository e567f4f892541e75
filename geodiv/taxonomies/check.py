"""Check: what a taxonomy does to these visits, coarse value by coarse value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..arrays import BoolArray, FloatArray, IntArray
from ..engines.protocol import Groups
from ..errors import TaxonomyError, listed
from ..labels import LabelSpace
from ..policy import Policy
from ..tabulation import Tabulation
from ..taxonomy import Taxonomy
from ..text import MISSING
from .trial import Trial


@dataclass(frozen=True, slots=True, eq=False)
class TaxonomyCheck:
    """What a taxonomy does to some visits under a policy. Internal: it counts failing cells.

    Parameters
    ----------
    attribute : str
    taxonomy : Taxonomy
    levels : DataFrame
        One row a coarse level: level, labels, publishable, failing (cells at the finest level), cleared (of these),
        cleared_share, worsened (failing cells whose belief becomes less diverse), information_lost (0 to 1, share of
        the values' entropy over all eligible cells that the labels no longer tell).
    labels : DataFrame
        One row a coarse label of several values that occur: level, label, values, sensitive_only, persons (distinct,
        in eligible cells), together (0 to 1, share of its contributions in cells where another of its values occurs
        too), cells, clears, worsens (cells that fail as they are, were this label alone joined), information_lost.
    findings : tuple of str
        In words; no count of persons.
    """

    attribute: str
    taxonomy: Taxonomy
    levels: pd.DataFrame
    labels: pd.DataFrame
    findings: tuple[str, ...]


def check_taxonomy(table: Tabulation, policy: Policy, attribute: str | None = None) -> TaxonomyCheck:
    """What the taxonomy of an attribute does to these visits under a policy.

    Parameters
    ----------
    table : Tabulation
    policy : Policy
    attribute : str, optional
        Needed when the table has several.

    Raises
    ------
    TaxonomyError
        The attribute has no taxonomy.
    PolicyError
        No such attribute, or a policy that does not fit.

    Examples
    --------
    >>> import geodiv as gd
    >>> run = gd.read_run("fixtures/policy.toml")
    >>> table = run.tabulate("fixtures/visits.parquet")
    >>> type(gd.check_taxonomy(table, run.policy, "poi_category")).__name__
    'TaxonomyCheck'
    """
    trial = Trial.of(table, policy, attribute)
    declared = table.attributes[trial.attribute]
    if declared.taxonomy is None:
        raise TaxonomyError(
            f"'{declared.column}': expected an attribute with a taxonomy, got none. Give one, or look for one with "
            "taxonomy suggest."
        )
    fails, fine = trial.fails_as_it_is()
    levels = _levels(trial, fails, fine)
    labels = _labels(trial, fails, fine, declared.sensitive is not None)
    words = (
        *_structure(trial, declared.taxonomy),
        *_effects(trial, levels, labels, declared.sensitive is not None),
    )
    return TaxonomyCheck(declared.column, declared.taxonomy, levels, labels, words)


def _levels(trial: Trial, fails: BoolArray, fine: FloatArray) -> pd.DataFrame:
    space = trial.space
    groupings = list(space.up[1:])
    passes, effective = trial.judged(groupings)
    rows = []
    for h, up in enumerate(groupings, start=1):
        cleared = fails & passes[:, h - 1] & space.publishable[h]
        rows.append(
            {
                "level": h,
                "labels": len(space.levels[h]),
                "publishable": space.publishable[h],
                "failing": int(fails.sum()),
                "cleared": int(cleared.sum()),
                "cleared_share": float(cleared.sum() / fails.sum()) if fails.any() else np.nan,
                "worsened": int((fails & _less(effective[:, h - 1], fine)).sum()),
                "information_lost": information_lost(trial.mix, up),
            }
        )
    columns = [
        "level",
        "labels",
        "publishable",
        "failing",
        "cleared",
        "cleared_share",
        "worsened",
        "information_lost",
    ]
    return pd.DataFrame(rows, columns=columns)


def _labels(trial: Trial, fails: BoolArray, fine: FloatArray, named: bool) -> pd.DataFrame:
    space = trial.space
    chosen = _joined(space, trial.mix > 0)
    passes, effective = trial.judged([alone(space, values) for _, _, values in chosen])
    persons = _persons(trial, [values for _, _, values in chosen])
    rows = []
    for i, (level, label, values) in enumerate(chosen):
        n = trial.fine[:, values]
        there = n.sum(axis=1) > 0
        rows.append(
            {
                "level": level,
                "label": label,
                "values": ", ".join(space.values[v] for v in values),
                "sensitive_only": bool(named and space.sensitive[0][values].all()),
                "persons": int(persons[i]),
                "together": float(n[(n > 0).sum(axis=1) > 1].sum() / max(n.sum(), 1.0)),
                "cells": int(there.sum()),
                "clears": int((fails & there & passes[:, i]).sum()),
                "worsens": int((fails & there & _less(effective[:, i], fine)).sum()),
                "information_lost": information_lost(trial.mix, alone(space, values)),
            }
        )
    columns = [
        "level",
        "label",
        "values",
        "sensitive_only",
        "persons",
        "together",
        "cells",
        "clears",
        "worsens",
    ]
    return pd.DataFrame(rows, columns=[*columns, "information_lost"])


def alone(space: LabelSpace, values: IntArray) -> IntArray:
    """(values,) the grouping that joins some values and leaves all others as they are."""
    group = np.arange(len(space.values))
    group[values] = values.min()
    return np.unique(group, return_inverse=True)[1].astype(np.int64)


def information_lost(mix: FloatArray, up: IntArray) -> float:
    """Share of the values' entropy that their labels no longer tell, ``H(value | label) / H(value)``, 0 to 1.

    Examples
    --------
    >>> information_lost(np.array([0.25, 0.25, 0.25, 0.25]), np.array([0, 0, 1, 1]))
    0.5
    """
    whole = _entropy(mix)
    told = _entropy(np.bincount(up, weights=mix).astype(float)) if len(mix) else 0.0
    return float(1.0 - told / whole) if whole > 0 else 0.0


def _entropy(p: FloatArray) -> float:
    p = p[p > 0]
    return float(-(p * np.log(p)).sum())


def _less(effective: FloatArray, fine: FloatArray) -> BoolArray:
    return np.asarray(effective < fine - 1e-9)


def _joined(space: LabelSpace, occurs: BoolArray) -> list[tuple[int, str, IntArray]]:
    """Level, label and values of each coarse label that joins several values; once where levels repeat it."""
    found: list[tuple[int, str, IntArray]] = []
    seen: set[tuple[int, ...]] = set()
    for h in range(1, len(space.levels)):
        for code, label in enumerate(space.levels[h]):
            values = np.flatnonzero((space.up[h] == code) & occurs)
            if len(values) > 1 and tuple(values) not in seen:
                seen.add(tuple(values))
                found.append((h, label, values))
    return found


def _persons(trial: Trial, sets: list[IntArray]) -> IntArray:
    """(sets,) distinct persons with any of some values in an eligible cell."""
    pairs = trial.table.contributions.pairs[trial.attribute]
    inside = np.isin(pairs.cell, trial.rows)
    found = [np.flatnonzero(inside & np.isin(pairs.value, values)) for values in sets]
    at = np.concatenate([np.zeros(0, dtype=np.int64), *found]).astype(np.int64)
    group = np.repeat(np.arange(len(sets)), [len(rows) for rows in found]).astype(np.int64)
    groups = Groups(trial.attribute, pairs.cell[at], pairs.value[at], group, len(sets))
    return trial.table.engine.count(trial.table.contributions, groups)


def _structure(trial: Trial, taxonomy: Taxonomy) -> list[str]:
    """What can be said without any policy."""
    space, words = trial.space, []
    occurring = {
        space.values[v] for v in np.flatnonzero(trial.table.base.labels[trial.attribute][0].sum(axis=0))
    }
    known = set(taxonomy.values)
    if orphans := sorted(occurring - known - {MISSING}):
        words.append(f"values without a parent: {listed(orphans)}. They stand for themselves at every level.")
    if idle := sorted(known - occurring):
        words.append(f"values of the taxonomy without a visit: {listed(idle)}.")
    for h in range(1, taxonomy.height + 1):
        below: dict[str, set[str]] = {}
        for row in taxonomy.rows:
            below.setdefault(row[h], set()).add(row[0])
        if empty := sorted(
            label for label, values in below.items() if len(values) > 1 and not values & occurring
        ):
            words.append(f"parents without values at level{h}: {listed(empty)} hold no value that occurs.")
        if equal := sorted(label for label, values in below.items() if label in known and values != {label}):
            words.append(
                f"level{h} labels with the name of a value: {listed(equal)}. A reader cannot tell the two apart; "
                "rename the label."
            )
        if not space.publishable[h]:
            words.append(
                f"level{h} has a single label: it would say nothing and pass everything; never published."
            )
    return words


def _effects(trial: Trial, levels: pd.DataFrame, labels: pd.DataFrame, named: bool) -> list[str]:
    """What the labels do to the cells that fail."""
    words = []
    for row in levels.to_dict("records"):
        if row["failing"] and row["publishable"]:
            words.append(
                f"level{row['level']} clears {row['cleared_share']:.0%} of the cells that fail, for "
                f"{row['information_lost']:.0%} of what the values tell."
            )
    if not levels["failing"].any():
        words.append("no cell fails at the finest values: nothing is to be cleared.")
    for row in labels.to_dict("records"):
        words += _about({str(k): v for k, v in row.items()}, bool(levels["failing"].any()))
    if not named:
        words.append(
            "no sensitive values are named: coarse values that consist of them alone cannot be pointed out."
        )
    return words


def _about(row: dict[str, Any], failing: bool) -> list[str]:
    words = []
    if row["sensitive_only"]:
        words.append(
            f"'{row['label']}' (level{row['level']}) consists of sensitive values only: it still tells. Join them with "
            "what is not sensitive."
        )
    if failing and row["worsens"] > row["clears"]:
        how = "clears no cell on its own" if not row["clears"] else "clears fewer cells than it worsens"
        words.append(
            f"'{row['label']}' (level{row['level']}) {how}: {row['together']:.0%} of its visits are where another of "
            "its values occurs too. It joins what clusters, or what the surroundings lack."
        )
    return words
