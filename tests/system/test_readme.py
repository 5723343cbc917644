"""The commands of the README do what it says, one after the other, in an empty folder."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from support.commands import CommandLine

README = Path(__file__).resolve().parents[2] / "README.md"
COMMAND = re.compile(r"^\.venv/bin/censafe (.*?)(?:\s+#.*)?$", re.MULTILINE)


def test_every_command_of_the_readme_runs(
    censafe: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = [shlex.split(line) for line in COMMAND.findall(README.read_text(encoding="utf-8"))]
    assert {command[0] for command in commands} >= {"synth", "validate", "plan", "run", "ledger"}
    monkeypatch.chdir(tmp_path)
    for command in commands:
        done = censafe(*(word.replace("200000", "2000") for word in command))
        assert done.code == 0, (command, done.err)
    assert (tmp_path / "release" / "certificate.html").exists()
    assert (tmp_path / "detailed-b" / "tables" / "t3" / "T03001" / "T03001.csv").exists()


def test_the_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (program,) = re.findall(
        r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    monkeypatch.chdir(tmp_path)
    exec(program, {})  # noqa: S102
    assert (tmp_path / "rehearsal" / "certificate.html").exists()


def test_every_file_that_the_readme_links_to_exists() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (README.parent / link).exists()] == []
