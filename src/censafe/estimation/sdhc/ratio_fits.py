"""Which of the models of a ratio is fitted to one population group: quadrature, whole numbers, draws, or no noise at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from censafe.estimation.sdhc.draws import drawn_ratios, drawn_tenure, generator
from censafe.estimation.sdhc.lattice_ratios import NoisyCount, lattice_joint, lattice_single
from censafe.estimation.sdhc.ratio_types import RatioEstimate, RatioModel, UnansweredError
from censafe.estimation.sdhc.ratios import estimate_joint, estimate_single
from censafe.estimation.sdhc.rules import RatioRules
from censafe.estimation.sdhc.tenure import estimate_tenure
from censafe.estimation.sdhc.unbounded_ratios import unbounded_joint, unbounded_single
from censafe.model.sdhc_cells import Key
from censafe.model.sdhc_settings import EstimateSettings

__all__ = ["GroupFit"]

Noisy = tuple[float, float]

_REFERENCE_DRAWS = 10_000
_MOST_DRAWS = 1_000_000


@dataclass(frozen=True)
class GroupFit:
    """The ratios of one population group.

    Args:
        rules: which ratios there are.
        settings: of bounds, tails, model and method.
        key: of the group, from which its draws follow.
    """

    rules: RatioRules
    settings: EstimateSettings
    key: Key

    @property
    def model(self) -> RatioModel:
        """Bounds, tails and kind of interval."""
        settings = self.settings
        return RatioModel(self.rules.lowest, settings.trun, settings.alpha, settings.interval == "shortest")

    def ratios(self, top: Sequence[NoisyCount], bottom: Sequence[NoisyCount]) -> list[RatioEstimate]:
        """Estimates of first part, second part and total.

        Args:
            top: noisy numerators of the two parts.
            bottom: the noisy denominator of all three, or those of the two parts.

        Raises:
            UnansweredError: no estimate follows from these counts.
        """
        first, second = top
        if self.rules.form == "shared":
            total, one, other = self._joint(first, second, bottom[0])
            return [one, other, total]
        parts = [self._single(num, den) for num, den in zip(top, bottom, strict=True)]
        if self.settings.ph8 == "joint":
            return [*parts, self._tenure(top, bottom)]
        return [*parts, self._single(first + second, bottom[0] + bottom[1])]

    def _joint(self, first: NoisyCount, second: NoisyCount, den: NoisyCount) -> tuple[RatioEstimate, ...]:
        counts, model = (first, second, den), self.model
        if not any(count.variance for count in counts):
            bottom, one, other = max(den.z, 1), max(first.z, 0), max(second.z, 0)
            least = (model.lowest, 0.0, 0.0)
            nums = (one + other, one, other)
            return tuple(_known(num, bottom, low, model) for num, low in zip(nums, least, strict=True))
        if self.settings.method == "sample":
            return self._drawn((first, second), den)
        if self.settings.model == "discrete":
            return lattice_joint(first, second, den, model)
        pairs = [_pair(count) for count in counts]
        far = unbounded_joint(pairs[0], pairs[1], pairs[2], model)
        if far is None:
            _all_noisy(counts)
        return far or estimate_joint(pairs[0], pairs[1], pairs[2], model)

    def _single(self, num: NoisyCount, den: NoisyCount) -> RatioEstimate:
        model = self.model
        if not num.variance and not den.variance:
            return _known(max(num.z, 0), max(den.z, 1), model.lowest, model)
        if self.settings.method == "sample":
            return self._drawn((num,), den)[0]
        if self.settings.model == "discrete":
            return lattice_single(num, den, model)
        far = unbounded_single(_pair(num), _pair(den), model)
        if far is None:
            _all_noisy((num, den))
        return far or estimate_single(_pair(num), _pair(den), model)

    def _tenure(self, top: Sequence[NoisyCount], bottom: Sequence[NoisyCount]) -> RatioEstimate:
        counts = (*top, *bottom)
        if not any(count.variance for count in counts):
            return self._single(top[0] + top[1], bottom[0] + bottom[1])
        _all_noisy(counts)
        first, second = ((_pair(num), _pair(den)) for num, den in zip(top, bottom, strict=True))
        if self.settings.method == "sample":
            return drawn_tenure(first, second, self.model, self._draws, self._generator())
        return estimate_tenure(first, second, self.model)

    @property
    def _draws(self) -> int:
        return min(max(self.settings.iteration_num, _REFERENCE_DRAWS), _MOST_DRAWS)

    def _generator(self) -> np.random.Generator:
        return generator(self.settings.seed, self.rules.table, self.key)

    def _drawn(self, parts: Sequence[NoisyCount], den: NoisyCount) -> tuple[RatioEstimate, ...]:
        pairs = [_pair(part) for part in parts]
        return drawn_ratios(pairs, _pair(den), self.model, self._draws, self._generator())


def _pair(count: NoisyCount) -> Noisy:
    return count.z, count.variance


def _all_noisy(counts: Sequence[NoisyCount]) -> None:
    if not all(count.variance for count in counts):
        raise UnansweredError(
            "some counts are exact and others noisy, so that their ratio has no estimate near its bounds"
        )


def _known(num: float, den: float, lowest: float, model: RatioModel) -> RatioEstimate:
    ratio = min(max(num / den, lowest), model.largest)
    return RatioEstimate(ratio, ratio, ratio, num, den)
