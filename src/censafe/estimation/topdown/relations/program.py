"""Blocks whose relations no single move meets: their records chosen all at once, by an integer program.

For a block, x_ks records of kind k take signature s. What relations ask is linear in x, so that a program finds records that meet all of them
and leave as many as possible as they were, where there are any.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, vstack

from censafe.estimation.topdown.relations.kernels import ANY, EQUAL, FREE, OPEN, Records, Rules
from censafe.model.arrays import Floats, Integers
from censafe.model.programs import Program, solve_program


@dataclass(frozen=True, eq=False)
class ChosenVariants:
    """What a program found for a block."""

    variant: NDArray[np.int32] = field(repr=False)
    changed: int


def chosen_records(b: int, records: Records, rules: Rules, slack: int) -> ChosenVariants | None:
    """Variants of the records of a block that meet all relations, as few of them changed as possible."""
    span = slice(int(records.pointer[b]), int(records.pointer[b + 1]))
    if span.start == span.stop:
        return None
    kinds, kind = np.unique(records.kind[span], return_inverse=True)
    may = np.zeros((len(kinds), len(rules.sums)), np.bool_)
    for place, one in enumerate(kinds.tolist()):
        may[place, rules.signature[rules.allowed[one]]] = True
    at, signature = np.nonzero(may)
    own = np.zeros(may.shape, np.int64)
    np.add.at(own, (kind, rules.signature[records.variant[span]]), 1)
    for most in (slack, int(records.target[b].max(initial=0))):
        units = _least_changed(at, own, may, _limits(rules, records.target[b], signature, most))
        if units is not None:
            wanted = np.zeros(may.shape, np.int64)
            wanted[at, signature] = units
            return _variants(records.variant[span], kind, kinds, wanted, rules)
    return None


def _limits(
    rules: Rules, target: Integers, signature: Integers, most: int
) -> list[tuple[Integers, float, float]]:
    """Numbers of the unknowns in every sum, and what it may be, at least and at most."""
    sums = rules.sums[signature]
    found = []
    for r, code in enumerate(rules.code.tolist()):
        right = float(target[r])
        if code == OPEN:
            found.append((sums[:, r], -np.inf, right))
            found.append((sums[:, r] + most * sums[:, -1], right, np.inf))
        elif code != FREE:
            least = right if code == EQUAL else min(right, 1.0) if code == ANY else -np.inf
            found.append((sums[:, r], least, right))
    return found


def _least_changed(
    at: Integers, own: Integers, may: NDArray[np.bool_], limits: list[tuple[Integers, float, float]]
) -> Integers | None:
    """Records by unknown that obey the limits, as many as possible as they were; None where there are none."""
    stays = np.flatnonzero(own[may])  # unknowns that some records have now
    size, width = len(at), len(at) + len(stays)
    total = own.sum(axis=1).astype(float)
    row = np.arange(len(stays))
    value = np.concatenate([np.ones(len(stays)), -np.ones(len(stays))])
    place = (np.tile(row, 2), np.concatenate([stays, size + row]))
    rows = np.zeros((len(limits), width))
    if limits:
        rows[:, :size] = np.stack([numbers for numbers, _, _ in limits])
    matrix = vstack(
        [
            coo_array((np.ones(size), (at, np.arange(size))), (len(total), width)),
            coo_array((value, place), (len(stays), width)),
            coo_array(rows),
        ],
        format="csr",
    )
    upper: Floats = np.concatenate([total[at], own[may][stays]]).astype(float)
    solution = solve_program(
        Program(
            np.concatenate([np.zeros(size), -np.ones(len(stays))]),
            matrix,
            np.concatenate([total, np.zeros(len(stays)), [one for _, one, _ in limits]]),
            np.concatenate([total, np.full(len(stays), np.inf), [one for _, _, one in limits]]),
            0.0,
            upper,
            True,
        )
    )
    return None if solution.x is None else np.rint(solution.x[:size]).astype(np.int64)


def _variants(
    before: NDArray[np.int32], kind: Integers, kinds: NDArray[np.int32], wanted: Integers, rules: Rules
) -> ChosenVariants:
    """Variants with the wanted records by kind and signature: records stay where they can, the others change in the fewest recodes."""
    variant, left = before.copy(), wanted.copy()
    waits = []
    for i, (k, s) in enumerate(zip(kind.tolist(), rules.signature[before].tolist(), strict=True)):
        if left[k, s] > 0:
            left[k, s] -= 1
        else:
            waits.append(i)
    for i in waits:
        k = int(kind[i])
        s = left[k, rules.signature]
        can = np.flatnonzero(rules.allowed[kinds[k]] & (s > 0))
        differ = (rules.recodes[:, can] != rules.recodes[:, before[i]][:, None]).sum(axis=0)
        variant[i] = can[int(differ.argmin())]
        left[k, rules.signature[variant[i]]] -= 1
    return ChosenVariants(variant, len(waits))
