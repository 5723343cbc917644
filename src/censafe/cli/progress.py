"""Progress on standard error: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, RenderResult
from rich.status import Status
from rich.text import Text

__all__ = ["TerminalObserver"]

_REPORT_AFTER = 10.0  # seconds between lines about one stage where there is no terminal


@dataclass
class _Running:
    """A stage under way.

    Args:
        name: of the stage.
        started: when, on the clock of performance.
        reported: when a line about its progress was last shown; its start at first.
        progress: how far it is, in words.
        status: the live line, on a terminal.
    """

    name: str
    started: float
    reported: float = field(init=False)
    progress: str = ""
    status: Status | None = None

    def __post_init__(self) -> None:
        self.reported = self.started


@dataclass(frozen=True)
class _LiveLine:
    """Name of the stage, how far it is, and the seconds so far, computed whenever the line is drawn."""

    stages: list[_Running]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        outer, inner = self.stages[0], self.stages[-1]
        name = outer.name if outer is inner else f"{outer.name}, {inner.name}"
        progress = inner.progress or outer.progress
        words = f": {progress}" if progress else ""
        yield Text(f"{name}{words} ({_span(time.perf_counter() - outer.started)})")


def _span(seconds: float) -> str:
    """A time to wait, in words.

    Example:
        >>> _span(8.4), _span(600.0)
        ('8 s', '10 min')
    """
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _rate(each: float) -> str:
    """Pieces of work a second, in three digits.

    Example:
        >>> _rate(12345.6), _rate(0.2514)
        ('12,300', '0.251')
    """
    return f"{float(f'{each:.3g}'):,.0f}" if each >= 100 else f"{each:.3g}"


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
                with self._console.status(_LiveLine(self._running)) as running.status:
                    yield
        finally:
            self._running.pop()
        seconds = time.perf_counter() - running.started
        self.stages[name] = self.stages.get(name, 0.0) + seconds
        if not self._quiet:
            self._console.print(f"  {name:<34}{seconds:8.1f} s", markup=False)

    def advance(self, share: float, total: int = 0, noun: str = "") -> None:
        """Show how much of the innermost stage is done, its rate, and how long the rest will take at this pace.

        Args:
            share: of the work, 0 to 1.
            total: pieces of work of the stage; 0 where they are not counted.
            noun: what they are, in the plural.
        """
        if self._quiet or not self._running or not 0.0 < share < 1.0:
            return
        running, now = self._running[-1], time.perf_counter()
        seconds = max(now - running.started, 1e-9)
        left = seconds * (1.0 - share) / share
        rate = f", {_rate(share * total / seconds)} {noun} a second" if total else ""
        running.progress = f"{share:4.0%} done{rate}, {_span(left)} left"
        if self._live() is None and now - running.reported >= _REPORT_AFTER:
            running.reported = now
            self._console.print(f"  {running.name}: {running.progress}", markup=False)

    def _live(self) -> Status | None:
        return next((one.status for one in reversed(self._running) if one.status is not None), None)

    def remark(self, text: str) -> None:
        """Show one line that the operator should read."""
        self._console.print(text, markup=False, soft_wrap=True)
