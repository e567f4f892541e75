"""Guess: what a reader of a published file would believe, with hidden counts and local references estimated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from ..measures import shares, spread, top, within_class
from ..release import Release
from .judging import judge, of_labels
from .published import WIDE, Published, blocks
from .surroundings import Surroundings


@dataclass(frozen=True, slots=True, eq=False)
class Guess:
    """A reader's best guess of one attribute.

    Parameters
    ----------
    finest : (zones, values) float64
        Counts or shares of the reference that each zone is thought to be judged against, at the finest
        values.
    believed : mapping of level to ((rows,), (rows, labels))
        Positions of the zones of each level, and their estimated counts.
    belief, prior : (zones, values) float64
        Over the finest values; nan for a prior that is not there.
    measures : mapping of str to (zones,) float64
        effective, top_share, incidence, distance, shift, lift.
    incidence_label : (zones,) int64
        Label with the largest incidence, at the zone's level.
    fails : (zones, gates + 1) bool
        Gates that fail by the guess.
    hidden, told : (zones,) bool
        Whether counts are hidden; whether the one with the largest incidence is shown.
    overall : (values,) float64
        The global mix, published or estimated.
    """

    finest: FloatArray
    believed: Mapping[int, tuple[IntArray, FloatArray]]
    belief: FloatArray
    prior: FloatArray
    measures: Mapping[str, FloatArray]
    incidence_label: IntArray
    fails: BoolArray
    hidden: BoolArray
    told: BoolArray
    overall: FloatArray

    @classmethod
    def of(cls, release: Release, one: Published, around: Surroundings) -> Guess:
        """The guess at every zone of a release."""
        zones, values = len(one.level), len(one.space.values)
        persons = release.cells["persons"].to_numpy(dtype=float)
        overall = _whole(one)
        counted: list[tuple[int, IntArray, FloatArray, BoolArray]] = []
        fine = np.zeros((zones, values))
        hidden = np.zeros(zones, bool)
        for h in range(len(one.space.levels)):
            up, labels = one.space.up[h], len(one.space.levels[h])
            within = within_class(overall[0], up, labels, overall[0])
            for block in blocks(release, one, h):
                middle = block.boxes.middle(len(block.rows))
                n = np.where(np.isnan(middle), np.where(block.hidden, 1.0, block.n), middle)
                hidden[block.rows] = block.hidden.any(axis=1)
                fine[block.rows] = spread(n, within, up)
                counted.append((h, block.rows, n, block.hidden))
        near = _near(one, fine, overall[0], around)
        return cls._of(one, counted, near, overall, persons, hidden)

    def counts(self, one: Published, zone: int) -> FloatArray:
        """(labels,) estimated counts of one zone at its level."""
        rows, n = self.believed[int(one.level[zone])]
        return np.asarray(n[int(np.searchsorted(rows, zone))])

    @classmethod
    def _of(
        cls,
        one: Published,
        counted: list[tuple[int, IntArray, FloatArray, BoolArray]],
        near: FloatArray,
        overall: list[FloatArray],
        persons: FloatArray,
        hidden: BoolArray,
    ) -> Guess:
        zones, values = near.shape
        finest = np.where(np.isin(one.scope, WIDE)[:, None], overall[0], near)
        belief, prior = np.full((zones, values), np.nan), np.full((zones, values), np.nan)
        label = np.full(zones, -1, dtype=np.int64)
        incidence, touched, smallest = np.zeros(zones), np.zeros(zones), np.full(zones, np.inf)
        told = np.ones(zones, bool)
        for h, rows, n, covered in counted:
            up, labels = one.space.up[h], n.shape[1]
            local = ~np.isin(one.scope[rows], WIDE)
            coarse = np.stack([np.bincount(up, weights=row, minlength=labels) for row in finest[rows]])
            coarse = np.where(local[:, None], coarse, overall[h])
            within = within_class(finest[rows], up, labels, overall[0])
            belief[rows], prior[rows] = spread(shares(n), within, up), spread(shares(coarse), within, up)
            label[rows] = top(np.where(one.space.certain[h], n, 0.0))
            told[rows] = ~np.append(covered, np.zeros((len(rows), 1), bool), axis=1)[
                np.arange(len(rows)), label[rows]
            ]
            incidence[rows], smallest[rows] = of_labels(n, persons[rows], one.space.certain[h])
            own = (spread(n, within, up) @ one.space.certain[0]) / np.maximum(persons[rows], 1)
            touched[rows] = np.clip(own, incidence[rows], 1.0)
        prior[one.scope == "none"] = np.nan
        found = judge(
            one.space,
            one.gates,
            belief=belief,
            prior=prior,
            persons=persons,
            incidence=incidence,
            touched=touched,
            smallest=smallest,
            known=one.scope != "none",
        )
        levels = {h: [part[1:3] for part in counted if part[0] == h] for h in {part[0] for part in counted}}
        believed = {
            h: (np.concatenate([rows for rows, _ in parts]), np.concatenate([n for _, n in parts]))
            for h, parts in levels.items()
        }
        return cls(
            finest, believed, belief, prior, found.measures, label, found.fails, hidden, told, overall[0]
        )


def _whole(one: Published) -> list[FloatArray]:
    """The global mix of every level; one that is not published is estimated by the zones that show their values."""
    fine = one.mix[0]
    if np.isnan(fine).any():
        shown = one.table(np.flatnonzero(one.level == 0), 0)[0].sum(axis=0) if len(one.space.values) else fine
        fine = shares(shown) if shown.sum() > 0 else np.full(len(fine), 1 / max(len(fine), 1))
    whole = []
    for h, mix in enumerate(one.mix):
        coarse = np.bincount(one.space.up[h], weights=fine, minlength=len(mix))
        whole.append(np.where(np.isnan(mix), coarse, mix) if np.isnan(mix).any() else mix)
    return whole


def _near(one: Published, fine: FloatArray, overall: FloatArray, around: Surroundings) -> FloatArray:
    """(zones, values) estimated reference of each zone, from the published zones around it; else the global mix."""
    out = np.tile(overall, (len(fine), 1))
    for scope in sorted({str(s) for s in one.scope if str(s).startswith("ring:")}):
        rows = np.flatnonzero(one.scope == scope)
        pooled = np.asarray(around.within(int(scope.split(":")[1]))[rows] @ fine)
        found = pooled.sum(axis=1) > 0
        out[rows[found]] = pooled[found]
    return out
