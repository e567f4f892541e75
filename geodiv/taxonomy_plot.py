"""A picture of what a taxonomy does: failing cells that each coarse label clears, and those it worsens. Internal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .drawing import literal
from .pictures import check_picture, write_picture

if TYPE_CHECKING:
    from .taxonomies.check import TaxonomyCheck


def plot_check(found: TaxonomyCheck, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a picture of a check, one bar a coarse label, in the format of the path's extension.

    Raises
    ------
    UsageError, WriteError
        As `geodiv.pictures.write_picture`.
    """
    check_picture(path)
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    labels = found.labels
    figure = Figure(figsize=(7.5, 1.6 + 0.35 * max(len(labels), 1)), layout="constrained")
    axes = figure.add_subplot()
    at = np.arange(len(labels))[::-1]
    axes.barh(at, labels["clears"], color="#2166AC", label="clears")
    axes.barh(at, -labels["worsens"], color="#B2182B", label="worsens")
    axes.set_yticks(at, [literal(text) for text in labels["label"]])
    axes.axvline(0, color="black", linewidth=0.8)
    most = max(int(labels[["clears", "worsens"]].to_numpy().max(initial=0)), 1)
    axes.set_xlim(-1.05 * most, 1.05 * most)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.xaxis.set_major_formatter(lambda x, _: f"{abs(x):.0f}")  # to the left is worse, not below zero
    axes.set_xlabel("number of the cells that fail as they are")
    axes.set_title(f"{literal(found.attribute)}: each coarse value on its own (internal)", loc="left")
    axes.legend(loc="best", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    write_picture(figure, path, overwrite=overwrite)
