"""What a recipe tells whoever watches it run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

__all__ = ["Observer", "SilentObserver"]


class Observer(Protocol):
    """Receives stages and remarks; remarks never hold a confidential value."""

    @property
    def stages(self) -> dict[str, float]:
        """Seconds of every stage so far."""

    def stage(self, name: str) -> AbstractContextManager[None]:
        """Time one stage."""

    def remark(self, text: str) -> None:
        """Take one line for the operator."""

    def advance(self, share: float) -> None:
        """Hear how much of the work of the innermost stage is done, 0 to 1."""


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

    def advance(self, share: float) -> None:
        """Pass over it."""
