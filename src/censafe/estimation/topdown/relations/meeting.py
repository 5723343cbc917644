"""The search for moves that meet the relations of the blocks of one parent: moves, exchanges, changes; `kernels.py` has the symbols."""

from __future__ import annotations

import numpy as np
from numba import int64, types

from censafe.estimation.topdown.relations.changes import change_best
from censafe.estimation.topdown.relations.kernels import RECORDS, RULES, SEARCH, begun
from censafe.estimation.topdown.relations.trades import trade_best
from censafe.model.compiled import compiled


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


_UNBOUNDED = 1 << 40


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
