"""A generation of files that is interrupted at every rename: the next call gives the old one or the new one, never a mixture."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from censafe.errors import CheckError
from censafe.publication.generation import WORK, complete_move, is_moving, move_into_place

NAMES = ("certificate", "tables", "deep/table", "manifest")
OLD = {"certificate": "old", "tables/a": "old", "deep/table": "old", "gone/b": "old", "manifest": "old"}
NEW = {"certificate": "new", "tables/c": "new", "deep/table": "new", "manifest": "new"}


class Stopped(BaseException):
    pass


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def _read(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    found = {path.relative_to(folder).as_posix(): path.read_text() for path in files}
    return {name: text for name, text in found.items() if not name.startswith(WORK)}


def _stop_at(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    counter = itertools.count()

    def stopping(method: str) -> None:
        real = getattr(Path, method)

        def step(self: Path, *arguments: object, **options: object) -> object:
            if next(counter) == number:
                raise Stopped
            return real(self, *arguments, **options)

        monkeypatch.setattr(Path, method, step)

    for method in ("replace", "unlink"):
        stopping(method)


@pytest.mark.parametrize("number", range(12))
def test_a_move_that_stops_anywhere_is_taken_back_or_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    _write(tmp_path, OLD)
    _write(tmp_path / WORK / "staging", NEW)
    with monkeypatch.context() as patch:
        _stop_at(patch, number)
        try:
            move_into_place(tmp_path, NAMES, outdated=("gone", "certificate"))
            stopped = False
        except Stopped:
            stopped = True
    assert stopped == (number < 11)
    between = _read(tmp_path)
    if "manifest" in between and stopped:  # a manifest never stands over files of another generation
        assert {between[name] for name in between} == {between["manifest"]}
    decided = is_moving(tmp_path)
    assert complete_move(tmp_path) == decided
    assert _read(tmp_path) == (NEW if decided or not stopped else OLD)
    assert not is_moving(tmp_path)


@pytest.mark.parametrize("journal", ["", "{}", json.dumps({"names": ["../x"], "outdated": []})])
def test_a_journal_of_somebody_else_is_refused(tmp_path: Path, journal: str) -> None:
    _write(tmp_path, {f"{WORK}/journal.json": journal, "x": "mine"})
    with pytest.raises(CheckError, match=r"journal\.json"):
        complete_move(tmp_path)
    assert (tmp_path / "x").read_text() == "mine"
