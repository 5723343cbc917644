"""From target margins of error and accuracy targets to the budgets that they cost, and a configuration with these."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Literal

from censafe.errors import ConfigError, UsageError
from censafe.model import Definition
from censafe.planning.numbers import decimal_text
from censafe.planning.prices.extras import (
    AreaErrors,
    EstimatedTables,
    Expected,
    Extras,
    conversions_of,
    expected_of,
)
from censafe.planning.prices.rows import PlanReport
from censafe.planning.prices.targets import LEAST_MARGIN, MOST_MARGIN, Outcome, Request, achieve, parse_target
from censafe.privacy.loss.margins import rho_for_margin
from censafe.products.registry import Planner, SpinePlanner

if TYPE_CHECKING:
    from censafe.planning.prices.meaning import Meaning


_DIGITS: Final = 6
_LEVELS: Final = (Fraction(9, 10), Fraction(19, 20))


def check_margins(definition: Definition, margins: Mapping[str, Fraction], confidence: Fraction) -> None:
    """Refuse what the papers have no rule for."""
    if definition is not Definition.ZCDP:
        raise ConfigError(
            "margins are turned into budgets under privacy_definition zcdp only; set the budgets"
        )
    if confidence not in _LEVELS:
        raise ConfigError(
            f"margins are turned into budgets at confidence 0.9 or 0.95, not {decimal_text(confidence)}"
        )
    for key, margin in margins.items():
        if margin <= 0:
            raise ConfigError(
                f"{key}: a margin of error of {decimal_text(margin)} has no budget; give one above 0"
            )
        if not LEAST_MARGIN <= margin <= MOST_MARGIN:
            raise ConfigError(
                f"{key}: that margin of error is out of reach; give one from 0.000001 to 1000000000"
            )


def budget_for_margin(
    margin: Fraction, l2_squared: Fraction, confidence: Fraction, share: Fraction = Fraction(1)
) -> str:
    """The budget rho = L2^2 z^2 / (2 MOE^2) / share, rounded up to six significant digits, so no margin is missed.

    Args:
        margin: target margin of error, in persons or units.

    Source: PHSafe paper, section on budget planning.

    Example:
        >>> budget_for_margin(Fraction(3), Fraction(9), Fraction(19, 20), share=Fraction(9, 10))
        '2.13423'
    """
    rho = rho_for_margin(margin, l2_squared, confidence) / share
    unit = Fraction(10) ** (_DIGITS - 1 - math.floor(math.log10(rho)))
    return decimal_text(Fraction(math.ceil(rho * unit)) / unit)


_LEAST_TOTAL, _MOST_TOTAL = Fraction(1, 10**9), Fraction(10**9)
Aim = Literal["own", "minimize", "maximize"]


@dataclass(frozen=True)
class PlanRequest:
    """What a plan computes besides its rows.

    Args:
        aim: ``own``, each target by its own measurement; ``minimize``, the least total under the targets; ``maximize``, the
            smallest margins in proportion to the targets under a total.
        size: records or blocks for which to state time and memory; None for the nation.
        estimated: tables that the run estimates; None for those that the product estimates by itself.
    """

    targets: tuple[str, ...] = ()
    aim: Aim = "own"
    total: Fraction | None = None
    expected: tuple[str, ...] = ()
    meaning: bool = False
    size: int | None = None
    estimated: EstimatedTables | None = None


def planned(
    planner: Planner, config: Any, wishes: PlanRequest, confidence: Fraction
) -> tuple[dict[str, str], Outcome | None]:
    """Overrides that give the target budgets, and their effect."""
    if wishes.aim == "maximize" and wishes.total is None:
        raise UsageError("`maximize` accuracy needs `total`, the budget to be shared out")
    if wishes.total is not None and wishes.aim != "maximize":
        raise UsageError("`total` is the budget for `maximize` accuracy; give both")
    if wishes.total is not None and wishes.total <= 0:
        raise ConfigError(f"`total` {wishes.total}: give a budget above 0")
    if wishes.total is not None and not _LEAST_TOTAL <= wishes.total <= _MOST_TOTAL:
        raise ConfigError("`total` is out of reach; give a budget from 0.000000001 to 1000000000")
    if wishes.aim == "minimize" and not wishes.targets:
        raise UsageError("`minimize` rho needs `targets`, at least one")
    if not wishes.targets and wishes.aim == "own":
        return {}, None
    budgets = planner.budgets_of(config)
    requests = _requests(planner, config, wishes, confidence)
    moved = {name for request in requests for term in request.query.terms for name in term.weights}
    fixed = sum((value for name, value in budgets.items() if name not in moved), Fraction(0))
    outcome = achieve(requests, fixed, wishes.total)
    before = planner.overrides(config, budgets)
    after = planner.overrides(config, outcome.budgets)
    return {key: value for key, value in after.items() if before.get(key) != value}, outcome


def _requests(planner: Planner, config: Any, wishes: PlanRequest, confidence: Fraction) -> list[Request]:
    combined = wishes.aim != "own"
    if wishes.targets:
        parsed = [parse_target(text) for text in wishes.targets]
        return [
            Request(answers, target.margin, target.confidence or confidence)
            for target in parsed
            for answers in planner.named_answers(config, target.name, combined=combined)
        ]
    return [
        # the present margin is one of the papers' rule, which whole noise need not cover exactly
        Request(replace(answers, integral=False), Fraction(f"{expected.margin:.6g}"), confidence)
        for name, budget in planner.budgets_of(config).items()
        for answers in planner.named_answers(config, name, combined=False)
        if (expected := expected_of(answers, "own", {name: budget}, confidence)) is not None
    ]


def extras_of(
    planner: Planner,
    config: Any,
    wishes: PlanRequest,
    report: PlanReport,
    *,
    deltas: Sequence[Fraction],
    outcome: Outcome | None = None,
    overrides: Mapping[str, str] | None = None,
) -> Extras:
    """Everything besides the rows, at the final budgets."""
    budgets = planner.budgets_of(config)
    meanings: tuple[Meaning, ...] = ()
    if wishes.meaning:
        from censafe.planning.prices.meaning import meaning_of

        meanings = tuple(meaning_of(question, deltas) for question in planner.questions(config))
    areas: tuple[
        AreaErrors, ...
    ] = ()  # of a product with areas off its spine, where the data are given that list them
    if wishes.estimated and wishes.estimated.data is not None and isinstance(planner, SpinePlanner):
        areas = planner.area_errors(config, wishes.estimated.data)
    return Extras(
        report.plan.definition.symbol,
        conversions_of(report, deltas[1:]),
        outcome,
        meanings,
        tuple(
            expected
            for name in wishes.expected
            for expected in _expected(planner, config, name, budgets, report.confidence)
        ),
        planner.effort(config, wishes.size, wishes.estimated),
        overrides or {},
        areas,
    )


def _expected(
    planner: Planner, config: Any, name: str, budgets: Mapping[str, Fraction], confidence: Fraction
) -> list[Expected]:
    combinations = planner.named_answers(config, name, combined=True)
    try:
        own = planner.named_answers(config, name, combined=False)
    except ConfigError:
        own = ()  # not measured itself; what is measured may still lead to it
    margins = [expected_of(answers, "own", budgets, confidence) for answers in own]
    if own != combinations:
        margins += [expected_of(answers, "combined", budgets, confidence) for answers in combinations]
    known = [margin for margin in margins if margin is not None]
    if not known:
        raise ConfigError(f"{name}: nothing that it follows from is measured at this level")
    return known
