"""A release and a work file's tables made by hand, for the tests of what is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import geopandas as gpd
import pandas as pd
import shapely

from geodiv.release import Release

MESSY = "Café & Bar / 24h"


def release(
    *, zones: int = 4, located: bool = True, crs: str = "EPSG:4326", title: str = "Étude «1»"
) -> Release:
    """Zones of two attributes, one merged, one coarser, one that hides counts; the first `zones` of them."""
    cells = pd.DataFrame({
        "cell_id": ["a", "b", "c", "d"],
        "members": ["a", "b", "c e%20f", "d"],
        "n_members": [1, 1, 2, 1],
        "persons": [40, 30, 50, 20],
        "area_m2": [1e4, 1e4, 2e4, 1e4],
        "remedy": ["publish", "publish_coarsened", "publish_merged", "publish"],
        "poi_level": [0, 1, 0, 0],
        "poi_top": [MESSY, "health", "shop", None],
        "poi_effective": [1.75, None, 1.0, None],
        "poi_reference": ["ring:1", "global", "ring:2", "none"],
        "band_level": [0, 0, 0, 0],
        "band_top": ["low", "low", "high", "low"],
        "band_effective": [1.0, 1.0, 1.0, 1.0],
        "band_reference": ["global"] * 4,
    })  # fmt: skip
    rows = [
        ("a", "poi", MESSY, 0, 30, 0.75),
        ("a", "poi", "shop", 0, 10, 0.25),
        ("b", "poi", "health", 1, 30, 1.0),
        ("c", "poi", "shop", 0, 50, 1.0),
        ("d", "poi", "gym", 0, None, None),
        ("d", "poi", "Shop", 0, None, None),
        ("a", "band", "low", 0, 40, 1.0),
        ("b", "band", "low", 0, 30, 1.0),
        ("c", "band", "high", 0, 50, 1.0),
        ("d", "band", "low", 0, 20, 1.0),
    ]  # fmt: skip
    counts = pd.DataFrame(rows, columns=["cell_id", "attribute", "value", "level", "persons", "share"])
    counts["persons"] = counts["persons"].astype("Int64")
    cells = cells.iloc[:zones]
    if located:
        boxes = [shapely.box(i / 100, 50, (i + 1) / 100, 50.01) for i in range(zones)]
        outlines = gpd.GeoSeries(boxes, crs="EPSG:4326").to_crs(crs)
        cells = gpd.GeoDataFrame(cells, geometry=outlines.to_numpy(), crs=crs)
    taxonomy = pd.DataFrame(
        [
            ("poi", v, c, "poi", "v1", "0" * 64)
            for v, c in ((MESSY, "food"), ("shop", "shop"), ("gym", "sport"))
        ],
        columns=["attribute", "value", "level1", "name", "version", "digest"],
    )
    reference = pd.DataFrame(
        [("poi", 0, "shop", 0.5), ("poi", 0, "gym", 0.5), ("poi", 1, "health", 1.0)],
        columns=["attribute", "level", "value", "share"],
    )
    return Release(
        cells=cells,
        counts=counts[counts["cell_id"].isin(cells["cell_id"])].reset_index(drop=True),
        taxonomy=taxonomy,
        reference=reference,
        metadata=_metadata(zones, title),
    )


def _metadata(zones: int, title: str) -> dict[str, Any]:
    return {
        "format": "geodiv release 1",
        "title": title,
        "abstract": "Who goes where & why",
        "licence": "CC-BY-4.0",
        "keywords": ["mobility", "<privacy>"],
        "note": "k = 10 was agreed on",
        "run": 'k_min = 10\nname = "x"\n',
        "policy": {"gates": {"k_min": 10, "l_min": 3.0}},
        "rounds": 3,
        "zones": zones,
        "count_basis": "distinct persons",
        "coverage": 0.95,
        "versions": {"geodiv": "0.1.0"},
    }


@dataclass(frozen=True, slots=True)
class Work:
    """The tables of a work file."""

    layer: pd.DataFrame
    scores: pd.DataFrame
    final_scores: pd.DataFrame
    rounds: pd.DataFrame
    intake: pd.DataFrame


def work(*, enforced: bool = True, located: bool = True) -> Work:
    """Four cells of one attribute, one of them below k."""
    final = ["publish", "publish_coarsened", "publish_merged", "suppress"] if enforced else [None] * 4
    zone = ["a", "b", "c", None] if enforced else [None] * 4
    layer = pd.DataFrame({
        "cell_id": ["a", "b", "c", "d"],
        "persons": [40, 30, 50, 2],
        "remedy": ["publish", "publish_coarsened", "merge_or_suppress", "merge_or_suppress"],
        "final_remedy": pd.Series(final, dtype=object),
        "zone_id": pd.Series(zone, dtype=object),
        "poi_effective": [3.5, 2.0, 1.0, None],
        "poi_distance": [0.1, 0.2, 0.6, None],
        "poi_incidence": [0.5, 0.6, 1.0, None],
        "poi_reference": ["ring:1", "ring:1", "global", None],
        "poi_fails": ["", "l_min", "l_min,t_max", "k_min"],
    })  # fmt: skip
    if located:
        boxes = [shapely.box(i / 100, 50, (i + 1) / 100, 50.01) for i in range(4)]
        layer = gpd.GeoDataFrame(layer, geometry=boxes, crs="EPSG:4326")
    scores = pd.DataFrame({
        "cell_id": ["a", "b", "c", "d"],
        "attribute": "poi",
        "persons": [40, 30, 50, 2],
        "distinct": pd.array([4, 3, 1, None], dtype="Int64"),
        **{name: [3.5, 2.0, 1.0, None] for name in ("effective_fine", "effective_known", "effective_coarse")},
        "top_value": ["shop", "gym", "gym", None],
        **{name: [0.5, 0.5, 1.0, None] for name in ("top_share", "incidence", "recursive_c")},
        **{name: [0.1, 0.2, 0.6, None] for name in ("distance", "distance_global", "noise_floor")},
        **{name: [0.1, 0.2, float("inf"), None] for name in ("shift", "lift")},
        "reference_scope": ["ring:1", "ring:1", "global", None],
        "reference_persons": pd.array([90, 90, 400, None], dtype="Int64"),
        "fails": ["", "l_min", "l_min,t_max", "k_min"],
        "remedy": layer["remedy"].to_numpy(),
        "final_remedy": pd.Series(final, dtype=object),
        "zone_id": pd.Series(zone, dtype=object),
    })  # fmt: skip
    rounds = pd.DataFrame(
        [(1, "phase 1", 2, 1, 1, 0, 3)],
        columns=["round", "stage", "failing", "recoded", "merged", "suppressed", "zones"],
    )
    intake = pd.DataFrame({"reason": ["counted", "no person"], "rows": [500, 3]})
    return Work(layer, scores, scores.iloc[:3], rounds, intake)
