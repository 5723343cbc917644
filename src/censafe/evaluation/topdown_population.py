"""CONFIDENTIAL. The input of TopDown as evaluations use it: read once, with the characteristics that are compared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from censafe.evaluation.histograms.pairing import Pair
from censafe.geography.run_spine import standard_levels
from censafe.model import ExactHistograms
from censafe.privacy.keys import TestKey, keyed_commitment
from censafe.products.options import ReadOptions
from censafe.products.runner import hash_files
from censafe.products.topdown.config import TopdownConfig, load_config
from censafe.products.topdown.config_types import MeasuredHistogram
from censafe.products.topdown.intake import Intake, Loaded
from censafe.products.topdown.schemas import HistogramSchema

__all__ = ["Characteristic", "Population", "characteristics", "compared_characteristics", "open_population"]


@dataclass(frozen=True)
class Characteristic:
    """Something that is counted.

    Args:
        query: as the schema knows it.
        words: for readers, such as ``voting age``.
    """

    query: str
    words: str


@dataclass(frozen=True, eq=False)
class Population:
    """CONFIDENTIAL. One input and its configuration.

    Args:
        config: of the runs.
        loaded: the records.
        exact: by histogram, true histograms of every standard level, root first.
        pairs: by histogram, the truth over the standard levels, without any published run.
        commitment: keyed fingerprint of the input files, hexadecimal.
    """

    config: TopdownConfig
    loaded: Loaded = field(repr=False)
    exact: Mapping[str, tuple[ExactHistograms, ...]] = field(repr=False)
    pairs: Mapping[str, Pair] = field(repr=False)
    commitment: str

    @property
    def main(self) -> MeasuredHistogram:
        """The histogram that questions about people are asked of: the first one."""
        return self.config.histograms[0]

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the levels, root first."""
        return tuple(level.name for level in self.config.run_levels)

    @property
    def areas(self) -> dict[str, int]:
        """Published number of geounits of every level, root first."""
        levels = self.pairs[self.main.name].spine.levels
        return {name: level.nodes for name, level in zip(self.levels, levels, strict=True)}


def open_population(config: str, data: Path, settings: Mapping[str, str], reading: ReadOptions) -> Population:
    """Read and check configuration and records as a run does.

    Args:
        config: a path or a shipped name.
        data: folder with the records.
        settings: overrides of configuration keys.
        reading: who is told of stages.

    Raises:
        ConfigError: the configuration breaks a rule.
        DataError: everything that is wrong with the files.
    """
    chosen = load_config(config, settings)
    for warning in chosen.warnings:
        reading.observer.remark(f"Warning: {warning}")
    with Intake(data, chosen, reading) as intake:
        hashes = hash_files(intake.files, data)
        loaded = intake.load()
    with TestKey(0) as key:
        commitment = keyed_commitment(key, json.dumps(hashes, sort_keys=True).encode()).hex()
    run = loaded.facts.run
    exact = {
        one.name: standard_levels(run, loaded.exact[one.name], one.schema.schema.cells)
        for one in chosen.histograms
    }
    pairs = {one.name: Pair(one.schema, run.standard, exact[one.name][-1], ()) for one in chosen.histograms}
    return Population(chosen, loaded, exact, pairs, commitment)


def characteristics(schema: HistogramSchema) -> tuple[Characteristic, ...]:
    """What is compared: the total, the first attribute, the others jointly, and all of them; kinds of unit are summed out.

    Example:
        >>> from censafe.products.topdown.shipped import shipped_schemas
        >>> [one.query for one in characteristics(shipped_schemas()["pl94-persons"])]
        ['total', 'votingage', 'hispanic * cenrace', 'votingage * hispanic * cenrace']
    """
    kinds = None if schema.facilities is None else schema.facilities.attribute
    names = [item.name for item in schema.schema.attributes if item.name != kinds and item.levels > 1]
    texts = ["total", *names[:1]]
    if len(names) > 1:
        texts += [" * ".join(names[1:]), " * ".join(names)]
    return tuple(Characteristic(text, _words(text)) for text in texts)


def compared_characteristics(histogram: MeasuredHistogram) -> tuple[Characteristic, ...]:
    """The same for one histogram of a configuration, without the total where that of every block is published exactly.

    Example:
        >>> config = load_config("pl94-us")
        >>> [one.query for one in compared_characteristics(config.histogram("units"))]
        ['h1']
    """
    exact = histogram.exact_totals == tuple(histogram.level_shares)[-1]
    found = characteristics(histogram.schema)
    return found[1:] if exact and len(found) > 1 else found


_WORDS = {
    "total": "total", "votingage": "voting age", "age18plus": "voting age", "cenrace": "race", "hispanic": "Hispanic origin",
    "race": "race", "hispanic_race": "Hispanic origin and race",
    "h1": "occupancy",
}  # fmt: skip


def _words(query: str) -> str:
    return " by ".join(_WORDS.get(name.strip(), name.strip()) for name in query.split("*"))
