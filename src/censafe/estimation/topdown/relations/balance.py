"""Records of one block that exchange their variants, so that a chosen kind of record keeps its sums by class over all blocks.

A change is chosen by its block and by sums of recodes of variants, so that records that come to be of the chosen kind, such as householders, are of other
classes, such as races, than those that cease to be. With s_c the net change of the chosen records of class c over the blocks so far, a chosen record of a
class with s > 0 and another one of its block and of a class with s < 0 exchange their variants. All sums over variants of the block stay
as they are, and both s come nearer to 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import boolean, int32, int64
from numpy.typing import NDArray

from censafe.estimation.topdown.relations.kernels import RECORDS, RULES, Records
from censafe.model.arrays import Integers
from censafe.model.compiled import compiled


@dataclass(frozen=True, eq=False)
class BalancedRecords:
    """Records whose sums by class are brought back.

    Args:
        chosen: which variants these records have, shape (V,).
        group: class of records by kind, int32, shape (kinds,).
        alike: what must be the same of two records that exchange their variants, by kind, int32, shape (kinds,).
    """

    chosen: NDArray[np.bool_] = field(repr=False)
    group: NDArray[np.int32] = field(repr=False)
    alike: NDArray[np.int32] = field(repr=False)

    def sums(self, records: Records) -> Integers:
        """Chosen records of one parent by class."""
        own = self.group[records.kind[self.chosen[records.variant]]]
        return np.bincount(own, minlength=int(self.group.max(initial=0)) + 1).astype(np.int64)


@compiled(boolean(int64, int64, RECORDS, RULES, int32[::1]))
def _may(i, j, records, rules, alike):  # type: ignore[no-untyped-def]
    """Whether two records may exchange their variants."""
    one, other = records.kind[i], records.kind[j]
    may = rules.allowed[one, records.variant[j]] and rules.allowed[other, records.variant[i]]
    return may and alike[one] == alike[other]


@compiled(int64(RECORDS, RULES, boolean[::1], int32[::1], int32[::1], int64[::1]))
def balance(records, rules, chosen, group, alike, net):  # type: ignore[no-untyped-def]
    """Let records of one block exchange their variants where that brings two classes nearer to 0.

    Args:
        chosen: which variants the balanced records have, shape (V,).
    """
    found, variant, kind = 0, records.variant, records.kind
    for b in range(records.pointer.shape[0] - 1):
        first, last = records.pointer[b], records.pointer[b + 1]
        for i in range(first, last):
            if not chosen[variant[i]] or net[group[kind[i]]] <= 0:
                continue
            for j in range(first, last):
                if not chosen[variant[j]] and net[group[kind[j]]] < 0 and _may(i, j, records, rules, alike):
                    variant[i], variant[j] = variant[j], variant[i]
                    net[group[kind[i]]] -= 1
                    net[group[kind[j]]] += 1
                    found += 1
                    break
    return found
