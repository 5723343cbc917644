"""What ``plan`` asks of SafeTab-P."""

from __future__ import annotations

from functools import partial

from censafe.products.safetab.config import load_p_config
from censafe.products.safetab.planner import CONFIDENCE, load_planned, paper, report

__all__ = ["CONFIDENCE", "load", "paper", "report"]

load = partial(load_planned, load_p_config)
"""Read and check a configuration, with budgets that reach the wanted margins."""
