"""Confidential census records in, protected tables and microdata with their error out.

What is listed here is the public interface; everything loads when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from censafe.version import __version__ as __version__

if TYPE_CHECKING:
    from censafe.api.data import (
        SyntheticData,
        demonstrate,
        explorer_page,
        release_histograms,
        synthesize,
    )
    from censafe.api.estimates import estimate, estimate_public
    from censafe.api.evaluations import (
        Evaluation,
        attack_power,
        compare,
        evaluate,
        public_report,
        redraw_report,
        sweep,
        true_tables,
        uncertainty,
    )
    from censafe.api.frames import Frame, Frames
    from censafe.api.ledger import read_ledger
    from censafe.api.noise import NoisyCounts, delta_of, epsilon_of, measure, noise, rho_of
    from censafe.api.plans import Configuration, Plan, configuration, configurations, plan
    from censafe.api.releases import Findings, Release, open_release, release, validate
    from censafe.estimation.topdown.least_squares.own_solver import ParentSolver
    from censafe.estimation.topdown.least_squares.problem import ParentProblem
    from censafe.model.laws import NoiseLaw

_SOLVING = "censafe.estimation.topdown.least_squares"
_PLACES = {
    "censafe.api.data": (
        "SyntheticData",
        "demonstrate",
        "explorer_page",
        "release_histograms",
        "synthesize",
    ),
    "censafe.api.estimates": ("estimate", "estimate_public"),
    "censafe.api.evaluations": (
        "Evaluation",
        "attack_power",
        "compare",
        "evaluate",
        "public_report",
        "redraw_report",
        "sweep",
        "true_tables",
        "uncertainty",
    ),
    "censafe.api.ledger": ("read_ledger",),
    "censafe.api.frames": ("Frame", "Frames"),
    "censafe.api.noise": ("NoisyCounts", "delta_of", "epsilon_of", "measure", "noise", "rho_of"),
    "censafe.api.plans": ("Configuration", "Plan", "configuration", "configurations", "plan"),
    "censafe.api.releases": ("Findings", "Release", "open_release", "release", "validate"),
    f"{_SOLVING}.own_solver": ("ParentSolver",),
    f"{_SOLVING}.problem": ("ParentProblem",),
    "censafe.model.laws": ("NoiseLaw",),
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}

__all__ = [
    "Configuration",
    "Evaluation",
    "Findings",
    "Frame",
    "Frames",
    "NoiseLaw",
    "NoisyCounts",
    "ParentProblem",
    "ParentSolver",
    "Plan",
    "Release",
    "SyntheticData",
    "attack_power",
    "compare",
    "configuration",
    "configurations",
    "delta_of",
    "demonstrate",
    "epsilon_of",
    "estimate",
    "estimate_public",
    "evaluate",
    "explorer_page",
    "measure",
    "noise",
    "open_release",
    "plan",
    "public_report",
    "read_ledger",
    "redraw_report",
    "release",
    "release_histograms",
    "rho_of",
    "sweep",
    "synthesize",
    "true_tables",
    "uncertainty",
    "validate",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACE_OF:
        raise AttributeError(f"module 'censafe' has no attribute {name!r}")
    return getattr(import_module(_PLACE_OF[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
