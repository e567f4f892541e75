"""What hidden counts can be, and how good or bad each measure can then be at most.

A gate of a release is broken when no hidden counts that are possible, and no global mix that rounds to the
published one, satisfy it. The possible counts are cut into **boxes**: which of a zone's hidden labels is the
one that was hidden beside the small ones is not told, so that each of them gives a box of its own. Over a
box the best value of each measure is either exact or an outer bound, never too strict: what is called broken
is broken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from ..arrays import BoolArray, FloatArray, IntArray
from ..ground import Tree

STEPS = 60
"""Halvings in the search for the largest entropy; each gives a bit."""


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Possible counts of some zones.

    Parameters
    ----------
    row : (boxes,) int64
        The zone that each box belongs to; a zone that has none contradicts itself.
    low, high : (boxes, labels) float64
        Fewest and most persons of each label, both included; equal where the count is published.
    """

    row: IntArray
    low: FloatArray
    high: FloatArray

    def best(self, x: FloatArray, rows: int) -> FloatArray:
        """(rows,) the smallest of a ceiling's measure over the boxes of each zone; inf for one without a box."""
        out = np.full(rows, np.inf)
        np.minimum.at(out, self.row, x)
        return out

    def most(self, x: FloatArray, rows: int) -> FloatArray:
        """(rows,) the largest of a floor's measure over the boxes of each zone; -inf for one without a box."""
        out = np.full(rows, -np.inf)
        np.maximum.at(out, self.row, x)
        return out

    def middle(self, rows: int) -> FloatArray:
        """(rows, labels) mean of the boxes' middles: a reader's guess of the counts; nan for a zone without a box."""
        total = np.zeros((rows, self.low.shape[1]))
        np.add.at(total, self.row, (self.low + self.high) / 2)
        boxes = np.bincount(self.row, minlength=rows)[:, None]
        return np.divide(total, boxes, out=np.full(total.shape, np.nan), where=boxes > 0)


def boxes(n: FloatArray, hidden: BoolArray, persons: FloatArray, count_min: int) -> Boxes:
    """The possible counts of zones, by the rule that hid some of them.

    Parameters
    ----------
    n : (zones, labels) float64
        Published counts, 0 for a label without a row; whatever stands where `hidden` is true does not matter.
    hidden : (zones, labels) bool
    persons : (zones,) float64
        Distinct persons of each zone.
    count_min : int

    Notes
    -----
    Every label below `count_min` is hidden, and the smallest at or above it too (ties: label order). So
    either one hidden label is at least `count_min`, at most every published count, and the others are below;
    or no label is that large, and then none is shown. No label has more persons than the zone, and together
    they have at least as many.

    Examples
    --------
    12 persons; a shop with 8, and two labels hidden below 3: one of them has 1 or 2, the other 3 to 7, since
    of two labels with 8 the first in label order, the shop, would have been hidden.

    >>> found = boxes(np.array([[8.0, 0, 0]]), np.array([[False, True, True]]), np.array([12.0]), 3)
    >>> found.low, found.high
    (array([[8., 3., 1.],
           [8., 1., 3.]]), array([[8., 7., 2.],
           [8., 2., 7.]]))
    """
    covered = hidden.any(axis=1)
    shown = np.where((n > 0) & ~hidden, n, np.inf)
    lone = covered & np.isinf(shown.min(axis=1, initial=np.inf))
    plain = np.flatnonzero(~covered | lone)
    row, extra = np.nonzero(hidden & (hidden.sum(axis=1) > 1)[:, None])
    rows = np.concatenate([plain, row])
    low = np.where(hidden, 1.0, n)[rows]
    high = np.where(hidden, float(count_min - 1), n)[rows]
    at = np.arange(len(plain), len(rows))
    low[at, extra] = count_min
    high[at, extra] = _largest(shown)[row, extra]
    people = persons[rows][:, None]
    high = np.minimum(high, people)
    others = high.sum(axis=1, keepdims=True) - high
    low = np.maximum(low, np.where(hidden[rows], people - others, 0.0))
    possible = (low <= high).all(axis=1) & (high.sum(axis=1) >= persons[rows])
    order = np.argsort(rows[possible], kind="stable")
    return Boxes(rows[possible][order], low[possible][order], high[possible][order])


