"""Changes of single records of a block: to meet its relations at the least price, and back; `kernels.py` has the symbols."""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int64, types, void

from censafe.estimation.topdown.relations.kernels import (
    RECORDS,
    RULES,
    SEARCH,
    begun,
    count_signatures,
    list_changes,
    settled,
)
from censafe.model.compiled import compiled

_PRICE = 4.0  # of a record that a relation misses, beside 1 for one recode that a change moves
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
    old, found, least = records.variant[i], np.int64(-1), 0
    allowed, signature, change = rules.allowed[records.kind[i]], rules.signature, search.change
    list_changes(b, signature[old], records, rules, search)
    for v in range(signature.shape[0]):
        if allowed[v]:
            least = min(least, change[signature[v]])
    if least == 0:
        return best, found
    for first in (True, False):
        for v in range(signature.shape[0]):
            own = change[signature[v]]
            if own >= 0 or not allowed[v] or (own == least) != first or _PRICE * own >= best:
                continue
            value = _PRICE * own + _price(old, v, rules, moved)
            if value < best or (value == best and 0 <= v < found):
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
        if _is_repeated(i, records.pointer[b], records):
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
    found = 0.0
    for q in range(rules.recodes.shape[0]):
        a, c = rules.recodes[q, old], rules.recodes[q, new]
        if a != c:
            before = abs(moved[q, a]) + abs(moved[q, c])
            found += rules.shares[q] * (before - abs(moved[q, a] - 1) - abs(moved[q, c] + 1))
    return found


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
    """The most that a record's leaving its variant adds to the gain of another one: groups that both are in count 0 beside it, not less."""
    found = 0.0
    for q in range(rules.recodes.shape[0]):
        a = moved[q, rules.recodes[q, old]]
        alone = abs(a) - abs(a - 1)
        found += rules.shares[q] * max(alone, -(abs(a) - abs(a + 1)))
    return found


@compiled(int64(int64, int64, float64[::1], RECORDS, RULES, int64[:, ::1], SEARCH))
def _way_back(b, i, gains, records, rules, moved, search):  # type: ignore[no-untyped-def]
    """The variant that brings net changes nearest to 0 while the block misses no more; -1 for none."""
    old, allowed, signature = records.variant[i], rules.allowed[records.kind[i]], rules.signature
    most, listed = _most_of_leaving(old, rules, moved) + _ROUNDING, False
    best, found = _LEAST, np.int64(-1)
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
            best, found = value, np.int64(v)
    return found


@compiled(int64(RECORDS, RULES, int64, int64[:, ::1]))
def bring_back(records, rules, slack, moved):  # type: ignore[no-untyped-def]
    """Let records take other variants where that brings net changes nearer to 0 and no block misses more.

    Args:
        moved: net changes so far by recode and group, changed, shape (Q, groups).
    """
    search, gains = begun(records, rules, slack), np.empty(rules.signature.shape[0])
    _count_gains(rules, moved, gains)
    found = 0
    for b in range(records.pointer.shape[0] - 1):
        for i in range(records.pointer[b], records.pointer[b + 1]):
            v = _way_back(b, i, gains, records, rules, moved, search)
            if v >= 0:
                _take(b, i, v, records, rules, moved)
                settled(b, records, rules, search)
                _count_gains(rules, moved, gains)
                found += 1
    return found
