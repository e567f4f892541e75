"""Ground distances: trees whose leaves are the values.

Every distance of geodiv is the Earth Mover's Distance on a tree, ``sum_e w_e |P(below e) - Q(below e)|``; the
kinds of attribute differ only in the tree that they build here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """A tree over values, as its edges.

    Parameters
    ----------
    below : (edges, values) sparse float64 of 0 and 1
        Which values lie below each edge.
    weight : (edges,) float64
        Length of each edge; two values are at most 1 apart.
    """

    below: sparse.csr_array
    weight: NDArray[np.float64]


def star(values: int) -> Tree:
    """The star of `values` leaves with edges of 1/2: its distance is total variation."""
    return Tree(sparse.csr_array(sparse.identity(values, format="csr")), np.full(values, 0.5))


def path(positions: Sequence[float], missing: bool) -> Tree:
    """The path through `positions` (ascending, at least one), edges of gap / range; missing values a leaf.

    Parameters
    ----------
    positions : (values,) float
        Positions of the values in their order; a constant factor or shift changes nothing.
    missing : bool
        Whether a last leaf hangs by an edge of 1/2 from the point halfway between the first and the last
        position, splitting the edge that holds this point.
    """
    points = np.asarray(positions, dtype=float)
    points = np.ldexp(points, -int(np.frexp(np.abs(points).max())[1]))  # so that no difference is infinite
    span = points[-1] - points[0]
    middle = (points[0] + points[-1]) / 2
    stops = np.unique(np.append(points, middle)) if missing else points
    gaps = np.diff(stops)
    at = np.append(points, middle) if missing else points
    below = (at[None, :] <= stops[:-1, None]).astype(float)
    weight = gaps / span if span > 0 else gaps
    if missing:
        below = np.vstack([below, np.eye(len(at))[-1]])
        weight = np.append(weight, 0.5)
    return Tree(sparse.csr_array(below), weight)


def hierarchy(up: Sequence[NDArray[np.int64]], single_root: bool, missing: bool) -> Tree:
    """The taxonomy as a tree of edges 1/(2H): two values are height(lowest common ancestor) / H apart.

    Parameters
    ----------
    up : sequence over levels of (values,) int64
        Label of each value at levels 0, 1, ..., without the missing value.
    single_root : bool
        Whether the last level has one label, which is then the root; otherwise a root is added above it, so
        that H is the number of level columns plus one.
    missing : bool
        Whether a last leaf hangs from the root by an edge of 1/2.
    """
    height = len(up) - 1 if single_root else len(up)
    blocks = [
        sparse.csr_array((np.ones(len(codes)), (codes, np.arange(len(codes))))) for codes in up[:height]
    ]
    below = sparse.vstack(blocks) if blocks else sparse.csr_array((0, len(up[0])))
    weight = np.full(below.shape[0], 1 / (2 * max(height, 1)))
    if missing:
        below = sparse.block_diag([below, np.ones((1, 1))])
        weight = np.append(weight, 0.5)
    return Tree(sparse.csr_array(below), weight)
