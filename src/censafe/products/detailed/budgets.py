"""Budgets of SafeTab as a planner turns them, and what an accuracy target on a level means for them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from censafe.errors import ConfigError
from censafe.model import Definition
from censafe.model.entries import nearest
from censafe.planning.prices.programme import Term
from censafe.planning.prices.targets import Asked
from censafe.products.detailed.codes.universe import PopulationGroupLevel, Universe
from censafe.products.detailed.config import SafetabConfig, SafetabPConfig
from censafe.products.detailed.keys import budget_noun
from censafe.products.detailed.plan import stabilities

__all__ = ["asked", "budgets_of", "overrides"]


def _nouns(config: SafetabConfig) -> dict[str, tuple[str, PopulationGroupLevel]]:
    """Class and level by the name of the budget, ``county_2`` or ``t3/county_2``."""
    return {
        budget_noun(config.product, table_class, level).removeprefix("budget.").replace(".", "/"): (
            table_class,
            level,
        )
        for table_class in config.classes
        for level in config.levels
    }


def budgets_of(config: SafetabConfig) -> dict[str, Fraction]:
    """Budgets above 0 by level, for SafeTab-H by class and level.

    Example:
        >>> from censafe.products.detailed.config import load_h_config
        >>> budgets_of(load_h_config("ddhcb"))["t3/county_2"]
        Fraction(142869, 1000000)
    """
    found = {}
    for name, (table_class, level) in _nouns(config).items():
        budget = config.budgets[table_class, level.key]
        if isinstance(budget, Fraction) and budget > 0:
            found[name] = budget
    return found


def asked(config: SafetabConfig, universe: Universe, name: str) -> tuple[Asked, ...]:
    """The measured cells of the level that a target names; for SafeTab-P those of stage 2.

    Raises:
        ConfigError: an unknown level, a level without a group, or pure DP.

    Example:
        >>> from censafe.products.detailed.config import load_h_config
        >>> from censafe.products.detailed.codes.parameters import read_universe
        >>> [one.name for one in asked(load_h_config("ddhcb"), read_universe(), "county_2")]
        ['t3/county_2', 't4/county_2']
    """
    if config.definition is not Definition.ZCDP:
        raise ConfigError("targets are turned into budgets under privacy_definition zcdp only")
    nouns, wanted = _nouns(config), name.replace(".", "/", 1)
    found = {
        noun: at for noun, at in nouns.items() if wanted in (noun, at[1].key, at[0] if "/" in noun else None)
    }
    if not found:
        names = list(nouns)
        raise ConfigError(
            f"the run has no level {name!r}; give one such as {names[0]}.{nearest(name, names)}"
        )
    stable = stabilities(config, universe)
    share = 1 - config.stage_1_fraction if isinstance(config, SafetabPConfig) else Fraction(1)
    groups = {noun: Fraction(stable[level]) for noun, (_, level) in found.items()}
    return tuple(
        Asked(noun, (Term(number / (2 * share), {noun: Fraction(1)}),) if number else (), True)
        for noun, number in groups.items()
    )


def overrides(config: SafetabConfig, budgets: Mapping[str, Fraction]) -> dict[str, str]:
    """``--set`` keys and values."""
    return {budget_noun(config.product, *_nouns(config)[name]): str(value) for name, value in budgets.items()}
