"""CONFIDENTIAL. The input of TopDown as evaluations use it, read once, and many runs over it, in parallel, each stored so that nothing is run twice."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from censafe.errors import UsageError
from censafe.evaluation.counts.pairing import Pair, PublishedRun
from censafe.geography.identifiers import AreaNames
from censafe.geography.spines.choice import standard_levels
from censafe.model import ExactHistograms
from censafe.model.observer import Observer
from censafe.model.processes import process_pool
from censafe.model.topdown.histograms import HistogramSchema, MeasuredHistogram
from censafe.privacy.keys import TestKey, keyed_commitment
from censafe.products.run.folder import hash_files
from censafe.products.run.options import ReadOptions, stored_names
from censafe.products.topdown.configuration.config import TopdownConfig, require_free
from censafe.products.topdown.configuration.layout import published_levels
from censafe.products.topdown.configuration.outputs import outputs_of
from censafe.products.topdown.files import area_names
from censafe.products.topdown.folder import RUN_FACTS
from censafe.products.topdown.intake.intake import Loaded, PublishedIntake, load_for_data, open_intake
from censafe.products.topdown.plan import configuration_of_run
from censafe.products.topdown.rehearsal import at_loss, rehearse, rehearse_results
from censafe.publication.manifest import Manifest, read_manifest, verify_outputs
from censafe.publication.microdata.histograms import read_histograms, write_histograms
from censafe.publication.stamps import STAMP


@dataclass(frozen=True)
class PublishedSource:
    """The folder of a finished run."""

    folder: Path

    def manifest(self) -> Manifest:
        """The manifest of the run."""
        manifest = read_manifest(self.folder / "manifest.json")
        if manifest.plan.product != "topdown":
            raise UsageError(
                f"{self.folder} is a run of {manifest.plan.product}; its margins of error are in its tables. "
                "Name the folder of a topdown run."
            )
        return manifest

    def open(self, reading: ReadOptions) -> EvaluatedPopulation:
        """Published histograms and exact figures of the run, in the place of records."""
        manifest = self.manifest()
        if not all((self.folder / name).exists() for name in RUN_FACTS):
            raise UsageError(
                f"{self.folder} did not keep its geography and configuration; give a finished run on records, not estimates from files of others."
            )
        with reading.observer.stage("read"):
            names = {
                name: digest for name, digest in manifest.outputs.items() if not name.startswith("tables")
            }
            verify_outputs(self.folder, replace(manifest, parts=(), outputs=names))
            config = configuration_of_run(self.folder, manifest)
            require_free(config, "further runs on published figures")
        with PublishedIntake(self.folder, config, reading) as intake:
            loaded = intake.load()
        names_of_run = stored_names(None, self.folder, manifest, census=area_names(config).census)
        return _evaluated(config, loaded, manifest.plan.digest(), area_names(config, names_of_run))


@dataclass(frozen=True)
class ComparedCharacteristic:
    """Something that is counted."""

    query: str
    words: str


@dataclass(frozen=True, eq=False)
class EvaluatedPopulation:
    """CONFIDENTIAL. One input and its configuration.

    Args:
        pairs: by histogram, the truth over the standard levels, without any published run.
        published: by name of a result that constraints hold to, the same records as the input of the run that publishes it.
    """

    config: TopdownConfig
    loaded: Loaded = field(repr=False)
    exact: Mapping[str, tuple[ExactHistograms, ...]] = field(repr=False)
    pairs: Mapping[str, Pair] = field(repr=False)
    commitment: str
    names: AreaNames = field(default_factory=AreaNames, repr=False)
    published: Mapping[str, EvaluatedPopulation] = field(default_factory=dict, repr=False)

    @property
    def main(self) -> MeasuredHistogram:
        """The histogram of persons: the first one."""
        return self.config.histograms[0]

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the levels under which runs publish, root first."""
        return published_levels(self.config)

    def identity(self, kind: str, seed: int) -> dict[str, str]:
        """The identity of an evaluation of this input."""
        return {
            "kind": kind,
            "configuration": self.config.digest,
            "input": self.commitment,
            "seed": str(seed),
        }

    @property
    def areas(self) -> dict[str, int]:
        """Published number of geounits of every level, root first."""
        levels = self.pairs[self.main.name].spine.levels
        return {name: level.nodes for name, level in zip(self.levels, levels, strict=True)}


