"""Finished runs that several tests start from: each is made once in a test session, and a test that changes one has a copy of its own."""

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.once import made_once


@dataclass(frozen=True)
class Runs:
    """``censafe run`` with a test key, once for every configuration, records and choice of options."""

    factory: pytest.TempPathFactory

    def __call__(self, product: str, config: object, data: Path, *options: object) -> Path:
        """The folder of the run, which other tests read as well."""
        key = hashlib.sha256(repr([_content(word) for word in (product, config, data, *options)]).encode())
        words = ["run", product, config, data]

        def make(folder: Path) -> None:
            from censafe.cli import root

            command = [str(word) for word in (*words, folder / "out", *options, "--quiet")]
            root.main(command, prog_name="censafe", standalone_mode=False)

        return made_once(self.factory, f"run-{key.hexdigest()[:16]}", make) / "out"

    def copy(self, out: Path, product: str, config: object, data: Path, *options: object) -> Path:
        """A copy of that folder in ``out``, which may be changed."""
        return Path(shutil.copytree(self(product, config, data, *options), out))


def _content(word: object) -> object:
    """Files by their content, since every test has its records in a folder of its own."""
    if not isinstance(word, Path):
        return str(word)
    files = sorted(word.rglob("*")) if word.is_dir() else [word]
    return [(str(path.relative_to(word)), path.read_bytes()) for path in files if path.is_file()]
