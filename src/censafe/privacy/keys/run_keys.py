"""Keys of a run, from which the keys of its parts are derived, and keyed commitments to its input.

Release keys and test keys are unrelated types. Every check is by exact type, never ``isinstance`` and never
a flag, so that no object can pass for a release key by inheriting from one.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from pathlib import Path
from typing import Self

from censafe.errors import StorageError
from censafe.model.closing import Closing
from censafe.privacy.keys.commitments import fsync_folder
from censafe.privacy.keys.entropy import SECRET_BYTES, Secret, sealed
from censafe.privacy.measure.claims import Usage

_COMMITMENT_LABEL = b"censafe/commitment/1"
_TEST_LABEL = b"censafe/test-key/1"
_FILE_HEADER = b"censafe run key 1\n"


@sealed
class ReleaseKey(Closing):
    """The key of a production run: 32 bytes of the operating system's entropy, held in memory only.

    It undoes the noise, so it is as confidential as the records. Use it as a context manager, or call
    ``close`` after the last measurement is committed.

    Example:
        >>> with ReleaseKey.from_system() as key:
        ...     len(keyed_commitment(key, b"file hashes"))
        32
    """

    __slots__ = ("_secret", "_usages")

    def __init__(self, secret: Secret) -> None:
        self._secret = secret
        self._usages: dict[bytes, Usage] = {}

    @classmethod
    def from_system(cls) -> Self:
        """Draw a fresh key from the operating system; OSError when it has no entropy to give."""
        return cls(Secret(bytearray(os.urandom(SECRET_BYTES))))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a key that ``store`` wrote."""
        try:
            if stat.S_IMODE(path.stat().st_mode) & 0o077:
                raise StorageError(
                    f"{path}: other users may read this key file; allow its owner only (chmod 600)"
                )
            data = bytearray(len(_FILE_HEADER) + SECRET_BYTES + 1)
            with path.open("rb", buffering=0) as file:  # unbuffered, so that no second copy stays behind
                size = file.readinto(data)
        except OSError as error:
            raise StorageError(f"{path}: the key file cannot be read: {error.strerror}") from error
        if size != len(_FILE_HEADER) + SECRET_BYTES or not data.startswith(_FILE_HEADER):
            raise StorageError(f"{path}: not a key file of censafe; remove it to start with a new key")
        secret = data[len(_FILE_HEADER) : size]
        data[:] = bytes(len(data))
        return cls(Secret(secret))

    def store(self, path: Path) -> None:
        """Write the key to a new file that only its owner may read, and sync it."""
        secret = self._secret.reveal()
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError as error:
            raise StorageError(
                f"{path}: a key file is already there; load it or name another folder"
            ) from error
        except OSError as error:
            raise StorageError(f"{path}: the key file cannot be written: {error.strerror}") from error
        try:
            with os.fdopen(handle, "wb", buffering=0) as file:
                file.write(_FILE_HEADER)
                file.write(secret)
                os.fsync(file.fileno())
            fsync_folder(path.parent)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise StorageError(f"{path}: the key file cannot be written: {error.strerror}") from error

    def close(self) -> None:
        """Overwrite the key with zeros."""
        self._secret.close()


@sealed
class TestKey(Closing):
    """The key of tests and demonstrations: a function of a seed, never private."""

    __slots__ = ("_secret", "_usages", "seed")
    __test__ = False  # not a test case

    def __init__(self, seed: int) -> None:
        if type(seed) is not int:
            raise TypeError(f"the seed of a test key must be an int, not {type(seed).__name__}")
        self.seed = seed
        digest = hashlib.shake_256(_TEST_LABEL + b"|" + str(seed).encode())
        self._secret = Secret(bytearray(digest.digest(SECRET_BYTES)))
        self._usages: dict[bytes, Usage] = {}

    def close(self) -> None:
        """Overwrite the key with zeros."""
        self._secret.close()


def keyed_commitment(key: ReleaseKey | TestKey, data: bytes) -> bytes:
    """HMAC-SHA-256 of data under the run key: equal inputs show as equal, nothing else follows from them."""
    if type(key) is not ReleaseKey and type(key) is not TestKey:
        raise TypeError(f"not a run key of censafe: {type(key).__name__}")
    return hmac.digest(key._secret.reveal(), _COMMITMENT_LABEL + b"|" + data, "sha256")
