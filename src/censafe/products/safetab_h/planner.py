"""What ``plan`` asks of SafeTab-H."""

from __future__ import annotations

from functools import partial

from censafe.products.safetab.config import load_h_config
from censafe.products.safetab.planner import CONFIDENCE, load_planned, paper, report

__all__ = ["CONFIDENCE", "load", "paper", "report"]

load = partial(load_planned, load_h_config)
"""Read and check a configuration, with budgets that reach the wanted margins."""
