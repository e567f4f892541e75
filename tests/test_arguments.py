"""What somebody gives by mistake in Python is named, and never ends inside the machinery."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import geodiv as gd
from geodiv import audits

POI = gd.Nominal("poi")
VISITS = pd.DataFrame(
    {"who": list("abcd"), "cell": ["x", "x", "y", "y"], "poi": ["bar", "gym", "bar", "gym"]}
)
GIVEN: dict[str, Any] = {"grid": gd.ColumnGrid("cell"), "person": "who", "attributes": [POI]}
POLICY = gd.Policy(k_min=1)


def table() -> gd.Tabulation:
    return gd.tabulate(VISITS, **GIVEN)


@pytest.mark.parametrize("read", [gd.tabulate, audits.Facts.read])
@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"attributes": ["poi"]}, "attributes: expected an Attribute, got str"),
        ({"attributes": "poi"}, "attributes: expected a list, got str"),
        ({"attributes": POI}, "attributes: expected a list, got Nominal"),
        ({"attributes": [gd.Nominal]}, "attributes: expected an Attribute, got the class Nominal"),
        ({"grid": 8}, "grid: expected a Grid, got int"),
        ({"grid": gd.H3Grid}, "grid: expected a Grid, got the class H3Grid"),
        ({"grid": None}, "grid: expected a Grid, got NoneType"),
    ],
)
def test_of_tabulate(read: Any, wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(gd.UsageError) as error:
        read(VISITS, **{**GIVEN, **wrong})
    assert told in str(error.value)


def test_attributes_may_come_one_by_one() -> None:
    assert len(gd.tabulate(VISITS, **{**GIVEN, "attributes": iter([POI])}).attributes) == 1


def test_a_column_is_no_table() -> None:
    with pytest.raises(
        gd.SourceError, match="expected a table of visits with named columns, got the pandas Series"
    ):
        gd.tabulate(VISITS["who"], **GIVEN)


@pytest.mark.parametrize("judge", [gd.score, gd.enforce, gd.check_taxonomy, gd.suggest_taxonomy])
def test_of_judging(judge: Any) -> None:
    for wrong in (VISITS, POLICY, None, "visits.csv"):
        with pytest.raises(gd.UsageError, match="table: expected a Tabulation"):
            judge(wrong, POLICY)
    for policy in ("policy.toml", {"k_min": 10}, None, gd.Policy):
        with pytest.raises(gd.UsageError, match="policy: expected a Policy"):
            judge(table(), policy)
