"""CONFIDENTIAL. Permutation swapping: households chosen at random within strata exchange their blocks by a random derangement."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.attack.defenses.households import Households, Records, SwappedPeople
from censafe.attack.defenses.permutation_loss import PermutationLoss, permutation_loss
from censafe.model.proven import proven

_Ints = NDArray[np.int64]
_FINEST: Final = 2**63


def swap_by_permutation(
    people: Records, rate: Fraction, seed: int, level: str
) -> tuple[SwappedPeople[Records], PermutationLoss]:
    """Households of one area, size and number of adults exchange their blocks; with the loss of privacy.

    Every block keeps its numbers of households by size and adults, and every area of the level all counts of persons. What of a household is not
    its block is not protected: sizes and adults of all blocks, and everything within areas of the level, are published exactly.

    Source: Bailie, Gong, Meng (2026), "A Refreshment Stirred, Not Shaken" (arXiv 2501.08449), in the form of attack.md 16.2.
    """
    households = Households.of(people)
    _, strata, members = np.unique(
        households.alike(people.around(level)), return_inverse=True, return_counts=True
    )
    loss = permutation_loss(int(members.max(initial=0)), rate)
    partner = deranged(strata.ravel().astype(np.int64), rate, np.random.default_rng(seed))
    return SwappedPeople.of(people, households, partner), loss


@proven("permutation.proof.md", digest="b00e2d94c550e3a7")
def deranged(strata: _Ints, rate: Fraction, stream: np.random.Generator) -> _Ints:
    """A permutation that stays within strata and is drawn in each by itself.

    In each stratum every record is selected with the probability `rate`; where exactly one is, all of the stratum is drawn once more, and a record that is
    alone stays. The selected ones are permuted by a derangement, all derangements being equally likely.

    Args:
        strata: of every record, numbered from 0, shape (n,).
        rate: above 0 and below 1.
        stream: of random numbers.

    Returns:
        Record whose value each record takes, shape (n,).
    """
    count = int(strata.max(initial=-1)) + 1
    selected = np.zeros(len(strata), np.bool_)
    waiting = np.flatnonzero((np.bincount(strata, minlength=count) > 1)[strata])
    while len(waiting):
        selected[waiting] = stream.integers(0, rate.denominator, len(waiting)) < rate.numerator
        single = np.bincount(strata[selected], minlength=count) == 1
        waiting = np.flatnonzero(single[strata])
    result = np.arange(len(strata))
    waiting = np.flatnonzero(selected)
    while len(waiting):
        fixed = waiting[np.argsort(strata[waiting], kind="stable")]
        result[fixed] = waiting[np.lexsort((stream.integers(0, _FINEST, len(waiting)), strata[waiting]))]
        repeated = np.bincount(strata[fixed[result[fixed] == fixed]], minlength=count) > 0
        waiting = waiting[repeated[strata[waiting]]]
    return result
