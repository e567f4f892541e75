"""Check: structure in words, cells that each coarse value clears and worsens, recounted by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from crowds import tabulate
from street import APPOINTMENT, CLINIC_ONLY, HEALTH, POLICY, VISITS, street

import geodiv as gd
from geodiv.taxonomies.check import alone, information_lost


def checked(taxonomy: gd.Taxonomy, policy: dict[str, Any] | None = None, **keywords: Any) -> Any:
    return gd.check_taxonomy(street(taxonomy, **keywords), gd.Policy(**(policy or POLICY)))


def test_health_clears_nothing_and_appointments_clear_the_street() -> None:
    health = checked(HEALTH)
    assert health.levels[["failing", "cleared", "cleared_share"]].to_numpy().tolist() == [[2, 0, 0.0]]
    row = health.labels.set_index("label").loc["health"]
    assert (row["cells"], row["clears"], row["persons"], row["together"]) == (1, 0, 30, 1.0)
    appointment = checked(APPOINTMENT)
    assert appointment.levels["cleared"].tolist() == [2]
    row = appointment.labels.set_index("label").loc["appointment"]
    assert (row["cells"], row["clears"], row["worsens"]) == (3, 2, 0)
    assert any("level1 clears 100% of the cells that fail" in line for line in appointment.findings)


def test_a_map_of_places_is_minded() -> None:
    policy = {**POLICY, "places": (CLINIC_ONLY,)}
    assert checked(APPOINTMENT, policy).levels["cleared"].tolist() == [1]


def test_the_figures_are_those_of_the_scores() -> None:
    """A level clears the cells that the scores call publish_coarsened."""
    for taxonomy in (HEALTH, APPOINTMENT):
        for reference in (gd.Global(), gd.Ring(order=1, fallback="none")):
            for gates in ({"l_min": 4}, {"share_max": 0.55, "t_max": 0.4}, {"shift_max": 0.2, "l_min": 3}):
                policy = gd.Policy(k_min=10, reference=reference, **gates)
                table = street(taxonomy)
                scores = gd.score(table, policy)
                found = gd.check_taxonomy(table, policy)
                assert found.levels["failing"].tolist() == [(scores["fails"] != "").sum()]
                assert found.levels["cleared"].tolist() == [(scores["remedy"] == "publish_coarsened").sum()]


def test_persons_are_counted_once() -> None:
    rows = [("c", f"p{i}", value) for i in range(12) for value in ("clinic", "pharmacy", "cafe")]
    frame = pd.DataFrame(rows, columns=["cell", "person", "activity"])
    table = tabulate(frame, gd.Nominal("activity", taxonomy=gd.Taxonomy.of(
        {"clinic": "health", "pharmacy": "health", "cafe": "food"})))  # fmt: skip
    found = gd.check_taxonomy(table, gd.Policy(k_min=10, l_min=2.5))
    assert found.labels.set_index("label").loc["health", "persons"] == 12


def test_structure_in_words() -> None:
    taxonomy = gd.Taxonomy((
        ("cafe", "food", "all"),
        ("clinic", "salon", "all"),
        ("dentist", "salon", "all"),
        ("museum", "culture", "all"),
        ("theatre", "culture", "all"),
    ))  # fmt: skip
    words = checked(taxonomy, unknown="own value").findings
    assert any("values without a parent: 'law office', 'pharmacy', 'salon', 'shop'" in line for line in words)
    assert any("without a visit: 'museum', 'theatre'" in line for line in words)
    assert any("parents without values at level1: 'culture'" in line for line in words)
    whole = gd.Taxonomy.of(dict.fromkeys(v for cell in VISITS.values() for v in cell) | {
        "cafe": "all", "shop": "all", "salon": "all", "law office": "all", "clinic": "all", "pharmacy": "all",
        "dentist": "all"})  # fmt: skip
    words = checked(whole).findings
    assert any("level1 has a single label" in line for line in words)
    equal = gd.Taxonomy.of(
        {"clinic": "salon", "dentist": "salon", "salon": "salon", "law office": "law", "pharmacy": "law"}
        | {"cafe": "food", "shop": "food"}
    )
    assert any("labels with the name of a value: 'salon'" in line for line in checked(equal).findings)


def test_labels_of_sensitive_values_only_are_pointed_out() -> None:
    tier = ["clinic", "pharmacy", "dentist"]
    told = "'health' (level1) consists of sensitive values only"
    assert any(told in w for w in checked(HEALTH, sensitive=tier).findings)
    assert not any("consists of sensitive" in w for w in checked(APPOINTMENT, sensitive=tier).findings)
    assert any("no sensitive values are named" in w for w in checked(HEALTH).findings)


def test_nothing_fails() -> None:
    found = checked(HEALTH, {"k_min": 10})
    assert np.isnan(found.levels["cleared_share"]).all()
    assert any("no cell fails" in line for line in found.findings)


def test_an_attribute_is_chosen() -> None:
    table = street(None)
    with pytest.raises(gd.TaxonomyError, match="expected an attribute with a taxonomy"):
        gd.check_taxonomy(table, gd.Policy())
    with pytest.raises(gd.PolicyError, match="'activity'"):
        gd.check_taxonomy(table, gd.Policy(), "activities")


def test_information_lost() -> None:
    mix = np.array([0.5, 0.25, 0.25, 0.0])
    assert information_lost(mix, np.arange(4)) == 0
    assert information_lost(mix, np.zeros(4, dtype=np.int64)) == 1
    assert information_lost(mix, np.array([0, 1, 1, 1])) == pytest.approx(0.5 / 1.5)
    space = street(None).spaces[0]
    assert alone(space, np.array([1, 3])).tolist() == [0, 1, 2, 1, 3, 4, 5]
