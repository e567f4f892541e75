"""The Spark engine on a standalone cluster. In a file of its own: one process has one Spark session at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any

import clusters
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_engines_spark import MEMORY, of, same, visits

import geodiv as gd
from geodiv.engines.protocol import Groups
from geodiv.engines.spark import SparkEngine


@pytest.fixture
def cluster() -> Iterator[clusters.Standalone]:
    """A standalone cluster of two workers, whose Python is that of the driver too."""
    with clusters.standalone() as found, clusters.environment(PYSPARK_PYTHON=str(found.python)):
        yield found


def test_a_worker_that_is_killed_changes_nothing(cluster: clusters.Standalone, tmp_path: Path) -> None:
    """Two executors work; one dies with its worker in the middle of a job, and nobody notices but the clock."""
    rng = np.random.default_rng(7)
    for i in range(24):
        n = 30_000
        table = pa.table({
            "cell": rng.integers(0, 50, n).astype(str), "person": rng.integers(0, 5000, n).astype(str),
            "activity": rng.integers(0, 9, n).astype(str),
        })  # fmt: skip
        pq.write_table(table, tmp_path / f"{i:02}.parquet")
    with closing(SparkEngine(cluster.address, few=0)) as engine:
        same(engine, tmp_path / "00.parquet", of())
        assert clusters.executors(engine) == 2
        status = engine._session.spark.sparkContext.statusTracker()
        found: list[Any] = []
        work = Thread(target=lambda: found.append(engine.reduce(tmp_path, of())))
        work.start()
        killed = False
        while work.is_alive() and not killed:
            stages = [status.getStageInfo(stage) for stage in status.getActiveStageIds()]
            if any(stage and 1 < stage.numCompletedTasks < stage.numTasks - 2 for stage in stages):
                clusters.end(cluster.workers[0])
                killed = True
            sleep(0.005)
        work.join()
        assert killed
        expected = MEMORY.reduce(tmp_path, of())
        assert found[0].keys.tolist() == expected.keys.tolist()
        assert found[0].persons.tolist() == expected.persons.tolist()
        for name in ("cell", "value", "persons", "visits"):
            assert getattr(found[0].pairs[0], name).tolist() == getattr(expected.pairs[0], name).tolist()
        both = Groups(None, np.arange(50), None, np.zeros(50, dtype=np.int64), 1)
        assert engine.count(found[0], both).tolist() == MEMORY.count(expected, both).tolist()


def test_a_cluster_without_workers_is_not_waited_for(tmp_path: Path) -> None:
    pq.write_table(visits(), tmp_path / "v.parquet")
    with ExitStack() as stack:
        cluster = stack.enter_context(clusters.standalone(workers=0))
        engine = stack.enter_context(closing(SparkEngine(cluster.address, patience=3)))
        with pytest.raises(gd.UsageError, match="no worker answered in 3 s"):
            engine.reduce(tmp_path / "v.parquet", of())
