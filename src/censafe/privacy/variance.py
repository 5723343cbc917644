"""Variances of the noise laws: the exact one, and the one that the Bureau's files print."""

from __future__ import annotations

from functools import lru_cache

from censafe.model import NoiseLaw
from censafe.privacy.series import decimal_of, gaussian_sums, working_precision

__all__ = ["exact_variance", "reference_variance"]


@lru_cache(maxsize=4096)
def exact_variance(law: NoiseLaw) -> float:
    """Variance of a noise law, the nearest float to a 60-digit sum.

    The variance of the discrete Gaussian is its parameter sigma2 up to exp(-2 pi^2 sigma2), and well below it
    for sigma2 < 1. The two-sided geometric law has variance 2 q / (1 - q)^2 with q = exp(-1 / scale).

    Source: Canonne, Kamath & Steinke (2020), section 2; Poisson summation.

    Example:
        >>> from fractions import Fraction
        >>> round(exact_variance(NoiseLaw.gaussian(Fraction(1, 4))), 6)
        0.215013
    """
    with working_precision():
        if law.kind == "gaussian":
            mass, moment = gaussian_sums(law.parameter)
            return float(moment / mass)
        q = (-1 / decimal_of(law.parameter)).exp()
        return float(2 * q / (1 - q) ** 2)


def reference_variance(law: NoiseLaw) -> float:
    """The number in the VARIANCE column of the Bureau's files.

    That is the parameter sigma2 for the discrete Gaussian and the exact variance for the two-sided geometric law.

    Example:
        >>> from fractions import Fraction
        >>> reference_variance(NoiseLaw.gaussian(Fraction(1, 4)))
        0.25
    """
    return float(law.parameter) if law.kind == "gaussian" else exact_variance(law)
