"""TopDown configurations: our TOML and the shipped names, and orders of passes that no estimate could go through, refused."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, cast

import numpy as np

from censafe.errors import ConfigError, UsageError
from censafe.estimation.topdown.levels.joint import joint_pair
from censafe.estimation.topdown.levels.limits import compact_form, measured_fits, passes_of, query_chains
from censafe.geography.crosswalk import CrosswalkLevel
from censafe.model import CellQuery, Definition
from censafe.model.cells.lines import CensusTable
from censafe.model.topdown.choices import Choices
from censafe.model.topdown.histograms import GeoLevel, MeasuredHistogram, Stack, constraints_on
from censafe.population.records.layout import RecordLayout
from censafe.products.configuration.document import Document
from censafe.products.configuration.source import Settled, get_shipped, locate, value_text
from censafe.products.topdown.configuration.checks import (
    check_geocodes,
    check_histograms,
    check_levels,
    check_loss,
)
from censafe.products.topdown.configuration.constraint_checks import (
    ConstraintReader,
    are_related,
    check_stacks,
    followed_stacks,
    with_record_totals,
)
from censafe.products.topdown.configuration.invariant_checks import (
    invariant_warnings,
    tell_all_apart,
    with_invariants,
)
from censafe.products.topdown.configuration.keys import (
    CHOICES,
    OWN,
    PRODUCT,
    PRODUCTION_SPINE,
    read_document,
)
from censafe.products.topdown.configuration.outputs import check_outputs, check_own_tables
from censafe.products.topdown.configuration.reading import (
    ReadTable,
    check_own_levels,
)
from censafe.products.topdown.configuration.schema_checks import named_table
from censafe.publication.microdata.layouts import MicrodataLayout


def histogram_settings(
    histogram: MeasuredHistogram, symbol: str, levels: Sequence[GeoLevel]
) -> dict[str, str]:
    """Everything about one histogram that decides what is released, in a fixed order."""
    name = histogram.name
    flat = {}
    if histogram.outputs is not None:
        flat[f"outputs.{name}"] = json.dumps(asdict(histogram.outputs), sort_keys=True)
    flat[f"{symbol}.{name}"] = str(histogram.loss)
    flat[f"histograms.{name}.schema"] = histogram.schema.digest
    flat[f"histograms.{name}.exact_totals"] = histogram.exact_totals or ""
    for level in levels:
        flat[f"level_shares.{name}.{level.name}"] = str(histogram.level_shares[level.name])
        for query, share in histogram.query_shares[level.name].items():
            flat[f"query_shares.{name}.{level.name}.{query}"] = str(share)
        passes = histogram.passes[level.name]
        flat[f"passes.{name}.{level.name}"] = json.dumps([passes.l2, passes.rounding])
    for one in histogram.constraints:
        flat[f"constraints.{name}.{one.name}"] = json.dumps(
            [asdict(one), type(one.right).__name__], sort_keys=True
        )
    if histogram.invariants:
        flat[f"invariants.{name}"] = json.dumps(
            [[one.groups.query, one.lowest] for one in histogram.invariants]
        )
    if histogram.informed is not None:
        flat[f"informed.{name}"] = json.dumps(asdict(histogram.informed), sort_keys=True)
    return flat


Reader = Literal["histogram", "pl94", "ipums-1940", "cef", "records", "own"]
_ORDINARY_FITS: Final = 2
_NUMBERS: Final = ("fanout_cutoff", "bypass_cutoff", "joint", "joint_max_household_size")


@dataclass(frozen=True)
class TopdownConfig(Settled):
    """A checked TopDown configuration.

    Args:
        root: the level at which a run starts; wider ones are neither measured nor paid for.
        reader: ``histogram`` for our Parquet, ``pl94`` for a state's published PL 94-171 files, ``ipums-1940`` for an extract of the
            1940 census, ``cef`` for Census Edited Files, ``own`` for files that the table ``[read]`` describes.
        together: names of the histograms that are estimated together, each in one of them; empty where each is alone.
        published: earlier results that constraints hold to: the configuration that publishes each, by its name.
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
    together: tuple[tuple[str, ...], ...] = ()
    published: Mapping[str, str] = field(default_factory=dict)
    microdata: Mapping[str, MicrodataLayout] = field(default_factory=dict, repr=False)
    tables: Mapping[str, CensusTable] = field(default_factory=dict, repr=False)
    read: RecordLayout | None = field(default=None, repr=False)
    read_settings: str = field(default="", repr=False)
    computed: dict[str, object] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def stacks(self) -> tuple[Stack, ...]:
        """The histograms that a level estimates together, in the order in which they are estimated."""
        names = self.together or tuple((histogram.name,) for histogram in self.histograms)
        return tuple(Stack(tuple(map(self.histogram, own))) for own in names)

    @property
    def run_levels(self) -> tuple[GeoLevel, ...]:
        """The levels of a run, its root first."""
        names = [level.name for level in self.levels]
        return self.levels[names.index(self.root) :]

    @property
    def crosswalk(self) -> tuple[CrosswalkLevel, ...]:
        """The levels whose areas a crosswalk gives, the widest first; those above the root included."""
        levels: list[CrosswalkLevel] = []
        for level in self.levels:
            if level.crosswalk and level.prefix is not None:
                before = sum(one.length for one in levels) + level.digits
                levels.append(CrosswalkLevel(level.crosswalk, level.digits, level.prefix - before))
        return tuple(levels)

    @property
    def settings(self) -> dict[str, str]:
        """Everything that decides what is released, as text under dotted keys in a fixed order."""
        symbol = self.definition.symbol
        flat = {
            "levels": ",".join(
                ":".join(
                    (
                        level.name,
                        "" if level.prefix is None else str(level.prefix),
                        level.code,
                        *((level.crosswalk,) if level.crosswalk else ()),
                    )
                )
                for level in self.levels
            ),
            "root": self.root,
            "reader": self.reader,
            **({} if self.geocodes == "digits" else {"geocodes": self.geocodes}),
            **({"read": self.read_settings} if self.read_settings else {}),
            "measure": ",".join(histogram.name for histogram in self.histograms),
            **self.choices.settings,
            **{f"published.{name}": source for name, source in self.published.items()},
        }
        if any(len(own) > 1 for own in self.together):
            flat["stacks"] = ", ".join(" with ".join(own) for own in self.together)
        for name, layout in self.microdata.items():
            columns = [asdict(column) for column in layout.columns]
            flat[f"microdata.{name}"] = json.dumps([layout.file, columns], sort_keys=True)
        for name, table in self.tables.items():
            lines = [
                [line.label, sorted((one, sorted(own)) for one, own in line.when.items())]
                for line in table.lines
            ]
            flat[f"tables.{name}"] = json.dumps([table.histogram, lines])
        for histogram in self.histograms:
            flat |= histogram_settings(histogram, symbol, self.levels)
        return flat

    def histogram(self, name: str) -> MeasuredHistogram:
        """The measured histogram of that name; KeyError when it is not measured."""
        for histogram in self.histograms:
            if histogram.name == name:
                return histogram
        raise KeyError(name)


