"""PHSafe configurations: the Bureau's ``config.json`` unchanged, our TOML, the shipped names, and what ``--set`` changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Literal

from censafe.errors import ConfigError
from censafe.model import Definition
from censafe.privacy.loss.budget import NotFinite
from censafe.products.configuration.document import ConfigField, ConfigFields, Document, open_document
from censafe.products.configuration.source import INFINITE, PUERTO_RICO, Budget, Problems, locate, titled
from censafe.products.phsafe.config_checks import (
    check_budgets,
    check_levels_of_numbers,
    check_states,
    check_tau,
    levels_of,
    measured_tables,
    truncated_tables,
)
from censafe.products.phsafe.sensitivity import SENSITIVITIES, Sensitivity

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


def read_phsafe_document(source: str | Path, overrides: Mapping[str, str]) -> Document:
    """Find and read a configuration and apply overrides; its rules are not checked here."""
    return open_document(*locate("phsafe", source), FIELDS, overrides, _override)


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
class PhsafeConfig:
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

    def tau_of(self, table: str) -> int | None:
        """Truncation of a table; None for the denominators, which count units."""
        return self.tau.get(table)

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

    @property
    def record(self) -> dict[str, str]:
        """The title, where there is one, and the settings: what a manifest says of a configuration."""
        return titled(self.title, self.settings)

    @property
    def digest(self) -> str:
        """SHA-256 of the settings as canonical JSON, hexadecimal; equal for JSON and TOML of one content."""
        text = json.dumps(self.settings, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def load_phsafe_config(
    source: str | Path, overrides: Mapping[str, str] | None = None, *, allow_infinite: bool = False
) -> PhsafeConfig:
    """Read and check a configuration for a release, or for the private path of a truth run.

    Example:
        >>> config = load_phsafe_config("sdhc-us", {"reader": "csv"})
        >>> config.tau["PH3"], config.budgets["PH2", "usa_*"]
        (6, Fraction(2619, 1000000))
    """
    document = read_phsafe_document(source, overrides or {})
    if allow_infinite:
        document = _noiseless(document)
    problems = Problems()
    warnings = document.check_unknown(problems)
    states = _states(document, problems)
    reader = document.read("reader", problems)
    definition = document.read("privacy_definition", problems)
    sensitivity = document.read("sensitivity", problems)
    budgets = _budgets(document, problems, infinite=allow_infinite)
    tau = _tau(document, problems, budgets)
    targets, decimals = (
        check_levels_of_numbers(document.values.get(noun, {}), noun, problems)
        for noun in ("moe_target", "printed_decimals")
    )
    for (table, level), places in decimals.items():
        if places.denominator != 1:
            problems.add(f"printed_decimals.{table}.{level}", "give a whole number of decimals")
    title = document.title(problems)
    problems.raise_if_any(document.origin)
    return PhsafeConfig(
        states=states,
        reader=reader,
        definition=Definition(definition),
        sensitivity=sensitivity,
        tau=tau,
        budgets=budgets,
        origin=document.origin,
        overrides=document.overrides,
        warnings=(*warnings, *_not_named(document), *_nation_of_one(document, states, budgets)),
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
    document = read_phsafe_document(source, overrides or {})
    problems = Problems()
    warnings = document.check_unknown(problems)
    states = _states(document, problems)
    reader = document.read("reader", problems)
    problems.raise_if_any(document.origin)
    return TruthConfig(states, reader, document.origin, document.overrides, tuple(warnings))


def _states(document: Document, problems: Problems) -> tuple[str, ...]:
    if not document.has("states", problems):
        return ()
    return check_states(document.values["states"], document.key("states"), problems) or ()


def _budgets(document: Document, problems: Problems, *, infinite: bool) -> Mapping[tuple[str, str], Budget]:
    if not document.has("budget", problems):
        return {}
    return check_budgets(
        document.values["budget"],
        document.key("budget"),
        problems,
        infinite=infinite,
        text=not document.bureau,
    )


def _tau(
    document: Document, problems: Problems, budgets: Mapping[tuple[str, str], Budget]
) -> Mapping[str, int]:
    """Tau of the tables of persons; a table without a budget needs none."""
    if not document.has("tau", problems):
        return {}
    measured = {table for (table, _), budget in budgets.items() if budget != 0}
    needed = [table for table in truncated_tables() if table in measured]
    return check_tau(document.values["tau"], "tau", problems, needed)


def _not_named(document: Document) -> list[str]:
    """Tell which measured tables have no budget because the configuration does not name them."""
    absent = [table for table in measured_tables() if table not in document.values["budget"]]
    if not absent:
        return []
    return [
        f"{document.origin}: {document.key('budget')} does not name {', '.join(absent)}: budget 0, not measured"
    ]


def _noiseless(document: Document) -> Document:
    """Fill in what a run without noise need not say."""
    everywhere = {table: dict.fromkeys(levels_of(table), INFINITE) for table in measured_tables()}
    return replace(document, values={"privacy_definition": "zcdp", "budget": everywhere, **document.values})


def _nation_of_one(
    document: Document, states: tuple[str, ...], budgets: Mapping[tuple[str, str], Budget]
) -> list[str]:
    """Warn when the nation would be Puerto Rico alone."""
    spent = [
        f"{table}.{level}"
        for (table, level), budget in budgets.items()
        if level.startswith("usa_") and budget != 0
    ]
    if states != (PUERTO_RICO,) or not spent:
        return []
    return [
        f"{document.origin}: {document.key('states')} is 72 alone, so the nation of {len(spent)} nation levels "
        f"({', '.join(spent[:3])}{', ...' if len(spent) > 3 else ''}) would be Puerto Rico; set their budgets to 0"
    ]
