"""Estimates of empirical privacy loss for noise whose loss is known, next to what was measured."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.evaluation.counts.error_metrics import DEVIATIONS
from censafe.evaluation.loss.epl import epl_curve, epl_summary
from censafe.evaluation.loss.residuals import Residuals, residuals_of
from censafe.model import NoiseLaw

_STATISTICS: Final = (
    ("kernel", "max"),
    ("kernel", "median"),
    ("discrete", "max"),
    ("discrete", "median"),
    ("discrete", "mean"),
)
_FAR: Final = 9.2  # standard deviations, beyond which a Gaussian has a mass of about 1e-19
_LEAST_COUNT: Final = 25  # of a residual that the discrete estimator takes
_MASS: Final = 1_000_000_000_000


def noise_law_masses(law: NoiseLaw, added: int = 1) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Values and probabilities of the sum of independent draws of a noise law, its far tails cut off.

    Example:
        >>> from fractions import Fraction
        >>> for added in (1, 10):
        ...     k, p = noise_law_masses(NoiseLaw.laplace(Fraction(1)), added)
        ...     print(round(float((p * k**2).sum()), 6))
        1.841347
        18.413472
    """
    k, mass = _one_draw(law)
    if added == 1:
        return k, mass
    deviation = float(np.sqrt(added * (mass * k.astype(float) ** 2).sum()))
    reach = max(int(k[-1]), int(np.ceil(_FAR * deviation)) + 2)
    length = 1 << (2 * reach + 1).bit_length()
    circle = np.zeros(length)
    circle[k] = mass
    summed = np.fft.irfft(np.fft.rfft(circle) ** added, length)
    wide = np.arange(-reach, reach + 1)
    chances = np.maximum(summed[wide], 0.0)
    return wide, chances / chances.sum()


def _one_draw(law: NoiseLaw) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The same of one draw, tails below 1e-18 cut off."""
    size = float(law.parameter)
    reach = int(np.ceil(_FAR * np.sqrt(size))) + 2 if law.kind == "gaussian" else int(np.ceil(45 * size)) + 2
    k = np.arange(-reach, reach + 1)
    exponent = k * k / (2 * size) if law.kind == "gaussian" else np.abs(k) / size
    mass = np.exp(-exponent)
    return k, mass / mass.sum()


def calibrate(
    law: NoiseLaw,
    sizes: Sequence[int],
    *,
    added: int = 1,
    trials: int = 20,
    seed: int = 1,
) -> pa.Table:
    """Estimates of pure noise and their true values."""
    k, mass = noise_law_masses(law, added)
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for size in sizes:
        draws = rng.multinomial(size, mass, size=trials)
        estimates = [_values(k, counts, _LEAST_COUNT) for counts in draws]
        expected = np.round(mass * _MASS).astype(np.int64)
        exact = _values(k, expected, max(1, _LEAST_COUNT * _MASS // size))
        for key in _STATISTICS:
            values = np.array([one[key] for one in estimates])
            truth = 1 / float(law.parameter) if law.kind == "laplace" and added == 1 else exact[key]
            mean = float(values.mean())
            with np.errstate(invalid="ignore"):  # estimates may be infinite, and then have no spread
                width = DEVIATIONS * float(values.std(ddof=1)) / np.sqrt(trials) if trials > 1 else np.nan
            rows.append(
                {
                    "law": law.kind, "parameter": float(law.parameter), "n": size, "estimator": key[0], "statistic": key[1],
                    "truth": truth, "mean": mean, "lo": mean - width, "hi": mean + width, "bias": mean - truth,
                }
            )  # fmt: skip
    return pa.Table.from_pylist(rows)


def _values(k: NDArray[np.int64], counts: NDArray[np.int64], n_min: int) -> dict[tuple[str, str], float]:
    """Estimates of residuals that occur as often as counted."""
    residuals = Residuals(k[counts > 0], counts[counts > 0])
    rows = epl_summary(residuals, n_min=n_min, replicates=0).to_pylist()
    values = {(row["estimator"], row["statistic"]): row["value"] for row in rows}
    return {key: values.get(key, float("nan")) for key in _STATISTICS}


def linear_noise_examples(epsilons: Sequence[float]) -> pa.Table:
    """Three mechanisms on trees of 9,261 leaves of 100 persons: noise at leaves, a mean of four draws, raking to the root.

    The first is geometric noise of epsilon at every leaf, the second the mean of four draws of epsilon / 4 each, the third has a
    quarter of epsilon at each of root, two levels and leaves, and children are scaled to the total of their parent.
    """
    rng = np.random.default_rng(1)
    columns: dict[str, list[Any]] = {"mechanism": [], "epsilon": [], "epl": [], "ratio": []}
    for epsilon in epsilons:
        errors_of: dict[str, list[NDArray[np.float64]]] = {}
        for leaves in rng.multinomial(1_000_000, np.full(21**3, 21.0**-3), size=4):
            true = leaves.reshape(21, 21, 21)
            draws = [_geometric(rng, epsilon / 4, true.shape) for _ in range(4)]
            errors = {
                "noise at leaves": _geometric(rng, epsilon, true.shape),
                "mean of four draws": np.mean(draws, axis=0),
                "raked from the root": _raked(rng, true, epsilon / 4) - true,
            }
            for name, error in errors.items():
                errors_of.setdefault(name, []).append(error.reshape(-1))
        for name, parts in errors_of.items():
            curve = epl_curve(residuals_of(np.concatenate(parts)), bandwidth_factor=0.15, multiplier=1.5)
            loss = np.abs(curve.column("smooth_epl").to_numpy()[:-1])
            value = float(np.median(loss[np.isfinite(loss)]))
            for column, item in zip(columns, (name, epsilon, value, value / epsilon), strict=True):
                columns[column].append(item)
    return pa.table(columns)


def _geometric(rng: np.random.Generator, z: float, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Two-sided geometric noise: the difference of two geometric draws."""
    chance = -np.expm1(-z)
    return (rng.geometric(chance, shape) - rng.geometric(chance, shape)).astype(np.float64)


