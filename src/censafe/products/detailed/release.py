"""Tables, codebook, certificate and manifest from the public measurements of population groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from censafe.estimation.detailed.area_classes import AreaClasses, area_classes, read_block_list
from censafe.estimation.detailed.coterminous import coterminous
from censafe.estimation.detailed.totals import flag_contradictions, nonnegative, totals
from censafe.geography.grfc import Areas
from censafe.geography.identifiers import NAMES, AreaNames
from censafe.model import GroupMeasurements, ReleasePlan
from censafe.model.groups import CoterminousReport, GroupEstimates
from censafe.products.detailed.codes.universe import PopulationGroupLevel, Universe
from censafe.products.detailed.config import AFTERWARDS, SafetabConfig, SafetabPConfig
from censafe.products.detailed.plan import published_from
from censafe.products.detailed.tables import tables_of
from censafe.products.run.folder import FILES, MeasuredRun
from censafe.products.run.options import write_names
from censafe.publication.certificate.page import CertificateInput, CheckGroup, write_certificate
from censafe.publication.groups.certificate import GroupContents
from censafe.publication.groups.check import check_group_measurements, check_group_tables
from censafe.publication.groups.tables import (
    GroupContext,
    write_coterminous_report,
    write_group_codebook,
    write_group_tables,
    write_group_tidy,
)
from censafe.publication.manifest import hash_outputs
from censafe.publication.stamps import Stamp
from censafe.publication.tables.bureau import STAMP_FILE, STAMP_TEXT

FLAGGED: Final = "tables_marked"
SAME_AREAS: Final = "coterminous"
_TITLES: Final = {
    "safetab-p": "Detailed DHC-A: persons of detailed race and ethnicity groups, by SafeTab-P",
    "safetab-h": "Detailed DHC-B: households of detailed race and ethnicity groups, by SafeTab-H",
}


@dataclass(frozen=True)
class Published:
    """What the tables of a run are made of."""

    config: SafetabConfig
    universe: Universe
    classes: AreaClasses | None
    names: Mapping[str, str] = field(default_factory=dict)


def files_of(config: SafetabConfig) -> tuple[str, ...]:
    """What a finished run folder holds, beside the measurements, in the order in which it is put there."""
    more = [FLAGGED] * config.mark_x + [SAME_AREAS] * (config.coterminous != "off")
    return (*FILES[:-1], *more, FILES[-1])


def process(
    config: SafetabConfig,
    plan: ReleasePlan,
    classes: AreaClasses | None,
    measured: Sequence[GroupMeasurements],
) -> tuple[tuple[GroupEstimates, ...], dict[str, CoterminousReport]]:
    """Totals, areas of the same blocks and negative counts, as the configuration says; and by table what was done to such areas."""
    levels = {level.key: level for level in config.levels}
    estimates = [_totals(config, plan, levels[answers.level.name], answers) for answers in measured]
    reports: dict[str, CoterminousReport] = {}
    if config.coterminous != "off":
        if classes is None:
            raise ValueError("areas of the same blocks cannot be made equal without a list of them")
        for table in dict.fromkeys(level.table for level in estimates):
            places = [place for place, level in enumerate(estimates) if level.table == table]
            equal, reports[table] = coterminous(
                [estimates[place] for place in places],
                classes,
                mode=config.coterminous,
                respect_granularity=config.respect_granularity,
            )
            for place, level in zip(places, equal, strict=True):
                estimates[place] = level
    if config.negatives == "zero":
        estimates = [nonnegative(level) for level in estimates]
    return tuple(estimates), reports


def configured_classes(config: SafetabConfig, areas: Areas, water_blocks: Path | None = None) -> AreaClasses:
    """Areas of the levels of a run that consist of the same blocks."""
    kinds = list(dict.fromkeys(level.region_type for level in config.levels))
    empty = None if water_blocks is None else read_block_list(water_blocks)
    return area_classes(areas, kinds, empty=empty)


def _totals(
    config: SafetabConfig, plan: ReleasePlan, level: PopulationGroupLevel, measured: GroupMeasurements
) -> GroupEstimates:
    table = tables_of(config.product).table(measured.table)
    if not isinstance(config, SafetabPConfig):
        return totals(measured, table)
    thresholds = config.thresholds["p", level.key][:3]
    (stage2,) = (
        query
        for part in plan.parts
        for query in part.queries
        if (query.level, query.table) == (level.key, "stage2")
    )
    smallest = published_from(config, level, stage2)
    limit = None if smallest is None else smallest - 1
    check_group_measurements(measured, plan, table, thresholds=thresholds, limit=limit)
    return totals(measured, table, t1=config.t1, thresholds=thresholds, conditional=limit is not None)


def publish(published: Published, release: MeasuredRun[list[GroupMeasurements]]) -> None:
    """Write everything that is published, checked before it gets its final name."""
    config, manifest, staging, stamp = published.config, release.manifest, release.staging, release.stamp
    plan, tables = manifest.plan, tables_of(config.product)
    names = {iteration.code: iteration.name for iteration in published.universe.iterations}
    estimates, reports = process(config, plan, published.classes, release.measured)
    regions = {level.level.region_type: level.level.regions for level in estimates}
    if words := AreaNames(published.names, census=False).remark(regions):
        release.observer.remark(words)
    context = GroupContext(tables, plan.definition, names, release.confidence, published.names)
    tidy, codebook = staging / "tables.parquet", staging / "codebook.csv"
    with ThreadPoolExecutor(1) as pool:  # both read the estimates, and neither what the other writes
        tidying = pool.submit(write_group_tidy, tidy, estimates, context, stamp=stamp)
        written = list(write_group_tables(staging / "tables", tables, estimates, stamp=stamp))
        rows = check_group_tables(  # read back and compared with the estimates
            staging / "tables",
            tables,
            estimates,
            plan=plan,
            states=config.all_states,
            nonnegative=config.negatives == "zero",
            stamp=stamp,
        )
        tidying.result()
    write_group_codebook(codebook, tables, estimates, names, stamp=stamp)
    written += _write_reports(staging, reports, stamp)
    if config.mark_x:  # the tables once more, with a flag where two counts contradict each other
        pairs = published.universe.pairs
        flagged = [
            flag_contradictions(
                level,
                [(a.code, b.code) for a, b in pairs(level.level.iteration_level)],
                suppress=config.suppress,
                negative=config.marked_negatives,
            )
            for level in estimates
        ]
        written += write_group_tables(staging / FLAGGED, tables, estimates, flagged=flagged, stamp=stamp)
    levels = {level.key: level.label for level in config.levels}
    certificate = CertificateInput(
        manifest,
        GroupContents(estimates, tables, levels, tuple(_notes(config))),
        (
            CheckGroup("Files, columns, types and codes", 3, stops=True),
            CheckGroup("Consistency of blocks, codes and totals", 5, stops=True),
        ),
        title=_TITLES[config.product],
        ledger_total=release.ledger_total,
        confidence=release.confidence,
        rows_checked=rows,
    )
    written += write_certificate(staging, certificate, stamp=stamp)
    named = write_names(staging, published.names)
    release.finish(
        hash_outputs(staging, [*written, *named, tidy, codebook], workers=2),
        (*(path.name for path in named), *files_of(config)),
        post_processing={rule: getattr(config, rule) for rule in AFTERWARDS[config.product]},
        outdated=(FLAGGED, SAME_AREAS, NAMES),
    )


def _write_reports(
    staging: Path, reports: Mapping[str, CoterminousReport], stamp: Stamp | None
) -> list[Path]:
    """Write what was done to areas of the same blocks, table by table."""
    written: list[Path] = []
    for table, report in reports.items():
        folder = staging / SAME_AREAS / table
        folder.mkdir(parents=True)
        written += write_coterminous_report(folder, report, source="seeded" if stamp else "system")
        if stamp:
            (folder / STAMP_FILE).write_text(STAMP_TEXT, encoding="utf-8")
    return written


def _notes(config: SafetabConfig) -> Iterator[str]:
    """What the certificate says of the processing."""
    if isinstance(config, SafetabPConfig) and config.t1 == "pooled":
        yield "Totals are the weighted mean of the two noisy totals that were measured of a group."
    if config.coterminous != "off":
        yield "Areas that consist of the same blocks were given the same counts."
    if config.negatives == "zero":
        yield "Negative counts were replaced by 0, which raises totals of small groups on average."
    if config.mark_x:
        yield "A second set of tables shows X where a count alone is above the count alone or in any combination."
