"""PHSafe configurations: the Bureau's ``config.json`` unchanged, our TOML, and the shipped names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Final, Literal, cast

from censafe.model import Definition
from censafe.privacy.budget import NotFinite
from censafe.products.config_rules import INFINITE, PUERTO_RICO, Budget, Problems
from censafe.products.config_source import Document
from censafe.products.phsafe.config_checks import (
    MEASURED_TABLES,
    TAU_TABLES,
    check_budgets,
    check_levels_of_numbers,
    check_states,
    check_tau,
    levels_of,
)
from censafe.products.phsafe.config_source import read_document
from censafe.products.phsafe.sensitivity import SENSITIVITIES, Sensitivity

__all__ = ["INFINITE", "PhsafeConfig", "Reader", "TruthConfig", "load_config", "load_truth_config"]

Reader = Literal["csv", "cef"]
_READERS: Final = ("csv", "cef")
_USUAL_DECIMALS: Final = 6
_DEFINITIONS: Final = ("zcdp", "puredp")


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
        states: two-digit codes in ascending order.
        reader: ``csv`` or ``cef``.
        definition: zCDP (budgets are rho) or pure DP (budgets are epsilon).
        sensitivity: the calibration.
        tau: largest number of persons of one household in a table, by person table.
        budgets: by (table, level); 0 means not measured, INFINITE means no noise.
        origin: where the configuration came from.
        overrides: what ``--set`` changed, as it was typed.
        warnings: what the user should know.
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
        flat.update({f"tau.{table}": str(self.tau[table]) for table in TAU_TABLES})
        for table in MEASURED_TABLES:
            for level in levels_of(table):
                budget = self.budgets[table, level]
                text = budget.value if isinstance(budget, NotFinite) else str(budget)
                flat[f"budget.{table}.{level}"] = text
        return flat

    @property
    def digest(self) -> str:
        """SHA-256 of the settings as canonical JSON, hexadecimal; equal for JSON and TOML of one content."""
        text = json.dumps(self.settings, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def load_config(
    source: str | Path, overrides: Mapping[str, str] | None = None, *, allow_infinite: bool = False
) -> PhsafeConfig:
    """Read and check a configuration for a release, or for the private path of a truth run.

    Args:
        source: a Bureau JSON file, a folder with ``config.json``, our TOML file, or a shipped name.
        overrides: ``--set`` values by dotted key in our nouns or the Bureau's keys, such as
            ``{"tau.PH3": "6", "budget.PH3.state_A-G": "1/2", "states": "44,50"}``. A value given to a
            group of keys (``tau``, ``budget.PH3``) goes to every one of them.
        allow_infinite: for ``truth --private-path``: infinite budgets are legal, and budgets and privacy
            definition may be absent (then nothing gets noise).

    Raises:
        ConfigError: with every breach, its key path, and what is allowed there.

    Example:
        >>> config = load_config("sdhc-us", {"reader": "csv"})
        >>> config.tau["PH3"], config.budgets["PH2", "usa_*"]
        (6, Fraction(2619, 1000000))
    """
    document = read_document(source, overrides or {})
    if allow_infinite:
        document = _noiseless(document)
    problems = Problems()
    warnings = document.check_unknown(problems)
    states = _states(document, problems)
    reader = document.choice("reader", _READERS, problems)
    definition = document.choice("privacy_definition", _DEFINITIONS, problems)
    sensitivity = document.choice("sensitivity", SENSITIVITIES, problems, default="bureau")
    tau = check_tau(document.values["tau"], "tau", problems) if document.has("tau", problems) else {}
    budgets = _budgets(document, problems, infinite=allow_infinite)
    targets, decimals = (
        check_levels_of_numbers(document.values.get(noun, {}), noun, problems)
        for noun in ("moe_target", "printed_decimals")
    )
    for (table, level), places in decimals.items():
        if places.denominator != 1:
            problems.add(f"printed_decimals.{table}.{level}", "give a whole number of decimals")
    problems.raise_if_any(document.origin)
    return PhsafeConfig(
        states=states,
        reader=cast(Reader, reader),
        definition=Definition(definition),
        sensitivity=cast(Sensitivity, sensitivity),
        tau=tau,
        budgets=budgets,
        origin=document.origin,
        overrides=document.overrides,
        warnings=(*warnings, *_nation_of_one(document, states, budgets)),
        moe_targets=targets,
        printed_decimals={key: int(places) for key, places in decimals.items()},
    )


def load_truth_config(source: str | Path, overrides: Mapping[str, str] | None = None) -> TruthConfig:
    """Read what a truth run needs, states and reader; budgets and tau may be absent and are not looked at.

    Args:
        source: as in :func:`load_config`.
        overrides: as in :func:`load_config`.

    Raises:
        ConfigError: with every breach, its key path, and what is allowed there.

    Example:
        >>> load_truth_config("sdhc-pr").states
        ('72',)
    """
    document = read_document(source, overrides or {})
    problems = Problems()
    warnings = document.check_unknown(problems)
    states = _states(document, problems)
    reader = document.choice("reader", _READERS, problems)
    problems.raise_if_any(document.origin)
    return TruthConfig(states, cast(Reader, reader), document.origin, document.overrides, tuple(warnings))


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


def _noiseless(document: Document) -> Document:
    """Fill in what a run without noise need not say."""
    everywhere = {table: dict.fromkeys(levels_of(table), INFINITE) for table in MEASURED_TABLES}
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
