"""Reading an internal work file back: what `geodiv report` makes its internal variant of."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyogrio

from .columns import as_read, work_tables
from .errors import SourceError
from .geopackage import RELEASE_URI, WORK_URI, reading
from .metadata import parsed


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """What a work file holds. Internal.

    Parameters
    ----------
    cells : GeoDataFrame, or DataFrame where the grid has no geometry
    scores, final_scores, rounds, intake : DataFrame
        final_scores and rounds are empty in a file of scores alone.
    metadata : dict
        Of the release, or title, grid and policy alone.
    """

    cells: pd.DataFrame
    scores: pd.DataFrame
    final_scores: pd.DataFrame
    rounds: pd.DataFrame
    intake: pd.DataFrame
    metadata: Mapping[str, Any]


def read_work(path: str | Path) -> Work:
    """The work file that `Outcome.to_work` or ``geodiv score`` wrote.

    Raises
    ------
    SourceError
        The file is missing, or no work file of geodiv.
    """
    path = Path(path)
    stored = stored_json(path)
    if WORK_URI not in stored:
        raise SourceError(
            f"expected a work file of geodiv in '{path}', got another kind of file. "
            "Give one that `geodiv score -o` or `geodiv enforce --work` wrote."
        )
    with reading(f"the tables of a work file in '{path}'"):
        cells = pyogrio.read_dataframe(path, layer="cells")
        names = ("scores", "final_scores", "rounds", "intake")
        tables = {name: pyogrio.read_dataframe(path, layer=name, read_geometry=False) for name in names}
    known = work_tables(cells.columns)
    return Work(
        cells=as_read(cells, known["cells"]),
        metadata=parsed(stored[WORK_URI], f"'{path}'"),
        **{name: as_read(table, known[name]) for name, table in tables.items()},
    )


def is_work(path: str | Path) -> bool:
    """Whether a file is an internal work file."""
    return WORK_URI in stored_json(Path(path))


def stored_json(path: Path) -> dict[str, str]:
    """The JSON texts of geodiv in a GeoPackage, by their URI; empty for any other file.

    Raises
    ------
    SourceError
        There is no such file.
    """
    if not path.is_file():
        raise SourceError(f"expected a release or a work file at '{path}', got no such file. Check the path.")
    query = "SELECT md_standard_uri, metadata FROM gpkg_metadata WHERE md_standard_uri IN (?, ?)"
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            return dict(database.execute(query, [RELEASE_URI, WORK_URI]).fetchall())
    except sqlite3.DatabaseError:
        return {}
