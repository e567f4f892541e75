"""The definitions once more, in plain loops over sets of persons: what geodiv must find, without geodiv.

Shares are exact fractions; only logarithms are floats. Nothing is fast; nothing is shared with the library.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

MISSING = "(missing)"
GATES = (
    "l_min", "c_max", "t_max", "shift_max", "lift_max", "share_max", "incidence_max", "label_min", "tier_max",
    "tier_incidence_max",
)  # fmt: skip
AGAINST_REFERENCE = ("t_max", "shift_max", "lift_max")
DEFAULTS: dict[str, Any] = {
    "k_min": 10,
    **dict.fromkeys((*GATES, "c_l")),
    "reference": {"scope": "global"},
    "ladder": ("recode", "merge", "suppress"),
    "recode_scope": "zone",
    "max_members": 7,
    "max_rounds": 20,
    "residual": True,
    "count_min": 3,
    "places": {},
}
RING = {"order": 1, "min_persons": 1, "fallback": "global"}
Shares = Mapping[str, Fraction]
Edges = Sequence[tuple[float, frozenset[str]]]
Visit = tuple[str, Any, Mapping[str, Any]]


class NotConverged(Exception):
    """Zones still fail; ``zones`` holds their ids."""

    def __init__(self, zones: Iterable[str]) -> None:
        super().__init__("not converged")
        self.zones = tuple(sorted(zones))


# --- values and labels --------------------------------------------------------------------------------------


def text(value: Any) -> str:
    """A value as it is compared and written."""
    if value is None or value != value:
        return MISSING
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        return str(int(value))
    return str(value)


@dataclass(frozen=True)
class Declared:
    """One attribute as the user declares it; a numeric one is an ordinal one over its bands."""

    column: str
    kind: str = "nominal"  # or "ordinal"
    order: tuple[str, ...] = ()
    positions: tuple[float, ...] | None = None
    taxonomy: tuple[tuple[str, ...], ...] = ()  # rows: value, level 1, level 2, ...
    hierarchical: bool = False
    missing: tuple[str, ...] = ()
    sensitive: tuple[str, ...] | None = None
    gates: Mapping[str, float] = field(default_factory=dict)
    level: int = 0


@dataclass(frozen=True)
class Labels:
    """Labels of every level in label order, the label above each value, the edges of the ground distance."""

    levels: tuple[tuple[str, ...], ...]
    above: tuple[Mapping[str, str], ...]
    edges: Edges
    tier: frozenset[str]
    certain: frozenset[str]

    def publishable(self, level: int) -> bool:
        return level == 0 or len([label for label in self.levels[level] if label != MISSING]) > 1


def labels_of(declared: Declared, occurring: Iterable[str]) -> Labels:
    """The label space of an attribute, given the values that occur."""
    occurring = set(occurring)
    paths = {row[0]: row for row in declared.taxonomy}
    height = len(declared.taxonomy[0]) - 1 if declared.taxonomy else 0
    known = sorted((occurring | set(paths)) - {MISSING})
    if declared.kind == "ordinal":
        known = list(declared.order)
    values = known + [MISSING] * (MISSING in occurring)
    above = [{v: paths[v][h] if v in paths else v for v in values} for h in range(height + 1)]
    levels = [tuple(dict.fromkeys(parent[v] for v in values)) for parent in above]
    tier = set(values) if declared.sensitive is None else {*declared.sensitive, MISSING} & set(values)
    named = declared.sensitive is not None and MISSING in declared.sensitive
    if declared.kind == "ordinal":
        edges = path_edges(known, declared.positions or range(len(known)), MISSING in occurring)
    elif declared.hierarchical:
        edges = taxonomy_edges(known, above[1:], MISSING in occurring)
    else:
        edges = [(0.5, frozenset({v})) for v in values]
    certain = frozenset(tier) if named else frozenset(tier - {MISSING})
    return Labels(tuple(levels), tuple(above), edges, frozenset(tier), certain)


def path_edges(order: Sequence[str], positions: Sequence[float], missing: bool) -> Edges:
    """A path through the positions, edges of gap / range; the missing value hangs by 1/2 from its middle."""
    at = dict(zip(order, positions, strict=True))
    low, high = min(at.values()), max(at.values())
    if missing:
        at[MISSING] = (low + high) / 2
    stops = sorted(set(at.values()))
    edges = [((b - a) / (high - low), frozenset(v for v in at if at[v] <= a)) for a, b in pairwise(stops)]
    return [*edges, (0.5, frozenset({MISSING}))] if missing else edges


def taxonomy_edges(values: Sequence[str], above: Sequence[Mapping[str, str]], missing: bool) -> Edges:
    """The taxonomy as a tree of edges 1/(2H); the missing value hangs by 1/2 from the root."""
    single = len({above[-1][v] for v in values}) == 1
    height = len(above) + (not single)
    nodes = [{v: v for v in values}, *above][:height]
    edges = [
        (1 / (2 * height), frozenset(v for v in values if parent[v] == label))
        for parent in nodes
        for label in sorted({parent[v] for v in values})
    ]
    return [*edges, (0.5, frozenset({MISSING}))] if missing else edges


# --- measures -----------------------------------------------------------------------------------------------


def shares(counts: Mapping[str, Any]) -> dict[str, Fraction]:
    """Counts divided by their sum; empty when there is no mass."""
    total = sum(Fraction(n) for n in counts.values())
    return {v: Fraction(n) / total for v, n in counts.items()} if total else {}


def effective(p: Shares) -> float:
    """exp(H)."""
    return math.exp(-math.fsum(float(x) * math.log(float(x)) for x in p.values() if x > 0)) if p else math.nan


def recursive_c(p: Shares, c_l: int) -> float:
    """r_1 / (r_l + ... + r_m) of the descending shares."""
    ranked = sorted(p.values(), reverse=True)
    tail = sum(ranked[c_l - 1 :])
    return float(ranked[0] / tail) if tail else math.inf


def distance(edges: Edges, p: Shares, q: Shares) -> float:
    """Earth Mover's Distance on a tree."""
    zero = Fraction(0)
    gaps = [sum((p.get(v, zero) - q.get(v, zero) for v in below), zero) for _, below in edges]
    return math.fsum(weight * float(abs(gap)) for (weight, _), gap in zip(edges, gaps, strict=True))


