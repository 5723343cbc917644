"""Recognising a dataset across runs without publishing a hash of it.

A plain hash of a confidential file lets anyone who can guess the file confirm the guess. The ledger keeps a keyed hash
instead, under a key that lives beside the ledger and is used for nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

from censafe.errors import LedgerError

__all__ = ["commit_to_files", "fsync_folder", "key_path_of", "load_or_create_key"]

_DOMAIN = b"censafe/dataset/1\n"
_SHA256 = re.compile(r"[0-9a-f]{64}")


def key_path_of(ledger: Path) -> Path:
    """The key file that belongs to a ledger: the same name with the ending ``.key``."""
    key = ledger.with_suffix(".key")
    if key == ledger:
        raise LedgerError(f"{ledger}: a ledger cannot have the ending .key; name it censafe-ledger.jsonl")
    return key


def load_or_create_key(path: Path, *, create: bool) -> bytes:
    """Read the 32-byte commitment key, or make it once with mode 0600.

    Args:
        path: the key file, 64 hexadecimal digits.
        create: whether a missing key may be made; False when the ledger already has entries under the lost key.

    Raises:
        LedgerError: the key is missing, unreadable, damaged, or readable by other users.
    """
    if not path.exists():
        if not create:
            raise LedgerError(
                f"{path}: the key of this ledger is missing, so that its datasets cannot be recognised; "
                "restore it from a backup, or start a new ledger"
            )
        _create_key(path)
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise LedgerError(
            f"{path}: the key of the ledger cannot be read ({error.__class__.__name__})"
        ) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise LedgerError(f"{path}: other users may read the key of the ledger; run chmod 600 on it")
    if not _SHA256.fullmatch(text):
        raise LedgerError(f"{path}: the key of the ledger is damaged; restore it from a backup")
    return bytes.fromhex(text)


def commit_to_files(key: bytes, file_hashes: Mapping[str, str]) -> str:
    """Keyed commitment to a set of input files.

    Args:
        key: 32 bytes.
        file_hashes: SHA-256 of each file, hexadecimal, by name. Names do not count: a renamed file is the same data.

    Returns:
        HMAC-SHA-256 of the sorted hashes, hexadecimal.

    Example:
        >>> one = commit_to_files(bytes(32), {"a.csv": "0" * 64, "b.csv": "1" * 64})
        >>> one == commit_to_files(bytes(32), {"b.csv": "0" * 64, "c.csv": "1" * 64})
        True
    """
    hashes = sorted(file_hashes.values())
    if not hashes or not all(_SHA256.fullmatch(value) for value in hashes):
        raise ValueError("a commitment needs the SHA-256 of at least one file, in 64 hexadecimal digits each")
    return hmac.new(key, _DOMAIN + "\n".join(hashes).encode(), hashlib.sha256).hexdigest()


def fsync_folder(folder: Path) -> None:
    """Flush a folder's entries to stable storage."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _create_key(path: Path) -> None:
    """Write under another name and rename, so that a killed process leaves no half-written key."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, secrets.token_bytes(32).hex().encode() + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.rename(path)
        fsync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise LedgerError(f"{path}: the key of the ledger cannot be written: {error.strerror}") from error
