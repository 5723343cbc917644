"""Keys of a run, those of the parts of its plan, and keyed commitments to its input.

One part key serves everything that is reserved and committed together. Release keys and test keys are unrelated types. Every check is by exact type, never
``isinstance`` and never a flag, so that no object can pass for a release key by inheriting from one.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, NoReturn, Self, TypeVar, cast

from censafe.errors import ReleaseError, StorageError
from censafe.model import PartPlan, QueryPlan, ReleasePlan
from censafe.model.closing import Closing
from censafe.model.plan import NoiseSource
from censafe.model.proven import proven
from censafe.privacy.ledger.commitments import fsync_folder
from censafe.privacy.ledger.state import Reservation
from censafe.privacy.measure.claims import Claim, Usage

SECRET_BYTES = 32
_T = TypeVar("_T")
_COMMITMENT_LABEL = b"censafe/commitment/1"
_TEST_LABEL = b"censafe/test-key/1"
_FILE_HEADER = b"censafe run key 1\n"
_PART_LABEL = b"censafe/noise/1"


class Secret:
    """A 32-byte secret held in one mutable buffer, which ``close`` overwrites with zeros.

    Args:
        data: buffer that the object takes over; the caller keeps no other copy.
    """

    __slots__ = ("_closed", "_data")

    def __init__(self, data: bytearray) -> None:
        if len(data) != SECRET_BYTES:
            raise ValueError(f"a key has {SECRET_BYTES} bytes, not {len(data)}")
        self._data = data
        self._closed = False

    def reveal(self) -> bytearray:
        """The buffer itself, for the cipher; ValueError once closed."""
        if self._closed:
            raise ValueError("the key is closed; its bytes are gone")
        return self._data

    def close(self) -> None:
        """Overwrite the buffer with zeros; later calls do nothing."""
        self._data[:] = bytes(len(self._data))
        self._closed = True

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be pickled or copied")


def sealed(cls: type[_T]) -> type[_T]:
    """Class decorator: instances cannot be pickled, copied or printed, and the class has no subclasses.

    A subclass would pass ``isinstance`` checks; refusing it at its definition leaves exact types only.
    """
    name = cls.__name__

    def refuse(self: object, *_: object) -> NoReturn:
        raise TypeError(f"a {name} cannot be pickled or copied")

    def refuse_subclass(**_: object) -> NoReturn:
        raise TypeError(f"{name} cannot be subclassed")

    for method in ("__reduce__", "__reduce_ex__", "__getstate__", "__copy__", "__deepcopy__"):
        setattr(cls, method, refuse)
    setattr(cls, "__init_subclass__", staticmethod(refuse_subclass))  # noqa: B010
    setattr(cls, "__repr__", lambda self: f"<{name}>")  # noqa: B010
    return cls


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


@dataclass(frozen=True)
class Planned:
    """What a part key may measure.

    Args:
        part: the part of the plan; a query measured with the key must be the plan's at its ordinal.
    """

    part: PartPlan
    most: Fraction
    paid: bool


class _PartKey:
    """What both part keys do; neither is the other's base, and one that is only this is refused as a key."""

    __slots__ = ("_planned", "_secret", "part", "usage")

    def __init__(
        self, secret: Secret, part: str, usage: Usage | None = None, planned: Planned | None = None
    ) -> None:
        self._secret = secret
        self._planned = planned
        self.usage = Usage() if usage is None else usage
        self.part = part

    @property
    def planned(self) -> Planned | None:
        """What the key may measure; None for a key that knows no plan."""
        return self._planned

    def claim(self, ordinal: int, answers: bytes) -> Claim:
        """The right to measure a query; see :meth:`censafe.privacy.measure.claims.Usage.claim`."""
        self.usage.claim(ordinal, answers)
        return Claim(ordinal)

    def close(self) -> None:
        """Overwrite the key with zeros."""
        self._secret.close()


@sealed
class ReleasePartKey(_PartKey):
    """The key of one part of a production run; made by :func:`plan_part_key` or :func:`derive_part_key`."""

    __slots__ = ()


@sealed
class TestPartKey(_PartKey):
    """The key of one part of a test run; made by :func:`plan_part_key` or :func:`derive_part_key`."""

    # The unused slot gives the two part key types different layouts: no ``__class__`` assignment turns one
    # into the other.
    __slots__ = ("_seeded",)
    __test__ = False  # not a test case


def derive_part_key(
    key: ReleaseKey | TestKey, plan_digest: str, input_commitment: bytes, part: str
) -> ReleasePartKey | TestPartKey:
    """Derive a part key that knows no plan: what a release key measures with it is stamped as unaccounted."""
    return _part_key(key, plan_digest, input_commitment, part, None)


