"""Draws against their exact laws, and the power of the suite: planted defects must be rejected.

False-alarm rate: 1e-6 for every test of the suite. Smallest defect: with 1,000,000 draws the variance test sees
a relative error of sigma of 0.47% (Gaussian, sigma above 1) or 0.75% (geometric, scale above 2) with power 0.95;
``test_the_stated_smallest_defects`` recomputes both. Statistics never replace the exact tests of tables, kernels
and residual draws in tests/unit/privacy.
"""

from fractions import Fraction

import numpy as np
import pytest

from censafe.model import NoiseLaw
from censafe.privacy.noise import wide
from censafe.privacy.noise.enclosures import Magnitudes
from censafe.privacy.noise.tables import NoiseTable, build_alias
from censafe.privacy.noise.weights import integer_weights
from support.noise import law, sample
from support.noise_statistics import (
    DRAWS,
    ExactLaw,
    assert_drawn_from,
    chi_square,
    rejected,
    smallest_sigma_defect,
)

GAUSSIANS = ["1/4", "1", "4", "100", "2500", "92416", "214437516707/177339451520", "1897677139/282013440"]
GAUSSIANS += ["214437516707/21246481300", "643312550121/80785100", "31231678045/11417641"]
LAPLACES = ["1/7", "2", "10/3", "10", "300"]
LAWS = [("gaussian", parameter) for parameter in GAUSSIANS] + [
    ("laplace", parameter) for parameter in LAPLACES
]
WIDE = [("gaussian", "10000000000"), ("laplace", "20000")]


@pytest.mark.parametrize(("kind", "parameter"), LAWS)
def test_draws_follow_their_law(kind: str, parameter: str) -> None:
    noise = law(kind, parameter)
    assert_drawn_from(ExactLaw.of(noise), lambda seed: sample(noise, DRAWS, seed), 101)


@pytest.mark.parametrize(("kind", "parameter"), WIDE)
def test_wide_draws_follow_their_law(kind: str, parameter: str) -> None:
    noise = law(kind, parameter)
    assert_drawn_from(ExactLaw.of(noise), lambda seed: sample(noise, 500_000, seed), 102)


@pytest.mark.parametrize(
    ("kind", "parameter", "shift"), [("gaussian", "25", 2), ("gaussian", "60", 1), ("laplace", "6", 2)]
)
def test_wide_draws_on_a_narrow_grid_are_decided_by_enclosures_alone(
    kind: str, parameter: str, shift: int
) -> None:
    noise = law(kind, parameter)
    table = NoiseTable.build(noise, shift=shift)
    assert_drawn_from(ExactLaw.of(noise), lambda seed: sample(noise, 20_000, seed, table), 103)


@pytest.mark.parametrize("width", [6, 8, 10, 12])
@pytest.mark.parametrize(("kind", "parameter"), [("gaussian", "4"), ("laplace", "10/3")])
def test_residual_draws_complete_the_law(kind: str, parameter: str, width: int) -> None:
    noise = law(kind, parameter)
    table = NoiseTable.build(noise, width=width)
    assert_drawn_from(ExactLaw.of(noise), lambda seed: sample(noise, 40_000, seed, table), 104)


def test_the_stated_smallest_defects() -> None:
    for kind, parameters, stated in (("gaussian", GAUSSIANS[1:], 0.0047), ("laplace", LAPLACES[1:], 0.0075)):
        for parameter in parameters:
            assert smallest_sigma_defect(ExactLaw.of(law(kind, parameter))) <= stated


# --- planted defects -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", ["51/50", "49/50"])
@pytest.mark.parametrize(("kind", "parameter"), [*LAWS[1:11], *LAWS[12:]])
def test_sigma_wrong_by_two_percent_is_rejected(kind: str, parameter: str, factor: str) -> None:
    right = law(kind, parameter)
    power = 2 if kind == "gaussian" else 1
    wrong = NoiseLaw(right.kind, right.parameter * Fraction(factor) ** power)
    assert "variance" in rejected(sample(wrong, DRAWS, 105), ExactLaw.of(right))


