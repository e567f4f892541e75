"""Work in the background: results and errors come through, and an interrupt at any moment ends both sides."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import Future
from typing import Any

import pytest

from geodiv.engines.background import in_background


def never() -> None:
    raise AssertionError("cancelled without an error")


def alive() -> set[threading.Thread]:
    return set(threading.enumerate())


def test_the_result_comes_through_and_the_thread_is_gone() -> None:
    before = alive()
    assert in_background(lambda: threading.current_thread(), never) not in before
    assert alive() == before


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt("mine"), MemoryError("mine")])
def test_an_error_of_the_work_is_raised_here(error: BaseException) -> None:
    def work() -> None:
        raise error

    before = alive()
    with pytest.raises(type(error), match="mine"):
        in_background(work, lambda: None)
    assert alive() == before


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt("mine")])
def test_an_error_here_ends_the_work(error: BaseException) -> None:
    ended = threading.Event()

    def meanwhile(running: Future[Any]) -> None:
        raise error

    before = alive()
    with pytest.raises(type(error), match="mine"):
        in_background(ended.wait, ended.set, meanwhile)
    assert alive() == before


def test_it_is_cancelled_again_when_once_was_too_early() -> None:
    times = threading.Semaphore(0)

    def work() -> None:
        for _ in range(3):
            times.acquire()

    def meanwhile(running: Future[Any]) -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        in_background(work, times.release, meanwhile)


@pytest.mark.parametrize("begun", [False, True])
def test_an_interrupt_while_the_thread_starts_ends_it(begun: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting waits for the thread, and that is when Ctrl-C comes: the thread may have begun, or may yet begin."""
    ended, ran = threading.Event(), threading.Event()
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        started.append(thread)
        if begun:
            start(thread)
        raise KeyboardInterrupt

    def work() -> None:
        ran.set()
        ended.wait()

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            in_background(work, ended.set)
    if not begun:
        start(started[0])
    started[0].join(timeout=60)
    assert not started[0].is_alive()
    assert begun or not ran.is_set()


def test_a_second_interrupt_does_not_leave_the_work_alone() -> None:
    """Ctrl-C twice: the second waits until the work has ended, as what it works on is about to be removed."""
    ended = threading.Event()
    cancelled: list[bool] = []

    def cancel() -> None:
        if not cancelled:
            signal.raise_signal(signal.SIGINT)
        cancelled.append(True)
        if len(cancelled) == 3:
            ended.set()

    def meanwhile(running: Future[Any]) -> None:
        raise KeyboardInterrupt

    before = alive()
    with pytest.raises(KeyboardInterrupt):
        in_background(ended.wait, cancel, meanwhile)
    assert len(cancelled) >= 3
    assert alive() == before


def test_work_that_does_not_end_is_left_to_itself_after_the_grace() -> None:
    ended = threading.Event()

    def meanwhile(running: Future[Any]) -> None:
        raise KeyboardInterrupt

    before = alive()
    with pytest.raises(KeyboardInterrupt):
        in_background(ended.wait, lambda: None, meanwhile, grace=0.0)
    [left] = alive() - before
    ended.set()
    left.join(timeout=60)
    assert not left.is_alive()
