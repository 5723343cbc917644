"""What ``plan`` asks of SafeTab-H."""

from __future__ import annotations

from functools import partial

from censafe.products.detailed.config import load_h_config
from censafe.products.detailed.planner import (
    CONFIDENCE,
    asked,
    budgets,
    effort,
    load_planned,
    overrides,
    paper,
    questions,
    report,
)

__all__ = ["CONFIDENCE", "asked", "budgets", "effort", "load", "overrides", "paper", "questions", "report"]

load = partial(load_planned, load_h_config)
"""Read and check a configuration, with budgets that reach the wanted margins."""
