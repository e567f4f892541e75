"""What a reader of the published labels believes about the values below them, and how far that moved.

A reader who sees the shares P of the published labels, and knows the mix of the values within each label from
the reference, believes ``belief(v) = P(c) q(v | c)``, c the label of v; before,
``prior(v) = Q^h(c) q(v | c)``. At the finest level belief is P and prior is Q, so one path serves both.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from .diversity import FloatArray, IntArray


def within_class(q: ArrayLike, up: ArrayLike, labels: int, overall: ArrayLike) -> FloatArray:
    """The mix of the values within each label, ``q(v | c)``.

    Parameters
    ----------
    q : (zones, values) or (values,) float64
        Finest counts or shares of each zone's reference. A row of nan (no reference) has no mass anywhere.
    up : (values,) int64
        Label of each value.
    labels : int
        Number of labels; each has a value below it.
    overall : (values,) float64
        Finest counts or shares of the global reference.

    Returns
    -------
    (zones, values) or (values,) float64
        0 to 1; the values below one label sum to 1 and a label of one value has exactly 1. A label without
        mass in `q` takes its mix in `overall`; without mass there too, it is spread evenly over its values.

    Examples
    --------
    >>> q = np.array([[6.0, 2.0, 1.0], [0.0, 0.0, 5.0]])
    >>> within_class(q, [0, 0, 1], 2, overall=[1, 3, 9])
    array([[0.75, 0.25, 1.  ],
           [0.25, 0.75, 1.  ]])
    """
    q, overall = np.asarray(q, dtype=np.float64), np.asarray(overall, dtype=np.float64)
    codes = np.asarray(up, dtype=np.int64)
    if labels == len(codes):
        return np.broadcast_to(1.0, q.shape)
    size = np.bincount(codes, minlength=labels)[codes]
    default = _mix(overall, codes, labels, 1.0 / size)
    return _mix(q, codes, labels, default)


def within_places(places: ArrayLike, up: ArrayLike, labels: int, within: ArrayLike) -> FloatArray:
    """The mix of the values within each label for a reader with a map: by the places of each value in the zone.

    Parameters
    ----------
    places : (zones, values) int64 or float64
        Places of each value in each zone.
    up : (values,) int64
        Label of each value.
    labels : int
        Number of labels.
    within : (zones, values) or (values,) float64
        The mix without a map, as `within_class` gives it: what a label without a place in the zone keeps.

    Returns
    -------
    (zones, values) float64
        0 to 1; the values below one label sum to 1.

    Examples
    --------
    >>> within_places([[1, 0, 0], [0, 0, 2]], [0, 0, 1], 2, within=[0.25, 0.75, 1.0])
    array([[1.  , 0.  , 1.  ],
           [0.25, 0.75, 1.  ]])
    """
    n = np.asarray(places, dtype=np.float64)
    return _mix(n, np.asarray(up, dtype=np.int64), labels, np.broadcast_to(within, n.shape))


def spread(label_shares: ArrayLike, within: ArrayLike, up: ArrayLike) -> FloatArray:
    """Shares of labels, spread over the values below them.

    Parameters
    ----------
    label_shares : (zones, labels) or (labels,) float64
        P of the published labels gives the belief; ``Q^h`` gives the prior.
    within : (zones, values) or (values,) float64
        As `within_class` gives it.
    up : (values,) int64
        Label of each value.

    Returns
    -------
    (zones, values) or (values,) float64
        Shares of the values, each row sums to 1; a row of nan stays one.

    Notes
    -----
    The distance of belief and prior by total variation is that of the labels, ``TV(P, Q^h)``, and
    ``H(belief) = H(P) + sum_c P_c H(q(. | c))``.

    Examples
    --------
    >>> spread([0.4, 0.6], [0.75, 0.25, 1.0], [0, 0, 1]).round(3)
    array([0.3, 0.1, 0.6])
    """
    codes = np.asarray(up, dtype=np.int64)
    above = np.asarray(label_shares, dtype=np.float64)
    if not np.array_equal(codes, np.arange(above.shape[-1])):
        above = above[..., codes]
    return np.multiply(above, np.asarray(within, dtype=np.float64), dtype=np.float64)


def max_shift(belief: ArrayLike, prior: ArrayLike, tier: ArrayLike) -> FloatArray:
    """Largest rise or fall of the belief in one value of the sensitive tier.

    Parameters
    ----------
    belief, prior : (..., values) float64
        Shares, each row sums to 1.
    tier : (values,) bool
        Values that are looked at.

    Returns
    -------
    (...) float64
        0 to 1, at most the total variation; nan where either row holds a nan; 0 for an empty tier.

    Examples
    --------
    >>> max_shift([0.88, 0.12], [0.96, 0.04], [False, True]).round(3)
    np.float64(0.08)
    """
    return _largest(np.abs(np.asarray(belief, dtype=np.float64) - np.asarray(prior, dtype=np.float64)), tier)


def max_lift(belief: ArrayLike, prior: ArrayLike, tier: ArrayLike) -> FloatArray:
    """Largest ratio of the belief in one value of the sensitive tier to its prior.

    Parameters
    ----------
    belief, prior : (..., values) float64
        Shares, each row sums to 1.
    tier : (values,) bool
        Values that are looked at.

    Returns
    -------
    (...) float64
        0 or more; inf where a value is believed that the prior ruled out; a value with neither is ignored; 0
        when no value of the tier is believed; nan where either row holds a nan.

    Notes
    -----
    A bound on differences lets a rare value grow many times over: .04 -> .12 is a shift of .08 and a lift of
    3. The ratio bounds it, as beta-likeness does (Cao and Karras 2012, Proceedings of the VLDB Endowment
    5(11), 1388-1399).

    Examples
    --------
    >>> max_lift([[0.88, 0.12], [0.5, 0.5]], [[0.96, 0.04], [1.0, 0.0]], [True, True]).round(3)
    array([ 3., inf])
    """
    belief, prior = np.broadcast_arrays(np.asarray(belief, np.float64), np.asarray(prior, np.float64))
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.true_divide(belief, prior)
    np.copyto(ratio, 0.0, where=(prior == 0) & (belief == 0))
    return _largest(ratio, tier)


def top_share(belief: ArrayLike, tier: ArrayLike) -> FloatArray:
    """Largest belief in one value of the sensitive tier.

    Parameters
    ----------
    belief : (..., values) float64
        Shares, each row sums to 1.
    tier : (values,) bool
        Values that are looked at.

    Returns
    -------
    (...) float64
        0 to 1; nan where the row holds a nan; 0 for an empty tier.

    Examples
    --------
    >>> top_share(np.array([18, 15, 11, 9]) / 53, [True] * 4).round(6)
    np.float64(0.339623)
    """
    return _largest(np.asarray(belief, dtype=np.float64), tier)


def tier_share(belief: ArrayLike, tier: ArrayLike) -> FloatArray:
    """Belief in the sensitive tier as a whole: that a visit was to any of its values, whichever.

    Parameters
    ----------
    belief : (..., values) float64
        Shares, each row sums to 1.
    tier : (values,) bool
        The values that are looked at.

    Returns
    -------
    (...) float64
        0 to 1, at least the largest belief in one of them; nan where the row holds a nan; 0 for an empty tier.

    Examples
    --------
    >>> tier_share([0.3, 0.3, 0.3, 0.1], [True, True, True, False]).round(3)
    np.float64(0.9)
    """
    belief = np.asarray(belief, dtype=np.float64)
    out = np.where(np.asarray(tier, dtype=bool), belief, 0.0).sum(axis=-1)
    return np.where(np.isnan(belief).any(axis=-1), np.nan, out)[()]


def top(shares: ArrayLike) -> IntArray:
    """Code of the most common value; of several, the first in label order.

    Parameters
    ----------
    shares : (..., values) float64 or int64
        Shares or counts.

    Returns
    -------
    (...) int64
        0 to values - 1; -1 for an empty row (nan throughout, or nothing above 0).

    Examples
    --------
    >>> top([[2, 7, 7], [0, 0, 0]])
    array([ 1, -1])
    """
    shares = np.asarray(shares)
    if shares.shape[-1] == 0:
        return np.full(shares.shape[:-1], -1)
    out: IntArray = np.where((shares > 0).any(axis=-1), shares.argmax(axis=-1), -1)[()]
    return out


def _mix(q: FloatArray, codes: IntArray, labels: int, default: FloatArray) -> FloatArray:
    """q(v | c), with `default` for the labels that have no mass in a row."""
    values = len(codes)
    member = sparse.csr_array((np.ones(values), (np.arange(values), codes)), shape=(values, labels))
    mass = (q.reshape(-1, values) @ member).reshape(*q.shape[:-1], labels)
    with np.errstate(invalid="ignore"):
        out: FloatArray = q / mass[..., codes]
    if not (known := mass > 0).all():
        np.copyto(out, default, where=~known[..., codes])
    return out


def _largest(x: FloatArray, tier: ArrayLike) -> FloatArray:
    tier = np.asarray(tier, dtype=bool)
    if tier.all():
        out: FloatArray = x.max(axis=-1, initial=0.0)
        return out
    out = np.where(tier, x, 0.0).max(axis=-1, initial=0.0)
    return np.where(np.isnan(x).any(axis=-1), np.nan, out)[()]
