"""Repeat all post-processing from the folder of a finished TopDown run; no input is opened, nothing is spent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from censafe.errors import UsageError
from censafe.estimation.topdown.least_squares.objective import LevelObjective, StoredAnswers
from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.estimation.topdown.whole_tree.information import informed
from censafe.geography.own_codes import AreaCodes
from censafe.model.entries import nearest
from censafe.model.plan import NoiseSource
from censafe.model.topdown.level_measurements import LevelMeasurements
from censafe.products.run.folder import finished_run, to_publish
from censafe.products.run.options import EstimateOptions, stored_names
from censafe.products.run.runner import RunResult
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.descents import Descents, Estimates, estimate_levels
from censafe.products.topdown.files import area_names
from censafe.products.topdown.folder import (
    AREA_FILES,
    ESTIMATE_FILES,
    RUN_FACTS,
    level_reader,
    read_facts,
)
from censafe.products.topdown.intake.results import open_results, require_same_use
from censafe.products.topdown.intervals import IntervalSource, write_intervals
from censafe.products.topdown.plan import LevelWorkload, configuration_of_run, workloads
from censafe.products.topdown.release import AFTERWARDS, TopdownRelease, publish
from censafe.products.topdown.table_estimates.choice import table_choice
from censafe.products.topdown.table_estimates.earlier_answers import earlier_answers, measured_results
from censafe.products.topdown.table_estimates.estimates import TableEstimates
from censafe.publication.atomic import move_into_place
from censafe.publication.manifest import (
    FROM_FILES,
    ConfigRecord,
    Manifest,
    hash_outputs,
    verify_outputs,
    write_manifest,
)
from censafe.publication.sums import require_confidence


def re_estimate(out: Path, options: EstimateOptions) -> RunResult:
    """Estimate and publish once more, in another way where other choices are given."""
    require_confidence(options.confidence)
    observer = options.observer
    with finished_run(out) as (folder, manifest):
        config = stored_configuration(out, manifest, options)
        if config.published:
            raise UsageError(
                f"{out} is held to published results ({', '.join(config.published)}), which its folder does not have: nothing can be estimated "
                "from it alone but `tables`. Start a new run with --set of the choice, beside the same results."
            )
        with observer.stage("read"):
            verify_outputs(out, replace(manifest, outputs=_run_facts(manifest)))
            public = read_facts(out, config, manifest.plan.digest())
        read = level_reader(out, config, manifest, public)
        source: NoiseSource = "seeded" if manifest.test_key else "system"
        estimates = estimate_all(config, public, read, options, source)
        names = stored_names(options.names, out, manifest, census=area_names(config).census)
        own = {name: manifest.outputs[name] for name in AREA_FILES if name in manifest.outputs}
        verify_outputs(out, replace(manifest, parts=(), outputs=own))
        intervals = None
        if options.intervals is not None:
            interval_source = IntervalSource(
                config, estimates, read, options.workers, names, AreaCodes.of_run(out)
            )
            intervals = write_intervals(
                folder.staging, interval_source, options.intervals, stamp=manifest.stamp, observer=observer
            )
        changed = ConfigRecord(manifest.config.origin, config.overrides, config.record)
        release = TopdownRelease(
            config,
            to_publish(folder, estimates, replace(manifest, config=changed), options),
            intervals=intervals,
            names=names,
            area_files={name: (out / name).read_text(encoding="utf-8") for name in own},
        )
        with observer.stage("publish"):
            publish(release, options.workers)
    return RunResult(
        out,
        manifest.plan,
        manifest.stamp,
        resumed=True,
        files=release.files,
        repeated=True,
        stages=observer.stages,
    )


def _run_facts(manifest: Manifest) -> dict[str, str]:
    """Hashes of the files of a run folder that its estimate reads beside the measurements."""
    return {name: digest for name, digest in manifest.outputs.items() if name in RUN_FACTS}


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
            verify_outputs(out, replace(manifest, outputs=_run_facts(manifest)))
            public = read_facts(out, config, manifest.plan.digest())
        read = level_reader(out, config, manifest, public)
        earlier = earlier_answers(config, public, measured_results(results), choice, observer)
        tables = TableEstimates(config, choice, public, observer, stored=True, earlier=earlier)
        for histogram in config.histograms:
            for load in workloads(config, histogram.name):
                if tables.sums(load) is not None:
                    with observer.stage(f"read {load.part.name}"):
                        source = StoredAnswers(read(load).values)
                    tables.read(load, source)
            tables.finish(histogram.name)
        stamp = manifest.stamp
        tables.write(folder.staging, stamp)
        digests = hash_outputs(folder.staging, [folder.staging / name for name in ESTIMATE_FILES])
        written = replace(
            manifest,
            outputs={**manifest.outputs, **digests},
            post_processing={**manifest.post_processing, "table_estimates": tables.document()},
        )
        write_manifest(folder.staging / "manifest.json", written)
        move_into_place(out, (*ESTIMATE_FILES, "manifest.json"))
    return RunResult(out, manifest.plan, stamp, True, ESTIMATE_FILES, observer.stages, repeated=True)


def stored_configuration(out: Path, manifest: Manifest, options: EstimateOptions) -> TopdownConfig:
    """The configuration of a run that stored its answers, with the changes."""
    if manifest.plan.product != "topdown":
        raise UsageError(f"{out} is a run of {manifest.plan.product}; estimate takes runs of topdown")
    if manifest.identity.get("key") == FROM_FILES:
        raise UsageError(
            f"{out} was estimated from public measurement files, which it does not hold; start the same command "
            "(censafe estimate topdown ... --measurements) with another folder"
        )
    if manifest.config.settings.get("noisy_measurements") == "lazy":
        raise UsageError(
            f"{out} was run with noisy_measurements = lazy: it drew only the noisy measurements that its estimate used and stored "
            "none, so there is nothing to estimate from. Start a new run with --set noisy_measurements=stored, or see 'censafe card' and 'censafe replicate' for intervals of this one."
        )
    if options.data is not None or options.config is not None:
        raise UsageError(
            "a run of topdown holds all that its estimate needs; leave out `data` and `parameters`"
        )
    refused = [key for key in options.settings if key not in AFTERWARDS]
    if refused:
        hints = "".join(nearest(key, AFTERWARDS) for key in refused)
        raise UsageError(
            f"--set {', '.join(refused)}: what was measured stays as it is. After a run only {', '.join(AFTERWARDS)} can "
            f"change.{hints} For anything else start a new run in a new folder."
        )
    verify_outputs(out, replace(manifest, parts=(), outputs=_run_facts(manifest)))
    return configuration_of_run(out, manifest, options.settings)


def estimate_all(
    config: TopdownConfig,
    public: PublicFacts,
    read: Callable[[LevelWorkload], LevelMeasurements],
    options: EstimateOptions,
    source: NoiseSource,
) -> Estimates:
    """Every histogram from the root down, one level after another."""
    observer, solver = options.observer, options.solver
    descents = Descents(config, public, observer, options.workers, solver=solver)

    def objective(load: LevelWorkload) -> LevelObjective:
        with observer.stage(f"read {load.part.name}"):
            measured = read(load)
        return LevelObjective.measured([query.label for query in load.queries], measured)

    for histogram in descents.order:
        descent, loads = descents.of(histogram), workloads(config, histogram.name)
        objectives = informed(histogram, public, config.choices, map(objective, loads), observer)
        descents.finish(histogram, descent, estimate_levels(descent, loads, objectives, observer))
    if solver is None:
        return descents.estimates(source)
    place = getattr(solver, "__module__", "")
    name = getattr(solver, "__qualname__", type(solver).__qualname__)
    return descents.estimates(source, solver=f"{place}.{name}")
