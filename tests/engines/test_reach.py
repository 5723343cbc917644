"""Who can reach a server that is started for a run: the process of the run, and nobody else."""

import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.errors import StorageError, UsageError
from censafe.model.engine import EngineChoice, fetch
from censafe.model.observer import SilentObserver
from censafe.tabulation.engine import connect, sail_server
from support.engines import SAIL

if not SAIL:
    pytest.skip("neither Sail nor its client is installed", allow_module_level=True)

PROBE = """import socket, sys
with socket.socket(socket.AF_UNIX) as one:
    one.connect(sys.argv[1])
    try:
        one.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n")
        print(len(one.recv(1)))
    except ConnectionError:
        print(0)
"""
NO_NAMESPACE = """import sys
from censafe.tabulation.engine import sail_server
sail_server.keep_apart = lambda: False
sail_server._serve(sys.argv[1], int(sys.argv[2]), sys.argv[3])
"""


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[tuple[Any, SilentObserver]]:
    observer = SilentObserver()
    try:
        engine: Any = connect(
            tmp_path / "work", threads=1, choice=EngineChoice.parse("sail"), observer=observer
        )
    except UsageError as error:
        pytest.skip(str(error))
    yield engine, observer
    engine.disconnect()


def counted(engine: Any, folder: Path) -> int:
    pq.write_table(pa.table({"key": pa.array(range(7), pa.int64())}), folder / "rows.parquet")
    engine.scan("rows", (folder / "rows.parquet",), ("key",))
    return int(fetch(engine.table("rows").count())[0][0].as_py())


def test_only_the_process_of_the_run_reaches_its_server(
    apart: tuple[Any, SilentObserver], tmp_path: Path
) -> None:
    engine, observer = apart
    server = engine._connecting._server
    assert counted(engine, tmp_path) == 7
    assert any("answers this process alone" in remark for remark in observer.remarks)
    path = Path(server.target.removeprefix("unix:"))
    assert path.parent.stat().st_mode & 0o777 == 0o700
    done = subprocess.run([sys.executable, "-c", PROBE, path], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"  # while the process of the run is answered:
    with socket.socket(socket.AF_UNIX) as own:
        own.connect(str(path))
        own.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert own.recv(1)
    spaces = [Path(f"/proc/{pid}/ns/net").readlink() for pid in (server.pid, os.getpid())]
    assert spaces[0] != spaces[1]  # so its port is none of this machine
    assert server.pid != os.getpid()
    assert (
        b"sail_server" in Path(f"/proc/{server.pid}/cmdline").read_bytes()
    )  # another program, which was given no key


def test_the_server_ends_with_the_run(tmp_path: Path) -> None:
    server = sail_server.SailServer(1, trust_this_machine=True)
    folder = Path(server._folder.name)
    server.stop()
    assert (server.lost, folder.exists()) == (True, False)
    left = sail_server.SailServer(1, trust_this_machine=True)
    left._process.stdin.close()  # as when the process of the run is killed
    assert left._process.wait(30) == 0
    left.stop()


def test_where_there_is_no_namespace_the_operator_must_trust_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "without.py"
    script.write_text(NO_NAMESPACE, encoding="utf-8")
    monkeypatch.setattr(sail_server, "__file__", str(script))
    with pytest.raises(UsageError, match="`engine_trust_this_machine`"):
        connect(tmp_path / "work", choice=EngineChoice.parse("sail"))
    observer = SilentObserver()
    choice = EngineChoice.parse("sail", trust_this_machine=True)
    engine: Any = connect(tmp_path / "work", threads=1, choice=choice, observer=observer)
    assert counted(engine, tmp_path) == 7
    assert [remark.partition(",")[0] for remark in observer.remarks] == [
        "Warning: Sail listens on a port of this machine"
    ]
    engine.disconnect()


@pytest.mark.long
def test_a_lost_server_is_reported_once_within_half_a_minute(
    apart: tuple[Any, SilentObserver], tmp_path: Path
) -> None:
    engine, _ = apart
    assert counted(engine, tmp_path) == 7
    os.kill(engine._connecting._server.pid, signal.SIGKILL)
    start = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(StorageError, match="server was lost; start the same command again"):
            fetch(engine.table("rows").count())
        engine.disconnect()
    assert time.monotonic() - start < 30
