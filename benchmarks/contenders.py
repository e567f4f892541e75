"""What is timed: geodiv, and what it is measured against. Each function returns seconds by stage."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def _stage(seconds: dict[str, float], name: str) -> Iterator[None]:
    start, busy = time.perf_counter(), time.process_time()
    yield
    seconds[name] = time.perf_counter() - start
    seconds[f"{name} cpu"] = time.process_time() - busy


def geodiv(path: str) -> dict[str, float]:
    """Parquet to release.gpkg, by stage; packages are imported before, as for all."""
    import geodiv as gd
    from geodiv.measures import effective_count, shares, tree_distance

    for name in gd.__all__:
        getattr(gd, name)
    seconds: dict[str, float] = {}
    with _stage(seconds, "total"):
        run = gd.read_run(Path(path).with_name("policy.toml"))
        with _stage(seconds, "tabulate"):
            table = run.tabulate(path)
        with _stage(seconds, "enforce"):
            outcome = gd.enforce(table, run.policy)
        with _stage(seconds, "write"):
            outcome.release.to_file(Path(path).with_name(f"release-{os.getpid()}.gpkg"))
    for left in Path(path).parent.glob(f"release-{os.getpid()}.*"):
        left.unlink()
    with _stage(seconds, "score"):
        gd.score(table, run.policy)
    with _stage(seconds, "two measures"):
        n = table.base.labels[0][0].toarray()
        p = shares(n)
        effective_count(p), tree_distance(p, shares(n.sum(axis=0)), table.spaces[0].tree)
    return seconds


def importing() -> dict[str, float]:
    """What ``import geodiv`` takes in a fresh process."""
    seconds: dict[str, float] = {}
    with _stage(seconds, "total"):
        import geodiv  # noqa: F401
    return seconds


def points(number: str) -> dict[str, float]:
    """H3 cells of points that are all different: geodiv, a loop over H3, polars-h3 where it is installed."""
    import importlib.util

    import h3.api.basic_int as h3
    import numpy as np

    import geodiv as gd

    rng = np.random.default_rng(1)
    size = int(float(number))
    lon, lat = 2.35 + rng.normal(0, 0.3, size), 48.85 + rng.normal(0, 0.2, size)
    gd.H3Grid(9).locate(lon[:9], lat[:9])
    seconds: dict[str, float] = {}
    with _stage(seconds, "geodiv"):
        found = gd.H3Grid(9).locate(lon, lat)
    with _stage(seconds, "loop"):
        cells = (h3.latlng_to_cell(*point, 9) for point in zip(lat.tolist(), lon.tolist(), strict=True))
        looped = np.fromiter(cells, dtype=np.int64, count=size)
    assert (found == looped).all()
    if importlib.util.find_spec("polars_h3"):
        import polars as pl
        import polars_h3 as plh3

        frame = pl.DataFrame({"lat": lat, "lon": lon})
        with _stage(seconds, "polars"):
            frame.select(plh3.latlng_to_cell("lat", "lon", 9))
    return seconds


def remedies(path: str) -> dict[str, float]:
    """Tabulating the patches and clearing them: rounds of the ladder until nothing fails, then refining."""
    import geodiv as gd

    for name in gd.__all__:
        getattr(gd, name)
    run = gd.read_run(Path(path).with_name("patches.toml"))
    seconds: dict[str, float] = {}
    with _stage(seconds, "tabulate"):
        table = run.tabulate(path)
    at: dict[str, tuple[float, float]] = {}

    def seen(stage: str, *_: int) -> None:
        at.setdefault(stage, (time.perf_counter(), time.process_time()))

    outcome = gd.enforce(table, run.policy, progress=seen)
    seconds["cells"] = len(table.cells)
    seconds["failing"] = int(outcome.rounds["failing"].iloc[0])
    for name, start, end in (("fixed point", "remedy", "refine"), ("refining", "refine", "verify")):
        seconds[name] = at[end][0] - at[start][0]
        seconds[f"{name} cpu"] = at[end][1] - at[start][1]
    return seconds


def many_values(zones: str, values: str) -> dict[str, float]:
    """Scores of many zones with many values against rings, and what scoring allocates, the scores included."""
    import tracemalloc

    import h3.api.basic_int as h3
    import numpy as np
    import pyarrow as pa

    import geodiv as gd

    rng = np.random.default_rng(1)
    size, v = int(float(zones)), int(values)
    steps = int(np.sqrt(size / 3)) + 1
    ids = np.array(h3.grid_disk(h3.latlng_to_cell(48.85, 2.35, 9), steps)[:size])
    cell, person = np.repeat(ids, 30), rng.integers(0, size, 30 * size)
    names = pa.array([f"v{i:03}" for i in range(v)])
    visits = pa.table(
        {
            "cell": pa.array([f"{i:x}" for i in ids.tolist()]).take(pa.array(np.repeat(np.arange(size), 30))),
            "person": person,
            "value": names.take(pa.array(np.minimum(rng.exponential(v / 5, len(cell)).astype(int), v - 1))),
        }
    )
    grid, attributes = gd.H3Grid(9, column="cell"), [gd.Nominal("value")]
    table = gd.tabulate(visits, grid=grid, person="person", attributes=attributes)
    policy = gd.Policy(l_min=3, t_max=0.5, shift_max=0.3, reference=gd.Ring(max_order=3))
    table.geometry()
    seconds: dict[str, float] = {}
    with _stage(seconds, "score"):
        gd.score(table, policy)
    tracemalloc.start()
    gd.score(table, policy)
    seconds["extra MB"] = tracemalloc.get_traced_memory()[1] / 1e6
    return seconds


def floor(path: str) -> dict[str, float]:
    """The floor: read, snap and count distinct persons per (cell, category) in lazy polars with hashed persons."""
    import polars as pl
    import polars_h3 as plh3

    seconds: dict[str, float] = {}
    with _stage(seconds, "total"):
        visits = pl.scan_parquet(path).select(
            plh3.latlng_to_cell("lat", "lon", 9).alias("cell"),
            "category",
            pl.col("person_id").hash().alias("person"),
        )
        pairs = visits.unique()
        by_value = pairs.group_by("cell", "category").agg(pl.len())
        by_cell = pairs.select("cell", "person").unique().group_by("cell").agg(pl.len())
        pl.collect_all([by_value, by_cell])
    return seconds


def textbook(path: str) -> dict[str, float]:
    """The code of the textbook: one point at a time, groupby.nunique, a Python loop over the cells."""
    import h3
    import numpy as np
    import pandas as pd

    seconds: dict[str, float] = {}
    with _stage(seconds, "total"):
        visits = pd.read_parquet(path)
        with _stage(seconds, "tabulate"):
            visits["cell"] = [
                h3.latlng_to_cell(lat, lon, 9) for lat, lon in zip(visits["lat"], visits["lon"], strict=True)
            ]
            counts = visits.groupby(["cell", "category"])["person_id"].nunique()
        with _stage(seconds, "score"):
            whole = counts.groupby("category").sum()
            q = whole / whole.sum()
            found = {}
            for cell, n in counts.groupby(level=0):
                n = n.droplevel(0)
                p = n / n.sum()
                found[cell] = (
                    float(np.exp(-(p * np.log(p)).sum())),
                    float(0.5 * p.reindex(q.index, fill_value=0).sub(q).abs().sum()),
                )
    return seconds


def scoring(zones: str, values: str) -> dict[str, float]:
    """The measures of many zones against local references, and the bare numpy of the same formulas."""
    import numpy as np
    from scipy import sparse, special

    from geodiv.measures import effective_count, max_shift, shares, spread, tree_distance, within_class

    rng = np.random.default_rng(1)
    z, v = int(float(zones)), int(values)
    n = rng.poisson(3, (z, v)).astype(float) + 1
    ring = sparse.random_array((z, z), density=6 / z, rng=rng, format="csr")
    up = np.arange(v)
    from geodiv.ground import star

    tree = star(v)

    def ours() -> None:
        q = ring @ n
        p = shares(n)
        within = within_class(q, up, v, n.sum(axis=0))
        prior, belief = spread(shares(q), within, up), spread(p, within, up)
        effective_count(belief)
        tree_distance(belief, prior, tree)
        max_shift(belief, prior, np.ones(v, bool))

    def bare() -> None:
        q = ring @ n
        p = n / n.sum(axis=1, keepdims=True)
        r = q / np.maximum(q.sum(axis=1, keepdims=True), 1e-300)
        gap = np.abs(p - r)
        np.exp(special.entr(p).sum(axis=1)), 0.5 * gap.sum(axis=1), gap.max(axis=1)

    return {"geodiv": _best(ours), "numpy": _best(bare)}


def closeness(zones: str) -> dict[str, float]:
    """t-closeness of all cells against the whole, as geodiv takes it."""
    import numpy as np

    from geodiv.ground import star
    from geodiv.measures import shares, tree_distance

    n = _cells(int(zones))
    return {
        "geodiv": _best(lambda: tree_distance(shares(n), shares(n.sum(axis=0)), star(n.shape[1])), np.inf)
    }


def pycanon(zones: str) -> dict[str, float]:
    """t-closeness of the same cells by pyCANON, in an environment of its own."""
    import numpy as np
    import pandas as pd
    from pycanon import anonymity

    n = _cells(int(zones)).astype(int)
    cell, value = np.nonzero(n)
    times = n[cell, value]
    frame = pd.DataFrame(
        {"cell": np.repeat(cell, times).astype(str), "value": np.repeat(value, times).astype(str)}
    )
    seconds: dict[str, float] = {}
    with _stage(seconds, "pycanon"):
        anonymity.t_closeness(frame, ["cell"], ["value"])
    return seconds


def _cells(zones: int) -> Any:
    import numpy as np

    return np.random.default_rng(1).poisson(2, (zones, 10)).astype(float) + 1


def _best(function: Callable[[], Any], *_: Any) -> float:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)
