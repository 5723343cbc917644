"""Noise outside a plan and ledger: exact, fresh in every call, and marked as unaccounted."""

from fractions import Fraction

import numpy as np
import pytest

import censafe
from censafe.errors import ReleaseError, UsageError
from censafe.publication.stamps import require_publishable

LAW = censafe.NoiseLaw.gaussian(Fraction(100))


def test_draws_are_fresh_and_say_that_they_are_unaccounted() -> None:
    first, second = censafe.noise(LAW, 200), censafe.noise(LAW, 200)
    assert first.values.tolist() != second.values.tolist()
    assert first.source == second.source == "unaccounted"
    assert "UNACCOUNTED" in repr(first)
    assert 5 < np.std(first) < 15
    with pytest.raises(ReleaseError, match="outside a plan and ledger"):
        require_publishable([first], None)


def test_a_test_key_gives_the_draws_of_its_address() -> None:
    one = censafe.noise(LAW, 50, test_key=3)
    assert one.source == "seeded"
    assert one.values.tolist() == censafe.noise(LAW, 50, test_key=3).values.tolist()
    assert one.values.tolist() != censafe.noise(LAW, 50, test_key=3, query=1).values.tolist()
    counts = np.arange(50).reshape(5, 10)
    measured = censafe.measure(counts, LAW, test_key=3)
    assert (np.asarray(measured) - counts).reshape(-1).tolist() == one.values.tolist()


def test_what_is_no_count_is_refused() -> None:
    for counts in ([1.5], [], ["a"]):
        with pytest.raises(UsageError):
            censafe.measure(counts, LAW)
    with pytest.raises(UsageError):
        censafe.noise(LAW, 0)
    with pytest.raises(OverflowError):
        censafe.noise(LAW, 1, query=1 << 16)


def test_conversions_are_inverse_and_exact_numbers_only() -> None:
    epsilon = censafe.epsilon_of("2.63", "1e-10")
    assert censafe.epsilon_of(censafe.rho_of(epsilon, "1e-10"), "1e-10") <= epsilon
    assert float(censafe.rho_of(epsilon, "1e-10")) == pytest.approx(2.63, rel=1e-5)
    assert censafe.delta_of("2.63", epsilon) == pytest.approx(1e-10, rel=1e-3)
    with pytest.raises(TypeError, match="budgets are exact"):
        censafe.epsilon_of(2.63, "1e-10")  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        censafe.rho_of(0.0, "1e-10")
