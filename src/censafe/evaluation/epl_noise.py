"""CONFIDENTIAL. Measured empirical privacy loss beside that of pure noise, and mechanisms whose loss is known."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

import pyarrow as pa

from censafe.evaluation.histograms.calibration import calibrate, linear_noise_examples
from censafe.model import NoiseLaw

__all__ = ["epl_noise_frames"]

_TRIALS: Final = 10
_FEWEST: Final = 100  # errors
_LEAST: Final = 0.003  # loss, below which the law has so many values that nothing can be told
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
    """What the same estimators say of pure noise of the loss that was measured, and of three known mechanisms.

    Args:
        epl: frame of measured losses: level, area_class, size_class, characteristic, and the columns of
            :func:`censafe.evaluation.histograms.epl.epl_summary`.

    Returns:
        ``epl_noise``: for every level and characteristic of 100 errors or more, two-sided geometric noise whose loss is the reported
        one, and discrete Gaussian noise of the same variance, drawn as many times as there are errors; mean estimate, its true
        value, 90 % interval and bias beside the measured value. ``epl_examples``: noise at leaves, a mean of four draws, and
        raking from the root, whose losses are as 1 : 1/2 : 1/4.
    """
    measured: dict[tuple[Any, ...], dict[tuple[str, str], Mapping[str, Any]]] = {}
    for row in epl.to_pylist():
        if row["size_class"] == "all":
            key = tuple(row[name] for name in _ABOUT)
            measured.setdefault(key, {})[row["estimator"], row["statistic"]] = row
    rows = [
        dict(zip(_ABOUT, key, strict=True)) | one
        for key, values in measured.items()
        for one in _beside(values)
    ]
    return {"epl_noise": pa.Table.from_pylist(rows, schema=_SCHEMA), "epl_examples": _examples()}


def _beside(values: Mapping[tuple[str, str], Mapping[str, Any]]) -> list[dict[str, Any]]:
    reported = next((row for row in values.values() if row["reported"]), None)
    if reported is None or reported["n"] < _FEWEST:
        return []
    loss = reported["value"]
    if loss is None or not _LEAST <= loss < math.inf:
        return []
    found = []
    for law in _laws(loss):
        for row in calibrate(law, [reported["n"]], trials=_TRIALS).to_pylist():
            own = values.get((row["estimator"], row["statistic"]))
            found.append(row | {"measured_epl": None if own is None else own["value"]})
    return found


def _laws(loss: float) -> tuple[NoiseLaw, NoiseLaw]:
    """Two-sided geometric noise of a loss, and discrete Gaussian noise of its variance."""
    share = math.exp(-loss)
    variance = 2 * share / (1 - share) ** 2
    exact = (Fraction(value).limit_denominator(10**6) for value in (1 / loss, max(variance, 1e-3)))
    scale, sigma2 = exact
    return NoiseLaw.laplace(scale), NoiseLaw.gaussian(sigma2)


@functools.cache
def _examples() -> pa.Table:
    return linear_noise_examples(_EPSILONS)
