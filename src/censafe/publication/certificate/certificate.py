"""The certificate: what was protected and how, for people and for machines."""

from __future__ import annotations

import json
from pathlib import Path

from censafe.publication.atomic import atomic_text
from censafe.publication.certificate.page import certificate_page
from censafe.publication.certificate.statement import CertificateInput, CheckGroup, certificate_document
from censafe.publication.stamps import Stamp

__all__ = ["CertificateInput", "CheckGroup", "certificate_document", "write_certificate"]


def write_certificate(
    folder: Path, source: CertificateInput, *, stamp: Stamp | None = None
) -> tuple[Path, Path]:
    """Write ``certificate.html`` and ``certificate.json`` into the run folder.

    Args:
        folder: the run folder.
        source: what to state; compared with ledger total and plan before anything is written.
        stamp: ``"NOT PRIVATE"`` for a run with a test key; the page then begins with a banner that says so.

    Returns:
        the two paths.

    Raises:
        ReleaseError: the stamp does not fit the source of the noise.
        CheckError: ledger, plan and published tables disagree.
        StorageError: the disk is full or the folder not writable.
    """
    document = certificate_document(source, stamp=stamp)
    page, values = folder / "certificate.html", folder / "certificate.json"
    atomic_text(page, certificate_page(document, source.contents))
    text = json.dumps(document, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    atomic_text(values, text + "\n")
    return page, values
