"""Laws too wide for one table: a table of columns, a uniform place in the column, and an exact acceptance.

A proposal is x = T i + r with T = 2^shift: the column i from a one-sided table on the grid of T, the place r
uniform on 0 .. T - 1, a sign bit. It is refused when it is a negative zero, and otherwise accepted with
probability exp(-E), where E = (2 T i r + r^2) / (2 sigma2) for the Gaussian and r / scale for the geometric law.
Nearly all proposals are accepted by one integer comparison, because exp(-E) >= 1 - E; the others are decided
one by one by certified enclosures. There is no float.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from censafe.model import NoiseLaw
from censafe.model.proven import proven
from censafe.privacy.noise.enclosures import exp_neg
from censafe.privacy.noise.tables import NoiseTable
from censafe.privacy.noise.weights import BLOCK_BITS, residual_magnitude
from censafe.privacy.noise.words import AddressedWords, Lane, head

_ATTEMPTS = 16
_EXTENSIONS = 16
_ODDS_BITS = 63
_PLACE_BITS = 24
_MOST_COLUMN = 1 << 15
_ONE = np.uint64(1)


@proven("wide.proof.md", digest="d62c2cd5fade146b")
def exponent(law: NoiseLaw, shift: int, column: int, place: int) -> Fraction:
    """The exponent E of the acceptance probability exp(-E) of a proposal.

    Args:
        law: noise law.
        shift: logarithm of the column width.
        column: i.
        place: r, below 2^shift.

    Returns:
        E, at least 0.
    """
    if law.kind == "gaussian":
        return (2 * (column << shift) * place + place**2) / (2 * law.parameter)
    return place / law.parameter


@proven("wide.proof.md", digest="fa647f0f05749b16")
def accepts(odds: Fraction, block: Callable[[int], int]) -> bool:
    """Return True with probability exp(-odds), decided by certified enclosures.

    Args:
        odds: the exponent, at least 0.
        block: ``block(n)`` gives the n-th 128 random bits; it raises when they run out.

    Returns:
        Whether a uniform number with these bits lies below exp(-odds).
    """
    bits, revealed = block(0), 1
    while True:
        lower, upper = exp_neg(odds, revealed * BLOCK_BITS)
        if bits + 1 <= lower:
            return True
        if bits >= upper:
            return False
        bits = bits << BLOCK_BITS | block(revealed)
        revealed += 1


@proven("wide.proof.md", digest="af7d570b56c3f8e1")
def draw_wide(
    table: NoiseTable,
    words: AddressedWords,
    query: int,
    geounits: NDArray[np.uint64],
    answers: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Draw listed answers of a wide law.

    Args:
        table: of the columns of the law.
        words: words of the part key.
        query: ordinal of the query.
        geounits: uint64, shape (n,), the geounit of every answer.
        answers: int64, shape (n,), the position of every answer within its geounit.

    Returns:
        int64, shape (n,).

    Raises:
        RuntimeError: 16 proposals in a row were refused, which has probability below 2^-60.
        OverflowError: a draw does not fit 64 bits.
    """
    out = np.empty(len(answers), dtype=np.int64)
    pending = np.arange(len(answers))
    for attempt in range(_ATTEMPTS):
        units, places = geounits[pending], answers[pending]
        value, accepted = _propose(table, _Addresses(words, query, attempt, units, places))
        out[pending[accepted]] = value[accepted]
        pending = pending[~accepted]
        if not len(pending):
            return out
    raise RuntimeError("sixteen proposals of a wide noise law were refused; please report this as a bug")


class _Addresses:
    """Addresses of one attempt for listed answers."""

    def __init__(
        self,
        words: AddressedWords,
        query: int,
        attempt: int,
        geounits: NDArray[np.uint64],
        answers: NDArray[np.int64],
    ) -> None:
        self._words = words
        self._query = query
        self._first_ext = _EXTENSIONS * attempt
        self._geounits = geounits
        self._answers = answers

    def first_blocks(self, lane: Lane) -> NDArray[np.uint64]:
        """The first block of a lane for every answer, shape (n, 2)."""
        start = head(self._query, lane, self._first_ext)
        return self._words.first_blocks(start, self._answers, self._geounits)

    def blocks(self, lane: Lane, place: int) -> Callable[[int], int]:
        """The 128-bit blocks of a lane of one answer, by number."""

        def block(number: int) -> int:
            if number >= _EXTENSIONS:
                raise RuntimeError("the bits of a wide noise draw ran out; please report this as a bug")
            ext, j = self._first_ext + number, int(self._answers[place])
            return self._words.block_bits(self._query, lane, ext, j, int(self._geounits[place]))

        return block


