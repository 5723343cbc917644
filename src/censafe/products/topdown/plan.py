"""What a TopDown release measures, with which noise, in which order, and what it costs; no data is opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Final

from censafe.errors import CheckError, ConfigError
from censafe.geography.spines.prim import PRIM_LEVELS
from censafe.model import (
    CellQuery,
    Definition,
    Neighbors,
    NoiseLaw,
    PartPlan,
    ProtectedUnit,
    QueryPlan,
    ReleasePlan,
)
from censafe.model.bounds import upper
from censafe.model.entries import listed
from censafe.model.parsing import parse_fraction
from censafe.model.proven import proven
from censafe.model.topdown.histograms import FacilityCounts, GeoLevel, MeasuredHistogram
from censafe.planning.numbers import decimal_text, loss_text
from censafe.products.topdown.configuration.config import TopdownConfig, check_pass_order, load_config
from censafe.products.topdown.configuration.layout import histogram_layout
from censafe.products.topdown.configuration.shipped import shipped_schemas
from censafe.products.topdown.person_loss import person_loss
from censafe.publication.manifest import Manifest


@proven("sensitivity.proof.md", digest="6178e4a289a5c303")
def noise_law(definition: Definition, cost: Fraction) -> NoiseLaw:
    """Law of the noise of every answer of a query that costs ``cost`` at its level by rows of its histogram.

    Args:
        definition: zCDP (the cost is rho) or pure DP (the cost is epsilon).
        cost: for one row of the histogram replaced by another one, as the Bureau states it; above 0.

    Source: 2020 production code (sigma2 = 1 / rho); 1940 end-to-end code (two-sided geometric, exp(-epsilon / 2)).

    Example:
        >>> noise_law(Definition.ZCDP, Fraction(1, 4)).parameter, noise_law(Definition.PURE, Fraction(1, 4)).parameter
        (Fraction(4, 1), Fraction(8, 1))
    """
    if definition is Definition.ZCDP:
        return NoiseLaw.gaussian(1 / cost)
    return NoiseLaw.laplace(2 / cost)


_LEVELS: Final = (("State", 2), ("County", 5), ("Tract", 11), ("Block_Group", 12), ("Block", 16))
_SCHEMAS: Final = ("pl94-persons", "pl94-units")
_PRIM_ROOTS: Final = 3
_LONGEST: Final = 12  # characters of an exact loss
_TOGETHER: Final = "loss of one change in all histograms"
_RECORDS: Final = {ProtectedUnit.PERSON: "person", ProtectedUnit.HOUSEHOLD: "housing unit"}


@dataclass(frozen=True, eq=False)
class LevelWorkload:
    """The measured queries of one histogram at one level.

    Args:
        queries: their cells; the position of a query is its ordinal in the addresses of the noise.
    """

    histogram: MeasuredHistogram
    level: GeoLevel
    part: PartPlan
    queries: tuple[CellQuery, ...]

    @property
    def answers(self) -> int:
        """Measured answers of one geounit."""
        return sum(query.answers for query in self.queries)


def plan_release(config: TopdownConfig) -> ReleasePlan:
    """Lay out one part for every measured histogram and level, the histograms in order, the widest level first.

    The total is what one person's change costs (``person_loss``): for each histogram the largest loss over all pairs of records, each
    query with its share of it. So the parts of several plans, one for each histogram, add up to the total of one plan with all.
    A query is named ``histogram.query``, for example ``persons.votingage * hispanic``.

    A loss for a person who enters or leaves is stated where no total of persons is published exactly.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> plan = plan_release(load_config("e2e-1940"))
        >>> plan.total, plan.parts[0].name, plan.parts[0].queries[1].law.parameter
        (Fraction(1, 4), 'persons_National', Fraction(1280, 9))
        >>> plan = plan_release(load_config("dhc-us", {"root": "State", "bypass": "false"}))
        >>> float(plan.total), float(rows_loss(plan))
        (37.3017, 12.0844)
    """
    check_spine(config)
    check_pass_order(config)
    if config.reader != "records":
        histogram_layout(config)
    loss, other_losses = person_loss(config), {}
    persons = [one for one in config.histograms if one.schema.record is ProtectedUnit.PERSON]
    if all(one.exact_totals is None for one in persons) and not lists_occupied(config):
        entering = person_loss(config, Neighbors.ADD_REMOVE).histograms.values()
        other_losses = {Neighbors.ADD_REMOVE: sum(entering, Fraction(0))}
    return ReleasePlan(
        product="topdown",
        definition=config.definition,
        neighbors=Neighbors.REPLACE,
        unit=ProtectedUnit.PERSON,
        other_losses=other_losses,
        parts=tuple(load.part for load in workloads(config)),
        settings={**_settings(config), _TOGETHER: str(loss.together)},
        joint=config.choices.bypass,
    )


def rows_loss(plan: ReleasePlan) -> Fraction:
    """Loss for one row of each histogram replaced by another one: the Bureau's statement."""
    return sum((query.cost for part in plan.parts for query in part.queries), Fraction(0))


