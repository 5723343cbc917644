"""Distinct combinations of codes, numbered in the order of their first appearance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from censafe.population.safetab.kernels import intern, rehash
from censafe.population.safetab.layout import RACES

__all__ = ["Combinations"]

_FIRST_ROOM = 1 << 14


class Combinations:
    """CONFIDENTIAL. A growing list of distinct packed combinations."""

    def __init__(self) -> None:
        self.count = 0
        self._grow(_FIRST_ROOM)

    def number(self, high: NDArray[np.uint64], low: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Ordinals of packed combinations, ``int32[rows]``; new ones are added."""
        out = np.empty(len(high), np.int32)
        row = 0
        while True:
            row, self.count = intern(high, low, self._slots, self._high, self._low, row, self.count, out)
            if row == len(high):
                return out
            self._grow(2 * len(self._high))

    def packed(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Upper and lower halves of all combinations so far."""
        return self._high[: self.count], self._low[: self.count]

    def codes(self, most: int) -> NDArray[np.int16]:
        """The codes of all combinations: ``most`` race codes and the origin code, ``int16[combinations, most + 1]``.

        Args:
            most: max_race_codes. 0 stands for Null.
        """
        high, low = self.packed()
        columns = [(high >> np.uint64(7 + 14 * (3 - k))) & np.uint64(0x3FFF) for k in range(4)]
        columns += [(low >> np.uint64(7 + 14 * (3 - k))) & np.uint64(0x3FFF) for k in range(RACES - 4)]
        span = ((high & np.uint64(127)) << np.uint64(7)) | (low & np.uint64(127))
        return np.column_stack([*columns[:most], span]).astype(np.int16)

    def _grow(self, room: int) -> None:
        old = self.packed() if self.count else (np.empty(0, np.uint64), np.empty(0, np.uint64))
        self._high, self._low = np.empty(room, np.uint64), np.empty(room, np.uint64)
        self._high[: self.count], self._low[: self.count] = old
        self._slots = np.full(2 * room, -1, np.int32)
        rehash(self._slots, self._high, self._low, self.count)
