"""Hashes of input files, and how far they are."""

import hashlib
from pathlib import Path

import pytest

from censafe.errors import DataError, StorageError
from censafe.model.observer import SilentObserver
from censafe.products.run import inputs
from censafe.products.run.inputs import Inputs, hash_files


class _Heard(SilentObserver):
    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[float, int, str]] = []

    def advance(self, share: float, total: int = 0, noun: str = "") -> None:
        self.heard.append((share, total, noun))


def test_files_of_one_name_in_two_places_have_hashes_of_their_own(tmp_path: Path) -> None:
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    for folder, text in ((data, b"records"), (elsewhere, b"areas")):
        folder.mkdir()
        (folder / "geo.csv").write_bytes(text)
    taken = Inputs((data / "geo.csv",), (elsewhere / "geo.csv",), data, SilentObserver())
    assert taken.confidential == {"geo.csv": hashlib.sha256(b"records").hexdigest()}
    assert taken.public == {"geo.csv": hashlib.sha256(b"areas").hexdigest()}
    taken.require_unchanged()
    (data / "geo.csv").write_bytes(b"recorde")
    with pytest.raises(DataError, match=r"geo\.csv changed while the run was reading"):
        taken.require_unchanged()


def test_hashing_says_how_many_megabytes_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "_BLOCK", 1_000_000)
    content = bytes(range(250)) * 10_000
    (tmp_path / "persons.csv").write_bytes(content)
    heard = _Heard()
    found = hash_files((tmp_path / "persons.csv",), tmp_path, heard)
    assert found == {"persons.csv": hashlib.sha256(content).hexdigest()}
    assert heard.heard == [(0.0, 2, "MB"), (0.5, 2, "MB"), (1.0, 2, "MB")]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"persons\.csv: the file cannot be read"):
        hash_files((tmp_path / "persons.csv",), tmp_path, SilentObserver())
