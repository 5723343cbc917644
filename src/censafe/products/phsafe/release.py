"""Right of the door: tables, codebook, certificate and manifest from PHSafe's measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from censafe.errors import CheckError
from censafe.geography.regions import states
from censafe.model import Measurements, PublishedQuery
from censafe.model.sdhc import EstimateSettings
from censafe.products.phsafe.definitions import phsafe_definitions, published_queries
from censafe.products.phsafe.estimates import (
    ESTIMATES,
    EstimateSources,
    summary_of,
    table_noisy_cells,
    write_estimates,
)
from censafe.products.run.folder import FILES, RunFolder
from censafe.publication.certificate.certificate import write_certificate
from censafe.publication.certificate.statement import CertificateInput, CheckGroup
from censafe.publication.certificate.tables import TableContents
from censafe.publication.generation import move_into_place
from censafe.publication.manifest import (
    Manifest,
    hash_outputs,
    require_nothing_else,
    verify_outputs,
    write_manifest,
)
from censafe.publication.measurements.vectors import read_measurements
from censafe.publication.stamps import STAMP, Stamp
from censafe.publication.tables.bureau import TableLayout, write_tables
from censafe.publication.tables.check import DerivedTable, check_tables, expected_levels
from censafe.publication.tables.codebook import CodebookInput, TableLabel, write_codebook
from censafe.publication.tables.tidy import TidyContext, write_tidy

__all__ = ["Estimating", "phsafe_codebook", "publish", "republish"]

_PUERTO_RICO = "72"
_TITLE = "Supplemental Demographic and Housing Characteristics (S-DHC), noisy counts by PHSafe"


@dataclass(frozen=True)
class Estimating:
    """How estimates are made from the noisy counts.

    Args:
        settings: of model and intervals.
        workers: threads; results do not depend on them.
    """

    settings: EstimateSettings
    workers: int


def publish(
    out: Path,
    staging: Path,
    measurements: Sequence[Measurements],
    manifest: Manifest,
    *,
    ledger_total: Fraction | None,
    confidence: Fraction,
    estimating: Estimating | None = None,
) -> Mapping[str, Any]:
    """Write everything that is published, checked in ``staging`` before it moves to ``out``.

    Args:
        out: the run folder.
        staging: an empty folder on the same file system.
        measurements: of all parts.
        manifest: of the run, without outputs and finishing time.
        ledger_total: what the ledger says this run spent; None for a test key.
        confidence: level of the margins of error, 9/10 or 19/20.
        estimating: how estimates are made from the noisy counts; None for no estimates.

    Returns:
        what the manifest says of the estimates; empty without them.

    Raises:
        CheckError: the written tables are not what the plan demands, or ledger and plan disagree.
        ReleaseError: measurements of a test key without stamp, or the reverse.
        StorageError: the disk is full or the folder not writable.
    """
    stamp: Stamp | None = STAMP if manifest.test_key else None
    queries = published_queries(measurements)
    layouts = [
        TableLayout(table.name, table.cell_column, table.iterated) for table in phsafe_definitions().tables
    ]
    tables = write_tables(staging / "tables", queries, layouts, stamp=stamp)
    rows = _check(staging / "tables", queries, layouts, manifest, stamp)
    codebook = phsafe_codebook()
    context = TidyContext(manifest.plan.product, manifest.plan.definition, confidence, codebook)
    write_tidy(staging / "tables.parquet", queries, context, stamp=stamp)
    write_codebook(staging / "codebook.csv", codebook, queries, stamp=stamp)
    statement = CertificateInput(
        title=_TITLE,
        plan=manifest.plan,
        contents=TableContents(queries, codebook),
        dataset=manifest.dataset,
        input_commitment=manifest.input_commitment,
        file_commitments=manifest.file_commitments,
        ledger=manifest.ledger,
        ledger_total=ledger_total,
        configuration=manifest.config.origin,
        created=manifest.created,
        checks=_checks(strict=manifest.checks == "strict"),
        rows_checked=rows,
        overrides=manifest.config.overrides,
        versions=manifest.versions,
        measurement_files={part.file: part.sha256 for part in manifest.parts},
        confidence=confidence,
    )
    certificates = write_certificate(staging, statement, stamp=stamp)
    files = [*tables, staging / "tables.parquet", staging / "codebook.csv", *certificates]
    done: dict[str, Any] = {}
    if estimating is not None:
        sources = EstimateSources(
            [table_noisy_cells(queries, puerto_rico=manifest.plan.settings["states"] == _PUERTO_RICO)],
            codebook,
            {part.file: part.sha256 for part in manifest.parts},
            stamp,
        )
        found, written = write_estimates(
            staging / ESTIMATES, sources, estimating.settings, workers=estimating.workers
        )
        files += written
        done = {ESTIMATES: summary_of(found, estimating.settings)}
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    whole = replace(manifest, outputs=hash_outputs(staging, files), finished=finished, post_processing=done)
    write_manifest(staging / "manifest.json", whole)
    if estimating is None:
        move_into_place(out, FILES, outdated=(ESTIMATES,))
    else:
        move_into_place(out, (*FILES[:-1], ESTIMATES, FILES[-1]))
    require_nothing_else(out, whole)
    return done.get(ESTIMATES, {})


def republish(
    folder: RunFolder, manifest: Manifest, confidence: Fraction, estimating: Estimating | None = None
) -> Mapping[str, Any]:
    """Do all post-processing again from stored measurements.

    Args:
        folder: of a finished run, in exclusive use.
        manifest: of that run.
        confidence: level of the margins of error, 9/10 or 19/20.
        estimating: how estimates are made from the noisy counts; None for no estimates.

    Returns:
        what the manifest says of the estimates; empty without them.

    Raises:
        CheckError: a measurement file is missing, was changed or belongs to another plan, or the folder holds files that
            are not of the run.
    """
    verify_outputs(folder.out, replace(manifest, outputs={}))
    digest = manifest.plan.digest()
    measurements = [
        answer
        for part in manifest.parts
        for answer in read_measurements(folder.out / part.file, plan_digest=digest)
    ]
    return publish(
        folder.out,
        folder.staging,
        measurements,
        manifest,
        ledger_total=None if manifest.test_key else manifest.plan.total,
        confidence=confidence,
        estimating=estimating,
    )


def _check(
    folder: Path,
    queries: Sequence[PublishedQuery],
    layouts: Sequence[TableLayout],
    manifest: Manifest,
    stamp: Stamp | None,
) -> int:
    derived = [
        DerivedTable(
            table.name,
            table.derived.source,
            {cell: len(cells) for cell, cells in table.derived.cells.items()},
        )
        for table in phsafe_definitions().tables
        if table.derived
    ]
    domains = {(query.table, query.level): query.domain for query in queries}
    try:
        expected = expected_levels(manifest.plan, domains, derived)
    except KeyError as error:
        raise CheckError(f"measurements of {error} are missing; do not publish the tables") from error
    states_of_plan = manifest.plan.settings["states"].split(",")
    return check_tables(folder, expected, layouts, states=states_of_plan, stamp=stamp)


def _checks(*, strict: bool) -> tuple[CheckGroup, ...]:
    return (
        CheckGroup("Files, columns, types and codes", 3, stops=True),
        CheckGroup("Keys that join persons, units and geography", 5, stops=True),
        CheckGroup("Agreement between the records of a household (C1 to C12)", 12, stops=strict),
    )


def phsafe_codebook() -> CodebookInput:
    """Words for tables, cells, levels, iterations and regions of the S-DHC."""
    definitions = phsafe_definitions()
    regions = {("USA", "1"): "United States"} | {("STATE", state.code): state.name for state in states()}
    for geography in definitions.geographies:
        regions |= {(geography.region_type, group.id): group.label for group in geography.groups}
    return CodebookInput(
        tables={
            table.name: TableLabel(table.label, table.label, {cell.id: cell.label for cell in table.cells})
            for table in definitions.tables
        },
        iterations={
            iteration.code: iteration.label
            for level in definitions.iteration_levels
            for iteration in level.iterations
        },
        regions=regions,
        levels={
            f"{geography.name}_{level.name}": f"{geography.words}, {level.words}"
            for geography in definitions.geographies
            for level in definitions.iteration_levels
        },
    )
