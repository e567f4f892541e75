"""Plots: a release, its scores and its sweeps with matplotlib (the ``map`` extra). Each returns its Axes.

The functions that take scores or sweeps show internal figures; those that take a `Release` show published ones only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import geopandas as gpd
import numpy as np
import pandas as pd

from .columns import REMEDIES
from .drawing import DENSE, fill_classes, literal, map_axes, need, new_axes, one_attribute, tidy
from .errors import UsageError
from .mix_plots import cell_mix_plot, mix_plot
from .policy import GATES
from .release import Release
from .styles import COLOURS, HATCHED
from .sweep_plots import size_plot, threshold_plot
from .wording import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "cell_mix_plot",
    "distinct_effective",
    "failing_map",
    "mix_plot",
    "remedy_map",
    "size_plot",
    "threshold_plot",
]

GATE_COLOURS = {
    "passes": "#C9DDEC",
    "incidence_max": "#7A0A1F",
    "tier_incidence_max": "#8C0F24",
    "tier_max": "#9E1528",
    "l_min": "#B2182B",
    "c_max": "#D6604D",
    "share_max": "#E58267",
    "shift_max": "#F4A582",
    "lift_max": "#F7BE9F",
    "t_max": "#FDDBC7",
    "label_min": "#D9BFD9",
    "no_reference": "#B5B5B5",
    "k_min": "#E4E4E4",
}
"""Fill by the gate that a cell fails, the plainest disclosure first and darkest; below k_min it is hatched."""
GATE_WORDS = {
    "passes": "passes every gate",
    "incidence_max": "nearly all did one thing (incidence_max)",
    "tier_incidence_max": "nearly all did something sensitive (tier_incidence_max)",
    "tier_max": "most visits were for something sensitive (tier_max)",
    "l_min": "too few values in effect (l_min)",
    "c_max": "the rest follows when a few are ruled out (c_max)",
    "share_max": "one value stands out (share_max)",
    "shift_max": "one value stands out from its surroundings (shift_max)",
    "lift_max": "a rare value is likely (lift_max)",
    "t_max": "far from its surroundings (t_max)",
    "label_min": "a label with few persons (label_min)",
    "no_reference": "nothing to judge it by (no_reference)",
    "k_min": "fewer persons than k_min, not judged",
}


def remedy_map(cells: Release | gpd.GeoDataFrame, *, column: str = "remedy", ax: Axes | None = None) -> Axes:
    """Zones, or cells of a work file, coloured by remedy.

    Parameters
    ----------
    cells : Release, or GeoDataFrame with `column`
        The cells of a work file are internal.
    column : str
        ``remedy``, or ``final_remedy`` for what became of the cells of a work file.
    ax : Axes, optional

    Examples
    --------
    >>> import geopandas as gpd, shapely
    >>> zones = gpd.GeoDataFrame({"remedy": ["publish"]}, geometry=[shapely.box(0, 0, 1, 1)], crs="EPSG:3035")
    >>> remedy_map(zones).get_title()
    'Zones by remedy'
    """
    released = isinstance(cells, Release)
    frame = _located(cells.cells if isinstance(cells, Release) else cells)
    need(frame, [column])
    if "attribute" in frame.columns:  # scores: a cell needs what its worst attribute needs
        rank = frame[column].map({word: i for i, word in enumerate(REMEDIES)})
        frame = frame.loc[rank.sort_values(kind="stable").index].drop_duplicates("cell_id", keep="last")
    words = [word for word in REMEDIES if (frame[column] == word).any()]
    ax = map_axes(frame, ax, len(words))
    fill_classes(ax, frame, frame[column], [(w, COLOURS[w], REMEDIES[w], w in HATCHED) for w in words])
    internal = " (internal)" if {"merge_or_suppress", "suppress"} & set(words) or column != "remedy" else ""
    ax.set_title(
        "Published zones by remedy"
        if released
        else f"Zones by remedy{internal}"
        if column == "remedy"
        else f"What became of the cells{internal}"
    )
    return ax


def failing_map(scores: gpd.GeoDataFrame, *, ax: Axes | None = None) -> Axes:
    """Internal: cells by the plainest disclosure among the gates that they fail, in any attribute.

    Parameters
    ----------
    scores : GeoDataFrame
        As `geodiv.score` gives them, or the cells of a work file.
    ax : Axes, optional

    Examples
    --------
    >>> import geodiv as gd
    >>> run = gd.read_run("fixtures/policy.toml")
    >>> ax = failing_map(gd.score(run.tabulate("fixtures/visits.parquet"), run.policy))
    >>> ax.get_title()
    'Cells by what they give away (internal)'
    """
    frame = _located(scores)
    worst = _worst(frame)
    first = ~frame["cell_id"].duplicated()
    names = [gate for gate in GATE_COLOURS if (worst[first] == gate).any()]
    ax = map_axes(frame, ax, len(names))
    entries = [(g, GATE_COLOURS[g], GATE_WORDS[g], g == "k_min") for g in names]
    fill_classes(ax, frame[first], worst[first], entries)
    ax.set_title("Cells by what they give away (internal)")
    return ax


def distinct_effective(
    scores: Release | pd.DataFrame,
    *,
    attribute: str | None = None,
    l_min: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Distinct values against the effective count, with the l line: what lies below it is the work list.

    Parameters
    ----------
    scores : DataFrame or Release
        Scores as `geodiv.score` gives them (internal): cells with at least k_min persons. Of a release, the zones
        at their finest values without hidden counts.
    attribute : str, optional
        Needed where there are several.
    l_min : float, optional
        Where to draw the line; a release knows its own.
    ax : Axes, optional

    Examples
    --------
    >>> import geodiv as gd
    >>> release = gd.read_run("fixtures/policy.toml").enforce("fixtures/visits.parquet").release
    >>> ax = distinct_effective(release, attribute="income_band")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('distinct values', 'effective count exp(H), in values')
    """
    if isinstance(scores, Release):
        attribute = one_attribute([r["column"] for r in scores.metadata.get("attributes", [])], attribute)
        l_min = _gate(scores.metadata, attribute, "l_min") if l_min is None else l_min
        shown, unit = _published_counts(scores, attribute), "published zone"
    else:
        need(scores, ["attribute", "distinct", "effective_fine"])
        attribute = one_attribute(list(dict.fromkeys(scores["attribute"])), attribute)
        rows = scores[(scores["attribute"] == attribute) & scores["effective_fine"].notna()]
        shown, unit = rows[["distinct", "effective_fine"]].set_axis(["distinct", "effective"], axis=1), "cell"
    ax, shown = ax or new_axes(), shown.dropna()
    distinct = shown["distinct"].to_numpy(dtype=float)
    effective = shown["effective"].to_numpy(dtype=float)
    spread = distinct + (np.arange(len(distinct)) * 0.618 % 1 - 0.5) * 0.3  # marks of one count side by side
    below = effective < (l_min if l_min is not None else -np.inf)
    style: dict[str, Any] = {
        "s": 26,
        "edgecolors": "white",
        "linewidths": 0.5,
        "rasterized": len(distinct) > DENSE,
    }
    ax.scatter(
        spread[~below],
        effective[~below],
        color="#0B4F8A",
        label=f"{unit}s ({int((~below).sum()):,})",
        **style,
    )
    if below.any():
        ax.scatter(
            spread[below],
            effective[below],
            color="#B2182B",
            marker="D",
            label=f"the work list ({int(below.sum()):,})",
            **style,
        )
    most = max(distinct.max(initial=2), 2) + 0.5
    ax.plot(
        [1, most], [1, most], color="#8C8C8C", linewidth=0.8, linestyle=":", label="all values equally common"
    )
    if l_min is not None:
        ax.axhline(l_min, color="#B2182B", linewidth=1.2, linestyle="--", label=f"l_min = {number(l_min)}")
    ax.set(
        xlabel="distinct values",
        ylabel="effective count exp(H), in values",
        xlim=(0.5, most),
        ylim=(0.8, None),
    )
    ax.set_title(
        f"{literal(attribute)}: distinct against effective values" + ("" if unit != "cell" else " (internal)")
    )
    tidy(ax)
    return ax


