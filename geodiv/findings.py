"""Findings: what a report says, as plain values; public ones from a release, internal ones from a work file."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from . import __version__, audits
from .audits.published import attribute_records, published
from .errors import SourceError
from .measures import noise_floor
from .policy import GATES
from .summary import public_figures
from .wording import AGAINST_REFERENCE, reference_words

if TYPE_CHECKING:
    from .release import Release
    from .workfile import Work

PUBLIC = "PUBLIC: every figure in this report stands in the release, or follows from it."
INTERNAL = "INTERNAL: failing cells and their figures. Not for publication."
ABOUT = ("title", "abstract", "licence", "keywords", "note", "count_basis", "count_min", "grid")
BY_CHANCE = 1.25
"""A distance up to this many times its noise floor is what chance alone may give: its spread is about a fifth of it."""


def public_findings(release: Release) -> dict[str, Any]:
    """What the public report says of a release: nothing but published figures, and what follows from them."""
    metadata = release.metadata
    return {
        "format": "geodiv report 1",
        "variant": "public",
        "notice": PUBLIC,
        **_about(metadata),
        "released": public_figures(metadata) | {"levels": list(_levels(release))},
        "thresholds": thresholds(metadata),
        "reference": _reference(metadata, metadata["reference"]),
        "noise_floor": list(_published_noise(release)),
        "intake": {"dropped": dict(metadata["dropped"])},
        "audits": _audits(release),
        "not_carried": list(metadata.get("not_carried") or []),
        **_provenance(metadata),
    }


def internal_findings(work: Work) -> dict[str, Any]:
    """What the internal report says of a work file: everything."""
    metadata = work.metadata
    enforced = bool(len(work.final_scores)) or "zones" in metadata
    return {
        "format": "geodiv report 1",
        "variant": "internal",
        "notice": INTERNAL,
        **_about(metadata),
        "released": public_figures(metadata) if "zones" in metadata else None,
        "thresholds": thresholds(metadata),
        "reference": _reference(metadata, Counter(work.scores["reference_scope"].dropna())),
        "before": list(_before(work.scores)),
        "noise_floor": list(_scored_noise(work.scores)),
        "fate": _counts(work.cells["final_remedy"]) if enforced else None,
        "final": list(_final(work.final_scores)) if enforced else None,
        "rounds": _records(work.rounds) if enforced else None,
        "intake": {
            "rows": dict(zip(work.intake["reason"], work.intake["rows"].astype(int).tolist(), strict=True)),
            "dropped": dict(metadata.get("dropped") or {}),
        },
        "work_list": _records(work_list(work.scores)),
        "audits": None,
        **_provenance(metadata),
    }


def thresholds(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row per attribute and gate: attribute, gate, threshold, and against, what it is taken against.

    `against` is the reference and its scope in words for gates that need one (t_max, shift_max, lift_max), else None.
    """
    policy = metadata.get("policy") or {}
    reference = reference_words(policy)
    records = metadata.get("attributes") or [{"column": "every attribute", "gates": policy.get("gates", {})}]
    return [
        {
            "attribute": record["column"],
            "gate": gate,
            "threshold": value,
            "against": reference if gate in AGAINST_REFERENCE else None,
        }
        for record in records
        for gate, value in record.get("gates", {}).items()
    ]


def work_list(scores: pd.DataFrame) -> pd.DataFrame:
    """The eligible cells that fail, the surest disclosure first."""
    names = [
        "cell_id",
        "attribute",
        "persons",
        "effective_fine",
        "top_value",
        "top_share",
        "incidence",
        "distance",
        "reference_scope",
        "noise_floor",
        "fails",
        "final_remedy",
    ]
    failing = scores[_eligible(scores) & (scores["fails"].fillna("") != "")]
    order = ["top_share", "cell_id", "attribute"]
    return failing.sort_values(order, ascending=[False, True, True], ignore_index=True)[names]


