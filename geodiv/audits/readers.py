"""Readers who know more than the published file: values ruled out, the procedure, the very cell."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..arrays import BoolArray, FloatArray, IntArray
from ..errors import UsageError
from ..measures import effective_count, shares, spread, within_class
from ..policy import Policy
from ..release import Release
from .facts import Facts, as_zones
from .guess import Guess
from .judging import gate_names, judge, of_labels
from .mixes import Mixes
from .published import Published, attribute_records, member_ids, published
from .recount import beliefs
from .surroundings import Surroundings

DRAWS = 400
"""Fine mixes drawn for each zone; the error of a mean share is then about .02 at most."""


def ruling_out(release: Release, values: int = 1) -> pd.DataFrame:
    """How sure a reader can be who knows of a person some values that they did **not** do.

    Parameters
    ----------
    release : Release
    values : int, default 1
        How many values are ruled out.

    Returns
    -------
    DataFrame
        One row a published zone and attribute, the surest first: cell_id, attribute, ruled_out, certainty
        (largest belief in one value when the worst such values are ruled out, 0 to 1), value, left
        (effective count of what is left), hidden (whether counts are hidden and estimated).

    Notes
    -----
    The worst values to rule out are the most common ones after the first: with the shares in descending
    order the certainty is ``r_1 / (r_1 + r_(j+2) + ... + r_m)``, which is ``c / (1 + c)`` for the recursive
    c of l = j + 2. That is what the gate ``c_max`` bounds.

    Examples
    --------
    clinic 41, pharmacy 3, retail 2, cafe 2: who knows that it was not the pharmacy is sure of the clinic to
    41/45.

    >>> import geodiv as gd
    >>> poi = ["clinic"] * 41 + ["pharmacy"] * 3 + ["retail"] * 2 + ["cafe"] * 2
    >>> visits = pd.DataFrame({"who": range(48), "cell": "c-58", "poi": poi})
    >>> table = gd.tabulate(visits, grid=gd.ColumnGrid("cell"), person="who", attributes=[gd.Nominal("poi")])
    >>> release = gd.enforce(table, gd.Policy(residual=False), gd.Publication(count_min=1)).release
    >>> ruling_out(release).loc[0, "certainty"].round(3)
    np.float64(0.911)
    """
    if values < 0:
        raise UsageError(f"values: expected 0 or more values that are ruled out, got {values}.")
    around = Surroundings(release)
    frames = []
    for record in attribute_records(release):
        one = published(release, record)
        guess = Guess.of(release, one, around)
        order = np.argsort(-np.nan_to_num(guess.belief), axis=1, kind="stable")
        descending = np.take_along_axis(np.nan_to_num(guess.belief), order, axis=1)
        left = np.delete(descending, slice(1, 1 + values), axis=1)
        total = left.sum(axis=1)
        frames.append(
            pd.DataFrame(
                {
                    "cell_id": release.cells["cell_id"].to_numpy(dtype=object),
                    "attribute": one.column,
                    "ruled_out": values,
                    "certainty": np.divide(
                        left[:, :1].sum(axis=1), total, out=np.full(len(total), np.nan), where=total > 0
                    ),
                    "value": np.array(one.space.values, dtype=object)[order[:, 0]] if len(order) else None,
                    "left": effective_count(shares(left)),
                    "hidden": guess.hidden,
                }
            )
        )
    found = pd.concat(frames, ignore_index=True)
    return found.sort_values(["certainty", "cell_id"], ascending=[False, True], ignore_index=True)


def minimality(release: Release, *, draws: int = DRAWS, seed: int = 0) -> pd.DataFrame:
    """What a reader who knows the ladder and the thresholds learns from a zone being coarsened.

    Parameters
    ----------
    release : Release
    draws : int
        Fine mixes drawn for each zone.
    seed : int
        The same seed gives the same figures.

    Returns
    -------
    DataFrame
        One row a zone and attribute published above its starting level: cell_id, attribute, level, failing
        (share of the fine mixes that fit the published counts and fail at every finer level, as the reader
        knows they do), top_share (expected largest share among all mixes that fit), top_share_knowing (among
        those that fail), moved (their difference; null when no mix that was drawn fails). Empty under
        ``recode_scope = "release"``, where the level is the same for all and tells of no zone.

    Notes
    -----
    "Minimality attack": a rule that coarsens only where it must tells that the finer levels failed. For each
    zone fine mixes are drawn that fit its published counts, each label's persons spread over its values by
    the reader's ``q(v | c)``; those that would pass at some finer level are struck out. Persons with several
    values are not known to this reader, so that persons and contributions are not told apart; hidden counts
    and local references are estimated.

    Examples
    --------
    A zone of {clinic, retail: 20} at l_min = 1.8 with q even: mixes from 14/6 on to 20/0 fail, those from
    13/7 pass. On the fixture city:

    >>> import geodiv as gd
    >>> run = gd.read_run("fixtures/policy.toml")
    >>> found = minimality(run.enforce("fixtures/visits.parquet").release, draws=100)
    >>> len(found), bool(found["moved"].mean() > 0)
    (15, True)
    """
    columns = ["cell_id", "attribute", "level", "failing", "top_share", "top_share_knowing", "moved"]
    if release.metadata["policy"].get("recode_scope") == "release":
        return pd.DataFrame(columns=columns)
    around = Surroundings(release)
    rng = np.random.default_rng(seed)
    persons = release.cells["persons"].to_numpy(dtype=float)
    rows = []
    for record in attribute_records(release):
        one = published(release, record)
        guess = Guess.of(release, one, around)
        start = int(record["level"])
        for zone in np.flatnonzero((one.level > start) & one.placed):
            finer = [h for h in range(start, int(one.level[zone])) if one.space.publishable[h]]
            fine, top_shares = _drawn(one, guess, int(zone), draws, rng)
            fails = np.ones(draws, bool)
            for h in finer:
                fails &= _fails(one, guess, int(zone), h, fine, persons[zone])
            before = float(top_shares.mean())
            after = float(top_shares[fails].mean()) if fails.any() else np.nan
            cell = str(release.cells["cell_id"].iloc[zone])
            rows.append((cell, one.column, int(one.level[zone]), fails.mean(), before, after, after - before))
    return pd.DataFrame(rows, columns=columns)


def _drawn(
    one: Published, guess: Guess, zone: int, draws: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Fine counts that fit a zone's labels, (draws, values), and the largest share of each: (draws,)."""
    level = int(one.level[zone])
    up = one.space.up[level]
    counts = np.rint(guess.counts(one, zone)).astype(np.int64)
    inside = within_class(np.nan_to_num(guess.finest[zone]), up, len(counts), guess.overall)
    fine = np.zeros((draws, len(up)))
    for label, n in enumerate(counts):
        values = np.flatnonzero(up == label)
        if n and len(values):
            q = inside[values] / inside[values].sum()
            fine[:, values] = rng.multinomial(n, q, size=draws)
    return fine, shares(fine).max(axis=1)


