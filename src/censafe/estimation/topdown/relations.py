"""Histograms of blocks changed so that every block meets its relations, parent by parent, and what could not be met."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int32, int64, types, void
from numpy.typing import NDArray
from scipy.sparse import coo_array, vstack

from censafe.geography.spines.tree import Spine
from censafe.model import SparseLevel
from censafe.model.arrays import Floats, Integers
from censafe.model.compiled import compiled
from censafe.model.named_arrays import tuple_type
from censafe.model.programs import Program, solve_program
from censafe.model.work_ahead import worked_ahead

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


@dataclass(frozen=True, eq=False)
class BalancedRecords:
    """Records that keep their sums by class over all blocks: other records of their block exchange variants with them.

    A change is chosen by its block and by sums of recodes of variants, so that records that come to be of the chosen kind, such as
    householders, are of other classes, such as races, than those that cease to be. With s_c the net change of the chosen records of class c over
    the blocks so far, a chosen record of a class with s > 0 and another one of its block and of a class with s < 0 exchange their
    variants. All sums over variants of the block stay as they are, and both s come nearer to 0.

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
def _may_exchange(i, j, records, rules, alike):  # type: ignore[no-untyped-def]
    """Whether two records may exchange their variants."""
    kind_i, kind_j = records.kind[i], records.kind[j]
    may = rules.allowed[kind_i, records.variant[j]] and rules.allowed[kind_j, records.variant[i]]
    return may and alike[kind_i] == alike[kind_j]


@compiled(int64(RECORDS, RULES, boolean[::1], int32[::1], int32[::1], int64[::1]))
def balance(records, rules, chosen, group, alike, net):  # type: ignore[no-untyped-def]
    """Let records of one block exchange their variants where that brings two classes nearer to 0.

    Args:
        chosen: which variants the balanced records have, shape (V,).
    """
    exchanges, variant, kind = 0, records.variant, records.kind
    for b in range(records.pointer.shape[0] - 1):
        first, last = records.pointer[b], records.pointer[b + 1]
        for i in range(first, last):
            if not chosen[variant[i]] or net[group[kind[i]]] <= 0:
                continue
            for j in range(first, last):
                if (
                    not chosen[variant[j]]
                    and net[group[kind[j]]] < 0
                    and _may_exchange(i, j, records, rules, alike)
                ):
                    variant[i], variant[j] = variant[j], variant[i]
                    net[group[kind[i]]] -= 1
                    net[group[kind[j]]] += 1
                    exchanges += 1
                    break
    return exchanges


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
    first_i, first_j = np.int64(-1), np.int64(-1)
    for i in range(records.pointer[b], records.pointer[b + 1]):
        if rules.signature[records.variant[i]] != s:
            continue
        for j in range(records.pointer[other], records.pointer[other + 1]):
            if rules.signature[records.variant[j]] != t:
                continue
            if records.group[i] == records.group[j]:
                return np.int64(i), np.int64(j)
            if first_i < 0 and _may(i, j, exchange, records, rules):
                first_i, first_j = np.int64(i), np.int64(j)
    return first_i, first_j


@compiled(void(int64, int64, int64, int64, RECORDS, RULES))
def _trade(b, i, other, j, records, rules):  # type: ignore[no-untyped-def]
    """Two records of one group change places; others exchange their variants."""
    s, t = rules.signature[records.variant[i]], rules.signature[records.variant[j]]
    count_signatures(b, s, t, records, rules)
    count_signatures(other, t, s, records, rules)
    records.variant[i], records.variant[j] = records.variant[j], records.variant[i]
    if records.group[i] == records.group[j]:
        records.kind[i], records.kind[j] = records.kind[j], records.kind[i]
        records.name[i], records.name[j] = records.name[j], records.name[i]


@compiled(boolean(int64, int64, RECORDS, RULES))
def _is_first(i, b, records, rules):  # type: ignore[no-untyped-def]
    """Whether no record before is of the same signature in its block."""
    s = rules.signature[records.variant[i]]
    first = True
    for k in range(records.pointer[b], i):
        first = first and rules.signature[records.variant[k]] != s
    return first