def noise_floor(edges: Edges, n: int, q: Shares) -> float:
    """Expected distance to q of n independent draws from q, over all outcomes of each edge's binomial."""
    floor = 0.0
    for weight, below in edges:
        x = float(sum(q[v] for v in below))
        for k in range(n + 1):
            floor += weight * math.comb(n, k) * x**k * (1 - x) ** (n - k) * abs(k / n - x)
    return floor


def holds(gate: str, x: float, threshold: float) -> bool:
    """Whether a measure holds a gate."""
    slack = 1e-9 * max(1.0, abs(threshold))
    if gate == "c_max":
        return bool(x < threshold)
    return x >= threshold - slack if gate in ("k_min", "l_min", "label_min") else x <= threshold + slack


def inside(labels: Labels, level: int, local: Shares, whole: Shares) -> dict[str, Fraction]:
    """q(v | c): the mix inside each class, local where it has mass, else global, else even."""
    q = {}
    for label in labels.levels[level]:
        below = [v for v in labels.levels[0] if labels.above[level][v] == label]
        for mix in (local, whole, dict.fromkeys(below, Fraction(1))):
            mass = sum(mix.get(v, 0) for v in below)
            if mass:
                q.update({v: Fraction(mix.get(v, 0)) / mass for v in below})
                break
    return q


