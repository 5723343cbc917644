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
from numba import boolean, float64, int32, int64, types, void
from numpy.typing import NDArray

from censafe.model.arrays import Floats, Integers
from censafe.model.compiled import compiled
from censafe.model.named_arrays import tuple_type

__all__ = ["ANY", "EQUAL", "FREE", "MOST", "OPEN", "Records", "Rules", "bring_back", "meet", "missed"]

EQUAL, MOST, ANY, OPEN, FREE = 0, 1, 2, 3, 4
"""Codes of relations; a free sum asks for nothing, and the last sum counts records of open size."""

_PRICE = 4.0  # of a record that a relation misses, beside 1 for one recode that a change moves
_LEAST = 0.25  # by which a return brings net changes nearer to 0: more than one detailed group is worth
_PULL = 0.02  # by which a recode's group is dearer for every record that changes have put into it
_MOST_PULL = 0.9


class Rules(NamedTuple):
    """What relations ask, and which variants there are."""

    signature: NDArray[np.int32]  # (V,) of every variant
    sums: Integers  # (S, R) F
    code: Integers  # (R,)
    weight: Integers  # (R,) of a record that is missed, above 0; more where other relations depend on it
    allowed: NDArray[np.bool_]  # (kinds, V) variants that a record of a kind may have
    recodes: NDArray[np.int32]  # (Q, V) groups of variants that a change should leave alone
    shares: Floats  # (Q,) weight of a net change of a recode beside others


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


@compiled(int64(int64[:, ::1], int64, int64, int64, int64, RULES))
def _sum_with(state, b, r, less, more, rules):  # type: ignore[no-untyped-def]
    """A sum of a block with one signature less and another one more; -1 for none."""
    found = state[b, r]
    if less >= 0:
        found -= rules.sums[less, r]
    if more >= 0:
        found += rules.sums[more, r]
    return found


@compiled(int64(int64[:, ::1], int64[:, ::1], int64, int64, int64, RULES, int64))
def _missed_with(state, target, b, less, more, rules, slack):  # type: ignore[no-untyped-def]
    """What a block misses with one signature less and another one more; -1 for none."""
    found = 0
    held = _sum_with(state, b, rules.code.shape[0] - 1, less, more, rules)
    for r in range(rules.code.shape[0]):
        over = _sum_with(state, b, r, less, more, rules) - target[b, r]
        code, own = rules.code[r], max(over, 0)
        if code == FREE:
            continue
        if code == EQUAL:
            own = abs(over)
        elif code == OPEN and over < 0:
            own = max(-over - slack * held, 0)
        elif code == ANY and target[b, r] > 0 and over == -target[b, r]:
            own = 1
        found += rules.weight[r] * own
    return found


@compiled(int64(int64, RECORDS, RULES, int64))
def missed(b, records, rules, slack):  # type: ignore[no-untyped-def]
    """What a block misses."""
    return _missed_with(records.state, records.target, b, -1, -1, rules, slack)


@compiled(boolean(int64, int64, boolean, RECORDS, RULES))
def _may(i, j, exchange, records, rules):  # type: ignore[no-untyped-def]
    """Whether two records may change places, or exchange their variants."""
    if records.group[i] == records.group[j]:
        return True
    if not exchange:
        return False
    there = rules.allowed[records.kind[i], records.variant[j]]
    return there and rules.allowed[records.kind[j], records.variant[i]]


@compiled(types.UniTuple(int64, 2)(int64, int64, int64, int64, boolean, RECORDS, RULES))
def _pair(b, s, other, t, exchange, records, rules):  # type: ignore[no-untyped-def]
    """Two records of two blocks and signatures that may change places, those of one group first; -1 where none may."""
    found_i, found_j = np.int64(-1), np.int64(-1)
    for i in range(records.pointer[b], records.pointer[b + 1]):
        if rules.signature[records.variant[i]] != s:
            continue
        for j in range(records.pointer[other], records.pointer[other + 1]):
            if rules.signature[records.variant[j]] != t:
                continue
            if records.group[i] == records.group[j]:
                return np.int64(i), np.int64(j)
            if found_i < 0 and _may(i, j, exchange, records, rules):
                found_i, found_j = np.int64(i), np.int64(j)
    return found_i, found_j