def _largest(shown: FloatArray) -> FloatArray:
    """(zones, labels) most persons that the label hidden beside the small ones can have: a shown label with
    as many comes later in label order."""
    inf = np.full((len(shown), 1), np.inf)
    before = np.minimum.accumulate(np.hstack([inf, shown[:, :-1]]), axis=1)
    after = np.minimum.accumulate(np.hstack([shown[:, 1:], inf])[:, ::-1], axis=1)[:, ::-1]
    return np.minimum(before - 1, after)


def share_box(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest share of each label over boxes of counts: (boxes, labels) each, both attained."""
    above = high.sum(axis=-1, keepdims=True) - high
    below = low.sum(axis=-1, keepdims=True) - low
    smallest = np.divide(low, low + above, out=np.zeros_like(low), where=low > 0)
    largest = np.divide(high, high + below, out=np.zeros_like(high), where=high > 0)
    return smallest, largest


def class_box(low: FloatArray, high: FloatArray, up: IntArray, labels: int) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest q(v | c), (values,) each, over a box of the finest global mix.

    A class that may have no mass at all is then spread evenly.
    """
    size = np.bincount(up, minlength=labels)[up]
    others_high = np.bincount(up, weights=high, minlength=labels)[up] - high
    others_low = np.bincount(up, weights=low, minlength=labels)[up] - low
    smallest = np.divide(low, low + others_high, out=np.zeros_like(low), where=low > 0)
    largest = np.divide(high, high + others_low, out=np.zeros_like(high), where=high > 0)
    empty = np.bincount(up, weights=low, minlength=labels)[up] <= 0
    smallest = np.where(empty, np.minimum(smallest, 1 / size), smallest)
    largest = np.where(empty, np.maximum(largest, 1 / size), largest)
    return np.where(size == 1, 1.0, smallest), np.where(size == 1, 1.0, np.minimum(largest, 1.0))


def class_entropy(low: FloatArray, high: FloatArray, up: IntArray, labels: int) -> FloatArray:
    """(labels,) largest entropy of q(. | c), nats, over a box of the finest global mix."""
    inside = up[None, :] == np.arange(labels)[:, None]
    count = most_effective(np.where(inside, low, 0.0), np.where(inside, high, 0.0), np.zeros(len(up)))
    most = np.log(np.maximum(count, 1.0))
    empty = np.bincount(up, weights=low, minlength=labels) <= 0
    size = np.bincount(up, minlength=labels)
    return np.where(size == 1, 0.0, np.where(empty, np.log(np.maximum(size, 1)), most))


def most_effective(low: FloatArray, high: FloatArray, within: FloatArray) -> FloatArray:
    """Largest effective count of the belief over boxes of counts: (boxes,) float64.

    Parameters
    ----------
    low, high : (boxes, labels) float64
        Counts may be any real number between: whole ones are among them.
    within : (labels,) float64
        Entropy of the values below each label, nats.

    Notes
    -----
    ``ln L = H(P) + sum_c P_c h_c`` is concave in P, so that its level sets are convex cones in the counts.
    At the largest value each count is ``theta exp(h_c)``, or at the bound nearest to it; theta is found by
    halving.

    Examples
    --------
    One label of 8, another of 2 to 10: the most even are 8 and 8.

    >>> most_effective(np.array([[8.0, 2.0]]), np.array([[8.0, 10.0]]), np.zeros(2)).round(6)
    array([2.])
    """
    weight = np.exp(within)
    used = high > 0
    left = np.log(np.where(used, np.maximum(low, 1e-9), np.inf) / weight).min(axis=1, initial=np.inf)
    right = np.log(np.where(used, high, 1e-9) / weight).max(axis=1, initial=-np.inf)
    left, right = np.where(np.isfinite(left), left, 0.0), np.where(np.isfinite(right), right, 0.0)
    open_ = (low < high).any(axis=1)
    for _ in range(STEPS if open_.any() else 0):
        middle = (left + right) / 2
        counts = np.clip(np.exp(middle)[:, None] * weight, low, high)
        total = counts.sum(axis=1)
        rising = middle < np.log(np.maximum(total, 1e-300)) - _log_effective(counts, within)
        left, right = np.where(rising, middle, left), np.where(rising, right, middle)
    best = np.clip(np.exp(left)[:, None] * weight, low, high)
    return np.exp(_log_effective(best, within))


def _log_effective(counts: FloatArray, within: FloatArray) -> FloatArray:
    total = counts.sum(axis=1, keepdims=True)
    p = np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)
    return np.asarray(special.entr(p).sum(axis=1) + p @ within)


