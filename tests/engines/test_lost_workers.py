"""A worker process of Apache Spark that is killed in the middle of a task: the task is done elsewhere, and counts once."""

import os
import signal
from pathlib import Path

import pytest

from censafe.model.engine import EngineChoice
from censafe.tabulation.engine import connect
from censafe.tabulation.engine.tasks import EngineTasks
from support.engines import SAIL, spark_home, spark_server

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not SAIL or spark_home() is None, reason="no Apache Spark, or no Java"),
]


def test_a_killed_worker_process(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()

    def work(parcel: int) -> bytes:
        tries = len(list(marks.glob(f"{parcel}-*")))
        (marks / f"{parcel}-{tries}").touch()
        if parcel == 3 and tries == 0:
            above = os.getpid()
            while b"CoarseGrainedExecutorBackend" not in Path(f"/proc/{above}/cmdline").read_bytes():
                above = int(Path(f"/proc/{above}/stat").read_text().rpartition(")")[2].split()[1])
            os.kill(above, signal.SIGKILL)
        return str(parcel * parcel).encode()

    with spark_server(tmp_path / "spark", "local-cluster[2,1,1024]", "spark.executor.memory=512m") as url:
        engine = connect(tmp_path / "engine", choice=EngineChoice.parse(f"spark={url}"))
        tasks = EngineTasks(engine, tmp_path / "tasks", 1)
        expected = [str(parcel * parcel).encode() for parcel in range(8)]
        assert expected == list(tasks.results(work, range(8)))
        engine.disconnect()
    assert len(list(marks.glob("3-*"))) >= 2  # it ran twice
    assert list((tmp_path / "tasks").iterdir()) == []
