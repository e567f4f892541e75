"""Scores: what a reader believes of each zone, every gate on it, and one row per zone and attribute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .arrays import CSR, BoolArray, FloatArray, IntArray
from .errors import expect
from .inventory import places_of
from .labels import LabelSpace
from .measures import (
    distinct,
    effective_count,
    noise_floor,
    recursive_c,
    shares,
    spread,
    top,
    tree_distance,
    within_class,
    within_places,
)
from .plan import Plan
from .policy import GATES, Gates, Policy, meets
from .reference import Against, References
from .tabulation import Counts, Tabulation
from .verdicts import MEASURES, Believed, failed

BLOCK = 500_000
"""Numbers in a block of zones x values that is held dense at a time: few enough for a
processor's cache. It bounds memory, not results."""

NO_REFERENCE = "no_reference"


@dataclass(frozen=True, slots=True, eq=False)
class Measures:
    """The measures of some zones for one attribute at one level, one float64 or int64 each: (zones,).

    ``fails`` is (zones, gates + 1) bool: the gates of `geodiv.policy.GATES` in their order, then no reference.
    """

    effective: FloatArray
    top: IntArray
    top_share: FloatArray
    incidence: FloatArray
    distance: FloatArray
    distance_global: FloatArray
    shift: FloatArray
    lift: FloatArray
    fails: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class Brief:
    """Of the `Measures` of some zones, what judging them takes: ``effective`` and ``fails``."""

    effective: FloatArray
    fails: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """How the zones of a partition stand: counted, and judged at every level that may be published.

    Parameters
    ----------
    counts : Counts
    eligible : (zones,) bool
        At least k_min persons.
    passes : tuple over attributes of (zones, levels) bool
        Whether an eligible zone passes every gate of the attribute at a level that the policy allows.
    """

    counts: Counts
    eligible: BoolArray
    passes: tuple[BoolArray, ...]

    @property
    def lowest(self) -> IntArray:
        """(zones, attributes) lowest level at which each attribute passes, -1 for none."""
        return np.stack([np.where(p.any(axis=1), p.argmax(axis=1), -1) for p in self.passes], axis=1)

    @property
    def clears(self) -> BoolArray:
        """(zones,) whether each attribute passes at some level."""
        return np.asarray(self.eligible & (self.lowest >= 0).all(axis=1))


