"""Progress on standard error: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

__all__ = ["TerminalObserver"]


class TerminalObserver:
    """Shows stages and remarks of a run and keeps the seconds of every stage.

    Args:
        quiet: show nothing but remarks.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = Console(file=sys.stderr, highlight=False)
        self._quiet = quiet
        self.stages: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time one stage; a stage entered again adds to its seconds."""
        started = time.perf_counter()
        if self._quiet:
            yield
        elif self._console.is_terminal:
            with self._console.status(f"{name} ..."):
                yield
        else:
            yield
        seconds = time.perf_counter() - started
        self.stages[name] = self.stages.get(name, 0.0) + seconds
        if not self._quiet:
            self._console.print(f"  {name:<34}{seconds:8.1f} s", markup=False)

    def counter(self, noun: str, total: int) -> Callable[[int], None]:
        """A function that takes the number done so far and shows it."""

        def show(done: int) -> None:
            if not self._quiet and done < total:
                self._console.print(f"  {done:>13,} of {total:,} {noun}", markup=False)

        return show

    def remark(self, text: str) -> None:
        """Show one line that the operator should read."""
        self._console.print(text, markup=False, soft_wrap=True)
