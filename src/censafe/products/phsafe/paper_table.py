"""Table 10 of the PHSafe paper, recomputed from the stored margin-of-error targets and compared with the budgets."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from censafe.errors import CheckError, ConfigError
from censafe.model import Definition, Neighbours
from censafe.planning.numbers import decimal_text, fixed_text
from censafe.privacy.margins import rho_for_margin
from censafe.products.phsafe.config import PhsafeConfig
from censafe.products.phsafe.config_checks import MEASURED_TABLES, PAPER_LABELS
from censafe.products.phsafe.sensitivity import sensitivity_bound

__all__ = ["PaperRow", "paper_rows"]

_CONFIDENCE: Final = Fraction(9, 10)


@dataclass(frozen=True)
class PaperRow:
    """One row of the table, every field with the digits that are printed."""

    table: str
    tau: str
    population_group_level: str
    moe_target_90: str
    rho_unbounded: str
    rho_bounded: str


def paper_rows(config: PhsafeConfig) -> tuple[PaperRow, ...]:
    """Rho of every table and level from its target: (2 tau + 2)^2 z^2 / (2 MOE^2) with z = 1.645.

    The result is rounded to the digits that the paper prints and must equal the budget; the bounded loss is
    twice the rounded value.

    Args:
        config: a zCDP configuration of the Bureau's calibration with stored targets.

    Raises:
        ConfigError: no targets, or another definition or calibration than the paper's.
        CheckError: budgets that do not follow from their targets; all of them are named.

    Source: PHSafe paper, Table 10 and the section on budget planning.
    """
    if not config.moe_targets:
        raise ConfigError(
            f"{config.origin}: no moe_target is stored; the paper's table needs one (see sdhc-us)"
        )
    if config.definition is not Definition.ZCDP or config.sensitivity != "bureau":
        raise ConfigError(
            f"{config.origin}: the paper's table is for privacy_definition zcdp and sensitivity bureau, "
            f"not {config.definition.value} and {config.sensitivity}"
        )
    rows, wrong = [], []
    for table in MEASURED_TABLES:
        for level in PAPER_LABELS:
            target = config.moe_targets.get((table, level))
            places = config.paper_places(table, level)
            if target is None or places is None:
                continue
            rho = _rounded_rho(config.tau_of(table), target, places)
            if rho != config.budgets[table, level]:
                wrong.append(f"  {table}.{level}: target {target} asks for rho {fixed_text(rho, places)}")
            rows.append(_row(table, config.tau_of(table), level, target, rho, places))
    if wrong:
        raise CheckError("\n".join([f"{config.origin}: budgets differ from their targets", *wrong]))
    return tuple(rows)


def _rounded_rho(tau: int | None, target: Fraction, places: int) -> Fraction:
    bound = sensitivity_bound("bureau", Neighbours.ADD_REMOVE, tau)
    return round(rho_for_margin(target, bound.l2_squared, _CONFIDENCE), places)


def _row(table: str, tau: int | None, level: str, target: Fraction, rho: Fraction, places: int) -> PaperRow:
    return PaperRow(
        table=table,
        tau="NA" if tau is None else str(tau),
        population_group_level=PAPER_LABELS[level],
        moe_target_90=decimal_text(target),
        rho_unbounded=fixed_text(rho, places),
        rho_bounded=decimal_text(2 * rho),
    )