# --- counting -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """One attribute of one zone at one level."""

    p: Shares
    belief: Shares
    measures: Mapping[str, float]
    fails: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Who was where doing what, and everything that can be asked about a set of cells."""

    attributes: Sequence[Declared]
    near: Mapping[int, Mapping[str, set[str]]]
    policy: Mapping[str, Any]
    persons: Mapping[str, set[Any]]
    contributions: Sequence[Mapping[str, Mapping[str, set[Any]]]]
    labels: Sequence[Labels]
    seen: dict[Any, Any] = field(default_factory=dict)  # what was worked out already

    @property
    def eligible(self) -> list[str]:
        return [cell for cell in sorted(self.persons) if len(self.persons[cell]) >= self.policy["k_min"]]

    def people(self, cells: Iterable[str]) -> set[Any]:
        return set().union(*(self.persons[cell] for cell in cells))

    def counts(self, cells: Iterable[str], a: int, level: int) -> dict[str, int]:
        """n(z, label) for each label of a level: distinct persons, counted again."""
        cells = list(cells)
        found: dict[str, set[Any]] = {label: set() for label in self.labels[a].levels[level]}
        for cell in cells:
            for value, persons in self.contributions[a][cell].items():
                found[self.labels[a].above[level][value]] |= persons
        return {label: len(persons) for label, persons in found.items()}

    def touched(self, cells: Iterable[str], a: int) -> Fraction:
        """Share of the persons in some cells who did anything of the tier, whichever."""
        cells = list(cells)
        found: set[Any] = set()
        for cell in cells:
            for value, persons in self.contributions[a][cell].items():
                found |= persons if value in self.labels[a].certain else set()
        return Fraction(len(found), len(self.people(cells)))

    def pooled(self, weights: Mapping[str, Any], a: int, level: int) -> dict[str, Fraction]:
        """Q at a level: the weighted sum over reference cells of their own counts, as shares."""
        total = dict.fromkeys(self.labels[a].levels[level], Fraction(0))
        for cell, weight in weights.items():
            for label, n in self.counts([cell], a, level).items():
                total[label] += Fraction(weight) * n
        return shares(total)

    def whole(self, a: int, level: int) -> dict[str, Fraction]:
        if ("whole", a, level) not in self.seen:
            self.seen["whole", a, level] = self.pooled(dict.fromkeys(self.eligible, 1), a, level)
        return self.seen["whole", a, level]  # type: ignore[no-any-return]

    def neighbours(self, cells: Iterable[str], order: int) -> set[str]:
        """Cells within `order` steps of any of these, these excluded."""
        cells = set(cells)
        return set().union(*(self.near[order].get(cell, set()) for cell in cells)) - cells

    def gates(self, a: int) -> dict[str, Any]:
        return {**self.policy, **self.attributes[a].gates}


def tabulate(
    visits: Iterable[Visit],
    near: Mapping[int, Mapping[str, set[str]]],
    attributes: Sequence[Declared],
    policy: Mapping[str, Any],
) -> Table:
    """Contributions of the visits: distinct (cell, value, person)."""
    persons: dict[str, set[Any]] = {}
    contributions: list[dict[str, dict[str, set[Any]]]] = [{} for _ in attributes]
    for cell, person, values in visits:
        persons.setdefault(cell, set()).add(person)
        for declared, where in zip(attributes, contributions, strict=True):
            value = text(values[declared.column])
            value = MISSING if value in declared.missing else value
            where.setdefault(cell, {}).setdefault(value, set()).add(person)
    occurring = [{v for cell in where.values() for v in cell} for where in contributions]
    labels = [labels_of(declared, values) for declared, values in zip(attributes, occurring, strict=True)]
    return Table(attributes, near, {**DEFAULTS, **policy}, persons, contributions, labels)


# --- judging ------------------------------------------------------------------------------------------------


def reference(t: Table, zone: frozenset[str]) -> tuple[str, dict[str, Any]]:
    """What a zone is judged against: the scope, and the weight of each eligible reference cell."""
    rule = {**RING, **t.policy["reference"]}
    eligible = set(t.eligible)
    tries: list[tuple[str, dict[str, Any]]] = []
    if rule["scope"] == "ring":
        for order in range(rule["order"], rule.get("max_order", rule["order"]) + 1):
            tries.append((f"ring:{order}", dict.fromkeys(t.neighbours(zone, order), 1)))
    elif rule["scope"] == "region":
        mine = {rule["regions"][cell] for cell in zone if cell in rule["regions"]}
        tries.append(("region", {cell: 1 for cell, region in rule["regions"].items() if region in mine}))
    elif rule["scope"] == "weights":
        best: dict[str, Any] = {}
        for cell in zone:
            for other, weight in rule["weights"].get(cell, {}).items():
                if other not in zone and weight > best.get(other, 0):
                    best[other] = weight
        tries.append(("weights", best))
    for scope, weights in tries:
        weights = {cell: w for cell, w in sorted(weights.items()) if cell in eligible}
        if weights and sum(len(t.persons[cell]) for cell in weights) >= rule["min_persons"]:
            return scope, weights
    if eligible and (rule["scope"] == "global" or rule["fallback"] == "global"):
        return "global", dict.fromkeys(sorted(eligible), 1)
    return "none", {}


def judge(t: Table, zone: frozenset[str], a: int, level: int) -> Judged:
    """Every measure of one attribute of a zone at a level, and the gates that fail (k_min apart)."""
    key = (zone, a, level)
    if key not in t.seen:
        labels, n = t.labels[a], t.counts(zone, a, level)
        scope, weights = reference(t, zone)
        p, whole = shares(n), t.whole(a, 0)
        local = t.pooled(weights, a, 0) if weights else whole
        q = inside(labels, level, local, whole)
        up = labels.above[level]
        belief = {v: p[up[v]] * q[v] for v in labels.levels[0]}
        wide = t.pooled(weights, a, level)
        prior = {v: wide[up[v]] * q[v] for v in labels.levels[0]} if weights else {}
        persons, touched = len(t.people(zone)), t.touched(zone, a)
        measures = measured(labels, level, belief, prior, n, persons, touched, t.gates(a)["c_l"])
        fails = set(failing(measures, t.gates(a), scope == "none"))
        if level > 0 and t.attributes[a].column in t.policy["places"]:
            q = by_places(t.policy["places"][t.attributes[a].column], zone, labels, level, q)
            other = {v: p[up[v]] * q[v] for v in labels.levels[0]}
            before = {v: wide[up[v]] * q[v] for v in labels.levels[0]} if weights else {}
            seen = measured(labels, level, other, before, n, persons, touched, t.gates(a)["c_l"])
            fails |= set(failing(seen, t.gates(a), scope == "none"))
        ordered = tuple(gate for gate in (*GATES, "no_reference") if gate in fails)
        t.seen[key] = Judged(p, belief, measures, ordered)
    return t.seen[key]  # type: ignore[no-any-return]


def by_places(
    inventory: Mapping[str, Mapping[str, int]],
    zone: frozenset[str],
    labels: Labels,
    level: int,
    q: Mapping[str, Fraction],
) -> dict[str, Fraction]:
    """q(v | c, z) of the reader with a map: by the places in the zone, as before where a class has none."""
    there = {v: sum(inventory.get(cell, {}).get(v, 0) for cell in zone) for v in labels.levels[0]}
    mapped = {}
    for v in labels.levels[0]:
        every = sum(n for w, n in there.items() if labels.above[level][w] == labels.above[level][v])
        mapped[v] = Fraction(there[v], every) if every else q[v]
    return mapped


def measured(
    labels: Labels,
    level: int,
    belief: Shares,
    prior: Shares,
    n: Mapping[str, int],
    persons: int,
    touched: Fraction,
    c_l: int | None,
) -> dict[str, float]:
    """The measure of each gate."""
    tier = [v for v in labels.levels[0] if v in labels.tier]
    certain = {labels.above[level][v] for v in labels.certain}
    lifts = [belief[v] / prior[v] if prior[v] else math.inf for v in tier if belief[v] > 0] if prior else []
    return {
        "l_min": effective(belief),
        "c_max": recursive_c(belief, c_l) if c_l else math.nan,
        "t_max": distance(labels.edges, belief, prior) if prior else math.nan,
        "shift_max": float(max((abs(belief[v] - prior[v]) for v in tier), default=0)) if prior else math.nan,
        "lift_max": float(max(lifts, default=0)) if prior else math.nan,
        "share_max": float(max((belief[v] for v in tier), default=0)),
        "incidence_max": float(max((Fraction(n[label], persons) for label in certain), default=0)),
        "label_min": min((x for x in n.values() if x > 0), default=math.inf),
        "tier_max": float(sum((belief[v] for v in tier), Fraction(0))),
        "tier_incidence_max": float(touched),
    }


def failing(measures: Mapping[str, float], gates: Mapping[str, Any], no_reference: bool) -> tuple[str, ...]:
    """Names of the gates that fail, in their order; without a reference its three gates fail as one."""
    fails, last = [], []
    for gate in GATES:
        if gates[gate] is not None and not holds(gate, measures[gate], gates[gate]):
            if no_reference and gate in AGAINST_REFERENCE:
                last = ["no_reference"]
            else:
                fails.append(gate)
    return (*fails, *last)


# --- scores -------------------------------------------------------------------------------------------------

MEASURES = (
    "distinct", "effective_fine", "effective_known", "effective_coarse", "top_value", "top_share",
    "incidence", "recursive_c", "distance", "distance_global", "noise_floor", "shift", "lift",
    "reference_scope", "reference_persons",
)  # fmt: skip


def scores(t: Table) -> list[dict[str, Any]]:
    """One row per cell and attribute before remedies; None and nan are null."""
    rows = []
    for cell in sorted(t.persons):
        for a, declared in enumerate(t.attributes):
            row: dict[str, Any] = {"cell_id": cell, "attribute": declared.column}
            row["persons"] = len(t.persons[cell])
            if cell in t.eligible:
                row |= score(t, frozenset({cell}), a, declared.level)
            else:
                row |= dict.fromkeys(MEASURES) | {"fails": "k_min", "remedy": "merge_or_suppress"}
            rows.append(row)
    return rows


def score(t: Table, zone: frozenset[str], a: int, level: int) -> dict[str, Any]:
    """The measures of one zone and attribute at a level, as columns of the scores."""
    labels, fine, at = t.labels[a], judge(t, zone, a, 0), judge(t, zone, a, level)
    n = t.counts(zone, a, 0)
    scope, weights = reference(t, zone)
    coarser = [judge(t, zone, a, h) for h in range(level + 1, len(labels.levels)) if labels.publishable(h)]
    passing = [j for j in coarser if not j.fails]
    whole, mix = t.whole(a, level), inside(labels, level, t.whole(a, 0), t.whole(a, 0))
    prior = {v: whole[labels.above[level][v]] * mix[v] for v in labels.levels[0]} if whole else {}
    top = max(labels.levels[0], key=lambda v: at.belief[v])
    local = t.pooled(weights, a, 0)
    return {
        "distinct": len([v for v in n if n[v] > 0]),
        "effective_fine": effective(fine.p),
        "effective_known": effective(shares({v: x for v, x in n.items() if v != MISSING})),
        "effective_coarse": effective((passing or coarser)[0].belief) if coarser else None,
        "top_value": top,
        "top_share": float(at.belief[top]),
        "incidence": at.measures["incidence_max"],
        "recursive_c": recursive_c(fine.p, t.gates(a)["c_l"]) if t.gates(a)["c_l"] else None,
        "distance": at.measures["t_max"],
        "distance_global": distance(labels.edges, at.belief, prior) if prior else math.nan,
        "noise_floor": noise_floor(labels.edges, sum(n.values()), local) if weights else math.nan,
        "shift": at.measures["shift_max"],
        "lift": at.measures["lift_max"],
        "reference_scope": scope,
        "reference_persons": sum(len(t.persons[cell]) for cell in weights),
        "fails": ",".join(at.fails),
        "remedy": "publish" if not at.fails else "publish_coarsened" if passing else "merge_or_suppress",
    }


# --- remedies -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Zone:
    """A set of cells and the level at which it publishes each attribute."""

    members: frozenset[str]
    levels: tuple[int, ...]
    suppressed: bool = False

    @property
    def id(self) -> str:
        return min(self.members)


@dataclass(frozen=True)
class Move:
    """Zones that become others; moves are taken in the order of their keys."""

    key: tuple[Any, ...]
    old: frozenset[Zone]
    new: frozenset[Zone]

    @property
    def cells(self) -> frozenset[str]:
        return frozenset().union(*(z.members for z in self.new))


@dataclass(frozen=True)
class Remedies:
    """The fixed point over one table; ``tried`` are the levels that a zone may publish each attribute at."""

    t: Table
    tried: Sequence[Sequence[int]]

    @property
    def start(self) -> tuple[int, ...]:
        return tuple(levels[0] for levels in self.tried)

    def size(self, zone: Zone) -> tuple[int, str]:
        return len(self.t.people(zone.members)), zone.id

    def eligible(self, members: Iterable[str]) -> bool:
        return len(self.t.people(members)) >= int(self.t.policy["k_min"])

    def passes(self, zone: Zone) -> bool:
        """Whether a zone can be published as it stands."""
        judged = (judge(self.t, zone.members, a, level) for a, level in enumerate(zone.levels))
        return not zone.suppressed and self.eligible(zone.members) and all(not j.fails for j in judged)

    def cleared(self, members: frozenset[str]) -> Zone | None:
        """A zone of these cells at its lowest passing levels, or None."""
        if not self.eligible(members):
            return None
        levels = []
        for a, tried in enumerate(self.tried):
            passing = [h for h in tried if not judge(self.t, members, a, h).fails]
            if not passing:
                return None
            levels.append(passing[0])
        return Zone(members, tuple(levels))

    def failing(self, zones: Iterable[Zone]) -> list[Zone]:
        """Eligible unsuppressed zones that fail, fewest persons first."""
        bad = [z for z in zones if not z.suppressed and self.eligible(z.members) and not self.passes(z)]
        return sorted(bad, key=self.size)

    def unions(self, zone: Zone, zones: Iterable[Zone]) -> list[tuple[Zone, Zone]]:
        """Clearing partners of a zone, each with the union that passes."""
        beside = self.t.neighbours(zone.members, 1)
        found = []
        for other in zones:
            union = zone.members | other.members
            if other.members & beside and not other.suppressed and len(union) <= self.t.policy["max_members"]:
                cleared = self.cleared(union)
                if cleared:
                    found.append((other, cleared))
        return found

    def phase_1(self) -> tuple[set[Zone], int]:
        """Rounds of recode, merge, suppress until no eligible zone fails."""
        zones = {Zone(frozenset({cell}), self.start) for cell in self.t.persons}
        rounds = 1
        while bad := self.failing(zones):
            if rounds == self.t.policy["max_rounds"]:
                raise NotConverged(z.id for z in bad)
            after = self.round(zones)
            if after == zones:
                raise NotConverged(z.id for z in bad)
            zones, rounds = after, rounds + 1
        return zones, rounds

    def round(self, zones: set[Zone]) -> set[Zone]:
        ladder, zones = self.t.policy["ladder"], set(zones)
        if "recode" in ladder:
            for zone in self.failing(zones):
                if raised := self.cleared(zone.members):
                    zones = zones - {zone} | {raised}
        hopeless = self.failing(zones)
        if "merge" in ladder:
            zones, hopeless = self.merge(zones)
        if "suppress" in ladder:
            zones = zones - set(hopeless) | {replace(z, suppressed=True) for z in hopeless}
        return zones

    def preference(self, pair: tuple[Zone, Zone]) -> tuple[bool, int, int, str]:
        """Partners that cannot be published as they stand first, then lower levels, fewer persons, id."""
        partner, union = pair
        return self.passes(partner), sum(union.levels), *self.size(partner)

    def merge(self, zones: set[Zone]) -> tuple[set[Zone], list[Zone]]:
        """Disjoint pairs of this partition, merged; and the failing zones without any clearing partner."""
        used: set[Zone] = set()
        formed, hopeless = set(), []
        for zone in self.failing(zones):
            if zone in used:
                continue
            partners = self.unions(zone, zones)
            free = [(o, u) for o, u in partners if o not in used]
            if free:
                other, union = min(free, key=self.preference)
                used |= {zone, other}
                formed.add(union)
            elif not partners:
                hopeless.append(zone)
        return zones - used | formed, hopeless

    def phase_2(self, zones: set[Zone]) -> set[Zone]:
        """Grow zones out of the cells that are in no published zone."""
        cells = {cell for z in zones if not self.passes(z) for cell in z.members}
        for seed in sorted(cells, key=lambda c: (-len(self.t.persons[c]), c)):
            members = frozenset({seed})
            while seed in cells and len(members) < self.t.policy["max_members"]:
                here = self.t.people(members)
                beside = sorted(self.t.neighbours(members, 1) & cells)
                if not beside:
                    break
                adds = {cell: len(self.t.persons[cell] - here) for cell in beside}
                members |= {max(adds, key=lambda cell: adds[cell])}
                if grown := self.cleared(members):
                    zones = {z for z in zones if not z.members & members} | {grown}
                    cells -= members
        return zones

    def residual_passes(self, published: Iterable[Zone]) -> bool:
        """Whether the eligible cells in no published zone are safe as a group."""
        t = self.t
        rest = sorted(set(t.eligible) - {cell for z in published for cell in z.members})
        if not rest:
            return True
        if len(rest) < 2 or not self.eligible(rest):
            return False
        for a, labels in enumerate(t.labels):
            gates, n, every = t.gates(a), t.counts(rest, a, 0), t.counts(t.eligible, a, 0)
            if gates["l_min"] is not None:
                for p in (shares(n), t.pooled(dict.fromkeys(rest, 1), a, 0)):
                    if not holds("l_min", effective(p), gates["l_min"]):
                        return False
            if gates["incidence_max"] is not None:
                for v in labels.certain:
                    most = max(gates["incidence_max"], every[v] / len(t.people(t.eligible)))
                    if not holds("incidence_max", n[v] / len(t.people(rest)), most):
                        return False
            if gates["tier_incidence_max"] is not None:
                most = max(gates["tier_incidence_max"], float(t.touched(t.eligible, a)))
                if not holds("tier_incidence_max", float(t.touched(rest, a)), most):
                    return False
        return True

    def residual(self, zones: set[Zone]) -> set[Zone]:
        """Suppress published zones until the rest is safe; when none that matters is left, all of them."""
        while True:
            published = {z for z in zones if self.passes(z)}
            if self.residual_passes(published):
                return zones
            ranked = sorted(published, key=self.size)
            helping = [z for z in ranked if self.residual_passes(published - {z})]
            holding = [z for z in ranked if z.members & set(self.t.eligible)]
            chosen = (helping or holding)[:1] or ranked
            if not chosen:
                return zones
            zones = zones - set(chosen) | {replace(z, suppressed=True) for z in chosen}

    # --- refining: single moves, each of which makes one or two zones out of zones and cells that are not published

    def refined(self, zones: Iterable[Zone], guarded: bool) -> set[Zone]:
        """Single moves, kind after kind and from the first kind again after each change, until none is left."""
        shown = {z for z in zones if self.passes(z)}
        while True:
            for moves in self.kinds(shown):
                if taken := self.taken(shown, sorted(moves, key=lambda move: move.key), guarded):
                    shown = shown.difference(*(m.old for m in taken)).union(*(m.new for m in taken))
                    break
            else:
                return shown | {Zone(frozenset({c}), self.start, True) for c in self.dark(shown)}

    def kinds(self, shown: set[Zone]) -> Iterable[list[Move]]:
        """The moves of each kind, in the order of the kinds."""
        yield self.publishing(shown, 1, 0)
        if "merge" in self.t.policy["ladder"]:
            yield self.publishing(shown, 1, 1)
            yield self.splits(shown)
            yield self.publishing(shown, 1, 2)
            for joined in range(3):
                yield self.publishing(shown, 2, joined)
            yield self.exchanges(shown)

    def dark(self, shown: Iterable[Zone]) -> list[str]:
        return sorted(set(self.t.persons) - {cell for z in shown for cell in z.members})

    def lost(self, zone: Zone) -> int:
        """Coarseness: persons of each cell, summed, times the levels."""
        return sum(len(self.t.persons[cell]) for cell in zone.members) * sum(zone.levels)

    def publishing(self, shown: set[Zone], size: int, joined: int) -> list[Move]:
        """One dark cell, or two that touch, become a zone, with none, one or two zones that hang together with them."""
        t, dark = self.t, self.dark(shown)
        groups = [frozenset(g) for g in combinations(dark, size) if self.together(frozenset(g))]
        moves = []
        for group in groups:
            for others in combinations(sorted(shown, key=lambda z: z.id), joined):
                union = group.union(*(z.members for z in others))
                if len(union) > t.policy["max_members"] or not self.hang(group, others):
                    continue
                if zone := self.cleared(union):
                    gain = sum(len(t.persons[cell]) for cell in group)
                    added = self.lost(zone) - sum(map(self.lost, others))
                    key = (-gain, added, sorted(group), [z.id for z in others])
                    moves.append(Move(key, frozenset(others), frozenset({zone})))
        return moves

    def hang(self, group: frozenset[str], others: Sequence[Zone]) -> bool:
        """Whether some zones and a group hang together, as wholes."""
        reached, left = set(group), list(others)
        while near := [z for z in left if z.members & self.t.neighbours(reached, 1)]:
            reached |= near[0].members
            left.remove(near[0])
        return not left

    def together(self, cells: frozenset[str]) -> bool:
        """Whether some cells hang together."""
        reached = {min(cells)}
        while more := self.t.neighbours(reached, 1) & cells:
            reached |= more
        return reached == cells

    def splits(self, shown: set[Zone]) -> list[Move]:
        """Of each zone the least coarse cut in two, nowhere coarser than the zone, one part of three cells at most."""
        moves = []
        for zone in shown:
            cuts = []
            for size in range(1, 4):
                for part in map(frozenset, combinations(sorted(zone.members), size)):
                    other = zone.members - part
                    if len(part) > len(other) or (len(part) == len(other) and zone.id in other):
                        continue
                    if not (self.together(part) and self.together(other)):
                        continue
                    halves = [self.cleared(part), self.cleared(other)]
                    fine = [
                        h
                        for h in halves
                        if h and all(x <= y for x, y in zip(h.levels, zone.levels, strict=True))
                    ]
                    if len(fine) == 2:
                        lost = sum(map(self.lost, fine))
                        cuts.append(Move((lost, sorted(part)), frozenset({zone}), frozenset(fine)))
            moves += sorted(cuts, key=lambda move: move.key)[:1]
        return moves

    def exchanges(self, shown: set[Zone]) -> list[Move]:
        """A member of one zone becomes one of another, where that makes the two less coarse together."""
        moves = []
        for zone in shown:
            for cell in zone.members:
                left = zone.members - {cell}
                if not left or not self.together(left):
                    continue
                for other in shown - {zone}:
                    if not other.members & self.t.neighbours({cell}, 1):
                        continue
                    grown = other.members | {cell}
                    if len(grown) > self.t.policy["max_members"]:
                        continue
                    new = [self.cleared(left), self.cleared(grown)]
                    if new[0] and new[1]:
                        change = sum(self.lost(z) for z in new if z) - self.lost(zone) - self.lost(other)
                        if change < 0:
                            old, made = frozenset({zone, other}), frozenset(z for z in new if z)
                            moves.append(Move((change, cell, other.id), old, made))
        return moves

    def taken(self, shown: set[Zone], moves: list[Move], guarded: bool) -> list[Move]:
        """Moves in order, no cell twice; where the rest forbids all of these, the same without them."""
        chosen: list[Move] = []
        for move in moves:
            if not any(move.cells & other.cells for other in chosen):
                chosen.append(move)
        if not guarded or not any(move.cells & set(self.dark(shown)) for move in chosen):
            return chosen
        return self.allowed(shown, chosen) or self.taken(
            shown, [m for m in moves if m not in chosen], guarded
        )

    def allowed(self, shown: set[Zone], moves: list[Move]) -> list[Move]:
        """All of the moves where the rest is safe after them, else what can be had of each half in turn."""
        after = shown.difference(*(m.old for m in moves)).union(*(m.new for m in moves))
        if self.residual_passes(after):
            return moves
        if len(moves) == 1:
            return []
        half = len(moves) // 2
        first = self.allowed(shown, moves[:half])
        shown = shown.difference(*(m.old for m in first)).union(*(m.new for m in first))
        return first + self.allowed(shown, moves[half:])

    def worth(self, zones: Iterable[Zone]) -> tuple[int, int, int, int]:
        """Pairs of eligible cells in zones that pass, of all cells, zones, and coarseness, negative."""
        t = self.t
        shown = [z for z in zones if self.passes(z)]
        pairs = {cell: len(t.persons[cell]) for z in shown for cell in z.members}
        of_eligible = sum(n for cell, n in pairs.items() if cell in t.eligible)
        return of_eligible, sum(pairs.values()), len(shown), -sum(map(self.lost, shown))


def levels_tried(t: Table) -> list[list[int]]:
    """The levels at which a zone may publish each attribute."""
    tried = []
    for a, (declared, labels) in enumerate(zip(t.attributes, t.labels, strict=True)):
        coarser = range(declared.level + 1, len(labels.levels))
        levels = [declared.level, *(h for h in coarser if labels.publishable(h))]
        if "recode" not in t.policy["ladder"]:
            levels = levels[:1]
        elif t.policy["recode_scope"] == "release":
            passing = []
            for h in levels:
                cells = [cell for cell in t.eligible if not judge(t, frozenset({cell}), a, h).fails]
                passing.append(sum(len(t.persons[cell]) for cell in cells))
            levels = [levels[passing.index(max(passing))]]
        tried.append(levels)
    return tried


# --- release ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What enforce must find."""

    scores: list[dict[str, Any]]
    final_scores: list[
        dict[str, Any]
    ]  # one row per published zone and attribute, measures at the zone's level
    zones: frozenset[Zone]
    published: frozenset[Zone]
    rounds: int
    coverage: float  # not rounded; nan when there is nothing to cover
    coverage_all: float
    cells: list[dict[str, Any]]
    counts: list[dict[str, Any]]
    reference: list[dict[str, Any]]
    metadata: dict[str, Any]


