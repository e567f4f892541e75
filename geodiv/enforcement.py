"""Enforce: remedies, re-counted, until nothing fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from .arrays import IntArray
from .engines.protocol import Progress
from .errors import NotConverged, listed
from .plan import Plan
from .policy import Policy
from .publication import Publication
from .release import Release, release_of
from .remedies.grow import grow
from .remedies.merge import merge
from .remedies.recode import recode
from .remedies.release_level import release_levels
from .remedies.residual import protect_residual
from .remedies.situation import Situation
from .remedies.suppress import suppress
from .scores import Judge, score, score_rows
from .tabulation import Counts, Tabulation
from .verify import verify

REMEDIES: Mapping[str, Callable[[Situation], Situation]] = MappingProxyType(
    {"recode": recode, "merge": merge, "suppress": suppress}
)


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """A release, and everything that the people who made it may look at but must not publish.

    Parameters
    ----------
    release : Release
        Public: published zones only.
    scores : GeoDataFrame
        Internal: one row per occupied cell and attribute before remedies, with what became of each.
    final_scores : DataFrame
        Internal: the same measures of the partition that is published.
    rounds : DataFrame
        Internal: round, stage, failing, recoded, merged, suppressed, zones; one row a round or stage.
    plan : Plan
        What the release publishes.
    table : Tabulation
    policy : Policy
    """

    release: Release
    scores: pd.DataFrame
    final_scores: pd.DataFrame
    rounds: pd.DataFrame
    plan: Plan
    table: Tabulation
    policy: Policy

    def to_work(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the internal work file: every cell, its measures, the gates it fails and what became of it."""
        from .work import write_outcome

        write_outcome(self, path, overwrite=overwrite)


def enforce(
    table: Tabulation,
    policy: Policy,
    publication: Publication | None = None,
    *,
    run_text: str = "",
    progress: Progress | None = None,
) -> Outcome:
    """A release in which every zone passes every gate, counted from scratch, and the record of how it came about.

    Parameters
    ----------
    table : Tabulation
    policy : Policy
    publication : Publication, optional
        Texts and the smallest label count shown.
    run_text : str, optional
        Text of the run that is echoed into the metadata.
    progress : callable, optional
        Called with (stage, done, total).

    Raises
    ------
    NotConverged
        ``max_rounds`` were not enough, or the ladder ended while zones still failed; with the zones' ids.
    PolicyError
        A gate asks more than the table can give.
    VerificationError
        The independent count disagrees: an internal error, never a release.

    Examples
    --------
    >>> import geodiv as gd
    >>> run = gd.read_run("fixtures/policy.toml")
    >>> table = run.tabulate("fixtures/visits.parquet")
    >>> outcome = gd.enforce(table, run.policy)
    >>> outcome.release.metadata["remedies"]
    {'publish': 55, 'publish_coarsened': 15, 'publish_merged': 7}
    """
    judge, plan = _begin(table, policy)
    plan, journal = _settle(judge, plan, progress)
    if "merge" in policy.ladder:
        plan, journal = _gather(judge, plan, journal)
    if policy.residual and "suppress" in policy.ladder:
        plan, journal = _residual(judge, plan, journal)
    plan, journal = _or_alone(judge, _withhold(judge, plan), journal)
    if progress:
        progress("verify", 0, 1)
    verify(table, policy, plan)
    return _outcome(judge, plan, journal, publication or Publication(), run_text)


def _begin(table: Tabulation, policy: Policy) -> tuple[Judge, Plan]:
    judge = Judge.of(table, policy)
    if policy.recode_scope == "release" and "recode" in policy.ladder:
        judge = judge.starting_at(release_levels(judge))
    return judge, table.start(judge.start)


def _settle(judge: Judge, plan: Plan, progress: Progress | None) -> tuple[Plan, list[dict[str, Any]]]:
    """Phase 1: the ladder, round after round, until a round finds nothing that fails."""
    standing = judge.standing(judge.table.recount(plan))
    journal: list[dict[str, Any]] = []
    for number in range(1, judge.policy.max_rounds + 1):
        if progress:
            progress("remedy", number, judge.policy.max_rounds)
        after = before = Situation.of(judge, standing, plan)
        for remedy in judge.policy.ladder:
            after = REMEDIES[remedy](after)
        journal.append(_entry(number, "ladder", before, after.plan))
        if not before.failing.any():
            return plan, journal
        if _same(after.plan, plan):
            raise _not_converged(before, f"the ladder {listed(judge.policy.ladder)} cannot clear them")
        plan, standing = after.plan, judge.restanding(after.plan, standing)
    raise _not_converged(before, f"max_rounds = {judge.policy.max_rounds} is reached")


def _not_converged(situation: Situation, why: str) -> NotConverged:
    return NotConverged(
        f"expected every zone to pass, but zones still fail: {why}. Add 'suppress' to the ladder, raise max_rounds, "
        "loosen a gate, or look for a taxonomy that clears them.",
        situation.judge.table.cells[situation.zones[situation.failing]],
    )


def _gather(judge: Judge, plan: Plan, journal: list[dict[str, Any]]) -> tuple[Plan, list[dict[str, Any]]]:
    """Phase 2: cells in no published zone gather."""
    before = Situation.of(judge, judge.standing(judge.table.recount(plan)), plan)
    grown = grow(judge, plan, published_cells(before))
    return grown, [*journal, _entry(0, "gather", before, grown)]


