"""CONFIDENTIAL. Many runs of TopDown over one input, in parallel, each stored so that nothing is run twice."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from censafe.evaluation.counts.pairing import Pair, PublishedRun
from censafe.evaluation.topdown.population import EvaluatedPopulation, PublishedSource, open_evaluated
from censafe.model.observer import Observer
from censafe.model.processes import process_pool
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.rehearsal import at_loss, rehearse, rehearse_results
from censafe.publication.microdata.histograms import read_histograms, write_histograms
from censafe.publication.stamps import STAMP

_SEEDS = 1_000_000
_PAYS = 20.0  # seconds


@dataclass(frozen=True)
class SourceOf:
    """Where a population comes from, so that another process can open it.

    Args:
        settings: overrides, as sorted pairs.
    """

    config: str
    data: Path
    settings: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, config: str, data: Path, settings: Mapping[str, str]) -> SourceOf:
        """The same from a mapping."""
        return cls(config, data, tuple(sorted(settings.items())))

    def open(self, reading: ReadOptions) -> EvaluatedPopulation:
        """Read it."""
        return open_evaluated(self.config, self.data, dict(self.settings), reading)


RunSource = SourceOf | PublishedSource
"""Opens a population, in any process; hashable and picklable."""


@dataclass(frozen=True)
class RunSeries:
    """Independent runs with test keys.

    Args:
        seed: of the test keys, and of what the runs are compared with.
    """

    runs: int
    seed: int
    workers: int

    def requests(self, loss: Fraction) -> tuple[RunRequest, ...]:
        """The runs of one loss, numbered from 1."""
        return tuple(RunRequest(loss, run + 1, self.seed) for run in range(self.runs))


@dataclass(frozen=True)
class RunRequest:
    """One run of TopDown."""

    loss: Fraction
    run: int
    seed: int

    @property
    def test_key(self) -> int:
        """Seed of the run's test key."""
        return self.seed * _SEEDS + self.run

    def path(self, folder: Path, histogram: str) -> Path:
        """Where the run's block histograms are stored."""
        return folder / f"{histogram}_{text_of_loss(self.loss)}_run{self.run}.parquet"


def text_of_loss(loss: Fraction) -> str:
    """A loss as a decimal, or as a fraction where that is shorter.

    Example:
        >>> text_of_loss(Fraction(1, 4)), text_of_loss(Fraction(293764, 114921))
        ('0.25', '2.55623')
    """
    return f"{float(loss):g}"


def run_all(
    population: EvaluatedPopulation,
    source: RunSource,
    requests: Sequence[RunRequest],
    folder: Path,
    *,
    workers: int,
    observer: Observer,
) -> None:
    """Make every run that is not in the folder yet."""
    names = [histogram.name for histogram in population.config.histograms]
    missing = [one for one in requests if not all(one.path(folder, name).exists() for name in names)]
    if len(missing) < len(requests):
        observer.remark(f"{len(requests) - len(missing)} of {len(requests)} runs are there already.")
    folder.mkdir(parents=True, exist_ok=True)
    if missing:
        with observer.stage(f"{len(missing)} runs"):
            for done in _finished_runs(population, source, missing, folder, workers):
                observer.advance(done / len(missing), len(missing), "runs")


def _finished_runs(
    population: EvaluatedPopulation,
    source: RunSource,
    missing: Sequence[RunRequest],
    folder: Path,
    workers: int,
) -> Iterator[int]:
    """Make runs, here or in further processes; yields how many are done."""
    started = time.perf_counter()
    left = list(missing)
    while left and (workers == 1 or not _worth_it(started, len(missing), len(left))):
        _run(population, left.pop(0), folder)
        yield len(missing) - len(left)
    if not left:
        return
    done = len(missing) - len(left)
    with process_pool(min(workers, len(left))) as pool:
        futures = [pool.submit(_run_elsewhere, source, request, folder) for request in left]
        try:
            for number, future in enumerate(as_completed(futures), 1):
                future.result()
                yield done + number
        finally:
            for future in futures:
                future.cancel()


def _worth_it(started: float, number: int, left: int) -> bool:
    """Whether the rest takes so long that it pays to start further processes, which have to reread the input."""
    done = number - left
    return bool(done) and (time.perf_counter() - started) / done * left > _PAYS


def read_runs(
    pair: Pair, histogram: str, requests: Sequence[RunRequest], folder: Path
) -> tuple[PublishedRun, ...]:
    """The stored runs of one histogram, as the published side of a pair."""
    geounits = pair.spine.leaf.geounits
    return tuple(
        PublishedRun(
            f"{text_of_loss(request.loss)}/{request.run}",
            read_histograms(request.path(folder, histogram), geounits),
            setting=text_of_loss(request.loss),
        )
        for request in requests
    )


def _run(population: EvaluatedPopulation, request: RunRequest, folder: Path) -> None:
    config = at_loss(population.config, request.loss)
    sources = {name: (one.config, one.loaded) for name, one in population.published.items()}
    results = rehearse_results(sources, request.test_key)
    rehearsal = rehearse(config, population.loaded, request.test_key, results=results)
    for histogram in config.histograms:
        path = request.path(folder, histogram.name)
        if not path.exists():
            write_histograms(
                path, rehearsal.levels[histogram.name][-1], schema=histogram.schema.name, stamp=STAMP
            )


@functools.lru_cache(maxsize=1)
def _opened(source: RunSource) -> EvaluatedPopulation:
    """The population of a further process, which serves one evaluation and opens it once."""
    return source.open(ReadOptions())


def _run_elsewhere(source: RunSource, request: RunRequest, folder: Path) -> None:
    _run(_opened(source), request, folder)
