"""Exact counts: the confidential type that only the door accepts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from censafe.model.domain import KeyDomain

__all__ = ["ExactCounts"]


@dataclass(frozen=True, eq=False)
class ExactCounts:
    """CONFIDENTIAL. True counts over a complete public key domain.

    Args:
        domain: the public keys.
        values: int64, shape (domain.size,), row i belongs to key i.

    The values are kept out of ``repr`` and the object cannot be pickled, so that neither a log
    line nor a worker queue carries them by accident.
    """

    domain: KeyDomain
    values: NDArray[np.int64] = field(repr=False)

    def __post_init__(self) -> None:
        if self.values.dtype != np.int64 or self.values.shape != (self.domain.size,):
            raise ValueError("exact counts must be an int64 vector with one value a key")

    def __reduce__(self) -> NoReturn:
        raise TypeError("exact counts are confidential and cannot be pickled")
