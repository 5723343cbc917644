"""Table 9 of the SafeTab-H paper, recomputed from the stored margin-of-error targets and compared with the budgets."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from censafe.errors import CheckError, ConfigError
from censafe.model import Definition
from censafe.planning.numbers import decimal_text, fixed_text
from censafe.privacy.margins import rho_for_margin
from censafe.products.safetab.config import SafetabConfig
from censafe.products.safetab.keys import budget_noun
from censafe.products.safetab.levels import GroupLevel
from censafe.products.safetab.plan import stabilities
from censafe.products.safetab.universe import Universe

__all__ = ["PaperRow", "paper_rows"]

_CONFIDENCE: Final = Fraction(19, 20)
_CALIBRATED_DECIMALS: Final = 6  # of the production budgets


@dataclass(frozen=True)
class PaperRow:
    """One row of the table, every field with the digits that are printed."""

    population_group_level: str
    moe_target_95: str
    rho_unbounded_household_type: str
    rho_unbounded_tenure: str
    rho_bounded_household_type: str
    rho_bounded_tenure: str


def paper_rows(config: SafetabConfig, universe: Universe) -> tuple[PaperRow, ...]:
    """Rho of every level from its target: s z^2 / (2 MOE^2) with z = 1.96 and s = 9.

    The factor s, which the paper's Corollary 2 leaves out, is in its numbers. The result rounded to six decimals must
    equal the budgets of both classes of tables; it is printed with the digits of the paper, and the bounded loss is twice
    the printed value.

    Args:
        config: a zCDP configuration of SafeTab-H with stored targets.
        universe: codes and iterations, which give s.

    Raises:
        ConfigError: no targets, or another product or definition than the paper's.
        CheckError: budgets that do not follow from their targets; all of them are named.

    Source: SafeTab-H paper, Table 9.
    """
    if config.product != "safetab-h" or not config.moe_targets:
        raise ConfigError(
            f"{config.origin}: no moe_target is stored; the paper's table needs one (see ddhcb)"
        )
    if config.definition is not Definition.ZCDP:
        raise ConfigError(f"{config.origin}: the paper's table is for privacy_definition zcdp, not puredp")
    stable, rows, wrong = stabilities(config, universe), [], []
    for level in sorted(config.levels, key=lambda level: -level.level):
        target = config.moe_targets.get(level.key)
        if target is None:
            continue
        rho = rho_for_margin(target, Fraction(stable[level]), _CONFIDENCE)
        calibrated = round(rho, _CALIBRATED_DECIMALS)
        for table_class in config.classes:
            if config.budgets[table_class, level.key] != calibrated:
                noun = budget_noun(config.product, table_class, level)
                wrong.append(
                    f"  {noun}: target {target} asks for rho {fixed_text(calibrated, _CALIBRATED_DECIMALS)}"
                )
        rows.append(_row(config, level, target, rho))
    if wrong:
        raise CheckError("\n".join([f"{config.origin}: budgets differ from their targets", *wrong]))
    return tuple(rows)


def _row(config: SafetabConfig, level: GroupLevel, target: Fraction, rho: Fraction) -> PaperRow:
    places = config.places(level)
    printed = round(rho, places)
    unbounded, bounded = fixed_text(printed, places), fixed_text(2 * printed, places)
    return PaperRow(level.label, decimal_text(target), unbounded, unbounded, bounded, bounded)