def least_recursive(low: FloatArray, high: FloatArray, c_l: int) -> FloatArray:
    """Outer bound on the smallest recursive c over boxes of (unnormalised) beliefs: (boxes,) float64."""
    descending = -np.sort(-high, axis=1)
    tail = descending[:, c_l - 1 :].sum(axis=1)
    return np.divide(low.max(axis=1, initial=0.0), tail, out=np.full(len(low), np.inf), where=tail > 0)


def least_tier(low: FloatArray, high: FloatArray, inside: FloatArray) -> FloatArray:
    """Outer bound on the smallest share of the tier over boxes of counts: (boxes,) float64.

    ``inside`` is (labels,) the smallest share of each label that lies in the tier; exact where these are 0 and 1.
    """
    own, others = low @ inside, high @ (1 - inside)
    return np.divide(own, own + others, out=np.zeros_like(own), where=own > 0)


def gap(p_low: FloatArray, p_high: FloatArray, q_low: FloatArray, q_high: FloatArray) -> FloatArray:
    """Smallest difference, without its sign, between numbers of two intervals."""
    return np.maximum(np.maximum(p_low - q_high, q_low - p_high), 0.0)


def least_variation(
    p_low: FloatArray, p_high: FloatArray, q_low: FloatArray, q_high: FloatArray
) -> FloatArray:
    """Outer bound on the smallest total variation of shares in boxes: (boxes,); exact where P is one point."""
    rises = np.maximum(p_low - q_high, 0.0).sum(axis=1)
    falls = np.maximum(q_low - p_high, 0.0).sum(axis=1)
    return np.asarray(np.maximum(rises, falls))


def least_distance(
    d_low: FloatArray, d_high: FloatArray, in_low: FloatArray, in_high: FloatArray, up: IntArray, tree: Tree
) -> FloatArray:
    """Outer bound on the smallest distance of belief and prior on a tree: (boxes,) float64.

    Parameters
    ----------
    d_low, d_high : (boxes, labels) float64
        Interval of ``P_c - Q_c``.
    in_low, in_high : (values,) float64
        Interval of q(v | c).
    up : (values,) int64
    tree : Tree
    """
    labels = d_low.shape[1]
    below = np.asarray(tree.below.todense(), dtype=float)
    member = np.zeros((len(up), labels))
    member[np.arange(len(up)), up] = 1
    inside_low = (below * in_low) @ member
    rest = ((1 - below) * in_low) @ member
    inside_high = np.minimum((below * in_high) @ member, 1 - rest)
    total = np.zeros(len(d_low))
    for w, g_low, g_high in zip(tree.weight, inside_low, inside_high, strict=True):
        low = np.where(d_low > 0, d_low * g_low, d_low * g_high).sum(axis=1)
        high = np.where(d_high > 0, d_high * g_high, d_high * g_low).sum(axis=1)
        total += w * np.maximum(np.maximum(low, -high), 0.0)
    return total
