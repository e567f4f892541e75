"""Persons against rows, worked out by hand."""

from __future__ import annotations

import pandas as pd
import pytest
from people import facts, visits

import geodiv as gd
from geodiv import audits


def test_one_person_of_many_visits_by_hand() -> None:
    """Ten at the clinic once, an eleventh thirty times at the gym: 10/1 by persons, 10/30 by visits."""
    frame = pd.concat(
        [visits({"a": {"clinic": 10}}), pd.DataFrame({"who": ["x"] * 30, "cell": "a", "poi": "gym"})]
    )
    found = audits.recheck(facts(frame), gd.Policy(k_min=10, l_min=1.5))
    row = found.iloc[0]
    assert row["persons"] == 11
    assert row["visits"] == 40
    assert row["effective_persons"] == pytest.approx(gd.entropy_diversity([10, 1]))
    assert row["effective_visits"] == pytest.approx(gd.entropy_diversity([10, 30]))
    assert row["gap"] == pytest.approx(row["effective_visits"] - row["effective_persons"])
    assert row["heaviest"] == pytest.approx(30 / 40)
    assert (row["fails_persons"], row["fails_visits"], row["flips"]) == ("l_min", "", True)


def test_once_each_is_the_same_by_either() -> None:
    found = audits.recheck(
        facts(visits({"a": {"clinic": 8, "gym": 7}, "b": {"gym": 4}})), gd.Policy(k_min=10, l_min=1.9)
    )
    assert found["cell_id"].tolist() == ["a"]
    assert found["gap"].tolist() == [0]
    assert not found["flips"].any()
    assert found["heaviest"].tolist() == pytest.approx([1 / 15])


def test_the_reference_is_counted_alike() -> None:
    """By persons both cells are (.5, .5), distance 0; by visits a is (.75, .25) and b (.25, .75), Q (.5, .5): .25."""
    frame = visits({"a": {"clinic": 5, "gym": 5}, "b": {"clinic": 5, "gym": 5}})
    more = frame[(frame["cell"] == "a") == (frame["poi"] == "clinic")]
    found = audits.recheck(facts(pd.concat([frame, more, more])), gd.Policy(k_min=10, t_max=0.2))
    assert found["fails_persons"].tolist() == ["", ""]
    assert found["fails_visits"].tolist() == ["t_max", "t_max"]
