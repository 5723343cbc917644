"""Which tables a run estimates, and for which areas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.estimation.topdown.cell_sums.structure import CellSum, SumTerm
from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.geography.area_lists import AreaKind, read_block_areas
from censafe.geography.grfc import NO_PLACE
from censafe.model.cells.lines import CensusTable, TableLine
from censafe.model.observer import Observer
from censafe.products.run.options import NO_TABLES
from censafe.products.topdown.census_tables.definitions import (
    CARD_TABLES,
    SCHEMAS,
    census_tables,
    table_named,
)
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.publication.atomic import sha256_file

_PLACE_DIGITS: Final = 5
_LEVELS: Final = {"state": "State", "county": "County", "tract": "Tract"}
LOWER_LEVELS: Final = ("Block_Group", "Block")
"""Levels whose answers are read for areas of a list alone."""


@dataclass(frozen=True)
class TableChoice:
    """Tables and areas that are estimated.

    Args:
        areas: list of blocks with a column for each kind of areas; None for states, counties, tracts and places alone.
    """

    tables: tuple[CensusTable, ...]
    areas: Path | None = None

    @property
    def digest(self) -> str:
        """Words that distinguish choices; part of what a run folder is identified by."""
        listed = "" if self.areas is None else sha256_file(self.areas)
        return " ".join(["estimates", *(table.name for table in self.tables), listed]).rstrip()

    def of(self, histogram: str) -> tuple[CensusTable, ...]:
        """The tables that count a histogram."""
        return tuple(table for table in self.tables if table.histogram == histogram)


def table_choice(
    config: TopdownConfig, names: Sequence[str] | None, areas: Path | None
) -> TableChoice | None:
    """What a run estimates.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> [table.name for table in table_choice(load_config("dhc-us"), None, None).tables]
        ['P1', 'P5', 'P12', 'H1', 'H3', 'H4', 'H9', 'P16']
        >>> table_choice(load_config("pl94-us"), None, None) is None
        True
    """
    schemas = {one.schema.name for one in config.histograms}
    product = next((name for name, own in SCHEMAS.items() if schemas & set(own.values())), None)
    measured = [] if product is None else [kind for kind, name in SCHEMAS[product].items() if name in schemas]
    if names is None and areas is None and (product != "dhc" or config.choices.noisy_measurements != "lazy"):
        return None
    if names is not None and tuple(names) == NO_TABLES:
        if areas is not None:
            raise UsageError("`areas` are those of estimated tables; leave `areas` out, or name tables")
        return None
    if product is None:
        raise UsageError(
            f"`tables`: {config.origin} counts nothing that fills census tables; allowed: configurations with the histograms of pl94-us, pl94-pr, "
            "dhc-us or dhc-pr"
        )
    if names is None:
        known = [census_tables(product)[name] for name in CARD_TABLES[product]]
        return TableChoice(tuple(one for one in known if one.histogram in measured and not one.median), areas)
    chosen = [table_named(name, product) for name in dict.fromkeys(names)]
    for table in chosen:
        if table.needs:
            raise UsageError(f"table {table.name} cannot be estimated: the records do not tell {table.needs}")
        if table.median:
            raise UsageError(
                f"table {table.name} is of medians, which no linear estimate gives; fix: leave it out, and ask for intervals of replicates"
            )
        if table.histogram not in measured:
            raise UsageError(
                f"table {table.name} counts {table.histogram}, which this run does not measure; allowed: tables of {', '.join(measured)}"
            )
    return TableChoice(tuple(chosen), areas)


def line_sum(table: CensusTable, number: int) -> CellSum:
    """A cell of a table as a sum of cells of its histogram.

    Example:
        >>> [sorted(term.when) for term in line_sum(census_tables("dhc")["P12"], 1)]
        [['sex']]
    """
    line: TableLine = table.lines[number]
    if not line.summed:
        return (SumTerm(line.when),)
    return tuple(term for below in line.summed for term in line_sum(table, below))


@dataclass(frozen=True, eq=False)
class EstimatedAreas:
    """Areas of one kind that tables are estimated for.

    Args:
        kind: ``state``, ``county``, ``tract``, ``place``, or a column of the list.
        codes: of the areas, shape (areas,).
        area_of: area of every block in the order of the run, -1 for none.
    """

    kind: str
    codes: NDArray[np.str_] = field(repr=False)
    area_of: NDArray[np.int64] = field(repr=False)
    lowest: int


def estimated_areas(
    choice: TableChoice, public: PublicFacts, observer: Observer, *, stored: bool
) -> tuple[EstimatedAreas, ...]:
    """The areas of a choice.

    For areas of a list all levels are used that they need, down to blocks; for the others none below the block groups, unless all
    answers are stored anyway.
    """
    run = public.run
    deepest = len(run.spine.levels) - 1
    above = [depth for depth, name in enumerate(run.spine.names) if name not in LOWER_LEVELS]
    lowest = deepest if stored or not above else max(above)
    kinds_at = [(kind, lowest) for kind in _known_kinds(public)]
    if choice.areas is not None:
        kinds, remarks = read_block_areas(choice.areas, run.standard.leaf.codes, run.standard.leaf.form)
        kinds_at += [(kind, deepest) for kind in kinds]
        for text in remarks:
            observer.remark(text)
    return tuple(
        EstimatedAreas(kind.name, kind.codes, run.in_order(kind.area_of), depth) for kind, depth in kinds_at
    )


def _known_kinds(public: PublicFacts) -> Iterator[AreaKind]:
    standard = public.run.standard
    words: Mapping[str, str] = {level: word for word, level in _LEVELS.items()}
    for depth, level in enumerate(standard.levels):
        if level.name in words:
            yield AreaKind(words[level.name], level.geounits, standard.ancestors(depth).astype(np.int64))
    if public.areas is not None:
        place = public.areas.place
        inside = np.flatnonzero(place != NO_PLACE)
        state = standard.leaf.plain_names(inside).astype("U2")
        names = np.char.add(state, np.char.zfill(place[inside].astype(np.str_), _PLACE_DIGITS))
        codes, number = np.unique(names, return_inverse=True)
        area_of = np.full(standard.leaf.nodes, -1)
        area_of[inside] = number.ravel()
        yield AreaKind("place", codes, area_of)
