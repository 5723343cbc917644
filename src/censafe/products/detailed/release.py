"""Tables, codebook, certificate and manifest from the public measurements of population groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Final

from censafe.estimation.detailed import AreaClasses, flag_contradictions
from censafe.geography.area_names import NAMES, AreaNames
from censafe.model import GroupMeasurements, ReleasePlan
from censafe.model.groups.estimates import GroupEstimates
from censafe.model.observer import Observer
from censafe.products.detailed.codes.universe import Universe
from censafe.products.detailed.config import SafetabConfig
from censafe.products.detailed.processing import Processed, process
from censafe.products.detailed.product_tables import tables_of
from censafe.products.run.folder import FILES
from censafe.products.run.options import write_names
from censafe.publication.atomic import move_into_place
from censafe.publication.certificate.page import write_certificate
from censafe.publication.certificate.statement import CertificateInput, CheckGroup
from censafe.publication.groups.certificate import GroupContents
from censafe.publication.groups.check import check_group_tables
from censafe.publication.groups.tables import write_flagged_tables, write_group_tables
from censafe.publication.groups.tidy import (
    GroupContext,
    write_coterminous_report,
    write_group_codebook,
    write_group_tidy,
)
from censafe.publication.manifest import Manifest, hash_outputs, require_nothing_else, write_manifest
from censafe.publication.stamps import STAMP, Stamp
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


def publish(
    out: Path,
    staging: Path,
    published: Published,
    measured: Sequence[GroupMeasurements],
    manifest: Manifest,
    *,
    ledger_total: Fraction | None,
    confidence: Fraction,
    observer: Observer,
) -> None:
    """Write everything that is published, checked in ``staging`` before it moves to ``out``."""
    config, plan, tables = published.config, manifest.plan, tables_of(published.config.product)
    stamp: Stamp | None = STAMP if manifest.test_key else None
    names = {one.code: one.name for one in published.universe.iterations}
    processed = process(config, plan, published.classes, measured)
    estimates = processed.estimates
    regions = {one.level.region_type: one.level.regions for one in estimates}
    if words := AreaNames(published.names, census=False).remark(regions):
        observer.remark(words)
    context = GroupContext(tables, plan.definition, names, confidence, published.names)
    tidy, codebook = staging / "tables.parquet", staging / "codebook.csv"
    with ThreadPoolExecutor(1) as pool:  # both read the estimates, and neither what the other writes
        beside = pool.submit(write_group_tidy, tidy, estimates, context, stamp=stamp)
        written = list(write_group_tables(staging / "tables", tables, estimates, stamp=stamp))
        rows = _check(staging, config, plan, estimates, stamp)
        beside.result()
    write_group_codebook(codebook, tables, estimates, names, stamp=stamp)
    written += _write_reports(staging, processed, stamp)
    if config.mark_x:
        written += _write_flagged(staging, published, estimates, stamp)
    statement = _statement(published, processed, manifest, rows, ledger_total, confidence)
    certificates = write_certificate(staging, statement, stamp=stamp)
    named = write_names(staging, published.names)
    whole = replace(
        manifest,
        post_processing=processed.options,
        outputs=hash_outputs(staging, [*written, *named, tidy, codebook, *certificates], workers=2),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    write_manifest(staging / "manifest.json", whole)
    move_into_place(
        out, (*(path.name for path in named), *files_of(config)), outdated=(FLAGGED, SAME_AREAS, NAMES)
    )
    require_nothing_else(out, whole)


def _check(
    staging: Path,
    config: SafetabConfig,
    plan: ReleasePlan,
    estimates: Sequence[GroupEstimates],
    stamp: Stamp | None,
) -> int:
    """Read the tables back and compare them with the estimates; the number of rows."""
    return check_group_tables(
        staging / "tables",
        tables_of(config.product),
        estimates,
        plan=plan,
        states=config.all_states,
        nonnegative=config.negatives == "zero",
        stamp=stamp,
    )


def _write_reports(staging: Path, processed: Processed, stamp: Stamp | None) -> list[Path]:
    """Write what was done to areas of the same blocks, table by table."""
    written: list[Path] = []
    for table, report in processed.reports.items():
        folder = staging / SAME_AREAS / table
        folder.mkdir(parents=True)
        written += write_coterminous_report(folder, report, source="seeded" if stamp else "system")
        if stamp:
            (folder / STAMP_FILE).write_text(STAMP_TEXT, encoding="utf-8")
    return written


def _write_flagged(
    staging: Path, published: Published, estimates: Sequence[GroupEstimates], stamp: Stamp | None
) -> Sequence[Path]:
    """Write the tables once more, with a flag where two counts contradict each other."""
    flagged = [
        flag_contradictions(
            one, [(a.code, b.code) for a, b in published.universe.pairs(one.level.iteration_level)]
        )
        for one in estimates
    ]
    return write_flagged_tables(staging / FLAGGED, tables_of(published.config.product), flagged, stamp=stamp)


def _statement(
    published: Published,
    processed: Processed,
    manifest: Manifest,
    rows: int,
    ledger_total: Fraction | None,
    confidence: Fraction,
) -> CertificateInput:
    config = published.config
    return CertificateInput(
        title=_TITLES[config.product],
        plan=manifest.plan,
        contents=GroupContents(
            processed.estimates,
            tables_of(config.product),
            {level.key: level.label for level in config.levels},
            processed.notes,
        ),
        dataset=manifest.dataset,
        input_commitment=manifest.input_commitment,
        file_commitments=manifest.file_commitments,
        ledger=manifest.ledger,
        ledger_total=ledger_total,
        configuration=manifest.config.origin,
        configuration_title=str(manifest.config.settings.get("title", "")),
        created=manifest.created,
        checks=(
            CheckGroup("Files, columns, types and codes", 3, stops=True),
            CheckGroup("Consistency of blocks, codes and totals", 5, stops=True),
        ),
        rows_checked=rows,
        overrides=manifest.config.overrides,
        versions=manifest.versions,
        measurement_files={part.file: part.sha256 for part in manifest.parts},
        confidence=confidence,
    )