def enforce(t: Table) -> Outcome:
    """The whole of it: scores, rounds, what is published and how the tables of the release read."""
    remedies = Remedies(t, levels_tried(t))
    zones, rounds = remedies.phase_1()
    ladder = t.policy["ladder"]
    if "merge" in ladder:
        zones = remedies.phase_2(zones)
    remedies, zones = ending(remedies, zones)
    published = sorted((z for z in zones if remedies.passes(z)), key=lambda z: z.id)
    out = {cell for z in published for cell in z.members}
    before = scores(t)
    for row in before:
        zone = next(z for z in zones if row["cell_id"] in z.members)
        row |= {"zone_id": zone.id, "final_remedy": remedy(zone) if zone in published else "suppress"}
    return Outcome(
        before,
        [
            {
                "cell_id": z.id,
                "attribute": d.column,
                "level": z.levels[a],
                **score(t, z.members, a, z.levels[a]),
            }
            for z in published
            for a, d in enumerate(t.attributes)
        ],
        frozenset(zones),
        frozenset(published),
        rounds,
        covered(t, out, t.eligible),
        covered(t, out, t.persons),
        [cell_row(t, z) for z in published],
        [row for z in published for a in range(len(t.attributes)) for row in count_rows(t, z, a)],
        reference_rows(t, published),
        metadata(t, published, rounds, len(t.persons) - len(out)),
    )


