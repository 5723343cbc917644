"""Which results may be written as a release, and how the others are marked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, Protocol

from censafe.errors import ReleaseError
from censafe.model.measurements import is_run_result
from censafe.model.plan import NoiseSource

Stamp = Literal["NOT PRIVATE", "DEMONSTRATION ON PUBLISHED DATA"]
STAMP: Stamp = "NOT PRIVATE"
DEMONSTRATION: Stamp = "DEMONSTRATION ON PUBLISHED DATA"
LAW_STAMP = " (TEST KEY, NOT PRIVATE)"
STAMP_REASONS: Mapping[Stamp, str] = {
    STAMP: "the measurements were made with a test key",
    DEMONSTRATION: "the input counts were published before",
}
"""Why something is stamped, as a clause."""

STAMP_NOTES: Mapping[Stamp, tuple[str, str]] = {
    STAMP: (
        "NOT_PRIVATE.txt",
        "NOT PRIVATE\n\n"
        "The noise in these files was drawn with a test key, which anyone can use to draw it again.\n"
        "Anyone who has the key can subtract the noise. Do not publish these files.\n",
    ),
    DEMONSTRATION: (
        "DEMONSTRATION.txt",
        "DEMONSTRATION ON PUBLISHED DATA\n\n"
        "These files were made from counts that had already been published, with real noise.\n"
        "They demonstrate the software. They protect no one, because the underlying counts are public.\n",
    ),
}
"""Name and text of the file that stands in a folder whose other files have no room for the stamp."""


class Stamped(Protocol):
    """Anything with noise from a release key or from a test key."""

    @property
    def source(self) -> NoiseSource:
        """``system`` for a release, ``seeded`` for a test key, ``unaccounted`` outside a plan and ledger."""
        ...


def stamp_of(*, test_key: bool, published_data: bool = False) -> Stamp | None:
    """The stamp of a run: that of a test key comes first, because it says more.

    Example:
        >>> stamp_of(test_key=True, published_data=True), stamp_of(test_key=False)
        ('NOT PRIVATE', None)
    """
    if test_key:
        return STAMP
    return DEMONSTRATION if published_data else None


def stamp_metadata(stamp: Stamp | None) -> dict[str, str]:
    """What the metadata of a file say of its stamp."""
    return {"private": "false", "stamp": stamp} if stamp else {"private": "true"}


def require_publishable(queries: Iterable[Stamped], stamp: Stamp | None) -> None:
    """Check that the stamp fits the results: test-key results carry theirs, and nothing else does.

    Only values of exactly the types that a run makes are results: what a subclass says of its source is not believed.
    """
    if stamp not in (None, STAMP, DEMONSTRATION):
        raise ReleaseError(f"the only stamps are {STAMP!r} and {DEMONSTRATION!r}")
    results = list(queries)
    sources = {result.source for result in results}
    if "unaccounted" in sources:
        raise ReleaseError(
            "results were drawn outside a plan and ledger, so that their privacy loss is not accounted for; publish the measurements of a run"
        )
    strange = sorted({type(result).__name__ for result in results if not is_run_result(result)})
    if strange:
        raise ReleaseError(
            f"{', '.join(strange)}: not a type of result that a run makes; publish the measurements of a run"
        )
    if stamp != STAMP and sources - {"system"}:
        raise ReleaseError(
            "results drawn with a test key are not private and cannot be written as a release; "
            f'write them with stamp="{STAMP}" or run again without a test key'
        )
    if stamp == STAMP and "system" in sources:
        raise ReleaseError(
            f"results of a release must not be stamped {STAMP!r}; write releases and tests apart"
        )