@compiled(types.UniTuple(int64, 3)(int64, int64, int64, boolean, int64, RECORDS, RULES, SEARCH))
def _best_partner(b, i, other, exchange, best, records, rules, search):  # type: ignore[no-untyped-def]
    """The trade of a signature of a block with another block that lowers what both miss below ``best``: change and records, -1 for none."""
    best_i, best_j = np.int64(-1), np.int64(-1)
    signature, variant, change, seen = rules.signature, records.variant, search.change, search.seen
    last, reach, sums = rules.code.shape[0] - 1, search.table.shape[3] // 2, rules.sums
    s, there = signature[variant[i]], search.misses[other]
    search.round[0] += 1
    now = search.round[0]
    for j in range(records.pointer[other], records.pointer[other + 1]):
        t = signature[variant[j]]
        if t == s or seen[t] == now:
            continue
        seen[t] = now
        both = change[t] - there
        if both >= best:
            continue
        table = search.table[other, sums[s, last] - sums[t, last] + 1]
        for r in range(last):
            both += table[r, sums[s, r] - sums[t, r] + reach]
        if both < best:
            first, second = _pair(b, s, other, t, exchange, records, rules)
            if first >= 0:
                best, best_i, best_j = both, first, second
    return best, best_i, best_j


@compiled(boolean(int64, boolean, RECORDS, RULES, SEARCH))
def trade_best(b, exchange, records, rules, search):  # type: ignore[no-untyped-def]
    """Make the trade of a block with another one that lowers most of what both miss; whether there was one."""
    best, best_i, best_j, best_other = np.int64(0), np.int64(-1), np.int64(-1), np.int64(-1)
    for i in range(records.pointer[b], records.pointer[b + 1]):
        if not _is_first(i, b, records, rules):
            continue
        list_changes(b, rules.signature[records.variant[i]], records, rules, search)
        for other in range(records.pointer.shape[0] - 1):
            # whether no trade of two blocks helps, since none did and both are as they were
            if other == b or (
                max(search.moved[b], search.moved[other]) <= max(search.traded[b], search.traded[other])
            ):
                continue
            change, first, second = _best_partner(b, i, other, exchange, best, records, rules, search)
            if first >= 0:
                best, best_i, best_j, best_other = change, first, second, np.int64(other)
    if best_i < 0:
        search.traded[b] = search.now[0]
        return False
    _trade(b, best_i, best_other, best_j, records, rules)
    search.now[0] += 1
    search.moved[b] = search.moved[best_other] = search.now[0]
    settled(b, records, rules, search)
    settled(best_other, records, rules, search)
    return True


def _chosen_variants(
    b: int, records: Records, rules: Rules, slack: int
) -> tuple[NDArray[np.int32], int] | None:
    """Variants of the records of a block that meet all relations, as few of them changed as possible, and how many are; None where none do."""
    span = slice(int(records.pointer[b]), int(records.pointer[b + 1]))
    if span.start == span.stop:
        return None
    kinds, kind = np.unique(records.kind[span], return_inverse=True)
    may = np.zeros((len(kinds), len(rules.sums)), np.bool_)
    for place, number in enumerate(kinds.tolist()):
        may[place, rules.signature[rules.allowed[number]]] = True
    at, signature = np.nonzero(may)
    own = np.zeros(may.shape, np.int64)
    np.add.at(own, (kind, rules.signature[records.variant[span]]), 1)
    for most in (slack, int(records.target[b].max(initial=0))):
        units = _least_changed(at, own, may, _limits(rules, records.target[b], signature, most))
        if units is not None:
            records_by_signature = np.zeros(may.shape, np.int64)
            records_by_signature[at, signature] = units
            return _variants(records.variant[span], kind, kinds, records_by_signature, rules)
    return None


def _limits(
    rules: Rules, target: Integers, signature: Integers, most: int
) -> list[tuple[Integers, float, float]]:
    """Numbers of the unknowns in every sum, and what it may be, at least and at most."""
    sums = rules.sums[signature]
    limits = []
    for r, code in enumerate(rules.code.tolist()):
        right = float(target[r])
        if code == OPEN:
            limits.append((sums[:, r], -np.inf, right))
            limits.append((sums[:, r] + most * sums[:, -1], right, np.inf))
        elif code != FREE:
            least = right if code == EQUAL else min(right, 1.0) if code == ANY else -np.inf
            limits.append((sums[:, r], least, right))
    return limits


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
            np.concatenate([total, np.zeros(len(stays)), [low for _, low, _ in limits]]),
            np.concatenate([total, np.full(len(stays), np.inf), [high for _, _, high in limits]]),
            0.0,
            upper,
            True,
        )
    )
    return None if solution.x is None else np.rint(solution.x[:size]).astype(np.int64)


