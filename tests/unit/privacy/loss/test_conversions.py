"""Conversions from rho to epsilon against the golden table and independent evaluations."""

from fractions import Fraction

import mpmath
import pytest

from censafe.privacy.loss.conversions import delta_of_gaussian, epsilons, tight_epsilon

DELTA = Fraction(1, 10**10)
GOLDEN = [
    ("2.56", "17.9153", "18.259", "17.1583", "16.479"),
    ("2.63", "18.1938", "18.5466", "17.4306", "16.7420"),
    ("0.07", "2.6091", "2.5670", "2.3873", "2.280"),
    ("1.92", "15.2181", "15.4750", "14.5253", None),
    ("0.0001", "0.0961", "0.0873", "0.0801", None),
    ("293764/114921", "17.9002", "18.2434", "17.1436", None),
    ("11417641/152349649", "2.7022", "2.6606", "2.4747", None),
    ("24811/5000", "26.3406", "26.9689", "25.4193", None),
    ("15401/2000", "34.3321", "35.2379", "33.2888", None),
]
SEMANTICS = [
    ("0.555377", "7.2445"),
    ("0.600995", "7.5655"),
    ("1.000674", "10.0381"),
    ("1.008801", "10.0837"),
    ("0.102898", "2.9257"),
    ("0.886167", "9.3796"),
    ("1.314595", "11.7035"),
    ("1.593354", "13.0541"),
    ("2.491369", "16.8887"),
]


@pytest.mark.parametrize(("rho", "slide", "prefactor", "tight", "gaussian"), GOLDEN)
def test_golden_table_to_the_printed_digits(rho, slide, prefactor, tight, gaussian):
    found = epsilons(Fraction(rho), DELTA)
    for printed, value in (
        (slide, found.slide),
        (prefactor, found.prefactor),
        (tight, found.tight),
        (gaussian, found.gaussian),
    ):
        if printed is not None:
            assert printed == f"{value:.{len(printed.partition('.')[2])}f}"


@pytest.mark.parametrize(("rho", "epsilon"), SEMANTICS)
def test_certificate_of_the_2020_production_run(rho, epsilon):
    # rho is printed to six digits, which moves epsilon by up to 4e-6.
    assert tight_epsilon(Fraction(rho), DELTA) == pytest.approx(float(epsilon), abs=6e-5)


def test_certificate_prints_persons_and_units():
    persons = tight_epsilon(Fraction(293764, 114921), DELTA)
    units = tight_epsilon(Fraction(11417641, 152349649), DELTA)
    assert persons == pytest.approx(17849145 / 1041158, abs=1e-7)
    assert units == pytest.approx(1455307 / 588081, abs=1e-7)


@pytest.mark.parametrize("rho", ["1e-8", "0.0001", "0.07", "2.56", "50", "5000"])
@pytest.mark.parametrize("delta", ["0.5", "1e-6", "1e-10", "1e-30"])
def test_tight_is_at_least_and_almost_the_infimum(rho, delta):
    with mpmath.workdps(40):
        r, d = mpmath.mpf(Fraction(rho).numerator) / Fraction(rho).denominator, mpmath.mpf(delta)

        def objective(log_above):
            above = mpmath.e**log_above
            alpha = 1 + above
            return (
                alpha * r + (-mpmath.log(d) + above * mpmath.log(above / alpha) - mpmath.log(alpha)) / above
            )

        steps = [mpmath.mpf(i) / 4 for i in range(-80, 81)]
        start = min(steps, key=objective)
        low, high = start - mpmath.mpf(1) / 4, start + mpmath.mpf(1) / 4
        for _ in range(120):
            third = (high - low) / 3
            low, high = (
                (low, high - third)
                if objective(low + third) < objective(high - third)
                else (low + third, high)
            )
        infimum = max(mpmath.mpf(0), objective(low))
        actual = tight_epsilon(Fraction(rho), Fraction(delta))
        assert infimum * (1 - mpmath.mpf(10) ** -30) <= actual <= infimum * (1 + mpmath.mpf(10) ** -12)


@pytest.mark.parametrize("rho", ["1e-6", "0.07", "2.56", "5000"])
def test_gaussian_is_at_least_and_almost_the_root(rho):
    found = epsilons(Fraction(rho), DELTA).gaussian
    with mpmath.workdps(60):
        mu = mpmath.sqrt(2 * mpmath.mpf(Fraction(rho).numerator) / Fraction(rho).denominator)

        def delta(epsilon):
            return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(
                -mu / 2 - epsilon / mu
            )

        assert (
            delta(mpmath.mpf(found))
            <= mpmath.mpf(10) ** -10
            <= delta(mpmath.mpf(found) * (1 - mpmath.mpf("1e-7")))
        )


def test_float_delta_is_above_the_exact_one_on_both_sides_of_the_switch():
    with mpmath.workdps(60):
        for mu, epsilon in ((1.0, 9.4), (1.0, 9.6), (3.0, 40.0), (0.01, 0.02), (100.0, 5300.0)):
            m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
            exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
            actual = delta_of_gaussian(mu, epsilon)
            assert exact <= actual <= exact + mpmath.mpf("1e-12") * mpmath.ncdf(m / 2 - e / m)


def test_order_of_the_conversions():
    for rho in ("1e-6", "0.05", "1", "10"):
        found = epsilons(Fraction(rho), DELTA)
        assert found.gaussian < found.tight < min(found.slide, found.prefactor)


def test_no_loss_is_no_epsilon():
    found = epsilons(Fraction(0), DELTA)
    assert (found.slide, found.prefactor, found.tight, found.gaussian) == (0.0, 0.0, 0.0, 0.0)


def test_prefactor_below_its_range_is_rho():
    assert epsilons(Fraction(1, 10**40), DELTA).prefactor == pytest.approx(1e-40)
    assert epsilons(Fraction(1, 10**40), DELTA).gaussian == 0.0


@pytest.mark.parametrize(("rho", "delta"), [(0.1, DELTA), (Fraction(1), 1e-10), (True, DELTA)])
def test_floats_are_type_errors_that_name_the_key(rho, delta):
    with pytest.raises(TypeError, match=r"rho|delta"):
        epsilons(rho, delta)


@pytest.mark.parametrize(
    ("rho", "delta"), [(Fraction(-1), DELTA), (Fraction(1), Fraction(0)), (Fraction(1), Fraction(1))]
)
def test_values_out_of_range_are_refused(rho, delta):
    with pytest.raises(ValueError, match=r"rho|delta"):
        epsilons(rho, delta)
