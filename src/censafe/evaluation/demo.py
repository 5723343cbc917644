"""The demonstration: synthetic records, a rehearsal of the release, and its evaluation."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from censafe.errors import UsageError
from censafe.evaluation.phsafe_trials import evaluate_phsafe
from censafe.population.synthetic.population import synthesize
from censafe.products.observer import Observer
from censafe.products.options import ReadOptions, RunOptions
from censafe.products.phsafe.recipe import run

__all__ = ["run_demo"]

_CONFIG = "sdhc-us"


def run_demo(out: Path, *, persons: int, state: str, seed: int, observer: Observer) -> str:
    """Make a synthetic state, release its tables with a test key, and compare them with the truth.

    Args:
        out: a new or empty folder; gets ``data``, ``release`` and ``evaluation``.
        persons: number of person records.
        state: two-digit state code.
        seed: of the records and of the test key.
        observer: who is told of stages and remarks.

    Returns:
        What was made, and which files to open.

    Raises:
        UsageError: the folder is not empty.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is not empty. Name a new folder, or remove this one first.")
    settings = {"reader": "csv", "state_filter": state}
    reading = ReadOptions(checks="strict", observer=observer)
    with observer.stage("synthetic state"):
        synthesize(out / "data", persons=persons, states=(state,), seed=seed)
    result = run(_CONFIG, out / "data", out / "release", settings, reading, RunOptions(test_key=seed))
    evaluation = evaluate_phsafe(
        _CONFIG,
        out / "data",
        out / "evaluation",
        settings,
        reading,
        trials=50,
        seed=seed,
        confidence=Fraction(9, 10),
    )
    files = {
        "release/certificate.html": "what was protected, how, and what it cost (open in a browser)",
        "release/tables/PH3/PH3.csv": "a table in the Bureau's layout",
        "release/tables.parquet": "all tables, every number with its margin of error",
        "evaluation/accuracy.png": "did the noise have the promised size? what does truncation cost?",
        "evaluation/accuracy.csv": "the same, cell by cell",
    }
    listed = "\n".join(f"  {out / name}\n      {what}" for name, what in files.items())
    return f"{result.summary()}\n\n{evaluation.text()}\n\nOpen these:\n{listed}"
