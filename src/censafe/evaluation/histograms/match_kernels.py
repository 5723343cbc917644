"""Compiled: the counts of two sparse histograms added up to areas and answers, side by side."""

from __future__ import annotations

from numba import int32, int64, types

from censafe.model.compiled import compiled

__all__ = ["match_entries"]


@compiled(
    int64(
        int64[::1], int64[::1], int32[::1],
        types.Array(int64, 1, "C", readonly=True), types.Array(int32, 1, "C", readonly=True),
        types.Array(int32, 1, "C", readonly=True),
        types.Array(int64, 1, "C", readonly=True), types.Array(int32, 1, "C", readonly=True),
        types.Array(int32, 1, "C", readonly=True),
        int64[:, ::1], int64[::1], int32[::1], int64[::1], int64[::1],
    )
)  # fmt: skip
def match_entries(order, starts, label, c_ptr, c_cell, c_count, p_ptr, p_cell, p_count, held, ptr, answer, true, public):  # type: ignore[no-untyped-def]  # fmt: skip
    """Write one entry for every area and answer at which either side is not zero, answers rising within an area.

    Args:
        order: blocks by area, shape (blocks,).
        starts: shape (areas + 1,).
        label: answer of every cell; below 0 for cells that are not counted.
        c_ptr: true histograms of the blocks, with ``c_cell`` and ``c_count``.
        c_cell: see there.
        c_count: see there.
        p_ptr: published ones, with ``p_cell`` and ``p_count``.
        p_cell: see there.
        p_count: see there.
        held: zeros, shape (2, answers); zeros again at the end.
        ptr: receives where the entries of each area start, shape (areas + 1,).
        answer: receives the answer of every entry.
        true: receives its true count.
        public: receives its published count.

    Returns:
        Number of entries.
    """
    written = 0
    ptr[0] = 0
    for area in range(len(starts) - 1):
        first = written
        for at in range(starts[area], starts[area + 1]):
            block = order[at]
            for entry in range(c_ptr[block], c_ptr[block + 1]):
                one = label[c_cell[entry]]
                if one < 0:
                    continue
                if held[0, one] == 0 and held[1, one] == 0:
                    answer[written] = one
                    written += 1
                held[0, one] += c_count[entry]
            for entry in range(p_ptr[block], p_ptr[block + 1]):
                one = label[p_cell[entry]]
                if one < 0:
                    continue
                if held[0, one] == 0 and held[1, one] == 0:
                    answer[written] = one
                    written += 1
                held[1, one] += p_count[entry]
        answer[first:written].sort()
        for entry in range(first, written):
            true[entry] = held[0, answer[entry]]
            public[entry] = held[1, answer[entry]]
            held[0, answer[entry]] = 0
            held[1, answer[entry]] = 0
        ptr[area + 1] = written
    return written