def open_evaluated(
    config: str, data: Path, settings: Mapping[str, str], reading: ReadOptions
) -> EvaluatedPopulation:
    """Read and check configuration and records as a run does."""
    chosen = load_for_data(config, settings, data, reading)
    with open_intake(data, chosen, reading) as intake:
        hashes = hash_files(intake.files, data, reading.observer)
        loaded = intake.load()
    with TestKey(0) as key:
        commitment = keyed_commitment(key, json.dumps(hashes, sort_keys=True).encode()).hex()
    own = {"reader": chosen.reader, "root": chosen.root}
    published = {name: open_evaluated(one, data, own, reading) for name, one in chosen.published.items()}
    names = area_names(chosen, loaded.names)
    return replace(_evaluated(chosen, loaded, commitment, names), published=published)


def _evaluated(
    config: TopdownConfig, loaded: Loaded, commitment: str, names: AreaNames
) -> EvaluatedPopulation:
    """An input with its counts over the standard levels."""
    run = loaded.facts.run
    exact = {
        histogram.name: standard_levels(run, loaded.exact[histogram.name], histogram.schema.schema.cells)
        for histogram in config.histograms
    }
    pairs = {one.name: Pair(one.schema, run.standard, exact[one.name][-1], ()) for one in config.histograms}
    return EvaluatedPopulation(config, loaded, exact, pairs, commitment, names)


def characteristics(schema: HistogramSchema) -> tuple[ComparedCharacteristic, ...]:
    """What is compared: the total, the first attribute, the others jointly, and all of them; kinds of unit are summed out.

    Example:
        >>> from censafe.products.topdown.configuration.shipped import shipped_schemas
        >>> [one.query for one in characteristics(shipped_schemas()["pl94-persons"])]
        ['total', 'votingage', 'hispanic * cenrace', 'votingage * hispanic * cenrace']
    """
    names = [
        item.name
        for item in schema.schema.attributes
        if item.name != schema.kind_attribute and item.levels > 1
    ]
    texts = ["total", *names[:1]]
    if len(names) > 1:
        texts += [" * ".join(names[1:]), " * ".join(names)]
    return tuple(
        ComparedCharacteristic(
            text, " by ".join(_WORDS.get(name.strip(), name.strip()) for name in text.split("*"))
        )
        for text in texts
    )


def compared_characteristics(histogram: MeasuredHistogram) -> tuple[ComparedCharacteristic, ...]:
    """The same for one histogram of a configuration, without the total where that of every block is published exactly.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> config = load_config("pl94-us")
        >>> [one.query for one in compared_characteristics(config.histogram("units"))]
        ['h1']
    """
    exact = histogram.exact_totals == tuple(histogram.level_shares)[-1]
    report = outputs_of(histogram).report
    compared = tuple(ComparedCharacteristic(*one) for one in report) or characteristics(histogram.schema)
    return compared[1:] if exact and len(compared) > 1 else compared


def described_histograms(config: TopdownConfig) -> dict[str, dict[str, str]]:
    """Words of everything that is counted, by histogram and query, for the page of an evaluation."""
    return {
        histogram.name: {one.query: one.words for one in compared_characteristics(histogram)}
        for histogram in config.histograms
    }


_WORDS = {
    "total": "total", "votingage": "voting age", "age18plus": "voting age", "cenrace": "race", "hispanic": "Hispanic origin",
    "race": "race", "hispanic_race": "Hispanic origin and race",
    "h1": "occupancy",
}  # fmt: skip


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
    if not missing:
        return
    number, left, started = len(missing), list(missing), time.perf_counter()
    with observer.stage(f"{number} runs"):
        while left and (workers == 1 or not _worth_it(started, number, len(left))):
            _run(population, left.pop(0), folder)
            observer.advance((number - len(left)) / number, number, "runs")
        if not left:
            return
        with process_pool(min(workers, len(left))) as pool:
            futures = [pool.submit(_run_elsewhere, source, request, folder) for request in left]
            try:
                for done, future in enumerate(as_completed(futures), number - len(left) + 1):
                    future.result()
                    observer.advance(done / number, number, "runs")
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
