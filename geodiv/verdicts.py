"""Verdicts: what one reader believes of some zones, held against the gates; only what a gate asks is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from .arrays import BoolArray, FloatArray, IntArray
from .labels import LabelSpace
from .measures import (
    effective_count,
    max_lift,
    max_shift,
    recursive_c,
    tier_share,
    top_share,
    tree_distance,
)
from .policy import GATES, Gates, meets

RELATIVE = ("t_max", "shift_max", "lift_max")
"""Gates that need a reference; without one they fail as ``no_reference``."""


@dataclass(frozen=True, slots=True, eq=False)
class Believed:
    """What one reader believes of some zones for one attribute at one level, and what else gates look at.

    Parameters
    ----------
    space : LabelSpace
    level : int
    counts : (zones, labels) float64
        Distinct persons of each label of the level.
    persons, touched : (zones,) int64
        Distinct persons, and those with any value of the sensitive tier.
    belief, prior : (zones, values) float64
        Shares of the values for the reader with the map and the one without it; nan without a reference.
    known : (zones,) bool
        Whether there is a reference.
    """

    space: LabelSpace
    level: int
    counts: FloatArray
    persons: IntArray
    touched: IntArray
    belief: FloatArray
    prior: FloatArray
    known: BoolArray

    @property
    def incidence(self) -> FloatArray:
        """(zones,) largest share of the persons with one label of the tier; 0 in a zone without persons."""
        certain = self.space.certain[self.level]
        n = self.counts if certain.all() else self.counts[:, certain]
        return _share(n.max(axis=1, initial=0.0), self.persons)

    @property
    def smallest(self) -> FloatArray:
        """(zones,) smallest count above 0, inf without one."""
        return np.asarray(np.where(self.counts > 0, self.counts, np.inf).min(axis=1, initial=np.inf))


MEASURES: Mapping[str, Callable[[Believed, Gates], NDArray[np.generic]]] = MappingProxyType(
    {
        "k_min": lambda b, _: b.persons,
        "l_min": lambda b, _: effective_count(b.belief),
        "c_max": lambda b, gates: recursive_c(b.belief, gates.c_l or 1),
        "t_max": lambda b, _: tree_distance(b.belief, b.prior, b.space.tree),
        "shift_max": lambda b, _: max_shift(b.belief, b.prior, b.space.sensitive[0]),
        "lift_max": lambda b, _: max_lift(b.belief, b.prior, b.space.sensitive[0]),
        "share_max": lambda b, _: top_share(b.belief, b.space.sensitive[0]),
        "incidence_max": lambda b, _: b.incidence,
        "label_min": lambda b, _: b.smallest,
        "tier_max": lambda b, _: tier_share(b.belief, b.space.sensitive[0]),
        "tier_incidence_max": lambda b, _: _share(b.touched, b.persons),
    }
)
"""What each gate looks at: (zones,), in the unit of its threshold."""


def failed(
    believed: Believed, gates: Gates, measured: Mapping[str, NDArray[np.generic]] = MappingProxyType({})
) -> BoolArray:
    """Which gates each zone fails: (zones, gates + 1) bool, those of `GATES` in their order, then no reference.

    Parameters
    ----------
    believed : Believed
    gates : Gates
    measured : mapping of str to (zones,) array
        What was measured already, by gate.
    """
    fails = np.zeros((len(believed.persons), len(GATES) + 1), bool)
    for g, gate in enumerate(GATES):
        threshold = getattr(gates, gate)
        if threshold is None:
            continue
        x = measured[gate] if gate in measured else MEASURES[gate](believed, gates)
        fails[:, g] = ~meets(gate, x, threshold)
        if gate in RELATIVE:
            fails[:, -1] |= ~believed.known
            fails[:, g] &= believed.known
    return fails


def _share(n: NDArray[np.generic], persons: IntArray) -> FloatArray:
    """(zones,) n over the persons, 0 where there are none."""
    return np.asarray(n / np.maximum(persons, 1))
