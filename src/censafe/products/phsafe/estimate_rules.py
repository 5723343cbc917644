"""Which estimates the S-DHC publishes, read from ``estimates.toml`` once."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources

from censafe.estimation.sdhc.rules import CountRules, RatioRules
from censafe.products.phsafe.definitions import phsafe_definitions

__all__ = ["EstimateRules", "estimate_rules"]


@dataclass(frozen=True)
class EstimateRules:
    """Tables of estimates.

    Args:
        counts: tables of counts.
        ratios: tables of ratios.
        labels: of the tables of ratios, by name.
    """

    counts: tuple[CountRules, ...]
    ratios: tuple[RatioRules, ...]
    labels: Mapping[str, str] = field(hash=False)

    @property
    def sources(self) -> dict[str, tuple[int, ...]]:
        """Every table of noisy counts that is read, with the numbers of its cells."""
        found = {rules.table: rules.basis for rules in self.counts}
        for rules in self.ratios:
            found[rules.numerator] = rules.parts
            found[rules.denominator] = rules.denominators
        return found


@lru_cache(maxsize=1)
def estimate_rules() -> EstimateRules:
    """The five tables of counts and the three of ratios.

    Raises:
        ValueError: the file and the table definitions disagree about which cells are measured.

    Source: the Bureau's programs of model-based estimates of the S-DHC.

    Example:
        >>> rules = estimate_rules()
        >>> [table.table for table in (*rules.counts, *rules.ratios)]
        ['PH2', 'PH3', 'PH4', 'PH6', 'PH7', 'PH1', 'PH5', 'PH8']
        >>> rules.counts[1].margins[1]
        (2, 4, 5, 6, 7, 9, 10)
    """
    text = resources.files("censafe.products.phsafe").joinpath("estimates.toml").read_text(encoding="utf-8")
    document = tomllib.loads(text)
    counts = tuple(
        CountRules(entry["table"], {margin["cell"]: tuple(margin["of"]) for margin in entry["margins"]})
        for entry in document["counts"]
    )
    ratios = tuple(
        RatioRules(
            entry["table"],
            entry["numerator"],
            entry["denominator"],
            float(entry["lowest"]),
            entry["denominators"],
        )
        for entry in document["ratios"]
    )
    found = EstimateRules(counts, ratios, {entry["table"]: entry["label"] for entry in document["ratios"]})
    definitions = phsafe_definitions()
    for table, cells in found.sources.items():
        measured = tuple(int(cell.id) for cell in definitions.table(table).basis)
        if measured != cells:
            raise ValueError(f"estimates.toml: {table} has the basis cells {measured}, not {cells}")
    return found
