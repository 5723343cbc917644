"""Moves of records between two blocks of one parent, the best one for what both miss; `kernels.py` has the symbols."""

from __future__ import annotations

import numpy as np
from numba import boolean, int64, types, void

from censafe.estimation.topdown.relations.kernels import (
    RECORDS,
    RULES,
    SEARCH,
    count_signatures,
    list_changes,
    settled,
)
from censafe.model.compiled import compiled


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
    found = True
    for k in range(records.pointer[b], i):
        found = found and rules.signature[records.variant[k]] != s
    return found


@compiled(types.UniTuple(int64, 3)(int64, int64, int64, boolean, int64, RECORDS, RULES, SEARCH))
def _best_partner(b, i, other, exchange, best, records, rules, search):  # type: ignore[no-untyped-def]
    """The trade of a signature of a block with another block that lowers what both miss below ``best``: change and records, -1 for none."""
    found_i, found_j = np.int64(-1), np.int64(-1)
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
                best, found_i, found_j = both, first, second
    return best, found_i, found_j


@compiled(boolean(int64, int64, SEARCH))
def _in_vain(b, other, search):  # type: ignore[no-untyped-def]
    """Whether no trade of two blocks helps, since none did and both are as they were."""
    return max(search.moved[b], search.moved[other]) <= max(search.traded[b], search.traded[other])


@compiled(boolean(int64, boolean, RECORDS, RULES, SEARCH))
def trade_best(b, exchange, records, rules, search):  # type: ignore[no-untyped-def]
    """Make the trade of a block with another one that lowers most of what both miss; whether there was one."""
    best, best_i, best_j, best_other = np.int64(0), np.int64(-1), np.int64(-1), np.int64(-1)
    for i in range(records.pointer[b], records.pointer[b + 1]):
        if not _is_first(i, b, records, rules):
            continue
        list_changes(b, rules.signature[records.variant[i]], records, rules, search)
        for other in range(records.pointer.shape[0] - 1):
            if other == b or _in_vain(b, other, search):
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
