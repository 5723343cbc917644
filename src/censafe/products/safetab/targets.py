"""From a wanted margin of error of one cell to the budget of its level."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from censafe.errors import ConfigError
from censafe.products.config_rules import nearest
from censafe.products.margin_targets import budget_for_margin, check_margins
from censafe.products.safetab.config import SafetabConfig, SafetabPConfig
from censafe.products.safetab.keys import budget_noun
from censafe.products.safetab.plan import stabilities
from censafe.products.safetab.universe import Universe

__all__ = ["budgets_for_margins"]


def budgets_for_margins(
    config: SafetabConfig, universe: Universe, margins: Mapping[str, Fraction], confidence: Fraction
) -> dict[str, str]:
    """Overrides of budgets that reach wanted margins of error of one cell, rho = s z^2 / (2 MOE^2).

    For SafeTab-P the cells of stage 2 have 1 - f of the budget.

    Args:
        config: gives definition, levels and f.
        universe: codes and iterations, which give s.
        margins: wanted margin by level (``county_2``), in persons or households; for SafeTab-H by class and level
            (``t3.county_2``), or by one of the two.
        confidence: 9/10 or 19/20.

    Returns:
        ``--set`` keys and values; rho is rounded up to six significant digits, so no margin is missed.

    Raises:
        ConfigError: an unknown level, a margin that is not positive, another confidence, or pure DP.

    Source: SafeTab-P paper, appendix B.

    Example:
        >>> from censafe.products.safetab.config import load_p_config
        >>> from censafe.products.safetab.parameters import read_universe
        >>> config, universe = load_p_config("ddhca"), read_universe()
        >>> budgets_for_margins(config, universe, {"county_2": Fraction(11)}, Fraction(19, 20))
        {'budget.county_2': '0.158744'}
    """
    check_margins(config.definition, margins, confidence)
    stable = stabilities(config, universe)
    share = 1 - config.stage_1_fraction if isinstance(config, SafetabPConfig) else Fraction(1)
    nouns = {
        budget_noun(config.product, table_class, level): (table_class, level)
        for table_class in config.classes
        for level in config.levels
    }
    budgets = {}
    for key, margin in margins.items():
        found = [
            noun
            for noun, (table_class, level) in nouns.items()
            if key in (noun.removeprefix("budget."), level.key, table_class)
        ]
        if not found:
            names = [noun.removeprefix("budget.") for noun in nouns]
            raise ConfigError(
                f"the run has no level {key!r}; give one such as {names[0]}.{nearest(key, names)}"
            )
        for noun in found:
            groups = Fraction(stable[nouns[noun][1]])
            budgets[noun] = budget_for_margin(margin, groups, confidence, share)
    return budgets
