"""Sessions: a live one as it is, or one that is started for an address and stopped with its engine."""

from __future__ import annotations

import atexit
import importlib.util
import os
import re
import shutil
import socket
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from multiprocessing import TimeoutError as LateError
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from ...errors import GeodivError, UsageError
from ...interrupts import uninterrupted
from .failures import explained
from .jobs import job

T = TypeVar("T")
OLDEST = (4, 1)
LOCAL = re.compile(r"local(\[(\d+|\*)(, *\d+)?\])?")
PORTS = {"spark": 7077, "sc": 15002}
LOOPBACK = ("localhost", "127.0.0.1", "::1")
KNOCK = 10.0
"""Seconds for a server to take a connection."""
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
}
"""Of a session that is ours; none changes a count."""


@dataclass(frozen=True, slots=True, eq=False)
class Session:
    """A Spark session.

    Parameters
    ----------
    spark : SparkSession
    name : str
        As messages call it, without what may be secret in an address.
    ours : bool
        Whether it was started here, and is to be stopped.
    near : bool
        Whether its server runs on this machine.
    hosts : tuple of (str, int)
        Of the servers; empty where they are not known.
    """

    spark: Any
    name: str
    ours: bool
    near: bool
    hosts: tuple[tuple[str, int], ...] = ()

    @property
    def connect(self) -> bool:
        """Whether it is one of Spark Connect."""
        return ".connect." in type(self.spark).__module__

    @property
    def gone(self) -> bool:
        """Whether the server of a Spark Connect session takes no more connections."""
        return self.connect and _refusal(self.hosts) is not None

    def job(
        self,
        work: Callable[[], T],
        seconds: float | None = None,
        late: Callable[[], GeodivError] | None = None,
    ) -> T:
        """What `work` gives, which asks something of the session; see `jobs.job`. Its errors are geodiv's."""
        with explained(self.name):
            return job(self.spark, work, seconds, late)

    def stop(self) -> None:
        """Stop the session if it was started here."""
        if self.ours and self.gone:
            _abandon(self.spark)
        elif self.ours:
            self.spark.stop()


def is_address(text: str) -> bool:
    """Whether a text is an address of Spark: ``spark://host:port``, ``sc://host:port``, ``local[2]``.

    Examples
    --------
    >>> [is_address(text) for text in ("local[2]", "sc://h:15002", "spark://h:7077", "localhost", "memory")]
    [True, True, True, False, False]
    """
    return bool(LOCAL.fullmatch(text)) or text.startswith(("spark://", "sc://"))


def session_of(where: Any, patience: float) -> Session:
    """The session of an address, or a live one.

    Raises
    ------
    UsageError
        No such address, nobody there, a package or Java is missing, Spark is older than 4.1, or another session
        runs in this process.
    """
    _check_package()
    # its own use of pandas; this engine goes by Arrow
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    if not isinstance(where, str):
        session = Session(where, "the Spark session", ours=False, near=False)
        near = session.connect and where.client.host in LOOPBACK
        return _checked(replace(session, near=near))
    if not is_address(where):
        raise UsageError(
            f"expected Spark as spark://host:port, sc://host:port, local or local[2], got {_named(where)!r}."
        )
    hosts = _hosts(where)
    near = all(host in LOOPBACK for host, _ in hosts)
    name = _named(where)
    _knock(hosts, name)
    start = _connected if where.startswith("sc://") else _classic
    spark = start(where, name, near, patience)
    try:
        return _checked(Session(spark, name, True, near, hosts))
    except GeodivError:
        spark.stop()
        raise


def within(seconds: float, call: Callable[[], T], late: Callable[[], GeodivError]) -> T:
    """What a call returns, or an error when it takes longer than that; the call itself goes on alone."""
    pool = ThreadPool(1)
    result = pool.apply_async(call)
    pool.close()
    try:
        return result.get(seconds)
    except LateError:
        raise late() from None


def _check_package() -> None:
    if importlib.util.find_spec("pyspark") is None:
        raise UsageError(
            "the Spark engine needs the package pyspark. Install geodiv[spark], "
            "or geodiv[spark-connect] if you only use sc://host:port."
        )
    import pyspark

    if _version(pyspark.__version__) < OLDEST:
        raise UsageError(f"the Spark engine needs pyspark 4.1 or newer, got {pyspark.__version__}.")


def _checked(session: Session) -> Session:
    version = session.spark.version
    if _version(version) < OLDEST:
        raise UsageError(f"{session.name}: expected Spark 4.1 or newer, got {version}.")
    return session


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text)[:2])


