"""Enforce: remedies, re-counted, until nothing fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from .arrays import BoolArray
from .course import Course
from .ending import ending
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
    {'publish': 53, 'publish_coarsened': 12, 'publish_merged': 12}
    """
    judge, plan = _begin(table, policy)
    course = _settled(Course.of(judge, plan), progress)
    if "merge" in policy.ladder:
        course = course.onto(grow(judge, course.plan, _published_cells(course)), "gather")
    if progress:
        progress("refine", 0, 1)
    course = ending(course)
    if progress:
        progress("verify", 0, 1)
    verify(table, policy, course.plan)
    return _outcome(judge, course, publication or Publication(), run_text)


def _begin(table: Tabulation, policy: Policy) -> tuple[Judge, Plan]:
    judge = Judge.of(table, policy)
    if policy.recode_scope == "release" and "recode" in policy.ladder:
        judge = judge.starting_at(release_levels(judge))
    return judge, table.start(judge.start)


def _settled(course: Course, progress: Progress | None) -> Course:
    """Phase 1: the ladder, round after round, until a round finds nothing that fails."""
    policy = course.judge.policy
    for number in range(1, policy.max_rounds + 1):
        if progress:
            progress("remedy", number, policy.max_rounds)
        after = before = course.situation
        for remedy in policy.ladder:
            after = REMEDIES[remedy](after)
        if before.failing.any() and _same(after.plan, course.plan):
            raise _not_converged(before, f"the ladder {listed(policy.ladder)} cannot clear them")
        course = course.onto(after.plan, "ladder", number)
        if not before.failing.any():
            return course
    raise _not_converged(before, f"max_rounds = {policy.max_rounds} is reached")


def _not_converged(situation: Situation, why: str) -> NotConverged:
    return NotConverged(
        f"expected every zone to pass, but zones still fail: {why}. Add 'suppress' to the ladder, raise max_rounds, "
        "loosen a gate, or look for a taxonomy that clears them.",
        situation.judge.table.cells[situation.zones[situation.failing]],
    )


def _published_cells(course: Course) -> BoolArray:
    """(cells,) cells of the zones that are published as the plan stands."""
    members = course.standing.counts.members[course.published]
    cells = np.zeros(members.shape[1], bool)
    cells[members.indices] = True
    return cells


def _same(a: Plan, b: Plan) -> bool:
    return bool(
        np.array_equal(a.zone, b.zone)
        and np.array_equal(a.level, b.level)
        and np.array_equal(a.suppressed, b.suppressed)
    )


def _outcome(judge: Judge, course: Course, publication: Publication, run_text: str) -> Outcome:
    table, plan = judge.table, course.plan
    zones = plan.zones[~plan.suppressed[plan.zones]]
    counts = course.standing.counts.take(np.flatnonzero(~plan.suppressed[plan.zones]))
    ids = table.cells[zones]
    final = score_rows(judge, counts, ids, plan.level[zones])
    rounds = sum(entry["stage"] == "ladder" for entry in course.journal)
    release = release_of(judge, plan, counts, rounds, publication, run_text)
    final["final_remedy"] = np.repeat(release.cells["remedy"].to_numpy(dtype=object), len(table.attributes))
    final["zone_id"] = final["cell_id"]
    columns = ["round", "stage", "failing", "recoded", "merged", "suppressed", "zones"]
    return Outcome(
        release=release,
        scores=_with_fate(score(table, judge.policy), plan, table, counts, release),
        final_scores=final,
        rounds=pd.DataFrame(course.journal, columns=columns).astype({"round": "Int64"}),
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
