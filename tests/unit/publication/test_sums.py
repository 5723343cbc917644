import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from censafe.errors import ConfigError
from censafe.model import Definition, NoiseLaw
from censafe.privacy.loss.margins import exact_margin
from censafe.publication.sums import accuracy_of_sum, exact_margin_of_sum, require_confidence
from censafe.publication.tables.tidy import CodebookInput, TidyContext

LEVELS = [Fraction(9, 10), Fraction(19, 20)]
LAWS = [
    NoiseLaw.gaussian(Fraction(text)) for text in ("1/4", "1", "7/2", "39/10", "4", "41/10", "100", "1000")
] + [NoiseLaw.laplace(Fraction(text)) for text in ("1/7", "1/2", "1", "2", "10/3", "10", "60")]


def _coverage(law: NoiseLaw, terms: int) -> np.ndarray:
    """P(abs(sum) <= m) for m = 0, 1, ..., by direct convolution."""
    parameter = float(law.parameter)
    size = int(60 * parameter + 60) if law.kind == "laplace" else int(14 * parameter**0.5 + 14)
    support = np.arange(-size, size + 1)
    weights = (
        np.exp(-(support**2) / (2 * parameter))
        if law.kind == "gaussian"
        else np.exp(-np.abs(support) / parameter)
    )
    one = weights / weights.sum()
    total = one
    for _ in range(terms - 1):
        total = np.convolve(total, one)
    center = len(total) // 2
    return np.array([total[center - m : center + m + 1].sum() for m in range(center)])


@pytest.mark.parametrize(("law", "level"), list(itertools.product(LAWS, LEVELS)))
def test_the_margin_of_a_sum_is_the_smallest_that_covers(law: NoiseLaw, level: Fraction) -> None:
    for terms in (1, 2, 3):
        margin = exact_margin_of_sum(law, terms, level)
        coverage = _coverage(law, terms)
        assert coverage[margin] >= float(level) - 1e-12
        assert margin == 0 or coverage[margin - 1] < float(level)


def test_one_term_is_the_margin_of_the_law() -> None:
    for law, level in itertools.product(LAWS, LEVELS):
        assert exact_margin(law, level) == exact_margin_of_sum(law, 1, level)


def test_variances_add_up_and_margins_grow_with_the_root() -> None:
    law = NoiseLaw.gaussian(Fraction(22**2) / (2 * Fraction("0.002619")))
    one, two = (accuracy_of_sum(law, terms, Fraction(9, 10)) for terms in (1, 2))
    assert (one.margin_exact, two.margin_exact) == (500, 707)
    assert two.variance_reference == 2 * float(law.parameter)
    assert two.variance == pytest.approx(2 * one.variance)
    assert two.margin == pytest.approx(1.645 * (2 * float(law.parameter)) ** 0.5)


def test_small_parameters_have_an_exact_variance_below_the_reference() -> None:
    found = accuracy_of_sum(NoiseLaw.gaussian(Fraction(1, 4)), 1, Fraction(9, 10))
    assert (found.variance_reference, round(found.variance, 6)) == (0.25, 0.215013)


def test_a_sum_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        exact_margin_of_sum(NoiseLaw.gaussian(Fraction(4)), 0, Fraction(9, 10))


@pytest.mark.parametrize("law", [NoiseLaw.laplace(Fraction(text)) for text in ("1/7", "1", "10/3", "25/2")])
@pytest.mark.parametrize("terms", [8, 18, 46])
def test_long_geometric_sums_have_the_smallest_margin_that_covers(law: NoiseLaw, terms: int) -> None:
    """Against the characteristic function on a grid so wide that what wraps around is below 1e-30."""
    size, q = 1 << 14, math.exp(-1 / float(law.parameter))
    angles = 2 * np.pi * np.arange(size // 2 + 1) / size
    one = (1 - q) ** 2 / (1 - 2 * q * np.cos(angles) + q * q)
    masses = np.fft.irfft(one**terms, size)
    coverage = np.cumsum(masses[: size // 2]) * 2 - masses[0]
    for level in LEVELS:
        expected = int(np.argmax(coverage >= float(level)))
        assert expected == exact_margin_of_sum(law, terms, level)


def test_a_geometric_sum_of_large_scale_is_nearly_normal() -> None:
    law = NoiseLaw.laplace(Fraction(100_000))
    z, excess = 1.959964, 3 / 46
    expected = z * (1 + excess * (z * z - 3) / 24) * (46 * 2.0) ** 0.5 * 100_000
    assert exact_margin_of_sum(law, 46, Fraction(19, 20)) == pytest.approx(expected, rel=1e-4)


def test_a_confidence_without_rule_is_refused_before_it_matters() -> None:
    for level in LEVELS:
        require_confidence(level)
    with pytest.raises(ConfigError, match=r"0\.9 or 0\.95, not 0\.8"):
        require_confidence(Fraction(4, 5))
    with pytest.raises(ConfigError):
        TidyContext("phsafe", Definition.ZCDP, Fraction(4, 5), CodebookInput({}, {}))
