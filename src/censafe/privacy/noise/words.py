"""Random words by address: AES-256 of a counter block that names what the word is for.

Counter block, 16 bytes, little endian: uint32 j | uint16 query | uint8 lane | uint8 ext | uint64 geounit.
Under one part key every address is used for one purpose only, so no counter block repeats.
"""

from __future__ import annotations

import sys
from enum import IntEnum

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from censafe.model.proven import proven
from censafe.privacy.keys import ReleasePartKey, TestPartKey, part_source_of

CHUNK_BLOCKS = 16_384  # 32,768 words: counters, words and draws stay in the second-level cache
_BLOCK_BYTES = 16


class Lane(IntEnum):
    """What a counter block is for."""

    DIRECT = 0
    RESIDUAL = 1
    WIDE_TABLE = 2
    WIDE_UNIFORM = 3
    WIDE_RESIDUAL = 4


@proven("sampler.proof.md", digest="283f01016cdb161c")
def head(query: int, lane: Lane, ext: int = 0) -> int:
    """First half of a counter block with j = 0, as a 64-bit integer.

    Args:
        query: ordinal of the query in its part, below 2^16.
        lane: purpose of the block.
        ext: extension number, below 2^8.

    Returns:
        query, lane and ext at their places.

    Raises:
        OverflowError: a field does not fit.
    """
    if not (0 <= query < 1 << 16 and 0 <= ext < 1 << 8):
        raise OverflowError(f"noise address out of range: query {query}, ext {ext}")
    return query << 32 | int(lane) << 48 | ext << 56


def check_address(query: int, answers: int) -> None:
    """Refuse a query ordinal or a number of answers that the counter block has no room for."""
    if not 0 <= query < 1 << 16:
        raise OverflowError(f"query ordinal {query} has no noise address; a part has at most 65,536 queries")
    if not 0 <= answers <= 1 << 32:
        raise OverflowError(f"{answers} answers of a geounit have no noise addresses; at most 2^32 have")


class AddressedWords:
    """The words of one part key; one object per thread."""

    def __init__(self, key: ReleasePartKey | TestPartKey) -> None:
        part_source_of(key)
        if sys.byteorder != "little":
            raise OSError("noise words are defined for little-endian machines only")
        self._key = key
        # Electronic codebook on counters that never repeat is counter mode with chosen counters.
        self._encryptor = Cipher(algorithms.AES(key._secret.reveal()), modes.ECB()).encryptor()  # noqa: S305

    def reserve(self, blocks: int) -> None:
        """Count blocks against the limit of the key before they are drawn."""
        self._key.usage.reserve(blocks)

    @proven("sampler.proof.md", digest="217bbc3105a23363")
    def encrypt(self, counters: NDArray[np.uint64], words: NDArray[np.uint64]) -> None:
        """Encrypt counter blocks.

        Args:
            counters: uint64, shape (blocks, 2), C-contiguous.
            words: uint64, one-dimensional, at least 2 * blocks + 2 long; the first 2 * blocks are written.
        """
        if len(counters):
            self._encryptor.update_into(counters.reshape(-1).view(np.uint8).data, words.view(np.uint8).data)

    @proven("sampler.proof.md", digest="1f6018fd00a4d564")
    def first_blocks(
        self, start: int, positions: NDArray[np.int64], geounits: NDArray[np.uint64]
    ) -> NDArray[np.uint64]:
        """One block for each of some listed addresses.

        Args:
            start: first word of the addresses without a block number, from :func:`head`.
            positions: int64, shape (n,), block numbers below 2^32.
            geounits: uint64, shape (n,), ordinals of geounits.

        Returns:
            uint64, shape (n, 2).
        """
        count = len(positions)
        self.reserve(count)
        counters = np.empty((count, 2), dtype=np.uint64)
        counters[:, 0] = positions.astype(np.uint64) | np.uint64(start)
        counters[:, 1] = geounits
        buffer = np.empty(2 * count + 2, dtype=np.uint64)
        self.encrypt(counters, buffer)
        return buffer[: 2 * count].reshape(count, 2)

    def block(self, query: int, lane: Lane, ext: int, j: int, geounit: int) -> tuple[int, int]:
        """One block by its address."""
        if not 0 <= j < 1 << 32:
            raise OverflowError(f"noise address out of range: j {j}")
        self.reserve(1)
        counters = np.array([[head(query, lane, ext) | j, geounit]], dtype=np.uint64)
        words = np.empty(_BLOCK_BYTES // 4, dtype=np.uint64)
        self.encrypt(counters, words)
        return int(words[0]), int(words[1])

    def block_bits(self, query: int, lane: Lane, ext: int, j: int, geounit: int) -> int:
        """One block as a 128-bit little-endian integer; RuntimeError when ``ext`` has run out."""
        if ext >= 1 << 8:
            raise RuntimeError("the bits of a residual draw ran out; please report this as a bug")
        low, high = self.block(query, lane, ext, j, geounit)
        return high << 64 | low
