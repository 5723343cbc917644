"""PHSafe configurations: the Bureau's ``config.json`` unchanged, our TOML, the shipped names, and what ``--set`` changes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Literal

from censafe.errors import ConfigError
from censafe.model import Definition
from censafe.model.entries import Problems, nearest
from censafe.privacy.loss.budget import NotFinite
from censafe.products.configuration.document import ConfigField, ConfigFields, Document, open_document
from censafe.products.configuration.source import (
    INFINITE,
    PUERTO_RICO,
    STATES,
    Budget,
    Settled,
    check_budget,
    check_state_codes,
    listed,
    locate,
    value_text,
)
from censafe.products.phsafe.definitions import (
    SENSITIVITIES,
    Sensitivity,
    levels_of,
    measured_tables,
    phsafe_definitions,
    truncated_tables,
)

FIELDS: Final = ConfigFields(
    (
        ConfigField("states", "list", bureau="state_filter"),
        ConfigField("privacy_definition", "word", allowed=("zcdp", "puredp"), bureau="privacy_defn"),
        ConfigField("budget", "number", bureau="privacy_budget"),
        ConfigField("reader", "word", allowed=("csv", "cef")),
        ConfigField("tau", "number"),
        ConfigField("sensitivity", "word", default="bureau", allowed=SENSITIVITIES),
        ConfigField("title", "fixed", json=False),
        ConfigField("moe_target", "number", json=False),
        ConfigField("printed_decimals", "number", json=False),
    )
)


def _override(values: dict[str, Any], key: str, text: str) -> None:
    """Put the value of one ``--set key=text`` into the raw values."""
    head, *inner = key.split(".")
    rule = FIELDS.settable(head)
    if rule is None:
        raise ConfigError(f"--set {key}: there is no key {head!r}.{FIELDS.hint(head)}")
    noun, value = rule.noun, rule.parse(text)
    if rule.kind != "number":
        if inner:
            raise ConfigError(f"--set {key}: {head} has no keys below it; say --set {head}=VALUE")
        values[noun] = value
        return
    for path in _leaves(noun, inner, key):
        holder = values
        for name in (noun, *path[:-1]):
            if not isinstance(holder.get(name), dict):
                holder[name] = {}
            holder = holder[name]
        holder[path[-1]] = value


def _leaves(noun: str, inner: list[str], key: str) -> list[tuple[str, ...]]:
    """Paths below a group of numbers that an override means: one, or every one of a table or of the group."""
    if noun == "tau":
        if len(inner) > 1:
            raise ConfigError(f"--set {key}: tau has one number a table; say --set tau.{inner[0]}=10")
        return [(name,) for name in (inner or truncated_tables())]
    if len(inner) == 2:
        return [(inner[0], inner[1])]
    if len(inner) > 2:
        raise ConfigError(f"--set {key}: {noun} has one number a table and level, such as {noun}.PH3.usa_*")
    return [(table, level) for table in (inner or measured_tables()) for level in levels_of(table)]


Reader = Literal["csv", "cef"]
LARGEST_TAU: Final = 99_999
"""More persons than any household has; the ranks of records must fit the integers of the engine."""
_USUAL_DECIMALS: Final = 6


@dataclass(frozen=True)
class TruthConfig:
    """What a truth run needs: which states, and how their files are read."""

    states: tuple[str, ...]
    reader: Reader
    origin: str
    overrides: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class PhsafeConfig(Settled):
    """A checked PHSafe configuration.

    Args:
        tau: largest number of persons of one household in a table, by person table; those with a budget at least.
        moe_targets: 90% margins of error that the budgets were chosen for, where they are stored.
        printed_decimals: decimals of rho in the paper's table, where they are not 6.
    """

    states: tuple[str, ...]
    reader: Reader
    definition: Definition
    sensitivity: Sensitivity
    tau: Mapping[str, int]
    budgets: Mapping[tuple[str, str], Budget]
    origin: str
    overrides: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    moe_targets: Mapping[tuple[str, str], Fraction] = field(default_factory=dict)
    printed_decimals: Mapping[tuple[str, str], int] = field(default_factory=dict)
    title: str = ""

    def paper_places(self, table: str, level: str) -> int | None:
        """Decimals of rho in the paper's table; None where no target is stored."""
        if (table, level) not in self.moe_targets:
            return None
        return self.printed_decimals.get((table, level), _USUAL_DECIMALS)

    @property
    def settings(self) -> dict[str, str]:
        """Everything that decides what is released, as text under dotted keys in a fixed order."""
        flat = {
            "states": ",".join(self.states),
            "reader": self.reader,
            "privacy_definition": self.definition.value,
            "sensitivity": self.sensitivity,
        }
        flat.update(
            {f"tau.{table}": str(self.tau[table]) for table in truncated_tables() if table in self.tau}
        )
        for table in measured_tables():
            for level in levels_of(table):
                budget = self.budgets[table, level]
                text = budget.value if isinstance(budget, NotFinite) else str(budget)
                flat[f"budget.{table}.{level}"] = text
        return flat


