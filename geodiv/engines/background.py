"""Work in a thread beside this one, so that Ctrl-C and errors arrive here and end it."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from threading import Event, Thread
from time import monotonic
from typing import Any, TypeVar

from ..interrupts import uninterrupted

T = TypeVar("T")
_PATIENCE = 0.1
"""Seconds after which work that was cancelled is cancelled again: it may have been about to begin."""


def in_background(
    work: Callable[[], T],
    cancel: Callable[[], None],
    meanwhile: Callable[[Future[T]], None] = lambda running: None,
    grace: float = math.inf,
) -> T:
    """The result of `work`, which runs in another thread. An error on either side ends the other and is raised.

    Parameters
    ----------
    work : callable
    cancel : callable
        Makes `work` end early; called in this thread, perhaps more than once, and perhaps too late.
    meanwhile : callable
        What this thread does in the meantime; it gets the future of `work`, to see when that is done.
    grace : float
        Seconds for `work` to end once it is cancelled; after them its thread is left to itself.
    """
    running: Future[T] = Future()
    ended = Event()
    thread = Thread(target=_run, args=(running, ended, work), daemon=True)
    with ExitStack() as after_an_error:  # before the start: an interrupt may come in the midst of it
        after_an_error.callback(_end, thread, ended, cancel, grace)
        thread.start()
        meanwhile(running)
        result = running.result()
        after_an_error.pop_all()
    thread.join()
    return result


def _run(running: Future[T], ended: Event, work: Callable[[], T]) -> None:
    def keep(kind: Any, error: BaseException | None, trace: Any) -> bool:
        if error is not None:
            running.set_exception(error)
        return True

    with ExitStack() as stack:
        stack.push(keep)
        if not ended.is_set():
            running.set_result(work())


def _end(thread: Thread, ended: Event, cancel: Callable[[], None], grace: float) -> None:
    ended.set()
    until = monotonic() + grace
    with uninterrupted():  # somebody who is impatient sends another
        while thread.is_alive() and monotonic() < until:
            cancel()
            thread.join(timeout=_PATIENCE)