def _fails(
    one: Published, guess: Guess, zone: int, level: int, fine: FloatArray, persons: float
) -> BoolArray:
    """(draws,) whether each fine mix fails some gate at a finer level."""
    space, up = one.space, one.space.up[level]
    labels = len(space.levels[level])
    member = np.zeros((len(up), labels))
    member[np.arange(len(up)), up] = 1
    n = np.minimum(fine @ member, persons)
    finest = np.tile(np.nan_to_num(guess.finest[zone]), (len(fine), 1))
    within = within_class(finest, up, labels, guess.overall)
    people = np.full(len(fine), persons)
    incidence, smallest = of_labels(n, people, space.certain[level])
    known = np.full(len(fine), one.scope[zone] != "none")
    found = judge(
        space,
        one.gates,
        belief=spread(shares(n), within, up),
        prior=np.where(known[:, None], spread(shares(finest @ member), within, up), np.nan),
        persons=people,
        incidence=incidence,
        touched=np.minimum(fine[:, space.certain[0]].sum(axis=1), people) / people,
        smallest=smallest,
        known=known,
    )
    return np.asarray(found.fails.any(axis=1))


def members(release: Release, facts: Facts, policy: Policy) -> pd.DataFrame:
    """What a reader meets who knows in which member cell of a merged zone a person was. Internal.

    Parameters
    ----------
    release : Release
    facts : Facts
    policy : Policy

    Returns
    -------
    DataFrame
        One row a member cell of a merged zone and attribute: zone_id, cell_id, attribute, persons,
        effective, top_share, incidence, distance, shift, lift of the cell alone at the zone's level, success
        (share of the cell's persons for whom the zone's best guess is right), and fails: the gates that the
        cell alone would fail. Nothing protects against this reader, and nothing that the file holds tells
        the cells of a zone apart: the figures say how far from the zone's mix such a cell can be.

    Examples
    --------
    Two cells of one value each make one zone, whose best guess (of two alike, the first label) is "bar".

    >>> import geodiv as gd
    >>> hexagons = ["8819635003fffff"] * 10 + ["8819635039fffff"] * 10
    >>> visits = pd.DataFrame({"who": range(20), "h3": hexagons, "poi": ["gym"] * 10 + ["bar"] * 10})
    >>> how = {"grid": gd.H3Grid(8, column="h3"), "person": "who", "attributes": [gd.Nominal("poi")]}
    >>> policy = gd.Policy(k_min=10, l_min=2)
    >>> release = gd.enforce(gd.tabulate(visits, **how), policy).release
    >>> found = members(release, Facts.read(visits, **how), policy)
    >>> found[["persons", "effective", "success", "fails"]].values.tolist()
    [[10, 1.0, 0.0, 'l_min'], [10, 1.0, 1.0, 'l_min']]
    """
    zones = as_zones(facts, member_ids(release))
    size = release.cells["n_members"].to_numpy()
    inside = np.flatnonzero((zones >= 0) & (np.append(size, 0)[zones] > 1))
    alone = np.full(len(facts.cells), -1, dtype=np.int64)
    alone[inside] = np.arange(len(inside))
    own, whole = Mixes.of(facts, policy, alone, len(inside)), Mixes.of(facts, policy, zones, len(size))
    names = [attribute.column for attribute in facts.attributes]
    frames = []
    for record in attribute_records(release):
        one = published(release, record)
        a = names.index(one.column)
        frames.append(_member_rows(facts, policy, own, whole, a, one, inside, alone, zones))
    found = pd.concat(frames, ignore_index=True)
    found.insert(
        0, "zone_id", np.tile(release.cells["cell_id"].to_numpy(dtype=object)[zones[inside]], len(frames))
    )
    return found


