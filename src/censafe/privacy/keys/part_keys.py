"""Keys of the parts of a plan: one for everything that is reserved and committed together, derived from the run key.

Every check is by exact type, as for the run keys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NoReturn, cast

from censafe.errors import ReleaseError
from censafe.model import PartPlan, QueryPlan, ReleasePlan
from censafe.model.plan import NoiseSource
from censafe.model.proven import proven
from censafe.privacy.keys.entropy import SECRET_BYTES, Secret, sealed
from censafe.privacy.keys.run_keys import ReleaseKey, TestKey
from censafe.privacy.ledger.state import Reservation
from censafe.privacy.measure.claims import Claim, Usage

_PART_LABEL = b"censafe/noise/1"


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
