"""Compiled changes of a child's state: which cells are free and which side rows are active."""

from __future__ import annotations

from numba import boolean, float64, int8, int32, int64, uint8, void

from censafe.model.compiled import compiled

__all__ = ["apply_changes", "give_cells", "mark_changes"]

_NONE = 9  # no change of a row's state


@compiled(
    void(
        boolean[:, ::1],
        boolean[:, ::1],
        uint8[:, ::1],
        int8[:, ::1],
        int32[::1],
        int64,
        boolean[::1],
        boolean,
    )
)
def give_cells(free, allowed, rows, active, group, groups, dirty, coupled):  # type: ignore[no-untyped-def]  # noqa: C901
    """Every cell needs a free child, every active row and every group a free cell: free the allowed ones otherwise."""
    children, cells = free.shape
    for g in range(groups):
        held = False
        for c in range(children):
            held = held or (group[c] == g and free[c].any())
        if not held:
            for c in range(children):
                if group[c] == g:
                    free[c] = allowed[c]
                    dirty[c] = True
    if coupled:
        for k in range(cells):
            if not free[:, k].any():
                for c in range(children):
                    if allowed[c, k]:
                        free[c, k] = True
                        dirty[c] = True
    for c in range(children):
        for r in range(rows.shape[0]):
            if active[c, r] != 0 and not (free[c] & (rows[r] != 0)).any():
                for k in range(cells):
                    if allowed[c, k] and rows[r, k]:
                        free[c, k] = True
                        dirty[c] = True


@compiled(
    int64(
        uint8[:, ::1], float64[::1], float64[::1], boolean[::1], boolean[::1], int8[::1], float64[::1],
        float64[::1], float64[::1], float64, float64, boolean[::1], int8[::1],
    )
)  # fmt: skip
def mark_changes(rows, lo, hi, free, allowed, active, x, nu, mu, eps_x, eps_mu, flip, move):  # type: ignore[no-untyped-def]  # noqa: C901
    """What one child must change; returns how many changes there are."""
    count = 0
    for k in range(x.shape[0]):
        flip[k] = x[k] < -eps_x if free[k] else (allowed[k] and mu[k] < -eps_mu)
        count += flip[k]
    for r in range(rows.shape[0]):
        move[r] = _NONE
        if (active[r] == -1 and nu[r] < -eps_mu) or (active[r] == 1 and nu[r] > eps_mu):
            move[r] = 0
        elif active[r] == 0 or (active[r] != 2 and nu[r] == 0.0):
            total = 0.0
            for k in range(x.shape[0]):
                if rows[r, k]:
                    total += x[k]
            if active[r] != 0:
                # a row that others imply is left out of the equations and need not lie on its side
                side = hi[r] if active[r] == 1 else lo[r]
                if abs(total - side) > eps_x * max(1.0, abs(total)):
                    move[r] = 0
            elif total < lo[r] - eps_x:
                move[r] = -1
            elif total > hi[r] + eps_x:
                move[r] = 1
        count += move[r] != _NONE
    return count


@compiled(void(boolean[:, ::1], int8[:, ::1], boolean[:, ::1], int8[:, ::1], boolean[::1], boolean))
def apply_changes(free, active, flip, move, dirty, single):  # type: ignore[no-untyped-def]
    """Make all changes, or only the last one in the order child, cell, row."""
    children, cells = free.shape
    for c in range(children - 1, -1, -1):
        for r in range(active.shape[1] - 1, -1, -1):
            if move[c, r] != _NONE:
                active[c, r] = move[c, r]
                dirty[c] = True
                if single:
                    return
        for k in range(cells - 1, -1, -1):
            if flip[c, k]:
                free[c, k] = not free[c, k]
                dirty[c] = True
                if single:
                    return