def load_phsafe_config(
    source: str | Path, overrides: Mapping[str, str] | None = None, *, allow_infinite: bool = False
) -> PhsafeConfig:
    """Read and check a configuration for a release, or for the private path of a truth run.

    Example:
        >>> config = load_phsafe_config("sdhc-us", {"reader": "csv"})
        >>> config.tau["PH3"], config.budgets["PH2", "usa_*"]
        (6, Fraction(2619, 1000000))
    """
    document = open_document(*locate("phsafe", source), FIELDS, overrides or {}, _override)
    if allow_infinite:  # what a run without noise need not say
        everywhere = {table: dict.fromkeys(levels_of(table), INFINITE) for table in measured_tables()}
        values = {"privacy_definition": "zcdp", "budget": everywhere, **document.values}
        document = replace(document, values=values)
    warnings = document.check_unknown()
    states = _states(document)
    reader = document.read("reader")
    definition = document.read("privacy_definition")
    sensitivity = document.read("sensitivity")
    budgets = _budgets(document, infinite=allow_infinite)
    tau = _tau(document, budgets)
    targets, decimals = (_numbers_by_level(document, noun) for noun in ("moe_target", "printed_decimals"))
    for (table, level), places in decimals.items():
        if places.denominator != 1:
            document.add(f"printed_decimals.{table}.{level}", "give a whole number of decimals")
    title = document.title()
    document.raise_if_any(document.origin)
    return PhsafeConfig(
        states=states,
        reader=reader,
        definition=Definition(definition),
        sensitivity=sensitivity,
        tau=tau,
        budgets=budgets,
        origin=document.origin,
        overrides=document.overrides,
        warnings=(*warnings, *_warnings(document, states, budgets)),
        moe_targets=targets,
        printed_decimals={key: int(places) for key, places in decimals.items()},
        title=title,
    )


def load_truth_config(source: str | Path, overrides: Mapping[str, str] | None = None) -> TruthConfig:
    """Read what a truth run needs, states and reader; budgets and tau may be absent and are not looked at.

    Example:
        >>> load_truth_config("sdhc-pr").states
        ('72',)
    """
    document = open_document(*locate("phsafe", source), FIELDS, overrides or {}, _override)
    warnings = document.check_unknown()
    states = _states(document)
    reader = document.read("reader")
    document.raise_if_any(document.origin)
    return TruthConfig(states, reader, document.origin, document.overrides, tuple(warnings))


def _states(document: Document) -> tuple[str, ...]:
    """A list of two-digit state codes: states and DC, or Puerto Rico alone."""
    if not document.has("states"):
        return ()
    value, key = document.values["states"], document.key("states")
    words = "01 to 56 without 03, 07, 14, 43, 52, or 72 alone"
    codes = check_state_codes(value, key, document, (*STATES, PUERTO_RICO), words)
    if isinstance(value, list) and PUERTO_RICO in value and any(code != PUERTO_RICO for code in value):
        document.add(key, "72 (Puerto Rico) is mixed with other states; give it a run of its own")
        return ()
    return codes or ()


def _budgets(document: Document, *, infinite: bool) -> dict[tuple[str, str], Budget]:
    """A budget of 0 or more for every measured table and level.

    A table that is not named has budget 0, and so has a level that no table names: a configuration stays as it is when
    definitions are added. A level that other tables name must be named.
    """
    if not document.has("budget"):
        return {}
    key = document.key("budget")
    budgets: dict[tuple[str, str], Budget] = {
        (table, level): Fraction(0) for table in measured_tables() for level in levels_of(table)
    }
    named = _entries(document.values["budget"], key, measured_tables(), "table", document, ())
    used = {level for _, levels in named if isinstance(levels, Mapping) for level in levels}
    for table, levels in named:
        allowed = levels_of(table)
        needed = [level for level in allowed if level in used]
        for level, item in _entries(levels, f"{key}.{table}", allowed, "level", document, needed):
            path = f"{key}.{table}.{level}"
            number = check_budget(item, path, document, infinite=infinite, text=not document.bureau)
            if number is not None:
                budgets[table, level] = number
    return budgets


