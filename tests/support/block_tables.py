"""The shipped tables of blocks, as one workload."""

from collections.abc import Sequence

from censafe.attack.tables import Workload, chosen_tables


def block_workload(without: Sequence[str] = ()) -> Workload:
    """The 18 tables of blocks, or fewer."""
    return Workload.of(list(chosen_tables(("block",), without).values()))