def _raked(rng: np.random.Generator, true: NDArray[np.int64], z: float) -> NDArray[np.float64]:
    """Noisy counts of every level, children scaled so that they add up to their parent."""
    scaled = np.array(true.sum() + _geometric(rng, z, ()))
    for depth in range(1, 4):
        noisy = true.reshape(*true.shape[:depth], -1).sum(axis=-1) + _geometric(rng, z, true.shape[:depth])
        scaled = noisy * (scaled / noisy.sum(axis=-1))[..., None]
    return scaled


_TRIALS: Final = 10
_FEWEST: Final = 100  # errors
_LEAST: Final = 0.003  # loss, below which the law has so many values that nothing can be estimated
_EPSILONS: Final = (0.05, 0.1)
_ABOUT: Final = ("level", "area_class", "characteristic")
_SCHEMA: Final = pa.schema(
    [
        *((name, pa.string()) for name in (*_ABOUT, "law")),
        ("parameter", pa.float64()),
        ("n", pa.int64()),
        *((name, pa.string()) for name in ("estimator", "statistic")),
        *((name, pa.float64()) for name in ("truth", "mean", "lo", "hi", "bias", "measured_epl")),
    ]
)


def epl_noise_frames(epl: pa.Table) -> dict[str, pa.Table]:
    """What the same estimators say of pure noise of the loss that was measured, and of three known mechanisms."""
    measured: dict[tuple[Any, ...], dict[tuple[str, str], Mapping[str, Any]]] = {}
    for row in epl.to_pylist():
        if row["size_class"] == "all":
            key = tuple(row[name] for name in _ABOUT)
            measured.setdefault(key, {})[row["estimator"], row["statistic"]] = row
    rows = [
        dict(zip(_ABOUT, key, strict=True)) | row
        for key, values in measured.items()
        for row in _of_noise(values)
    ]
    return {"epl_noise": pa.Table.from_pylist(rows, schema=_SCHEMA), "epl_examples": _examples()}


def _of_noise(values: Mapping[tuple[str, str], Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Estimates of noise of the reported loss, and those of one subject; none where nothing can be estimated."""
    reported = next((row for row in values.values() if row["reported"]), None)
    if reported is None or reported["n"] < _FEWEST:
        return []
    loss = reported["value"]
    if loss is None or not _LEAST <= loss < math.inf:
        return []
    rows = []
    for law in _laws(loss):
        for row in calibrate(law, [reported["n"]], trials=_TRIALS).to_pylist():
            own = values.get((row["estimator"], row["statistic"]), {})
            rows.append(row | {"measured_epl": own.get("value")})
    return rows


def _laws(loss: float) -> tuple[NoiseLaw, NoiseLaw]:
    """Two-sided geometric noise of a loss, and discrete Gaussian noise of its variance."""
    share = math.exp(-loss)
    variance = 2 * share / (1 - share) ** 2
    scale, sigma2 = (Fraction(value).limit_denominator(10**6) for value in (1 / loss, max(variance, 1e-3)))
    return NoiseLaw.laplace(scale), NoiseLaw.gaussian(sigma2)


@functools.cache
def _examples() -> pa.Table:
    return linear_noise_examples(_EPSILONS)