def _tau(document: Document, budgets: Mapping[tuple[str, str], Budget]) -> dict[str, int]:
    """A whole number from 1 to the largest that the engine counts with, for the tables of persons; one without a budget needs none."""
    if not document.has("tau"):
        return {}
    measured = {table for (table, _), budget in budgets.items() if budget != 0}
    needed = [table for table in truncated_tables() if table in measured]
    tau: dict[str, int] = {}
    for table, item in _entries(document.values["tau"], "tau", truncated_tables(), "table", document, needed):
        path = f"tau.{table}"
        if not isinstance(item, Fraction) or item.denominator != 1:
            document.add(path, f"{value_text(item)} is not an integer; give 1 or more persons a household")
        elif item <= 0:
            document.add(path, f"{item} is too small; give 1 or more persons a household")
        elif item > LARGEST_TAU:
            document.add(path, f"the number is too large; give at most {LARGEST_TAU:,} persons a household")
        else:
            tau[table] = int(item)
    return tau


def _numbers_by_level(document: Document, noun: str) -> dict[tuple[str, str], Fraction]:
    """Positive numbers for some tables and levels, all of them optional."""
    numbers: dict[tuple[str, str], Fraction] = {}
    for table, levels in _entries(
        document.values.get(noun, {}), noun, measured_tables(), "table", document, ()
    ):
        path = f"{noun}.{table}"
        for level, item in _entries(levels, path, levels_of(table), "level", document, ()):
            number = check_budget(item, f"{path}.{level}", document, infinite=False, text=True)
            if isinstance(number, Fraction) and number > 0:
                numbers[table, level] = number
            elif number is not None:
                document.add(f"{path}.{level}", f"{number} is too small; give a number above 0")
    return numbers


def _entries(
    value: object, key: str, allowed: Sequence[str], noun: str, problems: Problems, needed: Collection[str]
) -> list[tuple[str, object]]:
    """Known entries of a mapping in fixed order; extra ones are problems, and so are needed ones that are missing."""
    if not isinstance(value, Mapping):
        problems.add(
            key, f"{value_text(value)} is not a mapping; give one entry for every {noun}: {listed(allowed)}"
        )
        return []
    missing = [name for name in needed if name not in value]
    if missing:
        problems.add(key, f"missing {noun} {listed(missing)}; all of {listed(needed)} are needed")
    for name in value:
        if name not in allowed:
            problems.add(key, _stranger(str(name), allowed, noun))
    return [(name, value[name]) for name in allowed if name in value]


def _stranger(name: str, allowed: Sequence[str], noun: str) -> str:
    derived = {table.name: table.derived.source for table in phsafe_definitions().tables if table.derived}
    if name in derived and noun == "table":
        return f"extra table {name!r}; it is computed from {derived[name]} and has no entry of its own. Remove it"
    if name in measured_tables() and noun == "table":
        return f"extra table {name!r}; it counts units, not persons. Allowed are {listed(allowed)}"
    if name in phsafe_definitions().level_labels and noun == "level":
        return f"extra level {name!r}; this table is not repeated by race. Allowed are {listed(allowed)}"
    return f"extra {noun} {name!r}; allowed are {listed(allowed)}.{nearest(name, allowed)}"


def _warnings(
    document: Document, states: tuple[str, ...], budgets: Mapping[tuple[str, str], Budget]
) -> Iterator[str]:
    """Measured tables without a budget because they are not named, and a nation that would be Puerto Rico alone."""
    absent = [table for table in measured_tables() if table not in document.values["budget"]]
    if absent:
        yield f"{document.origin}: {document.key('budget')} does not name {', '.join(absent)}: budget 0, not measured"
    spent = [
        f"{table}.{level}"
        for (table, level), budget in budgets.items()
        if level.startswith("usa_") and budget != 0
    ]
    if states == (PUERTO_RICO,) and spent:
        yield (
            f"{document.origin}: {document.key('states')} is 72 alone, so the nation of {len(spent)} nation levels "
            f"({', '.join(spent[:3])}{', ...' if len(spent) > 3 else ''}) would be Puerto Rico; set their budgets to 0"
        )