@pytest.mark.parametrize("parameter", ["1", "4", "100"])
def test_sigma_wrong_by_two_percent_is_seen_by_chi_square_up_to_sigma_10(parameter: str) -> None:
    right = law("gaussian", parameter)
    wrong = NoiseLaw.gaussian(right.parameter * Fraction(51, 50) ** 2)
    assert "chi-square" in rejected(sample(wrong, DRAWS, 106), ExactLaw.of(right))


@pytest.mark.parametrize(("kind", "parameter"), [("gaussian", "4"), ("gaussian", "2500"), ("laplace", "10")])
def test_a_folded_table_that_doubles_zero_is_rejected(kind: str, parameter: str) -> None:
    noise = law(kind, parameter)
    weights = integer_weights(Magnitudes.of(noise, folded=False))
    doubled = NoiseTable(noise, weights, build_alias(weights), 0)
    assert "chi-square" in rejected(sample(noise, DRAWS, 107, doubled), ExactLaw.of(noise))


@pytest.mark.parametrize("parameter", ["4", "100", "2500", "92416"])
def test_noise_truncated_at_4_sigma_is_rejected(parameter: str) -> None:
    noise = law("gaussian", parameter)
    values = sample(noise, DRAWS + 1000, 108)
    central = values[np.abs(values) <= 4 * float(noise.parameter) ** 0.5][:DRAWS]
    assert "tail" in rejected(central, ExactLaw.of(noise))


def test_the_biased_gaussian_of_opendp_0_14_1_is_rejected() -> None:
    # abs(X) = 0 .. 10 in 1,000,000 draws at sigma 2, from a wrong rational division (OpenDP issue 2638).
    counts = np.array([189685, 334522, 271792, 122843, 56187, 19823, 4123, 833, 174, 17, 1])
    exact = ExactLaw.of(law("gaussian", "4"))
    assert chi_square(counts, exact) < 1e-6
    assert chi_square(np.round(1_000_000 * exact.folded[:11]).astype(np.int64), exact) > 0.9


def test_a_right_variance_with_a_wrong_shape_is_rejected() -> None:
    noise = law("gaussian", "100")
    values = sample(noise, DRAWS, 109)
    turn = np.arange(DRAWS) % 20
    moved = values + np.sign(values) * ((turn == 0).astype(np.int64) - (turn == 10))
    shaped = np.where(values % 2 == 1, moved, values)  # a tenth of the odd values goes to its even neighbors
    found = rejected(shaped, ExactLaw.of(noise))
    assert "chi-square" in found
    assert "variance" not in found


def test_unbalanced_signs_and_repeated_words_are_rejected() -> None:
    noise = law("gaussian", "100")
    values = sample(noise, DRAWS, 110)
    exact = ExactLaw.of(noise)
    assert rejected(np.where(np.arange(DRAWS) % 100 == 0, np.abs(values), values), exact) == {"sign"}
    assert "lag" in rejected(np.repeat(values[: DRAWS // 2], 2), exact)


def test_a_skipped_acceptance_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = law("gaussian", "60")
    monkeypatch.setattr(wide, "accepts", lambda *_: True)
    values = sample(noise, 20_000, 111, NoiseTable.build(noise, shift=1))
    assert "variance" in rejected(values, ExactLaw.of(noise))


def test_opendp_draws_pass_the_same_suite() -> None:
    opendp = pytest.importorskip("opendp.prelude", reason="the optional oracle OpenDP is not installed")
    opendp.enable_features("contrib")
    space = opendp.vector_domain(opendp.atom_domain(T="i64")), opendp.l2_distance(T="f64")
    noisy = opendp.m.make_gaussian(*space, scale=2.0)([0] * 50_000)
    # Its entropy cannot be seeded: one draw in a million runs fails by chance, so a failure is repeated once.
    exact = ExactLaw.of(law("gaussian", "4"))
    found = rejected(np.array(noisy), exact)
    if found:
        found &= rejected(np.array(opendp.m.make_gaussian(*space, scale=2.0)([0] * 50_000)), exact)
    assert found == set()
