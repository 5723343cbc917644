"""Part keys inside tasks of an engine: the one form in which a key leaves the process.

The workers of an engine draw noise where they estimate, and need the key of the one part that is estimated. Neither the run key nor a key of
another part travels. A traveling key shows no byte of itself in messages, is in no file that this package writes, and ends with its task.
"""

from __future__ import annotations

from typing import Any, Literal, NoReturn

from censafe.model.proven import proven
from censafe.privacy.keys.entropy import SECRET_BYTES, Secret
from censafe.privacy.keys.part_keys import Planned, ReleasePartKey, TestPartKey, source_of


class TravelingKey:
    """A part key as part of a task: it can be pickled, which no other key can.

    Args:
        key: of the part that workers estimate; it must be open, and must know its plan.
    """

    __slots__ = ("_bytes", "_part", "_planned", "_source")

    @proven("keys.proof.md", digest="64d32a730cd4716d")
    def __init__(self, key: ReleasePartKey | TestPartKey) -> None:
        if type(key) is not ReleasePartKey and type(key) is not TestPartKey:
            raise TypeError(f"only the key of a part travels, not a {type(key).__name__}")
        if key.planned is None:
            raise ValueError(f"the key of {key.part} knows no plan and does not travel")
        self._bytes = bytes(key._secret.reveal())
        self._part = key.part
        self._planned: Planned = key.planned
        self._source: Literal["system", "seeded"] = source_of(key)

    @proven("keys.proof.md", digest="405f14d9b28734db")
    def open(self) -> ReleasePartKey | TestPartKey:
        """The part key, where the task runs; close it when the task is done."""
        secret = Secret(bytearray(self._bytes))
        kind = ReleasePartKey if self._source == "system" else TestPartKey
        return kind(secret, self._part, None, self._planned)

    def __repr__(self) -> str:
        return "<TravelingKey>"

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if set(state) != set(self.__slots__) or len(state["_bytes"]) != SECRET_BYTES:
            raise TypeError("not a key of a part")
        for name, value in state.items():
            setattr(self, name, value)

    def __copy__(self) -> NoReturn:
        raise TypeError("a key cannot be copied")
