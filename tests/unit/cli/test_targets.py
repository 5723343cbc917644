"""Files that an operator names: complete or as before, on a disk that is full and where something else stands."""

import errno
import os
from pathlib import Path

import pytest

from censafe.publication import atomic
from support.commands import CommandLine

COMMANDS = {
    "page": ("explore", "--out"),
    "workbook": ("plan", "phsafe", "sdhc-pr", "--json", "--xlsx"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_full_disk_leaves_what_was_there(
    censafe: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    def full(_path: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic, "sync", full)
    monkeypatch.setattr("censafe.api.data.explorer_page", lambda: "<!doctype html>")
    target = tmp_path / "target"
    target.write_text("before")
    censafe(*command, target, ends=1, says="the disk is full")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("target", "before")]


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_what_is_no_file_is_refused_and_stays(
    censafe: CommandLine, tmp_path: Path, command: tuple[str, ...]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    censafe(*command, tmp_path / "pipe", ends=1, says="it is a device, a pipe or a folder")
    assert (tmp_path / "pipe").is_fifo()
    censafe(*command, tmp_path / "none" / "target", ends=1, says="there is no folder")
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