def one_change_loss(plan: ReleasePlan) -> Fraction:
    """Largest loss that one and the same change of a person has in all histograms together."""
    return parse_fraction(plan.settings[_TOGETHER])


def loss_statements(config: TopdownConfig) -> tuple[str, ...]:
    """How the total comes about, the most that one change costs, and the Bureau's statement under its name; losses rounded up."""
    plan, symbol = plan_release(config), config.definition.symbol
    by_histogram = ", ".join(
        f"{name} {loss_text(loss)}" for name, loss in person_loss(config).histograms.items()
    )
    words = []
    if config.read is not None:  # what a record is where files of one's own are read
        if "persons" in config.read.files:
            words.append(
                "A person's record is one row of the file of persons, and its level in every attribute follows from this row alone; of the household only "
                "the area and the kind of unit are taken, which do not change."
            )
        if any(one.table == "households" for one in config.read.histograms):
            words.append(
                "A household's record is one row of the file of households; with a person, the rows of the household left and of the one entered change."
            )
        words.append(
            "That nobody has two rows, and no household, is stated by the provider; no reader can tell."
        )
    return (
        f"The total is the sum over histograms of the largest loss of one person's change: {by_histogram}. One and the same change costs at most "
        f"{symbol} {loss_text(one_change_loss(plan))} in all of them.",
        f"By rows of one histogram, the Bureau's statement: {symbol} {loss_text(rows_loss(plan))} for one row of each histogram replaced; it is "
        "not the loss of a person.",
        *([" ".join(words)] if words else ()),
    )


def check_spine(config: TopdownConfig) -> None:
    """Refuse parted spines for other schemas and levels than those of the redistricting data.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> check_spine(load_config("e2e-1940"))
        >>> check_spine(load_config("e2e-1940", {"spine": "aian"}))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        censafe.errors.ConfigError: spine: aian needs ...
    """
    if config.choices.spine == "standard":
        return
    if with_invariants := [one.name for one in config.histograms if one.invariants]:
        raise ConfigError(
            f"{config.origin}: invariants of {', '.join(with_invariants)} are figures of the areas that geocodes name; the spine {config.choices.spine} has other ones; fix: "
            "--set spine=standard"
        )
    names = tuple(level.name for level in config.run_levels)
    if config.choices.spine == "prim":
        allowed = [PRIM_LEVELS[first:] for first in range(_PRIM_ROOTS)]
        if names not in allowed or config.geocodes != "digits":
            raise ConfigError(
                f"spine: prim needs the levels {', '.join(PRIM_LEVELS)} of census blocks, from one of the first {_PRIM_ROOTS} on; "
                f"these are {', '.join(names)}; fix: name these levels, or --set spine=standard"
            )
    else:
        levels = tuple((level.name, level.prefix) for level in config.run_levels if level.name != "US")
        known = {shipped_schemas()[name].schema.attributes for name in _SCHEMAS}
        schemas = {histogram.schema.schema.attributes for histogram in config.histograms}
        if levels != _LEVELS[len(_LEVELS) - len(levels) :] or not schemas <= known:
            raise ConfigError(
                f"spine: {config.choices.spine} needs the schemas {' and '.join(_SCHEMAS)} and the levels "
                f"{', '.join(name for name, _ in _LEVELS)} of census blocks; fix: --set spine=standard"
            )
    # on a parted spine, totals are those of whole geounits only where all parts have one parent, or of the blocks
    undivided = ["US", "State", config.run_levels[-1].name]
    if config.choices.spine == "aian" or config.root != "Block_Group":
        undivided.append(config.root)
    for histogram in config.histograms:
        exact = histogram.exact_totals
        if exact is not None and exact not in undivided:
            raise ConfigError(
                f"{config.origin}: histograms.{histogram.name}.exact_totals is {exact}: the spine {config.choices.spine} parts geounits "
                f"of level {exact} between parents, so that their totals cannot be exact; allowed: totals of the states and above, of "
                "the root, or of the blocks; fix: --set spine=standard"
            )