def _member_rows(
    facts: Facts,
    policy: Policy,
    own: Mixes,
    whole: Mixes,
    a: int,
    one: Published,
    inside: IntArray,
    alone: IntArray,
    zones: IntArray,
) -> pd.DataFrame:
    level = one.level[zones[inside]]
    belief, prior, counts = beliefs(facts, own, a, level, alone)
    guess = np.nan_to_num(beliefs(facts, whole, a, one.level, zones)[0]).argmax(axis=1)[zones[inside]]
    persons = facts.persons(alone, len(inside)).astype(float)
    incidence, smallest = np.zeros(len(inside)), np.full(len(inside), np.inf)
    for h, n in enumerate(counts):
        least = of_labels(n, persons, facts.spaces[a].certain[h])
        incidence[level == h], smallest[level == h] = least[0][level == h], least[1][level == h]
    found = judge(
        facts.spaces[a],
        policy.thresholds(facts.attributes[a]),
        belief=belief,
        prior=prior,
        persons=persons,
        incidence=incidence,
        touched=facts.touched(a, alone, len(inside)) / np.maximum(persons, 1),
        smallest=smallest,
        known=own.known,
    )
    return pd.DataFrame(
        {
            "cell_id": facts.cells[inside].astype(str).astype(object),
            "attribute": one.column,
            "persons": persons.astype(np.int64),
            **found.measures,
            "success": counts[0][np.arange(len(inside)), guess] / np.maximum(persons, 1)
            if len(inside)
            else [],
            "fails": pd.Series(gate_names(found.fails), dtype=object),
        }
    )
