"""Ending: of the ways in which a plan can be finished, the one that keeps most persons."""

from __future__ import annotations

from dataclasses import replace

from .course import Course
from .remedies.refine import refine
from .remedies.residual import Rest, protect_residual
from .scores import Judge


def ending(course: Course) -> Course:
    """A plan in which every zone passes and what is not published is safe, and no single move would still do.

    A plan is refined, and zones are given up until what is not published is safe as a group. Where that gives up any,
    it is done the other way round as well: first given up, then refined with the rest kept safe; and by leaving out
    alone, since a merged zone can leave a lone failing cell behind, and the rest then costs more than the merge
    brought. One level for the whole release is always compared with leaving out alone, because it is chosen for each
    attribute by itself.

    Parameters
    ----------
    course : Course
        After the ladder and the gathering; no eligible zone fails.
    """
    policy = course.judge.policy
    course = course.withheld()
    refined = _refined(course, None)
    guarded = policy.residual and "suppress" in policy.ladder
    if guarded:
        rest = Rest.of(course.judge)
        safe = _protected(refined, rest)
        lost = safe.journal[-1]["suppressed"] > 0
        found = [safe]
        if lost:
            found = [_refined(_protected(course, rest), rest), _refined(safe, rest)]
    else:
        lost, found = False, [refined]
    best = max(found, key=worth)
    if policy.ladder[-1:] == ("suppress",) and (lost or policy.recode_scope == "release"):
        alone = _alone(course)
        if worth(alone) > worth(best):
            return _refined(alone, Rest.of(alone.judge) if policy.residual else None)
    return best


def worth(course: Course) -> tuple[int, int, int, int]:
    """What an ending keeps, to be compared from the left.

    (person, cell) pairs of the eligible cells that are published, of all cells, zones, and the pairs times the levels,
    negative.
    """
    table, shown = course.judge.table, ~course.plan.suppressed
    pairs = table.persons * shown
    zones = course.plan.zones
    return (
        int(pairs[course.judge.references.eligible].sum()),
        int(pairs.sum()),
        int(shown[zones].sum()),
        -int(pairs @ course.plan.level.sum(axis=1)),
    )


def _refined(course: Course, rest: Rest | None) -> Course:
    return course.onto(refine(course.judge, course.plan, rest), "refine")


def _protected(course: Course, rest: Rest) -> Course:
    rows = course.published
    zones = course.situation.zones[rows]
    plan = protect_residual(rest, course.plan, zones, course.standing.counts.take(rows))
    return course.onto(plan, "residual")


def _alone(course: Course) -> Course:
    """Leaving out alone; what follows keeps to its levels where one holds for the whole release."""
    policy, table = course.judge.policy, course.judge.table
    own = Judge.of(table, replace(policy, ladder=("suppress",)))
    start = Course.of(own, table.start(own.start), course.journal)
    plan = start.withheld().plan
    if policy.residual:
        plan = _protected(replace(start, plan=plan), Rest.of(own)).plan
    left = start.onto(plan, "alone")
    judge = course.judge.starting_at(own.start) if policy.recode_scope == "release" else course.judge
    return Course.of(judge, left.plan, left.journal)
