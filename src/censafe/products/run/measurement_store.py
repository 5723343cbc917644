"""Every part of a run is measured exactly once: reserve, measure, write, commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from censafe.errors import CheckError
from censafe.model import PartPlan, ReleasePlan
from censafe.model.plan import NoiseSource
from censafe.privacy.keys.part_keys import ReleasePartKey, TestPartKey, plan_part_key, source_of
from censafe.privacy.keys.run_keys import keyed_commitment
from censafe.privacy.ledger.state import Reservation
from censafe.products.run.account import Account, one_file
from censafe.publication.stamps import stamp_of

Measured = TypeVar("Measured")


@dataclass(frozen=True)
class MeasurementFiles(Generic[Measured]):
    """How one kind of measurements is stored.

    Args:
        write: ``write(path, measured, plan_digest=..., stamp=...)`` writes a part, read-only, whole or not at all, and returns
            :func:`~censafe.publication.atomic.sha256_path` of its file or folder.
        read: ``read(path, plan_digest=...)`` reads a part back and checks that it is whole, unchanged and of the plan.
    """

    write: Callable[..., str]
    read: Callable[..., Measured]
    sources: Callable[[Measured], set[NoiseSource]]


class MeasurementStore:
    """Measures the parts of one plan into one folder.

    Args:
        folder: where measurement files go; a file that is there already is read, never remeasured.
        account: who pays, and the run key; the key's type decides whether the results are private.
        place: file or folder of a part below ``folder``, by the part's name.
        published_data: whether what is measured was published before; measurement files then say so.
        before_first: called once before the first part is reserved, when everything that is measured has been read; what it
            raises stops the run before anything is paid for.
    """

    def __init__(
        self,
        plan: ReleasePlan,
        folder: Path,
        account: Account,
        place: Callable[[str], str] = one_file,
        before_first: Callable[[], None] | None = None,
        *,
        published_data: bool = False,
    ) -> None:
        self._plan = plan
        self._place = place
        self._before_first = before_first
        self._digest = plan.digest()
        self._folder = folder
        self._account = account
        self._key = account.key
        self._commitment = keyed_commitment(self._key, account.input_commitment.encode())
        self._stamp = stamp_of(test_key=source_of(self._key) == "seeded", published_data=published_data)

    @property
    def source(self) -> NoiseSource:
        """Where the noise of this run comes from, decided by the type of its key."""
        return source_of(self._key)

    def path(self, part: PartPlan) -> Path:
        """The measurement file or folder of a part."""
        return self._folder / self._place(part.name)

    def is_measured(self, part: PartPlan) -> bool:
        """Whether a part has its file; it is then read, and never measured again."""
        return self.path(part).exists()

    def done(self) -> bool:
        """Whether every part of the plan has its file, so that the records need not be reread."""
        return all(map(self.is_measured, self._plan.parts))

    def reserve_all(self, parts: Sequence[PartPlan]) -> None:
        """Reserve all these parts before the first of them is measured; parts that are done have been paid for."""
        for part in parts:
            if not self.is_measured(part):
                self._reserve(part)

    @contextmanager
    def reserve(self, part: PartPlan) -> Iterator[ReleasePartKey | TestPartKey]:
        """Reserve the cost of a part; the key of its noise, which is closed when the block ends. What was drawn is then written."""
        if self.is_measured(part):
            raise CheckError(
                f"{self.path(part)} holds the measurements of {part.name}, which are never drawn again"
            )
        key = plan_part_key(self._key, self._plan, self._commitment, part.name, self._reserve(part))
        try:
            yield key
        finally:
            key.close()

    def write(self, part: PartPlan, measured: Measured, files: MeasurementFiles[Measured]) -> None:
        """Store the measurements of a reserved part, and commit it."""
        path = self.path(part)
        sha256 = files.write(path, measured, plan_digest=self._digest, stamp=self._stamp)
        self._account.commit(part, self._place(part.name), sha256)
        if self.done():  # nothing is left to draw: what undoes the noise need not live through the estimation
            self._key.close()

    def read(self, part: PartPlan, files: MeasurementFiles[Measured]) -> Measured:
        """Read the measurements of a part that was measured before."""
        measured = files.read(self.path(part), plan_digest=self._digest)
        if files.sources(measured) - {source_of(self._key)}:
            raise CheckError(
                f"{self.path(part)} was drawn with another kind of key than this run uses. Name a new folder."
            )
        return measured

    def _reserve(self, part: PartPlan) -> Reservation | None:
        if self._before_first is not None:
            self._before_first()
            self._before_first = None
        return self._account.reserve(part)
