"""A server that is killed, one that does not answer, and ones that integers cannot be left to."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Timer
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import censafe
from censafe.errors import StorageError, UsageError
from censafe.model.engine import EngineChoice, fetch
from censafe.privacy.ledger.entries import read_contents
from censafe.tabulation.engine import connect
from censafe.tabulation.engine.tasks import EngineTasks
from support.engines import SAIL, SailServer
from support.phsafe_inputs import write_parquet_folder
from support.topdown_inputs import write_1940

if not SAIL:
    pytest.skip("neither Sail nor its client is installed", allow_module_level=True)

from censafe.tabulation.engine import cluster
from censafe.tabulation.engine.cluster import Connecting, Failure, failure_of


@pytest.fixture(scope="module")
def server() -> Iterator[SailServer]:
    started = SailServer()
    yield started
    started.kill()


@pytest.fixture
def opened(server: SailServer, tmp_path: Path) -> Iterator[Any]:
    engine = connect(tmp_path / "work", choice=EngineChoice.parse(f"spark={server.url}"))
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"key": pa.array(range(1000), pa.int64())}), path)
    engine.scan("rows", (path,), ("key",))
    yield engine
    engine.disconnect()


def counted(engine: Any) -> int:
    return int(fetch(engine.table("held").count())[0][0].as_py())


def test_a_killed_server_that_comes_back_continues_the_run(server: SailServer, opened: Any) -> None:
    rows = opened.table("rows")
    opened.store("held", rows.filter(rows.key >= 10))
    server.kill()
    restart = Timer(0.5, server.start)
    restart.start()
    assert counted(opened) == 990
    restart.join()
    server.kill()
    restart = Timer(0.5, server.start)
    restart.start()
    opened.store("held", rows.filter(rows.key >= 20))  # the work of a table is done again, into new files
    restart.join()
    assert counted(opened) == 980
    assert len([path for path in (opened._work).iterdir() if path.name.startswith("held-")]) == 1


def test_work_that_ran_twice_counts_once(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first attempt writes all its rows and fails after that, as when an answer is lost on the way."""
    rows, attempts = opened.table("rows"), []
    once = type(opened)._attempt

    def losing(engine: Any, work: Any) -> Any:
        def twice() -> Any:
            done = work()
            attempts.append(done)
            if len(attempts) == 1:
                raise cluster.PySparkException("worker lost")
            return done

        return once(engine, twice)

    monkeypatch.setattr(type(opened), "_attempt", losing)
    opened.store("held", rows)
    monkeypatch.undo()
    assert len({str(path) for path in attempts if isinstance(path, Path)}) == 2
    assert counted(opened) == 1000


