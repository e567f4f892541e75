"""Recount: a release decided from the visits, by a way that shares the measures with its making and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..arrays import BoolArray, FloatArray, IntArray
from ..errors import SourceError
from ..measures import effective_count, shares, spread, within_places
from ..places import Places
from ..policy import Policy, meets
from ..release import Release
from .facts import Facts, as_zones
from .judging import NAMES, gate_names, judge, of_labels
from .mismatches import of_attribute, of_run, of_zones, strays
from .mixes import Mixes
from .published import Published, attribute_records, member_ids, published
from .tables import records


@dataclass(frozen=True, slots=True, eq=False)
class Recount:
    """A release against the visits that it was made of. Internal: it holds true figures.

    Parameters
    ----------
    zones : DataFrame
        One row a published zone and attribute, counted again: cell_id, attribute, level, persons, reference,
        effective, top_share, incidence, distance, shift, lift, fails (gates, comma-separated).
    broken : DataFrame
        cell_id, attribute, gate: the gates that published zones fail.
    mismatches : DataFrame
        what, cell_id, attribute, value, published, counted: where the file is not what the visits give.
    residual : tuple of str
        Why the eligible cells that are not published are not safe as a group; empty when they are.
    """

    zones: pd.DataFrame
    broken: pd.DataFrame
    mismatches: pd.DataFrame
    residual: tuple[str, ...]

    @property
    def failed(self) -> bool:
        """Whether a gate is broken, a figure differs or the rest is not safe."""
        return bool(len(self.broken) or len(self.mismatches) or self.residual)

    def figures(self) -> dict[str, Any]:
        """The result as plain values, for JSON."""
        return {
            "failed": self.failed,
            "zones": int(self.zones["cell_id"].nunique()),
            "broken": records(self.broken),
            "mismatches": records(self.mismatches),
            "residual": list(self.residual),
        }


def recount(release: Release, facts: Facts, policy: Policy, *, file: str | Path | None = None) -> Recount:
    """Every gate of every published zone, decided from the visits, and every published figure compared.

    Parameters
    ----------
    release : Release
    facts : Facts
        The visits, read with the grid and attributes of the run.
    policy : Policy
        What the release has to hold; where its own metadata says otherwise, that is a mismatch.
    file : path, optional
        The GeoPackage itself: every text in every table of it is looked through for cells that are not
        published.

    Raises
    ------
    SourceError
        The release has an attribute that was not read.

    Notes
    -----
    The zones are those of the file, so that a suppressed zone put back is counted like any other; it fails
    its gates, or leaves a rest that is not safe.

    Examples
    --------
    >>> import geodiv as gd
    >>> visits = pd.DataFrame({"who": range(12), "cell": "c-1", "poi": ["gym", "bar", "shop"] * 4})
    >>> how = {"grid": gd.ColumnGrid("cell"), "person": "who", "attributes": [gd.Nominal("poi")]}
    >>> policy = gd.Policy(k_min=10, l_min=3)
    >>> release = gd.enforce(gd.tabulate(visits, **how), policy).release
    >>> recount(release, Facts.read(visits, **how), policy).failed
    False
    >>> release.counts.loc[0, "persons"] = 5
    >>> recount(release, Facts.read(visits, **how), policy).failed
    True
    """
    members = member_ids(release)
    zone = as_zones(facts, members)
    mixes = Mixes.of(facts, policy, zone, len(members))
    persons = facts.persons(zone, len(members))
    frames, broken, found = [], [], list(of_zones(release, facts, members, persons))
    for record in attribute_records(release):
        a = _position(facts, str(record["column"]))
        one = published(release, record)
        frame, fails = _judged(facts, policy, mixes, one, a, zone, persons)
        at, gate = np.nonzero(fails)
        frame["cell_id"] = release.cells["cell_id"].to_numpy(dtype=object)
        frames.append(frame[["cell_id", *(c for c in frame if c != "cell_id")]])
        broken.append(
            pd.DataFrame(
                {"cell_id": frame["cell_id"].to_numpy()[at], "attribute": one.column, "gate": NAMES[gate]}
            )
        )
        gates = policy.thresholds(facts.attributes[a])
        found += of_attribute(release, facts, mixes, one, a, zone, record, gates)
    found += of_run(release, facts, policy, mixes, zone, persons)
    found += strays(release, facts, zone, file)
    columns = ["what", "cell_id", "attribute", "value", "published", "counted"]
    return Recount(
        zones=pd.concat(frames, ignore_index=True),
        broken=pd.concat(broken, ignore_index=True),
        mismatches=pd.DataFrame(found, columns=columns, dtype=object),
        residual=tuple(_residual(facts, policy, mixes.eligible, zone)) if policy.residual else (),
    )


def _position(facts: Facts, column: str) -> int:
    names = [attribute.column for attribute in facts.attributes]
    if column not in names:
        raise SourceError(
            f"the release has the attribute '{column}', and the visits were read without it. "
            "Give the policy file that the release was made with."
        )
    return names.index(column)


def beliefs(
    facts: Facts, mixes: Mixes, a: int, level: IntArray, zone: IntArray
) -> tuple[FloatArray, FloatArray, Any]:
    """Belief, prior (zones, values) and label counts (a list over levels of (zones, labels)) at each zone's level."""
    space = facts.spaces[a]
    belief = np.full((len(level), len(space.values)), np.nan)
    prior = belief.copy()
    counts = []
    for h in range(len(space.levels)):
        n = facts.counts(a, h, zone, len(level)).astype(float)
        counts.append(n)
        at = level == h
        if at.any():
            within, before = mixes.prior(a, h)
            belief[at], prior[at] = spread(shares(n), within, space.up[h])[at], before[at]
    return belief, prior, counts


