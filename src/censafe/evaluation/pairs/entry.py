"""CONFIDENTIAL. What is asked of a true and a published file, and which evaluation answers it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from censafe.errors import UsageError
from censafe.evaluation.confidential import Standing
from censafe.evaluation.counts.frames import LossMode
from censafe.evaluation.counts.reliability import Tolerance
from censafe.evaluation.outputs import Evaluated
from censafe.evaluation.pairs.definitions import Definitions, read_definitions
from censafe.evaluation.pairs.evaluation import SUITES, PairChoices, evaluate_pair, evaluate_tables
from censafe.evaluation.pairs.inputs import AreaLists, OpenedPair, UnitFiles, open_pair
from censafe.evaluation.pairs.scope import PairQuestions
from censafe.evaluation.pairs.tables import match_tables
from censafe.evaluation.pairs.vintages import check_vintages, with_vintages
from censafe.evaluation.summary.reading import read_book
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.files import named_areas

_OF_TABLES = (
    "truth",
    "published",
    "out",
    "suites",
    "mode",
    "count",
    "by",
    "alpha",
    "beta",
    "published_data",
    "unmatched_as_zero",
)


@dataclass(frozen=True)
class PairRequest:
    """What is asked; see :class:`censafe.api.comparisons.CompareKeywords` for every field."""

    truth: Path
    published: Path
    out: Path
    suites: Sequence[str] = SUITES
    mode: LossMode = "corrected"
    count: str | None = None
    by: Sequence[str] = ()
    histogram: str | None = None
    also: Sequence[tuple[str, Path]] = ()
    domain: Path | None = None
    groups: str | None = None
    areas: Sequence[Path] = ()
    area_kinds: Sequence[str] = ()
    characteristics: Path | None = None
    tables: Path | None = None
    bins: int | None = None
    side_by_side: Sequence[str] = ()
    residuals: bool = False
    true_units: Path | None = None
    published_units: Sequence[Path] = ()
    alpha: float = 0.05
    beta: float = 0.05
    published_data: bool = False
    names: Path | None = None
    unmatched_as_zero: bool = False

    @property
    def sources(self) -> Mapping[str, str]:
        """Names of both sides, for the page."""
        main = [self.published, *(path for name, path in self.also if not name)]
        found = {"truth": str(self.truth), "published": ", ".join(str(path) for path in main)}
        return found | {f"vintage {name}": str(path) for name, path in self.also if name}

    @property
    def standing(self) -> Standing:
        """Who may see the result."""
        return Standing.of(published_data=self.published_data)


def compare_files(request: PairRequest, config: TopdownConfig | None, reading: ReadOptions) -> Evaluated:
    """Measure a true and a published file, and write frames and a page."""
    check_vintages([name for name, _ in request.also if name])
    if config is None:
        return _tables(request, reading)
    return _histograms(request, config, reading)


def _tables(request: PairRequest, reading: ReadOptions) -> Evaluated:
    given = [one.name for one in fields(request) if one.name not in _OF_TABLES and getattr(request, one.name)]
    if given:
        raise UsageError(
            "Tables take `by`, `count`, `unmatched_as_zero` and `mode` only; the other options are for histograms and need `configuration`."
        )
    matched = match_tables(
        request.truth,
        request.published,
        count=request.count,
        by=request.by,
        unmatched_as_zero=request.unmatched_as_zero,
    )
    choices = PairChoices(request.suites, request.mode, standing=request.standing)
    return evaluate_tables(matched, request.out, reading, sources=request.sources, choices=choices)


def _histograms(request: PairRequest, config: TopdownConfig, reading: ReadOptions) -> Evaluated:
    if request.count or request.by or request.unmatched_as_zero:
        raise UsageError("`count`, `by` and `unmatched_as_zero` are for tables; leave out `configuration`.")
    defined = read_definitions(request.characteristics) if request.characteristics else Definitions()
    opened = _opened(request, config, defined, reading)
    choices = PairChoices(
        request.suites,
        request.mode,
        PairQuestions(
            defined.queries,
            defined.characteristics,
            defined.sets,
            request.groups,
            request.bins or 0,
            Tolerance(request.alpha, request.beta),
        ),
        tuple(request.side_by_side),
        request.residuals,
        read_book(request.tables) if request.tables else None,
        request.standing,
    )
    return evaluate_pair(
        opened, request.out, reading, sources=request.sources, choices=choices, config=config
    )


def _opened(
    request: PairRequest, config: TopdownConfig, defined: Definitions, reading: ReadOptions
) -> OpenedPair:
    if bool(request.true_units) != bool(request.published_units):
        raise UsageError("`true_units` and `published_units` go together.")
    names = [one.name for one in config.histograms]
    chosen = request.histogram or names[0]
    if chosen not in names:
        raise UsageError(f"`histogram` {chosen}: the configuration has {', '.join(names)}.")
    numbers = itertools.count(1)
    runs = {name or str(next(numbers)): path for name, path in (("", request.published), *request.also)}
    units = None
    if request.true_units:
        units = UnitFiles(request.true_units, tuple(request.published_units))
    opened = open_pair(
        config,
        config.histogram(chosen),
        request.truth,
        runs,
        request.domain,
        units=units,
        areas=AreaLists(tuple(request.areas), tuple(request.area_kinds), defined.areas),
        reading=reading,
    )
    if request.names is not None or not opened.names.by_code:
        opened = replace(opened, names=named_areas(config, request.names))
    areas = {level.name: level.geounits for level in opened.persons.spine.levels}
    for words in dict.fromkeys(words for one in opened.lists for words in one.remarks):
        reading.observer.remark(words)
    if words := opened.names.remark({**areas, **{one.level: one.names for one in opened.lists}}):
        reading.observer.remark(words)
    return with_vintages(opened, tuple(name for name, _ in request.also if name))
