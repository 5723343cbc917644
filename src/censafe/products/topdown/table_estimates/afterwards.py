"""Linear estimates of tables of a finished run that stored its answers: the same as if they had been named in the run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from censafe.errors import UsageError
from censafe.estimation.topdown.least_squares.objective import StoredAnswers
from censafe.products.run.folder import finished_run
from censafe.products.run.options import EstimateOptions
from censafe.products.run.runner import RunResult
from censafe.products.topdown.estimate import run_facts, stored_configuration
from censafe.products.topdown.folder import level_reader, read_facts
from censafe.products.topdown.intake.results import open_results, require_same_use
from censafe.products.topdown.plan import workloads
from censafe.products.topdown.release import AFTERWARDS
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
            verify_outputs(out, replace(manifest, outputs=run_facts(manifest)))
            public = read_facts(out, config, manifest.plan.digest())
        read = level_reader(out, config, manifest, public)
        known = [one for one in map(result_of_run, results) if one is not None]
        beside = answers_beside(config, public, known, choice, observer)
        tables = TableEstimates(config, choice, public, observer, stored=True, beside=beside)
        for histogram in config.histograms:
            for load in workloads(config, histogram.name):
                if tables.sums(load) is not None:
                    with observer.stage(f"read {load.part.name}"):
                        source = StoredAnswers(read(load).values)
                    tables.read(load, source)
            tables.finish(histogram.name)
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
