"""The rules of a SafeTab configuration, checked one by one and reported together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Final, Literal

from censafe.errors import ConfigError
from censafe.privacy.loss.budget import parse_fraction
from censafe.products.configuration.document import Document
from censafe.products.configuration.source import (
    STATES,
    Budget,
    Problems,
    check_budget,
    check_state_codes,
    shown,
)
from censafe.products.detailed.codes.parameters import (
    CODES_FILE,
    ETHNICITY_FILE,
    MAP_FILE,
    RACE_FILE,
    SHIPPED_UNIVERSE,
)
from censafe.products.detailed.codes.universe import PopulationGroupLevel, group_levels
from censafe.products.detailed.keys import CLASSES, Product, budget_noun, target_noun, threshold_noun

_US_WORDS: Final = "01 to 56 without 03, 07, 14, 43, 52; Puerto Rico is run with run_pr"
_USED_THRESHOLDS: Final = 3


def check_missing(document: Document, needed: Iterable[str], problems: Problems) -> None:
    """Every needed key that is not there, in one line."""
    missing = [document.key(noun) for noun in needed if noun not in document.values]
    if missing:
        problems.add("missing keys", f"{', '.join(missing)}; all of them are needed")


def check_groups(document: Document, problems: Problems) -> None:
    """Keys that must have keys below them and hold a value instead."""
    for noun in ("budget", "thresholds", "moe_target", "printed_decimals"):
        for key in [key for key in document.values if key == noun or key in (f"{noun}.t3", f"{noun}.t4")]:
            problems.add(
                document.key(key),
                f"{shown(document.values[key])} is not a mapping; give one entry for every level",
            )


def check_negatives(document: Document, problems: Problems) -> Literal["keep", "zero"]:
    """What becomes of negative counts."""
    value = document.values.get("negatives")
    if value == "zero":
        return "zero"
    if value != "keep" and "negatives" in document.values:
        allowed = "true or false" if document.bureau else "keep or zero"
        problems.add(document.key("negatives"), f"{shown(value)} is not allowed; give {allowed}")
    return "keep"


def check_group_states(document: Document, problems: Problems, *, run_us: bool) -> tuple[str, ...]:
    """States of the US run in ascending order; none without one."""
    if not run_us or "states" not in document.values:
        return ()
    key = document.key("states")
    return check_state_codes(document.values["states"], key, problems, STATES, _US_WORDS) or ()


def check_universe(document: Document, problems: Problems) -> Path | None:
    """The folder of the parameter files, or None for the shipped ones."""
    value = document.values["universe"]
    if value == SHIPPED_UNIVERSE:
        return None
    if not isinstance(value, str):
        problems.add(
            "universe", f"{shown(value)} is not allowed; give {SHIPPED_UNIVERSE!r} or a folder in quotes"
        )
        return None
    files = (CODES_FILE, RACE_FILE, ETHNICITY_FILE, MAP_FILE)
    missing = [name for name in files if not (Path(value) / name).is_file()]
    if missing:
        problems.add(
            "universe",
            f"the parameter folder {value} has no {', '.join(missing)}; put the files there, or say "
            f"--set universe={SHIPPED_UNIVERSE} for the shipped ones",
        )
    return Path(value)


def check_level_budgets(
    document: Document, product: Product, problems: Problems, *, infinite: bool
) -> dict[tuple[str, str], Budget]:
    """Every budget that is there, by class of tables and key of the level."""
    found: dict[tuple[str, str], Budget] = {}
    for table_class, level, noun in _each(product, budget_noun):
        if noun not in document.values:
            continue
        budget = check_budget(
            document.values[noun], document.key(noun), problems, infinite=infinite, text=not document.bureau
        )
        if budget is not None:
            found[table_class, level.key] = budget
    return found


def check_thresholds(
    document: Document, product: Product, problems: Problems
) -> tuple[dict[tuple[str, str], tuple[int, ...]], list[str]]:
    """Thresholds that are there, by class of tables and key of the level, and warnings about unused ones."""
    found: dict[tuple[str, str], tuple[int, ...]] = {}
    longer: list[str] = []
    for table_class, level, noun in _each(product, threshold_noun):
        if noun not in document.values:
            continue
        key = document.key(noun)
        numbers = _whole_numbers(document.values[noun], key, problems)
        if numbers is None:
            continue
        if table_class == "t4" and len(numbers) != 1:
            problems.add(key, f"{len(numbers)} thresholds; T04001 and T04002 are told apart by exactly one")
        elif table_class != "t4" and len(numbers) < _USED_THRESHOLDS:
            problems.add(key, f"{len(numbers)} thresholds are too few; give three in ascending order")
        elif list(numbers) != sorted(numbers):
            problems.add(key, f"{list(numbers)} goes down; give thresholds in ascending order")
        else:
            found[table_class, level.key] = numbers[:_USED_THRESHOLDS]
            longer += [key] if len(numbers) > _USED_THRESHOLDS else []
    if not longer:
        return found, []
    return found, [f"{document.origin}: only the first three thresholds are used: {', '.join(longer)}"]


def check_stage_1_fraction(document: Document, problems: Problems) -> Fraction:
    """Share of the budget that chooses the tables, strictly between 0 and 1."""
    value = _fraction(document, "stage_1_fraction", problems)
    if value is not None and not 0 < value < 1:
        key = document.key("stage_1_fraction")
        problems.add(key, f"{shown(value)} is not allowed; give a share above 0 and below 1, such as 1/10")
    return Fraction(0) if value is None else value


def check_chance(document: Document, problems: Problems) -> Fraction:
    """Chance that a total of zero is suppressed, from 0 (none is) to below 1."""
    if "zero_suppression_chance" not in document.values:
        return Fraction(0)
    value = _fraction(document, "zero_suppression_chance", problems)
    if value is not None and not 0 <= value < 1:
        problems.add("zero_suppression_chance", f"{shown(value)} is not allowed; give 0 or more and below 1")
    return Fraction(0) if value is None else value


def check_targets(document: Document, group: str, problems: Problems) -> dict[str, Fraction]:
    """Stored margins of error, or decimals, by key of the level; all optional, all above 0."""
    found: dict[str, Fraction] = {}
    for level in group_levels():
        noun = target_noun(group, level)
        if noun not in document.values:
            continue
        value = _fraction(document, noun, problems)
        if value is not None and value <= 0:
            problems.add(noun, f"{shown(value)} is too small; give a number above 0")
        elif value is not None:
            found[level.key] = value
    return found


def _each(
    product: Product, noun_of: Callable[[Product, str, PopulationGroupLevel], str]
) -> Iterator[tuple[str, PopulationGroupLevel, str]]:
    for table_class in CLASSES[product]:
        for level in group_levels():
            yield table_class, level, noun_of(product, table_class, level)


def _fraction(document: Document, noun: str, problems: Problems) -> Fraction | None:
    if noun not in document.values:
        return None
    try:
        return parse_fraction(document.values[noun], document.key(noun))
    except ConfigError as error:
        problems.messages.append(str(error))
        return None


def _whole_numbers(value: object, key: str, problems: Problems) -> tuple[int, ...] | None:
    if not isinstance(value, list):
        problems.add(key, f"{shown(value)} is not a list; give thresholds such as [471, 971, 6971]")
        return None
    wrong = [item for item in value if not isinstance(item, Fraction) or item.denominator != 1]
    if wrong:
        problems.add(key, f"{', '.join(map(shown, wrong))} not a whole number; thresholds are whole numbers")
        return None
    return tuple(int(item) for item in value)