def workloads(config: TopdownConfig, only: str | None = None) -> tuple[LevelWorkload, ...]:
    """The queries of every part, in the order of the plan's parts; those of one histogram alone where it is named.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> [(load.part.name, load.answers) for load in workloads(load_config("pl94-pr"))][:2]
        [('persons_State', 2602), ('persons_County', 2603)]
    """
    loads, loss = [], person_loss(config)
    for histogram in config.histograms:
        if only not in (None, histogram.name):
            continue
        texts = dict.fromkeys(query for shares in histogram.query_shares.values() for query in shares)
        queries = {text: histogram.schema.query(text) for text in texts}
        # the part costs its share of the loss of the histogram; where nothing that is measured can change, a ledger is charged the cost by rows
        by_rows = sum(level_costs(config, histogram).values(), Fraction(0))
        factor = loss.histograms[histogram.name] / by_rows or Fraction(1)
        for level in config.run_levels:
            plans = []
            for text in histogram.query_shares[level.name]:
                cost = histogram.cost(level.name, text)
                law = noise_law(config.definition, cost)
                plans.append(QueryPlan(f"{histogram.name}.{text}", level.name, law, cost))
            part = PartPlan(histogram_part(histogram, level), tuple(plans), factor=factor)
            own = tuple(queries[text] for text in histogram.query_shares[level.name])
            loads.append(LevelWorkload(histogram, level, part, own))
    return tuple(loads)


def histogram_part(histogram: MeasuredHistogram, level: GeoLevel) -> str:
    """Name of the part of a histogram at a level, for example ``persons_County``."""
    return f"{histogram.name}_{level.name}"


def exact_levels(histogram: MeasuredHistogram) -> tuple[str, ...]:
    """Levels whose totals are published exactly: the named one and all above it."""
    if histogram.exact_totals is None:
        return ()
    names = tuple(histogram.level_shares)
    return names[: names.index(histogram.exact_totals) + 1]


def exact_queries(histogram: MeasuredHistogram) -> tuple[str, ...]:
    """Queries whose answers are published exactly, each with the lowest level at which they are."""
    return tuple(f"{one.groups.query} in every {one.lowest}" for one in histogram.invariants)


def exact_figures(config: TopdownConfig) -> tuple[str, ...]:
    """What is published exactly and therefore not protected, as sentences for plan and certificate.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> exact_figures(load_config("pl94-pr", {"measure": "units"}))[0]
        'Published exactly, without noise: units, totals of State, County, Tract, Block_Group, Block.'
    """
    run = [level.name for level in config.run_levels]
    statements = []
    for histogram in config.histograms:
        figures = []
        levels = [name for name in exact_levels(histogram) if name in run]
        if levels:
            figures.append(f"totals of {', '.join(levels)}")
        figures += [f"numbers by {text} and in all larger areas" for text in exact_queries(histogram)]
        if counted := counted_units(histogram):
            figures.append(f"numbers of {counted} in every {run[-1]}")
        if figures:
            statements.append(f"Published exactly, without noise: {histogram.name}, {'; '.join(figures)}.")
    if any(exact_levels(histogram) for histogram in config.histograms):
        statements.append(
            "Whoever knows all other records can tell from an exact total in which of its areas a record is."
        )
    if lists_occupied(config):
        statements.append(
            f'Published exactly, without noise: which areas ({run[-1]}) have records at all, since areas = "records" makes them the list of areas. '
            "That an area has a record, or none, is not protected."
        )
    rules = [rule for one in config.histograms if (rule := one.schema.facilities) is not None]
    if any(rule.minimum[0] and "vacant" in rule.other_kinds for rule in rules):
        statements.append(
            "Whether a housing unit is occupied or vacant is not protected: both numbers are published as they were counted."
        )
    if statements:
        statements += _conditional(config)
    return tuple(statements)


