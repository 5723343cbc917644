"""What the last steps of every release have in common: a measured run, its certificate's facts, and final names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Generic, TypeVar

from censafe.model.observer import Observer
from censafe.products.run.folder import RunFolder
from censafe.products.run.options import EstimateOptions
from censafe.publication.atomic import move_into_place
from censafe.publication.manifest import (
    Manifest,
    hash_outputs,
    require_nothing_else,
    verify_outputs,
    write_manifest,
)
from censafe.publication.stamps import STAMP, Stamp

Measured = TypeVar("Measured", covariant=True)


@dataclass(frozen=True)
class MeasuredRun(Generic[Measured]):
    """A measured run, ready to be published.

    Args:
        ledger_total: what the ledger says this run spent; None for a test key.
        staging: where files are written and checked before they get their final names.
    """

    measured: Measured
    manifest: Manifest
    ledger_total: Fraction | None
    confidence: Fraction
    out: Path
    staging: Path
    observer: Observer

    @property
    def stamp(self) -> Stamp | None:
        """Of a test key; None for a release."""
        return STAMP if self.manifest.test_key else None

    def finish(
        self,
        files: Sequence[Path],
        names: Sequence[str],
        *,
        post_processing: Mapping[str, Any],
        outdated: Sequence[str] = (),
        workers: int = 1,
    ) -> None:
        """Write the manifest with the hashes of staged files, and give all of them their final names; ``manifest.json`` is the last."""
        manifest = replace(
            self.manifest,
            outputs=hash_outputs(self.staging, files, workers=workers),
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            post_processing=post_processing,
        )
        write_manifest(self.staging / "manifest.json", manifest)
        move_into_place(self.out, names, outdated=outdated)
        require_nothing_else(self.out, manifest)


def measured_before(
    folder: RunFolder, manifest: Manifest, read: Callable[..., Measured], options: EstimateOptions
) -> MeasuredRun[list[Measured]]:
    """A finished run with its measurements, whose files are checked; ``read`` reads one of them."""
    verify_outputs(folder.out, replace(manifest, outputs={}))
    digest = manifest.plan.digest()
    return MeasuredRun(
        [read(folder.out / part.file, plan_digest=digest) for part in manifest.parts],
        manifest,
        None if manifest.test_key else manifest.plan.total,
        options.confidence,
        folder.out,
        folder.staging,
        options.observer,
    )
