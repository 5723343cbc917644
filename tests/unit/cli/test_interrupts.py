from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import duckdb
import pytest

from censafe.cli.interrupts import listening
from censafe.population.files.relation import engine_errors

SLOW = "SELECT sum(range % 7) FROM range(1000000000000)"


def _soon(number: int) -> None:
    threading.Timer(0.2, os.kill, (os.getpid(), number)).start()


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Signals have their usual effect, also where whoever started the tests ignores them."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGHUP)}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_stops_the_work_and_gives_the_exit_code_of_a_shell(number: int, code: int) -> None:
    with listening() as interruption, pytest.raises(SystemExit):
        _soon(number)
        time.sleep(5)
    assert interruption.exit_code == code
    assert interruption.number == number


def test_an_engine_at_work_stops_as_the_program_does() -> None:
    with listening() as interruption, duckdb.connect() as con:
        _soon(signal.SIGINT)
        with pytest.raises(SystemExit), engine_errors("records"):
            con.execute(SLOW)
    assert interruption.number == signal.SIGINT


def test_a_signal_that_the_caller_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with listening() as interruption:
            os.kill(os.getpid(), signal.SIGHUP)
        assert interruption.number is None
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
