"""Styles: well-formed QML for any column and text, the palette, one default a layer."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

import numpy as np
import pandas as pd
import pytest
from handmade import release, work
from hypothesis import given
from hypothesis import strategies as st

from geodiv.columns import REMEDIES, REMEDY_ENUMS, Column, Table, release_tables, typed, work_tables
from geodiv.shares import safe_names, shares_tables
from geodiv.styles import COLOURS, HATCHED, SEQUENCE, Style, styles


def of_release(**changes: object) -> list[Style]:
    cells = pd.DataFrame(release(located=False).cells).assign(**changes)
    frame, table = typed(cells, release_tables(cells.columns, ())["cells"])
    return styles(table, frame, True)


def of_work(*, enforced: bool) -> list[Style]:
    layer = work(enforced=enforced, located=False).layer
    frame, table = typed(layer, work_tables(layer.columns)["cells"])
    return styles(table, frame, True)


def test_every_remedy_has_words_a_colour_and_a_constraint() -> None:
    assert set(REMEDIES) == set(COLOURS) == {word for words in REMEDY_ENUMS.values() for word in words}
    assert set(REMEDIES) >= HATCHED


def test_one_default_style() -> None:
    for found in (of_release(), of_work(enforced=True), of_work(enforced=False)):
        assert [style.default for style in found] == [True] + [False] * (len(found) - 1)
        assert len({style.name for style in found}) == len(found)


def test_what_became_of_the_cells_comes_first_once_known() -> None:
    assert [s.name for s in of_work(enforced=True)][:2] == ["by final remedy", "by remedy"]
    assert [s.name for s in of_work(enforced=False)][:2] == ["by remedy", "by final remedy"]


def test_categories_and_hatch() -> None:
    root = Xml.fromstring(of_work(enforced=True)[0].qml)
    renderer = root.find("renderer-v2")
    assert renderer is not None
    assert renderer.attrib["attr"] == "final_remedy"
    assert [c.attrib["value"] for c in renderer.iter("category")] == list(REMEDY_ENUMS["geodiv_final_remedy"])
    hatched = [
        s.attrib["name"]
        for s in renderer.findall("symbols/symbol")
        if s.find("layer[@class='LinePatternFill']")
    ]
    assert hatched == ["3"]
    assert root.findtext("layerGeometryType") == "2"


def test_aliases_follow_the_row_number() -> None:
    root = Xml.fromstring(of_release()[0].qml)
    first = next(root.iter("alias"))
    assert (first.attrib["field"], first.attrib["index"], first.attrib["name"]) == ("cell_id", "1", "Zone")


def test_tables_have_aliases_only() -> None:
    frame, table = typed(release().counts, release_tables((), ())["counts"])
    (style,) = styles(table, frame, False)
    root = Xml.fromstring(style.qml)
    assert root.find("renderer-v2") is None
    assert root.findtext("layerGeometryType") == "4"


def _tests_of(style: Style) -> list[str]:
    return [rule.attrib["filter"] for rule in Xml.fromstring(style.qml).iter("rule")]


@given(st.lists(st.none() | st.floats(1, 1e4), min_size=1, max_size=30))
def test_each_known_count_is_in_exactly_one_class(values: list[float | None]) -> None:
    name = "v"
    frame = pd.DataFrame({"remedy": None, f"{name}_effective": np.array(values, dtype=float)})
    columns = (
        Column("remedy", "text", "", "", "geodiv_release_remedy"),
        Column(f"{name}_effective", "real", "", ""),
    )
    found = styles(Table("cells", columns, "", ""), frame, True)[1]
    *classes, rest = _tests_of(found)
    assert rest == "ELSE"
    assert len(classes) <= len(SEQUENCE)
    for value in values:
        inside = [t for t in classes if value is not None and eval(_python(t), {"x": value})]
        assert len(inside) == (value is not None)


def _python(test: str) -> str:
    return test.replace('"v_effective"', "x").replace("AND", "and")


def test_the_share_that_most_zones_tell_comes_first() -> None:
    made = release()
    frame, table = next(iter(shares_tables(made.cells, made.counts)))
    found = styles(table, frame, True)
    assert found[0].name == "share of shop"
    assert found[-1].name == "share of health (level 1)"


def test_no_label_no_share_style() -> None:
    made = release(zones=0)
    frame, table = next(iter(shares_tables(made.cells, made.counts)))
    assert [s.name for s in styles(table, frame, True)] == ["outlines"]


@pytest.mark.parametrize("text", ["<&>\"'", "\x01\x0b", "a\ud7ff\ufffe", "]]>", "ü 中 🙂"])
def test_any_text_gives_well_formed_qml(text: str) -> None:
    columns = (Column("cell_id", "text", text, text), Column(text, "real", text, text))
    for style in styles(
        Table("shares_x", columns, text, text), pd.DataFrame({"cell_id": [], text: []}), True
    ):
        Xml.fromstring(style.qml)


@given(st.lists(st.text(max_size=60), max_size=20))
def test_safe_names_are_safe_and_unlike(texts: list[str]) -> None:
    names = safe_names(texts, ("persons",))
    assert len(set(names)) == len(texts)
    assert not {"persons", "fid", "geom", ""} & set(names)
    assert all(name.isascii() and name.isidentifier() and name == name.lower() for name in names)
