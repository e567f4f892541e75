"""A picture of what a taxonomy does: failing cells that each coarse label clears, and those it worsens. Internal."""

from __future__ import annotations

from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING

import numpy as np

from .errors import UsageError

if TYPE_CHECKING:
    from .taxonomies.check import TaxonomyCheck


def plot_check(found: TaxonomyCheck, path: str | Path) -> None:
    """Write a picture of a check, one bar a coarse label, in the format of the path's extension.

    Raises
    ------
    UsageError
        matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("a plot needs matplotlib: pip install 'geodiv[map]'.") from None
    labels = found.labels
    figure = Figure(figsize=(7.5, 1.6 + 0.35 * max(len(labels), 1)), layout="constrained")
    axes = figure.add_subplot()
    at = np.arange(len(labels))[::-1]
    axes.barh(at, labels["clears"], color="#2166AC", label="clears")
    axes.barh(at, -labels["worsens"], color="#B2182B", label="worsens")
    axes.set_yticks(at, [shorten(text, 40, placeholder="...") for text in labels["label"]])
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xlabel("cells that fail as they are")
    axes.set_title(f"{found.attribute}: each coarse value on its own (internal)", loc="left")
    axes.legend(loc="best", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
