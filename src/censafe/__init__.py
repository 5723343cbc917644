"""Confidential census records in, protected tables and microdata with their error out.

What is listed here is the public interface; everything loads when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from censafe.lazy import lazy_names
from censafe.version import __version__ as __version__

if TYPE_CHECKING:
    from censafe.api.attacks import compare_defenses, rank_records, reconstruct
    from censafe.api.data import (
        Reading,
        SyntheticData,
        configuration_keys,
        demonstrate,
        draft_configuration,
        explorer_page,
        read,
        release_histograms,
        release_records,
        synthesize,
    )
    from censafe.api.doctor import doctor
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
    from censafe.api.figures import Figure, choropleth
    from censafe.api.frames import Frame, Frames
    from censafe.api.noise import NoisyCounts, delta_of, epsilon_of, measure, noise, rho_of
    from censafe.api.plans import Configuration, Plan, configuration, configurations, plan
    from censafe.api.releases import (
        Findings,
        Release,
        certificate,
        certificate_sentences,
        estimate,
        estimate_public,
        new_ledger,
        open_release,
        read_ledger,
        release,
        validate,
    )
    from censafe.api.tables import (
        area_map,
        card,
        replicate,
        table_names,
        tables,
        write_segments,
        write_tables,
    )
    from censafe.estimation.topdown.least_squares.problem import ParentProblem
    from censafe.estimation.topdown.least_squares.solve import ParentSolver
    from censafe.model.plan import NoiseLaw

_SOLVING = "estimation.topdown.least_squares"
_NAMES = {
    "api.evaluations": (
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
    "api.data": (
        "Reading",
        "SyntheticData",
        "configuration_keys",
        "demonstrate",
        "draft_configuration",
        "explorer_page",
        "read",
        "release_histograms",
        "release_records",
        "synthesize",
    ),
    "api.doctor": ("doctor",),
    "api.releases": (
        "Findings",
        "Release",
        "certificate",
        "certificate_sentences",
        "estimate",
        "estimate_public",
        "new_ledger",
        "open_release",
        "read_ledger",
        "release",
        "validate",
    ),
    "api.attacks": ("compare_defenses", "rank_records", "reconstruct"),
    "api.tables": (
        "area_map",
        "card",
        "replicate",
        "table_names",
        "tables",
        "write_segments",
        "write_tables",
    ),
    "api.figures": ("Figure", "choropleth"),
    "api.frames": ("Frame", "Frames"),
    "api.noise": ("NoisyCounts", "delta_of", "epsilon_of", "measure", "noise", "rho_of"),
    "api.plans": ("Configuration", "Plan", "configuration", "configurations", "plan"),
    f"{_SOLVING}.problem": ("ParentProblem",),
    f"{_SOLVING}.solve": ("ParentSolver",),
    "model.plan": ("NoiseLaw",),
}

__all__ = [
    "Configuration",
    "Evaluation",
    "Figure",
    "Findings",
    "Frame",
    "Frames",
    "NoiseLaw",
    "NoisyCounts",
    "ParentProblem",
    "ParentSolver",
    "Plan",
    "Reading",
    "Release",
    "SyntheticData",
    "area_map",
    "attack_power",
    "card",
    "certificate",
    "certificate_sentences",
    "choropleth",
    "compare",
    "compare_defenses",
    "configuration",
    "configuration_keys",
    "configurations",
    "delta_of",
    "demonstrate",
    "doctor",
    "draft_configuration",
    "epsilon_of",
    "estimate",
    "estimate_public",
    "evaluate",
    "explorer_page",
    "measure",
    "new_ledger",
    "noise",
    "open_release",
    "plan",
    "public_report",
    "rank_records",
    "read",
    "read_ledger",
    "reconstruct",
    "redraw_report",
    "release",
    "release_histograms",
    "release_records",
    "replicate",
    "rho_of",
    "sweep",
    "synthesize",
    "table_names",
    "tables",
    "true_tables",
    "uncertainty",
    "validate",
    "write_segments",
    "write_tables",
]

__getattr__ = lazy_names(__name__, _NAMES)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