def _residual(judge: Judge, plan: Plan, journal: list[dict[str, Any]]) -> tuple[Plan, list[dict[str, Any]]]:
    """What is not published must be safe as a group."""
    before = Situation.of(judge, judge.standing(judge.table.recount(plan)), plan)
    rows = published_rows(before)
    kept = protect_residual(judge, plan, before.zones[rows], before.standing.counts.take(rows))
    return kept, [*journal, _entry(0, "residual", before, kept)]


def _withhold(judge: Judge, plan: Plan) -> Plan:
    """Suppress whatever does not pass, cells below k among it."""
    situation = Situation.of(judge, judge.standing(judge.table.recount(plan)), plan)
    return plan.suppress(situation.zones[~situation.publishable])


def _or_alone(judge: Judge, plan: Plan, journal: list[dict[str, Any]]) -> tuple[Plan, list[dict[str, Any]]]:
    """The plan, or leaving out alone where that keeps more persons.

    No remedy loses a zone that passes, but a merged zone can leave a lone failing cell behind, and the residual then
    costs more than the merge brought; and one level for the whole release is chosen for each attribute by itself.
    """
    policy, table = judge.policy, judge.table
    lost = policy.residual and journal[-1]["suppressed"] > 0
    if policy.ladder[-1:] != ("suppress",) or not (lost or policy.recode_scope == "release"):
        return plan, journal
    own = Judge.of(table, replace(policy, ladder=("suppress",)))
    alone = _withhold(own, table.start(own.start))
    if policy.residual and _kept(own, alone) > _kept(own, plan):
        alone, _ = _residual(own, alone, journal)
    if _kept(own, alone) <= _kept(own, plan):
        return plan, journal
    before = Situation.of(own, own.standing(table.recount(table.start(own.start))), table.start(own.start))
    return alone, [*journal, _entry(0, "alone", before, alone)]


def _kept(judge: Judge, plan: Plan) -> int:
    """(person, cell) pairs of the eligible cells that are published."""
    return int(judge.table.persons[judge.references.eligible & ~plan.suppressed].sum())


def published_rows(situation: Situation) -> IntArray:
    """Rows of the zones that are published as the plan stands."""
    return np.flatnonzero(situation.publishable & ~situation.plan.suppressed[situation.zones])


def published_cells(situation: Situation) -> Any:
    """(cells,) bool: cells of the zones that are published as the plan stands."""
    members = situation.standing.counts.members[published_rows(situation)]
    cells = np.zeros(members.shape[1], bool)
    cells[members.indices] = True
    return cells


def _same(a: Plan, b: Plan) -> bool:
    return bool(
        np.array_equal(a.zone, b.zone)
        and np.array_equal(a.level, b.level)
        and np.array_equal(a.suppressed, b.suppressed)
    )


def _entry(number: int, stage: str, before: Situation, plan: Plan) -> dict[str, Any]:
    zones, old = before.zones, before.plan
    alone = before.untouched_by(plan)
    return {
        "round": number or None,
        "stage": stage,
        "failing": int(before.failing.sum()),
        "recoded": int(((plan.level != old.level).any(axis=1)[zones] & alone).sum()),
        "merged": int((~alone).sum()),
        "suppressed": int((plan.suppressed & ~old.suppressed)[zones].sum()),
        "zones": len(plan.zones),
    }


def _outcome(
    judge: Judge, plan: Plan, journal: list[dict[str, Any]], publication: Publication, run_text: str
) -> Outcome:
    table = judge.table
    zones = plan.zones[~plan.suppressed[plan.zones]]
    counts = table.recount(plan).take(np.flatnonzero(~plan.suppressed[plan.zones]))
    ids = table.cells[zones]
    final = score_rows(judge, counts, ids, plan.level[zones])
    rounds = sum(entry["stage"] == "ladder" for entry in journal)
    release = release_of(judge, plan, counts, rounds, publication, run_text)
    final["remedy"] = "publish"
    final["final_remedy"] = np.repeat(release.cells["remedy"].to_numpy(dtype=object), len(table.attributes))
    final["zone_id"] = final["cell_id"]
    columns = ["round", "stage", "failing", "recoded", "merged", "suppressed", "zones"]
    return Outcome(
        release=release,
        scores=_with_fate(score(table, judge.policy), plan, table, counts, release),
        final_scores=final,
        rounds=pd.DataFrame(journal, columns=columns).astype({"round": "Int64"}),
        plan=plan,
        table=table,
        policy=judge.policy,
    )


def _with_fate(scores: Any, plan: Plan, table: Tabulation, counts: Counts, release: Release) -> Any:
    """The scores with what became of each cell: its final remedy and its zone, null when it is not published."""
    fate = np.full(len(table.cells), "suppress", dtype=object)
    zone = np.full(len(table.cells), None, dtype=object)
    row = np.repeat(np.arange(len(counts.persons)), counts.sizes)
    fate[counts.members.indices] = release.cells["remedy"].to_numpy(dtype=object)[row]
    zone[counts.members.indices] = release.cells["cell_id"].to_numpy(dtype=object)[row]
    scores["final_remedy"] = np.repeat(fate, len(table.attributes))
    scores["zone_id"] = np.repeat(zone, len(table.attributes))
    return scores
