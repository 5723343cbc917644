"""What the last steps of a release have in common: the certificate's facts from the manifest, and final names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from censafe.publication.atomic import move_into_place
from censafe.publication.certificate.statement import CertificateContents, CertificateInput, CheckGroup
from censafe.publication.manifest import Manifest, hash_outputs, require_nothing_else, write_manifest


def certificate_input(
    manifest: Manifest,
    contents: CertificateContents,
    checks: Sequence[CheckGroup],
    *,
    title: str,
    ledger_total: Fraction | None,
    confidence: Fraction,
    rows_checked: int = 0,
) -> CertificateInput:
    """What the certificate of a run says, most of it from the manifest."""
    return CertificateInput(
        title=title,
        plan=manifest.plan,
        contents=contents,
        dataset=manifest.dataset,
        input_commitment=manifest.input_commitment,
        ledger=manifest.ledger,
        ledger_total=ledger_total,
        configuration=manifest.config.origin,
        created=manifest.created,
        checks=checks,
        rows_checked=rows_checked,
        configuration_title=str(manifest.config.settings.get("title", "")),
        overrides=manifest.config.overrides,
        versions=manifest.versions,
        file_commitments=manifest.file_commitments,
        measurement_files={part.file: part.sha256 for part in manifest.parts},
        confidence=confidence,
    )


def publish_staged(
    out: Path,
    staging: Path,
    files: Sequence[Path],
    manifest: Manifest,
    names: Sequence[str],
    *,
    post_processing: Mapping[str, Any],
    outdated: Sequence[str] = (),
    workers: int = 1,
) -> None:
    """Write the manifest with the hashes of the staged files, and move all of them to their final names; ``manifest.json`` is the last."""
    whole = replace(
        manifest,
        outputs=hash_outputs(staging, files, workers=workers),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        post_processing=post_processing,
    )
    write_manifest(staging / "manifest.json", whole)
    move_into_place(out, names, outdated=outdated)
    require_nothing_else(out, whole)
