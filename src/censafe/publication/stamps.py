"""Which results may be written as a release, and how the others are marked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol

from censafe.errors import ReleaseError

__all__ = ["LAW_STAMP", "STAMP", "Stamp", "Stamped", "require_publishable"]

Stamp = Literal["NOT PRIVATE"]
STAMP: Stamp = "NOT PRIVATE"
LAW_STAMP = " (TEST KEY, NOT PRIVATE)"


class Stamped(Protocol):
    """Anything that knows whether its noise came from a release key or from a test key."""

    @property
    def source(self) -> Literal["system", "seeded"]:
        """``system`` for a release, ``seeded`` for a test key."""
        ...


def require_publishable(queries: Iterable[Stamped], stamp: Stamp | None) -> None:
    """Check that the stamp fits the results: test-key results carry it, releases do not.

    Args:
        queries: measurements or published queries.
        stamp: ``"NOT PRIVATE"``, or None for a release.

    Raises:
        ReleaseError: a test-key result without the stamp, a release with it, or any other stamp.
    """
    if stamp not in (None, STAMP):
        raise ReleaseError(f"the only stamp is {STAMP!r}")
    sources = {query.source for query in queries}
    if stamp is None and sources - {"system"}:
        raise ReleaseError(
            "results drawn with a test key are not private and cannot be written as a release; "
            f'write them with stamp="{STAMP}" or run again without a test key'
        )
    if stamp is not None and "system" in sources:
        raise ReleaseError(
            f"results of a release must not be stamped {STAMP!r}; write releases and tests apart"
        )
