"""All tables of the DHC in the files of the Bureau. Public."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from censafe.api.arguments import public

if TYPE_CHECKING:
    from censafe.model.observer import Observer


@public
def write_segments(
    run: str | Path, out: str | Path, *, state: str | None = None, progress: Observer | None = None
) -> tuple[Path, ...]:
    """All tables of the DHC as the Bureau publishes them: for every state 44 pipe-delimited segments and a geographic header.

    Records have the fields FILEID, STUSAB, CHARITER, CIFSN and LOGRECNO, and then the cells of the tables of the segment in order; LOGRECNO
    joins them to the header. Fields of the header that the run does not know are empty, and so are the cells of P2 and H2.

    Args:
        run: folder of a run of topdown dhc-us or dhc-pr, or of microdata in the Bureau's layout.
        out: a new folder, in which every state has one, such as 44/ri000012020.dhc and 44/rigeo2020.dhc.
        state: two-digit code of the only state wanted; None for all.
        progress: receives stages; none without.

    Returns:
        The files written; all of them or none.

    Raises:
        UsageError: tables of another product, or no such state.
        StorageError: there is no finished run, the folder is there already, or the disk is full.

    Source: 2020 Census DHC technical documentation.

    Example:
        >>> import tempfile, censafe
        >>> folder = Path(tempfile.mkdtemp())
        >>> data = censafe.synthesize(folder / "data", persons=300, states=["44"], layout="pl94")
        >>> chosen = censafe.configuration("topdown", "pl94-us", root="State")
        >>> made = censafe.release(chosen, data, folder / "run", test_key=1)
        >>> write_segments(folder / "run", folder / "segments")
        Traceback (most recent call last):
        ...
        censafe.errors.UsageError: segments: the layout is that of the Demographic and Housing Characteristics File; ...
    """
    from censafe.model.observer import SilentObserver
    from censafe.products.topdown.census_tables.microdata_source import open_source
    from censafe.products.topdown.census_tables.segments import write_segment_files

    observer = progress or SilentObserver()
    with observer.stage("read"):
        source = open_source(Path(run))
    return write_segment_files(source, Path(out), state, observer)
