"""Small pairs whose tables of summary metrics can be worked out by hand."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from censafe.evaluation.areas import ComparedAreas, areas_of_codes
from censafe.evaluation.counts.pairing import Pair
from censafe.evaluation.summary.counts import SummarySources
from censafe.evaluation.summary.filling import FilledLine, FilledTable, fill_book
from censafe.evaluation.summary.tables import SummaryBook, shipped_book
from censafe.geography.spines.tree import PL94_US, Spine, build_spine
from censafe.model import Attribute, ProtectedUnit, Schema
from censafe.model.topdown.histograms import HistogramSchema
from censafe.products.topdown.configuration.shipped import shipped_schemas
from support.pairs import pair_of

PERSONS = shipped_schemas()["pl94-persons"]
UNITS = shipped_schemas()["pl94-units"]
BLOCKS = (
    *(f"44{county:03d}000100{1}{1000:04d}" for county in (1, 3, 5, 7, 9)),
    "7200100010011000",
)
"""Five counties of Rhode Island with a block each, and a municipio of Puerto Rico."""
TRUE = (0, 0, 10, 200, 100, 50)
PUBLISHED = (0, 3, 12, 190, 100, 49)


def spine_of(blocks: Sequence[str] = BLOCKS) -> Spine:
    return build_spine(np.array(blocks), PL94_US)


def schema_of(record: ProtectedUnit, **levels: int) -> HistogramSchema:
    """A schema with attributes of the given numbers of levels."""
    return HistogramSchema(Schema("own", tuple(Attribute(*one) for one in levels.items())), record)


def grid_of(schema: HistogramSchema, blocks: Iterable[Mapping[tuple[int, ...], int]]) -> NDArray[np.int64]:
    """Counts by block from counts by levels."""
    rows = []
    for block in blocks:
        row = np.zeros(schema.schema.cells, np.int64)
        for levels, count in block.items():
            row[int(np.ravel_multi_index(tuple(levels), schema.schema.shape))] += count
        rows.append(row)
    return np.array(rows)


def adults(counts: Sequence[int], cell: tuple[int, ...] = (0, 1, 0, 0)) -> NDArray[np.int64]:
    """Persons of one cell only, by default White adults in households."""
    return grid_of(PERSONS, [{cell: count} for count in counts])


def pl94_pair(true: NDArray[np.int64], *published: NDArray[np.int64]) -> Pair:
    return pair_of(true, published, PERSONS, spine_of())


def lists_of(spine: Spine, **codes: Sequence[str]) -> tuple[ComparedAreas, ...]:
    """Lists of areas by the code of every block."""
    return tuple(areas_of_codes(spine, name, spine.leaf.codes, np.array(one)) for name, one in codes.items())


class Filled(dict[str, FilledTable]):
    """Tables by number, filled when they are looked at."""

    def __init__(self, sources: SummarySources, book: SummaryBook) -> None:
        super().__init__()
        self.sources, self.book = sources, book

    def __missing__(self, number: str) -> FilledTable:
        table = next(one for one in self.book.tables if one.number == number)
        (self[number],) = fill_book(replace(self.book, tables=(table,)), self.sources)
        return self[number]


def filled_of(sources: SummarySources, book: SummaryBook | None = None) -> Filled:
    return Filled(sources, book or shipped_book())


def row_of(table: FilledTable, label: str, heading: str = "") -> FilledLine:
    """The first row of some words, below a heading."""
    lines = list(table.lines)
    start = next((at for at, one in enumerate(lines) if one.line.label == heading), 0) if heading else 0
    return next(one for one in lines[start:] if one.line.areas and one.line.label == label)


def numbers_of(table: FilledTable, label: str, heading: str = "") -> list[float | None]:
    """Numbers of a row in the order of the columns."""
    return [row_of(table, label, heading).value(column.metric) for column in table.table.columns]
