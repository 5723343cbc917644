"""Ctrl-C, and requests of the system to end: the work stops where it is, scratch goes, one line is said."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from censafe.model.fetching import interrupt_queries

__all__ = ["Interruption", "listening"]

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_REPEAT_AFTER: Final = 0.1  # seconds after which queries are ended that began meanwhile
_SHELL: Final = 128  # exit code of a process that a signal ended is this much above the signal's number


class Interruption:
    """Which signal came, if any; an engine may turn the exception that it raises into another one on the way."""

    def __init__(self) -> None:
        self.number: int | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Note the signal and stop what runs; scratch is removed on the way out."""
        self.number = number
        interrupt_queries()  # an engine that called this waits for its own threads next, and lets nobody else in
        raise SystemExit(self.exit_code)

    @property
    def exit_code(self) -> int:
        """As a shell says it: 130 for Ctrl-C, 143 for SIGTERM."""
        return _SHELL + (self.number or signal.SIGINT)


@contextmanager
def listening() -> Iterator[Interruption]:
    """Listen for signals inside the block, but for those that the caller of the program ignores."""
    interruption = Interruption()
    before: dict[int, Callable[..., Any] | int | None] = {}
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    for number in _SIGNALS:
        found = signal.getsignal(number)
        if found is not signal.SIG_IGN:
            before[number] = found
            signal.signal(number, interruption)
    try:
        with _ending_queries(tuple(before)):
            yield interruption
    finally:
        for listened, handler in before.items():
            signal.signal(listened, handler)


@contextmanager
def _ending_queries(numbers: tuple[int, ...]) -> Iterator[None]:
    """End what engines compute as soon as one of the signals comes; Python hears it only when they return."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    done = threading.Event()

    def watch() -> None:
        while came := os.read(read, 64):
            if any(number in numbers for number in came):
                interrupt_queries()
                while not done.wait(_REPEAT_AFTER):
                    interrupt_queries()

    watcher = threading.Thread(target=watch, name="signals", daemon=True)
    watcher.start()
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        done.set()
        os.close(write)
        watcher.join()
        os.close(read)
