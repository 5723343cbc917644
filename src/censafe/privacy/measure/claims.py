"""Which answers the noise of a part key belongs to: one address never serves two different answers."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censafe.errors import ReleaseError
from censafe.model.proven import proven

_MOST_BLOCKS = 1 << 40
_BY_GEOUNIT = b"by geounit"
_PAGE_BITS = 16


def fingerprint(*parts: NDArray[Any] | str, after: hashlib.blake2b | None = None) -> hashlib.blake2b:
    """Hash of exact answers and their laws, each part preceded by its type, shape and length.

    Example:
        >>> one = fingerprint(np.arange(3), "law").digest()
        >>> one == fingerprint(np.arange(3), "law").digest(), one == fingerprint(np.arange(3), "other").digest()
        (True, False)
    """
    digest = hashlib.blake2b(digest_size=16) if after is None else after.copy()
    for part in parts:
        if isinstance(part, str):
            digest.update(f"text {len(part.encode())}|{part}".encode())
        else:
            digest.update(f"array {part.dtype.str} {part.shape}|".encode())
            digest.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
    return digest


class Usage:
    """What the addresses of one part have been used for, in this process, by all keys derived for it.

    Answers are remembered by fingerprint only. The same answer may be drawn again: it is the same number.
    """

    __slots__ = ("_answers", "_blocks", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._answers: dict[tuple[int, int | None], bytes] = {}

    def reserve(self, blocks: int) -> None:
        """Count cipher blocks; ReleaseError beyond 2^40."""
        with self._lock:
            if self._blocks + blocks > _MOST_BLOCKS:
                raise ReleaseError(
                    f"one part key serves at most 2^40 cipher blocks; {self._blocks} are used and {blocks} "
                    "more were asked for; divide the part"
                )
            self._blocks += blocks

    @property
    def blocks(self) -> int:
        """Cipher blocks so far."""
        return self._blocks

    @proven("claims.proof.md", digest="d5e264c888030ede")
    def claim(self, ordinal: int, answers: bytes) -> None:
        """Note which answers all addresses of a query belong to.

        Args:
            ordinal: of the query in its part.
            answers: fingerprint of the exact answers and their laws.

        Raises:
            ReleaseError: its noise belongs to other answers.
        """
        with self._lock:
            self._note(ordinal, None, answers)

    @proven("claims.proof.md", digest="12b12e680eceb439")
    def claim_geounits(self, ordinals: Iterable[int], first: int, answers: Sequence[bytes]) -> None:
        """As :meth:`claim`, geounit by geounit.

        Args:
            ordinals: of queries.
            first: ordinal of the first geounit.
            answers: one fingerprint for every geounit.

        Raises:
            ReleaseError: noise of one of them belongs to other answers.
        """
        with self._lock:
            for ordinal in ordinals:
                self._note(ordinal, None, _BY_GEOUNIT)
                for geounit, own in enumerate(answers, first):
                    self._note(ordinal, geounit, own)

    @proven("claims.proof.md", digest="88069fb7657a5e77")
    def _note(self, ordinal: int, geounit: int | None, answers: bytes) -> None:
        if self._answers.setdefault((ordinal, geounit), answers) != answers:
            raise ReleaseError(
                f"the noise of query {ordinal} of this part belongs to other answers already; equal noise on two versions "
                "of the counts, or under two laws, would reveal their difference. Measure them with a run of their own."
            )

    def require_claimed(self, ordinal: int) -> None:
        """ReleaseError unless it was noted which answers the noise of a query belongs to."""
        if (ordinal, None) not in self._answers:
            raise ReleaseError(f"query {ordinal} of this part has no answers to which noise could be added")


class Claim:
    """The right to add the noise of one query to its answers, at each geounit once.

    Made by ``claim`` of a part key.
    """

    __slots__ = ("_lock", "_pages", "ordinal")

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal
        self._lock = threading.Lock()
        self._pages: dict[int, NDArray[np.bool_]] = {}

    @proven("claims.proof.md", digest="b5eb7f19f41ce806")
    def cover(self, geounits: NDArray[np.uint64]) -> None:
        """Note that noise is added at these geounits.

        Args:
            geounits: uint64, shape (g,).

        Raises:
            ReleaseError: at one of them it was added before, or it is named twice.
        """
        with self._lock:
            pages = geounits >> np.uint64(_PAGE_BITS)
            for page in np.unique(pages).tolist():
                places = (geounits[pages == page] & np.uint64((1 << _PAGE_BITS) - 1)).astype(np.int64)
                done = self._pages.setdefault(page, np.zeros(1 << _PAGE_BITS, np.bool_))
                if done[places].any() or len(np.unique(places)) < len(places):
                    raise ReleaseError(
                        f"the noise of query {self.ordinal} was added to an answer of the same geounit before; claim the "
                        "query again to draw the same answers once more"
                    )
                done[places] = True
