"""The search for moves that meet the relations of the blocks of one parent: moves, exchanges, changes; `kernels.py` has the symbols."""

from __future__ import annotations

from numba import int64, types

from censafe.estimation.topdown.relations.changes import change_best
from censafe.estimation.topdown.relations.kernels import RECORDS, RULES, SEARCH, begun
from censafe.estimation.topdown.relations.trades import trade_best
from censafe.model.compiled import compiled

__all__ = ["meet"]


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
    traded, changed = 0, 0
    for phase in range(_PHASES):
        own = slack if phase < _PHASES - 1 else _UNBOUNDED
        search = begun(records, rules, own)
        while True:
            more, other = _sweep(records, rules, phase, moved, search)
            traded += more
            changed += other
            if more + other == 0:
                break
    return traded, changed
