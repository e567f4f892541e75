"""Judging: the measures of beliefs and the gates that they fail, as every audit decides them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import BoolArray, FloatArray, IntArray
from ..labels import LabelSpace
from ..measures import (
    effective_count,
    max_lift,
    max_shift,
    recursive_c,
    tier_share,
    top_share,
    tree_distance,
)
from ..policy import GATES, Gates, meets

NO_REFERENCE = "no_reference"
RELATIVE = ("t_max", "shift_max", "lift_max")
"""Gates that compare with the reference."""
NAMES: NDArray[np.object_] = np.array([*GATES, NO_REFERENCE], dtype=object)
"""The columns of every table of failing gates."""


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Measures of some zones, (zones,) float64 by name, and the gates that they fail, (zones, gates + 1)
    bool.

    The measures: effective, top_share, incidence, distance, shift, lift.
    """

    measures: Mapping[str, FloatArray]
    fails: BoolArray


def judge(
    space: LabelSpace,
    gates: Gates,
    *,
    belief: FloatArray,
    prior: FloatArray,
    persons: FloatArray,
    incidence: FloatArray,
    touched: FloatArray,
    smallest: FloatArray,
    known: BoolArray,
) -> Judged:
    """The measures of zones and the gates that they fail.

    Parameters
    ----------
    space : LabelSpace
    gates : Gates
    belief, prior : (zones, values) float64
        nan in the prior of a zone without a reference.
    persons, incidence : (zones,) float64
        Distinct persons; the largest share of them under one label.
    touched : (zones,) float64
        Share of the persons who did anything of the sensitive tier.
    smallest : (zones,) float64
        Fewest persons of a label that occurs; inf for none.
    known : (zones,) bool
        Whether there is a reference.
    """
    tier = space.sensitive[0]
    measures = {
        "effective": effective_count(belief),
        "top_share": top_share(belief, tier),
        "incidence": incidence,
        "distance": tree_distance(belief, prior, space.tree),
        "shift": max_shift(belief, prior, tier),
        "lift": max_lift(belief, prior, tier),
    }
    by_gate: dict[str, Any] = {
        "k_min": persons,
        "l_min": measures["effective"],
        "t_max": measures["distance"],
        "shift_max": measures["shift"],
        "lift_max": measures["lift"],
        "share_max": measures["top_share"],
        "incidence_max": incidence,
        "label_min": smallest,
        "tier_max": tier_share(belief, tier),
        "tier_incidence_max": touched,
    }
    if gates.c_l is not None:
        by_gate["c_max"] = recursive_c(belief, gates.c_l)
    fails = np.zeros((len(belief), len(NAMES)), bool)
    for g, gate in enumerate(GATES):
        threshold = getattr(gates, gate)
        if threshold is None:
            continue
        failed = ~meets(gate, by_gate[gate], threshold)
        if gate in RELATIVE:
            fails[:, -1] |= ~known
            failed &= known
        fails[:, g] = failed
    return Judged(measures, fails)


def of_labels(
    n: FloatArray, persons: FloatArray | IntArray, certain: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Largest incidence over the labels that count, and fewest persons of a label that occurs: (zones,) each."""
    incidence = np.where(certain, n / np.maximum(persons, 1)[:, None], 0.0).max(axis=1, initial=0.0)
    return incidence, np.where(n > 0, n, np.inf).min(axis=1, initial=np.inf)


def gate_names(fails: BoolArray) -> list[str]:
    """The names of the gates that are true in each row, comma-separated."""
    return [",".join(NAMES[row]) for row in fails]
