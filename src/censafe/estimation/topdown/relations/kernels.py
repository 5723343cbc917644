"""Moves of records between and inside the blocks of one parent, until what the relations ask of every block is met.

Every block b has sums S_br of whole numbers F_sr over its records, s being the signature of a record's variant, and a target T_br. With
o_b records of open size, a relation misses

    equal             |S - T|                         at most          max(S - T, 0)
    at most, and any  max(S - T, 0), and 1 where S = 0 < T             equal unless open  |S - T| beyond 0 .. l o, T above S

where l is what one open record may hold beyond its size. A move is made where it lowers the weighted sum of what the blocks miss.

    move      two records of one group change places between two blocks; the parent's histogram stays as it is
    exchange  two records of two blocks exchange their variants; sums of the parent by variant stay as they are
    change    one record takes another variant, at a price

Every move lowers a sum of whole numbers above 0, so there is an end. Records of a block lie side by side.

Relations that are missed in one direction ask for changes in one direction, which would add up over the blocks. Afterwards records
therefore take other variants where that breaks nothing, until the sums of all blocks so far are back where they were:

    return    one record takes another variant; its block misses no more, and net changes come nearer to 0
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int32, int64, void
from numpy.typing import NDArray

from censafe.model.arrays import Floats, Integers
from censafe.model.compiled import compiled
from censafe.model.named_arrays import tuple_type

EQUAL, MOST, ANY, OPEN, FREE = 0, 1, 2, 3, 4
"""Codes of relations; a free sum asks for nothing, and the last sum counts records of open size."""


class Rules(NamedTuple):
    """What relations ask, and which variants there are."""

    signature: NDArray[np.int32]  # (V,) of every variant
    sums: Integers  # (S, R) F
    code: Integers  # (R,)
    weight: Integers  # (R,) of a record that is missed, above 0; more where other relations depend on it
    allowed: NDArray[np.bool_]  # (kinds, V) variants that a record of a kind may have
    recodes: NDArray[np.int32]  # (Q, V) groups of variants that a change should leave alone
    shares: Floats  # (Q,) weight of a net change of a recode relative to others


class Records(NamedTuple):
    """Records of the blocks of one parent, block by block."""

    pointer: Integers  # (B + 1,)
    group: NDArray[np.int32]  # (n,) records of one group may change places
    kind: NDArray[np.int32]  # (n,)
    variant: NDArray[np.int32]  # (n,)
    name: Integers  # (n,) position of the record at the beginning, which moves with it
    target: Integers  # (B, R) T
    state: Integers  # (B, R) S


RULES = tuple_type(
    Rules, int32[::1], int64[:, ::1], int64[::1], int64[::1], boolean[:, ::1], int32[:, ::1], float64[::1]
)
RECORDS = tuple_type(
    Records, int64[::1], int32[::1], int32[::1], int32[::1], int64[::1], int64[:, ::1], int64[:, ::1]
)


@compiled(int64(int64, int64, int64, int64, int64))
def _misses_of(code, over, target, open_records, slack):  # type: ignore[no-untyped-def]
    """What a relation misses whose sum is over its target, with the open records of the block."""
    if code == FREE:
        return 0
    if code == EQUAL:
        return abs(over)
    if code == OPEN and over < 0:
        return max(-over - slack * open_records, 0)
    if code == ANY and target > 0 and over == -target:
        return 1
    return max(over, 0)


@compiled(int64(int64, RECORDS, RULES, int64))
def missed(b, records, rules, slack):  # type: ignore[no-untyped-def]
    """What a block misses."""
    misses, open_records = 0, records.state[b, rules.code.shape[0] - 1]
    for r in range(rules.code.shape[0]):
        over = records.state[b, r] - records.target[b, r]
        misses += rules.weight[r] * _misses_of(rules.code[r], over, records.target[b, r], open_records, slack)
    return misses


@compiled(void(int64, int64, int64, RECORDS, RULES))
def count_signatures(b, less, more, records, rules):  # type: ignore[no-untyped-def]
    """Take a signature from the sums of a block and add another one."""
    for r in range(rules.code.shape[0]):
        records.state[b, r] += rules.sums[more, r] - rules.sums[less, r]


class _Search(NamedTuple):
    """What a phase of the search has seen: signatures in a round, and up to which move blocks were searched in vain.

    A trade between two blocks need not be searched for where both were left alone since one of them was searched in vain, and a change of a block
    where it was left alone since; nothing else has a part in whether there is one.
    """

    change: Integers  # (S,) by which what a block misses changes
    seen: Integers  # (S,) round in which a signature of another block was seen last
    round: Integers  # (1,)
    now: Integers  # (1,) moves so far
    moved: Integers  # (B,) the last move of every block
    traded: Integers  # (B,) moves before the last search for trades in vain; -1 for none
    changed: Integers  # (B,) the same for changes
    misses: Integers  # (B,) what every block misses
    table: Integers  # (B, 3, R, 2 D + 1) what it misses of a relation whose sum is less or more by up to D, with an open record less, as many, or one more
    slack: int  # records that an open one may hold beyond its size


SEARCH = tuple_type(_Search, *(int64[::1],) * 8, int64[:, :, :, ::1], int64)


@compiled(void(int64, RECORDS, RULES, SEARCH))
def settled(b, records, rules, search):  # type: ignore[no-untyped-def]
    """Bring what is known of a block up to date after its sums have changed."""
    reach = search.table.shape[3] // 2
    search.misses[b] = missed(b, records, rules, search.slack)
    for more in range(search.table.shape[1]):
        open_records = records.state[b, rules.code.shape[0] - 1] + more - 1
        for r in range(rules.code.shape[0]):
            for d in range(search.table.shape[3]):
                over = records.state[b, r] + d - reach - records.target[b, r]
                own = _misses_of(rules.code[r], over, records.target[b, r], open_records, search.slack)
                search.table[b, more, r, d] = rules.weight[r] * own


@compiled(SEARCH(RECORDS, RULES, int64))
def begun(records, rules, slack):  # type: ignore[no-untyped-def]
    """The beginning of a phase."""
    size, blocks, reach = rules.sums.shape[0], records.pointer.shape[0] - 1, np.int64(0)
    for r in range(rules.sums.shape[1]):
        reach = max(reach, rules.sums[:, r].max() - rules.sums[:, r].min())
    search = _Search(
        np.zeros(size, np.int64),
        np.zeros(size, np.int64),
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
        np.zeros(blocks, np.int64),
        np.full(blocks, -1),
        np.full(blocks, -1),
        np.zeros(blocks, np.int64),
        np.zeros((blocks, 3, rules.code.shape[0], 2 * reach + 1), np.int64),
        slack,
    )
    for b in range(blocks):
        settled(b, records, rules, search)
    return search


@compiled(void(int64, int64, RECORDS, RULES, SEARCH))
def list_changes(b, s, records, rules, search):  # type: ignore[no-untyped-def]
    """By how much a block misses more when a record of a signature takes each of the others."""
    # one loop without calls: a call with named tuples of arrays costs more than what it would do
    last, reach, sums = rules.code.shape[0] - 1, search.table.shape[3] // 2, rules.sums
    for t in range(sums.shape[0]):
        change, table = -search.misses[b], search.table[b, sums[t, last] - sums[s, last] + 1]
        for r in range(last):
            change += table[r, sums[t, r] - sums[s, r] + reach]
        search.change[t] = change
