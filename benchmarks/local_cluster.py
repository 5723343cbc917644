"""An engine for a benchmark: one by name, or Apache Spark with three worker processes of 2 GiB on this machine.

`--engine local-cluster` starts Apache Spark ($SPARK_HOME, and Java) as `local-cluster[3,1,2048]` before the clock starts: three workers, each
a process of its own with one core and 2 GiB, of which its Java has half. Workers of Sail are processes of their own on Kubernetes alone.
`workers_gib` of a result is the largest resident memory of one worker, its Python processes included, sampled twice a second.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

_CLUSTER = "local-cluster"
_MASTER = "local-cluster[3,1,2048]"
_SETTINGS = ("spark.executor.memory=1g", "spark.ui.enabled=false", "spark.sql.shuffle.partitions=6")
_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_WORKER = b"CoarseGrainedExecutorBackend"
_TRIES = 1200


def add_engine(parser: argparse.ArgumentParser) -> None:
    """The option of the engine of a benchmark."""
    choices = "duckdb, sail, spark=sc://HOST:PORT or local-cluster"
    parser.add_argument("--engine", default="duckdb", help=choices)


def workers_text(gib: float | None) -> str:
    """The end of a line of results, where workers were measured."""
    return "" if gib is None else f", workers {gib:.2f} GiB each at most"


@dataclass
class RunningEngine:
    """What `--engine` of a command is, and how much memory a worker of our own cluster took at most."""

    option: str
    workers_gib: float | None = None

    def watch(self, server: int, stop: Event) -> None:
        """Sample the memory of the workers until the cluster ends."""
        self.workers_gib = 0.0
        while not stop.wait(0.5):
            self.workers_gib = max(self.workers_gib, *_resident(server), 0.0)


@contextmanager
def engine_of(name: str, folder: Path) -> Iterator[RunningEngine]:
    """The engine of a benchmark while a command is measured; the folder is for logs and files of the cluster."""
    if name != _CLUSTER:
        yield RunningEngine(name)
        return
    home = Path(os.environ.get("SPARK_HOME") or sys.exit("set SPARK_HOME to a folder of Apache Spark 4"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    options = (f"spark.connect.grpc.binding.port={port}", f"spark.local.dir={folder}", *_SETTINGS)
    command = [str(home / "bin" / "spark-submit"), "--master", _MASTER]
    for option in options:
        command += ["--conf", option]
    environment = os.environ | {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    with (folder / "spark.log").open("wb") as log:
        words = [*command, "--class", _SERVER, "spark-internal"]
        server = subprocess.Popen(words, cwd=folder, env=environment, stdout=log, stderr=log)
    running, stop = RunningEngine(f"spark=sc://127.0.0.1:{port}"), Event()
    try:
        _await(port, server)
        watching = Thread(target=running.watch, args=(server.pid, stop), daemon=True)
        watching.start()
        yield running
        stop.set()
        watching.join()
    finally:
        server.terminate()
        server.wait(60)


def _await(port: int, server: subprocess.Popen[bytes]) -> None:
    for _ in range(_TRIES):
        if server.poll() is not None:
            break
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit("Apache Spark did not start; spark.log in the folder of the benchmark says why")


def _resident(server: int) -> Iterator[float]:
    """GiB of every worker below a server, with the processes that it started."""
    parents: dict[int, int] = {}
    memory: dict[int, float] = {}
    workers = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            number = int(place.name)
            parents[number] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            memory[number] = int((place / "statm").read_text().split()[1]) * 4096 / 2**30
            if _WORKER in (place / "cmdline").read_bytes():
                workers.append(number)
        except OSError:
            continue
    for worker in workers:
        if server in _above(worker, parents):
            yield sum(size for number, size in memory.items() if worker in (number, *_above(number, parents)))


def _above(number: int, parents: dict[int, int]) -> Iterator[int]:
    while number in parents and number > 1:
        number = parents[number]
        yield number
