"""CONFIDENTIAL. Permutation swapping: households chosen at random within strata exchange their blocks by a random derangement; its privacy loss, exact for the largest stratum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.attack.defenses.households import Households, Records, SwappedPeople
from censafe.errors import ConfigError
from censafe.model.bounds import upper
from censafe.model.proven import proven

_Ints = NDArray[np.int64]
LARGEST_DENOMINATOR: Final = 2**62
_EXACT_UP_TO: Final = 30
"""Derangement numbers up to here are computed as integers; above, the quotient of two neighbors differs from the larger index by less than 1e-31."""


@dataclass(frozen=True)
class PermutationLoss:
    """Pure differential privacy of a permutation swap, subject to what it keeps exactly."""

    rate: Fraction
    largest: int
    record: float
    bound: float

    @property
    def exchange(self) -> float:
        """Epsilon of the smallest change that keeps the invariants, the exchange of the blocks of two records of a stratum: twice that of a record."""
        return 2 * self.record

    def words(self, area: str = "block") -> str:
        """The guarantee and its limits in sentences.

        Args:
            area: what households exchange.

        Example:
            >>> print(permutation_loss(100, Fraction(1, 20)).words()[:97])
            Epsilon 7.545 for a record, 15.090 for the exchange of two records, in strata of up to 100 record
        """
        return (
            f"Epsilon {upper(self.record, 3):.3f} for a record, {upper(self.exchange, 3):.3f} for the exchange of two records, in strata of up to {self.largest:,} records with "
            f"the rate {self.rate}. Not protected, because they are published exactly: which strata there are and their counts by {area}, and everything of "
            f"a household that is not its {area}. Epsilon values under other invariants, such as those of TopDown, cannot be compared with it."
        )


def permutation_loss(largest: int, rate: Fraction) -> PermutationLoss:
    """Loss of a permutation swap.

    Example:
        >>> loss = permutation_loss(6, Fraction(1, 20))
        >>> round(loss.record, 4), round(loss.exchange, 4), round(loss.bound, 4)
        (4.6357, 9.2714, 4.8903)

    Source: attack.md 16.2; ``permutation.proof.md``.
    """
    if not 0 < rate < 1 or rate.denominator > LARGEST_DENOMINATOR:
        raise ConfigError(
            "the rate of a permutation swap must lie above 0 and below 1, with at most 18 digits; fix: give one such as p=0.05"
        )
    if largest < 2:
        return PermutationLoss(rate, largest, 0.0, 0.0)
    return PermutationLoss(rate, largest, largest_log_ratio(largest, rate) / 2, loss_bound(largest, rate))


@proven("permutation.proof.md", digest="850e363a69f5e8aa")
def largest_log_ratio(largest: int, rate: Fraction) -> float:
    """Largest logarithm of the ratio of the probabilities of an output under two assignments that differ by one exchange.

    Args:
        largest: records of the largest stratum, at least 2.
        rate: above 0 and below 1.
    """
    odds = rate / (1 - rate)
    steps = [
        _log_quotient(k, k + 2) - 2 * _log(odds) for k in {0, 2, largest - 2} if k != 1 and k + 2 <= largest
    ]
    steps += [_log_quotient(k, k + 1) - _log(odds) for k in {2, largest - 1} if 2 <= k < largest]
    return max(abs(step) for step in steps)


@proven("permutation.proof.md", digest="05826b7e30270ad1")
def loss_bound(largest: int, rate: Fraction) -> float:
    """Bound in closed form on half of the largest logarithm.

    Args:
        largest: records of the largest stratum, at least 2.
        rate: above 0 and below 1.
    """
    odds = _log(rate / (1 - rate))
    bound = math.log(largest + 1) - odds
    return bound if rate <= Fraction(1, 2) else max(odds, bound)


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


def _log_quotient(low: int, high: int) -> float:
    """Logarithm of D(high) / D(low), the numbers of derangements; neither index is 1."""
    if high <= _EXACT_UP_TO:
        return _log(Fraction(_derangements(high), _derangements(low)))
    return math.fsum(_log_quotient_of_next(k) for k in range(low, high))


def _log_quotient_of_next(k: int) -> float:
    if k < _EXACT_UP_TO:
        return _log(Fraction(_derangements(k + 1), _derangements(k)))
    return math.log(k + 1)


def _derangements(n: int) -> int:
    """Permutations of n things without a fixed point.

    Example:
        >>> [_derangements(n) for n in range(7)]
        [1, 0, 1, 2, 9, 44, 265]
    """
    before, derangements = 0, 1
    for k in range(1, n + 1):
        before, derangements = derangements, (k - 1) * (derangements + before)
    return derangements


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
