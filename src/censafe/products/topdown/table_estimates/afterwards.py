"""Linear estimates of tables of a finished run that stored its answers: the same as if they had been named in the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from censafe.errors import UsageError
from censafe.estimation.topdown.least_squares.objective import StoredAnswers
from censafe.model.observer import Observer
from censafe.model.topdown.level_measurements import LevelMeasurements
from censafe.products.run.folder import finished_run
from censafe.products.run.options import EstimateOptions
from censafe.products.run.runner import RunResult
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.estimate import AFTERWARDS, stored_configuration
from censafe.products.topdown.folder import RUN_FACTS, read_facts
from censafe.products.topdown.intake.results import open_results, require_same_use
from censafe.products.topdown.measuring import level_reader
from censafe.products.topdown.plan import LevelWorkload, workloads
from censafe.products.topdown.table_estimates.beside import answers_beside, result_of_run
from censafe.products.topdown.table_estimates.choice import table_choice
from censafe.products.topdown.table_estimates.estimates import ESTIMATE_FILES, TableEstimates
from censafe.publication.atomic import move_into_place
from censafe.publication.manifest import hash_outputs, verify_outputs, write_manifest


def estimate_named_tables(out: Path, options: EstimateOptions) -> RunResult:
    """Estimate tables from the stored answers of a run; everything else in its folder stays as it is."""
    if options.settings:
        raise UsageError(
            f"`tables` are estimated beside the published counts, which `settings` ({', '.join(options.settings)}) would change; "
            f"fix: first change {', '.join(AFTERWARDS)}, then ask for tables in a second call"
        )
    observer = options.observer
    with finished_run(out) as (folder, manifest):
        config = stored_configuration(out, manifest, options)
        choice = table_choice(config, options.tables, options.areas)
        if choice is None:
            raise UsageError("`tables`: none are named; fix: name tables, such as P12, or leave `tables` out")
        results = open_results(config, options.results)
        require_same_use(results, test_key=manifest.test_key, published_data=manifest.published_data)
        with observer.stage("read"):
            facts = {name: digest for name, digest in manifest.outputs.items() if name in RUN_FACTS}
            verify_outputs(out, replace(manifest, outputs=facts))
            public = read_facts(out, config, manifest.plan.digest())
        read = level_reader(out, config, manifest, public)
        known = [one for one in map(result_of_run, results) if one is not None]
        beside = answers_beside(config, public, known, choice, observer)
        tables = TableEstimates(config, choice, public, observer, stored=True, beside=beside)
        _read_all(config, tables, read, observer)
        stamp = manifest.stamp
        tables.write(folder.staging, stamp)
        made = hash_outputs(folder.staging, [folder.staging / name for name in ESTIMATE_FILES])
        written = replace(
            manifest,
            outputs={**manifest.outputs, **made},
            post_processing={**manifest.post_processing, "table_estimates": tables.document()},
        )
        write_manifest(folder.staging / "manifest.json", written)
        move_into_place(out, (*ESTIMATE_FILES, "manifest.json"))
    return RunResult(out, manifest.plan, stamp, True, ESTIMATE_FILES, observer.stages, repeated=True)


def _read_all(
    config: TopdownConfig,
    tables: TableEstimates,
    read: Callable[[LevelWorkload], LevelMeasurements],
    observer: Observer,
) -> None:
    """Give the tables all answers of their histograms, and estimate them."""
    for histogram in config.histograms:
        for load in (one for one in workloads(config) if one.histogram is histogram):
            if tables.sums(load) is None:
                continue
            with observer.stage(f"read {load.part.name}"):
                source = StoredAnswers(read(load).values)
            tables.read(load, source)
        tables.finish(histogram.name)
