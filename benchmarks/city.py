"""The synthetic city of the benchmarks: clustered districts, places of 30 categories, persons with a home district."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import h3.api.basic_int as h3
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CATEGORIES = 30
CLASSES = 6


def city(visits: int, seed: int = 1) -> pa.Table:
    """The visits of a city: person_id, lon, lat, category; its size grows with their number.

    Parameters
    ----------
    visits : int
        Rows; there are visits / 20 persons and visits / 10 places.
    seed : int
    """
    return next(parts(visits, 1, seed))


def parts(visits: int, number: int, seed: int = 1) -> Iterator[pa.Table]:
    """The visits of a city as so many tables of about the same length: any person may be in any of them."""
    rng = np.random.default_rng(seed)
    persons, places = max(visits // 20, 1), max(visits // 10, 1)
    districts = max(places // 2000, 4)
    radius = 0.02 * np.sqrt(districts)
    x, y = rng.uniform(-radius, radius, (2, districts))
    mix = rng.dirichlet(np.full(CATEGORIES, 2.0), districts)
    at = np.sort(rng.integers(0, districts, places))
    start = np.searchsorted(at, np.arange(districts + 1))
    cut = np.cumsum(mix, axis=1)[at]
    category = (rng.random(places)[:, None] > cut[:, :-1]).sum(axis=1)
    lon = 2.35 + x[at] + rng.normal(0, 0.012, places)
    lat = 48.85 + (y[at] + rng.normal(0, 0.012, places)) * 0.66
    names = pa.array([f"p{i:07d}" for i in range(persons)])
    labels = pa.array([f"category {i:02d}" for i in range(CATEGORIES)])
    home = None
    for rows in np.diff(np.linspace(0, visits, number + 1).astype(np.int64)):
        person = (persons * rng.random(rows) ** 1.5).astype(np.int64)
        home = rng.integers(0, districts, persons) if home is None else home
        where = np.where(rng.random(rows) < 0.6, home[person], rng.integers(0, districts, rows))
        room = np.maximum(start[where + 1] - start[where], 1)
        place = np.minimum(start[where] + (rng.random(rows) * room).astype(np.int64), places - 1)
        yield pa.table(
            {
                "person_id": names.take(pa.array(person)),
                "lon": lon[place],
                "lat": lat[place],
                "category": labels.take(pa.array(category[place])),
            }
        )


def write(folder: Path, visits: int, files: int = 1) -> Path:
    """The city of this size, made once, with its taxonomy and policy beside it: a file, or a folder of files."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (f"city-{visits}.parquet" if files == 1 else f"city-{visits}-in-{files}")
    if not path.exists():
        made = path.with_name(f"{path.name}.part")
        shutil.rmtree(made, ignore_errors=True)
        if files > 1:
            made.mkdir()
        for i, table in enumerate(parts(visits, files)):
            pq.write_table(table, made if files == 1 else made / f"{i:03}.parquet")
        made.rename(path)
    write_taxonomy(folder)
    (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
    return path


def patches(folder: Path, cells: int, odd: float = 0.13, visits: int = 100) -> Path:
    """Visits to a disk of H3 cells, alike but for a share in which most are of one category: a fifth then fails."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"patches-{cells}.parquet"
    if not path.exists():
        rng = np.random.default_rng(1)
        disk = h3.grid_disk(h3.latlng_to_cell(48.85, 2.35, 9), int(np.sqrt(cells / 3)) + 1)[:cells]
        lat, lon = np.array([h3.cell_to_latlng(cell) for cell in disk]).T
        cell = np.repeat(np.arange(cells), visits)
        same = (rng.random(cells) < odd)[cell] & (rng.random(len(cell)) < 0.9)
        category = np.where(same, (cell * 7) % CATEGORIES, rng.integers(0, CATEGORIES, len(cell)))
        table = {
            "person_id": pa.array(rng.integers(0, cells * 5, len(cell))),
            "lon": lon[cell] + rng.normal(0, 1e-4, len(cell)),
            "lat": lat[cell] + rng.normal(0, 1e-4, len(cell)),
            "category": pa.array([f"category {i:02d}" for i in range(CATEGORIES)]).take(pa.array(category)),
        }
        pq.write_table(pa.table(table), path)
    write_taxonomy(folder)
    (folder / "patches.toml").write_text(POLICY, encoding="utf-8")
    return path


def write_taxonomy(folder: Path) -> None:
    """The taxonomy of the categories, six classes of five."""
    rows = [f"category {i:02d},class {i % CLASSES}" for i in range(CATEGORIES)]
    (folder / "taxonomy.csv").write_text("\n".join(["value,level1", *rows]) + "\n", encoding="utf-8")


POLICY = """\
[visits]
person = "person_id"
lon = "lon"
lat = "lat"
[grid]
kind = "h3"
resolution = 9
[[attribute]]
column = "category"
kind = "nominal"
taxonomy = "taxonomy.csv"
[gates]
k_min = 10
l_min = 3
t_max = 0.4
shift_max = 0.3
incidence_max = 0.8
[reference]
scope = "ring"
order = 1
max_order = 3
min_persons = 30
"""

if __name__ == "__main__":
    write(Path(sys.argv[1]), int(float(sys.argv[2])), *map(int, sys.argv[3:]))
