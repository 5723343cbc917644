"""Parts of the tree that are done, kept in the folder of a run until all of it is finished: everything in them is public."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.linear.upward import Children, LowerLevel
from censafe.model import SparseLevel
from censafe.publication.atomic import atomic_bytes
from censafe.publication.finished_levels import FinishedLevel, read_finished_level, write_finished_level
from censafe.publication.stamps import STAMP

__all__ = ["KeptParts"]

_KEY: Final = 32  # bytes of a digest


@dataclass(frozen=True)
class KeptParts:
    """Where the parts of one run are kept; a file appears there complete or not at all.

    Args:
        folder: of the run.
        plan_digest: of its plan, which with the inputs and the configuration is the identity of the run folder.
        stamped: whether the noise came from a test key.
    """

    folder: Path
    plan_digest: str
    stamped: bool

    def blocks(self, name: str) -> FinishedLevel | None:
        """Final histograms of the blocks of a part, or None where it is not done.

        Raises:
            CheckError: the file was changed.
        """
        path = self.folder / f"{name}.parquet"
        return read_finished_level(path, plan_digest=self.plan_digest) if path.exists() else None

    def keep_blocks(self, name: str, level: SparseLevel, report: dict[str, Any]) -> FinishedLevel:
        """Keep the final histograms of the blocks of a part."""
        finished = FinishedLevel.of(name, level, report, "seeded" if self.stamped else "system")
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{name}.parquet"
        write_finished_level(
            path, finished, plan_digest=self.plan_digest, stamp=STAMP if self.stamped else None
        )
        return finished

    def children(self, name: str) -> Children | None:
        """What a part hands to its widest geounits, or None where its linear estimates are not done.

        Raises:
            CheckError: the file is damaged.
        """
        found = self._read(f"{name}.children.npz")
        return None if found is None else _children(found)

    def lower(self, name: str) -> tuple[LowerLevel, ...]:
        """Linear estimates of the levels of a part, the widest first.

        Raises:
            CheckError: the file is missing or damaged.
        """
        found = self._read(f"{name}.lower.npz")
        if found is None:
            raise CheckError(f"{self.folder / name}.lower.npz is missing; start again in a new folder")
        return tuple(_level(found, depth) for depth in range(int(found["levels"])))

    def keep_lower(self, name: str, lower: tuple[LowerLevel, ...], children: Children) -> None:
        """Keep linear estimates of a part; what it hands up is written last and says that the rest is there."""
        arrays: dict[str, NDArray[Any]] = {"levels": np.array(len(lower))}
        for depth, level in enumerate(lower):
            arrays |= {f"{name}_{depth}": values for name, values in _arrays(level).items()}
        self.folder.mkdir(parents=True, exist_ok=True)
        for what, content in (("lower", arrays), ("children", _arrays(children))):
            with atomic_bytes(self.folder / f"{name}.{what}.npz") as stream:
                np.savez(stream, **content)  # type: ignore[arg-type]  # its second parameter is no array

    def _read(self, name: str) -> dict[str, NDArray[Any]] | None:
        path = self.folder / name
        if not path.exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as found:
                return {key: found[key] for key in found.files}
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise CheckError(f"{path} is damaged; remove it and start again") from error


def _arrays(one: LowerLevel | Children) -> dict[str, NDArray[Any]]:
    found = {field.name: getattr(one, field.name) for field in fields(one)}
    found["keys"] = np.frombuffer(b"".join(found["keys"]), np.uint8)
    return {name: values for name, values in found.items() if values is not None}


def _keys(letters: NDArray[Any]) -> tuple[bytes, ...]:
    whole = letters.tobytes()
    return tuple(whole[first : first + _KEY] for first in range(0, len(whole), _KEY))


def _children(found: dict[str, NDArray[Any]]) -> Children:
    names = ("covariance", "support", "groups")
    return Children(found["sums"], found["sort"], _keys(found["keys"]), *(found[name] for name in names))


def _level(found: dict[str, NDArray[Any]], depth: int) -> LowerLevel:
    own = {field.name: found.get(f"{field.name}_{depth}") for field in fields(LowerLevel)}
    return LowerLevel(**{**own, "keys": _keys(found[f"keys_{depth}"])})  # type: ignore[arg-type]  # from a file
