"""Everything that TopDown publishes, from estimates and published facts alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final

from censafe.estimation.topdown.levels.joint import impossible_blocks, joint_remarks
from censafe.geography.identifiers import NAMES
from censafe.model import ProtectedUnit
from censafe.model.observer import SilentObserver
from censafe.products.run.folder import MeasuredRun
from censafe.products.run.options import write_names
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.layout import published_levels
from censafe.products.topdown.configuration.outputs import outputs_of, title_of
from censafe.products.topdown.configuration.shipped import shipped_schemas
from censafe.products.topdown.descents import Estimates
from censafe.products.topdown.files import area_names, write_files
from censafe.products.topdown.folder import ESTIMATE_FILES, RUN_FACTS, write_facts
from censafe.products.topdown.intake.equations import has_exact_sums
from censafe.products.topdown.intake.spines import spine_document, spine_remarks
from censafe.products.topdown.labels import COPIES
from censafe.products.topdown.person_loss import Effects
from censafe.products.topdown.person_questions import paths_of
from censafe.products.topdown.plan import (
    counted_units,
    exact_figures,
    exact_levels,
    lists_occupied,
    loss_statements,
)
from censafe.products.topdown.readings import loss_readings
from censafe.publication.atomic import atomic_text
from censafe.publication.certificate.anonymity import anonymity_values
from censafe.publication.certificate.levels import LevelEstimates
from censafe.publication.certificate.page import CertificateInput, CheckGroup, write_certificate
from censafe.publication.intervals import INTERVAL_FILES
from censafe.publication.manifest import hash_outputs

_DELTA: Final = Fraction(1, 10**10)
AFTERWARDS: Final = (
    "passes",
    "information",
    "infeasible",
    "leaves",
    "detailed_cost",
    "joint",
    "joint_first",
    "joint_max_household_size",
)
"""Keys that say how measurements are estimated; they may change after a run."""
_PUBLISHED: Final = (
    "The input was published before: this run is a demonstration and protects no one. If records were imputed from published "
    "tables, a change of one person can change many of them, so that statements about one record do not apply to one person."
)
_FITTED_AT_ONCE: Final = (
    "All queries of a level were fitted at once; the passes of the configuration were not used."
)
_FROM_BELOW: Final = "Every geounit was fitted to its own noisy measurements and those of all geounits below it, with their exact covariances."

_BY_QUERY: Final = "Every geounit was fitted to its own answers and those of all geounits below it, put together query by query with their exact variances."


def output_files(
    config: TopdownConfig, *, measured_here: bool = True, intervals: bool = False, tables: bool = False
) -> tuple[str, ...]:
    """What a finished run folder holds, beside the measurements; the manifest last."""
    # a record has a layout of the configuration, or of a shipped schema at the lowest areas that it has
    lowest, layouts = config.run_levels[-1].prefix, [outputs_of(one) for one in config.histograms]
    has_microdata = config.geocodes == "digits" and any(layout.digits == lowest for layout in layouts)
    microdata = ("microdata",) if has_microdata else ()
    filled = config.tables or any("P1" in layout.tables for layout in layouts)
    folder = ("tables",) if filled else ()
    certificate = ("certificate.html", "certificate.json") if measured_here else ()
    more = (*(INTERVAL_FILES if intervals else ()), *(ESTIMATE_FILES if tables else ()))
    return (*certificate, *microdata, "histograms", *folder, *COPIES, *more, "manifest.json")


@dataclass(frozen=True, eq=False)
class TopdownRelease:
    """What a run publishes.

    Args:
        measured_here: whether the run measured, and can state what it protects; estimates from the files of others have no
            certificate and keep no measurements.
        area_files: text of files with codes and geocodes of areas, by name, where the records have codes of their own.
        cited: configurations of the runs of the results that this one is held to, where all are known.
        intervals: what the manifest says of intervals, whose files are there already; None where there are none, and those of an
            earlier estimate go.
    """

    config: TopdownConfig
    run: MeasuredRun[Estimates]
    measured_here: bool = True
    intervals: Mapping[str, Any] | None = None
    names: Mapping[str, str] | None = None
    area_files: Mapping[str, str] = field(default_factory=dict)
    cited: Sequence[TopdownConfig] | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """What the run folder holds beside the measurements."""
        return output_files(
            self.config,
            measured_here=self.measured_here,
            intervals=self.intervals is not None,
            tables=self.run.measured.tables is not None,
        )


def publish(release: TopdownRelease, workers: int) -> None:
    """Write everything that is published, and give it its final names."""
    config, run = release.config, release.run
    estimates, manifest, staging = run.measured, run.manifest, run.staging
    stamp, places, retained = manifest.stamp, release.files, RUN_FACTS if release.measured_here else ()
    # the manifest states these stages too, and is written inside of the stage around them
    timed = SilentObserver()
    areas = area_names(config, release.names)
    first = estimates.levels[config.histograms[0].name]
    levels = {name: level.geounits for name, level in zip(published_levels(config), first, strict=True)}
    if words := areas.remark(levels):
        run.observer.remark(words)
    with timed.stage("write files"), ThreadPoolExecutor(1) as pool:
        facts = None
        if retained:  # what a later estimate reads
            (staging / "measurements").mkdir()
            facts = pool.submit(write_facts, staging, config, estimates.public, stamp=stamp)
        records, known = write_files(
            staging, places, stamp, config, estimates, areas=areas, observer=run.observer, workers=workers
        )
        if estimates.tables is not None:
            estimates.tables.write(staging, stamp)
        named = write_names(staging, areas.by_code, census=areas.census)
        for name, text in release.area_files.items():
            atomic_text(staging / name, text)
            named = (*named, staging / name)
        if facts is not None:
            facts.result()
    if release.measured_here:
        write_certificate(staging, _statement(release, records), stamp=stamp)
    written = [path for path in staging.rglob("*") if path.is_file()]
    with timed.stage("hash files"):
        hashes = hash_outputs(staging, written, known, workers=workers)
    impossible = impossible_blocks(config, estimates.levels)
    stages = {**manifest.stages, **{name: round(value, 3) for name, value in timed.stages.items()}}
    replace(run, manifest=replace(manifest, stages=stages)).finish(
        hashes,
        (*retained, *(path.name for path in named), *places),
        post_processing={
            **{name: getattr(config.choices, name) for name in AFTERWARDS},
            "records": dict(records),
            **({"solver": estimates.solver} if estimates.solver else {}),
            "spine": spine_document(config, estimates.public.run, estimates.public.areas),
            **({"blocks": {**impossible}} if impossible else {}),
            **({"relations": dict(estimates.relations)} if estimates.relations else {}),
            **({} if release.intervals is None else {"intervals": dict(release.intervals)}),
            **({} if estimates.tables is None else {"table_estimates": estimates.tables.document()}),
            **{f"levels_{name}": [dict(one) for one in levels] for name, levels in estimates.reports.items()},
        },
        outdated=(*INTERVAL_FILES, *ESTIMATE_FILES, NAMES),
    )


def _statement(release: TopdownRelease, records: Mapping[str, int]) -> CertificateInput:
    """What the certificate says of the run, its queries, estimates and exact figures."""
    config, estimates, manifest = release.config, release.run.measured, release.run.manifest
    imputed = [f"Imputed in the input by a rule: {words}" for words in estimates.public.imputed]
    published = (_PUBLISHED,) if manifest.published_data else ()
    fitted = (_FITTED_AT_ONCE,) if config.choices.passes == "one" else ()
    if config.choices.information == "lower":
        fitted = (*fitted, _BY_QUERY if any(map(has_exact_sums, config.histograms)) else _FROM_BELOW)
    readings = [
        {
            "histogram": reading.histogram,
            "kind": reading.kind,
            "name": reading.name,
            "exact": f"{reading.loss.numerator}/{reading.loss.denominator}",
            "change": reading.change,
            "decimal": float(reading.loss),
            "epsilon": float(reading.loss) if reading.epsilons is None else reading.epsilons.tight,
        }
        for reading in loss_readings(config, _DELTA, paths_of(config, estimates.public.run), release.cited)
    ]
    contents = LevelEstimates(
        facts=estimates.facts,
        records=records,
        exact=exact_figures(config),
        exact_records=tuple(kind for one in config.histograms for kind in outputs_of(one).exact),
        remarks=(
            *loss_statements(config),
            *published,
            *estimates.remarks,
            *fitted,
            *joint_remarks(config),
            *spine_remarks(config, estimates.public.run, estimates.public.areas),
            *imputed,
        ),
        solves=estimates.reports,
        readings=readings,
        anonymity=_anonymity(release, readings),
    )
    return CertificateInput(
        manifest,
        contents,
        (
            CheckGroup("Files, columns, geocodes and counts", 9, stops=True),
            CheckGroup("Consistency of records with the published units", 4, stops=True),
            CheckGroup("Consistency of published totals with the published units", 1, stops=True),
        ),
        title=title_of(config.histograms),
        ledger_total=release.run.ledger_total,
        confidence=release.run.confidence,
    )


def _anonymity(release: TopdownRelease, readings: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Numbers for legal readers, of schemas that are not those of the U.S. census."""
    config, plan = release.config, release.run.manifest.plan
    known = set(map(id, shipped_schemas().values()))
    if any(id(histogram.schema) in known for histogram in config.histograms):
        return None
    levels = published_levels(config)
    exact = [
        {
            "histogram": histogram.name,
            "levels": [name for name in exact_levels(histogram) if name in levels],
            "units": bool(counted_units(histogram)),
            "answers": [[one.groups.query, str(one.lowest)] for one in histogram.invariants],
        }
        for histogram in config.histograms
    ]
    persons = [one for one in config.histograms if one.schema.record is ProtectedUnit.PERSON]
    revealed = dict.fromkeys(name for one in persons for name in sorted(Effects(config, one).fixed))
    return anonymity_values(
        plan.total,
        plan.definition,
        readings,
        levels,
        exact,
        listed=lists_occupied(config),
        revealed=list(revealed),
    )