def _named(address: str) -> str:
    """An address without its parameters, which may hold a token, and without user and password."""
    scheme, mark, rest = address.partition("://")
    if not mark:
        return address
    return f"{scheme}://{re.split('[/;?]', rest)[0].rpartition('@')[2]}"


def _hosts(address: str) -> tuple[tuple[str, int], ...]:
    """Hosts and ports of an address; none for a local Spark."""
    if LOCAL.fullmatch(address):
        return ()
    scheme = address.partition("://")[0]
    found = []
    for part in _named(address).partition("://")[2].split(","):
        try:
            url = urlsplit(f"//{part}")
            host, port = url.hostname, url.port
        except ValueError:
            host, port = None, None
        if not host:
            raise UsageError(
                f"expected an address such as {scheme}://host:{PORTS[scheme]}, got {_named(address)!r}."
            )
        found.append((host, port or PORTS[scheme]))
    return tuple(found)


def _knock(hosts: tuple[tuple[str, int], ...], name: str) -> None:
    """An error unless one of the hosts takes a connection: Spark itself would go on trying for minutes."""
    reason = _refusal(hosts)
    if reason is not None:
        raise UsageError(f"expected a Spark server at {name}, got: {reason}. Start it, or check the address.")


def _refusal(hosts: tuple[tuple[str, int], ...]) -> str | None:
    """Why none of the hosts takes a connection; None when one does, or when there are none."""
    reason = None
    for host in hosts:
        try:
            with socket.create_connection(host, KNOCK):
                return None
        except OSError as error:
            reason = error.strerror or str(error) or type(error).__name__
    return reason


def _connected(address: str, name: str, near: bool, patience: float) -> Any:
    if importlib.util.find_spec("grpc") is None:
        raise UsageError(f"{name} needs the package grpcio. Install geodiv[spark] or geodiv[spark-connect].")
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    def first_words() -> None:
        for key, value in SETTINGS.items():
            spark.conf.set(key, value)

    def late() -> GeodivError:
        return UsageError(
            f"expected Spark Connect at {name}, got no answer in {patience:g} s. Check the address."
        )

    with explained(name):
        spark = SparkSession.builder.remote(address).create()
        spark.client.set_retry_policies([DefaultPolicy(max_retries=8, max_backoff=10_000)])
        with ExitStack() as after_an_error:
            after_an_error.callback(_abandon, spark)
            within(patience, first_words, late)
            after_an_error.pop_all()
        return spark


def _abandon(spark: Any) -> None:
    """Leave a Spark Connect session whose server does not answer: its client would ask for minutes when Python ends."""
    spark.client.set_retry_policies([])
    atexit.unregister(getattr(spark.client, "_on_exit", spark.client.close))


def _classic(address: str, name: str, near: bool, patience: float) -> Any:
    if importlib.util.find_spec("pyspark.core") is None:
        raise UsageError(
            f"{name} needs all of Spark, not only its client. Install geodiv[spark], without the other."
        )
    if not _java():
        raise UsageError(
            f"{name} needs Java 17 or newer. Install it, and set JAVA_HOME if it is not on PATH."
        )
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        raise UsageError("a Spark session runs in this process already. Give that one: engine = session.")
    builder = SparkSession.builder.appName("geodiv").master(address)
    for key, value in {
        **SETTINGS,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(key, value)
    if near:
        builder = builder.config("spark.driver.host", "127.0.0.1").config(
            "spark.driver.bindAddress", "127.0.0.1"
        )
    # one that is interrupted while it starts Java leaves it behind; nor does its own handler of Ctrl-C stay
    with _silent(), _python(address), explained(name), uninterrupted():
        return builder.getOrCreate()


def _java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return bool(home and (Path(home) / "bin" / "java").exists()) or shutil.which("java") is not None


@contextmanager
def _silent() -> Iterator[None]:
    """A block whose child processes have nowhere to write errors to: a JVM's are for who runs the cluster."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextmanager
def _python(address: str) -> Iterator[None]:
    """A local Spark runs the Python that runs now, unless PYSPARK_PYTHON says otherwise."""
    if not LOCAL.fullmatch(address) or "PYSPARK_PYTHON" in os.environ:
        yield
        return
    os.environ["PYSPARK_PYTHON"] = sys.executable
    try:
        yield
    finally:
        del os.environ["PYSPARK_PYTHON"]
