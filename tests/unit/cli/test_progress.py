"""Lines about stages and how far they are."""

import io
import threading
import time
from pathlib import Path

import pytest
from rich.console import Console

from censafe.cli import progress
from censafe.cli.progress import TerminalObserver
from censafe.model.engine import query_share
from censafe.model.observer import work_done
from censafe.tabulation.engine.embedded import open_embedded


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
    observer.note("ppmf.zip: microdata of persons")
    assert capsys.readouterr().err == ""
    assert set(observer.stages) == {"outer", "inner"}
    TerminalObserver().note("ppmf.zip: microdata of persons")
    assert capsys.readouterr().err == "ppmf.zip: microdata of persons\n"


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
    running.share, running.counted = 0.5, True
    console.print(line)
    assert console.file.getvalue().splitlines() == [
        "estimate (12 s)",
        "estimate:  50% done, 12 s left (12 s)",
    ]


def test_a_step_is_done_as_far_as_its_query(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(progress, "query_share", lambda: 0.5)
    running = progress._Running("count", 0.0)
    assert running.words(4.0) == "query 50% done"
    running.total, running.counted = 4, True
    assert running.words(4.0) == " 12% done, 28 s left"
    running.share = 0.5
    assert running.words(15.0) == " 62% done, 9 s left"
    monkeypatch.setattr(progress, "query_share", lambda: 0.1)  # the next query of the step begins
    assert running.words(15.0) == " 62% done, 9 s left"
    running.total, running.noun, running.best = 2, "runs", 0.0
    assert running.words(10.0) == " 50% done, 0.1 runs a second, 10 s left"


def test_the_line_tells_of_the_whole_rather_than_of_a_piece(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(progress, "query_share", lambda: 0.0)
    outer, inner = progress._Running("4 parts", 0.0), progress._Running("count", 8.0)
    inner.share, inner.counted = 0.5, True
    assert progress._words_of([outer, inner], 10.0) == " 50% done, 2 s left"
    outer.share, outer.counted = 0.25, True
    assert progress._words_of([outer, inner], 10.0) == " 25% done, 30 s left"


def test_a_stage_that_waits_for_a_query_is_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(progress, "query_share", lambda: 0.25)
    monkeypatch.setattr(progress, "_REPORT_AFTER", 0.02)
    observer = TerminalObserver()
    printed = ""
    name = "read " + 20 * "a long name "  # is not broken into lines
    with observer.stage(name):
        while "done" not in printed:
            time.sleep(0.01)
            printed += capsys.readouterr().err
    assert f"  {name}: query 25% done\n" in printed


def test_a_database_says_how_far_its_query_is(tmp_path: Path):
    engine = open_embedded(tmp_path, threads=1)
    shares = []
    over = threading.Event()

    def poll() -> None:
        while not over.wait(0.005):
            shares.append(query_share())

    poller = threading.Thread(target=poll)
    poller.start()
    engine.con.execute("CREATE TABLE rows AS SELECT range AS k FROM range(1000000)")
    for _ in range(50):  # on a busy machine nobody may look while a query runs
        engine.con.execute("SELECT count(DISTINCT md5(k::VARCHAR)) FROM rows")
        if any(0.0 < share < 1.0 for share in shares):
            break
    over.set()
    poller.join()
    engine.disconnect()
    assert any(0.0 < share < 1.0 for share in shares)
    assert 0.0 <= query_share() <= 1.0


def test_a_remark_names_options_as_the_command_line_has_them(capsys: pytest.CaptureFixture[str]):
    TerminalObserver(quiet=True).remark("2 areas have no linear estimate; name them in `areas` for one")
    assert capsys.readouterr().err == "2 areas have no linear estimate; name them in --areas for one\n"
