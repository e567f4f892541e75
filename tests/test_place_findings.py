"""What a map tells beside a release: by hand, on the street."""

from __future__ import annotations

from typing import Any

from street import APPOINTMENT, CLINIC_ONLY, CLUSTER, CORNER, POLICY, STREET, street

import geodiv as gd


def rows(places: Any, **policy: Any) -> list[tuple[Any, ...]]:
    outcome = gd.enforce(street(APPOINTMENT), gd.Policy(**{**POLICY, **policy}))
    found = gd.place_report(outcome, places)
    columns = ["finding", "cell_id", "label", "value", "internal"]
    return [
        tuple(None if v is None else v for v in row)
        for row in found[columns].itertuples(index=False, name=None)
    ]


def test_a_label_that_the_map_resolves() -> None:
    full = {cell: {"cafe": 1, "shop": 1, "pharmacy": 1} for cell in (CLUSTER, STREET, CORNER)}
    full[CLUSTER] |= {"clinic": 2}
    full[STREET] |= {"salon": 1, "law office": 1}
    full[CORNER] |= {"salon": 1, "law office": 1}
    assert rows(gd.Places("activity", full)) == [("resolved", CLUSTER, "appointment", "clinic", False)]


def test_published_labels_without_a_place() -> None:
    few = {CLUSTER: {"clinic": 1, "salon": 1, "cafe": 1, "shop": 1}}
    found = rows(gd.Places("activity", few))
    assert ("no place", CLUSTER, "counter", None, False) in found
    assert {row[2] for row in found if row[1] == CLUSTER} == {"counter"}
    assert {row[0] for row in found} == {"no place"}


def test_a_gap_that_the_map_explains_is_internal() -> None:
    lone = gd.Places("activity", {CLUSTER: {"clinic": 4}, STREET: {"salon": 1, "cafe": 1}})
    outcome = gd.enforce(street(APPOINTMENT), gd.Policy(**POLICY, places=(lone,)))
    found = gd.place_report(outcome)
    explained = found[found["finding"] == "explained"]
    assert explained[["cell_id", "value", "internal"]].to_numpy().tolist() == [[CLUSTER, "clinic", True]]
    assert not found.loc[found["finding"] != "explained", "internal"].any()


def test_no_map_no_findings() -> None:
    outcome = gd.enforce(street(APPOINTMENT), gd.Policy(**POLICY))
    found = gd.place_report(outcome)
    assert len(found) == 0
    assert list(found.columns) == ["finding", "attribute", "cell_id", "level", "label", "value", "internal"]
    assert len(gd.place_report(outcome, [CLINIC_ONLY])) > 0
