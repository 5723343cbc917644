"""Lines about stages and how far they are."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from censafe.cli import progress
from censafe.cli.progress import TerminalObserver
from censafe.model.observer import work_done


def test_a_long_stage_tells_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    now = iter([0.0, 5.0, 20.0, 22.0, 40.0])
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(now))
    observer = TerminalObserver()
    with observer.stage("estimate persons.Block"):
        observer.advance(0.25)
        observer.advance(0.5, 8_000, "parents")
        observer.advance(0.55)
        observer.advance(1.0)
    lines = [line.strip() for line in capsys.readouterr().err.splitlines()]
    assert lines == [
        "estimate persons.Block:  50% done, 200 parents a second, 20 s left",
        "estimate persons.Block                40.0 s",
    ]
    assert observer.stages == {"estimate persons.Block": 40.0}


def test_a_quiet_observer_says_nothing_and_keeps_the_seconds(capsys: pytest.CaptureFixture[str]):
    observer = TerminalObserver(quiet=True)
    with observer.stage("outer"), observer.stage("inner"):
        observer.advance(0.5)
    assert capsys.readouterr().err == ""
    assert set(observer.stages) == {"outer", "inner"}


def test_counted_work_is_a_share_with_a_rate(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    now = iter([0.0, 12.0, 24.0, 40.0])
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(now))
    observer = TerminalObserver()
    with observer.stage("3 noise draws"):
        done = work_done(observer, 3, "draws")
        done(1)
        done(2)
        done(3)
    lines = [line.strip() for line in capsys.readouterr().err.splitlines()]
    assert lines[:2] == [
        "3 noise draws:  33% done, 0.0833 draws a second, 24 s left",
        "3 noise draws:  67% done, 0.0833 draws a second, 12 s left",
    ]


def test_a_terminal_shows_the_stage_its_share_and_the_time_so_far(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(progress.time, "perf_counter", lambda: 30.0)
    running = progress._Running("estimate", 18.0)
    line = progress._LiveLine([running])
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    console.print(line)
    running.progress = "50% done, 12 s left"
    console.print(line)
    assert console.file.getvalue().splitlines() == ["estimate (12 s)", "estimate: 50% done, 12 s left (12 s)"]
