"""How many values a zone spreads over: shares, effective count, distinct and recursive l-diversity.

References
----------
Machanavajjhala, A., Kifer, D., Gehrke, J. and Venkitasubramaniam, M. (2007). l-Diversity: privacy beyond
k-anonymity. ACM Transactions on Knowledge Discovery from Data 1(1), article 3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def shares(counts: ArrayLike) -> FloatArray:
    """Shares of the values, each count over the sum of its row.

    Parameters
    ----------
    counts : (..., values) int64 or float64
        Not negative; distinct persons of each value, or weighted sums of them.

    Returns
    -------
    (..., values) float64
        0 to 1, each row sums to 1. A row without a count is nan throughout: it has no mix, not an even one.

    Notes
    -----
    ``p_v = n_v / sum_w n_w``. A person may hold several values, so the sum is that of contributions, not of
    persons.

    Examples
    --------
    >>> shares([18, 15, 11, 9]).round(3)
    array([0.34 , 0.283, 0.208, 0.17 ])
    >>> shares([[1, 3], [0, 0]])
    array([[0.25, 0.75],
           [ nan,  nan]])
    """
    counts = np.asarray(counts)
    with np.errstate(invalid="ignore"):  # 0 / 0 is the nan of an empty row
        out: FloatArray = np.true_divide(counts, counts.sum(axis=-1, keepdims=True), dtype=np.float64)
    return out


def effective_count(shares: ArrayLike) -> FloatArray:
    """Effective number of values, ``exp(H)``.

    Parameters
    ----------
    shares : (..., values) float64
        Shares of the values, each row sums to 1; zeros are allowed.

    Returns
    -------
    (...) float64
        In values, ``1 <= L <= number of positive shares``; nan for an empty row (all nan, or nothing above
        0).

    Notes
    -----
    ``L = exp(-sum p ln p)``: entropy l-diversity holds when ``L >= l`` (Machanavajjhala et al. 2007). It is
    the plug-in estimate: what is released is these persons, not a sample of others. In floating point L of
    (1, 1, 1) is 2.9999999999999996: compare it by `geodiv.policy.meets` only.

    Examples
    --------
    >>> effective_count(np.array([41, 3, 2, 2]) / 48).round(3)
    np.float64(1.773)
    >>> effective_count([[1.0, 0.0], [np.nan, np.nan]])
    array([ 1., nan])
    """
    shares = np.asarray(shares, dtype=np.float64)
    effective = np.exp(special.entr(shares).sum(axis=-1))
    out: FloatArray = np.where(shares.sum(axis=-1) > 0, effective, np.nan)[()]
    return out


def distinct(counts: ArrayLike) -> IntArray:
    """Number of values that occur: distinct l-diversity.

    Parameters
    ----------
    counts : (..., values) int64 or float64
        Counts or shares.

    Returns
    -------
    (...) int64
        Values with a count above 0; 0 for an empty row. Reported, and no gate: it passes a skewed cell.

    Notes
    -----
    Machanavajjhala et al. (2007) name it the weakest reading of l-diversity.

    Examples
    --------
    >>> distinct([[41, 3, 2, 2], [34, 0, 0, 0]])
    array([4, 1])
    """
    out: IntArray = (np.asarray(counts) > 0).sum(axis=-1)
    return out


def recursive_c(shares: ArrayLike, l: int) -> FloatArray:  # noqa: E741  the name in the literature
    """The least c at which recursive (c, l)-diversity still fails, ``r_1 / (r_l + ... + r_m)``.

    Parameters
    ----------
    shares : (..., values) float64
        Shares, or counts: the ratio is the same.
    l : int
        At least 1.

    Returns
    -------
    (...) float64
        Above 0; inf when the tail is empty, also for `l` above the number of values; nan for an empty row.

    Notes
    -----
    With the shares in descending order r_1 >= r_2 >= ... >= r_m, (c, l)-diversity holds when
    ``r_1 < c (r_l + ... + r_m)``, strictly (Machanavajjhala et al. 2007): so it holds for each c above this
    value.

    Examples
    --------
    >>> recursive_c(np.array([41, 3, 2, 2]) / 48, 3).round(2)
    np.float64(10.25)
    >>> recursive_c([18, 1, 1], 4)
    np.float64(inf)
    """
    shares = np.asarray(shares, dtype=np.float64)
    ascending = np.sort(shares, axis=-1)
    largest = ascending.max(axis=-1, initial=0.0)
    tail = ascending[..., : max(shares.shape[-1] - l + 1, 0)].sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0 is an empty row, x / 0 an empty tail
        out: FloatArray = np.true_divide(largest, tail)
    return out
