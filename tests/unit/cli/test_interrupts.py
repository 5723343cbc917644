from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import duckdb
import pytest

from censafe.cli.interrupts import listening
from censafe.model.fetching import interruptible, stream_of
from censafe.population.files.relation import engine_errors

SLOW = "SELECT sum(range % 7) FROM range(1000000000000)"
STREAM = "SELECT hash(range) FROM range(1000000000000) WHERE range < 5000000 OR hash(range) = 7"


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
        interruptible(con)
        _soon(signal.SIGINT)
        with pytest.raises(SystemExit), engine_errors("records"):
            con.execute(SLOW)
    assert interruption.number == signal.SIGINT


def _stopped_within_a_second(work: Callable[[duckdb.DuckDBPyConnection], object]) -> None:
    started = time.monotonic()
    with listening() as interruption, duckdb.connect() as con, pytest.raises(SystemExit):
        work(con)
    assert interruption.exit_code == 130
    assert time.monotonic() - started < 2


def test_a_stream_of_the_engine_stops_within_a_second() -> None:
    def read(con: duckdb.DuckDBPyConnection) -> None:
        with stream_of(con) as cursor, engine_errors("records"):
            batches = cursor.execute(STREAM).to_arrow_reader(1000)
            _soon(signal.SIGINT)
            list(batches)

    _stopped_within_a_second(read)


def test_queries_of_other_threads_stop_within_a_second() -> None:
    def count(con: duckdb.DuckDBPyConnection) -> None:
        with stream_of(con) as cursor, engine_errors("records"):
            cursor.execute(SLOW)

    def wait(con: duckdb.DuckDBPyConnection) -> None:
        with ThreadPoolExecutor(2) as pool:
            waiting = [pool.submit(count, con) for _ in range(2)]
            _soon(signal.SIGINT)
            for future in waiting:
                future.result()

    _stopped_within_a_second(wait)


def test_a_signal_that_the_caller_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with listening() as interruption:
            os.kill(os.getpid(), signal.SIGHUP)
        assert interruption.number is None
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
