"""Random worlds: no audit accuses a release that was made honestly, and the bounds hold for the true counts."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, settings
from strategies import World, worlds

import geodiv as gd
from geodiv import audits
from geodiv.audits.attack import decided
from geodiv.audits.published import attribute_records, blocks, published

FEWER = settings(max_examples=settings.default.max_examples // 3)
"""Each world is enforced and audited whole: slower than most, so fewer of them."""


def outcome_of(world: World) -> tuple[gd.Outcome, gd.Policy]:
    table = gd.tabulate(
        world.visits_frame(), grid=world.grid(), person="person", attributes=world.attributes()
    )
    policy = world.policy()
    try:
        return gd.enforce(table, policy, world.publication()), policy
    except (gd.NotConverged, gd.PolicyError):
        assume(False)
        raise


@FEWER
@given(world=worlds())
def test_an_honest_release_is_never_accused(world: World) -> None:
    outcome, policy = outcome_of(world)
    attack = audits.attack(outcome.release)
    assert attack.broken.to_dict("records") == []
    assert attack.faults.to_dict("records") == []
    facts = audits.Facts.read(
        world.visits_frame(), grid=world.grid(), person="person", attributes=world.attributes()
    )
    recount = audits.recount(outcome.release, facts, policy)
    assert recount.broken.to_dict("records") == []
    assert recount.mismatches.to_dict("records") == []
    assert recount.residual == ()


@FEWER
@given(world=worlds())
def test_the_true_counts_lie_in_a_box_and_no_bound_is_too_strict(world: World) -> None:
    outcome, _ = outcome_of(world)
    release, table = outcome.release, outcome.table
    zones = np.flatnonzero(~outcome.plan.suppressed[outcome.plan.zones])
    counts = table.recount(outcome.plan).take(zones)
    final = outcome.final_scores
    measures = {"l_min": "effective_fine", "t_max": "distance", "shift_max": "shift", "lift_max": "lift"}
    for a, record in enumerate(attribute_records(release)):
        one = published(release, record)
        for h in range(len(one.space.levels)):
            for block in blocks(release, one, h):
                true = np.asarray(counts.labels[a][h][block.rows].todense(), dtype=float)
                for at in range(len(block.rows)):
                    own = block.boxes.row == at
                    low, high = block.boxes.low[own], block.boxes.high[own]
                    assert ((low <= true[at]) & (true[at] <= high)).all(axis=1).any()
        best = decided(release, one).best
        rows = final[final["attribute"] == one.column].reset_index(drop=True)
        for gate, column in measures.items():
            x = best[:, gd.policy.GATES.index(gate)]
            true_x = rows[column].to_numpy(dtype=float)
            fine = (one.level == 0) | (gate != "l_min")
            known = fine & ~np.isnan(x) & ~np.isnan(true_x)
            if gate == "l_min":
                assert (x[known] >= true_x[known] - 1e-9).all()
            else:
                assert (x[known] <= true_x[known] + 1e-9).all()


@FEWER
@given(world=worlds())
def test_a_count_that_was_changed_is_found_from_the_visits(world: World) -> None:
    outcome, policy = outcome_of(world)
    release = outcome.release
    shown = np.flatnonzero(release.counts["persons"].notna())
    assume(len(shown))
    counts = release.counts.copy()
    counts.loc[shown[0], "persons"] += 1
    tampered = gd.Release(release.cells, counts, release.taxonomy, release.reference, release.metadata)
    facts = audits.Facts.read(
        world.visits_frame(), grid=world.grid(), person="person", attributes=world.attributes()
    )
    assert audits.recount(tampered, facts, policy).failed
