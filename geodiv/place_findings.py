"""What a map of places tells beside a release: labels that it resolves, gaps that it explains, values it lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from .arrays import CSR, IntArray
from .enforcement import Outcome
from .inventory import places_of
from .labels import LabelSpace
from .places import Places
from .tabulation import Counts
from .text import MISSING

RESOLVED = "resolved"
EXPLAINED = "explained"
UNSUPPORTED = "no place"
_COLUMNS = ["finding", "attribute", "cell_id", "level", "label", "value", "internal"]


def place_report(outcome: Outcome, places: Sequence[Places] | Places | None = None) -> pd.DataFrame:
    """What a reader with a map of places learns beside the release, and where the two do not fit.

    Parameters
    ----------
    outcome : Outcome
    places : Places or sequence of Places, optional
        Those of the outcome's policy unless given: the map need not have been known when the release was made.

    Returns
    -------
    DataFrame, by finding, attribute and cell id
        finding, attribute, cell_id, level, label, value, internal.
        ``resolved``: a published coarse label of several values of which the zone has places of one only, `value`.
        ``explained``: an occupied zone that is not published, all of whose places are of one value. **Internal**: it
        names what the release does not.
        ``no place``: a published label of which the zone has no place at all. A gap in the map, or in the visits.

    Examples
    --------
    >>> import geodiv as gd, geopandas as gpd
    >>> outcome = gd.read_run("fixtures/policy.toml").enforce("fixtures/visits.parquet")
    >>> shops = gpd.GeoDataFrame({"shop": ["cafe"]}, geometry=gpd.points_from_xy([2.0], [54.8]), crs=4326)
    >>> places = gd.read_places(shops, gd.H3Grid(8), "poi_category", column="shop")
    >>> list(gd.place_report(outcome, places).columns)
    ['finding', 'attribute', 'cell_id', 'level', 'label', 'value', 'internal']
    """
    policy = outcome.policy if places is None else replace(outcome.policy, places=_several(places))
    plan, table = outcome.plan, outcome.table
    counts = table.recount(plan)
    zones = plan.zones
    rows: list[tuple[Any, ...]] = []
    for a, inventory in enumerate(places_of(table, policy)):
        if inventory is None:
            continue
        there = np.asarray((counts.members @ inventory).todense())
        found = [*_published(table.spaces[a], counts, a, there, plan.level[zones, a], plan.suppressed[zones])]
        found += _hidden(table.spaces[a], there, plan.suppressed[zones])
        column = table.attributes[a].column
        rows += [(kind, column, str(table.cells[zones[z]]), *rest) for kind, z, *rest in found]
    frame = pd.DataFrame(rows, columns=_COLUMNS)
    frame = frame.astype({"level": "Int64", "internal": bool})
    return frame.sort_values(["finding", "attribute", "cell_id", "label"], kind="stable", ignore_index=True)


def _several(places: Sequence[Places] | Places) -> tuple[Places, ...]:
    return (places,) if isinstance(places, Places) else tuple(places)


def _published(
    space: LabelSpace, counts: Counts, attribute: int, there: IntArray, level: IntArray, dark: Any
) -> Iterator[tuple[Any, ...]]:
    """Published labels that the map resolves, or that it does not know."""
    for h, names in enumerate(space.levels):
        rows = np.flatnonzero((level == h) & ~dark)
        n = np.asarray(counts.labels[attribute][h][rows].todense())
        member = CSR((np.ones(len(space.up[h])), (np.arange(len(space.up[h])), space.up[h])))
        places = there[rows] @ member
        kinds = (there[rows] > 0).astype(float) @ member
        several = np.asarray(member.sum(axis=0)).ravel() > 1
        for z, c in np.argwhere((n > 0) & (kinds == 1) & several):
            values = np.flatnonzero((space.up[h] == c) & (there[rows[z]] > 0))
            yield RESOLVED, rows[z], h, names[c], space.values[values[0]], False
        known = np.array([name != MISSING for name in names])
        for z, c in np.argwhere((n > 0) & (places == 0) & known):
            yield UNSUPPORTED, rows[z], h, names[c], None, False


def _hidden(space: LabelSpace, there: IntArray, dark: Any) -> Iterator[tuple[Any, ...]]:
    """Zones that are not published and that have places of one value only."""
    for z in np.flatnonzero(dark & ((there > 0).sum(axis=1) == 1)):
        yield EXPLAINED, z, None, None, space.values[int(there[z].argmax())], True
