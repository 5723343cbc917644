"""What a run's linear estimates of tables draw, take and fill: from the blocks of its data, or at most so many by numbers of geounits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from censafe.geography.area_lists import areas_of_list
from censafe.model.observer import SilentObserver
from censafe.planning.prices.extras import EstimatedTables, LinearWork
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.layout import level_rules
from censafe.products.topdown.intake.intake import open_intake
from censafe.products.topdown.plan import workloads
from censafe.products.topdown.table_estimates.choice import LOWER_LEVELS, TableChoice, table_choice
from censafe.products.topdown.table_estimates.estimates import TableEstimates

# Processor seconds of the linear estimates of synthetic states of 643,077 and 60,000 persons with one to five tables: by answer that is drawn and added up,
# by number of an estimator (of every pattern of budgets and facilities) and by pattern, which two threads share; by answer of one geounit to
# set up and by estimate with its variance, which they do not.
_BENCHMARK: Final = "rates of benchmarks/dhc_scale.py --like VT"
_ANSWER: Final = 4.5e-9
_NUMBER: Final = 32e-9
_PATTERN: Final = 3.3e-3
_SET_UP: Final = 0.5e-6
_ESTIMATE: Final = 25e-6
_CORES: Final = 2
# The same by answer that there is, drawn or not, where patterns are not known.
_ANY_ANSWER: Final = 4.2e-9
_ROW_BYTES: Final = 48
_FILE_BYTES: Final = 10_000
_DOUBLE: Final = 8
_PLURALS: Final = {"state": "states", "county": "counties", "tract": "tracts", "place": "places"}
_LEVEL_KINDS: Final = {"State": "state", "County": "county", "Tract": "tract"}
_BLOCKS_OF_A_GROUP: Final = 10_000  # the last digits of a geocode of 16 are those of the block


def _linear_work(
    choice: TableChoice, words: Sequence[str], areas: int, answers: Mapping[str, int], *, stored: bool
) -> LinearWork:
    """What is the same with data and without."""
    estimates = areas * sum(len(table.lines) for table in choice.tables)
    return LinearWork(
        tables=tuple(table.name for table in choice.tables),
        areas=" and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words),
        geounits=0,
        answers=answers,
        seconds=sum(answers.values()) * _ANY_ANSWER,
        benchmark=_BENCHMARK,
        estimates=estimates,
        file_bytes=_FILE_BYTES + estimates * _ROW_BYTES,
        scratch_bytes=None,
        stored=stored,
    )


def work_of_data(config: TopdownConfig, estimated: EstimatedTables, data: Path) -> LinearWork | None:
    """What a run over these data draws for its tables: by its blocks and facilities and by its exact totals, which it publishes, and by no count else."""
    choice = table_choice(config, estimated.tables, estimated.areas)
    if choice is None:
        return None
    with open_intake(data, config, ReadOptions()) as intake:
        if config.choices.production_spine and not intake.attribute_source:
            config = replace(config, choices=replace(config.choices, spine="standard"))
    with open_intake(data, config, ReadOptions()) as intake:
        public = intake.load().facts
    stored = config.choices.noisy_measurements != "lazy"
    observer = SilentObserver()
    estimates = TableEstimates(config, choice, public, observer, stored=stored)
    used = [(load, sums) for load in workloads(config) if (sums := estimates.sums(load)) is not None]
    areas, left_out = estimates.estimated()
    words = [
        f"{number:,} {kind if number == 1 else _PLURALS.get(kind, kind)}" for kind, number in areas.items()
    ]
    answers = {load.part.name: sums.answers(load) for load, sums in used}
    work = _linear_work(choice, words, sum(areas.values()), answers, stored=stored)
    geounits: dict[str, int] = {}
    for load, sums in used:
        geounits[load.histogram.name] = geounits.get(load.histogram.name, 0) + sums.geounits(load)
    # time of two threads on two cores
    patterns, numbers = np.sum([sums.patterns(load) for load, sums in used], axis=0)
    together = work.drawn * _ANSWER + float(numbers) * _NUMBER + float(patterns) * _PATTERN
    one_geounit = sum({load.histogram.name: load.answers for load, _ in used}.values())
    seconds = one_geounit * _SET_UP + work.estimates * _ESTIMATE + together / _CORES
    return replace(
        work,
        geounits=max(geounits.values(), default=0),
        seconds=seconds,
        scratch_bytes=0 if stored else _DOUBLE * sum(int(np.prod(sums.shape(load))) for load, sums in used),
        known=True,
        left_out=left_out,
        remarks=tuple(observer.remarks),
        size=public.spine.levels[-1].nodes,
    )


def most_work(
    config: TopdownConfig, estimated: EstimatedTables, geounits: Mapping[str, int]
) -> LinearWork | None:
    """What a run draws for its tables at most, if areas divide every geounit above the block groups; of those below about as many as a list needs."""
    choice = table_choice(config, estimated.tables, estimated.areas)
    if choice is None:
        return None
    stored = config.choices.noisy_measurements != "lazy"
    loads = [load for load in workloads(config) if choice.of(load.histogram.name)]
    used = dict(geounits) if stored else {name: n for name, n in geounits.items() if name not in LOWER_LEVELS}
    areas = {kind: geounits.get(level, 0) for level, kind in _LEVEL_KINDS.items() if level in geounits}
    lower: Mapping[str, int] = {}
    if estimated.areas is not None:
        listed, lower = _listed_geounits(config, estimated.areas)
        areas |= listed
        used |= (
            {} if stored else {name: min(n, geounits[name]) for name, n in lower.items() if name in geounits}
        )
    answers = {
        load.part.name: load.answers * used[load.level.name] for load in loads if load.level.name in used
    }
    words = list(dict.fromkeys(_PLURALS.get(kind, kind) for kind in (*_PLURALS, *areas)))
    work = _linear_work(choice, words, sum(areas.values()), answers, stored=stored)
    return replace(
        work,
        geounits=sum(used.values()),
        below=0 if stored else sum({load.histogram.name: load.answers for load in loads}.values()),
        lower_geounits=sum(used[name] for name in lower if name in used),
    )


def _listed_geounits(config: TopdownConfig, path: Path) -> tuple[dict[str, int], dict[str, int]]:
    """Areas of a list by kind, and how many standard block groups and blocks it divides, where blocks have census codes."""
    form = level_rules(config)[-1].form
    blocks, kinds = areas_of_list(path, form)
    areas = {kind.name: len(kind.codes) for kind in kinds}
    starts = np.flatnonzero(np.diff(blocks // _BLOCKS_OF_A_GROUP, prepend=-1))
    cut = np.zeros(len(starts), np.bool_)
    for kind in kinds:
        cut |= np.minimum.reduceat(kind.area_of, starts) < np.maximum.reduceat(kind.area_of, starts)
    sizes = np.diff(np.append(starts, len(blocks)))
    return areas, {"Block_Group": int(cut.sum()), "Block": int(sizes[cut].sum())}
