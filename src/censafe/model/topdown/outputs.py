"""What a run publishes of a histogram beside the histogram itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OutputLayout:
    """What a run publishes of a histogram beside the histogram itself.

    Args:
        digits: of the lowest areas for which the microdata have columns; 0 where there are no microdata.
        intervals: queries whose intervals are given where none are asked for; empty for the total and all margins.
        report: what an evaluation compares: queries of the schema with words for each; empty for what its attributes suggest.
    """

    title: str = "Histograms by TopDown"
    digits: int = 0
    microdata: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    intervals: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    report: tuple[tuple[str, str], ...] = ()
