"""censafe doctor sees what it is for."""

import errno
import importlib.metadata
import json
import os
from pathlib import Path

import pytest

from support.commands import CommandLine


def test_a_machine_on_which_the_suite_runs_is_well(censafe: CommandLine, tmp_path: Path) -> None:
    done = censafe("doctor", "--folder", tmp_path, "--json", ends=0)
    rows = {row["check"]: row for row in json.loads(done.out)}
    assert rows.keys() >= {"censafe", "python", "duckdb", "cores", "memory", "disk", "clock", "entropy", "compiler cache", "extra spark"}  # fmt: skip
    assert str(tmp_path) in rows["disk"]["value"]
    assert rows["duckdb"]["value"] == importlib.metadata.version("duckdb")


def test_what_is_wrong_is_said_with_what_to_do(censafe: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_entropy(*_arguments: int) -> bytes:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(os, "getrandom", no_entropy)
    monkeypatch.setattr("time.time", lambda: 0.0)
    done = censafe("doctor", ends=4)
    lines = done.out.splitlines()
    assert any(line.startswith("wrong   entropy") and "wait until" in line for line in lines)
    assert any(line.startswith("wrong   clock") and "1970-01-01" in line for line in lines)


def test_a_folder_that_is_not_there_is_refused(censafe: CommandLine, tmp_path: Path) -> None:
    censafe("doctor", "--folder", tmp_path / "none", ends=2, says="does not exist")
