"""The page of the public interface: everything in `censafe.__all__`, by what it is for."""

from __future__ import annotations

import censafe

PARTS = {
    "Plan": (
        "configuration",
        "configurations",
        "configuration_keys",
        "plan",
        "Configuration",
        "Plan",
        "explorer_page",
    ),
    "Release": (
        "validate",
        "release",
        "release_histograms",
        "open_release",
        "new_ledger",
        "read_ledger",
        "Findings",
        "Release",
    ),
    "Estimate": ("estimate", "estimate_public", "ParentSolver", "ParentProblem"),
    "Use": (
        "tables",
        "table_names",
        "write_tables",
        "replicate",
        "card",
        "Frame",
        "Frames",
        "Figure",
        "choropleth",
    ),
    "Judge": (
        "evaluate",
        "compare",
        "compare_defenses",
        "reconstruct",
        "attack_power",
        "sweep",
        "true_tables",
        "uncertainty",
        "public_report",
        "redraw_report",
        "Evaluation",
    ),
    "Noise and loss": ("noise", "measure", "NoiseLaw", "NoisyCounts", "epsilon_of", "rho_of", "delta_of"),
    "This machine": ("doctor",),
    "Synthetic records": ("synthesize", "demonstrate", "SyntheticData"),
}
"""Public names by task, in the order of a release."""
_HEAD = """# Python

`import censafe` offers what follows; the command line calls nothing else. Every example runs as a test. Tables leave as
[`Frame`][censafe.Frame]: an Arrow table with `.to_pandas()` and `.to_polars()` where those are installed.
"""


def python_page() -> str:
    """The page; a public name that no part lists stands at its end."""
    listed = {name for names in PARTS.values() for name in names}
    others = tuple(name for name in censafe.__all__ if name not in listed)
    parts = {**PARTS, **({"Others": others} if others else {})}
    text = _HEAD
    for title, names in parts.items():
        text += f"\n## {title}\n\n" + "".join(
            f"::: censafe.{name}\n\n" for name in names if name in censafe.__all__
        )
    return text