def test_a_server_that_stays_away_stops_the_run(
    server: SailServer, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened.store("held", opened.table("rows"))
    opened._connecting.wait(opened.session, 0)
    server.kill()
    try:
        with pytest.raises(StorageError, match=r"server was lost .* start the same command again"):
            counted(opened)
    finally:
        server.start()


def test_no_server_costs_nothing(tmp_path: Path) -> None:
    data = write_parquet_folder(tmp_path / "data")
    ledger = tmp_path / "ledger.jsonl"
    chosen = censafe.configuration("phsafe", "sdhc-us", reader="csv", state_filter=["44", "50"])
    with pytest.raises(StorageError, match="no Spark Connect server answers"):
        censafe.release(chosen, data, tmp_path / "out", ledger=ledger, engine="spark=sc://127.0.0.1:1")
    spent = ledger.read_text() if ledger.exists() else ""
    assert "reserv" not in spent
    assert not (tmp_path / "out" / "measurements").exists() or not any(
        (tmp_path / "out" / "measurements").iterdir()
    )
    assert [path.name for path in tmp_path.iterdir() if "scratch" in path.name] == []


def committed(ledger: Path) -> list[str]:
    """Parts that were committed, in their order."""
    return [entry.body["part"] for entry in read_contents(ledger).entries if entry.event == "commit"]


@pytest.mark.long
def test_a_level_whose_workers_stay_away_stops_a_run_that_the_same_command_resumes(
    server: SailServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is measured twice: parts that were committed stay, and the level that was lost is measured by the second start alone."""
    data, ledger, out = write_1940(tmp_path / "districts"), tmp_path / "ledger.jsonl", tmp_path / "out"
    chosen = censafe.configuration("topdown", "e2e-1940", noisy_measurements="lazy")
    results, levels = EngineTasks.results, []

    def losing(tasks: EngineTasks, work: Any, parcels: Any, common: Any = ()) -> Iterator[bytes]:
        levels.append(work)
        if len(levels) == 3:  # the records, the states, the counties
            server.kill()
        return results(tasks, work, parcels, common)

    wait = Connecting.wait
    monkeypatch.setattr(EngineTasks, "results", losing)
    monkeypatch.setattr(Connecting, "wait", lambda self, session, _: wait(self, session, 0))
    with pytest.raises(StorageError, match=r"server was lost .* start the same command again"):
        censafe.release(chosen, data, out, ledger=ledger, engine=f"spark={server.url}")
    assert committed(ledger) == ["persons_National", "persons_State"]
    assert [path.name for path in tmp_path.iterdir() if "scratch" in path.name] == []
    monkeypatch.undo()
    censafe.release(chosen, data, out, ledger=ledger)  # which engine does not matter
    server.start()
    assert committed(ledger) == [f"persons_{level}" for level in ("National", "State", "County", "Enumdist")]


@pytest.mark.parametrize(
    ("version", "ansi", "words"),
    [
        ("3.5.4", "true", "of version 3.5.4; allowed: 4.x"),
        ("4.1.0", "false", "wrap around silently; allowed: true"),
    ],
)
def test_servers_that_integers_cannot_be_left_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, ansi: str, words: str
) -> None:
    stopped: list[bool] = []
    session = SimpleNamespace(
        version=version,
        conf=SimpleNamespace(get=lambda name: ansi),
        client=SimpleNamespace(get_retry_policies=list),
        stop=lambda: stopped.append(True),
    )
    monkeypatch.setattr(cluster.Connecting, "session", lambda self: session)
    with pytest.raises(UsageError, match=words):
        connect(tmp_path / "work", choice=EngineChoice("spark", "sc://host:15002"))
    assert stopped == [True]


@pytest.mark.parametrize(
    ("text", "failure", "lost"),
    [
        ("Resources exhausted: Failed to allocate 12 bytes", Failure.MEMORY, False),
        ("Job aborted due to stage failure: ExecutorLostFailure (executor 1 exited) exit code 137", Failure.MEMORY, False),
        ("ExecutorLostFailure (executor 2 exited caused by one of the running tasks)", Failure.WORKER, True),
        ("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 4 GiB", Failure.MEMORY, False),
        ("ModuleNotFoundError: No module named 'censafe'", Failure.SETUP, False),
        ("RuntimeError: worker of another version of censafe: 0.0.9, not 0.1.0", Failure.SETUP, False),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9", Failure.SETUP, False),
        ("[PATH_NOT_FOUND] Path does not exist: file:/x", Failure.FILES, False),
        ("No space left on device", Failure.FULL, False),
        ("StatusCode.UNAVAILABLE failed to connect to all addresses", Failure.SERVER, True),
        ("something else 100000001", Failure.OTHER, True),
    ],
)  # fmt: skip
def test_failures_by_their_words(text: str, failure: Failure, lost: bool) -> None:
    found = failure_of(cluster.PySparkException(text))
    assert (found, found.lost) == (failure, lost)
    assert "100000001" not in str(found.error("spark"))


@pytest.mark.parametrize("text", ["polars", "sail=sc://x", "duckdb=x", "spark=localhost:15002", "spark=", ""])
def test_engines_that_there_are_not(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    with pytest.raises(UsageError, match=r"allowed: .*spark=sc://HOST:PORT"):
        EngineChoice.parse(text)


def test_an_engine_that_is_not_installed_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("censafe.model.engine.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r'pip install "censafe\[sail\]"'):
        EngineChoice.parse("sail")


def test_a_path_that_is_a_pattern_is_refused(tmp_path: Path) -> None:
    engine = connect(tmp_path / "work", choice=EngineChoice.parse("sail"))
    folder = tmp_path / "a[1]"
    folder.mkdir()
    pq.write_table(pa.table({"key": pa.array([1], pa.int64())}), folder / "x.parquet")
    with pytest.raises(UsageError, match=r"takes .* for a pattern"):
        engine.scan("x", (folder / "x.parquet",), ("key",))
    engine.disconnect()


def test_a_program_without_a_file_may_use_an_engine() -> None:
    """PySpark would end it, as it takes it for its own tests."""
    program = (
        "import censafe.tabulation.engine.cluster, sys; print(hasattr(sys.modules['__main__'], '__file__'))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "False", "")
