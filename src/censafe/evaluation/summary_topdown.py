"""CONFIDENTIAL. The tables of the summary metrics for runs of TopDown over one input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from censafe.evaluation.histograms.area_files import known_areas
from censafe.evaluation.histograms.pairing import PublishedRun
from censafe.evaluation.summary_counts import SummarySources
from censafe.evaluation.summary_filling import FilledTable, fill_book
from censafe.evaluation.summary_reading import shipped_book
from censafe.evaluation.topdown_population import Population

__all__ = ["budget_sheet", "topdown_sources"]


def topdown_sources(population: Population, runs: Mapping[str, Sequence[PublishedRun]]) -> SummarySources:
    """What the tables are filled from: the truth and the runs of some histograms, and areas that the run knows.

    Args:
        population: whose runs they are.
        runs: by histogram, the same ones of each.
    """
    facts = population.loaded.facts
    pairs = tuple(population.pairs[name].with_runs(own) for name, own in runs.items())
    lists = () if facts.areas is None else known_areas(pairs[0].spine, facts.areas)
    return SummarySources(pairs, lists, facts.facilities)


def budget_sheet(population: Population, runs: Sequence[PublishedRun], sheet: str) -> tuple[FilledTable, ...]:
    """The tables that the first histogram fills, all on one sheet, such as that of a budget.

    Args:
        population: whose runs they are.
        runs: of one budget.
        sheet: name of the sheet.
    """
    tables = fill_book(shipped_book(), topdown_sources(population, {population.main.name: runs}))
    return tuple(FilledTable(replace(one.table, sheet=sheet), one.lines) for one in tables if one.filled)
