"""Cross-attribute: a facility that names the diagnosis, and Theil's U by hand."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from people import enforced, facts

import geodiv as gd
from geodiv import audits

DIAGNOSIS, FACILITY = gd.Nominal("diagnosis"), gd.Nominal("facility")
POLICY = gd.Policy(k_min=10, l_min=2, residual=False)


def clinics(named: bool) -> pd.DataFrame:
    """Twelve visitors at f1 and twelve at f2; f1 is a heart clinic alone when it names the diagnosis."""
    other = ["heart", "skin", "eye", "ear"]
    rows = [(f"p{i}", "f1", "heart" if named else other[i % 4]) for i in range(12)]
    rows += [(f"q{i}", "f2", other[i % 4]) for i in range(12)]
    return pd.DataFrame(rows, columns=["who", "facility", "diagnosis"]).assign(cell="a")


def test_a_facility_that_names_the_diagnosis() -> None:
    frame = clinics(named=True)
    made = enforced(frame, POLICY, DIAGNOSIS).release
    assert len(made.cells) == 1
    found = audits.cross_attribute(facts(frame, DIAGNOSIS, FACILITY), POLICY, made, told=["diagnosis"])
    assert found.failed
    row = found.disclosures.iloc[0]
    assert row[["known", "told", "cell_id", "value", "persons", "top"]].tolist() == [
        "facility", "diagnosis", "a", "f1", 12, "heart",
    ]  # fmt: skip
    assert row["conditional"] == pytest.approx(1)
    assert row["effective"] == pytest.approx(gd.entropy_diversity([15, 3, 3, 3]))
    worst = found.pairs.set_index("known").loc["facility"]
    assert worst[["worst", "cell_id", "value", "persons"]].tolist() == [pytest.approx(1), "a", "f1", 12]


def test_theils_u_by_hand() -> None:
    """H(facility) = ln 2, H(diagnosis) of 15, 3, 3, 3; H(diagnosis | facility) = (0 + ln 4) / 2."""
    found = audits.cross_attribute(facts(clinics(named=True), DIAGNOSIS, FACILITY), POLICY)
    u = found.pairs.set_index("known")["uncertainty"]
    whole = math.log(gd.entropy_diversity([15, 3, 3, 3]))
    assert u["facility"] == pytest.approx(1 - (math.log(4) / 2) / whole)
    both = whole - math.log(4) / 2
    assert u["diagnosis"] == pytest.approx(both / math.log(2))


def test_facilities_alike_tell_nothing() -> None:
    found = audits.cross_attribute(facts(clinics(named=False), DIAGNOSIS, FACILITY), POLICY)
    assert not found.failed
    assert found.pairs["uncertainty"].tolist() == pytest.approx([0, 0])
    assert found.pairs.set_index("known").loc["facility", "worst"] == pytest.approx(4)


def test_small_groups_are_looked_at_when_asked() -> None:
    frame = clinics(named=False)
    frame.loc[0, "facility"] = "f3"
    known = facts(frame, DIAGNOSIS, FACILITY)
    assert not audits.cross_attribute(known, POLICY).failed
    found = audits.cross_attribute(known, POLICY, persons_min=1)
    assert "f3" in set(found.disclosures["value"])


def test_a_person_counts_once_in_a_group_however_many_diagnoses() -> None:
    frame = pd.concat([clinics(named=False), clinics(named=False).assign(diagnosis="heart")])
    found = audits.cross_attribute(facts(frame, DIAGNOSIS, FACILITY), POLICY)
    assert found.pairs.set_index("known").loc["facility", "persons"] == 12
