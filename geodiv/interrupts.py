"""Ctrl-C and other wishes to end: an orderly end, held back while files are put in place or cleared away."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

Pause = Callable[[], AbstractContextManager[None]]

ENDINGS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""What asks a program to end: whoever runs it, or a terminal that is closed."""
INTERRUPTIONS = (signal.SIGINT, *ENDINGS)


class Ended(SystemExit):
    """The process was asked to end, by one of `ENDINGS`; all is cleared away on the way out.

    Attributes
    ----------
    code : int
        The exit code, 128 and the number of the signal, as shells have it.
    name : str
        Of the signal.
    """

    code: int

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.name = signal.Signals(number).name


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Within the block a wish to end raises `Ended`, unless somebody else sees to it, or it is to be ignored.

    Examples
    --------
    >>> try:
    ...     with ending_in_order():
    ...         signal.raise_signal(signal.SIGTERM)
    ... except Ended as ended:
    ...     print(ended.name, ended.code)
    SIGTERM 143
    """
    main = threading.current_thread() is threading.main_thread()
    taken = [number for number in ENDINGS if main and signal.getsignal(number) is signal.SIG_DFL]

    def end(number: int, _: Any) -> None:
        raise Ended(number)

    try:
        for number in taken:
            signal.signal(number, end)
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def uninterrupted() -> Iterator[Pause]:
    """Hold back interrupts and wishes to end until the block ends; other threads than the main one never get any.

    Yields
    ------
    callable
        A context within the block in which they work as ever: for the long part of the work.

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
    former = {number: handler for number in INTERRUPTIONS if callable(handler := signal.getsignal(number))}
    if threading.current_thread() is not threading.main_thread() or not former:
        yield _never
        return
    held = False
    arrived: list[tuple[int, Any]] = []

    def hold(number: int, frame: Any) -> None:
        if held:
            arrived.append((number, frame))
        else:  # also where one comes while these handlers are put in or taken out
            former[number](number, frame)

    def let_through() -> None:
        nonlocal held
        held = False
        if arrived:
            number, frame = arrived.pop(0)
            try:
                former[number](number, frame)
            finally:
                let_through()

    @contextmanager
    def pause() -> Iterator[None]:
        nonlocal held
        try:
            let_through()
            yield
        finally:
            held = True

    try:
        for number in former:
            signal.signal(number, hold)
        held = True
        yield pause
    finally:
        try:
            let_through()
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)


@contextmanager
def _never() -> Iterator[None]:
    yield
