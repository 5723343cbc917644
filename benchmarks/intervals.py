"""Seconds of intervals for a state, and how often intervals hold the truth.

    python benchmarks/intervals.py [--persons N] [--states CODE,...] [--config NAME] [--set KEY=VALUE] [--data DIR] [--seed S] [--json]
    python benchmarks/intervals.py --coverage DRAWS [--published DRAWS] [--persons N] [--config NAME] [--set KEY=VALUE] ...
    python benchmarks/intervals.py --write coverage [--share FRACTION] [--seed S]

Makes block histograms of a synthetic state, or takes those that an earlier call left in DIR. Without `--coverage` it measures them once
with a test key and makes the unbiased estimates and their variances for all default queries at the areas of every kind: the
published levels, and 200 areas that follow no level (random runs of 40 to 400 neighboring blocks). `seconds_tree` is the CPU
time of the linear estimates from below, `seconds_areas` that of values and variances of all areas, `peak_gib` the peak memory
of the process.

With `--coverage` it measures the state DRAWS times with as many test keys and counts how often the unbiased 90% and 95% intervals
hold the true count, by kind of area and query; counts that are published exactly have no interval and do not count. The standard
error is that of the mean over draws, so that counts of one draw may depend on each other. With `--published` it also estimates the
state so many times, simulates the intervals of the published counts with 10 further runs each, and counts the same.
Unlike a release, all of this knows the truth.

With `--write coverage` it counts so for all of the three tables of docs/intervals.md, and writes these; `--share` takes so much of their draws.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import NormalDist
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.sparse import csr_array

from censafe.cli.options import parse_settings
from censafe.estimation.topdown.intervals.areas import AreaSet, area_estimates, area_sets
from censafe.estimation.topdown.intervals.simulated import ErrorClasses
from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.whole_tree.information import linear_tree
from censafe.estimation.topdown.whole_tree.sums import Functionals
from censafe.geography.spines.choice import standard_levels
from censafe.model import SparseLevel
from censafe.model.observer import SilentObserver
from censafe.population.synthetic.blocks import synthesize_histograms
from censafe.products.run.account import MeasurementStore
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.folder import stored_files
from censafe.products.topdown.intake.intake import BlockIntake, Loaded
from censafe.products.topdown.intervals import IntervalQuery, chosen_queries, counts_of
from censafe.products.topdown.measuring import measure_stored
from censafe.products.topdown.plan import plan_release, workloads
from censafe.products.topdown.rehearsal import TestMeasurementStore, further_runs, rehearse
from harness import ROOT, gib, markdown, parser_of, population, report, write_table

LEVELS = (0.9, 0.95)
OFF_SPINE = "off the spine"
FURTHER = 10
SCRIPT, PAGE = "benchmarks/intervals.py", "docs/intervals.md"
KINDS = [
    *(levels := ("US", "State", "County", "Tract", "Block_Group", "Block")),
    *(f"spine {level}" for level in levels[:-1]),
    OFF_SPINE,
]
SPINES = {"standard": "standard", "American Indian parts": "aian", "optimized": "optimized"}
DRAWS, DRAWS_OF_UNITS, DRAWS_OF_SIXTEEN, PUBLISHED = 400, 3_000, 1_500, 20
SMALL = 0.2  # standard error of a row that many draws decide
Rows = list[dict[str, Any]]


class Hits:
    """Shares of intervals that held the truth, by what they are of: one share a draw and level."""

    def __init__(self) -> None:
        self.shares: dict[tuple[str, str, str], list[tuple[float, ...]]] = defaultdict(list)
        self.counts: dict[tuple[str, str, str], int] = {}

    def add(self, key: tuple[str, str, str], covered: list[np.ndarray]) -> None:
        if covered[0].size:
            self.shares[key].append(tuple(float(one.mean()) for one in covered))
            self.counts[key] = covered[0].size

    def rows(self) -> Iterator[dict[str, Any]]:
        for (interval, histogram, kind), shares in self.shares.items():
            table = np.array(shares)
            middle = 100 * table.mean(axis=0)
            error = 100 * table.std(axis=0, ddof=1) / np.sqrt(len(table))
            yield {
                "interval": interval,
                "histogram": histogram,
                "kind": kind,
                "counts": self.counts[interval, histogram, kind],
                "draws": len(table),
                "covered90": round(float(middle[0]), 2),
                "error90": round(float(error[0]), 2),
                "covered95": round(float(middle[1]), 2),
                "error95": round(float(error[1]), 2),
            }


def sixteen(folder: Path, target: Path) -> Path:
    """The same persons under the schema of blocks-16: group quarters left out, eight groups of Hispanic origin and race."""
    rows = pq.read_table(folder / "histogram.parquet")
    _, adult, hispanic, race = np.unravel_index(rows["cell"].to_numpy(), (8, 2, 2, 63))
    cell = adult * 8 + np.where(hispanic == 1, 0, np.minimum(race, 6) + 1)
    table = pa.table(
        {
            "geocode": rows["geocode"].cast(pa.string()),
            "cell": pa.array(cell, pa.int32()),
            "count": rows["count"],
        }
    )
    summed = table.group_by(["geocode", "cell"]).aggregate([("count", "sum")])
    target.mkdir()
    pq.write_table(summed.rename_columns(["geocode", "cell", "count"]).sort_by([("geocode", "ascending"), ("cell", "ascending")]),
                   target / "histogram.parquet")  # fmt: skip
    pq.write_table(pq.read_table(folder / "units.parquet", columns=["geocode"]), target / "units.parquet")
    return target


def opened(folder: Path, arguments: argparse.Namespace) -> tuple[TopdownConfig, Loaded]:
    data = folder / f"state-{arguments.persons}-{arguments.states.replace(',', '-')}-seed-{arguments.seed}"
    states = tuple(arguments.states.split(","))
    population(
        data,
        synthesize_histograms,
        persons=arguments.persons,
        states=states,
        seed=arguments.seed,
        layout="pl94",
    )
    config = load_config(arguments.config, parse_settings(tuple(arguments.settings)))
    if arguments.config == "blocks-16":
        own = data.with_name(f"{data.name}-sixteen")
        data = own if own.exists() else sixteen(data, own)
    with BlockIntake(data, config, ReadOptions()) as intake:
        return config, intake.load()


def off_spine(blocks: int, areas: int, seed: int) -> np.ndarray:
    """Random runs of neighboring blocks that follow no level, -1 between them."""
    rng = np.random.default_rng(seed)
    area_of = np.full(blocks, -1)
    most = max(2, min(400, blocks // 4))
    for area in range(areas):
        size = int(rng.integers(max(1, most // 10), most))
        first = int(rng.integers(0, max(1, blocks - size)))
        inside = slice(first, first + size)
        area_of[inside] = np.where(area_of[inside] < 0, area, area_of[inside])
    return np.unique(area_of, return_inverse=True)[1].ravel() - int((area_of < 0).any())


def all_sets(loaded: Loaded, areas: int, seed: int) -> tuple[AreaSet, ...]:
    run = loaded.facts.run
    area_of = off_spine(run.standard.leaf.nodes, areas, seed)
    number = int(area_of.max()) + 1
    codes = np.array([f"{area:04d}" for area in range(number)])
    listed = AreaSet(OFF_SPINE, codes, np.full(number, ""), area_of)
    return (*area_sets(run, None, SilentObserver()), listed)


def objectives(config: TopdownConfig, loaded: Loaded, histogram: str, seed: int) -> list[LevelObjective]:
    store, facts = cast(MeasurementStore, TestMeasurementStore(plan_release(config), seed)), loaded.facts
    levels = []
    loads = [load for load in workloads(config) if load.histogram.name == histogram]
    for load, counts in zip(loads, loaded.exact[histogram], strict=True):
        budgets = facts.budgets[load.part.name]
        measured = measure_stored(load, counts, budgets, store, stored_files(load, facts))
        levels.append(LevelObjective.measured([query.label for query in load.queries], measured))
    return levels


def weights_of(queries: tuple[IntervalQuery, ...]) -> csr_array:
    return csr_array(np.vstack([query.weights for query in queries]))


def speed(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    config, loaded = opened(folder, arguments)
    run = loaded.facts.run
    sets = all_sets(loaded, 200, arguments.seed)
    tree_seconds = area_seconds = 0.0
    rows = 0
    for name, queries in chosen_queries(config, ()).items():
        own = objectives(config, loaded, name, arguments.seed)
        started = time.process_time()
        tree = linear_tree(config.histogram(name), loaded.facts, own)
        tree_seconds += time.process_time() - started
        started = time.process_time()
        functionals = Functionals.of(tree.blocks, weights_of(queries))
        rows += sum(one.values.size for one in area_estimates(tree, functionals, run, sets))
        area_seconds += time.process_time() - started
    return {
        "persons": arguments.persons,
        "blocks": run.standard.leaf.nodes,
        "geounits": sum(level.nodes for level in run.spine.levels),
        "areas": sum(one.number for one in sets),
        "rows": rows,
        "seconds_tree": round(tree_seconds, 2),
        "seconds_areas": round(area_seconds, 2),
        "peak_gib": round(gib(resource.getrusage(resource.RUSAGE_SELF)), 3),
    }


def truths(config: TopdownConfig, loaded: Loaded) -> Mapping[str, SparseLevel]:
    by_histogram = {}
    for histogram in config.histograms:
        exact = standard_levels(
            loaded.facts.run, loaded.exact[histogram.name], histogram.schema.schema.cells
        )[-1]
        by_histogram[histogram.name] = SparseLevel(exact.geounits, exact.node_ptr, exact.cell, exact.count)
    return by_histogram


def coverage(folder: Path, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    config, loaded = opened(folder, arguments)
    sets = all_sets(loaded, 30, arguments.seed)
    true, hits = truths(config, loaded), Hits()
    for name, queries in chosen_queries(config, ()).items():
        weights = weights_of(queries)
        blocks = counts_of(true[name], weights)
        for draw in range(arguments.coverage):
            own = objectives(config, loaded, name, 1000 * arguments.seed + draw)
            tree = linear_tree(config.histogram(name), loaded.facts, own)
            functionals = Functionals.of(tree.blocks, weights)
            for estimates in area_estimates(tree, functionals, loaded.facts.run, sets):
                uncertain = estimates.variances > 0
                error = np.abs(estimates.values - estimates.areas.sums(blocks))[uncertain]
                spread = np.sqrt(estimates.variances[uncertain])
                covered = [error <= NormalDist().inv_cdf(0.5 + level / 2) * spread for level in LEVELS]
                hits.add(("unbiased", name, estimates.areas.kind), covered)
    for draw in range(arguments.published):
        _published(config, loaded, sets, true, 7000 + 1000 * arguments.seed + draw, hits)
    return list(hits.rows())


def _published(
    config: TopdownConfig,
    loaded: Loaded,
    sets: tuple[AreaSet, ...],
    true: Mapping[str, SparseLevel],
    seed: int,
    hits: Hits,
) -> None:
    """One published file, the simulated intervals of its counts, and how many of them hold the truth."""
    published = rehearse(config, loaded, seed).levels
    queries = chosen_queries(config, ())
    weights = {name: weights_of(own) for name, own in queries.items()}
    runs = list(further_runs(config, loaded.facts, published, runs=FURTHER, seed=seed, workers=1))
    for name, own in queries.items():
        truth, counts = (counts_of(level, weights[name]) for level in (true[name], published[name][-1]))
        repeated = [counts_of(run[name], weights[name]) for run in runs]
        for areas in sets:
            covered: list[list[np.ndarray]] = [[] for _ in LEVELS]
            first = 0
            for query in own:
                part = slice(first, first + len(query.labels))
                first = part.stop
                here, is_true = areas.sums(counts[:, part]), areas.sums(truth[:, part])
                classes = ErrorClasses()
                for further in repeated:
                    classes.add(here, areas.sums(further[:, part]))
                for place, level in enumerate(LEVELS):
                    low, high = classes.ends(here, level)
                    uncertain = (low < high) | (is_true != here)
                    covered[place].append(((low <= is_true) & (is_true <= high))[uncertain])
            hits.add(("published", name, areas.kind), [np.concatenate(parts) for parts in covered])


def page_tables(folder: Path, arguments: argparse.Namespace) -> dict[str, list[str]]:
    """The lines of the three tables of the page, by name."""

    def counted(draws: int = 0, published: int = 0, config: str = "pl94-us", **settings: str) -> Rows:
        choices = {
            "states": "04",
            "persons": 20_000,
            "config": config,
            "settings": [f"{name}={value}" for name, value in settings.items()],
            "coverage": max(2, round(draws * arguments.share)) if draws else 0,
            "published": max(2, round(published * arguments.share)) if published else 0,
        }
        return coverage(folder, argparse.Namespace(**vars(arguments) | choices))

    persons = {name: counted(DRAWS, spine=spine, measure="persons") for name, spine in SPINES.items()}
    others = {
        "housing units, optimized spine": counted(DRAWS_OF_UNITS, spine="optimized", measure="units"),
        "`blocks-16`, standard spine": counted(DRAWS_OF_SIXTEEN, config="blocks-16"),
    }
    published = counted(published=PUBLISHED, spine="optimized")
    by_histogram = {
        name: [row for row in published if row["histogram"] == name]
        for name in dict.fromkeys(row["histogram"] for row in published)
    }
    return {
        "interval-coverage-persons": [*coverage_table(persons), "", distances(persons)],
        "interval-coverage-others": [*coverage_table(others), "", distances(others)],
        "interval-coverage-published": coverage_table(by_histogram),
    }


def coverage_table(columns: Mapping[str, Rows]) -> list[str]:
    """Share of intervals that held the truth with its standard error, by kind of area, two levels a column."""
    header = ["kind of area"]
    for name, rows in columns.items():
        header += [f"{name}, {rows[0]['draws']:,} draws, 90%", "95%"]
    cells = {name: {row["kind"]: row for row in rows} for name, rows in columns.items()}
    lines = []
    for kind in KINDS:
        own = [one.get(kind) for one in cells.values()]
        if any(own):
            shares = [[f"{row[f'covered{level}']:.2f} ± {row[f'error{level}']:.2f}" for level in (90, 95)] if row else ["", ""] for row in own]  # fmt: skip
            lines.append([kind, *(cell for pair in shares for cell in pair)])
    return markdown(header, lines, number="---")


def distances(columns: Mapping[str, Rows]) -> str:
    """How far from nominal the shares are at most: of all rows in standard errors, of those with small ones in points."""
    shares = [
        (abs(row[f"covered{level}"] - level), row[f"error{level}"])
        for rows in columns.values()
        for row in rows
        for level in (90, 95)
        if row[f"error{level}"]
    ]
    points = max((distance for distance, error in shares if error < SMALL), default=0.0)
    errors = max(distance / error for distance, error in shares)
    return f"Farthest from nominal: {errors:.1f} standard errors, of {len(shares)} shares; {points:.2f} points, of those with a standard error below {SMALL}."


def text(measured: Any) -> Iterator[str]:
    if isinstance(measured, dict):
        yield f"Speed({', '.join(f'{name}={value}' for name, value in measured.items())})"
        return
    yield f"{'interval':<11}{'histogram':<10}{'kind':<18}{'counts':>8}{'draws':>7}{'90%':>8}{'s.e.':>6}{'95%':>8}{'s.e.':>6}"
    form = "{interval:<11}{histogram:<10}{kind:<18}{counts:>8,}{draws:>7,}{covered90:>8.2f}{error90:>6.2f}{covered95:>8.2f}{error95:>6.2f}"
    yield from (form.format(**row) for row in measured)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--persons", type=int, default=643_077)
    parser.add_argument("--states", default="50")
    parser.add_argument("--config", default="pl94-us")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--coverage", type=int, default=0, metavar="DRAWS")
    parser.add_argument("--published", type=int, default=0, metavar="DRAWS")
    parser.add_argument(
        "--share", type=float, default=1.0, metavar="FRACTION", help="of the draws of --write coverage"
    )
    arguments = parser.parse_args()
    if arguments.write:
        if arguments.write != "coverage":
            parser.error(f"--write coverage is what this benchmark writes, into {PAGE}")
        with TemporaryDirectory() as folder:
            tables = page_tables(arguments.data or Path(folder), arguments)
        for name, lines in tables.items():
            write_table(ROOT / PAGE, name, SCRIPT, lines)
        return
    report(arguments, coverage if arguments.coverage or arguments.published else speed, text)


if __name__ == "__main__":
    main()
