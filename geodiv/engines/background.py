"""Work in a thread beside this one, so that Ctrl-C and errors arrive here and end it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from typing import TypeVar

T = TypeVar("T")
_PATIENCE = 0.1
"""Seconds after which work that was cancelled is cancelled again: it may have been about to begin."""


def in_background(
    work: Callable[[], T],
    cancel: Callable[[], None],
    meanwhile: Callable[[Future[T]], None] = lambda running: None,
) -> T:
    """The result of `work`, which runs in another thread. An error on either side ends the other and is raised.

    Parameters
    ----------
    work : callable
    cancel : callable
        Makes `work` end early; called in this thread, perhaps more than once, and perhaps too late.
    meanwhile : callable
        What this thread does in the meantime; it gets the future of `work`, to see when that is done.
    """
    with ThreadPoolExecutor(max_workers=1) as pool, ExitStack() as after_an_error:
        running = pool.submit(work)
        after_an_error.callback(_end, running, cancel)
        meanwhile(running)
        result = running.result()
        after_an_error.pop_all()
    return result


def _end(running: Future[T], cancel: Callable[[], None]) -> None:
    while not running.done():
        cancel()
        wait([running], timeout=_PATIENCE)
