"""Every engine that is installed, and random PHSafe inputs with faults of many kinds."""

import os
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from censafe.model.engine import Engine
from support.phsafe_inputs import Tables

SAIL = find_spec("pysail") is not None and find_spec("pyspark") is not None


def spark_home() -> Path | None:
    """Where Apache Spark is, when ``$SPARK_HOME`` names it and there is Java."""
    home = os.environ.get("SPARK_HOME")
    return Path(home) if home and shutil.which("java") else None


def installed() -> list[str]:
    """Engines beside DuckDB that tests run."""
    return (["sail"] if SAIL else []) + (["spark"] if SAIL and spark_home() else [])


def free_port() -> int:
    """A port of this machine that nothing listens to."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def spark_server(work: Path, master: str = "local[2]", *settings: str) -> Iterator[str]:
    """Apache Spark as a Connect server of its own process; yields its address."""
    home, port = spark_home(), free_port()
    if home is None:
        raise LookupError("no Apache Spark")
    options = [
        f"spark.connect.grpc.binding.port={port}",
        f"spark.local.dir={work}",
        "spark.ui.enabled=false",
        "spark.sql.shuffle.partitions=2",
    ]
    command = [str(home / "bin" / "spark-submit"), "--master", master]
    for option in (*options, *settings):
        command += ["--conf", option]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    work.mkdir(parents=True, exist_ok=True)
    with (work / "spark.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=work,
            env=os.environ | {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable},
            stdout=log,
            stderr=log,
        )
    try:
        _await(port, process)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        if process.poll() is not None:
            break
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise LookupError("the server did not start")


def random_tables(households: int, chance: random.Random, faults: float) -> Tables:
    """Households of zero to nine persons, some of them alike, in four states; a share of rows is broken."""
    persons, units, geo = [], [], []
    for mafid in range(100000001, 100000001 + households):
        size = chance.choice([0, 1, 2, 2, 3, 4, 9])
        state = chance.choice(["44", "44", "50", "06"])
        kind = chance.choice(["2"] * 9 + ["4"])
        key = str(mafid)
        codes = [
            f"{chance.randrange(top):0{width}d}"
            for top, width in ((3, 1), (64, 2), (5, 1), (8, 1), (13, 2), (6, 1))
        ]
        units.append((kind, key, str(size), str(size if size > 1 else 0), *codes))
        geo.append((kind, key, state, "001", "000100", "1000", "1", "1", "1", "99999", "9999"))
        for _ in range(size):
            age, race = str(chance.choice([2, 9, 17, 40, 115])), f"{chance.randrange(1, 9):02d}"
            relation = str(chance.choice([20, 21, 25, 26, 30, 37]))
            persons.append((chance.choice("3335"), key, age, chance.choice("12"), race, relation))
    tables: Tables = {"persons": persons, "units": units, "geo": geo}
    return {
        name: [_broken(row, chance, faults) for row in rows] + _repeated(rows, chance, faults)
        for name, rows in tables.items()
    }


_BAD = ("", "x", " 3", "03", "7.5", "999999999999", "-1", "\uff19")


def _broken(row: tuple[str, ...], chance: random.Random, faults: float) -> tuple[str, ...]:
    if chance.random() >= faults:
        return row
    place = chance.randrange(len(row))
    return (*row[:place], chance.choice(_BAD), *row[place + 1 :])


def _repeated(rows: list[tuple[str, ...]], chance: random.Random, faults: float) -> list[tuple[str, ...]]:
    return [row for row in rows if chance.random() < faults / 4]


class SailServer:
    """Sail as a server of its own process, which a test may kill."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"sc://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        """Start it at its port, as a supervisor does."""
        words = ("spark", "server", "--ip", "127.0.0.1", "--port", str(self.port))
        quiet = os.environ | {"RUST_LOG": "off"}
        self._process = subprocess.Popen([Path(sys.executable).with_name("sail"), *words], env=quiet)
        _await(self.port, self._process)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(30)


class Repeating:
    """An engine whose tasks all run twice and come back in the order of the last first."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def compute(self, name: str, tasks: Any, schema: Any) -> Any:
        return self._engine.compute(name, [*reversed(tasks), *tasks], schema)

    def batches(self, table: Any, rows: int) -> Any:
        return self._engine.batches(table, rows)

    def drop(self, *names: str) -> None:
        self._engine.drop(*names)


class Losing(Repeating):
    """An engine that forgets a task."""

    def compute(self, name: str, tasks: Any, schema: Any) -> Any:
        return self._engine.compute(name, tasks[1:], schema)
