"""Truth: how often a reader's best guess of what a person did is right, before and after remedies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..arrays import FloatArray, IntArray
from ..measures import top
from ..policy import Policy
from ..release import Release
from .facts import Facts, as_zones
from .mixes import Mixes
from .published import attribute_records, member_ids, published
from .recount import beliefs
from .tables import records


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """How often a reader guesses right. Internal: it holds true figures.

    Parameters
    ----------
    overall : DataFrame
        One row an attribute and stage: attribute, stage ("before": every eligible cell at its finest values,
        as if the map had no remedies; "after": the published zones), zones, success, prior_success,
        advantage (their difference), worst_zone, worst_success, worst_prior, worst_advantage (of the zone
        with the largest).
    zones : DataFrame
        One row a zone: attribute, stage, cell_id, guess, prior_guess, success, prior_success, advantage.
    """

    overall: pd.DataFrame
    zones: pd.DataFrame

    def figures(self) -> dict[str, Any]:
        """The result as plain values, for JSON."""
        return {"overall": records(self.overall)}


def truth(release: Release, facts: Facts, policy: Policy) -> Truth:
    """How often the reader's best guess of a person's value is right, against guessing from the prior.

    Parameters
    ----------
    release : Release
    facts : Facts
    policy : Policy
        Its reference gives the prior; a zone without one takes the global mix.

    Notes
    -----
    The reader knows that a person was in a zone and guesses the value with the largest belief (ties: label
    order). The guess is right when the person did that in the zone: ``n(z, guess) / N(z)``; overall, each
    person counts once per zone. The prior's guess is made without looking at the zone's counts. A person may
    hold several values, so a merged zone, in which everybody has more of them, can raise both: read the
    advantage. It may be negative, when what is typical of the surroundings is true of more of the zone's
    persons than what is most common by shares.

    Examples
    --------
    Cell a: clinic, gym and retail 6 each; cell b: 20 at the gym; cell c: 34 at the clinic, the prior's guess. Before
    remedies the best guess is right for 6 + 20 + 34 of 72, the prior's for 6 + 0 + 34.

    >>> import geodiv as gd
    >>> cells = ["a"] * 18 + ["b"] * 20 + ["c"] * 34
    >>> poi = ["clinic", "gym", "retail"] * 6 + ["gym"] * 20 + ["clinic"] * 34
    >>> visits = pd.DataFrame({"who": range(72), "cell": cells, "poi": poi})
    >>> how = {"grid": gd.ColumnGrid("cell"), "person": "who", "attributes": [gd.Nominal("poi")]}
    >>> policy = gd.Policy(l_min=2.5, residual=False)
    >>> release = gd.enforce(gd.tabulate(visits, **how), policy).release
    >>> found = truth(release, Facts.read(visits, **how), policy).overall
    >>> found[["stage", "success", "prior_success"]].round(3).values.tolist()
    [['before', 0.833, 0.556], ['after', 0.333, 0.333]]
    """
    cells = len(facts.cells)
    each = np.arange(cells)
    eligible = np.flatnonzero(Mixes.of(facts, policy, each, cells).eligible)
    alone = np.full(cells, -1, dtype=np.int64)
    alone[eligible] = np.arange(len(eligible))
    members = member_ids(release)
    after = as_zones(facts, members)
    ids = release.cells["cell_id"].to_numpy(dtype=object)
    mixes = {
        "before": Mixes.of(facts, policy, alone, len(eligible)),
        "after": Mixes.of(facts, policy, after, len(ids)),
    }
    zones: list[pd.DataFrame] = []
    overall: list[tuple[Any, ...]] = []
    names = [attribute.column for attribute in facts.attributes]
    for record in attribute_records(release):
        one = published(release, record)
        a = names.index(one.column)
        fine = np.zeros(len(eligible), dtype=np.int64)
        for stage, zone, level, name in (
            ("before", alone, fine, facts.cells[eligible]),
            ("after", after, one.level, ids),
        ):
            found, persons = _zones(facts, mixes[stage], a, zone, level)
            zones.append(found.assign(attribute=one.column, stage=stage, cell_id=name.astype(str)))
            overall.append((one.column, stage, *_overall(zones[-1], persons)))
    columns = ["attribute", "stage", "zones", "success", "prior_success", "advantage"]
    worst = ["worst_zone", "worst_success", "worst_prior", "worst_advantage"]
    order = ["attribute", "stage", "cell_id", "guess", "prior_guess", "success", "prior_success", "advantage"]
    return Truth(
        pd.DataFrame(overall, columns=[*columns, *worst]), pd.concat(zones, ignore_index=True)[order]
    )


def _zones(
    facts: Facts, mixes: Mixes, a: int, zone: IntArray, level: IntArray
) -> tuple[pd.DataFrame, FloatArray]:
    space = facts.spaces[a]
    belief, prior, counts = beliefs(facts, mixes, a, level, zone)
    overall = mixes.overall(a, 0)
    prior = np.where(mixes.known[:, None], prior, overall / max(overall.sum(), 1))
    persons = facts.persons(zone, len(level)).astype(float)
    guess, before = top(np.nan_to_num(belief)), top(np.nan_to_num(prior))
    rows = np.arange(len(level))
    success = counts[0][rows, guess] / np.maximum(persons, 1)
    without = counts[0][rows, before] / np.maximum(persons, 1)
    values = np.array([*space.values, None], dtype=object)
    frame = pd.DataFrame(
        {
            "guess": values[guess],
            "prior_guess": values[before],
            "success": success,
            "prior_success": without,
            "advantage": success - without,
        }
    )
    return frame, persons


def _overall(zones: pd.DataFrame, persons: FloatArray) -> Iterator[Any]:
    yield len(zones)
    if not len(zones):
        yield from (np.nan, np.nan, np.nan, None, np.nan, np.nan, np.nan)
        return
    success = float(np.average(zones["success"], weights=persons))
    without = float(np.average(zones["prior_success"], weights=persons))
    yield from (success, without, success - without)
    worst = zones.sort_values(["advantage", "cell_id"], ascending=[False, True]).iloc[0]
    yield from (worst["cell_id"], worst["success"], worst["prior_success"], worst["advantage"])