def load_config(source: str | Path, overrides: Mapping[str, str] | None = None) -> TopdownConfig:
    """Read and check a configuration.

    Example:
        >>> config = load_config("pl94-us", {"measure": "persons", "root": "State"})
        >>> config.histogram("persons").loss, [level.name for level in config.run_levels][:2]
        (Fraction(293764, 114921), ['State', 'County'])
    """
    document = read_document(source, overrides or {})
    warnings = document.check_unknown()
    chosen: dict[str, Any] = {noun: document.read(noun) or "" for noun in CHOICES}
    chosen |= {noun: document.read(noun) for noun in _NUMBERS}
    if production := chosen["spine"] == PRODUCTION_SPINE:
        chosen["spine"] = "standard"
    # budgets of only children move up on the spines that are optimized
    bypass = document.read("bypass", default=chosen["spine"] in ("optimized", "prim"))
    choices = Choices(bypass=bypass, production_spine=production, **chosen)
    own = ReadTable(document) if "read" in document.values else None
    levels = check_own_levels(document) if own else check_levels(document, choices.spine)
    names = tuple(level.name for level in levels)
    root = document.read("root", kind="word", allowed=names, default=names[0]) if levels else None
    reader = document.read("reader") if own is None else OWN
    definition, losses = check_loss(document)
    histograms = check_histograms(document, levels, root, losses)
    histograms = with_invariants(document, histograms, root, choices)
    histograms, stacks = _check_together(document, histograms, choices.joint)
    histograms, microdata = check_outputs(document, histograms, levels)
    tables = check_own_tables(document, histograms)
    geocodes = check_geocodes(document, levels, reader, choices.spine)
    read = own.layout(levels, root, histograms) if own else None
    if (choices.information, choices.noisy_measurements) == ("lower", "lazy"):
        document.add(
            "information",
            "lower needs the answers of all levels at once; fix: --set noisy_measurements=stored",
        )
    if choices.joint and histograms and joint_pair(histograms) is None and not are_related(histograms):
        document.add(
            "joint",
            "needs persons with bounds by kind of unit, none of which requires a person in every housing unit, and housing units by "
            "occupancy, both measured; fix: --set joint=false, or measure both (measure)",
        )
    title = document.title()
    document.raise_if_any(document.origin)
    run = names[names.index(cast(str, root)) :]
    warnings += [text for one in histograms if one.invariants for text in invariant_warnings(one, run)]
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
        together=tuple(tuple(one.name for one in stack.histograms) for stack in stacks),
        published=dict(document.values.get("published", {})),
        microdata=microdata,
        tables=tables,
        read=read,
        read_settings=json.dumps(document.values["read"], sort_keys=True, default=str) if own else "",
    )


