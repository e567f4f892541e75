"""Ctrl-C: held back while files are put in place or cleared away, so that one leaves nothing half-done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

Pause = Callable[[], AbstractContextManager[None]]


@contextmanager
def uninterrupted() -> Iterator[Pause]:
    """Hold back an interrupt (SIGINT) until the block ends; other threads than the main one never get any.

    Yields
    ------
    callable
        A context within the block in which an interrupt works as ever: for the long part of the work.

    Examples
    --------
    >>> done = []
    >>> try:
    ...     with uninterrupted():
    ...         signal.raise_signal(signal.SIGINT)
    ...         done.append("whole")
    ... except KeyboardInterrupt:
    ...     done.append("then interrupted")
    >>> done
    ['whole', 'then interrupted']
    """
    former = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(former):
        yield _never
        return
    arrived: list[tuple[int, Any]] = []

    def hold(number: int, frame: Any) -> None:
        arrived.append((number, frame))

    @contextmanager
    def pause() -> Iterator[None]:
        try:
            signal.signal(signal.SIGINT, former)
            if arrived:
                former(*arrived.pop())
            yield
        finally:
            signal.signal(signal.SIGINT, hold)

    signal.signal(signal.SIGINT, hold)
    try:
        yield pause
    finally:
        signal.signal(signal.SIGINT, former)
        if arrived:
            former(*arrived.pop())


@contextmanager
def _never() -> Iterator[None]:
    yield
