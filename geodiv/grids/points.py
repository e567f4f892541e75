"""Distinct points: a place that many visits share is located once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .protocol import FloatArray, IntArray

PROBE = 1 << 16
"""Points in the sample from which the number of distinct ones is estimated."""

WORTH = 0.4
"""Share of distinct points above which finding them costs more than it saves."""


class Distinct(NamedTuple):
    """Distinct points.

    Parameters
    ----------
    first : (distinct,) int64
        First row of each distinct point.
    code : (points,) int64
        Which distinct point each row is.
    """

    first: IntArray
    code: IntArray


def distinct(x: FloatArray, y: FloatArray) -> Distinct | None:
    """The distinct points among many, or None when most are distinct and it does not pay to look.

    Parameters
    ----------
    x, y : (points,) float64
        Finite coordinates.

    Returns
    -------
    Distinct or None
        Also None for fewer points than `PROBE`, and in the rare case that two points share a hash. The first
        rows ascend.

    Examples
    --------
    >>> x = np.repeat([1.0, 2.0], PROBE)
    >>> distinct(x, x).first
    array([    0, 65536])
    """
    import pandas as pd

    if len(x) < PROBE or _distinct_share(x, y) > WORTH:
        return None
    code, hashes = pd.factorize(_hashes(x, y))
    first = np.empty(len(hashes), dtype=np.int64)
    first[code[::-1]] = np.arange(len(x))[::-1]
    same = np.array_equal(x[first][code], x) and np.array_equal(y[first][code], y)
    return Distinct(first, code.astype(np.int64, copy=False)) if same else None


def _hashes(x: FloatArray, y: FloatArray) -> IntArray:
    """A 64-bit mix of both coordinates: (points,) int64."""
    bits_x = np.ascontiguousarray(x, dtype=np.float64).view(np.uint64)
    bits_y = np.ascontiguousarray(y, dtype=np.float64).view(np.uint64)
    mixed = bits_x * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)
    mixed = (mixed + bits_y) * np.uint64(0xC2B2AE3D27D4EB4F)
    return (mixed ^ (mixed >> np.uint64(29))).view(np.int64)


def _distinct_share(x: FloatArray, y: FloatArray) -> float:
    """Estimated share of distinct points, from the pairs of equal ones in a sample (the birthday problem)."""
    rows = np.linspace(0, len(x) - 1, PROBE).astype(np.int64)
    counts = np.unique(_hashes(x[rows], y[rows]), return_counts=True)[1].astype(float)
    pairs = (counts * (counts - 1)).sum() / 2
    return float(PROBE**2 / (2 * pairs) / len(x)) if pairs else 1.0
