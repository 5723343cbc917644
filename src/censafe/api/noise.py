"""Exact noise and exact losses by themselves, outside a plan and ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from censafe.api.arguments import exact_number, public
from censafe.errors import UsageError
from censafe.model.plan import NoiseLaw

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


_NOWHERE = "0" * 64


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """Exact noise, or counts with it, that no plan and no ledger records: the user who publishes them must account for them.

    numpy and what is built on it read the values as an array.

    Args:
        values: int64, in the shape of the counts; may be negative.
        law: of the noise in every value.
        test_key: seed of a test key, which protects no one; None where the noise came from the operating system.
    """

    values: NDArray[np.int64] = field(repr=False)
    law: NoiseLaw
    test_key: int | None = None

    @property
    def source(self) -> str:
        """``unaccounted``, or ``seeded`` under a test key; neither can be published as a release of censafe."""
        return "unaccounted" if self.test_key is None else "seeded"

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: object = None, *, copy: bool | None = None) -> NDArray[Any]:
        """The values, for ``numpy.asarray``."""
        import numpy as np

        values: NDArray[Any] = np.array(self.values, dtype=dtype, copy=True if copy is None else copy)  # type: ignore[call-overload]
        return values

    def __repr__(self) -> str:
        state = "UNACCOUNTED" if self.test_key is None else "TEST KEY, NOT PRIVATE"
        return f"NoisyCounts({self.values.shape}, {self.law.bureau_name} {self.law.parameter}, {state})"


@public
def noise(
    law: NoiseLaw, n: int | tuple[int, ...], *, test_key: int | None = None, query: int = 0
) -> NoisyCounts:
    """Exact draws of a law, under a fresh key of the operating system in every call.

    Args:
        law: :meth:`NoiseLaw.gaussian` or :meth:`NoiseLaw.laplace`, by an exact parameter.
        n: how many draws, or the shape of an array of them.
        test_key: seed of a test key in place of the fresh key: the same draws in every call, never private.
        query: address of the draws below the key, 0 to 65535; other addresses have independent draws.

    Returns:
        The draws, shape (n,) or `n`, which say that they are unaccounted.

    Raises:
        UsageError: n is below 1.
        OverflowError: the law is so wide that a draw may not fit 64 bits, or the address is none.

    Source: Canonne, Kamath & Steinke (2020); exact for every parameter, see ``privacy/noise/sampler.proof.md``.

    Example:
        >>> noise(NoiseLaw.gaussian(Fraction(4)), 5, test_key=1).values
        array([ 1,  1,  1, -1, -2])
        >>> noise(NoiseLaw.laplace(Fraction(3, 2)), 1000)
        NoisyCounts((1000,), Two-Sided Geometric 3/2, UNACCOUNTED)
    """
    import numpy as np

    shape = n if isinstance(n, tuple) else (n,)
    if not shape or min(shape) < 1:
        raise UsageError(f"n must be 1 or more, or a shape such as (3, 4), not {n}")
    return measure(np.zeros(shape, np.int64), law, test_key=test_key, query=query)


@public
def measure(counts: ArrayLike, law: NoiseLaw, *, test_key: int | None = None, query: int = 0) -> NoisyCounts:
    """Add exact noise to every count, under a fresh key in every call.

    What comes back says that it is unaccounted: no plan stated its cost and no ledger was charged. :func:`censafe.release`
    measures with both.

    Args:
        counts: whole numbers in any shape.
        law: of the noise.
        test_key: as in :func:`noise`.
        query: as in :func:`noise`.

    Raises:
        UsageError: counts that are not whole numbers, or none at all.
        OverflowError: a sum does not fit 64 bits, or the address is none.

    Source: Canonne, Kamath & Steinke (2020), section 2.

    Example:
        >>> measure([[3, 0], [12, 7]], NoiseLaw.gaussian(Fraction(4)), test_key=1)
        NoisyCounts((2, 2), Discrete Gaussian 4, TEST KEY, NOT PRIVATE)
    """
    import numpy as np

    from censafe.privacy.keys import ReleaseKey, TestKey, derive_part_key
    from censafe.privacy.measure.claims import fingerprint
    from censafe.privacy.noise.sampler import add_noise

    if not isinstance(law, NoiseLaw):
        raise UsageError("law: give censafe.NoiseLaw.gaussian(Fraction(100)), or NoiseLaw.laplace")
    exact = np.asarray(counts)
    if not np.issubdtype(exact.dtype, np.integer) or not exact.size:
        raise UsageError("counts must be whole numbers, at least one")
    grid = exact.astype(np.int64).reshape(1, -1)
    run_key: Any = ReleaseKey.from_system() if test_key is None else TestKey(test_key)
    with run_key:
        key = derive_part_key(run_key, _NOWHERE, b"", "noise")
    try:
        claim = key.claim(query, fingerprint(grid, str(law)).digest())
        noisy = add_noise(grid, law, key, claim, geounits=np.zeros(1, np.uint64))
    finally:
        key.close()
    return NoisyCounts(noisy.reshape(exact.shape), law, test_key)


@public
def epsilon_of(rho: Fraction | str, delta: Fraction | str) -> float:
    """Smallest epsilon that rho-zCDP gives at a delta by the tight conversion; what the Bureau's slides call epsilon is larger.

    Args:
        rho: above 0.
        delta: above 0 and below 1.

    Raises:
        UsageError: a number outside.

    Source: Canonne, Kamath & Steinke (2020), Proposition 12, minimized over its order.

    Example:
        >>> round(epsilon_of("2.63", "1e-10"), 2)
        17.43
    """
    from censafe.privacy.loss.conversions import tight_epsilon

    exact_rho, exact_delta = exact_number("rho", rho), exact_number("delta", delta)
    if exact_rho <= 0 or not 0 < exact_delta < 1:
        raise UsageError("rho must be above 0, and delta above 0 and below 1")
    return tight_epsilon(exact_rho, exact_delta)


@public
def rho_of(epsilon: float | Fraction | str, delta: Fraction | str) -> Fraction:
    """Largest rho of six significant digits whose tight epsilon at a delta is no more than `epsilon`.

    Args:
        epsilon: above 0.
        delta: above 0 and below 1.

    Raises:
        UsageError: a number outside, or an epsilon that no rho from 10^-9 to 10^6 reaches.

    Source: the inverse of :func:`epsilon_of`, by bisection.

    Example:
        >>> float(rho_of(17.9, "1e-10"))
        2.75228
    """
    epsilon, low, high = float(epsilon), -9.0, 6.0
    if not epsilon_of(_rounded(low), delta) <= epsilon < epsilon_of(_rounded(high), delta):
        raise UsageError(f"epsilon {epsilon} is not within reach of a rho from 10^-9 to 10^6 at this delta")
    while high - low > 1e-8:
        middle = (low + high) / 2
        low, high = (middle, high) if epsilon_of(_rounded(middle), delta) <= epsilon else (low, middle)
    return _rounded(low)


@public
def delta_of(rho: Fraction | str, epsilon: float | Fraction | str) -> float:
    """Smallest delta that rho-zCDP gives at an epsilon, by bisection of the tight conversion; 0 below 10^-300.

    Args:
        rho: above 0.
        epsilon: above 0.

    Raises:
        UsageError: a number that is not above 0.

    Source: the inverse of :func:`epsilon_of` in delta.

    Example:
        >>> delta_of("2.63", 17.44) < 1e-10 < delta_of("2.63", 17.42)
        True
    """
    from censafe.privacy.loss.conversions import tight_epsilon

    epsilon, low, high = float(epsilon), -300.0, -1e-9
    exact_rho = exact_number("rho", rho)
    if not (epsilon > 0 and exact_rho > 0):
        raise UsageError("rho and epsilon must be above 0")
    if tight_epsilon(exact_rho, _power(low)) <= epsilon:
        return 0.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if tight_epsilon(exact_rho, _power(middle)) <= epsilon else (middle, high)
    return float(10.0**high)


def _power(exponent: float) -> Fraction:
    return Fraction(f"{10.0 ** (exponent % 1):.15g}") * Fraction(10) ** int(exponent // 1)


def _rounded(exponent: float) -> Fraction:
    """A power of ten, down to six significant digits."""
    power = int(exponent // 1)
    return Fraction(int(10.0 ** (exponent - power) * 10**5), 10**5) * Fraction(10) ** power
