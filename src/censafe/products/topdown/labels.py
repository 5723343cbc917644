"""Words for what TopDown counts: answers of queries, items of tables, ``codebook.csv``, and comma-separated copies with labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Final

import pyarrow as pa

from censafe.geography.files import MOST_PER_BYTE_OF_RUN, open_parquet
from censafe.geography.identifiers import AreaNames
from censafe.model import CellQuery, SparseLevel
from censafe.model.topdown.histograms import HistogramSchema, MeasuredHistogram
from censafe.products.topdown.census_tables.definitions import census_tables
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.outputs import outputs_of
from censafe.products.topdown.configuration.shipped import quarters_labels, race_sets, shipped_schemas
from censafe.publication.columns import write_codebook_rows
from censafe.publication.microdata.histograms import histogram_rows
from censafe.publication.stamps import STAMP_REASONS, Stamp
from censafe.publication.tables.csv_rows import write_csv

_RACES: Final = {
    "white": "White",
    "black": "Black",
    "aian": "American Indian or Alaska Native",
    "asian": "Asian",
    "nhopi": "Native Hawaiian or Pacific Islander",
    "sor": "some other race",
}


def answer_words(schema: HistogramSchema, query: CellQuery) -> Iterator[str]:
    """Words for every answer of a query, in their order."""
    sizes = [size for size in query.shape if size > 1]
    axes = [_levels(schema, query, name, size) for name, size in zip(query.attributes, sizes, strict=True)]
    for levels in product(*axes):
        yield ", ".join(levels) or "total"


def _levels(schema: HistogramSchema, query: CellQuery, attribute: str, size: int) -> list[str]:
    """Words for the groups of one attribute that a query distinguishes."""
    names = [word.strip() for word in query.name.split("*")]
    recode = next(
        (one for name, one in schema.recodes.items() if one.attribute == attribute and name in names), None
    )
    shipped: dict[tuple[str, int], list[str]] = {
        ("votingage", 2): ["under 18", "18 and over"],
        ("hispanic", 2): ["not Hispanic", "Hispanic"],
        ("h1", 2): ["vacant", "occupied"],
        ("hhinstlevels", 3): ["household", "institution", "other group quarters"],
    }
    named = attribute if recode is None else recode.name
    if len(schema.labels.get(named, ())) == size:
        return list(schema.labels[named])
    if (named, size) in shipped:
        return shipped[named, size]
    if (named, size) == ("cenrace", 63):
        return [race_words(level) for level in range(size)]
    if (named, size) == ("hhgq", 8):
        return list(quarters_labels())
    return [f"{named} {level}" for level in range(size)]


def race_words(level: int) -> str:
    """The races of a level of CENRACE.

    Example:
        >>> race_words(0), race_words(6)
        ('White', 'White and Black')
    """
    return " and ".join(_RACES[one] for one in race_sets()[level])


@cache
def item_words() -> dict[str, tuple[str, ...]]:
    """What every item of the redistricting tables counts, by table.

    Example:
        >>> labels = item_words()
        >>> labels["P1"][:3], labels["P1"][8:11]
        (('total', 'one race', 'White alone'), ('two or more races', 'two races', 'White and Black'))
        >>> labels["P2"][3], labels["H1"]
        ('not Hispanic, one race', ('total', 'occupied', 'vacant'))
    """
    counts = ("", "one race", "two races", "three races", "four races", "five races", "six races")
    persons = shipped_schemas()["pl94-persons"]
    words = tuple(answer_words(persons, persons.query("cenrace")))
    races = ["total"]
    for line in census_tables("pl94")["P1"].lines[1:]:
        codes = sorted(line.when["cenrace"])
        numbers = {len(race_sets()[code]) for code in codes}
        if len(numbers) > 1:
            races.append("two or more races")
        elif len(codes) > 1 or (numbers == {6} and counts[6] not in races):
            races.append(counts[numbers.pop()])
        else:
            races.append(words[codes[0]] + (" alone" if numbers == {1} else ""))
    by_origin = ["total", "Hispanic", "not Hispanic", *(f"not Hispanic, {one}" for one in races[1:])]
    kinds = quarters_labels()
    quarters = ["total", "institutions", *kinds[1:5], "other group quarters", *kinds[5:]]
    both = {"P1": tuple(races), "P2": tuple(by_origin), "P3": tuple(races), "P4": tuple(by_origin)}
    return {**both, "P5": tuple(quarters), "H1": ("total", "occupied", "vacant")}


_ROWS = 1 << 14


def copy_table(source: Path, folder: Path) -> dict[Path, str]:
    """Write the rows of a Parquet file of tables as CSV, with the same columns; nothing for a very large one."""
    if source.stat().st_size > _MOST_BYTES:
        return {}
    path = folder / f"{source.stem}.csv"
    with open_parquet(source, per_byte=MOST_PER_BYTE_OF_RUN) as opened:
        return {path: write_csv(path, opened.schema_arrow.names, opened.iter_batches(_ROWS))}


def copy_histograms(
    source: Path, folder: Path, level: SparseLevel, areas: AreaNames, labels: Sequence[str]
) -> dict[Path, str]:
    """Write histograms as CSV, with the columns of their Parquet file and, where cells have labels, a column ``label``."""
    if source.stat().st_size > _MOST_BYTES:
        return {}
    words = pa.array(labels, pa.string())

    def rows() -> Iterator[pa.RecordBatch]:
        for batch in histogram_rows(level, areas):
            label = [pa.DictionaryArray.from_arrays(batch.column("cell"), words)] if labels else []
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, *label], [*batch.schema.names, *(["label"] * bool(labels))]
            )

    path = folder / f"{source.stem}.csv"
    names = ["geocode", *areas.columns, "cell", "count", *(["label"] * bool(labels))]
    return {path: write_csv(path, names, rows())}


COPIES: Final = ("codebook.csv", "csv")
"""What a run folder holds beside its Parquet files for those who read text."""

_MOST_LABELS: Final = 100_000  # cells of a histogram; more would fill the codebook
_MOST_BYTES: Final = 1 << 30  # of a Parquet file; the copy of a larger one would fill a disk
_UNIVERSES: Final = {
    "P1": "persons",
    "P2": "persons",
    "P3": "persons of 18 years and over",
    "P4": "persons of 18 years and over",
    "P5": "persons in group quarters",
    "H1": "housing units",
}


def cell_labels(histogram: MeasuredHistogram) -> tuple[str, ...]:
    """Words for every cell; none where there are too many."""
    schema = histogram.schema
    if schema.schema.cells > _MOST_LABELS:
        return ()
    return tuple(answer_words(schema, schema.query("detailed")))


def write_cell_codebook(path: Path, config: TopdownConfig, *, tables: bool, stamp: Stamp | None) -> None:
    """Write what every cell of the histograms and every item of the tables counts."""
    rows: list[tuple[str, str, str, str, str]] = []
    for histogram in config.histograms:
        schema, name = histogram.schema, histogram.name
        for attribute in schema.schema.attributes:
            rows.append(("attribute", name, attribute.name, "", ""))
            if attribute.levels > 1:
                kind, words = f"level of {attribute.name}", answer_words(schema, schema.query(attribute.name))
                rows += [(kind, name, str(number), label, "") for number, label in enumerate(words)]
        rows += [
            ("cell", name, str(number), label, "") for number, label in enumerate(cell_labels(histogram))
        ]
    filled = {table for one in config.histograms for table in outputs_of(one).tables}
    for table, items in item_words().items() if tables else ():
        if table in filled:
            names = [f"{table}_{item:03d}" for item in range(1, len(items) + 1)]
            rows += [
                ("item", table, name, label, _UNIVERSES[table])
                for name, label in zip(names, items, strict=True)
            ]
    for own in config.tables.values():
        labels_of = zip(own.variables, own.lines, strict=True)
        rows += [("item", own.name, name, line.label, own.universe) for name, line in labels_of]
    reason = STAMP_REASONS[stamp] if stamp else ""
    write_codebook_rows(path, "topdown", rows, stamp=stamp, reason=reason)
