"""CONFIDENTIAL. ``censafe attack rank``: records of some areas ranked from half of their records' tables, and rankings by the tables of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.attack.pages import attack_lines
from censafe.attack.people import AttackedRecords
from censafe.attack.ranking.generators import GeneratorChoices, RankedTypes, rank_types
from censafe.attack.reading import read_people
from censafe.attack.results import CENSUS_WORDS, ComparisonWords
from censafe.attack.study import AttackChoices, share_text, workload_of, write_attack
from censafe.attack.tables import CountedLines, tabulate_lines
from censafe.errors import DataError, UsageError
from censafe.evaluation.confidential import evaluation_folder
from censafe.evaluation.outputs import (
    Evaluated,
    number_text,
    read_evaluation,
    read_frame,
)
from censafe.evaluation.pages.page import Page, Rows, exhibit
from censafe.model.observer import Observer, work_done
from censafe.publication.pages import Exhibit

ATTACK_SOURCE: Final = "tables"
_DIGITS: Final = {"block": 15, "tract": 11, "county": 5, "state": 2}
_FEWEST: Final = 10
_MOST: Final = 100_000
_STEPS: Final = tuple(range(10, 101, 10))
_Ints = NDArray[np.int64]


@dataclass(frozen=True)
class RankChoices:
    """Which areas are attacked, and how.

    Args:
        areas: how many, from the smallest of ten persons to the largest in equal steps.
    """

    attack: AttackChoices
    generators: GeneratorChoices
    level: str = "block"
    areas: int = 10

    def __post_init__(self) -> None:
        if self.areas < 1:
            raise UsageError(f"areas: {self.areas} is too few; allowed: 1 and more")


@dataclass(frozen=True, eq=False)
class _Ranked:
    """An area after the attack."""

    area: str
    persons: int
    true: _Ints
    ranking: RankedTypes
    sources: Mapping[str, _Ints] = field(repr=False)


def rank_records_of(data: Path, out: Path, choices: RankChoices, observer: Observer) -> Evaluated:
    """Rank types of persons of some areas from tables of half of their records, and compare with rankings by the records of others.

    Source: attack.md 15.
    """
    if choices.level not in ("block", "tract"):
        raise UsageError(f"level: {choices.level!r} is none; allowed: block, tract")
    workload = workload_of(choices.attack)
    with evaluation_folder(out, {"kind": "ranking"}):
        with observer.stage("read persons"):
            truth = read_people(data)
        with observer.stage("rank"):
            around = {
                level: np.unique(truth.blocks[truth.block].astype(f"U{digits}"), return_inverse=True)[
                    1
                ].ravel()
                for level, digits in _DIGITS.items()
                if digits <= _DIGITS[choices.level]
            }
            names = np.unique(truth.blocks[truth.block].astype(f"U{_DIGITS[choices.level]}"))
            every = ranked_areas(truth, workload, (names, names.astype(np.int64)), around, choices, observer)
        return write_ranking(data, out, truth, workload, every, choices)


def write_ranking(
    data: Path,
    out: Path,
    truth: AttackedRecords,
    workload: CountedLines,
    every: Sequence[_Ranked],
    choices: RankChoices,
    words: ComparisonWords = CENSUS_WORDS,
) -> Evaluated:
    """Write the rankings of some areas."""
    frames = {
        "match_rates": _rates(every),
        "areas": pa.table(
            {
                "area": [one.area for one in every],
                "persons": [one.persons for one in every],
                "distinct": [len(one.true) for one in every],
                "candidates": [len(one.ranking.types) for one in every],
                "line_error": [one.ranking.error for one in every],
            }
        ),
        "ranked": _ranked_frame(every, workload),
    }
    document = {
        "kind": "ranking",
        "data": str(data),
        "persons": len(truth),
        "level": choices.level,
        "areas": len(every),
        "attacked": sum(one.persons for one in every),
        "generators": choices.generators.generators,
        "rows": choices.generators.rows,
        "steps": choices.generators.steps,
        "seed": choices.attack.seed,
    }
    lines = _summary(frames["match_rates"])
    return write_attack(out, frames, document, ranking_page, lines, parquet=("ranked",), words=words)


def ranked_areas(
    truth: AttackedRecords,
    workload: CountedLines,
    areas: tuple[NDArray[np.str_], _Ints],
    around: Mapping[str, _Ints],
    choices: RankChoices,
    observer: Observer,
) -> list[_Ranked]:
    """Some areas after the attack.

    Args:
        areas: codes of the areas, and a number of each from which draws begin, each of shape (areas,).
        around: area of every person by level, the attacked one first, each of shape (n,).
    """
    names, seeds = areas
    area, *wider = around.values()
    population = np.bincount(area, minlength=len(names))
    large = np.argsort(population, kind="stable")
    large = large[population[large] >= _FEWEST]
    if not len(large):
        raise DataError(
            f"no {choices.level} has {_FEWEST} persons, and half of an area's records are attacked; fix: give more records, or a wider level"
        )
    places = np.unique(np.rint(np.linspace(0, len(large) - 1, choices.areas)).astype(np.int64))
    types, size = workload.types(truth), workload.matrix.shape[0]
    done, ranked = work_done(observer, len(places), "areas"), []
    for number, place in enumerate(large[places].tolist(), 1):
        draw = np.random.default_rng([choices.attack.seed, int(seeds[place])])
        order = draw.permutation(np.flatnonzero(area == place))
        attacked, other = order[: (len(order) + 1) // 2], order[(len(order) + 1) // 2 :]
        values = tabulate_lines(workload, truth.take(attacked), np.zeros(len(attacked), np.int64), 1)[0]
        ranking = rank_types(workload, values, choices.generators, draw)
        own = np.bincount(types[attacked], minlength=size)
        sources = {ATTACK_SOURCE: ranking.types, "other half of the area": _frequent(types[other], draw)}
        for level, within in zip([*around][1:], wider, strict=True):
            inside = within == within[order[0]]
            if inside.all():
                break
            sources[level] = _frequent(types[inside], draw, own)
        sources["all records"] = _frequent(types, draw, own)
        ranked.append(_Ranked(str(names[place]), len(attacked), np.flatnonzero(own), ranking, sources))
        done(number)
    return ranked


def _frequent(types: _Ints, draw: np.random.Generator, without: _Ints | None = None) -> _Ints:
    """Types from the most frequent, ties at random; the attacked records do not count."""
    counts = np.bincount(types, minlength=0 if without is None else len(without))
    counts = counts if without is None else counts - without
    there = np.flatnonzero(counts > 0)
    return there[np.lexsort((draw.random(len(there)), -counts[there]))]


def _rates(every: Sequence[_Ranked]) -> pa.Table:
    """Match rate by source and number of types that are looked at, mean over areas."""
    rows: dict[str, list[Any]] = {
        name: [] for name in ("source", "distinct_percent", "match_rate", "candidates")
    }
    for source in every[0].sources:
        for step in _STEPS:
            shares, looked = [], []
            for ranked in every:
                top = ranked.sources[source][: int(np.ceil(step / 100 * len(ranked.true)))]
                looked.append(len(top))
                if len(top):
                    shares.append(100 * float(np.isin(top, ranked.true).mean()))
            own = (source, step, float(np.mean(shares)) if shares else None, float(np.mean(looked)))
            for column, value in zip(rows.values(), own, strict=True):
                column.append(value)
    return pa.table(rows)


def _ranked_frame(every: Sequence[_Ranked], workload: CountedLines) -> pa.Table:
    tables = []
    for ranked in every:
        types = ranked.ranking.types[:_MOST]
        tables.append(
            pa.table(
                {
                    "area": [ranked.area] * len(types), "rank": np.arange(1, len(types) + 1), **workload.type_columns(types),
                    "frequency": ranked.ranking.frequency[:_MOST], "matched": np.isin(types, ranked.true).astype(np.int64),
                }
            )
        )  # fmt: skip
    return pa.concat_tables(tables)


def _summary(rates: pa.Table) -> tuple[str, ...]:
    rows = [row for row in rates.to_pylist() if row["distinct_percent"] == _STEPS[-1]]
    return (
        "CONFIDENTIAL. Of the most frequent types of persons, as many as there are, an attacked record has, by what the ranking is by:",
        *(f"  {row['source']}: {share_text(row['match_rate'])}" for row in rows),
    )


def ranking_page(folder: Path) -> Page:
    """The page of a folder that ``attack rank`` wrote."""
    document = read_evaluation(folder)
    rates = read_frame(folder, "match_rates", ("source",)).to_pylist()
    last = {row["source"]: row["match_rate"] for row in rates if row["distinct_percent"] == 100}
    own, *others = last
    best = max(others, key=lambda source: last[source] or 0)
    level = (
        f"{document['level']}{'s' if document['areas'] > 1 else ''}"
        if document["level"] in _DIGITS
        else f"areas ({document['level']})"
    )
    return Page(
        title="Who is in the data, without a solver?",
        kicker="Ranking of candidate records",
        answer=[
            f"In {document['areas']:,} {level}, {number_text(last[own])}% of the types of persons that are ranked first from the tables belong to an attacked "
            f"record; of those ranked by the records of others, at best {number_text(last[best])}% ({best}).",
        ],
        facts=[
            ("Attacked records", f"{document['attacked']:,}", f"half of the records of {document['areas']:,} {level}"),
            ("Relaxed data sets", f"{document['generators']:,}", f"of {document['rows']:,} rows, {document['steps']:,} steps each"),
        ],
        exhibits=[_ranking_exhibit(rates), _areas_exhibit(read_frame(folder, "areas", ("area",)).to_pylist())],
        settings=[("Records", document["data"]), ("Seed", str(document["seed"]))],
    )  # fmt: skip


def _ranking_exhibit(rates: Rows) -> Exhibit:
    sources = list(dict.fromkeys(row["source"] for row in rates))
    steps = list(dict.fromkeys(row["distinct_percent"] for row in rates))
    match_rate = {(row["source"], row["distinct_percent"]): row["match_rate"] for row in rates}
    series = {source: [match_rate[source, step] for step in steps] for source in sources}
    lines = [[str(step), *(number_text(match_rate[source, step]) for source in sources)] for step in steps]
    figure = attack_lines(
        [str(step) for step in steps],
        series,
        "types of attacked records, percent",
        "types looked at, percent of those there are",
    )
    columns = ("types looked at, percent", *sources)
    return exhibit("ranking.ranking", figure=figure, columns=columns, rows=lines)


def _areas_exhibit(areas: Rows) -> Exhibit:
    lines = [
        [row["area"], *(f"{row[name]:,}" for name in ("persons", "distinct", "candidates")), number_text(row["line_error"], 2)]
        for row in areas
    ]  # fmt: skip
    return exhibit("ranking.areas", rows=lines)
