"""Differencing: what two releases of overlapping visits give away when one is subtracted from the other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..arrays import FloatArray
from ..measures import effective_count, shares
from ..policy import Gates, meets
from ..release import Release
from .published import Published, attribute_records, blocks, member_ids, published
from .tables import records

COLUMNS = ["gate", "cell_id", "other_id", "relation", "attribute", "value", "difference", "threshold"]


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """Two releases side by side.

    Parameters
    ----------
    not_comparable : tuple of str
        What differs in how the two were made, by name: their zones may not be compared, and were not made to
        be.
    overlaps : DataFrame
        cell_id, other_id, relation ("same", "inside", "around", "partly"), persons, other_persons: zones of
        the two that share a cell.
    disclosures : DataFrame
        gate, cell_id, other_id, relation, attribute, value, difference, threshold: what subtracting the one
        zone from the other gives. gate "k_min": persons, or persons of a label, fewer than k; "l_min": the
        labels of the difference are less diverse than l; "level": one of the two publishes finer values of
        the same zone.
    """

    not_comparable: tuple[str, ...]
    overlaps: pd.DataFrame
    disclosures: pd.DataFrame

    @property
    def failed(self) -> bool:
        """Whether the two are not comparable, or subtracting them discloses something."""
        return bool(self.not_comparable or len(self.disclosures))

    def figures(self) -> dict[str, Any]:
        """The result as plain values, for JSON."""
        return {
            "failed": self.failed,
            "not_comparable": list(self.not_comparable),
            "overlaps": len(self.overlaps),
            "disclosures": records(self.disclosures),
        }


def difference(release: Release, other: Release) -> Difference:
    """What somebody learns who has both releases.

    Parameters
    ----------
    release, other : Release
        In either order.

    Notes
    -----
    Zones are compared where one holds all cells of the other, or both are the same: then the persons of the
    larger are at least those of the smaller plus the ones who were only in its other cells, or only in its
    other visits, and a difference of 1 to k - 1 tells of these few. The same for each label, where both
    zones publish the same level; counts that are hidden in one of them are compared by what they can be, and
    a difference is reported when it is in 1 to k - 1 for certain. Two zones that overlap only partly are
    listed, and not subtracted: persons are not additive. k and l are the stricter ones of the two releases.
    Grids that differ are not compared zone by zone.

    Examples
    --------
    A zone of 20 persons (clinic 10, gym 10) in one release and of 21 (clinic 11) in the next: somebody came, and
    went to the clinic.

    >>> import geodiv as gd
    >>> def made(poi):
    ...     visits = pd.DataFrame({"who": range(len(poi)), "cell": "a", "poi": poi})
    ...     table = gd.tabulate(visits, grid=gd.ColumnGrid("cell"), person="who", attributes=[gd.Nominal("poi")])
    ...     return gd.enforce(table, gd.Policy(residual=False)).release
    >>> found = difference(made(["clinic", "gym"] * 10), made(["clinic", "gym"] * 10 + ["clinic"])).disclosures
    >>> found[["gate", "value", "difference"]].values.tolist()
    [['k_min', None, 1.0], ['k_min', 'clinic', 1.0]]
    """
    names = tuple(_differs(release, other))
    overlaps = (
        _overlaps(release, other) if "grid" not in names else pd.DataFrame(columns=["a", "b", "relation"])
    )
    found: list[tuple[Any, ...]] = []
    gates = [Gates(**r.metadata["policy"]["gates"]) for r in (release, other)]
    k_min = max(g.k_min for g in gates)
    persons = [r.cells["persons"].to_numpy(dtype=float) for r in (release, other)]
    ids = [r.cells["cell_id"].to_numpy(dtype=object) for r in (release, other)]
    known = {str(record["column"]): record for record in attribute_records(other)}
    nested = overlaps[overlaps["relation"] != "partly"]
    for a, b, relation in nested[["a", "b", "relation"]].itertuples(index=False):
        moved = abs(persons[1][b] - persons[0][a])
        if 0 < moved < k_min:
            found.append(("k_min", ids[0][a], ids[1][b], relation, None, None, moved, k_min))
    for record in attribute_records(release):
        if (column := str(record["column"])) in known:
            pair = published(release, record), published(other, known[column])
            l_min = max(
                (g.l_min for g in (pair[0].gates, pair[1].gates) if g.l_min is not None), default=None
            )
            found += _labels((release, other), pair, nested, ids, k_min, l_min)
    overlaps = overlaps.assign(
        cell_id=ids[0][overlaps["a"].to_numpy(dtype=np.int64)],
        other_id=ids[1][overlaps["b"].to_numpy(dtype=np.int64)],
        persons=persons[0][overlaps["a"].to_numpy(dtype=np.int64)].astype(np.int64),
        other_persons=persons[1][overlaps["b"].to_numpy(dtype=np.int64)].astype(np.int64),
    )
    return Difference(
        names,
        overlaps[["cell_id", "other_id", "relation", "persons", "other_persons"]],
        pd.DataFrame(found, columns=COLUMNS, dtype=object).astype({"difference": float, "threshold": float}),
    )


def _differs(release: Release, other: Release) -> Iterator[str]:
    """What differs in how two releases were made."""
    a, b = release.metadata, other.metadata
    if _plain(a.get("grid")) != _plain(b.get("grid")):
        yield "grid"
    for name, what in (("gates", "thresholds"), ("reference", "reference scope")):
        if _plain(a["policy"].get(name)) != _plain(b["policy"].get(name)):
            yield what
    if a.get("count_min") != b.get("count_min"):
        yield "count_min"
    mine, theirs = ({str(r["column"]): r for r in attribute_records(x)} for x in (release, other))
    for column in sorted(set(mine) ^ set(theirs)):
        yield f"attribute {column}"
    for column in sorted(set(mine) & set(theirs)):
        one, two = mine[column], theirs[column]
        if (one["taxonomy"] or {}).get("digest") != (two["taxonomy"] or {}).get("digest"):
            yield f"taxonomy digest of {column}"
        elif one["levels"] != two["levels"]:
            yield f"labels of {column}"
        if _plain(one["gates"]) != _plain(two["gates"]) and _plain(a["policy"]["gates"]) == _plain(
            b["policy"]["gates"]
        ):
            yield f"thresholds of {column}"


def _plain(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _overlaps(release: Release, other: Release) -> pd.DataFrame:
    """a, b, relation: positions of zones that share a cell; "inside" when the first lies within the second."""
    frames, sizes = [], []
    for r in (release, other):
        members = member_ids(r)
        size = np.array([len(m) for m in members], dtype=np.int64)
        zone = np.repeat(np.arange(len(members)), size)
        frames.append(pd.DataFrame({"zone": zone, "cell": [cell for m in members for cell in m]}))
        sizes.append(size)
    both = frames[0].merge(frames[1], on="cell", suffixes=("_a", "_b"))
    shared = both.groupby(["zone_a", "zone_b"]).size().rename("shared").reset_index()
    a, b = shared["zone_a"].to_numpy(), shared["zone_b"].to_numpy()
    inside, around = shared["shared"] == sizes[0][a], shared["shared"] == sizes[1][b]
    relation = np.select([inside & around, inside, around], ["same", "inside", "around"], "partly")
    return pd.DataFrame({"a": a, "b": b, "relation": pd.Series(relation, dtype=object)})


def _labels(
    releases: tuple[Release, Release],
    pair: tuple[Published, Published],
    nested: pd.DataFrame,
    ids: list[Any],
    k_min: int,
    l_min: float | None,
) -> Iterator[tuple[Any, ...]]:
    """What subtracting the labels of zones gives."""
    column = pair[0].column
    possible = [_possible(r, one) for r, one in zip(releases, pair, strict=True)]
    for a, b, relation in nested[["a", "b", "relation"]].itertuples(index=False):
        levels = int(pair[0].level[a]), int(pair[1].level[b])
        where = (ids[0][a], ids[1][b], relation, column)
        if not (pair[0].placed[a] and pair[1].placed[b]):
            continue
        if levels[0] != levels[1]:
            if relation == "same":
                yield ("level", *where, None, float(abs(levels[0] - levels[1])), None)
            continue
        names, mine, theirs = _aligned(pair, levels[0], possible[0][a], possible[1][b])
        least = np.maximum(np.maximum(mine[0] - theirs[1], theirs[0] - mine[1]), 0.0)
        most = np.maximum(theirs[1] - mine[0], mine[1] - theirs[0])
        for at in np.flatnonzero((least > 0) & (most < k_min)):
            yield ("k_min", *where, names[at], float(least[at]), k_min)
        exact = (mine[0] == mine[1]).all() and (theirs[0] == theirs[1]).all()
        if exact and least.sum() >= k_min and l_min is not None:
            left = float(effective_count(shares(least)))
            if not meets("l_min", left, l_min):
                yield ("l_min", *where, None, left, l_min)


Interval = tuple[FloatArray, FloatArray]


def _aligned(
    pair: tuple[Published, Published], level: int, mine: Interval, theirs: Interval
) -> tuple[list[str], Interval, Interval]:
    """Labels of either release, and their intervals in both; a label that one of them does not have has 0 persons."""
    names = list(dict.fromkeys(name for one in pair for name in one.space.levels[level]))
    out = []
    for one, interval in zip(pair, (mine, theirs), strict=True):
        position = {name: i for i, name in enumerate(one.space.levels[level])}
        at = np.array([position.get(name, len(position)) for name in names], dtype=np.int64)
        out.append(tuple(np.append(end, 0.0)[at] for end in interval))
    return names, (out[0][0], out[0][1]), (out[1][0], out[1][1])


def _possible(release: Release, one: Published) -> dict[int, tuple[FloatArray, FloatArray]]:
    """Fewest and most persons of each label of each zone, by its position."""
    out = {}
    for h in range(len(one.space.levels)):
        for block in blocks(release, one, h):
            low = np.full(block.n.shape, np.inf)
            high = np.zeros(block.n.shape)
            np.minimum.at(low, block.boxes.row, block.boxes.low)
            np.maximum.at(high, block.boxes.row, block.boxes.high)
            odd = np.isinf(low)
            low, high = np.where(odd, block.n, low), np.where(odd, block.n, high)
            out.update({int(row): (low[i], high[i]) for i, row in enumerate(block.rows)})
    return out
