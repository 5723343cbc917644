"""What ``plan`` asks of SafeTab-H."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from censafe.products.safetab.config import load_h_config
from censafe.products.safetab.planner import CONFIDENCE, Loaded, load_planned, paper, report

__all__ = ["CONFIDENCE", "load", "paper", "report"]


def load(
    source: str, overrides: Mapping[str, str], margins: Mapping[str, Fraction], confidence: Fraction
) -> Loaded:
    """Read and check a configuration, with budgets that reach the wanted margins."""
    return load_planned(load_h_config, source, overrides, margins, confidence)