@compiled(void(int64, int64, int64, RECORDS, RULES))
def _count(b, less, more, records, rules):  # type: ignore[no-untyped-def]
    """Take a signature from the sums of a block and add another one."""
    for r in range(rules.code.shape[0]):
        records.state[b, r] += rules.sums[more, r] - rules.sums[less, r]


@compiled(void(int64, int64, int64, int64, RECORDS, RULES))
def _trade(b, i, other, j, records, rules):  # type: ignore[no-untyped-def]
    """Two records of one group change places; others exchange their variants."""
    s, t = rules.signature[records.variant[i]], rules.signature[records.variant[j]]
    _count(b, s, t, records, rules)
    _count(other, t, s, records, rules)
    records.variant[i], records.variant[j] = records.variant[j], records.variant[i]
    if records.group[i] == records.group[j]:
        records.kind[i], records.kind[j] = records.kind[j], records.kind[i]
        records.name[i], records.name[j] = records.name[j], records.name[i]


class _Scratch(NamedTuple):
    """Which signatures were seen in a round of the search, and what was found for them."""

    seen: Integers  # (S,) round in which a signature was seen last
    change: Integers  # (S,) by which what a block misses changes
    round: Integers  # (1,)
    slack: int  # records that an open one may hold beyond its size


_SCRATCH = tuple_type(_Scratch, int64[::1], int64[::1], int64[::1], int64)


@compiled(boolean(int64, int64, RECORDS, RULES))
def _is_first(i, b, records, rules):  # type: ignore[no-untyped-def]
    """Whether no record before is of the same signature in its block."""
    s = rules.signature[records.variant[i]]
    found = True
    for k in range(records.pointer[b], i):
        found = found and rules.signature[records.variant[k]] != s
    return found


@compiled(types.UniTuple(int64, 3)(int64, int64, int64, boolean, int64, RECORDS, RULES, _SCRATCH))
def _best_partner(b, i, other, exchange, best, records, rules, scratch):  # type: ignore[no-untyped-def]
    """The trade of a signature of a block with another block that lowers what both miss below ``best``: change and records, -1 for none."""
    found_i, found_j = np.int64(-1), np.int64(-1)
    s = rules.signature[records.variant[i]]
    here, there = missed(b, records, rules, scratch.slack), missed(other, records, rules, scratch.slack)
    scratch.round[0] += 1
    for j in range(records.pointer[other], records.pointer[other + 1]):
        t = rules.signature[records.variant[j]]
        if t == s or scratch.seen[t] == scratch.round[0]:
            continue
        scratch.seen[t] = scratch.round[0]
        change = _missed_with(records.state, records.target, b, s, t, rules, scratch.slack) - here - there
        if change < best:
            change += _missed_with(records.state, records.target, other, t, s, rules, scratch.slack)
        if change < best:
            first, second = _pair(b, s, other, t, exchange, records, rules)
            if first >= 0:
                best, found_i, found_j = change, first, second
    return best, found_i, found_j


@compiled(boolean(int64, boolean, RECORDS, RULES, _SCRATCH))
def _trade_best(b, exchange, records, rules, scratch):  # type: ignore[no-untyped-def]
    """Make the trade of a block with another one that lowers most of what both miss; whether there was one."""
    best, best_i, best_j, best_other = np.int64(0), np.int64(-1), np.int64(-1), np.int64(-1)
    for i in range(records.pointer[b], records.pointer[b + 1]):
        if not _is_first(i, b, records, rules):
            continue
        for other in range(records.pointer.shape[0] - 1):
            if other == b:
                continue
            change, first, second = _best_partner(b, i, other, exchange, best, records, rules, scratch)
            if first >= 0:
                best, best_i, best_j, best_other = change, first, second, np.int64(other)
    if best_i < 0:
        return False
    _trade(b, best_i, best_other, best_j, records, rules)
    return True


