"""Tables of summary metrics: what every row and column is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

Record = Literal["person", "household"]
Measure = Literal["counts", "rate", "shares", "ages and sexes", "largest", "condition"]


class SummaryRequest(NamedTuple):
    """Records that are counted: whose they are, and the sets of cells that all of them lie in."""

    record: Record = "person"
    terms: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The sets in words."""
        return " & ".join(self.terms) or "total"

    def within(self, terms: Sequence[str]) -> SummaryRequest:
        """Those that lie in further sets as well."""
        return SummaryRequest(self.record, (*self.terms, *terms))


@dataclass(frozen=True)
class SummaryAreas:
    """A kind of areas, of the spine or of a list.

    Args:
        lists: names of lists, any of which will do. With a level, the list selects the blocks that count.
        within: codes of the list that count: first letters, or from and to; none for all.
    """

    name: str
    level: str = ""
    lists: tuple[str, ...] = ()
    within: tuple[tuple[str, ...], ...] = ()
    only_in: tuple[int, ...] = ()
    not_in: tuple[int, ...] = ()


@dataclass(frozen=True)
class SizeClass:
    """A class of areas by a true count, closed on the left.

    Args:
        by: whose count it is: persons (empty), the row's own count (``own``), or the records of a set.
    """

    label: str
    by: str = ""
    low: int | None = None
    high: int | None = None

    @property
    def name(self) -> str:
        """Short name, such as ``1000-4999`` or ``own 10-99``.

        Example:
            >>> SizeClass("Tracts with population 10 to 99", "own", 10, 100).name
            'own 10-99'
        """
        if self.low is None:
            return "all"
        ends = f"{self.low}+" if self.high is None else f"{self.low}-{self.high - 1}"
        return f"{self.by} {ends}".strip()


@dataclass(frozen=True)
class SummaryColumn:
    """Words of a column and its metric."""

    label: str
    metric: str


@dataclass(frozen=True)
class ErrorRate:
    """A ratio of two counts.

    Args:
        empty_is_zero: whether a rate of nothing is 0; otherwise such areas are left out and counted.
    """

    of: SummaryRequest
    to: SummaryRequest
    scale: int
    empty_is_zero: bool


_EVERYBODY: Final = SummaryRequest()
_EVERYWHERE: Final = SizeClass("")


@dataclass(frozen=True)
class Line:
    """A row of a table, or a heading.

    Args:
        options: names of conditions, or of the rate, or the code of a state.
    """

    label: str
    areas: str = ""
    request: SummaryRequest = _EVERYBODY
    measure: Measure = "counts"
    size: SizeClass = _EVERYWHERE
    options: tuple[str, ...] = ()
    among: tuple[SummaryRequest, ...] = ()

    @property
    def subject(self) -> str:
        """What is measured, for the column ``characteristic``."""
        if self.measure in ("counts", "shares"):
            share = " as a share of the nation"
            if self.measure == "shares":
                return self.request.text + (
                    f" as a share of state {self.options[0]}" if self.options else share
                )
            return self.request.text
        words = " and ".join(self.options) or self.measure
        return f"{words}: {self.request.text}" if self.request.terms else words


@dataclass(frozen=True)
class SummaryTable:
    """One table."""

    number: str
    sheet: str
    section: str
    title: str
    universe: str
    geography: str
    columns: tuple[SummaryColumn, ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class SummaryBook:
    """Tables, and the kinds of areas and rates that their rows name."""

    tables: tuple[SummaryTable, ...]
    areas: Mapping[str, SummaryAreas]
    rates: Mapping[str, ErrorRate] = field(default_factory=dict)

    @property
    def sheets(self) -> tuple[str, ...]:
        """Names of the sheets in order."""
        return tuple(dict.fromkeys(table.sheet for table in self.tables))
