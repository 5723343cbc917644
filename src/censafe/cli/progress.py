"""Progress on standard error: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread

from rich.console import Console, ConsoleOptions, RenderResult
from rich.status import Status
from rich.text import Text

from censafe.cli.faults import in_options
from censafe.model.engine import query_share

_REPORT_AFTER = 10.0  # seconds between lines about one stage where there is no terminal


@dataclass
class _Running:
    """A stage under way.

    Args:
        name: of the stage.
        started: when, on the clock of performance.
        reported: when a line about its progress was last shown; its start at first.
        share: of its work that is done, 0 to 1.
        total: pieces of its work; 0 where they are not counted.
        noun: what the pieces are; empty for steps, each of which is a few queries.
        counted: whether it says how far it is.
        best: largest share shown: a step of several queries begins at nothing with each of them.
        status: the live line, on a terminal.
    """

    name: str
    started: float
    reported: float = field(init=False)
    share: float = 0.0
    total: int = 0
    noun: str = ""
    counted: bool = False
    best: float = 0.0
    status: Status | None = None

    def __post_init__(self) -> None:
        self.reported = self.started

    def words(self, now: float) -> str:
        """How far it is, and how long the rest will take at this pace; empty where nothing is known yet.

        Of a step, as much is done as of its query under way.
        """
        within = query_share() if not self.counted or (self.total and not self.noun) else 0.0
        if not self.counted:
            return f"query {within:.0%} done" if within else ""
        share = self.best = max(self.best, self.share + (within / self.total if within else 0.0))
        if not 0.0 < share < 1.0:
            return ""
        seconds = max(now - self.started, 1e-9)
        rate = (
            f", {_rate(share * self.total / seconds)} {self.noun} a second"
            if self.noun and self.total
            else ""
        )
        return f"{share:4.0%} done{rate}, {_span(seconds * (1.0 - share) / share)} left"


def _words_of(stages: Sequence[_Running], now: float) -> str:
    """How far the work is: of the outermost stage that says it."""
    return next((words for one in stages if one.counted and (words := one.words(now))), "") or stages[
        -1
    ].words(now)


@dataclass(frozen=True)
class _LiveLine:
    """Name of the stage, how far it is, and the seconds so far, computed whenever the line is drawn."""

    stages: list[_Running]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        outer, inner = self.stages[0], self.stages[-1]
        name = outer.name if outer is inner else f"{outer.name}, {inner.name}"
        now = time.perf_counter()
        progress = _words_of(self.stages, now)
        words = f": {progress}" if progress else ""
        yield Text(f"{name}{words} ({_span(now - outer.started)})")


def _span(seconds: float) -> str:
    """A time to wait, in words.

    Example:
        >>> _span(8.4), _span(600.0)
        ('8 s', '10 min')
    """
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _rate(speed: float) -> str:
    """Pieces of work a second, in three digits.

    Example:
        >>> _rate(12345.6), _rate(0.2514)
        ('12,300', '0.251')
    """
    return f"{float(f'{speed:.3g}'):,.0f}" if speed >= 100 else f"{speed:.3g}"


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
            if self._quiet or len(self._running) > 1:
                yield
            elif not self._console.is_terminal:
                with self._reporting():
                    yield
            else:
                with self._console.status(_LiveLine(self._running)) as running.status:
                    yield
        finally:
            self._running.pop()
        seconds = time.perf_counter() - running.started
        self.stages[name] = self.stages.get(name, 0.0) + seconds
        if not self._quiet:
            self._console.print(f"  {name:<34}{seconds:8.1f} s", markup=False, soft_wrap=True)

    def advance(self, share: float, total: int = 0, noun: str = "") -> None:
        """Show how much of the innermost stage is done, its rate, and how long the rest will take at this pace.

        Args:
            share: of the work, 0 to 1.
            total: pieces of work of the stage; 0 where they are not counted.
            noun: what they are, in the plural.
        """
        if self._quiet or not self._running or not 0.0 <= share < 1.0:
            return
        running = self._running[-1]
        running.share, running.total, running.noun, running.counted = share, total, noun, True
        running.best = max(running.best, share) if share else 0.0
        if share and not self._console.is_terminal:
            self._report(time.perf_counter())

    def _report(self, now: float) -> None:
        """Show a line about the innermost stage, unless there was one a moment ago."""
        running = self._running[-1]
        if now - running.reported < _REPORT_AFTER:
            return
        words = running.words(now)
        if words:
            running.reported = now
            self._console.print(f"  {running.name}: {words}", markup=False, soft_wrap=True)

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Report on the stage also while it waits for a query."""
        over = Event()

        def report() -> None:
            while not over.wait(_REPORT_AFTER):
                self._report(time.perf_counter())

        reporter = Thread(target=report, name="progress", daemon=True)
        reporter.start()
        try:
            yield
        finally:
            over.set()
            reporter.join()

    def remark(self, text: str) -> None:
        """Show one line that the operator should read."""
        self._console.print(in_options(text), markup=False, soft_wrap=True)

    def note(self, text: str) -> None:
        """Show one line about the work."""
        if not self._quiet:
            self.remark(text)