@compiled(float64(int64, int64, RULES, int64[:, ::1]))
def _price(old, new, rules, moved):  # type: ignore[no-untyped-def]
    """Price of a change: 1 for every recode that it moves, more or less as changes before have filled or emptied its groups."""
    price = 0.0
    for q in range(rules.recodes.shape[0]):
        a, c = rules.recodes[q, old], rules.recodes[q, new]
        if a != c:
            pull = _PULL * (moved[q, c] - moved[q, a])
            price += 1.0 + min(max(pull, -_MOST_PULL), _MOST_PULL)
    return price


@compiled(int64(int64, int64, int64, int64, RECORDS, RULES, _SCRATCH))
def _change_of(b, s, t, here, records, rules, scratch):  # type: ignore[no-untyped-def]
    """By how much a block misses more when a record's signature changes; worked out once in a round of the search."""
    if scratch.seen[t] != scratch.round[0]:
        scratch.seen[t] = scratch.round[0]
        scratch.change[t] = _missed_with(records.state, records.target, b, s, t, rules, scratch.slack) - here
    return scratch.change[t]


@compiled(types.Tuple((float64, int64))(int64, int64, RECORDS, RULES, int64[:, ::1], _SCRATCH))
def _best_variant(b, i, records, rules, moved, scratch):  # type: ignore[no-untyped-def]
    """The variant of a record that is best for what its block misses and the price: its value, and -1 for none."""
    old, kind = records.variant[i], records.kind[i]
    s, here = rules.signature[old], missed(b, records, rules, scratch.slack)
    best, found = np.inf, np.int64(-1)
    scratch.round[0] += 1
    for v in range(rules.signature.shape[0]):
        t = rules.signature[v]
        if not rules.allowed[kind, v] or t == s:
            continue
        change = _change_of(b, s, t, here, records, rules, scratch)
        if change < 0:
            value = _PRICE * change + _price(old, v, rules, moved)
            if value < best:
                best, found = value, np.int64(v)
    return best, found


@compiled(boolean(int64, int64, RECORDS))
def _is_repeated(i, first, records):  # type: ignore[no-untyped-def]
    """Whether a record before, from the first of the block, is of the same kind and variant."""
    found = False
    for k in range(first, i):
        found = found or (records.variant[k] == records.variant[i] and records.kind[k] == records.kind[i])
    return found


@compiled(void(int64, int64, int64, RECORDS, RULES, int64[:, ::1]))
def _take(b, i, new, records, rules, moved):  # type: ignore[no-untyped-def]
    """A record of a block takes another variant."""
    old = records.variant[i]
    _count(b, rules.signature[old], rules.signature[new], records, rules)
    for q in range(rules.recodes.shape[0]):
        moved[q, rules.recodes[q, old]] -= 1
        moved[q, rules.recodes[q, new]] += 1
    records.variant[i] = new


@compiled(boolean(int64, RECORDS, RULES, int64[:, ::1], _SCRATCH))
def _change_best(b, records, rules, moved, scratch):  # type: ignore[no-untyped-def]
    """Make the change of one record of a block that is best for what it misses and the price; whether there was one."""
    best, best_i, best_v = np.inf, np.int64(-1), np.int64(-1)
    for i in range(records.pointer[b], records.pointer[b + 1]):
        if _is_repeated(i, records.pointer[b], records):
            continue
        value, v = _best_variant(b, i, records, rules, moved, scratch)
        if v >= 0 and value < best:
            best, best_i, best_v = value, np.int64(i), v
    if best_i < 0:
        return False
    _take(b, best_i, best_v, records, rules, moved)
    return True


