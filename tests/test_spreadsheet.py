"""Texts in CSV files never run in a spreadsheet, and come back as they were."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import geodiv as gd
from geodiv.spreadsheet import guarded, unguarded

TEXTS = st.text(alphabet="'=+-@\t\r1.9ea", max_size=8) | st.text()


@given(TEXTS)
def test_texts_come_back(text: str) -> None:
    assert unguarded(guarded(text)) == text


@given(TEXTS)
def test_nothing_begins_like_a_formula(text: str) -> None:
    shown = guarded(text)
    if shown.startswith(("=", "+", "-", "@", "\t", "\r")):
        float(shown)


@pytest.mark.parametrize("text", ["-999", "+3.5", "-inf", "cafe", "", "'quoted'", "a=b"])
def test_what_runs_nowhere_stays(text: str) -> None:
    assert guarded(text) == text


def test_a_release_of_such_names_survives_as_csv(tmp_path: Path) -> None:
    names = ["=cmd|' /C calc'!A0", "@SUM(A1)", "-1+1"]
    visits = pd.DataFrame(
        [(f"p{i}", "=1+1", v) for i in range(9) for v in names], columns=["who", "cell", "+poi"]
    )
    table = gd.tabulate(visits, grid=gd.ColumnGrid("cell"), person="who", attributes=[gd.Nominal("+poi")])
    release = gd.enforce(table, gd.Policy(k_min=9, residual=False)).release
    release.to_file(tmp_path / "r.csv")
    with (tmp_path / "r.csv").open(encoding="utf-8", newline="") as stream:
        fields = [field for row in csv.reader(stream) for field in row]
    assert not [field for field in fields if field.startswith(("=", "+", "@", "-1+"))]
    again = gd.read_release(tmp_path / "r.csv")
    pd.testing.assert_frame_equal(again.counts, dataclasses.replace(release).counts, check_dtype=False)