def _variants(
    before: NDArray[np.int32],
    kind: Integers,
    kinds: NDArray[np.int32],
    records_by_signature: Integers,
    rules: Rules,
) -> tuple[NDArray[np.int32], int]:
    """Variants with the required records by kind and signature: records stay where they can, the others change in the fewest recodes."""
    variant, left = before.copy(), records_by_signature.copy()
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
    return variant, len(waits)


_PRICE = 4.0  # of a record that a relation misses, where 1 is that of one recode that a change moves
_LEAST = 0.25  # by which a return brings net changes nearer to 0: more than one detailed group is worth
_PULL = 0.02  # by which a recode's group is dearer for every record that changes have put into it
_MOST_PULL = 0.9
_ROUNDING = 1e-9


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


@compiled(types.Tuple((float64, int64))(int64, int64, float64, RECORDS, RULES, int64[:, ::1], SEARCH))
def _best_variant(b, i, best, records, rules, moved, search):  # type: ignore[no-untyped-def]
    """The first variant of a record that is best for what its block misses and the price, below ``best``: its value, and -1 for none.

    Variants by which the block misses least are priced first: few others can then be better, for no price is below 0.
    """
    old, variant, least = records.variant[i], np.int64(-1), 0
    allowed, signature, change = rules.allowed[records.kind[i]], rules.signature, search.change
    list_changes(b, signature[old], records, rules, search)
    for v in range(signature.shape[0]):
        if allowed[v]:
            least = min(least, change[signature[v]])
    if least == 0:
        return best, variant
    for first in (True, False):
        for v in range(signature.shape[0]):
            own = change[signature[v]]
            if own >= 0 or not allowed[v] or (own == least) != first or _PRICE * own >= best:
                continue
            value = _PRICE * own + _price(old, v, rules, moved)
            if value < best or (value == best and 0 <= v < variant):
                best, variant = value, np.int64(v)
    return best, variant


@compiled(void(int64, int64, int64, RECORDS, RULES, int64[:, ::1]))
def _take(b, i, new, records, rules, moved):  # type: ignore[no-untyped-def]
    """A record of a block takes another variant."""
    old = records.variant[i]
    count_signatures(b, rules.signature[old], rules.signature[new], records, rules)
    for q in range(rules.recodes.shape[0]):
        moved[q, rules.recodes[q, old]] -= 1
        moved[q, rules.recodes[q, new]] += 1
    records.variant[i] = new


@compiled(boolean(int64, RECORDS, RULES, int64[:, ::1], SEARCH))
def change_best(b, records, rules, moved, search):  # type: ignore[no-untyped-def]
    """Make the change of one record of a block that is best for what it misses and the price; whether there was one."""
    best, best_i, best_v = np.inf, np.int64(-1), np.int64(-1)
    if search.moved[b] <= search.changed[b]:
        return False
    for i in range(records.pointer[b], records.pointer[b + 1]):
        # whether a record before, from the first of the block, is of the same kind and variant
        first = records.pointer[b]
        repeated = False
        for k in range(first, i):
            repeated = repeated or (
                records.variant[k] == records.variant[i] and records.kind[k] == records.kind[i]
            )
        if repeated:
            continue
        value, v = _best_variant(b, i, best, records, rules, moved, search)
        if v >= 0:
            best, best_i, best_v = value, np.int64(i), v
    if best_i < 0:
        search.changed[b] = search.now[0]
        return False
    _take(b, best_i, best_v, records, rules, moved)
    search.now[0] += 1
    search.moved[b] = search.now[0]
    settled(b, records, rules, search)
    return True


@compiled(float64(int64, int64, RULES, int64[:, ::1]))
def _nearer(old, new, rules, moved):  # type: ignore[no-untyped-def]
    """By how much net changes come nearer to 0, all recodes together, when a record takes another variant."""
    gain = 0.0
    for q in range(rules.recodes.shape[0]):
        a, c = rules.recodes[q, old], rules.recodes[q, new]
        if a != c:
            before = abs(moved[q, a]) + abs(moved[q, c])
            gain += rules.shares[q] * (before - abs(moved[q, a] - 1) - abs(moved[q, c] + 1))
    return gain