def _check_together(
    document: Document, histograms: tuple[MeasuredHistogram, ...], joint: bool
) -> tuple[tuple[MeasuredHistogram, ...], tuple[Stack, ...]]:
    """The histograms with their constraints, and those that are estimated together."""
    published: dict[str, Mapping[str, MeasuredHistogram]] = {}  # of the configurations of earlier results
    for name, source in named_table(document, "published").items():
        key = f"published.{name}"
        if not isinstance(source, str):
            document.add(
                key, f'{value_text(source)} is not the name of a configuration; give one such as "pl94-us"'
            )
            continue
        try:
            published[name] = {one.name: one for one in load_config(get_shipped(source).name).histograms}
        except ConfigError as error:
            document.add(key, str(error))
    alone = check_stacks(document, histograms)
    reader = ConstraintReader(alone, published, document, joint=joint)
    entries = document.values.get("histograms", {})
    constrained = {}
    for one in with_record_totals(histograms, alone):
        constraints = reader.read(entries[one.name].get("constraints", []), one)
        informed = reader.informed(entries[one.name].get("informed", {}), one, constraints)
        constrained[one.name] = replace(one, constraints=constraints, informed=informed)
    return tuple(constrained.values()), followed_stacks(alone, constrained)


def check_pass_order(config: TopdownConfig) -> None:
    """Refuse passes that no estimate could go through, at any level of the run.

    Rounding goes down a tree of groups of cells: each query must split the groups of the one before it, the kinds of units
    first where these bound the records. There is one inner pass of rounding, or the total alone and then one. The last
    pass of the root, and of levels with several passes, must tell all cells apart.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> check_pass_order(load_config("pl94-us"))
    """
    for histogram in config.histograms:
        if histogram.constraints and config.choices.passes == "one":
            raise ConfigError(
                f"{config.origin}: passes = one fits and rounds all queries of a level at once, and histograms.{histogram.name} has "
                "constraints, which are met pass by pass; allowed: production, outer"
            )
    several_roots = config.choices.spine != "standard" or config.choices.bypass
    for histogram in config.histograms:
        for depth, level in enumerate(config.run_levels):
            _check_level(histogram, level.name, config, root=depth == 0, joined=several_roots and depth == 0)


