"""A solver that fails at random."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.optimize


def failing_solver(
    monkeypatch: pytest.MonkeyPatch, seed: int, *, share: float = 0.5, statuses: tuple[int, ...] = (4, 1, 2)
) -> list[int]:
    """Let a share of all runs of the solver end without a point and with one of some statuses; returns these as they occur."""
    solver, rng, planted = scipy.optimize.milp, np.random.default_rng(seed), []

    def failing(*arguments: object, **options: object) -> object:
        answer = solver(*arguments, **options)
        if rng.random() >= share:
            return answer
        planted.append(int(rng.choice(statuses)))
        return SimpleNamespace(status=planted[-1], x=None)

    monkeypatch.setattr(scipy.optimize, "milp", failing)
    return planted