def _about(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {key: metadata.get(key) for key in ABOUT}


def _provenance(metadata: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("attributes", "policy", "engine", "versions", "input_digest", "run")
    return {key: metadata.get(key) for key in kept} | {"geodiv": __version__}


def _reference(metadata: Mapping[str, Any], tally: Mapping[str, Any]) -> dict[str, Any]:
    policy = metadata.get("policy") or {}
    return {
        "policy": policy.get("reference"),
        "words": reference_words(policy),
        "scopes": {str(scope): int(n) for scope, n in sorted(tally.items())},
    }


def _levels(release: Release) -> Iterator[dict[str, Any]]:
    for record in release.metadata.get("attributes", []):
        column = record["column"]
        tally = release.cells[f"{column}_level"].value_counts().sort_index()
        hidden = release.counts[(release.counts["attribute"] == column) & release.counts["persons"].isna()]
        yield {
            "attribute": column,
            "zones_by_level": {str(level): int(n) for level, n in tally.items()},
            "zones_with_hidden_counts": int(hidden["cell_id"].nunique()),
        }


def _published_noise(release: Release) -> Iterator[dict[str, Any]]:
    """The noise floor of zones at their finest level without hidden counts, against the published global mix."""
    if not len(release.counts) or not len(release.cells):
        return
    for record in attribute_records(release):
        one = published(release, record)
        rows = np.flatnonzero(one.level == 0)
        n, hidden = one.table(rows, 0)
        known = ~hidden.any(axis=1)
        mix = one.mix[0]
        row = {"attribute": one.column, "of": "published zones without coarser labels or hidden counts"}
        row |= {
            "against": "the published mix of the whole area (global)",
            "t_max": record["gates"].get("t_max"),
        }
        if np.isnan(mix).any() or not mix.any() or not known.any():  # shares below the third decimal are 0
            yield row | {"zones": 0, "median": None, "largest": None, "above_t": None}
        else:
            floor = noise_floor(n[known].sum(axis=1).astype(np.int64), mix / mix.sum(), one.space.tree)
            yield row | _floors(floor, record["gates"].get("t_max"))


def _scored_noise(scores: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for column, rows in scores[_eligible(scores)].groupby("attribute", sort=False):
        floor = rows["noise_floor"].to_numpy(dtype=float)
        far = rows["fails"].fillna("").str.contains(r"\bt_max\b")
        chance = far & (rows["distance"] <= BY_CHANCE * rows["noise_floor"])
        yield {
            "attribute": column,
            "of": "cells with at least k_min persons",
            "against": "the reference of each cell",
            **_floors(floor[np.isfinite(floor)], None),
            "fail_t": int(far.sum()),
            "fail_t_by_chance": int(chance.sum()),
        }


def _floors(floor: Any, t_max: float | None) -> dict[str, Any]:
    known = len(floor) > 0
    return {
        "zones": len(floor),
        "median": _plain(float(np.median(floor))) if known else None,
        "largest": _plain(float(floor.max())) if known else None,
        "above_t": None if t_max is None else int((floor > t_max).sum()),
    }


def _audits(release: Release) -> dict[str, Any]:
    """The audits that a published file allows, or why there are none."""
    try:
        attack = audits.attack(release).figures()
        ruled = audits.ruling_out(release).groupby("attribute", sort=False).head(1)
        moved = audits.minimality(release)["moved"]
    except SourceError as error:
        return {"error": str(error)}
    known = bool(moved.notna().any())
    return {
        "attack": attack,
        "ruling_out": _records(ruled),
        "minimality": {
            "zones": len(moved),
            "moved": _plain(float(moved.mean())) if known else None,
            "largest": _plain(float(moved.max())) if known else None,
        },
    }


def _eligible(scores: pd.DataFrame) -> pd.Series[bool]:
    return ~scores["fails"].fillna("").str.contains(r"\bk_min\b")


def _before(scores: pd.DataFrame) -> Iterator[dict[str, Any]]:
    below = ~_eligible(scores)
    for column, rows in scores.groupby("attribute", sort=False):
        judged = rows[~below[rows.index]]
        fails = judged["fails"].fillna("")
        gates = Counter(gate for text in fails for gate in text.split(",") if gate)
        yield {
            "attribute": column,
            "cells": len(rows),
            "below_k": int(below[rows.index].sum()),
            "eligible": len(judged),
            "passing": int((fails == "").sum()),
            "fails": {gate: gates[gate] for gate in (*GATES, "no_reference") if gates[gate]},
            "remedy": _counts(judged["remedy"]),
        }


def _final(scores: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The true extremes of the published zones."""
    for column, rows in scores.groupby("attribute", sort=False):
        worst = {
            f"largest_{name}": _plain(float(rows[name].max()))
            for name in ("distance", "shift", "lift", "incidence", "top_share")
        }
        yield {
            "attribute": column,
            "zones": len(rows),
            "failing": int((rows["fails"].fillna("") != "").sum()),
            "smallest_effective": _plain(float(rows["effective_fine"].min())),
            **worst,
        }


def _counts(words: pd.Series[Any]) -> dict[str, int]:
    return {str(word): int(n) for word, n in words.value_counts(sort=False).sort_index().items()}


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): _plain(value) for key, value in row.items()} for row in frame.to_dict("records")]


def _plain(value: Any) -> Any:
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return None
    value = value.item() if isinstance(value, np.generic) else value
    return round(value, 6) if isinstance(value, float) and math.isfinite(value) else value
