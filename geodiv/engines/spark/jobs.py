"""Jobs: what is asked of Spark in a thread beside this one, so that Ctrl-C and errors arrive here and cancel it there.

The gateway to Java has a connection for each thread, and one that was interrupted in the midst of an answer takes that
answer for the next one. The thread that gets interrupts never waits on such a connection.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from threading import Thread
from typing import Any, TypeVar
from uuid import uuid4

from ...errors import GeodivError
from ...interrupts import uninterrupted
from ..background import in_background

T = TypeVar("T")
GRACE = 15.0
"""Seconds for what was cancelled to end. A server that does not answer is left to itself after them."""


def job(
    spark: Any,
    work: Callable[[], T],
    seconds: float | None = None,
    late: Callable[[], GeodivError] | None = None,
) -> T:
    """What `work` gives, which asks something of a session; cancelled on the cluster when this thread is interrupted.

    Parameters
    ----------
    spark : SparkSession
    work : callable
    seconds : float, optional
        How long it may take.
    late : callable, optional
        The error when it takes longer.
    """
    tags = _ConnectTags(spark) if ".connect." in type(spark).__module__ else _ClassicTags(spark)

    def tagged() -> T:
        tags.set()
        return work()

    def meanwhile(running: Future[T]) -> None:
        if late is not None and wait([running], seconds).not_done:
            raise late()

    return in_background(tagged, _Asking(tags.cancel), meanwhile, GRACE)


class _ConnectTags:
    """A tag of its own for a job of Spark Connect, beside those of this thread: the session may be somebody else's."""

    def __init__(self, spark: Any) -> None:
        self._spark, self._tag = spark, f"geodiv-{uuid4().hex}"
        self._theirs = tuple(spark.getTags())

    def set(self) -> None:
        """Set the tags, in the thread that works."""
        for tag in (*self._theirs, self._tag):
            self._spark.addTag(tag)

    def cancel(self) -> None:
        """Ask for the end of the job."""
        self._spark.interruptTag(self._tag)


class _ClassicTags:
    """As `_ConnectTags`. The session's own tags hold for the thread that asks only, so these are the context's."""

    def __init__(self, spark: Any) -> None:
        self._context, self._tag = spark.sparkContext, f"geodiv-{uuid4().hex}"
        with uninterrupted():
            self._theirs = self._context._jsc.sc().getLocalProperties().clone()

    def set(self) -> None:
        """Set the tag and what else is set for jobs of this thread, in the thread that works."""
        self._context._jsc.sc().setLocalProperties(self._theirs)
        self._context.setInterruptOnCancel(True)
        self._context.addJobTag(self._tag)

    def cancel(self) -> None:
        """Ask for the end of the job."""
        self._context.cancelJobsWithTag(self._tag)


class _Asking:
    """Asks in a thread of its own, and once at a time: the server may not answer."""

    def __init__(self, ask: Callable[[], None]) -> None:
        self._ask = ask
        self._thread: Thread | None = None

    def __call__(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = Thread(target=self._quietly, daemon=True)
            self._thread.start()

    def _quietly(self) -> None:
        with suppress(Exception):  # the cluster is gone, and the job with it
            self._ask()
