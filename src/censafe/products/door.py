"""Every part of a run through the door exactly once: reserve, measure, write, commit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from censafe.errors import CheckError
from censafe.model import ExactCounts, Measurements, PartPlan, ReleasePlan
from censafe.privacy.keys import derive_part_key, keyed_commitment, source_of
from censafe.privacy.mechanisms import measure
from censafe.products.account import Account
from censafe.publication.measurement_files import read_measurements, write_measurements
from censafe.publication.stamps import STAMP

__all__ = ["Door"]

Key = tuple[str, str]


class Door:
    """Measures the parts of one plan into one folder.

    Args:
        plan: what may be measured.
        folder: where measurement files go; a file that is there already is read, never measured again.
        account: who pays, and the run key; the key's type decides whether the results are private.
    """

    def __init__(self, plan: ReleasePlan, folder: Path, account: Account) -> None:
        self._plan = plan
        self._digest = plan.digest()
        self._folder = folder
        self._account = account
        self._key = account.key
        self._commitment = keyed_commitment(self._key, account.input_commitment.encode())
        self._stamp = None if source_of(self._key) == "system" else STAMP

    def path(self, part: PartPlan) -> Path:
        """The measurement file of a part."""
        return self._folder / f"{part.name}.parquet"

    def measure(self, part: PartPlan, counts: Mapping[Key, ExactCounts]) -> list[Measurements]:
        """Measure one part, or read it when it has been measured.

        Args:
            part: one of the plan's parts.
            counts: exact counts by table and level, for all queries of the part.

        Returns:
            The measurements in the order of the part's queries.

        Raises:
            BudgetError: the cost is refused; no noise was drawn.
            CheckError: a stored file belongs to another plan or another kind of key, or was changed.
            StorageError: the file cannot be written; the reservation stays without commit.
        """
        path = self.path(part)
        if path.exists():
            return self.read(part)
        self._account.reserve(part)
        key = derive_part_key(self._key, self._digest, self._commitment, part.name)
        measured = [
            measure(counts[query.table, query.level], query, ordinal, key)
            for ordinal, query in enumerate(part.queries)
        ]
        key.close()
        sha256 = write_measurements(path, measured, plan_digest=self._digest, stamp=self._stamp)
        self._account.commit(part, path.name, sha256)
        return measured

    def read(self, part: PartPlan) -> list[Measurements]:
        """Read the measurements of a part that was measured before."""
        measured = read_measurements(self.path(part), plan_digest=self._digest)
        expected = source_of(self._key)
        if any(answer.source != expected for answer in measured):
            raise CheckError(
                f"{self.path(part)} was drawn with another kind of key than this run uses. Name a new folder."
            )
        return measured