def expect_both(table: Any, policy: Any) -> None:
    """Raise a UsageError unless these are a Tabulation and a Policy."""
    expect(table, Tabulation, "table", "tabulate(visits, ...) makes one.")
    expect(policy, Policy, "policy", "Policy(k_min=10, ...) makes one; read_run(path).policy is a file's.")


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """A table, a policy and its references: what turns counts into verdicts.

    Parameters
    ----------
    table : Tabulation
    policy : Policy
    references : References
    start : tuple over attributes of int
        Starting levels.
    allowed : tuple over attributes of (levels,) bool
        Levels that remedies may publish.
    places : tuple over attributes of (cells, values) sparse int64, or None
        Places of each value in each cell, where the policy has a map for the attribute.
    """

    table: Tabulation
    policy: Policy
    references: References
    start: tuple[int, ...]
    allowed: tuple[BoolArray, ...]
    places: tuple[CSR | None, ...]

    @classmethod
    def of(cls, table: Tabulation, policy: Policy) -> Judge:
        """The judge of a policy over a table; raises a PolicyError where they do not fit."""
        expect_both(table, policy)
        for attribute, space in zip(table.attributes, table.spaces, strict=True):
            if len(space.values):
                policy.check(attribute, len(space.values))
        start = tuple(a.level for a in table.attributes)
        rises = "recode" in policy.ladder
        allowed = tuple(_allowed(s, a, rises) for s, a in zip(table.spaces, start, strict=True))
        return cls(table, policy, References.of(table, policy), start, allowed, places_of(table, policy))

    def starting_at(self, levels: tuple[int, ...]) -> Judge:
        """The judge that allows one level only for each attribute."""
        allowed = tuple(_allowed(s, h, False) for s, h in zip(self.table.spaces, levels, strict=True))
        return replace(self, start=levels, allowed=allowed)

    def gates(self, attribute: int) -> Gates:
        """The thresholds of one attribute."""
        return self.policy.thresholds(self.table.attributes[attribute])

    def standing(self, counts: Counts) -> Standing:
        """The verdicts on some zones at every allowed level."""
        eligible = np.asarray(meets("k_min", counts.persons, self.policy.k_min))
        rows = np.flatnonzero(eligible)
        enough = counts if len(rows) == len(eligible) else counts.take(rows)
        against = self.references.of_zones(enough.members)
        passes = []
        for a, allowed in enumerate(self.allowed):
            held = np.zeros((len(eligible), len(allowed)), bool)
            for h in np.flatnonzero(allowed):
                held[rows, h] = ~self.brief(enough, against, a, int(h)).fails.any(axis=1)
            passes.append(held)
        return Standing(counts, eligible, tuple(passes))

    def restanding(self, plan: Plan, known: Standing) -> Standing:
        """The standing of a plan's zones; those that are zones of `known` keep their counts and verdicts."""
        counts, place = self.table.recount_from(plan, known.counts)
        new = np.flatnonzero(place < 0)
        fresh = self.standing(counts.take(new))
        passes = []
        for old, young in zip(known.passes, fresh.passes, strict=True):
            both = old[np.maximum(place, 0)]
            both[new] = young
            passes.append(both)
        eligible = known.eligible[np.maximum(place, 0)]
        eligible[new] = fresh.eligible
        return Standing(counts, eligible, tuple(passes))

    def measure(self, counts: Counts, against: Against, attribute: int, level: int) -> Measures:
        """The measures of some zones for one attribute at one level."""
        parts = [_measured(*read) for read in self._readers(counts, against, attribute, level)]
        return parts[0] if len(parts) == 1 else Measures(**_joined(parts, Measures))

    def brief(self, counts: Counts, against: Against, attribute: int, level: int) -> Brief:
        """As `measure`, but nothing is measured that neither a gate nor an effective count needs."""
        parts = [_briefly(*read) for read in self._readers(counts, against, attribute, level)]
        return parts[0] if len(parts) == 1 else Brief(**_joined(parts, Brief))

    def _readers(
        self, counts: Counts, against: Against, attribute: int, level: int
    ) -> Iterator[tuple[list[Believed], Gates, FloatArray]]:
        """Block by block of zones: what each reader believes, the gates, and the global prior."""
        space, gates = self.table.spaces[attribute], self.gates(attribute)
        up, labels = space.up[level], len(space.levels[level])
        overall = self.references.overall[attribute]
        everywhere = within_class(overall[0], up, labels, overall[0])
        global_prior = spread(shares(overall[level]), everywhere, up)
        for rows in _blocks(len(counts.persons), max(BLOCK // max(len(space.values), 1), 1)):
            n = _dense(counts.labels[attribute][level], rows)
            above = np.broadcast_to(shares(overall[level]), n.shape)
            if against.local[rows].any():
                pooled = self.references.pooled(against, attribute, level, rows)
                finest = pooled if level == 0 else self.references.pooled(against, attribute, 0, rows)
                within, above = within_class(finest, up, labels, overall[0]), shares(pooled)
                prior = spread(above, within, up)
            else:
                within, prior = everywhere, np.broadcast_to(global_prior, (len(n), len(up)))
            known = against.known[rows]
            if not known.all():
                within = np.where(known[:, None], within, everywhere)
                prior = np.where(known[:, None], prior, np.nan)
            first = Believed(
                space=space,
                level=level,
                counts=n,
                persons=counts.persons[rows],
                touched=counts.tier[rows, attribute],
                belief=spread(shares(n), within, up),
                prior=prior,
                known=known,
            )
            readers = [first]
            inventory = self.places[attribute]
            if inventory is not None and level > 0:
                places = (counts.members[rows] @ inventory).todense()
                mapped = within_places(places, up, labels, within)
                prior = np.where(known[:, None], spread(above, mapped, up), np.nan)
                readers.append(replace(first, belief=spread(shares(n), mapped, up), prior=prior))
            yield readers, gates, global_prior


def _briefly(readers: list[Believed], gates: Gates, _: FloatArray) -> Brief:
    effective = effective_count(readers[0].belief)
    return Brief(effective, _failed(readers, gates, {"l_min": effective}))


def _failed(readers: list[Believed], gates: Gates, measured: Mapping[str, Any]) -> BoolArray:
    """The gates that a zone fails for any reader; what was `measured` is of the first."""
    fails = failed(readers[0], gates, measured)
    for reader in readers[1:]:
        fails |= failed(reader, gates)
    return fails


def _measured(readers: list[Believed], gates: Gates, global_prior: FloatArray) -> Measures:
    first = readers[0]
    reported = ("l_min", "t_max", "shift_max", "lift_max", "incidence_max")
    measured: dict[str, Any] = {gate: MEASURES[gate](first, gates) for gate in reported}
    largest = top(first.belief.round(12))
    return Measures(
        effective=measured["l_min"],
        top=largest,
        top_share=np.where(largest >= 0, first.belief.max(axis=1, initial=0.0), np.nan),
        incidence=measured["incidence_max"],
        distance=measured["t_max"],
        distance_global=tree_distance(first.belief, global_prior, first.space.tree),
        shift=measured["shift_max"],
        lift=measured["lift_max"],
        fails=_failed(readers, gates, measured),
    )


def _joined(parts: Sequence[Any], kind: type[Any]) -> dict[str, Any]:
    """The arrays of several blocks, one after the other, by name."""
    return {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in kind.__dataclass_fields__
    }


def score(table: Tabulation, policy: Policy) -> gpd.GeoDataFrame | pd.DataFrame:
    """One row per occupied cell and attribute: its measures, the gates it fails and the remedy it needs. Internal.

    Parameters
    ----------
    table : Tabulation
    policy : Policy

    Returns
    -------
    GeoDataFrame (DataFrame where the grid has no geometry), cells x attributes rows
        cell_id, attribute, persons, distinct, effective_fine, effective_known, effective_coarse, top_value, top_share,
        incidence, recursive_c, distance, distance_global, noise_floor, shift, lift, reference_scope,
        reference_persons, fails, remedy, final_remedy, zone_id. Effective counts are in values, shares and distances 0
        to 1. A cell below k_min has persons and fails only. A failing cell's figures **are** the disclosure: this
        frame is not for publication.

    Raises
    ------
    PolicyError
        When a gate asks more than the table can give.

    Examples
    --------
    >>> import geodiv as gd
    >>> run = gd.read_run("fixtures/policy.toml")
    >>> table = run.tabulate("fixtures/visits.parquet")
    >>> scores = gd.score(table, run.policy)
    >>> len(scores), int((scores["fails"] != "").sum() > 0)
    (184, 1)
    """
    judge = Judge.of(table, policy)
    rows = score_rows(judge, table.base, table.cells, np.tile(judge.start, (len(table.cells), 1)))
    geometry = table.geometry()
    if geometry is None:
        return rows
    each = np.tile(geometry, len(table.attributes)).reshape(len(table.attributes), -1).T.ravel()
    return gpd.GeoDataFrame(rows, geometry=each, crs=table.grid.crs)


def score_rows(judge: Judge, counts: Counts, ids: NDArray[Any], levels: IntArray) -> pd.DataFrame:
    """One row per zone and attribute, measured at the given levels: the columns of `score`.

    Parameters
    ----------
    judge : Judge
    counts : Counts
    ids : (zones,) object
    levels : (zones, attributes) int64
    """
    against = judge.references.of_zones(counts.members)
    eligible = np.asarray(meets("k_min", counts.persons, judge.policy.k_min))
    frames = [_attribute_rows(judge, counts, against, a, levels[:, a]) for a in range(len(judge.start))]
    rows = pd.concat(frames, ignore_index=True)
    zones = len(ids)
    rows.insert(0, "cell_id", np.tile(ids.astype(str), len(frames)))
    rows.insert(1, "attribute", np.repeat([a.column for a in judge.table.attributes], zones).astype(str))
    rows.insert(2, "persons", np.tile(counts.persons, len(frames)))
    below = np.tile(~eligible, len(frames))
    measures = [c for c in rows.columns if c not in ("cell_id", "attribute", "persons", "fails", "remedy")]
    for column in measures:
        rows.loc[below, column] = None if rows[column].dtype == object else np.nan
    rows["distinct"] = rows["distinct"].astype("Int64")
    rows["reference_persons"] = rows["reference_persons"].astype("Int64")
    rows.loc[below, "fails"] = "k_min"
    rows.loc[below, "remedy"] = "merge_or_suppress"
    rows["final_remedy"] = pd.Series([None] * len(rows), dtype=object)
    rows["zone_id"] = pd.Series([None] * len(rows), dtype=object)
    order = np.arange(len(rows)).reshape(len(frames), zones).T.ravel()
    return rows.iloc[order].reset_index(drop=True)


def _attribute_rows(
    judge: Judge, counts: Counts, against: Against, attribute: int, level: IntArray
) -> pd.DataFrame:
    space, gates = judge.table.spaces[attribute], judge.gates(attribute)
    levels = [h for h in range(len(space.levels)) if space.publishable[h]]
    asked = set(level.tolist()) or set(levels)
    at: dict[int, Any] = {
        h: (judge.measure if h in asked else judge.brief)(counts, against, attribute, h) for h in levels
    }
    held = np.stack([~at[h].fails.any(axis=1) for h in levels], axis=1)
    column = np.searchsorted(levels, level)
    zones = np.arange(len(level))
    passes = held[zones, column]
    coarser = held & (np.arange(len(levels))[None, :] > column[:, None])
    first = np.where(coarser.any(axis=1), coarser.argmax(axis=1), np.minimum(column + 1, len(levels) - 1))

    def chosen(name: str, where: IntArray) -> Any:
        some = np.unique(where) if len(where) else np.zeros(1, dtype=np.int64)
        stacked = np.stack([getattr(at[levels[i]], name) for i in some], axis=1)
        return stacked[zones, np.searchsorted(some, where)]

    fails = np.stack([at[h].fails for h in levels], axis=1)[zones, column]
    fine = _fine_rows(judge, counts, against, attribute, gates)
    rescued = coarser.any(axis=1)
    return pd.DataFrame(
        {
            "distinct": fine["distinct"],
            "effective_fine": at[0].effective,
            "effective_known": fine["effective_known"],
            "effective_coarse": np.where(first > column, chosen("effective", first), np.nan),
            "top_value": pd.Series(
                label_names(space, np.zeros_like(level), chosen("top", column)), dtype=object
            ),
            "top_share": chosen("top_share", column),
            "incidence": chosen("incidence", column),
            "recursive_c": fine["recursive_c"],
            "distance": chosen("distance", column),
            "distance_global": chosen("distance_global", column),
            "noise_floor": fine["noise_floor"],
            "shift": chosen("shift", column),
            "lift": chosen("lift", column),
            "reference_scope": pd.Series(against.scope, dtype=object),
            "reference_persons": against.persons,
            "fails": pd.Series(gate_names(fails), dtype=object),
            "remedy": pd.Series(
                np.select([passes, rescued], ["publish", "publish_coarsened"], "merge_or_suppress"),
                dtype=object,
            ),
        }
    )


def gate_names(fails: BoolArray) -> list[str]:
    """The gates that each zone fails, comma-separated: (zones,) of (zones, gates + 1) bool."""
    names = np.array([*GATES, NO_REFERENCE])
    code = fails @ (1 << np.arange(fails.shape[1]))
    distinct_codes, inverse = np.unique(code, return_inverse=True)
    texts = [",".join(names[[bool(c >> g & 1) for g in range(len(names))]]) for c in distinct_codes]
    return [texts[i] for i in inverse]


def label_names(space: LabelSpace, level: IntArray, code: IntArray) -> NDArray[np.object_]:
    """(zones,) labels of codes at levels; None for code -1."""
    names = np.array([*(label for labels in space.levels for label in labels), None], dtype=object)
    offset = np.cumsum([0, *(len(labels) for labels in space.levels)])
    return names[np.where(code >= 0, offset[level] + code, -1)]


def _fine_rows(
    judge: Judge, counts: Counts, against: Against, attribute: int, gates: Gates
) -> dict[str, Any]:
    """Measures that are always taken of the values themselves."""
    space = judge.table.spaces[attribute]
    out: dict[str, list[Any]] = {"distinct": [], "effective_known": [], "recursive_c": [], "noise_floor": []}
    for rows in _blocks(len(counts.persons), max(BLOCK // max(len(space.values), 1), 1)):
        n = _dense(counts.labels[attribute][0], rows)
        q = shares(judge.references.pooled(against, attribute, 0, rows))
        known = n if space.missing is None else n[:, : space.missing]
        out["distinct"].append(distinct(n))
        out["effective_known"].append(effective_count(shares(known)))
        out["recursive_c"].append(
            recursive_c(n, gates.c_l) if gates.c_l is not None else np.full(len(n), np.nan)
        )
        out["noise_floor"].append(noise_floor(n.sum(axis=1), q, space.tree))
    return {name: np.concatenate(parts) if parts else np.zeros(0) for name, parts in out.items()}


def _allowed(space: LabelSpace, start: int, rises: bool) -> BoolArray:
    levels = np.arange(len(space.levels))
    return np.asarray(space.publishable, bool) & ((levels >= start) if rises else (levels == start))


def _blocks(zones: int, size: int) -> Iterator[slice]:
    yield from (slice(i, min(i + size, zones)) for i in range(0, max(zones, 1), size))


def _dense(counts: CSR, rows: slice) -> FloatArray:
    return np.asarray(counts[rows].todense(), dtype=float)
