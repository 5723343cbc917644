"""Right of the door: tables, codebook, certificate and manifest from the measurements of population groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Final

from censafe.estimation import coterminous, mark_x, nonnegative, same_blocks, totals
from censafe.geography.areas import Areas
from censafe.model import GroupMeasurements
from censafe.model.group_estimates import GroupEstimates
from censafe.products.safetab.config import SafetabConfig, SafetabPConfig
from censafe.products.safetab.levels import GroupLevel
from censafe.products.safetab.universe import Universe
from censafe.publication.atomic import move_into_place
from censafe.publication.certificate import write_certificate
from censafe.publication.codebook import CodebookInput
from censafe.publication.group_check import check_group_tables
from censafe.publication.group_codebook import write_group_codebook
from censafe.publication.group_tables import write_group_tables, write_marked_tables
from censafe.publication.group_tidy import GroupContext, write_group_tidy
from censafe.publication.manifest import Manifest, hash_outputs, write_manifest
from censafe.publication.stamps import STAMP, Stamp
from censafe.publication.statement import CertificateInput, CheckGroup

__all__ = ["FILES", "Published", "estimates_of", "publish"]

FILES: Final = (
    "certificate.html",
    "certificate.json",
    "codebook.csv",
    "tables",
    "tables.parquet",
    "manifest.json",
)
MARKED: Final = "tables_marked"
_TITLES: Final = {
    "safetab-p": "Detailed DHC-A: persons of detailed race and ethnicity groups, by SafeTab-P",
    "safetab-h": "Detailed DHC-B: households of detailed race and ethnicity groups, by SafeTab-H",
}


@dataclass(frozen=True)
class Published:
    """What the tables of a run are made of.

    Args:
        config: how measurements become tables.
        universe: names and pairs of iterations.
        areas: blocks of the regions; needed where coterminous areas are made equal.
        levels: the level of every measured part, by the key of the level.
    """

    config: SafetabConfig
    universe: Universe
    areas: Areas | None
    levels: Mapping[str, GroupLevel]


def estimates_of(published: Published, measured: Sequence[GroupMeasurements]) -> list[GroupEstimates]:
    """Totals, areas of the same blocks and negative counts, as the configuration says.

    Args:
        published: configuration, names and areas.
        measured: measurements of all parts.
    """
    config = published.config
    found = [_totals(config, published.levels[one.level.name], one) for one in measured]
    if config.coterminous != "off":
        if published.areas is None:
            raise ValueError("coterminous areas need the geography file")
        classes = same_blocks(published.areas, _kinds(config))
        by_table = {
            table: [one for one in found if one.table == table] for table in {one.table for one in found}
        }
        equal = {
            id(old): new
            for group in by_table.values()
            for old, new in zip(group, coterminous(group, classes, mode=config.coterminous)[0], strict=True)
        }
        found = [equal[id(one)] for one in found]
    return [nonnegative(one) for one in found] if config.negatives == "zero" else found


def publish(
    out: Path,
    staging: Path,
    published: Published,
    measured: Sequence[GroupMeasurements],
    manifest: Manifest,
    *,
    ledger_total: Fraction | None,
    confidence: Fraction,
) -> None:
    """Write everything that is published, checked in ``staging`` before it moves to ``out``.

    Raises:
        CheckError: the written tables are not what the plan demands, or ledger and plan disagree.
        ReleaseError: measurements of a test key without stamp, or the reverse.
        StorageError: the disk is full or the folder not writable.
    """
    config, plan = published.config, manifest.plan
    stamp: Stamp | None = STAMP if manifest.test_key else None
    names = {one.code: one.name for one in published.universe.iterations}
    estimates = estimates_of(published, measured)
    written = list(write_group_tables(staging / "tables", plan.product, estimates, stamp=stamp))
    rows = check_group_tables(
        staging / "tables",
        plan.product,
        estimates,
        plan=plan,
        states=config.all_states,
        nonnegative=config.negatives == "zero",
        stamp=stamp,
    )
    context = GroupContext(plan.product, plan.definition, names, confidence)
    write_group_tidy(staging / "tables.parquet", estimates, context, stamp=stamp)
    write_group_codebook(staging / "codebook.csv", plan.product, estimates, names, stamp=stamp)
    places = list(FILES)
    if config.mark_x:
        marked = [
            mark_x(one, [(a.code, b.code) for a, b in published.universe.pairs(one.level.iteration_level)])
            for one in estimates
        ]
        written += write_marked_tables(staging / MARKED, plan.product, marked, stamp=stamp)
        places.insert(-1, MARKED)
    statement = _statement(published, estimates, manifest, rows, ledger_total, confidence)
    certificates = write_certificate(staging, statement, stamp=stamp)
    files = [*written, staging / "tables.parquet", staging / "codebook.csv", *certificates]
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    write_manifest(
        staging / "manifest.json", replace(manifest, outputs=hash_outputs(staging, files), finished=finished)
    )
    move_into_place(staging, out, places)


def _totals(config: SafetabConfig, level: GroupLevel, measured: GroupMeasurements) -> GroupEstimates:
    if not isinstance(config, SafetabPConfig):
        return totals(measured)
    return totals(
        measured,
        t1=config.t1,
        thresholds=config.thresholds["p", level.key][:3],
        conditional=level.granularity == "coarse" and config.zero_suppression_chance > 0,
    )


def _kinds(config: SafetabConfig) -> list[str]:
    return list(dict.fromkeys(level.region_type for level in config.levels))


def _statement(
    published: Published,
    estimates: Sequence[GroupEstimates],
    manifest: Manifest,
    rows: int,
    ledger_total: Fraction | None,
    confidence: Fraction,
) -> CertificateInput:
    config = published.config
    return CertificateInput(
        title=_TITLES[config.product],
        plan=manifest.plan,
        queries=(),
        groups=estimates,
        codebook=CodebookInput({}, {}, levels={level.key: level.label for level in config.levels}),
        dataset=manifest.dataset,
        input_commitment=manifest.input_commitment,
        ledger=manifest.ledger,
        ledger_total=ledger_total,
        configuration=manifest.config.origin,
        created=manifest.created,
        checks=(
            CheckGroup("Files, columns, types and codes", 3, stops=True),
            CheckGroup("Blocks, codes and totals that belong together", 5, stops=True),
        ),
        rows_checked=rows,
        overrides=manifest.config.overrides,
        versions=manifest.versions,
        measurement_files={part.file: part.sha256 for part in manifest.parts},
        confidence=confidence,
    )
