"""From a wanted margin of error to the budget that it costs."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from censafe.errors import ConfigError
from censafe.products.config_rules import nearest
from censafe.products.margin_targets import budget_for_margin, check_margins
from censafe.products.phsafe.config import PhsafeConfig
from censafe.products.phsafe.config_checks import MEASURED_TABLES, levels_of
from censafe.products.phsafe.sensitivity import neighbours_of, sensitivity_bound

__all__ = ["budgets_for_margins"]


def budgets_for_margins(
    config: PhsafeConfig, margins: Mapping[str, Fraction], confidence: Fraction = Fraction(9, 10)
) -> dict[str, str]:
    """Overrides of budgets that reach wanted margins of error by the paper's rule, rho = L2^2 z^2 / (2 MOE^2).

    Args:
        config: gives tau, calibration and definition.
        margins: wanted margin by ``TABLE`` (all its levels) or ``TABLE.LEVEL``, in persons or units.
        confidence: 9/10 or 19/20.

    Returns:
        ``--set`` keys and values; rho is rounded up to six significant digits, so no margin is missed.

    Raises:
        ConfigError: an unknown table or level, a margin that is not positive, another confidence, or pure DP.

    Source: PHSafe paper, section on budget planning.

    Example:
        >>> from censafe.products.phsafe.config import load_config
        >>> budgets_for_margins(load_config("sdhc-us"), {"PH3.state_A-G": Fraction(20)})
        {'budget.PH3.state_A-G': '0.662977'}
    """
    check_margins(config.definition, margins, confidence)
    budgets = {}
    for key, margin in margins.items():
        table, _, level = key.partition(".")
        for name in _levels(table, level):
            bound = sensitivity_bound(
                config.sensitivity, neighbours_of(config.sensitivity), config.tau_of(table)
            )
            budgets[f"budget.{table}.{name}"] = budget_for_margin(margin, bound.l2_squared, confidence)
    return budgets


def _levels(table: str, level: str) -> tuple[str, ...]:
    if table not in MEASURED_TABLES:
        raise ConfigError(
            f"there is no measured table {table!r}; they are {', '.join(MEASURED_TABLES)}."
            f"{nearest(table, MEASURED_TABLES)}"
        )
    if not level:
        return levels_of(table)
    if level not in levels_of(table):
        raise ConfigError(f"{table} has no level {level!r}; its levels are {', '.join(levels_of(table))}")
    return (level,)
