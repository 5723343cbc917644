"""From the codes of a record to the iterations that it counts in: one look-up for every distinct combination."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.model.proven import proven
from censafe.products.detailed.codes.universe import Granularity, Kind, Universe

NULL_CODE: Final = 0
_ABSENT: Final = -1
_CODE_SPACE: Final = 10_000  # codes have four digits
_CHUNK: Final = 1 << 17


@dataclass(frozen=True, eq=False)
class IterationRows:
    """Iterations of every combination in compressed rows.

    Args:
        indptr: int64, shape (combinations + 1,); combination i has the ordinals ``indptr[i]`` to ``indptr[i + 1]``.
        ordinals: int32, ascending within a combination, none twice.
    """

    indptr: NDArray[np.int64]
    ordinals: NDArray[np.int32]

    @property
    def most(self) -> int:
        """Largest number of iterations of one combination."""
        return int(np.diff(self.indptr).max(initial=0))


def iteration_rows(
    universe: Universe, level: int, granularity: Granularity, combinations: NDArray[np.integer]
) -> IterationRows:
    """Iterations of every combination at a level and granularity.

    Args:
        combinations: shape (n, m + 1): m race codes, 0 for Null, then the ethnicity code.

    Source: SafeTab-P paper, definition of race groups; SafeTab-H code 3.0.0, characteristic iteration map.
    """
    kinds: tuple[Kind, ...] = ("alone", "combination", "ethnicity")
    # by kind, the ordinal of the only candidate of the kind that gathers a code
    ordinal_of = {kind: np.full(_CODE_SPACE, _ABSENT, dtype=np.int32) for kind in kinds}
    for ordinal, iteration in enumerate(universe.candidates(level, granularity).iterations):
        codes = np.fromiter(universe.members[iteration.code], dtype=np.int64)
        table = ordinal_of[iteration.kind]
        if (table[codes] != _ABSENT).any():
            raise ValueError(f"iteration {iteration.code} shares a code with another of its kind and level")
        table[codes] = ordinal
    known = np.zeros(_CODE_SPACE, dtype=np.bool_)
    known[np.fromiter(universe.codes, dtype=np.int64)] = True
    known[NULL_CODE] = True
    indptr = np.zeros(len(combinations) + 1, dtype=np.int64)
    pieces = []
    for start in range(0, len(combinations), _CHUNK):
        chunk = np.asarray(combinations[start : start + _CHUNK], dtype=np.int64)
        inside = (chunk >= 0) & (chunk < _CODE_SPACE)
        strange = ~(inside & known[np.where(inside, chunk, 0)]).all(axis=1)
        if strange.any():
            raise ValueError(f"{int(strange.sum())} combinations hold codes that are not in the code list")
        table = _iterations_of(chunk, ordinal_of)
        present = table != _ABSENT
        indptr[start + 1 : start + len(chunk) + 1] = present.sum(axis=1)
        pieces.append(table[present])
    ordinals = np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int32)
    return IterationRows(np.cumsum(indptr), ordinals)


@proven("stability.proof.md", digest="17620d9be04ee077")
def _iterations_of(
    combinations: NDArray[np.int64], ordinal_of: dict[Kind, NDArray[np.int32]]
) -> NDArray[np.int32]:
    """Iterations of every combination in ascending order, padded with -1; shape (n, m + 2)."""
    races, ethnicity = combinations[:, :-1], combinations[:, -1]
    filled = races != NULL_CODE
    alone = np.where(filled, ordinal_of["alone"][races], np.int32(_CODE_SPACE))
    shared = alone.min(axis=1)
    # A code without an alone candidate has -1, the least of all, and empties the intersection.
    same = (np.where(filled, alone, shared[:, None]) == shared[:, None]).all(axis=1) & filled.any(axis=1)
    columns = [
        np.where(same, shared, np.int32(_ABSENT))[:, None],
        np.where(filled, ordinal_of["combination"][races], np.int32(_ABSENT)),
        np.where(ethnicity != NULL_CODE, ordinal_of["ethnicity"][ethnicity], np.int32(_ABSENT))[:, None],
    ]
    table = np.sort(np.concatenate(columns, axis=1), axis=1)
    table[:, 1:][table[:, 1:] == table[:, :-1]] = _ABSENT
    return table
