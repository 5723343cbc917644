from __future__ import annotations

from pathlib import Path

import pytest

from support.commands import CommandLine, bureau_config, write_config
from support.phsafe_inputs import write_folder


@pytest.fixture
def censafe(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(monkeypatch, capsys)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "data")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path / "config.json", bureau_config())
