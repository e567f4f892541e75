"""Drawing with matplotlib: axes without any window, maps of classes with legends and counts, names as they are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any

import geopandas as gpd
import numpy as np
import pandas as pd

from .errors import UsageError, did_you_mean, listed
from .styles import HATCH

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.path import Path
    from shapely import Polygon

HATCHES = 40
"""From this many hatched zones on, they are one picture inside a vector file: browsers print patterns slowly."""
DENSE = 1000
"""From this many marks on, a drawing keeps them as one picture inside a vector file."""


def new_axes(*, width: float = 6.4, height: float = 4.4) -> Axes:
    """Axes on a figure of its own, without any window or global state; a notebook shows its picture.

    Raises
    ------
    UsageError
        matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError(
            "plots need matplotlib, which is not installed: pip install 'geodiv[map]'."
        ) from error
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes._repr_png_ = figure._repr_png_ = partial(_png, figure)  # type: ignore[attr-defined]
    return axes


def _png(figure: Figure) -> bytes:
    """A figure as IPython shows it where pyplot was never imported."""
    file = BytesIO()
    figure.savefig(file, format="png", dpi=80)
    return file.getvalue()


def literal(value: Any, most: int = 40) -> str:
    """A name as matplotlib shows it as it is: no mathematics, no line breaks, no name that hides a legend entry."""
    shown = "".join(c if c.isprintable() else " " for c in str(value)).replace("$", r"\$")
    shown = shown if len(shown) <= most else shown[: most - 1].rstrip("\\") + "…"
    return f" {shown}" if shown.startswith("_") else shown


def map_axes(frame: gpd.GeoDataFrame, ax: Axes | None, lines: int) -> Axes:
    """Axes for a map of these zones in their CRS, north up, with room for a legend of some lines below."""
    x0, y0, x1, y1 = frame.total_bounds if len(frame) else (0.0, 0.0, 1.0, 1.0)
    degrees = frame.crs is None or frame.crs.is_geographic
    stretch = 1 / max(float(np.cos(np.radians((y0 + y1) / 2))), 0.05) if degrees else 1.0
    tall = float(np.clip((y1 - y0) * stretch / max(x1 - x0, 1e-9), 0.35, 1.3))
    ax = ax or new_axes(width=6.4, height=5.6 * tall + 1.3 + 0.21 * lines)
    ax.set_aspect(stretch)
    ax.ticklabel_format(useOffset=False, style="plain")
    ax.tick_params(labelsize=7, colors="#5A6270")
    unit = "degrees" if degrees else "m"
    names = ("longitude", "latitude") if degrees else ("easting", "northing")
    ax.set_xlabel(f"{names[0]} ({unit})", fontsize=8)
    ax.set_ylabel(f"{names[1]} ({unit})", fontsize=8)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def fill_classes(
    ax: Axes, frame: gpd.GeoDataFrame, words: pd.Series[Any], entries: Sequence[tuple[str, str, str, bool]]
) -> None:
    """Draw each class of a map in its colour, and the legend with counts."""
    from matplotlib.collections import PathCollection
    from matplotlib.patches import Patch

    handles = []
    for word, colour, title, hatched in entries:
        here = words == word
        parts = frame.geometry[here].explode(index_parts=False)
        look: dict[str, Any] = {
            "facecolor": colour,
            "edgecolor": HATCH if hatched else "white",
            "linewidth": 0.4,
        }
        look |= {"hatch": "////"} if hatched else {}
        paths = [_path(part) for part in parts if not part.is_empty]
        ax.add_collection(
            PathCollection(paths, rasterized=len(paths) > (HATCHES if hatched else DENSE), **look)
        )
        handles.append(Patch(**look, label=f"{title} ({int(here.sum()):,})"))
    ax.autoscale_view()
    if handles:
        ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.12), fontsize=8, frameon=False)


def _path(polygon: Polygon) -> Path:
    """A polygon as matplotlib draws it, its holes left open."""
    from matplotlib.path import Path

    if not polygon.interiors:
        return Path(np.asarray(polygon.exterior.coords)[:, :2], closed=True)
    rings = [polygon.exterior, *polygon.interiors]
    outward = [ring.is_ccw != (i > 0) for i, ring in enumerate(rings)]
    turned = (np.asarray(r.coords)[:: 1 if ok else -1, :2] for r, ok in zip(rings, outward, strict=True))
    return Path.make_compound_path(*(Path(xy, closed=True) for xy in turned))


def tidy(ax: Axes, grid: str = "both") -> None:
    """A quiet grid, no box, and a legend."""
    ax.grid(axis=grid, color="#E3E6EA", linewidth=0.7)  # type: ignore[arg-type]
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.legend(fontsize=8, frameon=True, framealpha=0.9)


def need(frame: pd.DataFrame, columns: Sequence[str]) -> None:
    """Raise when columns are missing."""
    if missing := [name for name in columns if name not in frame.columns]:
        raise UsageError(f"expected the column(s) {listed(missing)}, got {listed(frame.columns)}.")


def one_attribute(known: Sequence[str], attribute: str | None) -> str:
    """The attribute to draw: the one named, or the only one."""
    if attribute is None and len(known) == 1:
        return known[0]
    if attribute is None or attribute not in known:
        raise UsageError(
            f"attribute: expected one of {listed(known)}, got {attribute!r}.{did_you_mean(attribute, known)}"
        )
    return attribute
