"""Keys of the noise: one run key, and one part key for everything that is reserved and committed together.

Release keys and test keys are unrelated types. Every check is by exact type, never ``isinstance`` and never
a flag, so that no object can pass for a release key by inheriting from one.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
import threading
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from censafe.errors import ReleaseError, StorageError
from censafe.privacy.proofs import proven
from censafe.privacy.secrets import SECRET_BYTES, Secret, sealed

__all__ = [
    "ReleaseKey",
    "ReleasePartKey",
    "TestKey",
    "TestPartKey",
    "derive_part_key",
    "keyed_commitment",
    "part_source_of",
    "source_of",
]

_PART_LABEL = b"censafe/noise/1"
_COMMITMENT_LABEL = b"censafe/commitment/1"
_TEST_LABEL = b"censafe/test-key/1"
_FILE_HEADER = b"censafe run key 1\n"
_MOST_BLOCKS = 1 << 40


@sealed
class ReleaseKey:
    """The key of a production run: 32 bytes of the operating system's entropy, held in memory only.

    It undoes the noise, so it is as confidential as the records. Use it as a context manager, or call
    ``close`` after the last measurement is committed.

    Example:
        >>> with ReleaseKey.from_system() as key:
        ...     len(keyed_commitment(key, b"file hashes"))
        32
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: Secret) -> None:
        self._secret = secret

    @classmethod
    def from_system(cls) -> Self:
        """Draw a fresh key from the operating system; OSError when it has no entropy to give."""
        return cls(Secret(bytearray(os.urandom(SECRET_BYTES))))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a key that ``store`` wrote.

        Args:
            path: key file.

        Returns:
            The same run key.

        Raises:
            StorageError: the file is missing, not a key file, or open to other users.
        """
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
        """Write the key to a new file that only its owner may read, and sync it.

        Args:
            path: file to create, beside the confidential input.

        Raises:
            StorageError: the file exists or cannot be written.
        """
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
            _sync_folder(path.parent)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise StorageError(f"{path}: the key file cannot be written: {error.strerror}") from error

    def close(self) -> None:
        """Overwrite the key with zeros."""
        self._secret.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@sealed
class TestKey:
    """The key of tests and demonstrations: a function of a seed, never private.

    Args:
        seed: any integer.

    Raises:
        TypeError: the seed is not an int.
    """

    __slots__ = ("_secret", "seed")
    __test__ = False  # not a test case

    def __init__(self, seed: int) -> None:
        if type(seed) is not int:
            raise TypeError(f"the seed of a test key must be an int, not {type(seed).__name__}")
        self.seed = seed
        digest = hashlib.shake_256(_TEST_LABEL + b"|" + str(seed).encode())
        self._secret = Secret(bytearray(digest.digest(SECRET_BYTES)))

    def close(self) -> None:
        """Overwrite the key with zeros."""
        self._secret.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Usage:
    """What one part key object has been used for: cipher blocks drawn, and queries measured."""

    __slots__ = ("_blocks", "_lock", "_ordinals")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._ordinals: set[int] = set()

    def reserve(self, blocks: int) -> None:
        with self._lock:
            if self._blocks + blocks > _MOST_BLOCKS:
                raise ReleaseError(
                    f"one part key serves at most 2^40 cipher blocks; {self._blocks} are used and {blocks} "
                    "more were asked for; divide the part"
                )
            self._blocks += blocks

    def claim(self, ordinal: int) -> None:
        with self._lock:
            if ordinal in self._ordinals:
                raise ReleaseError(
                    f"query {ordinal} of this part has been measured already; equal noise on two versions of "
                    "the counts would reveal their difference"
                )
            self._ordinals.add(ordinal)


@sealed
class ReleasePartKey:
    """The key of one part of a production run; made by :func:`derive_part_key`."""

    __slots__ = ("_secret", "_usage", "part")

    def __init__(self, secret: Secret, part: str) -> None:
        self._secret = secret
        self._usage = _Usage()
        self.part = part

    def reserve(self, blocks: int) -> None:
        """Count cipher blocks drawn under this key; ReleaseError beyond 2^40."""
        self._usage.reserve(blocks)

    def claim(self, ordinal: int) -> None:
        """Note that a query is measured; ReleaseError when it was measured before."""
        self._usage.claim(ordinal)

    def close(self) -> None:
        """Overwrite the key with zeros."""
        self._secret.close()


@sealed
class TestPartKey:
    """The key of one part of a test run; made by :func:`derive_part_key`."""

    # The unused slot gives the two part key types different layouts: no ``__class__`` assignment turns one
    # into the other.
    __slots__ = ("_secret", "_seeded", "_usage", "part")
    __test__ = False  # not a test case

    def __init__(self, secret: Secret, part: str) -> None:
        self._secret = secret
        self._usage = _Usage()
        self.part = part

    def reserve(self, blocks: int) -> None:
        """Count cipher blocks drawn under this key; ReleaseError beyond 2^40."""
        self._usage.reserve(blocks)

    def claim(self, ordinal: int) -> None:
        """Note that a query is measured; ReleaseError when it was measured before."""
        self._usage.claim(ordinal)

    def close(self) -> None:
        """Overwrite the key with zeros."""
        self._secret.close()


@proven("keys.proof.md", digest="a2bed030a44037ec")
def derive_part_key(
    key: ReleaseKey | TestKey, plan_digest: str, input_commitment: bytes, part: str
) -> ReleasePartKey | TestPartKey:
    """Derive the key of one part from the run key and everything that decides what is measured.

    Keyed BLAKE2b-256 over the label and the three fields, each preceded by its length in 8 bytes, so that no
    two triples give the same data.

    Args:
        key: the run key.
        plan_digest: hexadecimal SHA-256 of the plan.
        input_commitment: keyed commitment to the input files (:func:`keyed_commitment`).
        part: name of the part, a table or a level.

    Returns:
        A ReleasePartKey for a ReleaseKey, a TestPartKey for a TestKey.

    Raises:
        TypeError: the key is of any other type.
    """
    source = source_of(key)
    data = _PART_LABEL
    for field in (plan_digest.encode(), input_commitment, part.encode()):
        data += len(field).to_bytes(8, "little") + field
    digest = hashlib.blake2b(data, digest_size=SECRET_BYTES, key=key._secret.reveal())
    secret = Secret(bytearray(digest.digest()))
    return ReleasePartKey(secret, part) if source == "system" else TestPartKey(secret, part)


def keyed_commitment(key: ReleaseKey | TestKey, data: bytes) -> bytes:
    """HMAC-SHA-256 of data under the run key: equal inputs show as equal, nothing else can be told.

    Args:
        key: the run key.
        data: for example the hashes of the input files.

    Returns:
        32 bytes.

    Raises:
        TypeError: the key is neither a ReleaseKey nor a TestKey.
    """
    source_of(key)
    return hmac.digest(key._secret.reveal(), _COMMITMENT_LABEL + b"|" + data, "sha256")


@proven("keys.proof.md", digest="c220c89d4fc56fd5")
def source_of(key: object) -> Literal["system", "seeded"]:
    """Where the noise of a key comes from, decided by its exact type.

    Args:
        key: a run key or a part key.

    Returns:
        ``system`` for release keys, ``seeded`` for test keys.

    Raises:
        TypeError: any other object.
    """
    if type(key) is ReleaseKey or type(key) is ReleasePartKey:
        return "system"
    if type(key) is TestKey or type(key) is TestPartKey:
        return "seeded"
    raise TypeError(f"not a key of censafe: {type(key).__name__}")


@proven("keys.proof.md", digest="5edad8af44b1e36e")
def part_source_of(key: object) -> Literal["system", "seeded"]:
    """As :func:`source_of`, for part keys only; TypeError for run keys and anything else."""
    if type(key) is ReleaseKey or type(key) is TestKey:
        raise TypeError(f"noise is drawn with a part key, not a {type(key).__name__}; derive one")
    return source_of(key)