def ending(remedies: Remedies, zones: set[Zone]) -> tuple[Remedies, set[Zone]]:
    """The best way to finish: refined, then zones given up for the rest; or the other way round; or leaving out."""
    t = remedies.t
    zones = {z if remedies.passes(z) else replace(z, suppressed=True) for z in zones}
    last = "suppress" in t.policy["ladder"]
    guarded = t.policy["residual"] and last
    found = remedies.refined(zones, False)
    lost = guarded and remedies.residual(found) != found
    if lost:
        first = remedies.refined(remedies.residual(zones), True)
        found = max(first, remedies.refined(remedies.residual(found), True), key=remedies.worth)
    if last and (lost or t.policy["recode_scope"] == "release"):
        alone = Remedies(t, [[declared.level] for declared in t.attributes])
        few = {Zone(frozenset({cell}), alone.start) for cell in t.persons}
        few = {z if alone.passes(z) else replace(z, suppressed=True) for z in few}
        few = alone.residual(few) if t.policy["residual"] else few
        if alone.worth(few) > remedies.worth(found):
            remedies = alone if t.policy["recode_scope"] == "release" else remedies
            return remedies, remedies.refined(few, t.policy["residual"])
    return remedies, found


def covered(t: Table, out: set[str], cells: Iterable[str]) -> float:
    """(person, cell) pairs of the published ones among these cells, as a share."""
    cells = list(cells)
    every = sum(len(t.persons[c]) for c in cells)
    return sum(len(t.persons[c]) for c in cells if c in out) / every if every else math.nan


