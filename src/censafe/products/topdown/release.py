"""Everything that TopDown publishes, from estimates and published facts alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.estimation.topdown.levels.joint import impossible_blocks, joint_remarks
from censafe.geography.area_names import NAMES
from censafe.model import SparseLevel
from censafe.model.observer import Observer, SilentObserver
from censafe.model.plan import NoiseSource
from censafe.products.run.options import write_names
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.invariants import exact_figures
from censafe.products.topdown.configuration.layout import published_levels
from censafe.products.topdown.configuration.outputs import outputs_of, title_of
from censafe.products.topdown.files import Staged, area_names, write_files
from censafe.products.topdown.folder import RUN_FACTS, write_facts
from censafe.products.topdown.intake.equations import is_held
from censafe.products.topdown.intake.spines import spine_document, spine_remarks
from censafe.products.topdown.labels import COPIES
from censafe.products.topdown.moves import paths_of
from censafe.products.topdown.plan import LevelWorkload, loss_statements
from censafe.products.topdown.readings import loss_readings
from censafe.products.topdown.table_estimates.estimates import ESTIMATE_FILES, TableEstimates
from censafe.publication.atomic import move_into_place
from censafe.publication.certificate.levels import LevelEstimates, LevelFacts
from censafe.publication.certificate.page import write_certificate
from censafe.publication.certificate.statement import CertificateInput, CheckGroup
from censafe.publication.intervals.files import INTERVAL_FILES
from censafe.publication.manifest import Manifest, hash_outputs, require_nothing_else, write_manifest
from censafe.publication.stamps import Stamp, stamp_of

_DELTA: Final = Fraction(1, 10**10)
_POST_PROCESSING: Final = (
    "passes",
    "information",
    "infeasible",
    "leaves",
    "detailed_cost",
    "joint",
    "joint_first",
    "joint_max_household_size",
)
_PUBLISHED: Final = (
    "The input was published before: this run is a demonstration and protects no one. If records were imputed from published "
    "tables, a change of one person can change many of them, so that statements about one record do not apply to one person."
)
_FITTED_AT_ONCE: Final = (
    "All queries of a level were fitted at once; the passes of the configuration were not used."
)
_FROM_BELOW: Final = "Every geounit was fitted to its own noisy measurements and those of all geounits below it, with their exact covariances."

_BY_QUERY: Final = "Every geounit was fitted to its own answers and those of all geounits below it, put together query by query with their exact variances."


@dataclass(frozen=True, eq=False)
class Estimates:
    """What leaves the estimation.

    Args:
        relations: how persons and households were made to fit, and exceptions, as JSON values; empty where they were not.
    """

    public: PublicFacts
    levels: Mapping[str, tuple[SparseLevel, ...]]
    reports: Mapping[str, tuple[Mapping[str, Any], ...]]
    facts: tuple[LevelFacts, ...]
    solver: str = ""
    remarks: tuple[str, ...] = ()
    relations: Mapping[str, Any] = field(default_factory=dict)
    tables: TableEstimates | None = None


def gathered(
    config: TopdownConfig,
    public: PublicFacts,
    levels: Mapping[str, tuple[SparseLevel, ...]],
    reports: Mapping[str, tuple[Mapping[str, Any], ...]],
    facts: Mapping[str, Sequence[LevelFacts]],
) -> Estimates:
    """What was found histogram by histogram, in the order of the configuration, whichever was estimated first."""
    names = [one.name for one in config.histograms]
    return Estimates(
        public,
        {name: levels[name] for name in names},
        {name: reports[name] for name in names},
        tuple(fact for name in names for fact in facts[name]),
    )


def output_files(
    config: TopdownConfig, *, measured_here: bool = True, intervals: bool = False, tables: bool = False
) -> tuple[str, ...]:
    """What a finished run folder holds, beside the measurements; the manifest last."""
    microdata = ("microdata",) if _has_microdata(config) else ()
    filled = config.tables or any("P1" in outputs_of(one).tables for one in config.histograms)
    folder = ("tables",) if filled else ()
    certificate = ("certificate.html", "certificate.json") if measured_here else ()
    more = (*(INTERVAL_FILES if intervals else ()), *(ESTIMATE_FILES if tables else ()))
    return (*certificate, *microdata, "histograms", *folder, *COPIES, *more, "manifest.json")


def _has_microdata(config: TopdownConfig) -> bool:
    """Whether a record has a layout: one of the configuration, or of a shipped schema at the lowest areas that it knows."""
    lowest = config.run_levels[-1].prefix
    numbered = config.geocodes == "digits"
    return numbered and any(outputs_of(one).digits == lowest for one in config.histograms)


@dataclass(frozen=True, eq=False)
class TopdownRelease:
    """What a run publishes.

    Args:
        ledger_total: what the ledger says the run spent; None for a test key.
        measured_here: whether the run measured, and can state what it protects; estimates from the files of others have no
            certificate and keep no measurements.
        intervals: what the manifest says of intervals, whose files are there already; None where there are none, and those of an
            earlier estimate go.
    """

    config: TopdownConfig
    estimates: Estimates
    manifest: Manifest
    ledger_total: Fraction | None
    confidence: Fraction
    measured_here: bool = True
    intervals: Mapping[str, Any] | None = None
    names: Mapping[str, str] | None = None

    @property
    def stamp(self) -> Stamp | None:
        """What every file says of a run without protection."""
        return stamp_of(test_key=self.manifest.test_key, published_data=self.manifest.published_data)

    @property
    def files(self) -> tuple[str, ...]:
        """What the run folder holds beside the measurements."""
        return output_files(
            self.config,
            measured_here=self.measured_here,
            intervals=self.intervals is not None,
            tables=self.estimates.tables is not None,
        )

    def finished(self, records: Mapping[str, int], seconds: Mapping[str, float]) -> Manifest:
        """The manifest with the post-processing, without outputs.

        Args:
            records: rows of every histogram's files.
        """
        config, estimates = self.config, self.estimates
        impossible = impossible_blocks(config, estimates.levels)
        return replace(
            self.manifest,
            stages={**self.manifest.stages, **{name: round(value, 3) for name, value in seconds.items()}},
            post_processing={
                **{name: getattr(config.choices, name) for name in _POST_PROCESSING},
                "records": dict(records),
                **({"solver": estimates.solver} if estimates.solver else {}),
                "spine": spine_document(config, estimates.public.run, estimates.public.areas),
                **({"blocks": {**impossible}} if impossible else {}),
                **({"relations": dict(estimates.relations)} if estimates.relations else {}),
                **({} if self.intervals is None else {"intervals": dict(self.intervals)}),
                **({} if estimates.tables is None else {"table_estimates": estimates.tables.document()}),
                **_listed(estimates.reports),
            },
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
        )


def publish(
    out: Path, staging: Path, release: TopdownRelease, *, observer: Observer, workers: int = 1
) -> None:
    """Write everything in ``staging`` and move it to ``out``."""
    config, stamp = release.config, release.stamp
    timed = (
        SilentObserver()
    )  # the manifest states these stages too, and is written inside of the stage around them
    places = release.files
    areas = area_names(config, release.names)
    first = release.estimates.levels[config.histograms[0].name]
    levels = {name: level.geounits for name, level in zip(published_levels(config), first, strict=True)}
    if words := areas.remark(levels):
        observer.remark(words)
    with timed.stage("write files"), ThreadPoolExecutor(1) as beside:
        facts = beside.submit(_write_facts, staging, release)
        records, known = write_files(
            Staged(staging, places, stamp),
            config,
            release.estimates,
            areas=areas,
            observer=observer,
            workers=workers,
        )
        if release.estimates.tables is not None:
            release.estimates.tables.write(staging, stamp)
        named = write_names(staging, areas.by_code, census=areas.census)
        retained = facts.result()
    if release.measured_here:
        write_certificate(staging, _statement(release, records), stamp=stamp)
    written = [path for path in staging.rglob("*") if path.is_file()]
    with timed.stage("hash files"):
        hashes = hash_outputs(staging, written, known, workers=workers)
    whole = replace(release.finished(records, timed.stages), outputs=hashes)
    write_manifest(staging / "manifest.json", whole)
    move_into_place(
        out,
        (*retained, *(path.name for path in named), *places),
        outdated=(*INTERVAL_FILES, *ESTIMATE_FILES, NAMES),
    )
    require_nothing_else(out, whole)


def _write_facts(staging: Path, release: TopdownRelease) -> tuple[str, ...]:
    """Write the public facts that a later estimate reads; returns what is retained beside the outputs."""
    if not release.measured_here:
        return ()
    (staging / "measurements").mkdir()
    write_facts(staging, release.config, release.estimates.public, stamp=release.stamp)
    return RUN_FACTS


def query_facts(load: LevelWorkload, geounits: int, source: NoiseSource) -> tuple[LevelFacts, ...]:
    """What certificate and tables say of the measured queries of a level."""
    return tuple(
        LevelFacts(plan.table, plan.level, plan.law, plan.cost, geounits, query.answers, source)
        for plan, query in zip(load.part.queries, load.queries, strict=True)
    )


def _listed(solves: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    return {f"levels_{name}": [dict(level) for level in levels] for name, levels in solves.items()}


def _readings(config: TopdownConfig, public: PublicFacts) -> list[dict[str, Any]]:
    return [
        {
            "histogram": reading.histogram,
            "kind": reading.kind,
            "name": reading.name,
            "exact": f"{reading.loss.numerator}/{reading.loss.denominator}",
            "change": reading.change,
            "decimal": float(reading.loss),
            "epsilon": float(reading.loss) if reading.epsilons is None else reading.epsilons.tight,
        }
        for reading in loss_readings(config, _DELTA, paths_of(config, public.run))
    ]


def _contents(release: TopdownRelease, records: Mapping[str, int]) -> LevelEstimates:
    """What the certificate says of the queries, the estimates and the exact figures."""
    config, estimates = release.config, release.estimates
    imputed = [f"Imputed in the input by a rule: {words}" for words in estimates.public.imputed]
    published = (_PUBLISHED,) if release.manifest.published_data else ()
    fitted = (_FITTED_AT_ONCE,) if config.choices.passes == "one" else ()
    if config.choices.information == "lower":
        fitted = (*fitted, _BY_QUERY if any(map(is_held, config.histograms)) else _FROM_BELOW)
    fitted = (*estimates.remarks, *fitted, *joint_remarks(config))
    return LevelEstimates(
        facts=estimates.facts,
        records=records,
        exact=exact_figures(config),
        exact_records=tuple(kind for one in config.histograms for kind in outputs_of(one).exact),
        remarks=(
            *loss_statements(config),
            *published,
            *fitted,
            *spine_remarks(config, estimates.public.run, estimates.public.areas),
            *imputed,
        ),
        solves=estimates.reports,
        readings=_readings(config, estimates.public),
    )


def _statement(release: TopdownRelease, records: Mapping[str, int]) -> CertificateInput:
    manifest = release.manifest
    return CertificateInput(
        title=title_of(release.config.histograms),
        plan=manifest.plan,
        contents=_contents(release, records),
        dataset=manifest.dataset,
        input_commitment=manifest.input_commitment,
        file_commitments=manifest.file_commitments,
        ledger=manifest.ledger,
        ledger_total=release.ledger_total,
        configuration=manifest.config.origin,
        configuration_title=release.config.title,
        created=manifest.created,
        checks=(
            CheckGroup("Files, columns, geocodes and counts", 9, stops=True),
            CheckGroup("Consistency of records with the published units", 4, stops=True),
            CheckGroup("Consistency of published totals with the published units", 1, stops=True),
        ),
        overrides=manifest.config.overrides,
        versions=manifest.versions,
        measurement_files={part.file: part.sha256 for part in manifest.parts},
        delta=_DELTA,
        confidence=release.confidence,
    )
