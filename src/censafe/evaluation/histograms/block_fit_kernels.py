"""Compiled: the counts of each block fitted to its own noisy answers, zero or more, and rounded."""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int32, int64, void

from censafe.model.compiled import compiled

__all__ = ["fit_blocks"]


@compiled(
    void(
        int64[:, ::1],
        int32[:, ::1],
        int64[::1],
        float64[::1],
        boolean[:, ::1],
        float64,
        int64,
        int32[:, ::1],
    )
)
def fit_blocks(noisy, label, first, weight, allowed, tolerance, sweeps, out):  # type: ignore[no-untyped-def]  # noqa: C901
    """Least squares with weights, cell by cell in turn until no cell moves, then the largest fractions are rounded up.

    Args:
        noisy: answers of all queries, shape (blocks, answers).
        label: answer of every cell within its query, shape (queries, cells).
        first: where the answers of each query start, shape (queries,).
        weight: of the answers of each query, shape (queries,).
        allowed: cells that may hold records, shape (blocks, cells).
        tolerance: no cell moves by more than this at the end.
        sweeps: most rounds over the cells.
        out: receives whole counts whose sum is that of the fit, rounded; shape (blocks, cells).
    """
    blocks, answers = noisy.shape
    queries, cells = label.shape
    curvature = 0.0
    for query in range(queries):
        curvature += weight[query]
    apart = np.empty(answers)
    count = np.empty(cells)
    fraction = np.empty(cells)
    for block in range(blocks):
        for answer in range(answers):
            apart[answer] = -noisy[block, answer]
        count[:] = 0.0
        for _ in range(sweeps):
            moved = 0.0
            for cell in range(cells):
                if not allowed[block, cell]:
                    continue
                slope = 0.0
                for query in range(queries):
                    slope += weight[query] * apart[first[query] + label[query, cell]]
                value = max(0.0, count[cell] - slope / curvature)
                step = value - count[cell]
                if step != 0.0:
                    count[cell] = value
                    for query in range(queries):
                        apart[first[query] + label[query, cell]] += step
                    moved = max(moved, abs(step))
            if moved < tolerance:
                break
        total = 0.0
        held = 0
        for cell in range(cells):
            whole = int(count[cell])
            out[block, cell] = whole
            fraction[cell] = whole - count[cell]
            total += count[cell]
            held += whole
        more = int(total + 0.5) - held
        if more > 0:
            order = np.argsort(fraction, kind="mergesort")
            for place in range(more):
                out[block, order[place]] += 1
