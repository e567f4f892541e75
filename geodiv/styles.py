"""How a map shows a release: the palette, and QGIS styles (QML) written by hand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as Xml

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .columns import REMEDIES, REMEDY_ENUMS, Table, attributes_of

COLOURS = {
    "publish": "#0B4F8A",
    "publish_coarsened": "#6BAED6",
    "publish_merged": "#C4660A",
    "merge_or_suppress": "#E4E4E4",
    "suppress": "#E4E4E4",
}
"""Fill of each remedy, told apart by colour-blind readers and in greyscale; the last two are also hatched."""
HATCH = "#4D4D4D"
HATCHED = frozenset({"merge_or_suppress", "suppress"})
NO_FIGURE = "#E4E4E4"
SEQUENCE = ("#EDF8FB", "#B3CDE3", "#8C96C6", "#8856A7", "#810F7C")
"""Five classes from little to much, light to dark."""
MOST_SHARE_STYLES = 12

_DOCTYPE = "<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>\n"
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Style:
    """One style of a layer: name, QML, whether it is the layer's default, what it shows."""

    name: str
    qml: str
    default: bool
    description: str


def styles(table: Table, frame: pd.DataFrame, located: bool) -> list[Style]:
    """The styles of one table of a file, the default first.

    Parameters
    ----------
    table : Table
        ``cells`` is styled by remedy and by effective count, ``shares_...`` by the share of each label; tables
        without a geometry get their aliases alone.
    frame : (rows,) DataFrame
        As written.
    located : bool
        Whether the table has a geometry.
    """
    if not located:
        return [Style("columns", _qml(table, None), True, "Aliases of the columns")]
    if table.name == "cells":
        return _defaulted([*_by_remedy(table, frame), *_by_effective(table, frame)])
    return _defaulted(
        list(_by_share(table, frame)) or [Style("outlines", _qml(table, _plain()), True, "Outlines")]
    )


def _defaulted(found: Sequence[Style]) -> list[Style]:
    return [Style(s.name, s.qml, i == 0, s.description) for i, s in enumerate(found)]


def _by_remedy(table: Table, frame: pd.DataFrame) -> Iterable[Style]:
    columns = [c for c in table.columns if c.enum]
    if len(columns) == 2 and frame[columns[1].name].notna().any():
        columns.reverse()  # what became of the cells comes first once it is known
    for column in columns:
        words = REMEDY_ENUMS[column.enum or ""]
        qml = _qml(table, _categories(column.name, words))
        yield Style(f"by {column.name.replace('_', ' ')}", qml, False, column.description)


def _by_effective(table: Table, frame: pd.DataFrame) -> Iterable[Style]:
    for attribute in attributes_of(frame.columns, "_effective"):
        column = f"{attribute}_effective"
        edges = _edges(frame[column].to_numpy(dtype=np.float64, na_value=np.nan))
        name = f"by effective count of {attribute}"
        yield Style(
            name, _qml(table, _classes(column, edges)), False, "Effective number of values, exp(entropy)"
        )


def _by_share(table: Table, frame: pd.DataFrame) -> Iterable[Style]:
    edges = np.linspace(0, 1, 6)
    labels = [c for c in table.columns if c.kind == "real"]
    labels.sort(key=lambda c: (-frame[c.name].notna().sum(), -frame[c.name].sum()))  # most to see comes first
    labels = labels[:MOST_SHARE_STYLES]
    for column in labels:
        renderer = _classes(column.name, edges, percent=True)
        yield Style(f"share of {column.title}", _qml(table, renderer), False, column.description)


def _edges(values: NDArray[np.float64]) -> NDArray[np.float64]:
    known = values[np.isfinite(values)]
    if not len(known):
        return np.zeros(0)
    edges = np.quantile(known, np.linspace(0, 1, len(SEQUENCE) + 1))
    edges[1:-1] = np.round(edges[1:-1], 1)
    edges[0], edges[-1] = np.floor(edges[0] * 10) / 10, np.ceil(edges[-1] * 10) / 10
    return np.unique(edges) if edges[0] < edges[-1] else np.array([edges[0], edges[0] + 0.1])


