"""Measures of diversity, distance and belief: arrays in, arrays out, each on the last axis."""

from __future__ import annotations

from .belief import max_lift, max_shift, spread, tier_share, top, top_share, within_class, within_places
from .distance import noise_floor, tree_distance
from .diversity import distinct, effective_count, recursive_c, shares

__all__ = [
    "distinct",
    "effective_count",
    "max_lift",
    "max_shift",
    "noise_floor",
    "recursive_c",
    "shares",
    "spread",
    "tier_share",
    "top",
    "top_share",
    "tree_distance",
    "within_class",
    "within_places",
]
