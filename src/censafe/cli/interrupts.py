"""Ctrl-C, and requests of the system to end: the work stops where it is, scratch goes, one line is said."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

__all__ = ["Interruption", "listening"]

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SHELL: Final = 128  # exit code of a process that a signal ended is this much above the signal's number


class Interruption:
    """Which signal came, if any; an engine may turn the exception that it raises into another one on the way."""

    def __init__(self) -> None:
        self.number: int | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Note the signal and stop what runs; scratch is removed on the way out."""
        self.number = number
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
    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            found = signal.getsignal(number)
            if found is not signal.SIG_IGN:
                before[number] = found
                signal.signal(number, interruption)
    try:
        yield interruption
    finally:
        for listened, handler in before.items():
            signal.signal(listened, handler)
