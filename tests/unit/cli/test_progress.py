"""Lines about stages and how far they are."""

from __future__ import annotations

import pytest

from censafe.cli import progress
from censafe.cli.progress import TerminalObserver


def test_a_long_stage_tells_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    now = iter([0.0, 5.0, 20.0, 22.0, 40.0])
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(now))
    observer = TerminalObserver()
    with observer.stage("estimate persons.Block"):
        observer.advance(0.25)
        observer.advance(0.5)
        observer.advance(0.55)
        observer.advance(1.0)
    lines = [line.strip() for line in capsys.readouterr().err.splitlines()]
    assert lines == [
        "estimate persons.Block:  50% done, 20 s left",
        "estimate persons.Block                40.0 s",
    ]
    assert observer.stages == {"estimate persons.Block": 40.0}


def test_a_quiet_observer_says_nothing_and_keeps_the_seconds(capsys: pytest.CaptureFixture[str]):
    observer = TerminalObserver(quiet=True)
    with observer.stage("outer"), observer.stage("inner"):
        observer.advance(0.5)
    assert capsys.readouterr().err == ""
    assert set(observer.stages) == {"outer", "inner"}