def _check_level(
    histogram: MeasuredHistogram, level: str, config: TopdownConfig, *, root: bool, joined: bool
) -> None:
    """One level; ``joined`` when all its outer passes are rounded down one tree."""
    place = f"{config.origin}: histograms.{histogram.name}.passes, level {level}"
    passes = passes_of(histogram, level, config.choices)
    chains = [query_chains(histogram, outer) for outer in passes.rounding]
    fits = [measured_fits(histogram, level, outer) for outer in passes.l2]
    used = [chain for chain, fit in zip(chains, fits, strict=True) if fit]
    for chain in used:
        first = len(chain) > 1 and len(chain[0]) == 1 and chain[0][0].answers == 1
        if len(chain) > 1 + first:
            raise ConfigError(
                f"{place}: {len(chain)} inner passes of rounding in one outer pass; allowed: one, or the total alone and then "
                "one; fix: put the queries of one inner pass into one list, coarse to fine"
            )
    trees = [[query for chain in chains for inner in chain for query in inner]] if joined else []
    for tree in trees or [[query for inner in chain for query in inner] for chain in used]:
        _check_tree(histogram, tree, place)
    general = root or len(used) > 1 or any(len(fit) > _ORDINARY_FITS for fit in fits)
    if used and general and not joined and config.choices.information == "level":
        _check_cells(histogram, level, next(fit for fit in reversed(fits) if fit)[-1], used[-1], place)


def _check_tree(histogram: MeasuredHistogram, tree: list[CellQuery], place: str) -> None:
    schema = histogram.schema
    coarse, allowed = schema.query("total"), schema.allowed()
    for query in tree:
        # whether each answer lies in one of the coarser query, cells that are always empty left out
        fine = query.label[allowed].astype(np.int64)
        pairs = fine * coarse.answers + coarse.label[allowed]
        if not query.refines(coarse) and len(np.unique(pairs)) > len(np.unique(fine)):
            above = "the total" if coarse.answers == 1 else coarse.name
            words = dict.fromkeys(word.strip() for word in f"{above} * {query.name}".split("*"))
            raise ConfigError(
                f"{place}: rounding goes from coarse to fine, but {query.name} does not split the groups of {above}, which comes "
                f"before it; fix: name {' * '.join(words)} in place of {query.name}, or leave one of them out of rounding"
            )
        if 1 < query.answers < schema.schema.cells:
            coarse = query


def _check_cells(
    histogram: MeasuredHistogram,
    level: str,
    fit: tuple[int, ...],
    chain: tuple[tuple[CellQuery, ...], ...],
    place: str,
) -> None:
    """The queries of the last fit and of the last rounding, and the kinds of units, must tell all cells apart."""
    schema = histogram.schema
    texts, form = tuple(histogram.query_shares[level]), compact_form(schema, constraints_on(histogram))
    queries = [schema.query(texts[one]) for one in fit] + [query for inner in chain for query in inner]
    queries += [] if form is None or form.kinds is None else [form.kinds]
    if not tell_all_apart(queries, schema):
        raise ConfigError(
            f"{place}: the last pass does not tell all cells apart, so that it determines no cells; fix: measure detailed at "
            "this level, and name it in the last pass of l2"
        )


def require_free(config: TopdownConfig, what: str) -> None:
    """Refuse a configuration whose histograms are held to other results, before any file is opened."""
    causes = []
    for histogram in config.histograms:
        if histogram.constraints:
            names = ", ".join(one.name for one in histogram.constraints)
            causes.append(f"the constraints {names} of {histogram.name}")
    causes += [
        f"the joint estimation of {stack.name}" for stack in config.stacks if len(stack.histograms) > 1
    ]
    if causes:
        raise UsageError(
            f"{config.origin}: {what} cannot take this configuration yet, because of {'; '.join(causes)}. Nothing was read, and nothing "
            "was spent. 'censafe run' can, 'censafe plan' shows costs and noise, and 'censafe replicate' estimates the error of a finished run."
        )
