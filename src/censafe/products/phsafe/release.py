"""Tables, codebook, certificate and manifest from PHSafe's public measurements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from censafe.errors import CheckError
from censafe.geography.regions import states
from censafe.model import Measurements, PublishedQuery
from censafe.products.phsafe.definitions import phsafe_definitions, published_queries
from censafe.products.run.folder import FILES, MeasuredRun
from censafe.publication.certificate.page import CertificateInput, CheckGroup, write_certificate
from censafe.publication.certificate.tables import TableContents
from censafe.publication.manifest import Manifest, hash_outputs
from censafe.publication.stamps import Stamp
from censafe.publication.tables.bureau import (
    DerivedTable,
    TableLayout,
    check_tables,
    expected_levels,
    write_tables,
)
from censafe.publication.tables.tidy import CodebookInput, TableLabel, TidyContext, write_codebook, write_tidy

ESTIMATES = "estimates"
"""Folder of the estimates in a run folder."""
_TITLE = "Supplemental Demographic and Housing Characteristics (S-DHC), noisy counts by PHSafe"


Estimates = Callable[
    [Path, Sequence[PublishedQuery], CodebookInput, Manifest], tuple[Sequence[Path], Mapping[str, Any]]
]
"""Writes what is computed from the noisy counts into its own folder :data:`ESTIMATES`; the files, and what the manifest says of them."""


def publish(
    release: MeasuredRun[list[list[Measurements]]], estimates: Estimates | None = None
) -> Mapping[str, Any]:
    """Write everything that is published, checked before it gets its final name; what the manifest says of estimates.

    The tables in the Bureau's layout are read back and checked.
    """
    manifest, staging, stamp = release.manifest, release.staging, release.stamp
    definitions = phsafe_definitions()
    queries, codebook = published_queries(chain(*release.measured)), phsafe_codebook()
    layouts = [TableLayout(table.name, table.cell_column, table.iterated) for table in definitions.tables]
    files = list(write_tables(staging / "tables", queries, layouts, stamp=stamp))
    rows = _check(staging / "tables", queries, layouts, manifest, stamp)
    tidy, words = staging / "tables.parquet", staging / "codebook.csv"
    context = TidyContext(manifest.plan.product, manifest.plan.definition, release.confidence, codebook)
    write_tidy(tidy, queries, context, stamp=stamp)
    write_codebook(words, codebook, queries, stamp=stamp)
    checks = (
        CheckGroup("Files, columns, types and codes", 3, stops=True),
        CheckGroup("Keys that link persons, units and geography", 5, stops=True),
        CheckGroup(
            "Consistency of the records of a household (C1 to C12)", 12, stops=manifest.checks == "strict"
        ),
    )
    certificate = CertificateInput(
        manifest,
        TableContents(queries, codebook),
        checks,
        title=_TITLE,
        ledger_total=release.ledger_total,
        confidence=release.confidence,
        rows_checked=rows,
    )
    files += [tidy, words, *write_certificate(staging, certificate, stamp=stamp)]
    about: Mapping[str, Any] = {}
    names: tuple[str, ...] = FILES
    if estimates is not None:
        written, about = estimates(staging / ESTIMATES, queries, codebook, manifest)
        files += written
        names = (*FILES[:-1], ESTIMATES, FILES[-1])
    release.finish(
        hash_outputs(staging, files),
        names,
        post_processing={} if estimates is None else {ESTIMATES: about},
        outdated=(ESTIMATES,),
    )
    return about


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


def phsafe_codebook() -> CodebookInput:
    """Words for tables, cells, levels, iterations and regions of the S-DHC."""
    definitions = phsafe_definitions()
    regions = {("USA", "1"): "United States"} | {("STATE", state.code): state.name for state in states()}
    for geography in definitions.geographies:
        regions |= {(geography.region_type, group.id): group.label for group in geography.groups}
    return CodebookInput(
        tables={
            table.name: TableLabel(
                table.label, table.label, {cell: line.label for cell, line in table.cells.items()}
            )
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