def _located(frame: Any) -> gpd.GeoDataFrame:
    if not isinstance(frame, pd.DataFrame):
        raise UsageError(
            f"expected a Release, or the GeoDataFrame of its cells or of scores, got {type(frame).__name__}."
        )
    if not isinstance(frame, gpd.GeoDataFrame):
        raise UsageError("a map needs outlines, and these cells have none: their ids name no place.")
    return frame


def _gate(metadata: Mapping[str, Any], attribute: str, gate: str) -> float | None:
    gates: Mapping[str, float | None] = next(
        (r.get("gates", {}) for r in metadata.get("attributes", []) if r["column"] == attribute), {}
    )
    return gates.get(gate)


def _published_counts(release: Release, attribute: str) -> pd.DataFrame:
    cells = release.cells[["cell_id", f"{attribute}_effective"]].set_axis(["cell_id", "effective"], axis=1)
    labels = (
        release.counts[release.counts["attribute"] == attribute].groupby("cell_id").size().rename("distinct")
    )
    return pd.DataFrame(cells).join(labels, on="cell_id").dropna(subset=["effective"])


def _worst(frame: pd.DataFrame) -> pd.Series[Any]:
    """(rows,) the plainest gate that each row's cell fails in any attribute, or ``passes``."""
    columns = [name for name in frame.columns if name == "fails" or str(name).endswith("_fails")]
    if not columns:
        raise UsageError("expected scores with a column 'fails', or the cells of a work file.")
    order = [g for g in GATE_COLOURS if g != "passes" and (g in GATES or g == "no_reference")]
    joined = frame[columns].fillna("").agg(",".join, axis=1)
    failed = joined.groupby(frame["cell_id"]).transform(",".join)
    worst = pd.Series("passes", index=frame.index, dtype=object)
    for gate in reversed(order):
        worst[failed.str.contains(rf"\b{gate}\b")] = gate
    return worst
