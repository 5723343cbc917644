"""Recognizing record files across runs without publishing a hash of them.

A plain hash of a confidential file lets anyone who can guess the file confirm the guess. The ledger keeps a keyed hash
of every file instead, under a key that lies next to the ledger and is used for nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import secrets
import stat
from pathlib import Path

from censafe.errors import LedgerError

_FILE = b"censafe/file/1\n"
_NAME = b"censafe/account/1\n"
_KEY = b"censafe/ledger key/1\n"
_SHA256 = re.compile(r"[0-9a-f]{64}")


def key_path_of(ledger: Path) -> Path:
    """The key file that belongs to a ledger: the same name with the ending ``.key``."""
    key = ledger.with_suffix(".key")
    if key == ledger:
        raise LedgerError(f"{ledger}: a ledger cannot have the ending .key; name it censafe-ledger.jsonl")
    return key


def load_key(path: Path) -> bytes:
    """Read the 32-byte commitment key, 64 hexadecimal digits."""
    if not path.exists():
        raise LedgerError(
            f"{path}: the key of this ledger is missing, so that its files cannot be recognized; "
            "restore it from a backup"
        )
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise LedgerError(f"{path}: the key of the ledger cannot be read (not a regular file)")
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


def require_no_key(path: Path) -> None:
    """Refuse a ledger without lines that has a key."""
    if os.path.lexists(path):
        raise LedgerError(
            f"{path} is the key of a ledger, but {path.with_suffix('.jsonl').name} beside it is missing or empty: what was "
            "spent would be forgotten. Restore the ledger from a backup; only where nothing was ever released from these "
            "records, remove the key as well to begin anew"
        )


def new_key(path: Path) -> bytes:
    """Make the key of a ledger without lines, under a provisional name until :func:`settle_key`.

    A key under its own name therefore always belongs to a ledger with lines. One that a killed start left under the provisional name is
    taken again: a run folder may name its records by commitments under it.
    """
    require_no_key(path)
    provisional = _provisional(path)
    with contextlib.suppress(LedgerError):
        return load_key(provisional)
    key = secrets.token_bytes(32)
    try:
        provisional.unlink(missing_ok=True)
        descriptor = os.open(provisional, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, key.hex().encode() + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        fsync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            provisional.unlink()
        raise LedgerError(f"{path}: the key of the ledger cannot be written: {error.strerror}") from error
    return key


def settle_key(path: Path) -> None:
    """Give a provisional key its name, now that the ledger has a line; does nothing where it has it already."""
    if os.path.lexists(path) or not _provisional(path).exists():
        return
    try:
        _provisional(path).rename(path)
        fsync_folder(path.parent)
    except OSError as error:
        raise LedgerError(f"{path}: the key of the ledger cannot be written: {error.strerror}") from error


def drop_provisional_key(path: Path) -> None:
    """Remove a key that no line was written under."""
    with contextlib.suppress(OSError):
        _provisional(path).unlink(missing_ok=True)


def commit_to_file(key: bytes, sha256: str) -> str:
    """Keyed commitment to one record file, whatever its name.

    Example:
        >>> len(commit_to_file(bytes(32), "0" * 64))
        64
    """
    if not _SHA256.fullmatch(sha256):
        raise ValueError("a commitment needs the SHA-256 of a file, in 64 hexadecimal digits")
    return hmac.new(key, _FILE + sha256.encode(), hashlib.sha256).hexdigest()


def commit_to_name(key: bytes, name: str) -> str:
    """Keyed commitment to the name of an account, HMAC-SHA-256 in hexadecimal."""
    return hmac.new(key, _NAME + name.encode(), hashlib.sha256).hexdigest()


def commit_to_key(key: bytes) -> str:
    """What a ledger's lines say of their key, so that another key next to the ledger is noticed."""
    return hmac.new(key, _KEY, hashlib.sha256).hexdigest()


def fsync_folder(folder: Path) -> None:
    """Flush a folder's entries to stable storage."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _provisional(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")
