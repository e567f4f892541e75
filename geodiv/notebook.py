"""What a release shows in notebooks: a summary, a thumbnail, and an interactive map. Published figures only."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import geopandas as gpd
import numpy as np

from .columns import REMEDIES, REMEDY_ENUMS
from .errors import UsageError, did_you_mean
from .page import Markup, table, text
from .sketch import sketch
from .styles import COLOURS
from .wording import judged_by

if TYPE_CHECKING:
    from .release import Release

WORDS = REMEDY_ENUMS["geodiv_release_remedy"]


def release_html(release: Release) -> str:
    """A Release as a piece of HTML: what was published, by which gates, and a thumbnail."""
    metadata = release.metadata
    done = metadata.get("remedies") or {}
    rows: list[tuple[Any, Any]] = [
        ("zones", f"{metadata['zones']:,} of {metadata['cells']:,} cells"),
        ("persons", f"{metadata['persons']:,} distinct"),
        ("coverage", f"{metadata['coverage']:.2f}"),
        ("not published", f"{metadata['not_published']:,} cells"),
        *(
            (Markup(f"{_swatch(COLOURS[word])} {text(REMEDIES[word])}"), f"{done.get(word, 0):,}")
            for word in WORDS
        ),
        *((name.removesuffix(":"), said) for name, said in judged_by(metadata)),
    ]
    listed = table(["release", text(metadata.get("title", ""))], rows)
    return f'<div class="geodiv">{listed}{release_sketch(release)}</div>'


def release_sketch(release: Release, width: int = 260) -> str:
    """The published zones by remedy as a small SVG; empty without outlines."""
    cells = release.cells
    if not isinstance(cells, gpd.GeoDataFrame):
        return ""
    place = cells["remedy"].map({word: i for i, word in enumerate(WORDS)}).fillna(0).to_numpy(dtype=int)
    return sketch(
        cells.geometry.to_numpy(),
        place,
        [COLOURS[word] for word in WORDS],
        label=text(f"Map of {len(cells)} published zones by remedy"),
        width=width,
        degrees=cells.crs is None or cells.crs.is_geographic,
    )


def explored(release: Release, column: str, **options: Any) -> Any:
    """The interactive map of `Release.explore`: a folium Map."""
    cells = release.cells
    if not isinstance(cells, gpd.GeoDataFrame):
        raise UsageError("a map needs the outlines of the zones, and this release has none.")
    if column not in cells.columns:
        raise UsageError(
            f"expected a column of the cells, got {column!r}.{did_you_mean(column, cells.columns)}"
        )
    shown = _escaped(cells)
    if column == "remedy":
        there = [word for word in WORDS if (cells["remedy"] == word).any()]
        options = {"categories": there, "cmap": [COLOURS[word] for word in there], "legend": True} | options
    options = {
        "style_kwds": {"color": "#FFFFFF", "weight": 1, "fillOpacity": 0.75},
        "tooltip": True,
    } | options
    try:
        return shown.explore(html.escape(column), **options)
    except ImportError as error:
        raise UsageError(
            "explore() needs folium, matplotlib and mapclassify, which are not all installed: pip install "
            "'geodiv[map]'. Without them: release.plot(), or 'geodiv map' for a page that needs no internet."
        ) from error


def _escaped(cells: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    """The cells with names and texts as HTML: folium writes them into its pages as they come."""
    frame = cells.copy()
    for name in frame.columns:
        if name != frame.geometry.name and frame[name].dtype.kind not in "biuf":
            texts = frame[name].astype(object)
            frame[name] = texts.where(texts.isna(), texts.map(_literal)).where(texts.notna(), None)
    return frame.rename(columns={name: _literal(name) for name in frame.columns})


def _literal(value: Any) -> Any:
    """A text as HTML that stays what it is inside a JavaScript template, too."""
    return (
        value
        if value is None or value is np.nan
        else html.escape(str(value)).replace("`", "&#96;").replace("${", "&#36;{")
    )


def _swatch(colour: str) -> str:
    return (
        f'<svg width="12" height="12" aria-hidden="true"><rect width="12" height="12" fill="{colour}"/></svg>'
    )
