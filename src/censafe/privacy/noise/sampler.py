"""Exact integer noise by address: the value of an answer depends on key, query, geounit and position only.

The result does not depend on chunks, order, threads or on which other answers are drawn with it.
"""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from censafe.model import NoiseLaw
from censafe.model.proven import proven
from censafe.privacy.keys import ReleasePartKey, TestPartKey
from censafe.privacy.measure.claims import Claim
from censafe.privacy.noise import numpy_kernels
from censafe.privacy.noise.tables import NoiseTable
from censafe.privacy.noise.weights import residual_magnitude
from censafe.privacy.noise.wide import draw_wide
from censafe.privacy.noise.words import CHUNK_BLOCKS, AddressedWords, Lane, check_address, head

_CHECKED_ADDITION = 1 << 16
_FEW_DRAWS = 1 << 16


def _kernels(draws: int) -> ModuleType:
    """The compiled kernels, or for a few draws the same in numpy, which agree bit for bit.

    Loading the compiler takes longer than half a million draws with numpy.
    """
    if draws < _FEW_DRAWS and "censafe.privacy.noise.kernels" not in sys.modules:
        return numpy_kernels
    from censafe.privacy.noise import kernels

    return kernels


@proven("sampler.proof.md", digest="eac778ddcf75588a")
def draw(
    law: NoiseLaw,
    part_key: ReleasePartKey | TestPartKey,
    *,
    query: int,
    geounits: NDArray[np.uint64],
    answers: int,
    out: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Draw the noise of all answers of one query at some geounits.

    Args:
        law: noise law.
        part_key: key of the part the query belongs to.
        query: ordinal of the query in its part, below 2^16.
        geounits: uint64, shape (g,), ordinals of geounits in the public plan, each at most once.
        answers: number of answers of every geounit.
        out: int64, shape (g, answers), C-contiguous, written and returned when given.

    Returns:
        int64, shape (g, answers): exact draws of the law, independent up to the strength of AES-256.

    Raises:
        OverflowError: an ordinal has no address, or a draw does not fit 64 bits.
        ReleaseError: the key has served 2^40 blocks.
        TypeError: not a part key.

    Source: Walker (1977) alias method with integer weights; ``sampler.proof.md``.

    Example:
        >>> from fractions import Fraction
        >>> from censafe.privacy.measure.claims import Claim
        >>> from censafe.privacy.keys import derive_part_key
        >>> from censafe.privacy.keys import TestKey
        >>> key = derive_part_key(TestKey(1), "0" * 64, b"", "PH2")
        >>> draw(NoiseLaw.gaussian(Fraction(4)), key, query=0, geounits=np.arange(2, dtype=np.uint64), answers=3).shape
        (2, 3)
    """
    check_address(query, answers)
    geounits = np.ascontiguousarray(geounits, dtype=np.uint64)
    shape = (len(geounits), answers)
    if out is None:
        out = np.empty(shape, dtype=np.int64)
    elif out.shape != shape or out.dtype != np.int64 or not out.flags.c_contiguous:
        raise ValueError(f"out must be a C-contiguous int64 array of shape {shape}")
    table = NoiseTable.for_law(law)
    words = AddressedWords(part_key)
    if out.size == 0:
        return out
    if table.shift:
        _draw_grid_wide(table, words, query, geounits, out)
    else:
        _draw_grid(table, words, query, geounits, out)
    return out


@proven("sampler.proof.md", digest="1d9a3eb8ced7568b")
def _draw_grid(
    table: NoiseTable,
    words: AddressedWords,
    query: int,
    geounits: NDArray[np.uint64],
    out: NDArray[np.int64],
) -> None:
    """Fill ``out`` chunk by chunk: counters, cipher, table; the residual flag is tested once a chunk."""
    kernels = _kernels(out.size)
    answers = out.shape[1]
    flat = out.reshape(-1)
    per_row = (answers + 1) // 2
    total = len(geounits) * per_row
    words.reserve(total)
    chunk = min(total, CHUNK_BLOCKS)
    counters = np.empty((chunk, 2), dtype=np.uint64)
    buffer = np.empty(2 * chunk + 2, dtype=np.uint64)
    start = head(query, Lane.DIRECT)
    alias, done = table.alias, 0
    for first in range(0, total, chunk):
        blocks = min(chunk, total - first)
        kernels.fill_counters(geounits, first, per_row, start, counters[:blocks])
        words.encrypt(counters[:blocks], buffer)
        size = 2 * blocks
        if answers % 2:
            size = kernels.drop_odd_halves(buffer, first, blocks, per_row)
        part = flat[done : done + size]
        if kernels.map_words(buffer[:size], alias.entries, alias.bits, alias.width, part):
            rows, columns = np.divmod(np.arange(done, done + size), answers)
            settle_residuals(table, words, query, geounits[rows], columns, part)
        done += size


@proven("sampler.proof.md", digest="613299a76781e4e4")
def settle_residuals(
    table: NoiseTable,
    words: AddressedWords,
    query: int,
    geounits: NDArray[np.uint64],
    answers: NDArray[np.int64],
    values: NDArray[np.int64],
) -> None:
    """Replace the placeholders of residual draws one by one, keeping the sign of their word."""
    for place in np.flatnonzero(np.abs(values) == table.alias.residual_outcome):
        geounit, answer = int(geounits[place]), int(answers[place])
        magnitude = residual_magnitude(
            table.weights,
            lambda ext, i=answer, g=geounit: words.block_bits(query, Lane.RESIDUAL, ext, i, g),  # type: ignore[misc]
        )
        values[place] = -magnitude if values[place] < 0 else magnitude


def _draw_grid_wide(
    table: NoiseTable,
    words: AddressedWords,
    query: int,
    geounits: NDArray[np.uint64],
    out: NDArray[np.int64],
) -> None:
    """Fill ``out`` for a wide law, chunk by chunk."""
    flat = out.reshape(-1)
    for first in range(0, len(flat), CHUNK_BLOCKS):
        part = flat[first : first + CHUNK_BLOCKS]
        rows, columns = np.divmod(np.arange(first, first + len(part)), out.shape[1])
        part[:] = draw_wide(table, words, query, geounits[rows], columns)


@proven("sampler.proof.md", digest="458c392248b82992")
def draw_cells(
    law: NoiseLaw,
    part_key: ReleasePartKey | TestPartKey,
    *,
    query: int,
    geounits: NDArray[np.uint64],
    answers: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Draw chosen answers only; each equals the same entry of :func:`draw`.

    Args:
        law: noise law.
        part_key: key of the part.
        query: ordinal of the query in its part.
        geounits: uint64, shape (n,), the geounit of every answer.
        answers: int64, shape (n,), the position of every answer within its geounit.

    Returns:
        int64, shape (n,).

    Raises:
        OverflowError: an ordinal has no address.
        TypeError: not a part key.
        ValueError: the two arrays differ in length.
    """
    if geounits.shape != answers.shape or geounits.ndim != 1:
        raise ValueError("geounits and answers must be vectors of equal length")
    check_address(query, int(answers.max(initial=-1)) + 1)
    if answers.min(initial=0) < 0:
        raise OverflowError("an answer has a position of at least 0")
    table = NoiseTable.for_law(law)
    words = AddressedWords(part_key)
    out = np.empty(len(geounits), dtype=np.int64)
    kernels = _kernels(len(out))
    for first in range(0, len(out), CHUNK_BLOCKS):
        some = slice(first, first + CHUNK_BLOCKS)
        units = np.ascontiguousarray(geounits[some], dtype=np.uint64)
        if table.shift:
            out[some] = draw_wide(table, words, query, units, answers[some])
        else:
            _draw_listed(table, words, query, units, answers[some], out[some], kernels)
    return out


@proven("sampler.proof.md", digest="414d0f477d4ef67e")
def _draw_listed(
    table: NoiseTable,
    words: AddressedWords,
    query: int,
    geounits: NDArray[np.uint64],
    answers: NDArray[np.int64],
    out: NDArray[np.int64],
    kernels: ModuleType,
) -> None:
    """Draw listed answers of a direct table, one cipher block each."""
    blocks = words.first_blocks(head(query, Lane.DIRECT), answers >> 1, geounits)
    chosen = blocks[np.arange(len(out)), answers & 1]
    alias = table.alias
    if kernels.map_words(chosen, alias.entries, alias.bits, alias.width, out):
        settle_residuals(table, words, query, geounits, answers, out)


@proven("sampler.proof.md", digest="b9a9255d077b2bed")
def add_noise(
    values: NDArray[np.int64],
    law: NoiseLaw,
    part_key: ReleasePartKey | TestPartKey,
    claim: Claim,
    *,
    geounits: NDArray[np.uint64],
) -> NDArray[np.int64]:
    """Add noise to the answers of one query, with every sum checked.

    Args:
        values: int64, shape (g, answers), exact answers.
        law: noise law.
        part_key: key of the part.
        claim: of these answers, from the part key; it says which query they answer.
        geounits: uint64, shape (g,), each of them once under one claim.

    Returns:
        int64, shape (g, answers), a new array.

    Raises:
        ReleaseError: noise was added at one of the geounits before.
        OverflowError: a sum does not fit 64 bits; the message names its address and no value.
    """
    query = claim.ordinal
    claim.cover(geounits)
    noise = draw(law, part_key, query=query, geounits=geounits, answers=values.shape[1])
    noisy, exact = noise.reshape(-1), np.ascontiguousarray(values).reshape(-1)
    for first in range(0, len(noisy), _CHECKED_ADDITION):
        ours, theirs = noisy[first : first + _CHECKED_ADDITION], exact[first : first + _CHECKED_ADDITION]
        total = ours + theirs
        wrapped = (ours ^ total) & (theirs ^ total) < 0
        if wrapped.any():
            row, column = divmod(first + int(np.argmax(wrapped)), values.shape[1])
            raise OverflowError(
                f"answer plus noise does not fit 64 bits at query {query}, geounit {geounits[row]}, answer {column}"
            )
        ours[:] = total
    return noise