def _conditional(config: TopdownConfig) -> Iterator[str]:
    """The condition of the guarantee, what follows that is not protected, and what changes within it cost."""
    yield (
        "The guarantee is conditional on what is published exactly: it compares only files that agree in all of these figures. A record "
        "added or removed changes a total, so no loss is stated for it."
    )
    if units := dict.fromkeys(filter(None, map(counted_units, config.histograms))):
        yield (
            f"Not protected: that a unit of these kinds exists in its {config.run_levels[-1].name} ({'; '.join(units)}), since their "
            "numbers are published as they were counted."
        )
    if levels := dict.fromkeys(
        name for histogram in config.histograms for name in exact_levels(histogram)[-1:]
    ):
        yield f"Not protected: a change of a total of {', '.join(levels)}, such as a record that leaves its area and is in another one."
    yield from _unprotected(config)
    symbol = config.definition.symbol
    for histogram in config.histograms:
        single, exchanged, two = (
            _short(loss_within_invariants(histogram.loss, config.definition, records, exchanged=exchanged))
            for records, exchanged in ((1, False), (2, True), (2, False))
        )
        most = " at most" if histogram.invariants else ""
        yield (
            f"{histogram.name}, by rows: one {record_words(histogram)}'s row changes and all these figures stay: {symbol} {single}{most}. Where they tie a record to its "
            f"place, records change together: two exchange places at {symbol} {exchanged} at most, any two change at {symbol} {two} at most."
        )
    if len(config.histograms) > 1:
        yield "The losses of the histograms add."
    if config.published:
        yield (
            f"The losses of {', '.join(config.published)}, released from the same records before, are not in this total and add to it."
        )


def _unprotected(config: TopdownConfig) -> Iterator[str]:
    """By attribute and area, what exact answers tell of a record to whom all others are known."""
    for histogram in config.histograms:
        record = record_words(histogram)
        for one in histogram.invariants:
            query = histogram.schema.query(one.groups.query)
            attributes = " with ".join(query.attributes)
            coarse = (
                ""
                if query.key == histogram.schema.query(" * ".join(query.attributes)).key
                else f", as far as {query.name} tells it"
            )
            yield (
                f"Not protected: {attributes} of a {record} in its {one.lowest} ({histogram.name}{coarse}). Whoever knows all other records of one {one.lowest} can tell it from "
                f"the exact numbers by {query.name}; no loss is stated for a change of it, or of the {one.lowest}."
            )


def _short(loss: Fraction) -> str:
    text = decimal_text(loss)
    return text if len(text) <= _LONGEST else f"{upper(loss, digits=6):.6g}"


@proven("invariants.proof.md", digest="744e0c087281f6b3")
def loss_within_invariants(
    loss: Fraction, definition: Definition, records: int, *, exchanged: bool = False
) -> Fraction:
    """Loss between two files that agree in everything published exactly and differ in a few records.

    Args:
        loss: of a histogram, for one record.
        definition: zCDP (losses are rho) or pure DP (losses are epsilon).
        records: how many differ.
        exchanged: whether they are two records that exchange their geounits and keep their values.

    Source: arXiv 2410.17468, semi-differential privacy: neighbors are files that agree in the invariants.

    Example:
        >>> [loss_within_invariants(Fraction(1, 2), Definition.ZCDP, 2, exchanged=way) for way in (True, False)]
        [Fraction(1, 1), Fraction(2, 1)]
    """
    if exchanged or definition is Definition.PURE:
        return loss * records
    return loss * records**2


