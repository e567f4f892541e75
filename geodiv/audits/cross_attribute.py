"""Cross-attribute: a zone that is safe in one attribute may be given away by another one beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from ..arrays import FloatArray, IntArray
from ..policy import Policy, meets
from ..release import Release
from .facts import Facts, as_zones
from .published import member_ids
from .tables import records

PAIR = ["known", "told"]


@dataclass(frozen=True, slots=True, eq=False)
class Crossed:
    """What one attribute tells of another within zones. Internal.

    Parameters
    ----------
    pairs : DataFrame
        One row an ordered pair of columns: known, told, uncertainty (Theil's U(told | known), 0 to 1: the
        share of told's entropy that known takes away), worst (smallest conditional effective count), and the
        zone, value and persons where it is found; null when no group is large enough.
    disclosures : DataFrame
        known, told, cell_id, value, persons, effective (of told in the whole zone), conditional (among the
        persons with the value), top (what they did), top_share: zones that hold l_min of told, and disclose
        it through known.
    """

    pairs: pd.DataFrame
    disclosures: pd.DataFrame

    @property
    def failed(self) -> bool:
        """Whether a zone discloses one attribute through another."""
        return bool(len(self.disclosures))

    def figures(self) -> dict[str, Any]:
        """The result as plain values, for JSON."""
        return {"pairs": records(self.pairs), "disclosures": records(self.disclosures)}


def cross_attribute(
    facts: Facts,
    policy: Policy,
    release: Release | None = None,
    *,
    told: Sequence[str] | None = None,
    persons_min: int | None = None,
) -> Crossed:
    """What a reader who knows one attribute of a visit learns of another, in every zone.

    Parameters
    ----------
    facts : Facts
        Read with every column that is to be crossed, sensitive or not: a facility id is a `Nominal` like any
        other.
    policy : Policy
        l_min of each attribute.
    release : Release, optional
        Its zones; without it, the cells with k_min persons.
    told : sequence of str, optional
        The columns that may not be disclosed, all unless named: that a diagnosis names the facility is no news.
    persons_min : int, optional
        Persons that a group needs to be looked at, k_min unless given: one person's visits always tell all.

    Notes
    -----
    Values belong together when they stand in the same visit; each person counts once per zone and pair of
    values. For values a, b: ``L(b | a, z) = exp(H(n(z, a, .)))``. Theil's ``U(b | a) = 1 - H(b | a) / H(b)``
    pools all zones, each zone's persons counting there; nan when b has a single value.

    References
    ----------
    Theil, H. (1972). Statistical Decomposition Analysis. North-Holland.

    Examples
    --------
    Twelve persons at facility f1, all of them for their hearts, twelve at f2 for four things: the zone's L is
    2.93, but among the visitors of f1 it is 1.

    >>> import geodiv as gd
    >>> care = ["heart"] * 12 + ["heart", "skin", "eye", "ear"] * 3
    >>> visits = pd.DataFrame({"who": range(24), "cell": "a", "place": ["f1"] * 12 + ["f2"] * 12, "care": care})
    >>> both = [gd.Nominal("care"), gd.Nominal("place")]
    >>> facts = Facts.read(visits, grid=gd.ColumnGrid("cell"), person="who", attributes=both)
    >>> found = cross_attribute(facts, gd.Policy(k_min=10, l_min=2), told=["care"]).disclosures
    >>> found[["value", "top", "effective", "conditional"]].round(2).values.tolist()
    [['f1', 'heart', 2.93, 1.0]]
    """
    zone, ids = _zones(facts, policy, release)
    least = policy.k_min if persons_min is None else persons_min
    pairs, disclosures = [], []
    for a, b in permutations(range(len(facts.attributes)), 2):
        rows = _rows(facts, zone, a, b)
        joint = rows.groupby(["zone", *PAIR]).size().rename("persons").reset_index()
        groups = _groups(rows, joint)
        large = groups[groups["persons"] >= least]
        known, other = facts.attributes[a].column, facts.attributes[b].column
        row = [known, other, theil_u(joint), np.nan, None, None, None]
        if len(large):
            worst = large.sort_values(["conditional", "zone", "known"]).iloc[0]
            value = facts.spaces[a].values[int(worst["known"])]
            row[3:] = [worst["conditional"], str(ids[int(worst["zone"])]), value, int(worst["persons"])]
        pairs.append(row)
        if told is None or other in told:
            disclosures.append(_disclosed(facts, policy, zone, ids, large, a, b))
    return Crossed(
        pd.DataFrame(pairs, columns=[*PAIR, "uncertainty", "worst", "cell_id", "value", "persons"]),
        pd.concat(disclosures, ignore_index=True) if disclosures else pd.DataFrame(columns=PAIR),
    )


def theil_u(joint: pd.DataFrame) -> float:
    """Theil's U of the column ``told`` given ``known``, over rows of persons: 0 to 1, nan when told has one
    value.

    Examples
    --------
    >>> theil_u(pd.DataFrame({"known": [0, 1], "told": [0, 1], "persons": [5, 5]}))
    1.0
    """
    table = joint.groupby(PAIR)["persons"].sum()
    both = _entropy(table.to_numpy(dtype=float))
    known = _entropy(table.groupby(level="known").sum().to_numpy(dtype=float))
    told = _entropy(table.groupby(level="told").sum().to_numpy(dtype=float))
    return float(np.clip(1 - (both - known) / told, 0.0, 1.0)) if told > 1e-12 else float("nan")


def _entropy(counts: FloatArray) -> float:
    return float(special.entr(counts / counts.sum()).sum()) if counts.sum() > 0 else 0.0


def _zones(facts: Facts, policy: Policy, release: Release | None) -> tuple[IntArray, Any]:
    """The zone of each cell, -1 for none, and the zones' ids."""
    if release is not None:
        return as_zones(facts, member_ids(release)), release.cells["cell_id"].to_numpy(dtype=object)
    cells = len(facts.cells)
    enough = meets("k_min", facts.persons(np.arange(cells), cells), policy.k_min)
    return np.where(enough, np.cumsum(enough) - 1, -1), facts.cells[enough]


def _rows(facts: Facts, zone: IntArray, a: int, b: int) -> pd.DataFrame:
    """zone, known, told, person: each person once per zone and pair of values that stand in one visit."""
    rows = pd.DataFrame(
        {"zone": zone[facts.cell], "known": facts.values[a], "told": facts.values[b], "person": facts.person}
    )
    return rows[rows["zone"] >= 0].drop_duplicates()


def _groups(rows: pd.DataFrame, joint: pd.DataFrame) -> pd.DataFrame:
    """zone, known, persons, conditional, top, top_share: the values of told among the persons with a value of known."""
    keys = ["zone", "known"]
    total = joint.groupby(keys)["persons"].transform("sum")
    share = joint["persons"] / total
    frame = joint.assign(share=share, entropy=special.entr(share))
    order = np.lexsort((frame["told"], -frame["persons"], frame["known"], frame["zone"]))
    first = frame.iloc[order].groupby(keys, sort=True).first()
    grouped = frame.groupby(keys, sort=True)
    return pd.DataFrame(
        {
            "persons": rows.drop_duplicates([*keys, "person"]).groupby(keys).size(),
            "conditional": np.exp(grouped["entropy"].sum()),
            "top": first["told"],
            "top_share": first["share"],
        }
    ).reset_index()


def _disclosed(
    facts: Facts, policy: Policy, zone: IntArray, ids: Any, large: pd.DataFrame, a: int, b: int
) -> pd.DataFrame:
    """The zones that hold l_min of the attribute told, and among the persons with a value of known do not."""
    columns = [*PAIR, "cell_id", "value", "persons", "effective", "conditional", "top", "top_share"]
    l_min = policy.thresholds(facts.attributes[b]).l_min
    if l_min is None or not len(large):
        return pd.DataFrame(columns=columns)
    n = facts.counts(b, 0, zone, len(ids))
    sums = n.sum(axis=1, keepdims=True)
    whole = np.exp(special.entr(n / np.maximum(sums, 1)).sum(axis=1))
    at = large["zone"].to_numpy()
    bad = meets("l_min", whole, l_min)[at] & ~meets("l_min", large["conditional"], l_min)
    rows = large[bad]
    frame = pd.DataFrame(
        {
            "known": facts.attributes[a].column,
            "told": facts.attributes[b].column,
            "cell_id": np.asarray(ids, dtype=object)[rows["zone"]].astype(str).astype(object),
            "value": np.array(facts.spaces[a].values, dtype=object)[rows["known"]],
            "persons": rows["persons"].to_numpy(),
            "effective": whole[rows["zone"]],
            "conditional": rows["conditional"].to_numpy(),
            "top": np.array(facts.spaces[b].values, dtype=object)[rows["top"]],
            "top_share": rows["top_share"].to_numpy(),
        }
    )
    return frame.sort_values(["conditional", "cell_id", "value"], ignore_index=True)
