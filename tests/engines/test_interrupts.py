"""Ctrl-C while an engine computes."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.model.engine import EngineChoice
from censafe.tabulation.engine import connect
from support.engines import SAIL, SailServer

if not SAIL:
    pytest.skip("neither Sail nor its client is installed", allow_module_level=True)

from censafe.tabulation.engine.cluster import PySparkException


def opened(work: Path, choice: str) -> Any:
    engine = connect(work / "engine", choice=EngineChoice.parse(choice))
    path = work / "rows.parquet"
    pq.write_table(pa.table({"key": pa.array(range(1000), pa.int64())}), path)
    engine.scan("rows", (path,), ("key",))
    return engine


def test_sail_does_not_end_at_ctrl_c(tmp_path: Path) -> None:
    """A terminal sends the signal to the processes of its session, to which the server does not belong."""
    engine = opened(tmp_path, "sail")
    server = engine._connecting._server
    try:
        assert os.getsid(server.pid) == os.getpgid(server.pid) == server.pid
    finally:
        engine.disconnect()


def test_nothing_waits_for_a_lost_server_after_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pauses between attempts are counted, not the time of the test, which depends on the load of the machine."""
    from pyspark.sql.connect.client import (
        retries,  # after the engine, which lets the client be imported without Spark
    )

    pauses = list[float]()

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        time.sleep(seconds)

    monkeypatch.setattr(retries.Retrying.__init__, "__defaults__", (pause,))
    server = SailServer()
    try:
        engine = opened(tmp_path, f"spark={server.url}")
        rows = engine.table("rows")
        engine.store("held", rows.filter(rows.key >= 10))
    finally:
        server.kill()
    with ThreadPoolExecutor(1) as other:
        # The client releases what it has computed in threads, which it waits for as it is closed.
        released = other.submit(engine.session.conf.get, "spark.sql.ansi.enabled")
        engine.session.client._release_futures.add(released)
        while len(pauses) < 3:  # the next ones would be of 3, 4 and 4 seconds
            time.sleep(0.01)
        before = len(pauses)
        engine.interrupt()
        engine.drop("held")
        engine.disconnect()
        assert sum(pauses[before:]) < 1
        assert isinstance(released.exception(0), PySparkException)
