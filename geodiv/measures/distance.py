"""How far one mix is from another: the Earth Mover's Distance on a tree, and what chance alone gives.

References
----------
Li, N., Li, T. and Venkatasubramanian, S. (2007). t-Closeness: privacy beyond k-anonymity and l-diversity.
Proceedings of the 23rd IEEE International Conference on Data Engineering, 106-115.

Diaconis, P. and Zabell, S. (1991). Closed form summation for classical distributions: variations on a theme
of de Moivre. Statistical Science 6(3), 284-302.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse, special

from ..ground import Tree
from .diversity import FloatArray, IntArray

_TABLE = 100_000


def tree_distance(p: ArrayLike, q: ArrayLike, tree: Tree) -> FloatArray:
    """Earth Mover's Distance of two mixes whose values are the leaves of a tree.

    Parameters
    ----------
    p, q : (..., values) float64
        Shares, each row sums to 1; they broadcast against each other.
    tree : Tree
        Edges with the values below each, and their lengths; two values are at most 1 apart.

    Returns
    -------
    (...) float64
        0 to 1; nan where either row holds a nan. 0 for an attribute of one value.

    Notes
    -----
    ``D(p, q) = sum_e w_e |P(below e) - Q(below e)|``: what lies below an edge and should not must cross it.
    For the star it is total variation, for the path the ordered distance ``sum |cumsum(p - q)| / (m - 1)``,
    for a taxonomy the hierarchical distance of t-closeness (Li, Li and Venkatasubramanian 2007).

    Examples
    --------
    Nine ordered bands, the release half in the first and half in the last, a cell all in the first:

    >>> from geodiv.ground import path, star
    >>> release, cell = np.eye(9)[[0, 8]].mean(axis=0), np.eye(9)[0]
    >>> tree_distance(cell, release, path(range(9), missing=False))
    np.float64(0.5)
    >>> tree_distance([0.7, 0.3], [0.5, 0.5], star(2)).round(3)
    np.float64(0.2)
    """
    gap = np.asarray(p, dtype=np.float64) - np.asarray(q, dtype=np.float64)
    moved = np.abs(_below(gap, tree))
    moved *= tree.weight
    out: FloatArray = moved.sum(axis=-1) + 0.0 * gap.sum(axis=-1)  # the latter for a nan below no edge
    return out


def noise_floor(n: ArrayLike, q: ArrayLike, tree: Tree) -> FloatArray:
    """Expected distance to `q` of a zone whose contributions were drawn from `q` itself.

    Parameters
    ----------
    n : (zones,) int64
        Contributions of each zone, at least 1; a scalar will do.
    q : (zones, values) or (values,) float64
        Shares of the reference.
    tree : Tree
        The ground distance over the values.

    Returns
    -------
    (zones,) float64
        0 to 1, falling like ``1 / sqrt(n)``: a distance near it says nothing about the zone. nan for n = 0
        and for a row of `q` with a nan.

    Notes
    -----
    Each edge of the tree sees a binomial deviation, ``sum_e w_e E|X / n - Q_e|``, X ~ Bin(n, Q_e), and by de
    Moivre ``E|X - n Q| = 2 (k + 1) C(n, k + 1) Q^(k + 1) (1 - Q)^(n - k)`` with ``k = floor(n Q)`` (Diaconis
    and Zabell 1991), here in logs. Where n Q is whole, k = n Q and k = n Q - 1 give the same
    value, so rounding does no harm.

    Examples
    --------
    >>> from geodiv.ground import star
    >>> noise_floor(20, np.full(9, 1 / 9), star(9)).round(4)
    np.float64(0.2534)
    """
    q = np.asarray(q, dtype=np.float64)
    n = np.asarray(n, dtype=np.int64)[..., None]
    below = np.clip(_below(q, tree), 0.0, 1.0)
    draws = np.maximum(n, 1)
    with np.errstate(invalid="ignore"):  # of nan, any k will do: below is nan too
        k = np.clip((draws * below).astype(np.int64), 0, draws - 1)
    mean = special.xlogy(k + 1, below)
    mean += special.xlog1py(draws - k, -below)
    mean += special.gammaln(draws + 1.0)
    mean -= _log_factorial(k, draws)
    mean -= _log_factorial(draws - 1 - k, draws)
    np.exp(mean, out=mean)
    mean *= 2 * tree.weight
    floor = np.where(n[..., 0] > 0, mean.sum(axis=-1) / draws[..., 0], np.nan)
    out: FloatArray = floor + 0.0 * q.sum(axis=-1)  # the latter for a nan below no edge
    return out


def _log_factorial(k: IntArray, most: IntArray) -> FloatArray:
    """ln k!, looked up where k is at most a number worth a table."""
    top = int(most.max(initial=0))
    if top > _TABLE:
        return np.asarray(special.gammaln(k + 1.0))
    return np.asarray(special.gammaln(np.arange(1.0, top + 2))[k])


def _below(x: FloatArray, tree: Tree) -> FloatArray:
    """(..., edges): what lies below each edge; a star's edges are its values, without a product."""
    if _is_star(tree):
        return x
    rows = x.reshape(-1, x.shape[-1])
    masses: FloatArray = rows @ sparse.csr_array(tree.below).T
    return masses.reshape(*x.shape[:-1], tree.below.shape[0])


def _is_star(tree: Tree) -> bool:
    edges, values = tree.below.shape
    return (
        edges == values == tree.below.nnz
        and np.array_equal(tree.below.indices, np.arange(values))
        and np.array_equal(tree.below.indptr, np.arange(values + 1))
    )
