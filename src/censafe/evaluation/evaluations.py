"""CONFIDENTIAL. The evaluation of every product by its name on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Protocol

from censafe.evaluation.phsafe_trials import evaluate_phsafe
from censafe.evaluation.safetab_evaluation import evaluate_safetab
from censafe.products.options import ReadOptions

__all__ = ["Evaluated", "evaluate"]


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
    """Evaluate a product; see :func:`censafe.evaluation.safetab_evaluation.evaluate_safetab`."""
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
