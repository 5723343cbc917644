"""Compiled steps of reading public noisy measurement files: where rows belong, and answers put there."""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int8, int16, int32, int64, types, uint8, void

from censafe.model.compiled import compiled

__all__ = ["FAULTY", "REPEATED", "TAKEN", "locate", "put_rows", "take_places"]

TAKEN, REPEATED, FAULTY = 1, 2, 3  # what became of a row

_Letters = types.Array(uint8, 2, "C", readonly=True)
_Starts = types.Array(int64, 1, "C", readonly=True)


@compiled(void(_Letters, _Letters, int64[::1]))
def locate(known, codes, found):  # type: ignore[no-untyped-def]
    """Where codes stand among sorted ones of the same length: rows of files mostly follow one another.

    Args:
        known: letters of the sorted codes, shape (n, width).
        codes: letters of the codes to be found, shape (m, width).
        found: receives their positions, -1 for those that are not there, shape (m,).
    """
    nodes, width = known.shape
    last = -1
    for row in range(codes.shape[0]):
        first, end, at = 0, nodes, -1
        for guess in (last, last + 1):
            if at < 0 and 0 <= guess < nodes:
                place = 0
                while place < width and known[guess, place] == codes[row, place]:
                    place += 1
                if place == width:
                    at = guess
        while at < 0 and first < end:
            middle, place = (first + end) // 2, 0
            while place < width and known[middle, place] == codes[row, place]:
                place += 1
            if place == width:
                at = middle
            elif known[middle, place] < codes[row, place]:
                first = middle + 1
            else:
                end = middle
        found[row] = at
        last = at if at >= 0 else last


@compiled(void(int64[::1], int64[::1], _Starts, int64, float64[::1], float64[:, ::1], int64, int8[::1]))
def take_places(rows, nodes, starts, width, variance, variances, query, state):  # type: ignore[no-untyped-def]
    """Claim the place of every row by its variance; a place is given away once.

    Args:
        rows: of one query, shape (k,).
        nodes: geounit of every row of the batch.
        starts: where the answers of every row of the batch start, and their end.
        width: number of answers that a row must have.
        variance: of every row of the batch.
        variances: of all geounits and queries, infinite where nothing was read so far.
        query: ordinal.
        state: receives what became of each of the rows, shape (k,).
    """
    for one in range(rows.shape[0]):
        row = rows[one]
        if starts[row + 1] - starts[row] != width:
            state[one] = FAULTY
        elif np.isinf(variances[nodes[row], query]):
            variances[nodes[row], query] = variance[row]
            state[one] = TAKEN
        else:
            state[one] = REPEATED


def _put(values, rows, nodes, starts, state, found):  # type: ignore[no-untyped-def]
    fit = True
    for one in range(rows.shape[0]):
        if state[one] == TAKEN:
            row = rows[one]
            target, first = found[nodes[row]], starts[row]
            for answer in range(target.shape[0]):
                value = values[first + answer]
                target[answer] = value
                fit = fit and target[answer] == value
    return fit


def _signature(number: types.Type) -> types.Type:
    values = types.Array(number, 1, "C", readonly=True)
    return boolean(values, int64[::1], int64[::1], _Starts, int8[::1], int16[:, ::1])


put_rows = compiled([_signature(int32), _signature(int64)])(_put)
"""Copy the answers of rows to their geounits; whether all of them fit 16 bits.

Args:
    values: answers of the batch, int32 or int64.
    rows: as of :func:`take_places`.
    nodes: as there.
    starts: as there.
    state: of the rows; only those that were taken are copied.
    found: receives them, shape (geounits, answers).
"""
