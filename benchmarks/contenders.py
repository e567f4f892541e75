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
    start = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - start


def geodiv(path: str) -> dict[str, float]:
    """Parquet to release.gpkg, by stage."""
    import geodiv as gd

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