def remedy(zone: Zone) -> str:
    """What was done to a published zone."""
    if len(zone.members) > 1:
        return "publish_merged"
    return "publish_coarsened" if any(zone.levels) else "publish"


def hidden(n: Mapping[str, int], count_min: int) -> set[str]:
    """Labels whose counts are hidden: those below count_min, and then the next smallest one too."""
    small = {label for label, x in n.items() if 0 < x < count_min}
    larger = [label for label, x in n.items() if x >= count_min and x > 0]
    return small | {min(larger, key=lambda label: n[label])} if small and larger else small


def cell_row(t: Table, zone: Zone) -> dict[str, Any]:
    """One row of the layer `cells`, geometry and area apart."""
    row: dict[str, Any] = {
        "cell_id": zone.id,
        "members": " ".join(
            "".join("%20" if c.isspace() else c for c in member) for member in sorted(zone.members)
        ),
        "n_members": len(zone.members),
        "persons": len(t.people(zone.members)),
        "remedy": remedy(zone),
    }
    for a, declared in enumerate(t.attributes):
        n = t.counts(zone.members, a, zone.levels[a])
        dark = hidden(n, t.policy["count_min"])
        told = [label for label in n if n[label] and label not in dark]
        fine = zone.levels[a] == 0 and not dark
        row[f"{declared.column}_level"] = zone.levels[a]
        row[f"{declared.column}_top"] = max(told, key=lambda label: n[label], default=None)
        row[f"{declared.column}_effective"] = effective(shares(n)) if fine else None
        row[f"{declared.column}_reference"] = reference(t, zone.members)[0]
    return row


