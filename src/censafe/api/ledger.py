"""The ledger of all budget ever spent, read and verified."""

from __future__ import annotations

from pathlib import Path

from censafe.privacy.ledger.report import DatasetTotal, LedgerReport, verify

__all__ = ["DatasetTotal", "LedgerReport", "read_ledger"]


def read_ledger(path: Path | str, *, head: str | None = None) -> LedgerReport:
    """Verify a ledger and read every part with its cost and state; nothing is written.

    Args:
        path: of the ledger.
        head: the hash that a manifest or certificate names; it must be in the chain.

    Raises:
        LedgerError: the chain is broken, a cap is exceeded, or `head` is not in it.

    Source: ``privacy/ledger/ledger.proof.md``.

    Example:
        >>> import tempfile
        >>> empty = Path(tempfile.mkdtemp()) / "ledger.jsonl"
        >>> empty.touch()
        >>> read_ledger(empty).rows
        ()
    """
    return verify(Path(path), head=head)
