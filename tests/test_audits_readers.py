"""Readers who know more: values ruled out, the procedure, the member cell. Figures by hand."""

from __future__ import annotations

from math import comb

import numpy as np
import pandas as pd
import pytest
from people import CELL, enforced, facts, visits

import geodiv as gd
from geodiv import audits

NO_GATE = gd.Policy(k_min=10, residual=False)


def test_ruling_out_by_hand() -> None:
    """41, 3, 2, 2: without the 3, 41/45; without 3 and 2, 41/43; c_3 = 10.25 = 41/4, and 10.25/11.25 = 41/45."""
    made = enforced(visits({"c-58": {"clinic": 41, "pharmacy": 3, "retail": 2, "cafe": 2}}), NO_GATE).release
    for values, certainty in ((0, 41 / 48), (1, 41 / 45), (2, 41 / 43), (3, 1.0)):
        row = audits.ruling_out(made, values).iloc[0]
        assert row["certainty"] == pytest.approx(certainty)
        assert row["value"] == "clinic"
    assert audits.ruling_out(made, 1).iloc[0]["left"] == pytest.approx(
        gd.entropy_diversity([41, 2, 2]), abs=1e-9
    )
    with pytest.raises(gd.UsageError, match="0 or more"):
        audits.ruling_out(made, -1)


@pytest.fixture
def coarsened() -> gd.Release:
    """Cells a and b hold one value of a class alone; the classes are even, and pass at their own level."""
    classes = gd.Taxonomy.of({"clinic": "errand", "retail": "errand", "gym": "leisure", "cafe": "leisure"})
    frame = visits(
        {
            "a": {"clinic": 20, "gym": 10, "cafe": 10},
            "b": {"retail": 20, "gym": 10, "cafe": 10},
            "c": {"clinic": 10, "retail": 10, "gym": 10, "cafe": 10},
        }
    )
    policy = gd.Policy(k_min=10, l_min=3.7, residual=False)
    return enforced(frame, policy, gd.Nominal("poi", taxonomy=classes)).release


def test_minimality_agrees_with_the_sum_over_all_mixes(coarsened: gd.Release) -> None:
    """Labels errand 20, leisure 20, q even: clinic ~ Bin(20, 1/2) and gym ~ Bin(20, 1/2); L < 3.7 for skewed draws."""
    assert coarsened.cells["poi_level"].tolist() == [1, 1, 0]
    total = failing = before = after = 0.0
    for clinic in range(21):
        for gym in range(21):
            weight = comb(20, clinic) * comb(20, gym) / 4**20
            counts = [clinic, 20 - clinic, gym, 20 - gym]
            top = max(counts) / 40
            fails = gd.entropy_diversity(counts) < 3.7 - 1e-9
            total, before = total + weight, before + weight * top
            failing, after = failing + weight * fails, after + weight * top * fails
    found = audits.minimality(coarsened, draws=20_000, seed=1).set_index("cell_id")
    assert found.index.tolist() == ["a", "b"]
    assert total == pytest.approx(1)
    assert found.loc["a", "failing"] == pytest.approx(failing, abs=0.01)
    assert found.loc["a", "top_share"] == pytest.approx(before, abs=0.003)
    assert found.loc["a", "top_share_knowing"] == pytest.approx(after / failing, abs=0.01)
    assert found.loc["a", "moved"] > 0.01


def test_one_level_for_all_tells_of_no_zone(coarsened: gd.Release) -> None:
    policy = {**coarsened.metadata["policy"], "recode_scope": "release"}
    told = gd.Release(
        coarsened.cells, coarsened.counts, coarsened.taxonomy, coarsened.reference,
        {**coarsened.metadata, "policy": policy},
    )  # fmt: skip
    assert not len(audits.minimality(told))


def test_minimality_is_the_same_for_the_same_seed(coarsened: gd.Release) -> None:
    one, two = (audits.minimality(coarsened, draws=50, seed=3) for _ in range(2))
    pd.testing.assert_frame_equal(one, two)


def test_the_member_of_a_merged_zone_by_hand() -> None:
    """Two neighbours, clinic 12 and gym 12: one zone of L 2; each alone has L 1, and the zone's guess, clinic, is right
    for all of the first and none of the second."""
    cells = {"88196352e9fffff": {"clinic": 12}, "88196352edfffff": {"gym": 12}}
    frame, grid = visits(cells), gd.H3Grid(8, column="cell")
    policy = gd.Policy(k_min=10, l_min=2, residual=False)
    made = enforced(frame, policy, grid=grid).release
    assert made.cells["n_members"].tolist() == [2]
    found = audits.members(made, facts(frame, grid=grid), policy)
    assert found["effective"].tolist() == [1, 1]
    assert found["success"].tolist() == [1, 0]
    assert found["fails"].tolist() == ["l_min", "l_min"]
    assert set(found["zone_id"]) == {"88196352e9fffff"}


def test_no_merged_zone_no_member() -> None:
    frame = visits({"a": {"clinic": 6, "gym": 6}})
    made = enforced(frame, NO_GATE, grid=CELL).release
    assert not len(audits.members(made, facts(frame), NO_GATE))
    assert np.isclose(audits.ruling_out(made, 1).iloc[0]["certainty"], 1)
