"""Districts: cells in a row that fail together, and why, by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from crowds import FAR, ROW, visits

import geodiv as gd
from geodiv.districts import NO_TAXONOMY, TOO_CERTAIN, TOO_FEW, TOO_FINE

CLINIC, GYM, EVEN = {"clinic": 34}, {"gym": 30}, {"clinic": 10, "gym": 10, "cafe": 10}


def districts(
    source: pd.DataFrame | Mapping[str, Mapping[Any, int]],
    least: int = 3,
    taxonomy: gd.Taxonomy | None = None,
    **policy: Any,
) -> Any:
    frame = source if isinstance(source, pd.DataFrame) else visits(source)
    grid = gd.H3Grid(8, column="cell")
    activity = gd.Nominal("activity", taxonomy=taxonomy)
    table = gd.tabulate(frame, grid=grid, person="person", attributes=[activity])
    rules = gd.Policy(**{"k_min": 10, **policy})
    found = gd.failing_districts(table, rules, gd.score(table, rules), least=least)
    return found.to_dict("records")


def joined(cells: list[str]) -> str:
    return " ".join(sorted(cells))


def test_neighbours_with_one_top_value_that_fail_l_are_one_district() -> None:
    city = {**dict.fromkeys(ROW[:4], CLINIC), **dict.fromkeys(ROW[4:6], EVEN), FAR: CLINIC}
    assert districts(city, l_min=2) == [
        {
            "district": 1,
            "attribute": "activity",
            "cells": joined(ROW[:4]),
            "n_cells": 4,
            "gates": "l_min",
            "top_value": "clinic",
            "cause": NO_TAXONOMY,
        }
    ]


def test_the_taxonomy_is_too_fine_only_where_there_is_one() -> None:
    city = {**dict.fromkeys(ROW[:3], CLINIC), FAR: EVEN}
    health = gd.Taxonomy.of({"clinic": "health", "gym": "health", "cafe": "other"}, name="t")
    for taxonomy, cause in ((None, NO_TAXONOMY), (health, TOO_FINE)):
        (found,) = districts(city, taxonomy=taxonomy, l_min=2)
        assert (found["cause"], found["n_cells"]) == (cause, 3)


def test_another_top_value_a_cell_that_passes_and_one_below_k_part_districts() -> None:
    two = {**dict.fromkeys(ROW[:4], CLINIC), **dict.fromkeys(ROW[4:7], GYM)}
    found = districts(two, l_min=2)
    assert [(d["district"], d["cells"], d["top_value"]) for d in found] == [
        (1, joined(ROW[:4]), "clinic"),
        (2, joined(ROW[4:7]), "gym"),
    ]
    for gap in (EVEN, {"clinic": 9}):
        parted = {**dict.fromkeys(ROW[:5], CLINIC), ROW[2]: gap, FAR: EVEN}
        assert districts(parted, l_min=2) == []
        assert [d["n_cells"] for d in districts(parted, least=2, l_min=2)] == [2, 2]


def test_the_gates_of_a_district_are_those_that_any_of_its_cells_fails() -> None:
    """Against the mix of all, (94 clinic, 32 gym): all clinic is .254 away, 26 of 30 is .121, and L 1.48 there."""
    city = {ROW[0]: CLINIC, ROW[1]: CLINIC, ROW[2]: {"clinic": 26, "gym": 4}, FAR: {"gym": 28}}
    (found,) = districts(city, l_min=1.5, t_max=0.2)
    assert found["gates"] == "l_min,t_max"
    assert found["cells"] == joined(ROW[:3])


def test_beside_a_district_of_one_value_one_of_chance_has_no_top_value_either() -> None:
    turned = [{"a": 5, "b": 3, "c": 2}, {"b": 5, "c": 3, "a": 2}, {"c": 5, "a": 3, "b": 2}]
    only, even = {"a": 30}, {FAR: {"a": 400, "b": 400, "c": 400}}
    found = districts(
        dict(zip(ROW[:3], turned, strict=True)) | dict.fromkeys(ROW[4:7], only) | even, t_max=0.1
    )
    assert [(d["top_value"], d["cause"]) for d in found] == [("a", NO_TAXONOMY), (None, TOO_FEW)]


def test_where_chance_alone_is_as_large_as_the_distance_k_is_too_small() -> None:
    """5, 3, 2 of ten persons are 1/6 from even thirds, and chance takes ten persons .178 away from them."""
    turned = [{"a": 5, "b": 3, "c": 2}, {"b": 5, "c": 3, "a": 2}, {"c": 5, "a": 3, "b": 2}]
    (found,) = districts(dict(zip(ROW[:3], turned, strict=True)), t_max=0.15)
    assert (found["cause"], found["top_value"], found["gates"]) == (TOO_FEW, None, "t_max")
    assert found["cells"] == joined(ROW[:3])
    many = [{value: 10 * n for value, n in mix.items()} for mix in turned]
    assert districts(dict(zip(ROW[:3], many, strict=True)), t_max=0.15) == []  # three tops, each alone
    assert (
        districts(dict.fromkeys(ROW[:3], many[0]) | {FAR: {"c": 300}}, t_max=0.15)[0]["cause"] == NO_TAXONOMY
    )


def test_where_everybody_did_both_only_merging_helps() -> None:
    rows = [
        (cell, f"{cell}-{i}", value) for cell in ROW[:3] for i in range(12) for value in ("clinic", "cafe")
    ]
    frame = pd.DataFrame(rows, columns=["cell", "person", "activity"])
    (found,) = districts(frame, l_min=2, incidence_max=0.8)
    assert (found["cause"], found["gates"]) == (TOO_CERTAIN, "incidence_max")


def test_other_gates_make_no_district_and_nothing_fails_without_gates() -> None:
    city = dict.fromkeys(ROW[:3], CLINIC)
    assert districts(city, share_max=0.9) == []
    assert districts(city) == []
