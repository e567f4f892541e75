"""The DuckDB engine at size: seconds and peak memory, beside bare DuckDB on visits that are already snapped."""

from __future__ import annotations

import argparse
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from city import write
from measure import Measured, measure

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
    print("| visits | from coordinates | of these reading | enforce | from cell ids | bare DuckDB | ratio |")
    print("|---|---|---|---|---|---|---|")
    with TemporaryDirectory() as temporary:
        for size in given.visits:
            folder = given.folder or Path(temporary)
            city = write(folder, int(float(size)), max(int(float(size)) // FILE, 2))
            snap(city)
            print(_row(size, str(city)), flush=True)


def _row(size: str, city: str) -> str:
    bare = measure("engines", "bare", f"{city}-snapped")
    ids = measure("engines", "counted", f"{city}-snapped", "cell")
    whole = measure("engines", "counted", city, "")
    seconds = (f"{whole.seconds[stage]:.1f} s" for stage in ("read", "enforce"))
    cells = [size, _said(whole), *seconds, _said(ids), _said(bare)]
    return f"| {' | '.join(cells)} | x {ids.seconds['tabulate'] / bare.seconds['tabulate']:.2f} |"


def _said(found: Measured) -> str:
    return f"{found.seconds['tabulate']:.1f} s, peak {found.peak_mb:,.0f} MB"


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
    """Tabulate with the engine, from coordinates or from a column of cell ids, and enforce."""
    import geodiv as gd

    run = gd.read_run(Path(city).parent / "policy.toml")
    if column:
        visits = {k: v for k, v in run.visits.items() if k not in ("lon", "lat")}
        run = replace(run, grid=gd.H3Grid(9, column=column), visits=visits)
    stages, start = {}, time.perf_counter()

    def stage(name: str, done: int, total: int) -> None:
        stages.setdefault(name, time.perf_counter() - start) if total else None

    with closing(gd.DuckDBEngine(memory_limit=MEMORY, threads=THREADS)) as engine:
        table = run.tabulate(city, engine=engine, progress=stage)
        tabulated = time.perf_counter()
        if not column:
            run.enforce_table(table)
        enforced = time.perf_counter() - tabulated
    return {"read": stages["read"], "tabulate": tabulated - start, "enforce": enforced}


def bare(city: str) -> dict[str, float]:
    """The same questions asked of DuckDB alone, with the same limits."""
    import duckdb

    with TemporaryDirectory() as folder:
        options = {"memory_limit": MEMORY, "threads": THREADS, "temp_directory": f"{folder}/spilled"}
        start = time.perf_counter()
        with closing(duckdb.connect(f"{folder}/bare.duckdb", config=options)) as database:
            database.execute("SET enable_progress_bar = false")
            for question in BARE:
                database.execute(question.format(city)).fetchnumpy()
        return {"tabulate": time.perf_counter() - start}


if __name__ == "__main__":
    main()
