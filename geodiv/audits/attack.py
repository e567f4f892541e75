"""Attack: what a stranger who has the published file, and nothing else, can prove and can guess."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..measures import top
from ..policy import GATES
from ..release import Release
from .decisions import Decided, decided
from .faults import faults_of
from .guess import Guess
from .judging import NAMES, gate_names
from .published import WIDE, Published, attribute_records, published
from .surroundings import Surroundings
from .tables import records

MEASURES = ("effective", "top_share", "incidence", "distance", "shift", "lift")


@dataclass(frozen=True, slots=True, eq=False)
class Attack:
    """What a published file gives away to somebody who has only that file.

    Parameters
    ----------
    zones : DataFrame
        One row a published zone and attribute: cell_id, attribute, level, persons, reference, hidden (whether
        counts are), incidence_shown (whether the count of the largest incidence is), mix_given (whether the
        global mix of the level is published), a reader's best estimate of effective, top_share, incidence,
        distance, shift, lift, the values that stand out (incidence_value, shift_value, lift_value), and broken
        and doubtful: gates, comma-separated. doubtful gates fail by the estimate but are not proved to, since
        counts are hidden, Q is rounded, or the reference is local and not published: they never decide.
    broken : DataFrame
        cell_id, attribute, gate, best (the best value that the published figures allow), threshold.
    largest : DataFrame
        attribute, measure (shift, lift, incidence), figure, cell_id, value, basis: "counts" when it follows
        from published counts alone, "rounded" when from these and the rounded global Q, else "estimate".
    spread : DataFrame
        attribute, measure, and its least, quartiles and largest over the zones.
    faults : DataFrame
        fault, cell_id, attribute, detail: what the file says against itself.
    """

    zones: pd.DataFrame
    broken: pd.DataFrame
    largest: pd.DataFrame
    spread: pd.DataFrame
    faults: pd.DataFrame

    @property
    def failed(self) -> bool:
        """Whether a gate is broken, or the file contradicts itself."""
        return bool(len(self.broken) or len(self.faults))

    def figures(self) -> dict[str, Any]:
        """The result as plain values, for JSON."""
        return {
            "failed": self.failed,
            "zones": int(self.zones["cell_id"].nunique()),
            "broken": records(self.broken),
            "faults": records(self.faults),
            "doubtful": int((self.zones["doubtful"] != "").sum()),
            "largest": records(self.largest),
            "spread": records(self.spread),
        }


def attack(release: Release) -> Attack:
    """Which gates a published file is proved to break, and what it suggests at most.

    Parameters
    ----------
    release : Release
        As `geodiv.read_release` reads it. Thresholds and label spaces come from its own metadata.

    Returns
    -------
    Attack

    Notes
    -----
    k, incidence and label_min of every zone, l, (c, l) and share of every zone at the finest level, and
    every gate of zones judged against the global mix are decided. A gate is broken only when no hidden
    counts that are possible (see `geodiv.audits.bounds`) and no Q that rounds to the published one satisfy
    it: each measure is bounded from the side that favours the file, by its exact best value or, where Q is
    rounded or several labels are hidden, by an outer bound. So a broken gate is broken for certain, and a
    gate that is not called broken may still be. Zones judged against a ring, a region or weights have their
    reference estimated from the published zones around them (region, weights: from the global mix), which
    never decides.

    Examples
    --------
    >>> import pandas as pd, geodiv as gd
    >>> visits = pd.DataFrame({"who": list("abcdef"), "cell": "c-1", "poi": ["gym", "bar", "shop"] * 2})
    >>> table = gd.tabulate(visits, grid=gd.ColumnGrid("cell"), person="who", attributes=[gd.Nominal("poi")])
    >>> release = gd.enforce(table, gd.Policy(k_min=6, l_min=3, residual=False), gd.Publication(count_min=1)).release
    >>> attack(release).failed
    False
    >>> release.counts["persons"] = [4, 1, 1]
    >>> attack(release).broken[["cell_id", "gate"]].values.tolist()
    [['c-1', 'l_min']]
    """
    around = Surroundings(release)
    frames, broken = [], []
    for record in attribute_records(release):
        one = published(release, record)
        guess = Guess.of(release, one, around)
        gates = decided(release, one)
        frame = _estimates(release, one, guess)
        frame["broken"], proofs = _named(release, one, gates)
        frame["doubtful"] = gate_names(guess.fails & ~gates.broken)
        frames.append(frame)
        broken.append(proofs)
    zones = pd.concat(frames, ignore_index=True)
    columns = ["cell_id", "attribute", "gate", "best", "threshold"]
    return Attack(
        zones=zones,
        broken=pd.concat([b for b in broken if len(b)] or [pd.DataFrame(columns=columns)], ignore_index=True),
        largest=_largest(zones),
        spread=_spread(zones),
        faults=faults_of(release),
    )


def _estimates(release: Release, one: Published, guess: Guess) -> pd.DataFrame:
    zones = np.arange(len(one.level))
    tier = one.space.sensitive[0]
    values = np.array([*one.space.values, None], dtype=object)
    moved = np.where(tier, np.abs(guess.belief - guess.prior), 0.0)
    lifted = np.divide(
        guess.belief, guess.prior, out=np.where(guess.belief > 0, np.inf, 0.0), where=guess.prior > 0
    )
    lifted = np.where(tier & ~np.isnan(guess.prior), lifted, 0.0)
    names = [np.array([*labels, None], dtype=object) for labels in one.space.levels]
    labels = np.where(one.placed, guess.incidence_label, -1)
    held = [names[h][c] for h, c in zip(np.where(one.placed, one.level, 0), labels, strict=True)]
    return pd.DataFrame(
        {
            "cell_id": release.cells["cell_id"].to_numpy(dtype=object),
            "attribute": pd.Series([one.column] * len(zones), dtype=object),
            "level": one.level,
            "persons": release.cells["persons"].to_numpy(),
            "reference": one.scope,
            "hidden": guess.hidden,
            "incidence_shown": guess.told,
            "mix_given": [not np.isnan(one.mix[h]).any() for h in np.clip(one.level, 0, len(one.mix) - 1)],
            **{name: guess.measures[name] for name in MEASURES},
            "incidence_value": pd.Series(held, dtype=object),
            "shift_value": values[top(np.nan_to_num(moved))] if len(zones) else pd.Series([], dtype=object),
            "lift_value": values[top(np.nan_to_num(lifted, posinf=np.inf))]
            if len(zones)
            else pd.Series([], dtype=object),
        }
    )


def _named(release: Release, one: Published, gates: Decided) -> tuple[list[str], pd.DataFrame]:
    """The broken gates of each zone as text, and one row each."""
    zone, gate = np.nonzero(gates.broken)
    thresholds = np.array([*(getattr(one.gates, g) for g in GATES), None], dtype=object)
    frame = pd.DataFrame(
        {
            "cell_id": release.cells["cell_id"].to_numpy(dtype=object)[zone],
            "attribute": pd.Series([one.column] * len(zone), dtype=object),
            "gate": NAMES[gate],
            "best": gates.best[zone, gate],
            "threshold": pd.to_numeric(pd.Series(thresholds[gate], dtype=object)).astype(float),
        }
    )
    return gate_names(gates.broken), frame


def _largest(zones: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for column, part in zones.groupby("attribute", sort=False):
        for measure in ("shift", "lift", "incidence"):
            known = part[part[measure].notna()]
            if not len(known):
                continue
            row = known.sort_values([measure, "cell_id"], ascending=[False, True]).iloc[0]
            if measure == "incidence":
                basis = "counts" if row["incidence_shown"] else "estimate"
            else:
                told = not row["hidden"] and row["reference"] in WIDE and row["mix_given"]
                basis = "rounded" if told else "estimate"
            rows.append((column, measure, row[measure], row["cell_id"], row[f"{measure}_value"], basis))
    return pd.DataFrame(rows, columns=["attribute", "measure", "figure", "cell_id", "value", "basis"])


def _spread(zones: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for column, part in zones.groupby("attribute", sort=False):
        for measure in MEASURES:
            x = part[measure].dropna().to_numpy(dtype=float)
            if len(x):
                rows.append((column, measure, *np.quantile(x, [0, 0.25, 0.5, 0.75, 1], method="nearest")))
    return pd.DataFrame(
        rows, columns=["attribute", "measure", "least", "lower", "median", "upper", "largest"]
    )
