"""Recheck: what would have been decided from rows instead of persons."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..arrays import BoolArray, FloatArray, IntArray
from ..measures import effective_count, shares
from ..policy import Policy
from .facts import Facts
from .judging import gate_names, judge, of_labels
from .mixes import Mixes


def recheck(facts: Facts, policy: Policy) -> pd.DataFrame:
    """Persons against rows: both effective counts of each cell, and the verdicts that flip. Internal.

    Parameters
    ----------
    facts : Facts
    policy : Policy

    Returns
    -------
    DataFrame
        One row an eligible cell and attribute, the largest gap first: cell_id, attribute, persons, visits,
        effective_persons, effective_visits, gap (visits minus persons), fails_persons, fails_visits (gates
        at the finest values, comma-separated), flips, heaviest (share of the cell's visits that its busiest
        person made, 0 to 1).

    Notes
    -----
    Persons are what counts: one person's thirty visits to a clinic are one person at the clinic. In the
    columns of visits each row counts in the shares of the cell and of its reference; k, incidence and
    label_min stay a matter of persons. A verdict flips when a cell passes by the one and fails by the other.

    Examples
    --------
    Ten persons at a clinic once each, and an eleventh thirty times at the gym: by persons 10/1, by visits 10/30.

    >>> import geodiv as gd
    >>> poi = ["clinic"] * 10 + ["gym"] * 30
    >>> visits = pd.DataFrame({"who": [*range(10), *[10] * 30], "cell": "a", "poi": poi})
    >>> facts = Facts.read(visits, grid=gd.ColumnGrid("cell"), person="who", attributes=[gd.Nominal("poi")])
    >>> found = recheck(facts, gd.Policy(k_min=10))
    >>> found[["effective_persons", "effective_visits", "heaviest"]].round(2).values.tolist()
    [[1.36, 1.75, 0.75]]
    """
    cells = len(facts.cells)
    each = np.arange(cells)
    rows = np.flatnonzero(Mixes.of(facts, policy, each, cells).eligible)
    alone = np.full(cells, -1, dtype=np.int64)
    alone[rows] = np.arange(len(rows))
    mixes = Mixes.of(facts, policy, alone, len(rows))
    by_visits = Mixes.of(facts, policy, alone, len(rows))
    for a in range(len(facts.attributes)):
        by_visits.held[a, 0] = facts.visits(a, each, cells).astype(float)
    persons = facts.persons(alone, len(rows))
    visits = np.bincount(facts.cell, minlength=cells)[rows]
    frames = []
    for a, attribute in enumerate(facts.attributes):
        n = facts.counts(a, 0, alone, len(rows)).astype(float)
        v = facts.visits(a, alone, len(rows)).astype(float)
        fails = [
            _fails(facts, policy, m, a, x, n, facts.touched(a, alone, len(rows)), persons)
            for m, x in ((mixes, n), (by_visits, v))
        ]
        one, other = effective_count(shares(n)), effective_count(shares(v))
        frames.append(
            pd.DataFrame(
                {
                    "cell_id": facts.cells[rows].astype(str).astype(object),
                    "attribute": pd.Series([attribute.column] * len(rows), dtype=object),
                    "persons": persons,
                    "visits": visits,
                    "effective_persons": one,
                    "effective_visits": other,
                    "gap": other - one,
                    "fails_persons": pd.Series(gate_names(fails[0]), dtype=object),
                    "fails_visits": pd.Series(gate_names(fails[1]), dtype=object),
                    "flips": fails[0].any(axis=1) != fails[1].any(axis=1),
                    "heaviest": _heaviest(facts)[rows],
                }
            )
        )
    found = pd.concat(frames, ignore_index=True)
    order = np.lexsort((found["cell_id"].astype(str), -found["gap"].abs()))
    return found.iloc[order].reset_index(drop=True)


def _fails(
    facts: Facts,
    policy: Policy,
    mixes: Mixes,
    a: int,
    x: FloatArray,
    n: FloatArray,
    touched: IntArray,
    persons: IntArray,
) -> BoolArray:
    """(cells, gates + 1) the gates that cells fail at the finest values by counts `x`, persons being `n`."""
    space = facts.spaces[a]
    incidence, smallest = of_labels(n, persons, space.certain[0])
    found = judge(
        space,
        policy.thresholds(facts.attributes[a]),
        belief=shares(x),
        prior=mixes.prior(a, 0)[1],
        persons=persons.astype(float),
        incidence=incidence,
        touched=touched / np.maximum(persons, 1),
        smallest=smallest,
        known=mixes.known,
    )
    return found.fails


def _heaviest(facts: Facts) -> FloatArray:
    """(cells,) largest share of the cell's visits that one person made."""
    rows = pd.DataFrame({"cell": facts.cell, "person": facts.person})
    sizes = rows.groupby(["cell", "person"]).size()
    of_cell = sizes.groupby(level="cell")
    return np.asarray((of_cell.max() / of_cell.sum()).to_numpy(dtype=float))
