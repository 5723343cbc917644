"""Ctrl-C while an engine computes."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.model.engine import EngineChoice
from censafe.model.fetching import fetch
from censafe.tabulation.engine import connect
from support.engines import SAIL, SailServer

if not SAIL:
    pytest.skip("neither Sail nor its client is installed", allow_module_level=True)

from censafe.tabulation.engine.spark_client import PySparkException


def opened(work: Path, choice: str) -> Any:
    engine = connect(work / "engine", choice=EngineChoice.parse(choice))
    path = work / "rows.parquet"
    pq.write_table(pa.table({"key": pa.array(range(1000), pa.int64())}), path)
    engine.scan("rows", (path,), ("key",))
    return engine


def test_sail_in_this_process_does_not_end_at_ctrl_c(tmp_path: Path) -> None:
    """It listens to the signal as well; a server that has ended would be waited for, twenty seconds for every table."""
    engine = opened(tmp_path, "sail")
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    time.sleep(0.3)  # in which it would end
    start = time.monotonic()
    assert fetch(engine.table("rows").count())[0][0].as_py() == 1000
    engine.disconnect()
    assert time.monotonic() - start < 19


def test_nothing_waits_for_a_lost_server_after_an_interrupt(tmp_path: Path) -> None:
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
        time.sleep(1.5)  # after three attempts; the next ones would come after 3, 4 and 4 seconds
        start = time.monotonic()
        engine.interrupt()
        engine.drop("held")
        engine.disconnect()
        assert time.monotonic() - start < 11
        assert isinstance(released.exception(0), PySparkException)
