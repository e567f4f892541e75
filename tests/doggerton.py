"""The fixture city as the oracle takes it."""

from __future__ import annotations

import csv
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import h3
import oracles
import pandas as pd
import pyarrow.parquet as pq

FIXTURES = Path(__file__).parent.parent / "fixtures"


def policy() -> dict[str, Any]:
    """The run of the fixture."""
    return tomllib.loads((FIXTURES / "policy.toml").read_text(encoding="utf-8"))


def taxonomy() -> list[tuple[str, ...]]:
    """Rows of the taxonomy, the header first."""
    with (FIXTURES / "poi_taxonomy.csv").open(encoding="utf-8", newline="") as file:
        return [tuple(row) for row in csv.reader(file)]


@cache
def visits() -> pd.DataFrame:
    """The visits that can be counted, with their cell."""
    frame = pq.read_table(FIXTURES / "visits.parquet").to_pandas()
    frame = frame[frame.person_id.notna() & frame.lon.notna() & frame.lat.between(-90, 90)]
    cells = [h3.latlng_to_cell(lat, lon, 8) for lat, lon in zip(frame.lat, frame.lon, strict=True)]
    return frame.assign(cell=cells)


def table(**changes: Any) -> oracles.Table:
    """The city under its policy, some of it changed."""
    run = policy()
    poi, income = run["attribute"]
    attributes = [
        oracles.Declared(poi["column"], taxonomy=tuple(taxonomy()[1:]), missing=tuple(poi["missing"])),
        oracles.Declared(income["column"], "ordinal", tuple(income["order"]), gates=income["gates"]),
    ]
    cells = set(visits().cell)
    near = {order: {c: (set(h3.grid_disk(c, order)) & cells) - {c} for c in cells} for order in (1, 2, 3)}
    rows = [
        (row["cell"], row["person_id"], {a.column: row[a.column] for a in attributes})
        for row in visits().to_dict("records")
    ]
    settings = {**run["gates"], **run["remedies"], "reference": run["reference"], **changes}
    return oracles.tabulate(rows, near, attributes, settings)
