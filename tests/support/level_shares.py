"""Shares of a budget by level, for tests of paths."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from censafe.geography.spines.paths import LevelShares
from censafe.geography.spines.tree import Spine


def even_shares(spine: Spine, shares: Sequence[Fraction]) -> tuple[LevelShares, ...]:
    """One share for all geounits of a level."""
    return tuple(
        LevelShares((share,), np.zeros(level.nodes, np.int32))
        for level, share in zip(spine.levels, shares, strict=True)
    )
