"""TopDown configurations: our TOML and the shipped names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, cast

from censafe.estimation.topdown.levels.joint_limits import joint_pair
from censafe.model import Definition
from censafe.model.choices import Choices
from censafe.model.histograms import GeoLevel, MeasuredHistogram
from censafe.products.configuration.document import Document
from censafe.products.configuration.source import Problems, locate, titled
from censafe.products.topdown.configuration.checks import (
    check_geocodes,
    check_histograms,
    check_levels,
    check_loss,
    check_root,
)
from censafe.products.topdown.configuration.keys import CHOICES, PRODUCT, read_document

__all__ = ["Reader", "TopdownConfig", "load_config"]

Reader = Literal["histogram", "pl94", "ipums-1940", "cef"]
_WITHDRAWN: Final = {
    ("information", "all"): (
        "all (blocks drawn towards the makeup of their block group) is no longer offered: it moved groups out of the blocks they live in, "
        "so that areas put together from such blocks came out worse than with lower (docs/full_information.md); "
        "fix: --set information=lower, or level"
    ),
}


@dataclass(frozen=True)
class TopdownConfig:
    """A checked TopDown configuration.

    Args:
        levels: of the geography, the widest first.
        root: the level at which a run starts; wider ones are neither measured nor paid for.
        reader: ``histogram`` for our Parquet, ``pl94`` for a state's published PL 94-171 files, ``ipums-1940`` for an extract of the
            1940 census, ``cef`` for Census Edited Files.
        definition: zCDP (losses are rho) or pure DP (losses are epsilon).
        histograms: that are measured, in order.
        choices: how it is measured and estimated.
        origin: where the configuration came from.
        overrides: what ``--set`` changed, as it was typed.
        warnings: what the user should know.
        text: of the configuration file, without the overrides.
        geocodes: which characters geocodes have, a word of :data:`censafe.geography.geocodes.ALPHABETS`.
        title: what the configuration is for, in its own words; empty without.
    """

    levels: tuple[GeoLevel, ...]
    root: str
    reader: Reader
    definition: Definition
    histograms: tuple[MeasuredHistogram, ...]
    choices: Choices
    origin: str
    overrides: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    text: str = field(default="", repr=False)
    title: str = ""
    geocodes: str = "digits"

    @property
    def run_levels(self) -> tuple[GeoLevel, ...]:
        """The levels of a run, its root first."""
        names = [level.name for level in self.levels]
        return self.levels[names.index(self.root) :]

    @property
    def settings(self) -> dict[str, str]:
        """Everything that decides what is released, as text under dotted keys in a fixed order."""
        symbol = self.definition.symbol
        flat = {
            "levels": ",".join(f"{level.name}:{level.prefix}:{level.code}" for level in self.levels),
            "root": self.root,
            "reader": self.reader,
            **({} if self.geocodes == "digits" else {"geocodes": self.geocodes}),
            "measure": ",".join(histogram.name for histogram in self.histograms),
            **{name: str(value).lower() for name, value in vars(self.choices).items()},
        }
        for histogram in self.histograms:
            name = histogram.name
            flat[f"{symbol}.{name}"] = str(histogram.loss)
            flat[f"histograms.{name}.schema"] = histogram.schema.digest
            flat[f"histograms.{name}.exact_totals"] = histogram.exact_totals or ""
            for level in self.levels:
                flat[f"level_shares.{name}.{level.name}"] = str(histogram.level_shares[level.name])
                for query, share in histogram.query_shares[level.name].items():
                    flat[f"query_shares.{name}.{level.name}.{query}"] = str(share)
                passes = histogram.passes[level.name]
                flat[f"passes.{name}.{level.name}"] = json.dumps([passes.l2, passes.rounding])
        return flat

    @property
    def record(self) -> dict[str, str]:
        """The title, where there is one, and the settings: what a manifest says of a configuration."""
        return titled(self.title, self.settings)

    @property
    def digest(self) -> str:
        """SHA-256 of the settings as canonical JSON, hexadecimal."""
        text = json.dumps(self.settings, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def histogram(self, name: str) -> MeasuredHistogram:
        """The measured histogram of that name; KeyError when it is not measured."""
        for histogram in self.histograms:
            if histogram.name == name:
                return histogram
        raise KeyError(name)


def load_config(source: str | Path, overrides: Mapping[str, str] | None = None) -> TopdownConfig:
    """Read and check a configuration.

    Args:
        source: our TOML file, or a shipped name.
        overrides: ``--set`` values by dotted key, such as ``{"epsilon": "1/2", "rho.persons": "2", "measure": "units",
            "root": "State", "query_shares.persons.County.total": "1/2"}``.

    Raises:
        ConfigError: with every breach, its key path, and what is allowed there.

    Example:
        >>> config = load_config("pl94-us", {"measure": "persons", "root": "State"})
        >>> config.histogram("persons").loss, [level.name for level in config.run_levels][:2]
        (Fraction(293764, 114921), ['State', 'County'])
    """
    document = read_document(source, overrides or {})
    problems = Problems()
    warnings = document.check_unknown(problems)
    levels = check_levels(document, problems)
    root = check_root(document, levels, problems)
    reader = document.read("reader", problems)
    definition, losses = check_loss(document, problems)
    histograms = check_histograms(document, levels, root, losses, problems)
    choices = _check_choices(document, problems)
    geocodes = check_geocodes(document, levels, reader, choices.spine, problems)
    if (choices.information, choices.noisy_measurements) == ("lower", "lazy"):
        problems.add(
            "information",
            "lower needs the answers of all levels at once; fix: --set noisy_measurements=stored",
        )
    if choices.joint and histograms and joint_pair(histograms) is None:
        problems.add(
            "joint",
            "needs persons with bounds by kind of unit, none of which asks for somebody in every housing unit, and housing units by "
            "occupancy, both measured; fix: --set joint=false, or measure both (measure)",
        )
    title = document.title(problems)
    problems.raise_if_any(document.origin)
    return TopdownConfig(
        levels=levels,
        root=cast(str, root),
        reader=cast(Reader, reader),
        definition=cast(Definition, definition),
        histograms=histograms,
        choices=choices,
        origin=document.origin,
        overrides=document.overrides,
        warnings=tuple(warnings),
        text=locate(PRODUCT, source)[0].read_text(encoding="utf-8"),
        title=title,
        geocodes=cast(str, geocodes),
    )


def _withdrawn(document: Document, name: str, problems: Problems) -> str | None:
    """Report a value that was once offered, with the reason why it is not; None for any other value."""
    value = document.values.get(name)
    reason = _WITHDRAWN.get((name, value)) if isinstance(value, str) else None
    if reason is None:
        return None
    problems.add(document.key(name), reason)
    return str(value)


def _check_choices(document: Document, problems: Problems) -> Choices:
    """Named choices with their defaults; budgets of only children move up on the spines that are optimised."""
    chosen: dict[str, Any] = {
        noun: _withdrawn(document, noun, problems) or document.read(noun, problems) or "" for noun in CHOICES
    }
    numbers = ("fanout_cutoff", "bypass_cutoff", "joint", "joint_max_household_size")
    return Choices(
        bypass=document.read("bypass", problems, default=chosen["spine"] in ("optimised", "prim")),
        **{noun: document.read(noun, problems) for noun in numbers},
        **chosen,
    )