def _qml(table: Table, renderer: Xml.Element | None) -> str:
    root = Xml.Element("qgis", version="3.22.0", styleCategories="AllStyleCategories")
    if renderer is not None:
        root.append(renderer)
    aliases = Xml.SubElement(root, "aliases")
    for index, column in enumerate(table.columns, start=1):  # the table's own row number is field 0
        Xml.SubElement(aliases, "alias", field=clean(column.name), index=str(index), name=clean(column.title))
    Xml.SubElement(root, "previewExpression").text = '"cell_id"' if table.columns[:1] else ""
    Xml.SubElement(root, "layerGeometryType").text = "4" if renderer is None else "2"
    return document(root)


def document(root: Xml.Element) -> str:
    """The text of a QGIS document (a style or a layer's metadata)."""
    return _DOCTYPE + Xml.tostring(root, encoding="unicode") + "\n"


def clean(text: str) -> str:
    """The text with the characters that XML cannot hold replaced."""
    return _NOT_XML.sub("\ufffd", text)


def _categories(column: str, words: Sequence[str]) -> Xml.Element:
    renderer = _renderer("categorizedSymbol", attr=column)
    categories, symbols = Xml.SubElement(renderer, "categories"), Xml.SubElement(renderer, "symbols")
    for number, word in enumerate(words):
        entry = {
            "symbol": str(number),
            "value": word,
            "label": REMEDIES[word],
            "render": "true",
            "type": "string",
        }
        Xml.SubElement(categories, "category", entry)
        symbols.append(_fill(str(number), COLOURS[word], hatched=word in HATCHED))
    return renderer


def _classes(column: str, edges: NDArray[np.float64], *, percent: bool = False) -> Xml.Element:
    renderer = _renderer("RuleRenderer")
    rules = Xml.SubElement(renderer, "rules", key="{geodiv-root}")
    symbols = Xml.SubElement(renderer, "symbols")
    field = '"' + column.replace('"', '""') + '"'
    colours = SEQUENCE[-(len(edges) - 1) :] if len(edges) > 1 else ()
    for number, colour in enumerate(colours):
        low, high, last = edges[number], edges[number + 1], number == len(colours) - 1
        test = f"{field} >= {low:.12g} AND {field} {'<=' if last else '<'} {high:.12g}"
        label = f"{low:.0%} – {high:.0%}" if percent else f"{low:.1f} – {high:.1f}"
        _rule(rules, number, test, label)
        symbols.append(_fill(str(number), colour))
    _rule(rules, len(colours), "ELSE", "no figure (another level, or hidden)")
    symbols.append(_fill(str(len(colours)), NO_FIGURE))
    return renderer


def _rule(rules: Xml.Element, number: int, test: str, label: str) -> None:
    key = f"{{geodiv-{number}}}"
    Xml.SubElement(rules, "rule", key=key, symbol=str(number), filter=clean(test), label=label)


def _plain() -> Xml.Element:
    renderer = _renderer("singleSymbol")
    Xml.SubElement(renderer, "symbols").append(_fill("0", NO_FIGURE))
    return renderer


def _renderer(kind: str, **more: str) -> Xml.Element:
    settings = {"type": kind, "symbollevels": "0", "forceraster": "0", "enableorderby": "0"}
    return Xml.Element("renderer-v2", settings | {k: clean(v) for k, v in more.items()})


def _fill(name: str, colour: str, *, hatched: bool = False) -> Xml.Element:
    symbol = Xml.Element("symbol", name=name, type="fill", alpha="1", clip_to_extent="1", force_rhr="0")
    outline = {"outline_color": _rgba("#FFFFFF"), "outline_style": "solid", "outline_width": "0.1"}
    _layer(symbol, "SimpleFill", color=_rgba(colour), style="solid", **outline)
    if hatched:
        lines = _layer(
            symbol, "LinePatternFill", angle="45", distance="1.8", distance_unit="MM", line_width="0.35"
        )
        line = Xml.SubElement(lines, "symbol", name=f"@{name}@1", type="line", alpha="1")
        _layer(line, "SimpleLine", line_color=_rgba(HATCH), line_width="0.35", line_width_unit="MM")
    return symbol


def _layer(symbol: Xml.Element, kind: str, **properties: Any) -> Xml.Element:
    layer = Xml.SubElement(symbol, "layer", {"class": kind, "enabled": "1", "locked": "0", "pass": "0"})
    for key, value in properties.items():
        Xml.SubElement(layer, "prop", k=key, v=value)
    return layer


def _rgba(colour: str) -> str:
    return ",".join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5)) + ",255"
