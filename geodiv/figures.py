"""Figures of a report: plots as images that the page carries itself."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import util
from typing import TYPE_CHECKING, Any

import geopandas as gpd

from . import plots
from .page import Markup, text

if TYPE_CHECKING:
    from .release import Release
    from .workfile import Work

Drawing = tuple[str, str, Callable[[], Any]]
"""Section, caption and what draws it."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing: which section it belongs to, what it shows, and itself as HTML."""

    section: str
    caption: str
    html: str


def release_figures(release: Release) -> list[Figure]:
    """The plots of a public report; empty without matplotlib."""
    drawn: list[Drawing] = []
    if isinstance(release.cells, gpd.GeoDataFrame) and len(release.cells):
        words = "Published zones by remedy. Cells that are not published are not drawn."
        drawn.append(("released", words, partial(plots.remedy_map, release)))
    for record in release.metadata.get("attributes", []):
        column = record["column"]
        if len(release.counts) and release.cells[f"{column}_effective"].notna().any():
            words = f"{column}: distinct against effective values of zones at their finest level, no count hidden."
            drawn.append(("released", words, partial(plots.distinct_effective, release, attribute=column)))
    return list(_figures(drawn))


def work_figures(work: Work, limits: Mapping[str, float | None]) -> list[Figure]:
    """The plots of an internal report, before and after; empty without matplotlib.

    Parameters
    ----------
    work : Work
    limits : mapping
        l_min by attribute.
    """
    drawn: list[Drawing] = []
    cells = work.cells
    if isinstance(cells, gpd.GeoDataFrame) and len(cells):
        drawn.append(("before", "Before: cells by what they give away.", partial(plots.failing_map, cells)))
        if cells["final_remedy"].notna().any():
            after = partial(plots.remedy_map, cells, column="final_remedy")
            drawn.append(("before", "After: what became of the cells.", after))
    for column in dict.fromkeys(work.scores["attribute"]):
        words = f"{column}: distinct against effective values; what lies below the line is the work list."
        draw = partial(plots.distinct_effective, work.scores, attribute=column, l_min=limits.get(column))
        drawn.append(("before", words, draw))
    return list(_figures(drawn))


def drawable() -> bool:
    """Whether matplotlib is there."""
    return util.find_spec("matplotlib") is not None


def _figures(drawn: list[Drawing]) -> Iterator[Figure]:
    if drawable():
        for section, caption, draw in drawn:
            yield Figure(section, caption, image(draw(), caption))


def image(ax: Any, caption: str) -> Markup:
    """Axes as an ``<img>`` that holds its SVG, the same for the same drawing."""
    from matplotlib import rc_context

    file = io.StringIO()
    with rc_context({"svg.hashsalt": "geodiv"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        ax.figure.savefig(
            file, format="svg", dpi=150, bbox_inches="tight", metadata={"Date": None, "Creator": "geodiv"}
        )
    data = base64.b64encode(file.getvalue().encode("utf-8", "replace")).decode()
    return Markup(f'<img alt="{text(caption)}" src="data:image/svg+xml;base64,{data}">')
