"""The tables that geodiv writes: their columns, types, titles and descriptions, whatever the file format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from .errors import SourceError, WriteError, listed

Kind = Literal["text", "integer", "real"]

REMEDIES = {
    "publish": "published at its finest categories",
    "publish_coarsened": "published with coarser categories",
    "publish_merged": "published together with neighbours",
    "merge_or_suppress": "to be merged or left out",
    "suppress": "not published",
}
"""The words of the remedy columns, and what they say to a reader of the map."""
REMEDY_ENUMS = {
    "geodiv_release_remedy": ("publish", "publish_coarsened", "publish_merged"),
    "geodiv_remedy": ("publish", "publish_coarsened", "merge_or_suppress"),
    "geodiv_final_remedy": ("publish", "publish_coarsened", "publish_merged", "suppress"),
}
"""Which of them each column may hold, by the name of its constraint."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: name, type, the alias shown for it, what it means, and the name of its enumeration."""

    name: str
    kind: Kind
    title: str
    description: str
    enum: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a file: name, columns in order, the alias shown for it and what it holds."""

    name: str
    columns: tuple[Column, ...]
    title: str
    description: str


def _columns(text: str) -> tuple[Column, ...]:
    """Columns from lines of ``name | kind | title | description | enum``."""
    rows = [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()]
    return tuple(Column(r[0], _KINDS[r[1]], r[2], r[3], r[4] if len(r) > 4 else None) for r in rows)


_KINDS: dict[str, Kind] = {"text": "text", "integer": "integer", "real": "real"}

_RELEASE_CELLS = _columns("""
cell_id | text | Zone | Id of the zone: its smallest member cell id, compared as text
members | text | Member cells | Ids of the cells that the zone is made of, separated by spaces
n_members | integer | Cells | Number of member cells
persons | integer | Persons | Distinct persons with a visit in the zone
area_m2 | real | Area (m²) | Area of the zone in square metres
remedy | text | Remedy | How the zone came to be published | geodiv_release_remedy
""")
_RELEASE_ATTRIBUTE = _columns("""
level | integer | level | Level of the taxonomy that the zone publishes; 0 is the finest
top | text | most common | Label with the largest count that is shown (ties: label order); empty when all are hidden
effective | real | effective count | exp(entropy) of the shares; empty when coarser or hidden
reference | text | reference | What the zone was judged against: ring:1, ..., global, region, weights, none
""")
_COUNTS = _columns("""
cell_id | text | Zone | Id of the zone
attribute | text | Attribute | Column of the visits
value | text | Label | Published label
level | integer | Level | Level of the taxonomy that the label belongs to; 0 is the finest
persons | integer | Persons | Distinct persons with this label in the zone; empty when the count is hidden
share | real | Share | Share of the label in the zone, 0 to 1; empty when any of its counts is hidden
""")
_TAXONOMY = _columns("""
attribute | text | Attribute | Column of the visits
value | text | Value | Finest value
name | text | Taxonomy | Name of the taxonomy
version | text | Version | Version of the taxonomy
digest | text | Digest | sha256 of the taxonomy's rows
""")
_REFERENCE = _columns("""
attribute | text | Attribute | Column of the visits
level | integer | Level | Level of the taxonomy; 0 is the finest
value | text | Label | Label of this level
share | real | Share | Share of the label in the pooled mix of the whole area, 0 to 1
""")
_WORK_CELLS = _columns("""
cell_id | text | Cell | Id of the cell
persons | integer | Persons | Distinct persons with a visit in the cell
remedy | text | Remedy | What the cell needs as it stands | geodiv_remedy
final_remedy | text | Final remedy | What became of the cell | geodiv_final_remedy
zone_id | text | Zone | Id of the zone that the cell was published in
""")
_WORK_ATTRIBUTE = _columns("""
effective | real | effective count | exp(entropy) of the cell's shares at the finest values
distance | real | distance | Distance of the cell's mix to its reference
incidence | real | incidence | Largest share of the cell's persons that hold one label
reference | text | reference | The mix that the cell was judged against
fails | text | fails | Gates that the cell fails, separated by commas
""")
_SCORES = _columns("""
cell_id | text | Cell | Id of the cell
attribute | text | Attribute | Column of the visits
persons | integer | Persons | Distinct persons with a visit in the cell
distinct | integer | Distinct | Number of values that occur
effective_fine | real | Effective count | exp(entropy) of the shares at the finest values
effective_known | real | Effective count, known | The same without the missing value
effective_coarse | real | Effective count, coarse | Of the belief at the lowest coarser level to pass, else the first
top_value | text | Top value | The value that a reader believes most
top_share | real | Top share | Its share, 0 to 1
incidence | real | Incidence | Largest share of the persons that hold one label
recursive_c | real | Recursive c | Smallest c of (c, l)-diversity; empty without the gate
distance | real | Distance | Distance to the reference
distance_global | real | Distance, global | Distance to the mix of the whole area
noise_floor | real | Noise floor | Distance to be expected of a cell of this size by chance alone
shift | real | Shift | Largest change of a reader's belief in one value
lift | real | Lift | Largest ratio of belief to prior
reference_scope | text | Reference | What the cell was judged against
reference_persons | integer | Reference persons | Persons in the reference, once per cell
fails | text | Fails | Gates that fail, separated by commas
remedy | text | Remedy | What the cell needs as it stands | geodiv_remedy
final_remedy | text | Final remedy | What became of the cell | geodiv_final_remedy
zone_id | text | Zone | Id of the zone that the cell was published in
""")
_FINAL_SCORES = tuple(
    replace(c, title="Zone", description="Id of the zone")
    if c.name == "cell_id"
    else replace(c, title="Published zone", description="The same id; empty where the zone is not published")
    if c.name == "zone_id"
    else replace(c, description=c.description.replace(" cell", " zone"))
    for c in _SCORES
)
_ROUNDS = _columns("""
round | integer | Round | Number of the round
stage | text | Stage | Which part of the procedure: ladder, gather, refine, residual, alone
failing | integer | Failing | Zones that failed at its start
recoded | integer | Recoded | Zones that went to a coarser level
merged | integer | Merged | Zones that were merged
suppressed | integer | Suppressed | Zones that were suppressed
zones | integer | Zones | Zones after it, published or not
""")
_INTAKE = _columns("""
reason | text | Reason | read, counted, or why rows were not counted
rows | integer | Rows | Rows of the visits
""")


def release_tables(cells: Iterable[str], taxonomy: Iterable[str]) -> dict[str, Table]:
    """The tables of a release, by name, given the columns of its cells and of its taxonomy."""
    per = _per_attribute(attributes_of(cells, "_level"), _RELEASE_ATTRIBUTE)
    levels = [name for name in taxonomy if name not in ("attribute", "value", "name", "version", "digest")]
    above = [Column(n, "text", str(n).capitalize(), "Label above the value at this level") for n in levels]
    paths = (*_TAXONOMY[:2], *above, *_TAXONOMY[2:])
    return {
        "cells": Table("cells", _RELEASE_CELLS + per, "Published zones", "One row a published zone"),
        "counts": Table("counts", _COUNTS, "Counts", "Distinct persons per published zone and label"),
        "taxonomy": Table("taxonomy", paths, "Taxonomy", "Labels above each value"),
        "reference": Table("reference", _REFERENCE, "Reference", "The mix of the whole area at every level"),
    }


def work_tables(cells: Iterable[str]) -> dict[str, Table]:
    """The tables of a work file, by name, given the columns of its cells."""
    per = _per_attribute(attributes_of(cells, "_fails"), _WORK_ATTRIBUTE)
    final = "Measures of each zone of the final partition and each attribute"
    return {
        "cells": Table("cells", _WORK_CELLS + per, "Cells", "One row an occupied cell, published or not"),
        "scores": Table("scores", _SCORES, "Scores", "Measures of each cell and attribute before remedies"),
        "final_scores": Table("final_scores", _FINAL_SCORES, "Final scores", final),
        "rounds": Table("rounds", _ROUNDS, "Rounds", "What each round of remedies did"),
        "intake": Table("intake", _INTAKE, "Intake", "Rows counted, and rows not counted by reason"),
    }


def attributes_of(columns: Iterable[str], suffix: str) -> list[str]:
    """The attributes whose ``<column><suffix>`` is among these columns."""
    return [str(name).removesuffix(suffix) for name in columns if str(name).endswith(suffix)]


def _per_attribute(attributes: Sequence[str], columns: Sequence[Column]) -> tuple[Column, ...]:
    return tuple(
        Column(f"{a}_{c.name}", c.kind, f"{a}: {c.title}", c.description) for a in attributes for c in columns
    )


def typed(frame: pd.DataFrame, table: Table) -> tuple[pd.DataFrame, Table]:
    """The frame with the table's columns, in order, as text, Int64 or float64, and the table that it then is.

    Columns that the table does not name are kept at the end, typed by what they hold. Nulls stay nulls, and
    NaN becomes one.

    Raises
    ------
    WriteError
        A column is missing, a name cannot live in a GeoPackage, or a value is no text or number.
    """
    frame = pd.DataFrame(frame)
    if missing := [c.name for c in table.columns if c.name not in frame.columns]:
        raise WriteError(
            f"table '{table.name}': expected the column(s) {listed(missing)}, got none of that name."
        )
    known = {c.name for c in table.columns}
    extra = [_inferred(frame[name], name) for name in frame.columns if name not in known]
    columns = (*table.columns, *extra)
    _check_names(table.name, [c.name for c in columns])
    data = {c.name: _CAST[c.kind](frame[c.name], f"'{c.name}' of table '{table.name}'") for c in columns}
    full = Table(table.name, columns, table.title, table.description)
    return pd.DataFrame(data, index=pd.RangeIndex(len(frame))), full


def as_read(frame: Any, table: Table) -> Any:
    """The frame with the table's types: text, int64 (Int64 where there are nulls), float64.

    Raises
    ------
    SourceError
        A column is missing, or holds something else than its kind.
    """
    names = [column.name for column in table.columns]
    if lacking := [name for name in names if name not in frame.columns]:
        raise SourceError(
            f"table '{table.name}': expected the columns {listed(names, 20)}, got no {listed(lacking)}."
        )
    for column in table.columns:
        read = _texts_read if column.kind == "text" else _numbers_read
        frame[column.name] = read(frame[column.name], column, table)
    return frame


def _texts_read(values: pd.Series[Any], column: Column, table: Table) -> pd.Series[Any]:
    try:
        texts = values.astype(object)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise SourceError(
            f"table '{table.name}': expected text in UTF-8 in column '{column.name}', got bytes that are not."
        ) from error
    return texts.where(texts.notna(), None)


def _numbers_read(values: pd.Series[Any], column: Column, table: Table) -> pd.Series[Any]:
    try:
        numbers = pd.to_numeric(values)
        dtype: Any = "float64" if column.kind == "real" else "Int64" if numbers.isna().any() else "int64"
        cast = numbers.astype(dtype)
        kept = bool(((cast == numbers) | numbers.isna()).all())
    except (ValueError, TypeError, OverflowError):
        kept = False
    if not kept:
        what = "whole numbers" if column.kind == "integer" else "numbers"
        raise SourceError(
            f"table '{table.name}': expected {what} in column '{column.name}', got something else."
        )
    return cast


def _inferred(values: pd.Series[Any], name: Any) -> Column:
    if not isinstance(name, str):
        raise WriteError(f"expected column names that are text, got {name!r}.")
    title = name.replace("_", " ").capitalize()
    if pd.api.types.is_bool_dtype(values) or pd.api.types.is_integer_dtype(values):
        return Column(name, "integer", title, title)
    return Column(name, "real" if pd.api.types.is_float_dtype(values) else "text", title, title)


def _check_names(table: str, names: Sequence[str]) -> None:
    taken: dict[str, str] = {"fid": "fid", "geom": "geom", "geometry": "geometry", "ogc_fid": "ogc_fid"}
    for name in names:
        check_text([name], f"the column names of table '{table}'")
        if (other := taken.get(name.casefold())) is not None:
            raise WriteError(
                f"table '{table}': a GeoPackage cannot hold the column '{name}' beside '{other}' (names are "
                "compared without case). Rename the attribute's column."
            )
        taken[name.casefold()] = name


def check_text(texts: Iterable[Any], where: str) -> None:
    """Raise when one of the texts is no text, or cannot be written: NUL characters and lone surrogates."""
    texts = list(texts)
    if _writable(texts):
        return
    for text in texts:
        if not isinstance(text, str):
            raise WriteError(f"{where}: expected text, got a {type(text).__name__}.")
        if not _writable([text]):
            raise WriteError(
                f"{where}: {text!r} holds a character that files cannot (NUL or half a pair). Replace it."
            )


def _writable(texts: list[Any]) -> bool:
    """Whether all are texts that a file can hold, looked at as one."""
    try:
        return b"\0" not in "".join(texts).encode()
    except (TypeError, UnicodeEncodeError):
        return False


def _text(values: pd.Series[Any], where: str) -> pd.Series[Any]:
    values = values.astype(object)
    null = values.isna()
    if (kind := pd.api.types.infer_dtype(values, skipna=True)) not in ("string", "empty"):
        raise WriteError(f"{where}: expected text, got values of another kind ({kind}).")
    check_text(pd.unique(values[~null]), where)
    return values.mask(null, None)


def _integer(values: pd.Series[Any], where: str) -> pd.Series[Any]:
    try:
        return pd.to_numeric(values).astype("Int64").reset_index(drop=True)
    except (TypeError, ValueError) as error:
        raise WriteError(f"{where}: expected whole numbers, got {error}.") from error


def _real(values: pd.Series[Any], where: str) -> pd.Series[Any]:
    try:
        return pd.Series(pd.to_numeric(values).to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError) as error:
        raise WriteError(f"{where}: expected numbers, got {error}.") from error


_CAST = {"text": lambda v, w: _text(v, w).reset_index(drop=True), "integer": _integer, "real": _real}
