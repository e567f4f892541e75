"""What a map can be coloured by: remedy, effective count, most common label; classes, colours and counts of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .arrays import IntArray
from .columns import REMEDIES, REMEDY_ENUMS
from .outlines import packed
from .styles import COLOURS, HATCH, NO_FIGURE, SEQUENCE

LABELS = (
    "#4477AA",
    "#EE7733",
    "#228833",
    "#CC3377",
    "#66CCEE",
    "#AA9900",
    "#882255",
    "#44AA99",
    "#B2762B",
    "#6A51A3",
)
"""Fills of the most frequent labels; the others share one."""
OTHERS = "#8C8C8C"
NOT_HERE = "Cells that are not published are not drawn."


def views(cells: pd.DataFrame, metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The views of a map of published zones, the remedy first.

    Parameters
    ----------
    cells : (zones,) DataFrame
        Of a `Release`.
    metadata : mapping
        Of the same.

    Returns
    -------
    list of dict
        title, note, legend (list of label, colour, count, of, hatch), classes: each zone's place in the legend, packed.
    """
    found = [_by_remedy(cells, metadata)]
    for record in metadata.get("attributes", []):
        found += [_by_effective(cells, record["column"]), _by_top(cells, record["column"])]
    return found


def coded(texts: pd.Series[Any]) -> tuple[IntArray, list[str]]:
    """Place of each text among the texts that occur, -1 for nulls, and these texts, the most frequent first."""
    counts = (
        texts.value_counts(sort=False).sort_index(kind="stable").sort_values(ascending=False, kind="stable")
    )
    labels = [str(label) for label in counts.index]
    return texts.map({label: i for i, label in enumerate(counts.index)}).fillna(-1).to_numpy(
        dtype=np.int64
    ), labels


def _by_remedy(cells: pd.DataFrame, metadata: Mapping[str, Any]) -> dict[str, Any]:
    words = REMEDY_ENUMS["geodiv_release_remedy"]
    place = cells["remedy"].map({word: i for i, word in enumerate(words)}).fillna(0).to_numpy(dtype=np.int64)
    found = _view("Remedy", place, [(REMEDIES[w], COLOURS[w]) for w in words], NOT_HERE)
    left = int(metadata.get("not_published") or 0)
    entry = {"label": REMEDIES["suppress"], "colour": COLOURS["suppress"], "count": left, "hatch": HATCH}
    found["legend"].append({**entry, "of": "cell" if left == 1 else "cells"})
    return found


def _by_effective(cells: pd.DataFrame, column: str) -> dict[str, Any]:
    values = cells[f"{column}_effective"].to_numpy(dtype=np.float64, na_value=np.nan)
    bounds = class_edges(values)
    steps = list(pairwise(bounds.tolist()))
    place = np.clip(np.searchsorted(bounds[1:-1], values, side="right"), 0, max(len(steps) - 1, 0))
    place = np.where(np.isfinite(values), place, len(steps)).astype(np.int64)
    shades = [SEQUENCE[round(i * (len(SEQUENCE) - 1) / max(len(steps) - 1, 1))] for i in range(len(steps))]
    entries = [(f"{low:.1f} to {high:.1f}", shade) for (low, high), shade in zip(steps, shades, strict=True)]
    note = f"The number of equally common values that would be as diverse. {NOT_HERE}"
    return _view(
        f"{column}: effective count",
        place,
        [*entries, ("no figure: coarser, or a count is hidden", NO_FIGURE)],
        note,
    )


def class_edges(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Edges of at most five classes with about as many values each, to one decimal; empty without any finite value.

    Examples
    --------
    >>> class_edges(np.array([1.0, 2.0, 3.0, 4.0, 5.0, np.nan])).tolist()
    [1.0, 1.8, 2.6, 3.4, 4.2, 5.0]
    """
    known = values[np.isfinite(values)]
    if not len(known):
        return np.zeros(0)
    edges = np.quantile(known, np.linspace(0, 1, len(SEQUENCE) + 1)).round(1)
    edges[0], edges[-1] = np.floor(known.min() * 10) / 10, np.ceil(known.max() * 10) / 10
    edges = np.unique(edges)
    return edges if len(edges) > 1 else np.array([edges[0], edges[0] + 0.1])


def _by_top(cells: pd.DataFrame, column: str) -> dict[str, Any]:
    names = cells[f"{column}_top"].astype(object)
    level = cells[f"{column}_level"]
    names = names.where(names.isna() | (level == 0), names.astype(str) + " (level " + level.astype(str) + ")")
    place, labels = coded(names)
    shown = [(label, LABELS[i]) for i, label in enumerate(labels[: len(LABELS)])]
    others = [("other labels", OTHERS)] if len(labels) > len(LABELS) else []
    hidden = len(shown) + len(others)
    place = np.where(place < 0, hidden, np.minimum(place, len(shown) if others else len(labels)))
    note = f"The published label with the most persons. {NOT_HERE}"
    return _view(f"{column}: most common", place, [*shown, *others, ("its count is hidden", NO_FIGURE)], note)


def _view(title: str, place: NDArray[Any], entries: Sequence[tuple[str, str]], note: str) -> dict[str, Any]:
    counts = np.bincount(place, minlength=len(entries))
    return {
        "title": title,
        "note": note,
        "legend": [
            {
                "label": label,
                "colour": colour,
                "count": int(n),
                "of": "zone" if n == 1 else "zones",
                "hatch": None,
            }
            for (label, colour), n in zip(entries, counts, strict=True)
        ],
        "classes": packed(place),
    }