@compiled(void(RULES, int64[:, ::1], float64[::1]))
def _count_gains(rules, moved, gains):  # type: ignore[no-untyped-def]
    """By how much net changes come nearer to 0 when a record is added to a variant, all recodes together."""
    for v in range(gains.shape[0]):
        gains[v] = 0.0
        for q in range(rules.recodes.shape[0]):
            c = moved[q, rules.recodes[q, v]]
            gains[v] += rules.shares[q] * (abs(c) - abs(c + 1))


@compiled(float64(int64, RULES, int64[:, ::1]))
def _most_of_leaving(old, rules, moved):  # type: ignore[no-untyped-def]
    """The most that a record's leaving its variant adds to the gain of another one: groups that both are in count 0, not less."""
    most = 0.0
    for q in range(rules.recodes.shape[0]):
        a = moved[q, rules.recodes[q, old]]
        alone = abs(a) - abs(a - 1)
        most += rules.shares[q] * max(alone, -(abs(a) - abs(a + 1)))
    return most


@compiled(int64(int64, int64, float64[::1], RECORDS, RULES, int64[:, ::1], SEARCH))
def _way_back(b, i, gains, records, rules, moved, search):  # type: ignore[no-untyped-def]
    """The variant that brings net changes nearest to 0 while the block misses no more; -1 for none."""
    old, allowed, signature = records.variant[i], rules.allowed[records.kind[i]], rules.signature
    most, listed = _most_of_leaving(old, rules, moved) + _ROUNDING, False
    best, variant = _LEAST, np.int64(-1)
    for v in range(signature.shape[0]):
        if gains[v] + most <= best or v == old or not allowed[v]:
            continue
        value = _nearer(old, v, rules, moved)
        if value <= best:
            continue
        if not listed:
            list_changes(b, signature[old], records, rules, search)
            listed = True
        if search.change[signature[v]] <= 0:
            best, variant = value, np.int64(v)
    return variant


@compiled(int64(RECORDS, RULES, int64, int64[:, ::1]))
def bring_back(records, rules, slack, moved):  # type: ignore[no-untyped-def]
    """Let records take other variants where that brings net changes nearer to 0 and no block misses more.

    Args:
        moved: net changes so far by recode and group, changed, shape (Q, groups).
    """
    search, gains = begun(records, rules, slack), np.empty(rules.signature.shape[0])
    _count_gains(rules, moved, gains)
    returned = 0
    for b in range(records.pointer.shape[0] - 1):
        for i in range(records.pointer[b], records.pointer[b + 1]):
            v = _way_back(b, i, gains, records, rules, moved, search)
            if v >= 0:
                _take(b, i, v, records, rules, moved)
                settled(b, records, rules, search)
                _count_gains(rules, moved, gains)
                returned += 1
    return returned


@compiled(types.UniTuple(int64, 2)(RECORDS, RULES, int64, int64[:, ::1], SEARCH))
def _sweep(records, rules, phase, moved, search):  # type: ignore[no-untyped-def]
    """One visit of every block; returns trades made, and changes."""
    traded, changed = 0, 0
    for b in range(records.pointer.shape[0] - 1):
        while search.misses[b] > 0:
            if trade_best(b, phase > 0, records, rules, search):
                traded += 1
            elif phase > 1 and change_best(b, records, rules, moved, search):
                changed += 1
            else:
                break
    return traded, changed


@compiled(types.UniTuple(int64, 2)(RECORDS, RULES, int64, int64, int64[:, ::1]))
def _phase(records, rules, phase, slack, moved):  # type: ignore[no-untyped-def]
    """Sweeps until no move helps; returns trades made, and changes."""
    search = begun(records, rules, slack)
    traded, changed = 0, 0
    while True:
        more, other = _sweep(records, rules, phase, moved, search)
        traded += more
        changed += other
        if more + other == 0:
            return traded, changed


@compiled(int64(RECORDS, RULES, int64))
def trade(records, rules, slack):  # type: ignore[no-untyped-def]
    """Move records between blocks until the relations are met or no move helps: moves first, then exchanges too."""
    none = np.zeros((0, 0), np.int64)
    return _phase(records, rules, 0, slack, none)[0] + _phase(records, rules, 1, slack, none)[0]


