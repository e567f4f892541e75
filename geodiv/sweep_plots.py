"""Plots of sweeps: how the figures change with the size of the cells, or with the thresholds. Internal."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .drawing import literal, need, new_axes, one_attribute, tidy
from .wording import number, reference_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def size_plot(sweep: pd.DataFrame, *, attribute: str | None = None, ax: Axes | None = None) -> Axes:
    """Internal: k against diversity over sizes of the cells, as `geodiv.audits.sweep_sizes` found them.

    Parameters
    ----------
    sweep : DataFrame
        size, attribute, pass_k (share of occupied cells with k_min persons), pass_l, pass_t, pass_all
        (shares of those).
    attribute : str, optional
        Needed where there are several.
    ax : Axes, optional

    Examples
    --------
    >>> shares = {"pass_k": 0.5, "pass_l": 0.4, "pass_t": 0.3, "pass_all": 0.2}
    >>> sweep = pd.DataFrame([{"size": size, "attribute": "poi", **shares} for size in (500, 1000)])
    >>> size_plot(sweep).get_xlabel()
    'side of the squares (m)'
    """
    need(sweep, ["size", "attribute", "pass_k", "pass_l", "pass_t", "pass_all"])
    attribute = one_attribute(list(dict.fromkeys(sweep["attribute"])), attribute)
    rows = sweep[sweep["attribute"] == attribute]
    ax = ax or new_axes()
    lines = {
        "kept": ("persons kept by k_min", "#8C8C8C", ":", "o"),
        "pass_k": ("cells with k_min persons", "#0B4F8A", "-", "o"),
        "pass_l": ("of these, l_min", "#B2182B", "-", "s"),
        "pass_t": ("of these, t_max", "#C4660A", "-", "^"),
        "pass_all": ("of these, every gate", "#1C2430", "--", "D"),
        "coverage": ("coverage after remedies", "#228833", "--", "v"),
    }
    place = np.arange(len(rows))
    for name, (words, colour, dash, mark) in lines.items():
        if name in rows and rows[name].notna().any():
            ax.plot(
                place,
                rows[name].astype(float),
                color=colour,
                linestyle=dash,
                marker=mark,
                markersize=5,
                label=words,
            )
    sizes = rows["size"].to_numpy(dtype=float)
    resolutions = bool(np.all((sizes == sizes.astype(int)) & (sizes <= 15)))
    ax.set_xticks(place, [f"{size:g}" for size in sizes])
    ax.set(
        xlabel="H3 resolution" if resolutions else "side of the squares (m)",
        ylabel="share",
        ylim=(-0.03, 1.03),
    )
    ax.set_title(f"{literal(attribute)}: k against diversity by size (internal)")
    tidy(ax)
    return ax


def threshold_plot(
    sweep: pd.DataFrame,
    *,
    attribute: str | None = None,
    policy: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Internal: risk against utility over thresholds, as `geodiv.audits.sweep_thresholds` found them.

    Parameters
    ----------
    sweep : DataFrame
        l_min, t_max, attribute, pass_all, coverage (nan without remedies: then the share that passes untouched).
    attribute : str, optional
        Needed where there are several.
    policy : mapping, optional
        As in a release's metadata, to say what t is measured against.
    ax : Axes, optional

    Notes
    -----
    Risk is what a reader may learn at most, t_max; utility is the coverage of the release: a line for each l_min.
    Where a single t_max was tried, utility stands over l_min.

    Examples
    --------
    >>> pairs = [{"l_min": 3, "t_max": t, "attribute": "poi", "pass_all": 2 * t} for t in (0.2, 0.3)]
    >>> threshold_plot(pd.DataFrame(pairs)).get_ylabel()
    'utility: share of cells that pass untouched'
    """
    need(sweep, ["l_min", "t_max", "attribute", "pass_all"])
    attribute = one_attribute(list(dict.fromkeys(sweep["attribute"])), attribute)
    over, by = ("t_max", "l_min") if sweep["t_max"].nunique() > 1 else ("l_min", "t_max")
    rows = sweep[sweep["attribute"] == attribute].sort_values([by, over])
    covered = "coverage" in rows and rows["coverage"].notna().any()
    ax = ax or new_axes()
    palette = ("#0B4F8A", "#C4660A", "#228833", "#882255", "#1C2430", "#6BAED6", "#AA9900")
    for i, (held, part) in enumerate(rows.groupby(by, dropna=False, sort=True)):
        name = f"{by} off" if pd.isna(held) else f"{by} = {number(float(str(held)))}"
        x, y = part[over].astype(float), part["coverage" if covered else "pass_all"].astype(float)
        ax.plot(
            x, y, marker="os^DvP*"[i % 7], markersize=max(9 - 1.5 * i, 3), color=palette[i % 7], label=name
        )
    against = reference_words(policy) if policy else "the reference of the policy"
    risk = {
        "t_max": f"risk: t_max, the distance to {against}",
        "l_min": "risk: l_min, the effective values that a reader must still consider",
    }
    ax.set(
        xlabel=fill(risk[over], 64),
        ylabel="utility: coverage of the release"
        if covered
        else "utility: share of cells that pass untouched",
        ylim=(-0.03, 1.03),
    )
    ax.set_title(f"{literal(attribute)}: risk against utility (internal)")
    tidy(ax)
    return ax
