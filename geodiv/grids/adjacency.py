"""Neighbours as sparse matrices: candidates matched to the cells that are there, steps along contiguity."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ..errors import GridError
from .protocol import IntArray


def checked_order(order: int) -> int:
    """The order of a ring as an int of at least 0, or an error."""
    if isinstance(order, bool) or not isinstance(order, int | np.integer) or order < 0:
        raise GridError(f"neighbours: expected an order of 0 or more whole steps, got {order!r}.")
    return int(order)


def among(keys: IntArray, centres: IntArray, row: IntArray, candidate: IntArray) -> sparse.csr_array:
    """The candidates that are among the keys, as a 0/1 matrix without self.

    Parameters
    ----------
    keys : (cells,) int64
        Distinct keys, in any order.
    centres : (centres,) int64
        Positions in `keys` of the cells that the rows stand for.
    row : (candidates,) int64
        Row of each candidate, 0 to centres - 1.
    candidate : (candidates,) int64
        Key that is near the row's cell, each at most once per row; it need not be among the keys.

    Returns
    -------
    (centres, cells) sparse float64 of 0 and 1
        Rows without a candidate are empty.

    Examples
    --------
    >>> row, candidate = np.array([0, 1, 1, 2]), np.array([20, 10, 30, 40])
    >>> among(np.array([10, 20, 40]), np.arange(3), row, candidate).toarray()
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 0.]])
    """
    shape = (len(centres), len(keys))
    if not len(keys) or not len(candidate):
        return sparse.csr_array(shape, dtype=np.float64)
    order = np.argsort(keys, kind="stable")
    position = order[np.minimum(np.searchsorted(keys[order], candidate), len(keys) - 1)]
    found = (keys[position] == candidate) & (position != centres[row])
    matrix = sparse.csr_array((np.ones(found.sum()), (row[found], position[found])), shape=shape)
    matrix.sort_indices()
    return matrix


def within(contiguity: sparse.csr_array, order: int, centres: IntArray) -> sparse.csr_array:
    """The cells within `order` steps of the centres along a contiguity, as a 0/1 matrix without self.

    Parameters
    ----------
    contiguity : (cells, cells) sparse of 0 and 1
        Symmetric, without self.
    order : int
        Steps, at least 0.
    centres : (centres,) int64
        Positions of the cells that the rows stand for.

    Returns
    -------
    (centres, cells) sparse float64 of 0 and 1

    Examples
    --------
    >>> line = sparse.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=float))
    >>> within(line, 2, np.array([0])).toarray()
    array([[0., 1., 1.]])
    """
    cells = contiguity.shape[0]
    rows = np.arange(len(centres))
    start = sparse.csr_array((np.ones(len(centres)), (rows, centres)), shape=(len(centres), cells))
    step = sparse.csr_array(contiguity + sparse.identity(cells, format="csr"))
    reached = start
    for _ in range(order):
        grown = sparse.csr_array(reached @ step)
        grown.data[:] = 1.0
        if grown.nnz == reached.nnz:
            break
        reached = grown
    matrix = sparse.csr_array(reached - start)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix
