"""What the estimators of empirical privacy loss say about noise whose loss is known."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from censafe.model import NoiseLaw

__all__ = ["calibrate", "linear_noise_examples"]


def calibrate(
    law: NoiseLaw,
    sizes: Sequence[int],
    *,
    trials: int = 20,
    seed: int = 1,
    bandwidth_factor: float | None = 0.1,
    n_min: int = 25,
) -> pa.Table:
    """Estimates of pure noise beside their true values.

    Args:
        law: two-sided geometric (the true loss is one over the scale everywhere) or discrete Gaussian (it grows with the
            residual; the truth is then the estimator's own value of the exact law).
        sizes: numbers of residuals.
        trials: repetitions.
        seed: of the draws.
        bandwidth_factor: of the kernel.
        n_min: of the discrete estimator.

    Returns:
        Columns law, parameter, n, estimator, statistic, truth, mean, lo, hi, bias; bias = mean - truth.
    """
    raise NotImplementedError


def linear_noise_examples(epsilons: Sequence[float], *, seed: int = 1) -> pa.Table:
    """Three mechanisms on a tree of 9,261 leaves: noise at leaves, a mean of four draws, and noise raked down from the root.

    Returns:
        Columns mechanism, epsilon, epl, ratio; the ratios are about 1, 1/2 and 1/4.
    """
    raise NotImplementedError
