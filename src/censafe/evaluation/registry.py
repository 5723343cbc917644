"""CONFIDENTIAL. The evaluation and the true tables of every product by its name, and what they return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Protocol

from censafe.evaluation.tables.groups_evaluation import evaluate_safetab
from censafe.evaluation.tables.groups_truth import write_safetab_truth
from censafe.evaluation.tables.phsafe_trials import evaluate_phsafe
from censafe.evaluation.tables.phsafe_truth import write_truth
from censafe.products.run.options import ReadOptions

__all__ = ["Evaluated", "TopdownEvaluation", "evaluate", "write_true_tables"]


@dataclass(frozen=True)
class TopdownEvaluation:
    """CONFIDENTIAL unless public. What an evaluation found and where it was written.

    Args:
        lines: a summary.
        files: what was written.

    Example:
        >>> print(TopdownEvaluation(("Nothing is wrong.",), (Path("report.html"),)).text())
        Nothing is wrong.
        Files:
          report.html
    """

    lines: tuple[str, ...]
    files: tuple[Path, ...]

    def text(self) -> str:
        """The summary and the files."""
        return "\n".join([*self.lines, "Files:", *(f"  {path}" for path in self.files)])


class Evaluated(Protocol):
    """CONFIDENTIAL. What an evaluation found."""

    def text(self) -> str:
        """A short summary."""


def evaluate(
    product: str,
    config: str,
    data: Path,
    out: Path,
    settings: Mapping[str, str],
    reading: ReadOptions,
    *,
    trials: int,
    seed: int,
    confidence: Fraction,
) -> Evaluated:
    """Evaluate a product; see :func:`censafe.evaluation.tables.groups_evaluation.evaluate_safetab`."""
    drawing = {"trials": trials, "seed": seed}
    if product == "phsafe":
        return evaluate_phsafe(config, data, out, settings, reading, **drawing, confidence=confidence)
    return evaluate_safetab(
        "safetab-h" if product == "safetab-h" else "safetab-p",
        config,
        data,
        out,
        settings,
        reading,
        **drawing,
        confidence=confidence,
    )


def write_true_tables(
    product: str,
    config: str,
    data: Path,
    out: Path,
    settings: Mapping[str, str],
    reading: ReadOptions,
    *,
    private_path: bool,
) -> tuple[Path, ...]:
    """Write the true tables of a product; see :func:`censafe.evaluation.tables.groups_truth.write_safetab_truth`."""
    if product == "phsafe":
        return write_truth(config, data, out, settings, reading, private_path=private_path)
    return write_safetab_truth(
        "safetab-p" if product == "safetab-p" else "safetab-h",
        config,
        data,
        out,
        settings,
        reading,
        private_path=private_path,
    )