@proven("wide.proof.md", digest="8fea75186f6c90aa")
def _propose(table: NoiseTable, addresses: _Addresses) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """One proposal for every answer: values, and which of them are accepted."""
    first = addresses.first_blocks(Lane.WIDE_TABLE)
    law, shift = table.law, table.shift
    column = _columns(table, first[:, 0], addresses)
    place = (first[:, 1] >> np.uint64(64 - shift)).astype(np.int64)
    negative = (first[:, 1] & _ONE).astype(np.bool_)
    magnitude = (column << shift) | place
    uniform = addresses.first_blocks(Lane.WIDE_UNIFORM)[:, 1] >> _ONE
    accepted = _surely_accepted(law, shift, column, place, uniform)
    for doubtful in np.flatnonzero(~accepted):
        odds = exponent(law, shift, int(column[doubtful]), int(place[doubtful]))
        accepted[doubtful] = accepts(odds, addresses.blocks(Lane.WIDE_UNIFORM, int(doubtful)))
    accepted &= ~(negative & (magnitude == 0))
    return np.where(negative, -magnitude, magnitude), accepted


@proven("wide.proof.md", digest="251891d2fb2efdb7")
def _columns(table: NoiseTable, words: NDArray[np.uint64], addresses: _Addresses) -> NDArray[np.int64]:
    """Columns i; the sign bit of the table word is not used."""
    from censafe.privacy.noise import kernels

    alias = table.alias
    column = np.empty(len(words), dtype=np.int64)
    unsigned = np.ascontiguousarray(words & ~_ONE)
    if kernels.map_words(unsigned, alias.entries, alias.bits, alias.width, column):
        for place in np.flatnonzero(column == alias.residual_outcome):
            column[place] = residual_magnitude(
                table.weights, addresses.blocks(Lane.WIDE_RESIDUAL, int(place))
            )
        if int(column.max()) >= 1 << (_ODDS_BITS - table.shift):
            raise OverflowError("a noise draw does not fit 64 bits")
    return column


@proven("wide.proof.md", digest="bb98a5ae846369dd")
def _surely_accepted(
    law: NoiseLaw,
    shift: int,
    column: NDArray[np.int64],
    place: NDArray[np.int64],
    uniform: NDArray[np.uint64],
) -> NDArray[np.bool_]:
    """Where u + 2^-63 <= 1 - (an upper bound of E), in units of 2^-63; u holds the top 63 uniform bits."""
    if law.kind == "gaussian":
        slope = Fraction(1 << 2 * shift) / (2 * law.parameter)  # E <= (2 i + 1) (r / T) T^2 / (2 sigma2)
        factor, largest = 2 * column + 1, 2 * _MOST_COLUMN
    else:
        slope = (1 << shift) / law.parameter  # E = (r / T) (T / scale)
        factor, largest = np.ones_like(column), 1
    units = -(-(slope.numerator << (_ODDS_BITS - _PLACE_BITS)) // slope.denominator)
    if units * largest << _PLACE_BITS >= 1 << _ODDS_BITS:
        return np.zeros(len(column), dtype=np.bool_)
    coarse = place >> (shift - _PLACE_BITS) if shift >= _PLACE_BITS else place << (_PLACE_BITS - shift)
    coarse = coarse + int(shift > _PLACE_BITS)  # rounded up where bits were dropped
    small = factor < largest if largest > 1 else np.ones(len(column), dtype=np.bool_)
    bound = np.where(small, factor, 0) * coarse * units
    surely = uniform.astype(np.int64) <= (1 << _ODDS_BITS) - 1 - bound
    return surely & small