def count_rows(t: Table, zone: Zone, a: int) -> list[dict[str, Any]]:
    """Rows of the table `counts` for one zone and attribute, in label order."""
    n = t.counts(zone.members, a, zone.levels[a])
    dark = hidden(n, t.policy["count_min"])
    return [
        {
            "cell_id": zone.id,
            "attribute": t.attributes[a].column,
            "value": label,
            "level": zone.levels[a],
            "persons": None if label in dark else x,
            "share": None if dark else x / sum(n.values()),
        }
        for label, x in n.items()
        if x > 0
    ]


def reference_rows(t: Table, published: Sequence[Zone]) -> list[dict[str, Any]]:
    """The global Q of every level, to 3 decimals, but where taking the map off it would tell a zone."""
    return [
        {"attribute": declared.column, "level": level, "value": label, "share": round(float(q), 3)}
        for a, declared in enumerate(t.attributes)
        for level in range(len(t.labels[a].levels))
        if tells_no_zone(t, published, a, level)
        for label, q in t.whole(a, level).items()
    ]


def tells_no_zone(t: Table, published: Sequence[Zone], a: int, level: int) -> bool:
    """Whether what a reader can take off Q of a level, aggregated to coarser ones too, leaves no zone by itself."""
    coarser = sorted({z.levels[a] for z in published if z.levels[a] > level})
    return all(leaves_no_zone(t, published, a, h) for h in (level, *coarser))


