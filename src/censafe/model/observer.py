"""What a run reports while it works: stages, how far they are, and remarks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Lock
from typing import Protocol


class Observer(Protocol):
    """Receives stages and remarks; remarks never hold a confidential value."""

    @property
    def stages(self) -> dict[str, float]:
        """Seconds of every stage so far."""

    def stage(self, name: str) -> AbstractContextManager[None]:
        """Time one stage."""

    def remark(self, text: str) -> None:
        """Take one line for the operator."""

    def note(self, text: str) -> None:
        """Take one line about the work that is no remark, such as what was recognized."""

    def advance(self, share: float, total: int = 0, noun: str = "") -> None:
        """Take how much of the work of the innermost stage is done."""


class SilentObserver:
    """Keeps the stage times and says nothing; the default of the Python interface."""

    def __init__(self) -> None:
        self.stages: dict[str, float] = {}
        self.remarks: list[str] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time one stage; a stage that is repeated adds to its seconds."""
        started = time.perf_counter()
        yield
        self.stages[name] = self.stages.get(name, 0.0) + time.perf_counter() - started

    def remark(self, text: str) -> None:
        """Keep the remark."""
        self.remarks.append(text)

    def note(self, text: str) -> None:
        """Keep it with the remarks."""
        self.remark(text)

    def advance(self, share: float, total: int = 0, noun: str = "") -> None:
        """Pass over it."""


def work_done(observer: Observer, total: int, noun: str = "") -> Callable[[int], None]:
    """A function that takes the number of pieces of work done so far, for the innermost stage, whose total it reports."""
    observer.advance(0.0, total, noun)

    def done(number: int) -> None:
        observer.advance(number / total, total, noun)

    return done


def work_added(observer: Observer, total: int, noun: str) -> Callable[[int], None]:
    """The same for numbers of further pieces, from any thread; without work nothing is reported.

    Example:
        >>> class Shown(SilentObserver):
        ...     def advance(self, share: float, total: int = 0, noun: str = "") -> None:
        ...         print(share, total, noun)
        >>> done = work_added(Shown(), 8, "rows")
        0.0 8 rows
        >>> done(2)
        0.25 8 rows
        >>> done(4)
        0.75 8 rows
    """
    if not total:
        return unheard
    report, lock, sofar = work_done(observer, total, noun), Lock(), [0]

    def added(number: int) -> None:
        with lock:
            sofar[0] += number
            report(sofar[0])

    return added


def unheard(_number: int) -> None:
    """Take a number of pieces of work where nothing shows it."""