@compiled(types.UniTuple(int64, 2)(RECORDS, RULES, int64, int64[:, ::1]))
def change(records, rules, slack, moved):  # type: ignore[no-untyped-def]
    """Change records, and trade them again, until the relations are met or no move helps; then with open sizes at will.

    Args:
        moved: net changes so far by recode and group, changed, shape (Q, groups).
    """
    traded, changed = _phase(records, rules, 2, slack, moved)
    more, other = _phase(records, rules, 3, _UNBOUNDED, moved)
    return traded + more, changed + other


@dataclass(frozen=True, eq=False)
class RelatedCells:
    """The cells of a histogram as relations see them: a frame, which stays with a record, and a variant, which may be exchanged.

    Args:
        frame: of every cell, int32, shape (cells,).
        variant: of every cell, int32, shape (cells,).
        cell: of every frame and variant, shape (frames, variants).
        part: of every variant, the part of the variants that its records stay in; -1 for records that are left alone, shape (variants,).
        group: of every cell; records of one group may change places between blocks, int32, shape (cells,).
    """

    frame: NDArray[np.int32] = field(repr=False)
    variant: NDArray[np.int32] = field(repr=False)
    cell: NDArray[np.int32] = field(repr=False)
    part: NDArray[np.int32] = field(repr=False)
    group: NDArray[np.int32] = field(repr=False)
    rules: Rules = field(repr=False)
    balanced: BalancedRecords | None = field(default=None, repr=False)

    def sums(self, block: Integers, cells: NDArray[np.int32], count: Integers, blocks: int) -> Integers:
        """Sums of the relations by block, shape (blocks, R)."""
        own = self.rules.sums[self.rules.signature[self.variant[cells]]] * count[:, None]
        sums = np.zeros((blocks, own.shape[1]), np.int64)
        np.add.at(sums, block, own)
        return sums


@dataclass(frozen=True, eq=False)
class Fitted:
    """Blocks that meet their relations, as far as they can.

    Args:
        sums: of the relations by block, after the changes, shape (blocks, R).
        traded: moves between two blocks that leave sums of their parent as they were.
        returned: records that took another variant to bring the sums of all blocks back.
        exchanged: pairs of records of one block that exchanged their variants to bring sums by class back.
    """

    blocks: SparseLevel
    sums: Integers = field(repr=False)
    traded: int
    changed: int
    returned: int
    exchanged: int


def meet_relations(
    spine: Spine, blocks: SparseLevel, cells: RelatedCells, target: Integers, *, slack: int, workers: int = 1
) -> Fitted:
    """Move records between the blocks of each parent, and change them where that does not suffice.

    Args:
        target: right sides of the relations by block, shape (blocks, R).
    """
    groups = int(cells.rules.recodes.max(initial=0)) + 1
    moved = np.zeros((len(cells.rules.recodes), groups), np.int64)
    pieces: list[tuple[Integers, NDArray[np.int32], Integers]] = []
    sums = np.zeros(target.shape, np.int64)
    traded = changed = returned = exchanged = 0
    net = np.zeros(0 if cells.balanced is None else int(cells.balanced.group.max()) + 1, np.int64)
    work = partial(_traded, blocks, cells, target, slack)
    for parent in worked_ahead(work, _parents(spine), workers):
        traded += parent.traded
        if _misses(parent.records, cells.rules, slack):
            moves = change(parent.records, cells.rules, slack, moved)
            traded, changed = traded + int(moves[0]), changed + int(moves[1])
            changed += _chosen(parent, cells.rules, slack, moved)
        if moved.any():
            returned += int(bring_back(parent.records, cells.rules, slack, moved))
        if cells.balanced is not None:
            net += cells.balanced.sums(parent.records) - parent.before
            exchanged += int(
                balance(
                    parent.records,
                    cells.rules,
                    cells.balanced.chosen,
                    cells.balanced.group,
                    cells.balanced.alike,
                    net,
                )
            )
        sums[parent.first : parent.last] = parent.records.state
        pieces.append(parent.collapsed(cells))
    block, cell, count = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    pointer = np.searchsorted(block, np.arange(blocks.nodes + 1)).astype(np.int64)
    fitted = SparseLevel(blocks.geounits, pointer, cell, count.astype(np.int32))
    return Fitted(fitted, sums, traded, changed, returned, exchanged)