def leaves_no_zone(t: Table, published: Sequence[Zone], a: int, level: int) -> bool:
    """Whether what does not show a level, and cells below k among what does, are each nothing or safe."""
    labels, whole, l_min = t.labels[a], t.whole(a, 0), t.gates(a)["l_min"]

    def pooled(cells: Iterable[str]) -> dict[str, int]:
        cells = list(cells)
        return {
            label: sum(t.counts([cell], a, level)[label] for cell in cells) for label in labels.levels[level]
        }

    def drowns(cells: Iterable[str]) -> bool:
        return 2000 * sum(pooled(cells).values()) <= sum(pooled(t.eligible).values())

    def diverse(cells: Iterable[str]) -> bool:
        q, up = inside(labels, level, whole, whole), labels.above[level]
        mix = {v: shares(pooled(cells))[up[v]] * q[v] for v in labels.levels[0]}
        return l_min is None or holds("l_min", effective(mix), l_min)

    def cover(label: str, zones: Iterable[Zone]) -> list[Zone]:
        """Zones that show no count of a label, but of a class of it and others; or, not coarser, the label itself."""
        found = []
        for z in zones:
            h = max(level, z.levels[a])
            up = {labels.above[level][v]: labels.above[h][v] for v in labels.levels[0]}
            plain = h > level and list(up.values()).count(up[label]) == 1
            if t.counts(z.members, a, h)[up[label]] and not plain:
                found.append(z)
        return found

    shows = [z for z in published if z.levels[a] <= level]
    away = set(t.eligible) - {cell for z in shows for cell in z.members}
    if not drowns(away):
        behind = [z for z in published if z.members & away]
        dark = away - {cell for z in behind for cell in z.members}
        if not diverse(away):
            return False
        if any(len(cover(label, behind)) + len(dark) == 1 for label in labels.levels[level]):
            return False
        every, rest = pooled(t.eligible), pooled(away)
        for z in behind:
            up = {labels.above[level][v]: labels.above[z.levels[a]][v] for v in labels.levels[0]}
            for c, n in t.counts(z.members, a, z.levels[a]).items():
                below = [label for label in labels.levels[level] if up[label] == c and every[label]]
                if n and len(below) > 1 and len([label for label in below if rest[label]]) < 2:
                    return False
    mixed = [z for z in shows if z.members & set(t.eligible) and z.members - set(t.eligible)]
    small = {cell for z in mixed for cell in z.members} - set(t.eligible)
    others = {cell for z in mixed for cell in z.members} & set(t.eligible)
    if drowns(small):
        return True
    if any(n and len(cover(label, mixed)) == 1 for label, n in pooled(small).items()):
        return False
    enough = len(t.people(small)) >= t.policy["k_min"]
    return enough and diverse(small) and diverse(others)


def metadata(t: Table, published: Sequence[Zone], rounds: int, not_published: int) -> dict[str, Any]:
    """The figures that travel with a release; `not_published` counts cells."""
    done = [remedy(z) for z in published]
    scopes = [reference(t, z.members)[0] for z in published]
    return {
        "zones": len(published),
        "cells": sum(len(z.members) for z in published),
        "persons": len(t.people(cell for z in published for cell in z.members)),
        "rounds": rounds,
        "remedies": {name: done.count(name) for name in ("publish", "publish_coarsened", "publish_merged")},
        "not_published": not_published,
        "reference": {scope: scopes.count(scope) for scope in sorted(set(scopes))},
    }
