"""Tables, codebook, certificate and manifest from PHSafe's public measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

from censafe.errors import CheckError
from censafe.geography.regions import states
from censafe.model import Measurements, PublishedQuery
from censafe.products.phsafe.definitions import phsafe_definitions, published_queries
from censafe.products.run.folder import FILES, RunFolder
from censafe.publication.atomic import move_into_place
from censafe.publication.certificate.page import write_certificate
from censafe.publication.certificate.statement import CertificateInput, CheckGroup
from censafe.publication.certificate.tables import TableContents
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
from censafe.publication.tables.tidy import CodebookInput, TableLabel, TidyContext, write_codebook, write_tidy

ESTIMATES = "estimates"
"""Folder of the estimates in a run folder."""
_TITLE = "Supplemental Demographic and Housing Characteristics (S-DHC), noisy counts by PHSafe"


class PostProcessing(Protocol):
    """What is computed from the noisy counts and published beside them, in its own folder :data:`ESTIMATES`."""

    def write(
        self, folder: Path, queries: Sequence[PublishedQuery], codebook: CodebookInput, manifest: Manifest
    ) -> tuple[Sequence[Path], Mapping[str, Any]]:
        """Write the files; what the manifest says of them."""


def publish(
    out: Path,
    staging: Path,
    measurements: Sequence[Measurements],
    manifest: Manifest,
    *,
    ledger_total: Fraction | None,
    confidence: Fraction,
    more: PostProcessing | None = None,
) -> Mapping[str, Any]:
    """Write everything that is published, checked in ``staging`` before it moves to ``out``."""
    stamp: Stamp | None = STAMP if manifest.test_key else None
    queries, codebook = published_queries(measurements), phsafe_codebook()
    files, rows = _write_tables(staging, queries, codebook, manifest, confidence)
    statement = _statement(manifest, TableContents(queries, codebook), rows, ledger_total, confidence)
    files += write_certificate(staging, statement, stamp=stamp)
    written, done = ((), {}) if more is None else more.write(staging / ESTIMATES, queries, codebook, manifest)
    files += written
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    said: dict[str, Any] = {ESTIMATES: done} if more is not None else {}
    whole = replace(manifest, outputs=hash_outputs(staging, files), finished=finished, post_processing=said)
    write_manifest(staging / "manifest.json", whole)
    if more is None:
        move_into_place(out, FILES, outdated=(ESTIMATES,))
    else:
        move_into_place(out, (*FILES[:-1], ESTIMATES, FILES[-1]))
    require_nothing_else(out, whole)
    return done


def _statement(
    manifest: Manifest,
    contents: TableContents,
    rows: int,
    ledger_total: Fraction | None,
    confidence: Fraction,
) -> CertificateInput:
    return CertificateInput(
        title=_TITLE,
        plan=manifest.plan,
        contents=contents,
        dataset=manifest.dataset,
        input_commitment=manifest.input_commitment,
        file_commitments=manifest.file_commitments,
        ledger=manifest.ledger,
        ledger_total=ledger_total,
        configuration=manifest.config.origin,
        configuration_title=str(manifest.config.settings.get("title", "")),
        created=manifest.created,
        checks=_checks(strict=manifest.checks == "strict"),
        rows_checked=rows,
        overrides=manifest.config.overrides,
        versions=manifest.versions,
        measurement_files={part.file: part.sha256 for part in manifest.parts},
        confidence=confidence,
    )


def _write_tables(
    staging: Path,
    queries: Sequence[PublishedQuery],
    codebook: CodebookInput,
    manifest: Manifest,
    confidence: Fraction,
) -> tuple[list[Path], int]:
    """Tables in the Bureau's layout, read back and checked, the tidy table and the codebook; files and rows checked."""
    stamp: Stamp | None = STAMP if manifest.test_key else None
    layouts = [
        TableLayout(table.name, table.cell_column, table.iterated) for table in phsafe_definitions().tables
    ]
    tables = write_tables(staging / "tables", queries, layouts, stamp=stamp)
    rows = _check(staging / "tables", queries, layouts, manifest, stamp)
    tidy, words = staging / "tables.parquet", staging / "codebook.csv"
    context = TidyContext(manifest.plan.product, manifest.plan.definition, confidence, codebook)
    write_tidy(tidy, queries, context, stamp=stamp)
    write_codebook(words, codebook, queries, stamp=stamp)
    return [*tables, tidy, words], rows


def republish(
    folder: RunFolder, manifest: Manifest, confidence: Fraction, more: PostProcessing | None = None
) -> Mapping[str, Any]:
    """Repeat all post-processing from stored measurements."""
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
        more=more,
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
        CheckGroup("Keys that link persons, units and geography", 5, stops=True),
        CheckGroup("Consistency of the records of a household (C1 to C12)", 12, stops=strict),
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