@dataclass(frozen=True, eq=False)
class _Parent:
    """Records of the blocks of one parent, traded.

    Args:
        before: sums by class of the balanced records at the beginning, of no length where there are none.
    """

    first: int
    last: int
    block: Integers
    own: NDArray[np.int32]
    free: NDArray[np.bool_]
    records: Records
    traded: int
    before: Integers

    def collapsed(self, cells: RelatedCells) -> tuple[Integers, NDArray[np.int32], Integers]:
        """Block, cell and count, rising."""
        own = self.own.copy()
        own[self.free] = cells.cell[cells.frame[own[self.free]][self.records.name], self.records.variant]
        key, count = np.unique(
            (self.block + self.first) * np.int64(len(cells.frame)) + own, return_counts=True
        )
        return key // len(cells.frame), (key % len(cells.frame)).astype(np.int32), count


def _traded(
    blocks: SparseLevel, cells: RelatedCells, target: Integers, slack: int, of: tuple[int, int]
) -> _Parent:
    """The blocks of one parent after trades, which no other parent has a part in."""
    first, last = of
    span = slice(int(blocks.node_ptr[first]), int(blocks.node_ptr[last]))
    count = blocks.count[span]
    # block from 0 and cell of every record, block by block
    block = np.repeat(np.repeat(np.arange(last - first), np.diff(blocks.node_ptr[first : last + 1])), count)
    own = np.repeat(blocks.cell[span], count)
    free = cells.part[cells.variant[own]] >= 0
    there, cell = block[free], own[free]
    kind = cells.frame[cell].astype(np.int64) * (int(cells.part.max()) + 1) + cells.part[cells.variant[cell]]
    records = Records(
        np.searchsorted(there, np.arange(last - first + 1)).astype(np.int64),
        cells.group[cell],
        kind.astype(np.int32),
        cells.variant[cell],
        np.arange(len(cell)),
        np.ascontiguousarray(target[first:last]),
        cells.sums(there, cell, np.ones(len(cell), np.int64), last - first),
    )
    before = np.zeros(0, np.int64) if cells.balanced is None else cells.balanced.sums(records)
    traded = int(trade(records, cells.rules, slack)) if _misses(records, cells.rules, slack) else 0
    return _Parent(first, last, block, own, free, records, traded, before)


_UNBOUNDED = 1 << 40


def _chosen(parent: _Parent, rules: Rules, slack: int, moved: Integers) -> int:
    """Choose all records of the blocks at once that no move could mend; returns how many took another variant."""
    records, changed = parent.records, 0
    for b in range(len(records.target)):
        if not missed(b, records, rules, _UNBOUNDED):
            continue
        chosen = _chosen_variants(b, records, rules, slack)
        if chosen is None:
            continue
        variant, changes = chosen
        span = slice(int(records.pointer[b]), int(records.pointer[b + 1]))
        for q, recode in enumerate(rules.recodes):
            np.subtract.at(moved[q], recode[records.variant[span]], 1)
            np.add.at(moved[q], recode[variant], 1)
        records.variant[span] = variant
        records.state[b] = rules.sums[rules.signature[variant]].sum(axis=0)
        changed += changes
    return changed


def _misses(records: Records, rules: Rules, slack: int) -> bool:
    """Whether a block misses anything."""
    return any(missed(b, records, rules, slack) for b in range(len(records.target)))


def _parents(spine: Spine) -> Iterator[tuple[int, int]]:
    """First and one past the last block of every parent."""
    if len(spine.levels) == 1:
        yield 0, spine.leaf.nodes
        return
    edges = spine.levels[-2].first_child
    yield from zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)


def missed_by_relation(sums: Integers, target: Integers, rules: Rules) -> Integers:
    """Records by which every block misses every relation, shape (blocks, R).

    Args:
        sums: of the relations by block, shape (blocks, R).
        target: right sides, shape (blocks, R).
    """
    over = sums - target
    missed_records = np.maximum(over, 0)
    for r, code in enumerate(rules.code.tolist()):
        if code == FREE:
            missed_records[:, r] = 0
        elif code == OPEN:
            missed_records[:, r] = np.where(sums[:, -1] > 0, missed_records[:, r], np.abs(over[:, r]))
        elif code == 0:
            missed_records[:, r] = np.abs(over[:, r])
        elif code == 2:
            missed_records[:, r] += (target[:, r] > 0) & (sums[:, r] == 0)
    return missed_records
