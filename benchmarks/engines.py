"""The DuckDB engine at size: seconds and peak memory, beside bare DuckDB on visits that are already snapped."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from city import write
from measure import Measured, in_turn

MEMORY, THREADS, FILE = "4GB", 2, 6_250_000
BARE = (
    "CREATE TABLE c AS SELECT cell, category, person_id, COUNT(*) AS visits FROM read_parquet('{}/*.parquet') "
    "GROUP BY cell, category, person_id",
    "SELECT cell, category, COUNT(*), SUM(visits) FROM c GROUP BY cell, category",
    "SELECT cell, COUNT(*) FROM (SELECT DISTINCT cell, person_id FROM c) GROUP BY cell",
)
"""What whoever counts distinct persons must ask: contributions, then persons by cell and value, and by cell."""


def main() -> None:
    """Read the arguments, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("visits", nargs="*", default=["1e6"], help="sizes of the cities")
    parser.add_argument("--folder", type=Path, help="where the cities are kept; a temporary folder otherwise")
    given = parser.parse_args()
    print("| visits | from coordinates | from cell ids | bare DuckDB | ratio | by processors |")
    print("|---|---|---|---|---|---|")
    with TemporaryDirectory() as temporary:
        for size in given.visits:
            folder = given.folder or Path(temporary)
            city = write(folder, int(float(size)), max(int(float(size)) // FILE, 2))
            snap(city)
            print(_row(size, str(city)), flush=True)


def _row(size: str, city: str) -> str:
    whole, ids, bare = in_turn(
        ("engines", "counted", city, ""),
        ("engines", "counted", f"{city}-snapped", "cell"),
        ("engines", "bare", f"{city}-snapped"),
    )
    ratios = (f"x {ids.seconds[each] / bare.seconds[each]:.2f}" for each in ("total", "total cpu"))
    return f"| {' | '.join([size, *map(_said, (whole, ids, bare)), *ratios])} |"


def _said(found: Measured) -> str:
    busy = found.seconds["total cpu"]
    return f"{found.seconds['total']:.1f} s, {busy:.1f} s of processors, peak {found.peak_mb:,.0f} MB"


def snap(city: Path) -> None:
    """The same visits with H3 cells for coordinates, in a folder beside them."""
    from geodiv import H3Grid

    folder = city.with_name(f"{city.name}-snapped")
    folder.mkdir(exist_ok=True)
    for file in sorted(city.iterdir()):
        if not (folder / file.name).exists():
            visits = pq.read_table(file)
            cell = pa.array(H3Grid(9).locate(visits["lon"].to_numpy(), visits["lat"].to_numpy()))
            pq.write_table(
                visits.select(["person_id", "category"]).append_column("cell", cell), folder / file.name
            )


def counted(city: str, column: str) -> dict[str, float]:
    """Tabulate with the engine, from coordinates or from a column of cell ids."""
    import geodiv as gd

    run = gd.read_run(Path(city).parent / "policy.toml")
    if column:
        visits = {k: v for k, v in run.visits.items() if k not in ("lon", "lat")}
        run = replace(run, grid=gd.H3Grid(9, column=column), visits=visits)
    with closing(gd.DuckDBEngine(memory_limit=MEMORY, threads=THREADS)) as engine:
        return _timed(lambda: run.tabulate(city, engine=engine))


def bare(city: str) -> dict[str, float]:
    """The same questions asked of DuckDB alone, with the same limits."""
    import duckdb

    with TemporaryDirectory() as folder:
        options = {"memory_limit": MEMORY, "threads": THREADS, "temp_directory": f"{folder}/spilled"}

        def ask() -> None:
            with closing(duckdb.connect(f"{folder}/bare.duckdb", config=options)) as database:
                database.execute("SET enable_progress_bar = false")
                for question in BARE:
                    database.execute(question.format(city)).fetchnumpy()

        return _timed(ask)


def _timed(work: Callable[[], object]) -> dict[str, float]:
    start, busy = time.perf_counter(), time.process_time()
    work()
    return {"total": time.perf_counter() - start, "total cpu": time.process_time() - busy}


if __name__ == "__main__":
    main()