def lists_occupied(config: TopdownConfig) -> bool:
    """Whether the areas that have records are published exactly, since no list of areas says which there are."""
    return config.read is not None and not config.read.geography.listed


def counted_units(histogram: MeasuredHistogram) -> str:
    """The units whose published counts bound the histogram; empty where none do. Housing units that each hold somebody are the occupied ones."""
    rule = histogram.schema.facilities
    if rule is None:
        bounded = any(isinstance(one.right, FacilityCounts) for one in histogram.constraints)
        return "housing units and group quarters by kind" if bounded else ""
    kinds = ["occupied housing units" if rule.minimum[0] else "housing units", "group quarters by kind"]
    kinds += [
        f"{name} housing units" if name == "vacant" else f"units of kind {name}" for name in rule.other_kinds
    ]
    return listed(kinds)


def _settings(config: TopdownConfig) -> dict[str, str]:
    """What decides the measurements besides the laws; how they are estimated is not part of the plan."""
    settings = {
        "levels": ",".join(
            f"{level.name}:{'' if level.prefix is None else level.prefix}" for level in config.run_levels
        ),
        "spine": config.choices.spine,
        "bypass": str(config.choices.bypass).lower(),
        "cutoffs": f"fanout {config.choices.fanout_cutoff}, bypass {config.choices.bypass_cutoff}",
        f"neighbors.{Neighbors.REPLACE.value}": _relation(config),
    }
    for histogram in config.histograms:
        settings[f"schema.{histogram.name}"] = histogram.schema.digest
        settings[f"exact_totals.{histogram.name}"] = histogram.exact_totals or ""
        if histogram.invariants:
            settings[f"invariants.{histogram.name}"] = ", ".join(exact_queries(histogram))
    if any(len(stack.histograms) > 1 for stack in config.stacks):
        settings["stacks"] = ", ".join(stack.name for stack in config.stacks)
    return settings


def _relation(config: TopdownConfig) -> str:
    """The protected change in words."""
    lowest = config.run_levels[-1].name
    words = (
        "one person's record is replaced by another one, in the same housing unit or quarters or in another; the records of the two units, and no "
        "others, change with it in all their answers, but not in their place, kind or number"
    )
    exact = dict.fromkeys(
        f"{histogram.record_totals} totals"
        for histogram in config.histograms
        if histogram.record_totals and histogram.schema.record is ProtectedUnit.PERSON
    )
    counted = dict.fromkeys(text for histogram in config.histograms if (text := counted_units(histogram)))
    listed = ["list of areas that have records"] if lists_occupied(config) else []
    answers = [f"numbers of {one.name} by {text}" for one in config.histograms for text in exact_queries(one)]
    totals = [*exact, *answers, *listed, *(f"counts of {text} by {lowest}" for text in counted)]
    return words + (f", with the published {' and '.join(totals)} unchanged" if totals else "")


def record_words(histogram: MeasuredHistogram) -> str:
    """Whose record a count of the histogram is, in words."""
    return _RECORDS[histogram.schema.record]


def level_costs(config: TopdownConfig, histogram: MeasuredHistogram) -> dict[str, Fraction]:
    """Loss of one histogram by level of the run."""
    return {level.name: histogram.loss * histogram.level_shares[level.name] for level in config.run_levels}


CONFIGURATION: Final = "measurements/configuration.toml"
"""Where a run folder keeps its configuration."""


def configuration_of_run(
    folder: Path, manifest: Manifest, changes: Mapping[str, str] | None = None
) -> TopdownConfig:
    """The configuration that a finished run stored, with settings that change nothing of its plan."""
    path = folder / CONFIGURATION
    config = load_config(path, {**manifest.config.overrides, **(changes or {})})
    config = replace(config, origin=manifest.config.origin)  # which messages name
    if plan_release(config).digest() != manifest.plan.digest():
        raise CheckError(
            f"the plan cannot be rebuilt from {path}; it was changed by hand, or another version of censafe wrote it"
        )
    return config