@compiled(types.UniTuple(int64, 2)(RECORDS, RULES, int64, int64[:, ::1], _SCRATCH))
def _sweep(records, rules, phase, moved, scratch):  # type: ignore[no-untyped-def]
    """One visit of every block; returns trades made, and changes."""
    traded, changed = 0, 0
    for b in range(records.pointer.shape[0] - 1):
        while missed(b, records, rules, scratch.slack) > 0:
            if _trade_best(b, phase > 0, records, rules, scratch):
                traded += 1
            elif phase > 1 and _change_best(b, records, rules, moved, scratch):
                changed += 1
            else:
                break
    return traded, changed


_PHASES = 4
_UNBOUNDED = 1 << 40


@compiled(types.UniTuple(int64, 2)(RECORDS, RULES, int64, int64[:, ::1]))
def meet(records, rules, slack, moved):  # type: ignore[no-untyped-def]
    """Move records until the relations are met or no move helps: moves first, then exchanges too, then changes, then open sizes at will.

    Args:
        records: of the blocks of one parent, changed.
        rules: of the relations.
        slack: records that an open one may hold beyond its size before that is a last resort.
        moved: net changes so far by recode and group, changed, shape (Q, groups).

    Returns:
        Trades made, and changes.
    """
    size = rules.sums.shape[0]
    traded, changed = 0, 0
    for phase in range(_PHASES):
        own = slack if phase < _PHASES - 1 else _UNBOUNDED
        scratch = _Scratch(np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(1, np.int64), own)
        while True:
            more, other = _sweep(records, rules, phase, moved, scratch)
            traded += more
            changed += other
            if more + other == 0:
                break
    return traded, changed


@compiled(float64(int64, int64, RULES, int64[:, ::1]))
def _nearer(old, new, rules, moved):  # type: ignore[no-untyped-def]
    """By how much net changes come nearer to 0, all recodes together, when a record takes another variant."""
    found = 0.0
    for q in range(rules.recodes.shape[0]):
        a, c = rules.recodes[q, old], rules.recodes[q, new]
        if a != c:
            before = abs(moved[q, a]) + abs(moved[q, c])
            found += rules.shares[q] * (before - abs(moved[q, a] - 1) - abs(moved[q, c] + 1))
    return found


@compiled(int64(int64, int64, RECORDS, RULES, int64[:, ::1], _SCRATCH))
def _way_back(b, i, records, rules, moved, scratch):  # type: ignore[no-untyped-def]
    """The variant that brings net changes nearest to 0 while the block misses no more; -1 for none."""
    old, kind = records.variant[i], records.kind[i]
    s, here = rules.signature[old], missed(b, records, rules, scratch.slack)
    best, found = _LEAST, np.int64(-1)
    scratch.round[0] += 1
    for v in range(rules.signature.shape[0]):
        if v == old or not rules.allowed[kind, v]:
            continue
        value = _nearer(old, v, rules, moved)
        if value > best and _change_of(b, s, rules.signature[v], here, records, rules, scratch) <= 0:
            best, found = value, np.int64(v)
    return found


@compiled(int64(RECORDS, RULES, int64, int64[:, ::1]))
def bring_back(records, rules, slack, moved):  # type: ignore[no-untyped-def]
    """Let records take other variants where that brings net changes nearer to 0 and no block misses more.

    Args:
        records: of the blocks of one parent, changed.
        rules: of the relations.
        slack: records that an open one may hold beyond its size before that is a last resort.
        moved: net changes so far by recode and group, changed, shape (Q, groups).

    Returns:
        Records that took another variant.
    """
    size = rules.sums.shape[0]
    scratch = _Scratch(np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(1, np.int64), slack)
    found = 0
    for b in range(records.pointer.shape[0] - 1):
        for i in range(records.pointer[b], records.pointer[b + 1]):
            v = _way_back(b, i, records, rules, moved, scratch)
            if v >= 0:
                _take(b, i, v, records, rules, moved)
                found += 1
    return found
