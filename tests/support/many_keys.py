"""Noise of whole products under many test keys: every part measured as in a release, less the private truth."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from censafe.model import NoiseLaw, PartPlan, ReleasePlan
from censafe.privacy.keys import TestKey
from censafe.products.run.account import MeasurementFiles, MeasurementStore
from support.noise_statistics import ExactLaw

FALSE_ALARM = 1e-6
"""Chance that one call of :func:`defects` rejects right noise, over all its tests together."""

_MEMORY: MeasurementFiles[Any] = MeasurementFiles(lambda *_, **__: "", lambda *_, **__: None, lambda _: set())


class _Account:
    """Spends nothing and records nothing."""

    input_commitment = "00"

    def __init__(self, seed: int) -> None:
        self.key = TestKey(seed)

    def reserve(self, part: PartPlan) -> None:
        """A test key spends nothing."""

    def commit(self, part: PartPlan, file: str, sha256: str) -> None:
        """Nothing is stored."""


class _MemoryStore(MeasurementStore):
    """A measurement store that keeps nothing."""

    def write(self, part: PartPlan, measured: Any, files: MeasurementFiles[Any]) -> None:
        super().write(part, measured, _MEMORY)


def open_store(plan: ReleasePlan, seed: int) -> MeasurementStore:
    """A measurement store of a run with a test key."""
    return _MemoryStore(plan, Path("/nowhere"), _Account(seed))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Noise:
    """Noise of one query, of every key.

    Args:
        law: as stated with the published values.
        values: int64, shape (keys, geounits, answers).
        there: bool, of the same shape: where something was measured.
    """

    law: NoiseLaw
    values: NDArray[np.int64]
    there: NDArray[np.bool_]

    @cached_property
    def signs(self) -> NDArray[np.int8]:
        """Signs of the noise, 0 also where nothing was measured."""
        return (np.sign(self.values) * self.there).astype(np.int8)


Drawn = tuple[NoiseLaw, NDArray[np.int64], NDArray[np.bool_]]
"""Law, noise of shape (geounits, answers), and where something was measured."""

Product = Callable[[int], Mapping[str, Drawn]]


def noise_of(product: Product, seeds: Iterable[int]) -> dict[str, Noise]:
    """Noise of every query of a product under many keys, by name."""
    found: dict[str, list[Drawn]] = {}
    for seed in seeds:
        for name, drawn in product(seed).items():
            found.setdefault(name, []).append(drawn)
    return {
        name: Noise(drawn[0][0], np.stack([one[1] for one in drawn]), np.stack([one[2] for one in drawn]))
        for name, drawn in found.items()
    }


@lru_cache(maxsize=256)
def _exact_law(law: NoiseLaw) -> ExactLaw:
    return ExactLaw.of(law)


def variance_p_value(noise: Noise) -> float:
    """Two-sided p-value of the mean square: a scaled chi-square with the mean and the variance of the exact law."""
    exact = _exact_law(noise.law)
    values = noise.values[noise.there].astype(np.float64)
    scale = (exact.fourth / exact.variance**2 - 1) / 2
    statistic, freedom = float(values @ values) / exact.variance / scale, len(values) / scale
    return float(2 * min(stats.chi2.sf(statistic, freedom), stats.chi2.cdf(statistic, freedom)))


def sign_p_value(one: Noise, other: Noise, *, shift: int = 0) -> float:
    """Bound on the chance that signs at the same addresses agree or disagree so often, by Hoeffding's inequality.

    Args:
        one: noise of a query.
        other: noise of another query.
        shift: compare a key with the one so many places later.
    """
    keys = len(one.values) - shift
    rows = min(one.values.shape[1], other.values.shape[1])
    columns = min(one.values.shape[2], other.values.shape[2])
    product = one.signs[:keys, :rows, :columns] * other.signs[shift:, :rows, :columns]
    signed, total = int(np.count_nonzero(product)), int(product.sum(dtype=np.int64))
    return min(1.0, float(2 * np.exp(-(total**2) / (2 * signed)))) if signed else 1.0


def defects(found: Mapping[str, Noise]) -> set[str]:
    """Names of the tests that reject: ``variance of Q``, ``Q with R`` and ``Q from key to key``.

    Every test rejects right noise with a chance of ``FALSE_ALARM`` divided by the number of tests. With m draws of a
    query the variance test sees half the standard deviation from m = 60 on, the test of signs equal noise from m = 50 on.
    """
    p_values = {f"variance of {name}": variance_p_value(noise) for name, noise in found.items()}
    for (name, one), (other_name, other) in combinations(found.items(), 2):
        p_values[f"{name} with {other_name}"] = sign_p_value(one, other)
    for name, noise in found.items():
        p_values[f"{name} from key to key"] = sign_p_value(noise, noise, shift=1)
    return {name for name, p in p_values.items() if p < FALSE_ALARM / len(p_values)}
