"""Small Spark clusters on this machine, on free ports, whose workers have no geodiv; and engines that use them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sysconfig
import tempfile
import time
import venv
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

NEEDED = "GEODIV_NEEDS_SPARK"
"""Set by the continuous integration: then a missing partner is a failure, not a skipped test."""


def missing(what: str) -> Any:
    """Skip the test, or fail it where Spark is needed."""
    if os.environ.get(NEEDED):
        pytest.fail(f"{what}; .ci/spark.sh installs it")
    pytest.skip(what)


@contextmanager
def bare_python() -> Iterator[Path]:
    """A Python with the packages of this one but without geodiv."""
    with tempfile.TemporaryDirectory(prefix="bare-") as folder:
        home = Path(folder) / "python"
        venv.create(home, symlinks=True, with_pip=False)
        here = {Path(sysconfig.get_paths()[name]) for name in ("purelib", "platlib")}
        (there,) = home.glob("lib/python*/site-packages")
        for entry in (entry for site in here for entry in site.iterdir()):
            if not re.match(r"geodiv|_?_editable|.*\.pth$", entry.name) and not (there / entry.name).exists():
                (there / entry.name).symlink_to(entry)
        yield home / "bin" / "python"


def plain_environment(**more: str) -> dict[str, str]:
    """The environment without what leads a Python to geodiv."""
    return {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")} | more


@contextmanager
def started(command: list[str], log: Path, pattern: str, **environment: str) -> Iterator[tuple[Any, str]]:
    """A server as a child process of its own group, once its log has a line that fits; ended with what it started."""
    with log.open("wb") as file:
        server = subprocess.Popen(
            command, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=log.parent,
            env=plain_environment(**environment), start_new_session=True,
        )  # fmt: skip
    try:
        yield server, awaited(server, log, pattern)
    finally:
        end(server)


def awaited(server: Any, log: Path, pattern: str, seconds: float = 120) -> str:
    """What the first group of a pattern finds in a log, waiting for it."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[1]
        if server.poll() is not None:
            break
        time.sleep(0.05)
    pytest.fail(f"{log.name}: no {pattern!r} in\n{log.read_text(errors='replace')[-3000:]}")


def end(server: Any) -> None:
    """End a server and its children at once."""
    with suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    server.wait()


# --- Sail ---------------------------------------------------------------------------------------------------


@contextmanager
def sail(first: str = "") -> Iterator[tuple[str, Any]]:
    """The address and the process of a Sail server: Spark Connect without a JVM.

    Parameters
    ----------
    first : str
        Code that its Python runs when it starts.
    """
    for package in ("pyspark", "pysail", "grpc"):
        if find_spec(package) is None:
            missing(f"{package} is not installed")
    if not _sail_knows_this_spark():
        missing("Sail does not know this version of pyspark")
    code = "import pysail.spark; pysail.spark.SparkConnectServer('127.0.0.1', 0).start(background=False)"
    with bare_python() as python, tempfile.TemporaryDirectory(prefix="sail-") as folder:
        (Path(folder) / "sitecustomize.py").write_text(first)
        log = Path(folder) / "sail.log"
        command = [str(python), "-c", code]
        pattern = r"server on (127\.0\.0\.1:\d+)"
        with started(command, log, pattern, RUST_LOG="info", PYTHONPATH=folder) as (server, address):
            yield f"sc://{address}", server


@contextmanager
def sail_engine(folder: Path) -> Iterator[Any]:
    """An engine on a Sail server."""
    from geodiv.engines.spark import SparkEngine

    with sail() as (address, _), closing(SparkEngine(address, folder=folder, few=0)) as engine:
        yield engine


@cache
def _sail_knows_this_spark() -> bool:
    """Sail 0.7 looks at the pyspark that is installed beside it, and knows 3.5 to 4.2."""
    import pyspark

    return tuple(map(int, pyspark.__version__.split(".")[:2])) <= (4, 2)


# --- Spark --------------------------------------------------------------------------------------------------


def need_java() -> None:
    """Skip the test where Spark is not installed, or not asked for: a JVM takes seconds to start, and a core."""
    if not os.environ.get(NEEDED):
        pytest.skip(f"starts a JVM: set {NEEDED}=1")
    for package in ("pyspark", "py4j"):
        if find_spec(package) is None:
            missing(f"{package} is not installed")
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        missing("Java is not installed")


@contextmanager
def environment(**values: str) -> Iterator[None]:
    """Variables of the environment in a block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def local_engine() -> Iterator[Any]:
    """An engine on a local Spark of two cores."""
    need_java()
    from geodiv.engines.spark import SparkEngine

    with ExitStack() as stack:
        python = stack.enter_context(bare_python())
        stack.enter_context(environment(PYSPARK_PYTHON=str(python)))
        yield stack.enter_context(closing(SparkEngine("local[2]", few=0)))


class Standalone:
    """A master and its workers, each with one core and 1 GB."""

    def __init__(self, address: str, python: Path, workers: list[Any]) -> None:
        self.address, self.python, self.workers = address, python, workers


@contextmanager
def standalone(workers: int = 2) -> Iterator[Standalone]:
    """A standalone cluster on the loopback interface."""
    need_java()
    import pyspark

    home = Path(pyspark.__file__).parent
    spark_class = str(home / "bin" / "spark-class")
    deploy = "org.apache.spark.deploy"
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="standalone-")))
        python = stack.enter_context(bare_python())
        settings = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": str(folder)}
        command = [
            spark_class,
            f"{deploy}.master.Master",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--webui-port",
            "0",
        ]
        master = started(
            command, folder / "master.log", r"Starting Spark master at (spark://\S+)", **settings
        )
        _server, address = stack.enter_context(master)
        started_ = []
        for i in range(workers):
            command = [spark_class, f"{deploy}.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0",
                       "--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work-{i}"), address]  # fmt: skip
            worker = started(
                command, folder / f"worker-{i}.log", r"(Successfully registered with master)", **settings
            )
            started_.append(stack.enter_context(worker)[0])
        yield Standalone(address, python, started_)


@contextmanager
def standalone_engine() -> Iterator[Any]:
    """An engine on a standalone cluster of two workers."""
    with standalone() as cluster, environment(PYSPARK_PYTHON=str(cluster.python)):
        from geodiv.engines.spark import SparkEngine

        with closing(SparkEngine(cluster.address, few=0)) as engine:
            yield engine


def executors(engine: Any) -> int:
    """Executors that are registered with the driver of an engine, itself apart."""
    context = engine._session.spark.sparkContext
    return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1
