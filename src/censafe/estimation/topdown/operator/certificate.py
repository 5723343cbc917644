"""Evidence for a point in operator form: what it misses of the exact sums, and how far it is from the optimum at most."""

from __future__ import annotations

from numba import float64, types

from censafe.estimation.topdown.operator.structures import DUAL, SUMS
from censafe.model.compiled import compiled

__all__ = ["judge"]


@compiled(types.UniTuple(float64, 2)(SUMS, DUAL))
def judge(sums, dual):  # type: ignore[no-untyped-def]
    """Violation and duality gap of the least point for some multipliers.

    The dual value is a lower bound of the optimum. The objective at the point exceeds it by the sum of y_i F_i over the exact rows, of
    s_k F_k over the columns, and of w_i F_i^2 / 2 over the measured rows, for a measured sum would be b - y / w and is R x.

    Args:
        sums: of the parent.
        dual: as :func:`~censafe.estimation.topdown.operator.newton.evaluate` leaves it.

    Returns:
        Most records by which an exact sum or a column is missed; gap, in the units of the problem.
    """
    violation, gap = 0.0, 0.0
    for i in range(sums.right.shape[0]):
        missed = dual.missed_row[i]
        if sums.weight[i] > 0.0:
            gap += 0.5 * sums.weight[i] * missed * missed
        else:
            violation = max(violation, abs(missed))
            gap += abs(dual.row[i] * missed)
    for k in range(sums.column.shape[0]):
        violation = max(violation, abs(dual.missed_column[k]))
        gap += abs(dual.column[k] * dual.missed_column[k])
    return violation, gap
