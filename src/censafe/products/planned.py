"""A configuration with the budgets that accuracy targets ask for, and what a plan says besides its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from censafe.errors import ConfigError, UsageError
from censafe.planning.extras import Expected, Extras, Outcome, conversions_of, expected_of
from censafe.planning.rows import PlanReport
from censafe.planning.targets import Request, achieve, parse_target
from censafe.products.registry import Planner

if TYPE_CHECKING:
    from censafe.planning.meaning import Meaning

__all__ = ["Wishes", "extras_of", "planned"]

_LEAST_TOTAL, _MOST_TOTAL = Fraction(1, 10**9), Fraction(10**9)
Aim = Literal["own", "minimise", "maximise"]


@dataclass(frozen=True)
class Wishes:
    """What a plan is asked for besides its rows.

    Args:
        targets: texts such as ``PH3/state_A-G=20@90%``.
        aim: ``own``, each target by its own measurement; ``minimise``, the least total under the targets; ``maximise``, the
            smallest margins in proportion to the targets under a total.
        total: of the whole release, for ``maximise``.
        expected: names of answers whose expected error is wanted.
        meaning: whether to compose the noise and find the best attack.
        size: records or blocks for which to state time and memory; None for the nation.
    """

    targets: tuple[str, ...] = ()
    aim: Aim = "own"
    total: Fraction | None = None
    expected: tuple[str, ...] = ()
    meaning: bool = False
    size: int | None = None


def planned(
    planner: Planner, config: Any, wishes: Wishes, confidence: Fraction
) -> tuple[dict[str, str], Outcome | None]:
    """Overrides that give the wanted budgets, and what they do.

    Args:
        planner: of the product.
        config: as it is without the wishes.
        wishes: what is wanted.
        confidence: of targets that state none.

    Returns:
        ``--set`` keys and values, none where nothing is wanted.

    Raises:
        ConfigError: a target that is malformed, unknown or impossible.
        UsageError: options that do not go together.
    """
    if wishes.aim == "maximise" and wishes.total is None:
        raise UsageError("--maximise accuracy needs --total, the budget to be shared out")
    if wishes.total is not None and wishes.aim != "maximise":
        raise UsageError("--total goes with --maximise accuracy")
    if wishes.total is not None and wishes.total <= 0:
        raise ConfigError(f"--total {wishes.total}: give a budget above 0")
    if wishes.total is not None and not _LEAST_TOTAL <= wishes.total <= _MOST_TOTAL:
        raise ConfigError("--total is out of reach; give a budget from 0.000000001 to 1000000000")
    if wishes.aim == "minimise" and not wishes.targets:
        raise UsageError("--minimise rho needs at least one --target")
    if not wishes.targets and wishes.aim == "own":
        return {}, None
    budgets = planner.budgets(config)
    requests = _requests(planner, config, wishes, confidence)
    moved = {name for one in requests for term in one.asked.terms for name in term.weights}
    kept = sum((value for name, value in budgets.items() if name not in moved), Fraction(0))
    found, achieved, solution = achieve(requests, kept, wishes.total)
    before = planner.overrides(config, budgets)
    after = planner.overrides(config, found)
    changed = {key: value for key, value in after.items() if before.get(key) != value}
    return changed, Outcome(found, achieved, solution)


def _requests(planner: Planner, config: Any, wishes: Wishes, confidence: Fraction) -> list[Request]:
    combined = wishes.aim != "own"
    if wishes.targets:
        parsed = [parse_target(text) for text in wishes.targets]
        return [
            Request(asked, target.margin, target.confidence or confidence)
            for target in parsed
            for asked in planner.asked(config, target.name, combined=combined)
        ]
    return [
        # the present margin is one of the papers' rule, which whole noise need not cover exactly
        Request(replace(asked, whole=False), _margin_now(one), confidence)
        for name, budget in planner.budgets(config).items()
        for asked in planner.asked(config, name, combined=False)
        if (one := expected_of(asked, "own", {name: budget}, confidence)) is not None
    ]


def _margin_now(expected: Expected) -> Fraction:
    return Fraction(f"{expected.margin:.6g}")


def extras_of(
    planner: Planner,
    config: Any,
    wishes: Wishes,
    report: PlanReport,
    *,
    deltas: Sequence[Fraction],
    outcome: Outcome | None = None,
    overrides: Mapping[str, str] | None = None,
) -> Extras:
    """Everything that was asked for besides the rows, at the final budgets.

    Raises:
        ConfigError: an expected error of something unknown, or of what nothing measured leads to.
    """
    budgets = planner.budgets(config)
    return Extras(
        report.plan.definition.symbol,
        conversions_of(report, deltas[1:]),
        outcome,
        _meanings(planner, config, deltas) if wishes.meaning else (),
        tuple(
            expected
            for name in wishes.expected
            for expected in _expected(planner, config, name, budgets, report.confidence)
        ),
        planner.effort(config, wishes.size),
        overrides or {},
    )


def _meanings(planner: Planner, config: Any, deltas: Sequence[Fraction]) -> tuple[Meaning, ...]:
    from censafe.planning.meaning import meaning_of

    return tuple(meaning_of(reach, deltas) for reach in planner.questions(config))


def _expected(
    planner: Planner, config: Any, name: str, budgets: Mapping[str, Fraction], confidence: Fraction
) -> list[Expected]:
    found = []
    combinations = planner.asked(config, name, combined=True)
    try:
        own = planner.asked(config, name, combined=False)
    except ConfigError:
        own = ()  # not measured itself; what is measured may still lead to it
    if own != combinations:
        found += [expected_of(asked, "own", budgets, confidence) for asked in own]
    kind = "combined" if own != combinations else "own"
    found += [expected_of(asked, kind, budgets, confidence) for asked in combinations]
    known = [one for one in found if one is not None]
    if not known:
        raise ConfigError(f"{name}: nothing that it follows from is measured at this level")
    return known