@proven("keys.proof.md", digest="581d0d68d1495169")
def plan_part_key(
    key: ReleaseKey | TestKey,
    plan: ReleasePlan,
    input_commitment: bytes,
    part: str,
    reservation: Reservation | None,
) -> ReleasePartKey | TestPartKey:
    """Derive the key of one part of a plan; it measures what the plan says and nothing else.

    Args:
        key: the run key.
        plan: what is measured.
        input_commitment: keyed commitment to the input files (:func:`keyed_commitment`).
        part: name of one of the plan's parts.
        reservation: what the ledger reserved for the part; without it, what a release key measures is stamped as unaccounted.

    Returns:
        A ReleasePartKey for a ReleaseKey, a TestPartKey for a TestKey.

    Raises:
        TypeError: the key is of any other type.
        ReleaseError: the plan has no such part, or the reservation is of another part or cost.
    """
    parts = [planned_part for planned_part in plan.parts if planned_part.name == part]
    if len(parts) != 1:
        raise ReleaseError(f"the plan has no part {part}; nothing else can be measured under it")
    if reservation is not None and (
        type(reservation) is not Reservation or (reservation.part, reservation.cost) != (part, parts[0].cost)
    ):
        raise ReleaseError(f"the reservation is not that of {part}; reserve the part before it is measured")
    planned = Planned(parts[0], plan.total, paid=reservation is not None)
    return _part_key(key, plan.digest(), input_commitment, part, planned)


@proven("keys.proof.md", digest="f9f24cda79916105")
def _part_key(
    key: ReleaseKey | TestKey, plan_digest: str, input_commitment: bytes, part: str, planned: Planned | None
) -> ReleasePartKey | TestPartKey:
    """Keyed BLAKE2b-256 over the label and three fields, each preceded by its length in 8 bytes.

    No two triples give the same data. All keys derived from one run key for the same triple share one account of what
    their addresses were used for.
    """
    source = source_of(key)
    data = _PART_LABEL
    for field in (plan_digest.encode(), input_commitment, part.encode()):
        data += len(field).to_bytes(8, "little") + field
    digest = hashlib.blake2b(data, digest_size=SECRET_BYTES, key=key._secret.reveal())
    secret = Secret(bytearray(digest.digest()))
    usage = key._usages.setdefault(data, Usage())
    if source == "system":
        return ReleasePartKey(secret, part, usage, planned)
    return TestPartKey(secret, part, usage, planned)


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


@proven("keys.proof.md", digest="e1a64897db5b21d5")
def part_source_of(key: object) -> NoiseSource:
    """What measurements with a part key are stamped with.

    Args:
        key: a part key.

    Returns:
        ``seeded`` for a test key; for a release key ``system`` where a ledger reserved the cost of its part, and
        ``unaccounted`` where none did.

    Raises:
        TypeError: a run key, or any other object.
    """
    if type(key) is ReleaseKey or type(key) is TestKey:
        raise TypeError(f"noise is drawn with a part key, not a {type(key).__name__}; derive one")
    if source_of(key) == "seeded":
        return "seeded"
    planned = cast(ReleasePartKey, key).planned
    return "system" if planned is not None and planned.paid else "unaccounted"


@proven("keys.proof.md", digest="4f7b10e695270563")
def require_planned(key: ReleasePartKey | TestPartKey, queries: Mapping[int, QueryPlan]) -> None:
    """Refuse a query that is not the plan's.

    Args:
        key: part key; one that knows no plan allows everything, and what it measures is never a release.
        queries: what is about to be measured, by ordinal.

    Raises:
        ReleaseError: table, level, law or cost is not the plan's.
    """
    if key.planned is None:
        return
    part = key.planned.part
    for ordinal, query in queries.items():
        if not 0 <= ordinal < len(part.queries) or query != part.queries[ordinal]:
            raise ReleaseError(
                f"part {part.name}: query {ordinal} ({query.table}, {query.level}) has another law, cost or place than in the plan; "
                "nothing was drawn. Please report this as a bug."
            )


class TravelingKey:
    """A part key as part of a task: it can be pickled, which no other key can.

    The workers of an engine draw noise where they estimate, and need the key of the one part that is estimated. Neither the run key nor a key of
    another part travels. A traveling key shows no byte of itself in messages, is in no file that this package writes, and ends with its task.

    Args:
        key: of the part that workers estimate; it must be open, and must know its plan.
    """

    __slots__ = ("_bytes", "_part", "_planned", "_source")

    @proven("keys.proof.md", digest="64d32a730cd4716d")
    def __init__(self, key: ReleasePartKey | TestPartKey) -> None:
        if type(key) is not ReleasePartKey and type(key) is not TestPartKey:
            raise TypeError(f"only the key of a part travels, not a {type(key).__name__}")
        if key.planned is None:
            raise ValueError(f"the key of {key.part} knows no plan and does not travel")
        self._bytes = bytes(key._secret.reveal())
        self._part = key.part
        self._planned: Planned = key.planned
        self._source: Literal["system", "seeded"] = source_of(key)

    @proven("keys.proof.md", digest="405f14d9b28734db")
    def open(self) -> ReleasePartKey | TestPartKey:
        """The part key, where the task runs; close it when the task is done."""
        secret = Secret(bytearray(self._bytes))
        kind = ReleasePartKey if self._source == "system" else TestPartKey
        return kind(secret, self._part, None, self._planned)

    def __repr__(self) -> str:
        return "<TravelingKey>"

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if set(state) != set(self.__slots__) or len(state["_bytes"]) != SECRET_BYTES:
            raise TypeError("not a key of a part")
        for name, value in state.items():
            setattr(self, name, value)

    def __copy__(self) -> NoReturn:
        raise TypeError("a key cannot be copied")
