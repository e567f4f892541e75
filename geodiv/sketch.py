"""Sketch: outlines as a small SVG that holds no text and no figure, for notebooks and where plots are missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import shapely
from numpy.typing import ArrayLike

DENSE = 4000
"""From this many outlines on, each is a dot."""
VERTICES = 60_000


def sketch(
    outlines: Any,
    classes: ArrayLike,
    colours: Sequence[str],
    *,
    label: str,
    width: int = 260,
    degrees: bool = True,
) -> str:
    """Outlines as SVG, coloured by class, north up.

    Parameters
    ----------
    outlines : (zones,) object
        Polygons and MultiPolygons; None and empty ones are left out.
    classes : (zones,) int
        Place of each in `colours`.
    colours : sequence of str
        Such as ``#0B4F8A``.
    label : str
        What a screen reader says; HTML already, so escaped by whoever calls.
    width : int
        In pixels; the height follows, at most twice the width.
    degrees : bool
        Whether coordinates are longitude and latitude, drawn with parallels at their true length.

    Returns
    -------
    str
        An ``<svg>`` element; coordinates are rounded to a tenth of a pixel.

    Examples
    --------
    >>> svg = sketch([shapely.box(0, 0, 2, 1)], [0], ["#0B4F8A"], label="one", width=20, degrees=False)
    >>> svg[svg.index("<path") :]
    '<path fill="#0B4F8A" d="M20 10L20 0L0 0L0 10Z"/></g></svg>'
    """
    shapes = np.asarray(outlines, dtype=object)
    kept = ~(shapely.is_missing(shapes) | shapely.is_empty(shapes))
    shapes, classes = shapes[kept], np.asarray(classes)[kept]
    x0, y0, x1, y1 = shapely.total_bounds(shapes) if len(shapes) else (0.0, 0.0, 1.0, 1.0)
    stretch = max(float(np.cos(np.radians((y0 + y1) / 2))), 0.05) if degrees else 1.0
    scale = min(width / max((x1 - x0) * stretch, 1e-12), 2 * width / max(y1 - y0, 1e-12))
    height = max(int(np.ceil((y1 - y0) * scale)), 1)

    def placed(xy: Any) -> Any:
        return np.column_stack([(xy[:, 0] - x0) * stretch * scale, (y1 - xy[:, 1]) * scale])

    groups = []
    for i, colour in enumerate(colours):
        here = shapely.transform(shapes[classes == i], placed)
        if len(here):
            path = (
                _dots(here)
                if len(shapes) > DENSE
                else _rings(here, int(shapely.get_num_coordinates(shapes).sum()))
            )
            groups.append(f'<path fill="{colour}" d="{path}"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}" width="{width}" '
        f'height="{height}" '
        f'viewBox="0 0 {width} {height}"><g fill-rule="evenodd" stroke="#FFFFFF" '
        f'stroke-width="0.4">{"".join(groups)}</g></svg>'
    )


def _dots(shapes: Any) -> str:
    """Each shape as a pixel, each pixel once."""
    xy = np.unique(shapely.get_coordinates(shapely.centroid(shapes)).astype(int), axis=0)
    return "".join(f"M{x} {y}h1v1h-1z" for x, y in xy.tolist())


def _rings(shapes: Any, vertices: int) -> str:
    if vertices > VERTICES:
        shapes = shapely.simplify(shapes, 0.7)
    rings = shapely.get_rings(
        shapely.get_parts(shapes)
    )  # of polygons only, and files hold them as multipolygons
    xy, ring = shapely.get_coordinates(rings, return_index=True)
    last = np.append(ring[1:] != ring[:-1], True)
    points = [f"{x:g} {y:g}" for x, y in xy[~last].round(1).tolist()]
    starts = np.flatnonzero(np.append(True, np.diff(ring[~last]) > 0))
    pieces = zip(starts.tolist(), [*starts[1:].tolist(), len(points)], strict=True)
    return "".join(f"M{'L'.join(points[a:b])}Z" for a, b in pieces)
