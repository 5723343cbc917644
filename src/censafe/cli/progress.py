"""Progress on standard error: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.status import Status

__all__ = ["TerminalObserver"]

_REPORT_AFTER = 10.0  # seconds between lines about one stage where there is no terminal


@dataclass
class _Running:
    """A stage under way.

    Args:
        name: of the stage.
        started: when, on the clock of performance.
        reported: when a line about its progress was last shown; its start at first.
        status: the live line, on a terminal.
    """

    name: str
    started: float
    reported: float = field(init=False)
    status: Status | None = None

    def __post_init__(self) -> None:
        self.reported = self.started


def _span(seconds: float) -> str:
    """A time to wait, in words.

    Example:
        >>> _span(8.4), _span(600.0)
        ('8 s', '10 min')
    """
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


class TerminalObserver:
    """Shows stages and remarks of a run and keeps the seconds of every stage.

    Args:
        quiet: show nothing but remarks.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = Console(file=sys.stderr, highlight=False)
        self._quiet = quiet
        self._running: list[_Running] = []
        self.stages: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time one stage; a stage that is repeated adds to its seconds."""
        running = _Running(name, time.perf_counter())
        self._running.append(running)
        try:
            if self._quiet or not self._console.is_terminal or len(self._running) > 1:
                yield
            else:
                with self._console.status(f"{name} ...") as running.status:
                    yield
        finally:
            self._running.pop()
        seconds = time.perf_counter() - running.started
        self.stages[name] = self.stages.get(name, 0.0) + seconds
        if not self._quiet:
            self._console.print(f"  {name:<34}{seconds:8.1f} s", markup=False)

    def advance(self, share: float) -> None:
        """Show how much of the innermost stage is done and how long the rest will take at this pace."""
        if self._quiet or not self._running or not 0.0 < share < 1.0:
            return
        running, now = self._running[-1], time.perf_counter()
        left = (now - running.started) * (1.0 - share) / share
        text = f"{running.name}: {share:4.0%} done, {_span(left)} left"
        live = next((one.status for one in reversed(self._running) if one.status is not None), None)
        if live is not None:
            live.update(text)
        elif now - running.reported >= _REPORT_AFTER:
            running.reported = now
            self._console.print(f"  {text}", markup=False)

    def counter(self, noun: str, total: int) -> Callable[[int], None]:
        """A function that takes the number done so far and shows it."""

        def show(done: int) -> None:
            if not self._quiet and done < total:
                self._console.print(f"  {done:>13,} of {total:,} {noun}", markup=False)

        return show

    def remark(self, text: str) -> None:
        """Show one line that the operator should read."""
        self._console.print(text, markup=False, soft_wrap=True)