def mapped_beliefs(
    facts: Facts,
    mixes: Mixes,
    places: Places,
    a: int,
    level: IntArray,
    zone: IntArray,
    counts: list[FloatArray],
) -> tuple[FloatArray, FloatArray]:
    """Belief and prior of a reader with a map of places: (zones, values) each; at the finest level as without it."""
    space = facts.spaces[a]
    code = {value: i for i, value in enumerate(space.values)}
    inventory = np.zeros((len(level), len(space.values)))
    for cell, z in zip(facts.cells, zone.tolist(), strict=True):
        for value, n in places.inventory.get(str(cell), {}).items():
            if z >= 0 and value in code:
                inventory[z, code[value]] += n
    belief, prior, _ = beliefs(facts, mixes, a, level, zone)
    for h in np.unique(level[level > 0]).tolist():
        at, up = level == h, space.up[h]
        mapped = within_places(inventory, up, len(space.levels[h]), mixes.prior(a, h)[0])
        belief[at] = spread(shares(counts[h]), mapped, up)[at]
        prior[at] = spread(shares(mixes.counts(a, h)), mapped, up)[at]
    return belief, prior


def _judged(
    facts: Facts, policy: Policy, mixes: Mixes, one: Published, a: int, zone: IntArray, persons: IntArray
) -> tuple[pd.DataFrame, BoolArray]:
    space = facts.spaces[a]
    level = np.where(one.level < len(space.levels), one.level, 0)
    belief, prior, counts = beliefs(facts, mixes, a, level, zone)
    incidence, smallest = np.zeros(len(level)), np.full(len(level), np.inf)
    for h, n in enumerate(counts):
        at = level == h
        own, least = of_labels(n, persons, space.certain[h])
        incidence[at], smallest[at] = own[at], least[at]
    judged = partial(
        judge,
        space,
        policy.thresholds(facts.attributes[a]),
        persons=persons.astype(float),
        incidence=incidence,
        touched=facts.touched(a, zone, len(level)) / np.maximum(persons, 1),
        smallest=smallest,
        known=mixes.known,
    )
    found = judged(belief=belief, prior=prior)
    fails = found.fails
    for places in policy.places:
        if places.attribute == one.column:
            mapped = mapped_beliefs(facts, mixes, places, a, level, zone, counts)
            fails = fails | judged(belief=mapped[0], prior=mapped[1]).fails
    frame = pd.DataFrame(
        {
            "attribute": pd.Series([one.column] * len(level), dtype=object),
            "level": level,
            "persons": persons,
            "reference": mixes.scope,
            **found.measures,
            "fails": pd.Series(gate_names(fails), dtype=object),
        }
    )
    return frame, fails


def _residual(facts: Facts, policy: Policy, eligible: BoolArray, zone: IntArray) -> Iterator[str]:
    """Why the eligible cells in no published zone are not safe as a group; where nothing is published, none is told."""
    left = eligible & (zone < 0)
    if not left.any() or (zone < 0).all():
        return
    if left.sum() < 2:
        yield "a single eligible cell is left out"
    union, all_ = np.where(left, 0, -1), np.where(eligible, 0, -1)
    persons, everyone = facts.persons(union, 1).astype(float), facts.persons(all_, 1).astype(float)
    alone = np.where(left, np.arange(len(left)), -1)
    for a, attribute in enumerate(facts.attributes):
        gates = policy.thresholds(attribute)
        n = facts.counts(a, 0, union, 1).astype(float)
        if gates.l_min is not None:
            pooled = facts.counts(a, 0, alone, len(left)).sum(axis=0)[None, :]
            for mix in (n, pooled):
                if not meets("l_min", effective_count(shares(mix)), gates.l_min)[0]:
                    yield f"{attribute.column}: what is left out is below l_min"
                    break
        if gates.incidence_max is not None:
            own = n[0] / persons[0]
            limit = np.maximum(gates.incidence_max, facts.counts(a, 0, all_, 1)[0] / everyone[0])
            excess = np.where(facts.spaces[a].certain[0], own - limit, -1.0)
            if not meets("incidence_max", excess, 0.0).all():
                yield f"{attribute.column}: what is left out is above incidence_max"
        if gates.tier_incidence_max is not None:
            limit = max(gates.tier_incidence_max, facts.touched(a, all_, 1)[0] / everyone[0])
            if not meets("tier_incidence_max", facts.touched(a, union, 1)[0] / persons[0], limit):
                yield f"{attribute.column}: what is left out is above tier_incidence_max"
