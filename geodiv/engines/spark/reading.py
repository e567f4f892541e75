"""Visits that a cluster reads itself: Parquet and CSV by their paths, and Spark data frames."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from glob import glob
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyproj import CRS

from ...errors import SourceError, UsageError, listed
from ...intake import VisitSpec
from ...intake.table import Layout
from ...sources import PARQUET, TEXT, Source, open_source
from ...sources.csvfile import CsvSource, delimiter_of
from ...sources.parquet import ParquetSource
from ...sources.several import SeveralSource
from .session import Session

CSV = {
    "header": "true",
    "quote": '"',
    "escape": '"',
    "multiLine": "true",
    "mode": "FAILFAST",
    "enforceSchema": "true",
    "columnPruning": "false",
    "encoding": "UTF-8",
}
"""As the intake reads CSV: every column text, quotes doubled, lines that do not fit an error."""
PLAIN = """
string char varchar boolean byte short integer long float double decimal date binary void array map struct
"""
"""Spark types whose values have the text that they have in a file; the intake itself refuses the nested ones."""


@dataclass(frozen=True, slots=True, eq=False)
class Described:
    """What a Spark data frame says of itself."""

    name: str
    columns: Mapping[str, Any]
    repeated: frozenset[str] = frozenset()
    geometry: str | None = None
    crs: CRS | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Distributed:
    """Visits on the cluster.

    Parameters
    ----------
    frame : Spark DataFrame
        The columns of `layout`, in its order.
    layout : Layout
    digest : str
        sha256 of the files when this machine sees them too; otherwise empty.
    csv : bool
        Whether they stand in text files.
    rows : int or None
        How many there must be, where the files say so.
    """

    frame: Any
    layout: Layout
    digest: str = ""
    csv: bool = False
    rows: int | None = None


def is_frame(source: Any) -> bool:
    """Whether visits are a Spark data frame."""
    return hasattr(source, "mapInArrow") and hasattr(source, "sparkSession")


def distributed(
    source: Any, spec: VisitSpec, session: Session, ready: Callable[[], None]
) -> Distributed | None:
    """The visits, where the cluster can read them itself; None where only this machine can.

    Parameters
    ----------
    source : path, list of paths or Spark DataFrame
        A path that this machine does not have, or with a scheme (``s3a://``), is passed on as it is.
    spec : VisitSpec
    session : Session
    ready : callable
        Called before anything is asked of the cluster: an error unless it can answer.

    Raises
    ------
    SourceError
        Nothing there, or a column is missing or of a type whose texts depend on who reads it.
    UsageError
        A data frame of another session.
    """
    if is_frame(source):
        if source.sparkSession is not session.spark:
            raise UsageError(
                "the visits are a data frame of another Spark session. Give that one: engine = frame.sparkSession."
            )
        ready()
        return _framed(source, "the Spark DataFrame", spec, session)
    paths = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(paths, list | tuple) or not all(isinstance(path, str | os.PathLike) for path in paths):
        return None
    texts = [os.fspath(path) for path in paths]
    if any("://" in text for text in texts) or not (session.near or all(map(_here, texts))):
        ready()
        return _far(texts, spec, session)
    opened = open_source(source, spec.layer)
    parts = opened.parts if isinstance(opened, SeveralSource) else (opened,)
    if all(isinstance(part, ParquetSource) for part in parts):
        ready()
        return _parquet(opened, parts, spec, session)
    if all(isinstance(part, CsvSource) and part.path is not None for part in parts):
        ready()
        return _csv(opened, parts, spec, session)
    return None


def _here(text: str) -> bool:
    return text == "-" or Path(text.partition("|")[0]).exists() or bool(glob(text, recursive=True))


def _parquet(opened: Source, parts: Sequence[Any], spec: VisitSpec, session: Session) -> Distributed:
    layout = _layout(opened, spec)
    for column in layout.columns:
        _check_type(opened.name, column, opened.columns[column])
    addresses = [_address(part.path, session) for part in parts]
    texts = {c for c in layout.columns if pa.types.is_dictionary(opened.columns[c])}
    frame = session.job(lambda: _selected(session.spark.read.parquet(*addresses), layout, texts))
    rows = sum(pq.read_metadata(part.path).num_rows for part in parts)
    return Distributed(frame, layout, opened.digest() or "", rows=rows)


def _csv(opened: Source, parts: Sequence[Any], spec: VisitSpec, session: Session) -> Distributed:
    """One frame for each kind of header: Spark goes by the position of a column, not by its name."""
    layout = _layout(opened, spec)

    def read() -> Any:
        frames = []
        for (delimiter, *names), same in groupby(parts, lambda part: (part.delimiter, *part.columns)):
            schema = ", ".join(f"{_quoted(name)} string" for name in names)
            reader = session.spark.read.options(**CSV, sep=delimiter).schema(schema)
            frames.append(_selected(reader.csv([_address(part.path, session) for part in same]), layout))
        return reduce(lambda one, other: one.unionAll(other), frames)

    return Distributed(session.job(read), layout, opened.digest() or "", csv=True)


def _far(texts: list[str], spec: VisitSpec, session: Session) -> Distributed:
    """Files that this machine does not see; what they hold is what Spark says of them."""
    if spec.layer is not None:
        raise SourceError(f"expected a file with layers for layer {spec.layer!r}, got {listed(texts, 3)}.")
    bare = [text.lower().rstrip("/") for text in texts]
    csv = all(text.endswith(TEXT) for text in bare)
    ends = [Path(text).suffix for text in bare]
    if not csv and not all(text.endswith(PARQUET) or not end for text, end in zip(bare, ends, strict=True)):
        raise SourceError(
            f"expected Parquet or CSV files on the cluster, got {listed(texts, 3)}. "
            "Other formats are read from this machine."
        )

    def read() -> Any:
        if not csv:
            return session.spark.read.option("recursiveFileLookup", "true").parquet(*texts)
        first = session.spark.read.text(texts).limit(1).toArrow().column(0).to_pylist()
        options = {**CSV, "enforceSchema": "false", "sep": delimiter_of("".join(first))}
        return session.spark.read.options(**options).csv(texts)

    return _framed(session.job(read), listed(texts, 3), spec, session, csv=csv)


def _framed(frame: Any, name: str, spec: VisitSpec, session: Session, csv: bool = False) -> Distributed:
    fields = session.job(lambda: list(frame.schema.fields))
    if not fields:
        raise SourceError(f"expected visits at {name}, got nothing. Check the path.")
    names = [each.name for each in fields]
    described = Described(
        name, {each.name: each.dataType for each in fields}, frozenset(n for n in names if names.count(n) > 1)
    )
    layout = _layout(described, spec)
    for column in layout.columns:
        kind = described.columns[column]
        if kind.typeName() not in PLAIN:
            raise _other_text(name, column, kind.simpleString())
    return Distributed(session.job(lambda: _selected(frame, layout)), layout, csv=csv)


def _layout(described: Any, spec: VisitSpec) -> Layout:
    layout = Layout.of(described, spec)
    if isinstance(described, SeveralSource):
        described.check(layout.columns)
    return layout


def _selected(frame: Any, layout: Layout, texts: Container[str] = ()) -> Any:
    """The columns of the layout under plain names; `texts` stand in the file as dictionaries, which Sail keeps."""
    taken = (f"CAST({_quoted(c)} AS string)" if c in texts else _quoted(c) for c in layout.columns)
    return frame.selectExpr(*(f"{column} AS c{i}" for i, column in enumerate(taken)))


def _check_type(name: str, column: str, kind: pa.DataType) -> None:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_temporal(kind) and not pa.types.is_date32(kind):
        raise _other_text(name, column, str(kind))


def _other_text(name: str, column: str, kind: str) -> SourceError:
    return SourceError(
        f"expected texts, numbers, dates or true and false in column {column!r} of {name}, got {kind}: its text "
        "would not be that of the file. Write it as text first."
    )


def _quoted(name: str) -> str:
    doubled = name.replace("`", "``")
    return f"`{doubled}`"


def _address(path: Path, session: Session) -> str:
    """A path of this machine as Spark takes it, in which some letters stand for others."""
    text = os.path.abspath(path)
    if session.connect and re.search(r"[][*?{}\\#%]", text):
        raise SourceError(
            f"expected a path without the letters [ ] * ? {{ }} \\ # % for {session.name}, got {text!r}: "
            "its server takes them for something else. Rename the file."
        )
    return "file://" + re.sub(r"([][*?{}\\])", r"\\\1", text)
