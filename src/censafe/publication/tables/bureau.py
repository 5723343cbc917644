"""Published tables in the Bureau's layout, and their validation against the plan from the files alone."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.model import KeyDomain, NoiseLaw, ReleasePlan
from censafe.model.measurements import PublishedQuery
from censafe.privacy.noise.variance import reference_variance
from censafe.publication.atomic import atomic_folder
from censafe.publication.stamps import LAW_STAMP, STAMP, STAMP_NOTES, Stamp, require_publishable

STAMP_FILE, STAMP_TEXT = STAMP_NOTES[STAMP]


@dataclass(frozen=True)
class TableLayout:
    """How the Bureau lays a table out."""

    name: str
    cell_column: str
    iterated: bool

    @property
    def header(self) -> tuple[str, ...]:
        """Column names in the order of the file."""
        iteration = ("ITERATION_CODE",) if self.iterated else ()
        tail = (self.cell_column, "COUNT", "NOISE_DISTRIBUTION", "VARIANCE")
        return ("REGION_ID", "REGION_TYPE", *iteration, *tail)


@dataclass(frozen=True, eq=False)
class KeyColumns:
    """The keys of a query as three columns of text, one entry a row of the domain."""

    region: NDArray[np.str_]
    iteration: NDArray[np.str_]
    cell: NDArray[np.str_]


def region_type_of(level: str) -> str:
    """Type of the regions of a population group level.

    Example:
        >>> region_type_of("state_A-G")
        'STATE'
    """
    return level.split("_", 1)[0].upper()


def key_columns(query: PublishedQuery) -> KeyColumns:
    """Region, iteration and cell of every row of a query.

    The first axis of the domain holds the regions and the last one the cells. An axis between them
    holds the iterations; without one every row has iteration ``*``.
    """
    names = query.domain.names
    if len(names) not in (2, 3):
        raise CheckError(
            f"table {query.table}, level {query.level}: the key domain has the axes {', '.join(names)}; "
            "a published table has region, iteration (if any) and cell"
        )
    columns = [query.domain.column(name) for name in names]
    if len(names) == 2:
        columns.insert(1, np.full(query.domain.size, "*"))
    return KeyColumns(*columns)


def format_variance(variance: float) -> str:
    """Shortest decimal text that reads back as the same number, never with an exponent.

    Example:
        >>> format_variance(9.0), format_variance(31.83385287773731)
        ('9.0', '31.83385287773731')
    """
    return np.format_float_positional(variance, unique=True, trim="0")


def write_tables(
    folder: Path,
    queries: Sequence[PublishedQuery],
    layouts: Sequence[TableLayout],
    *,
    stamp: Stamp | None = None,
) -> tuple[Path, ...]:
    """Write every table to ``folder/<TABLE>/<TABLE>.csv``.

    Files are delimited by ``|`` and always have a header; rows are sorted by region type, region,
    iteration and cell number. A table none of whose levels was measured is absent.

    A stamped file says ``(TEST KEY, NOT PRIVATE)`` in every row of NOISE_DISTRIBUTION: names and
    columns of these files are fixed for their readers, and that column is text about the noise, so
    a single file that is copied elsewhere can still be told from a release. Each folder also gets
    a file NOT_PRIVATE.txt.

    Args:
        folder: usually ``OUT/tables``; appears complete or not at all.
        queries: every level of every published table.
        layouts: of all tables the product can publish.
        stamp: ``"NOT PRIVATE"`` for results drawn with a test key.

    Returns:
        the files of the tables, in the order of the layouts.

    Raises:
        ReleaseError: the stamp does not fit the source of the noise.
        CheckError: a table without layout, or with iterations its layout has no column for.
        StorageError: the disk is full, the folder exists or is not writable.
    """
    require_publishable(queries, stamp)
    unknown = sorted({query.table for query in queries} - {layout.name for layout in layouts})
    if unknown:
        raise CheckError(f"no layout for table {', '.join(unknown)}")
    written = [layout for layout in layouts if any(query.table == layout.name for query in queries)]
    with atomic_folder(folder) as temporary:
        for layout in written:
            place = temporary / layout.name
            place.mkdir()
            rows = _rows(layout, [query for query in queries if query.table == layout.name], stamp)
            options = pc.WriteOptions(include_header=False, delimiter="|", quoting_style="none")
            with (place / f"{layout.name}.csv").open("xb") as stream:
                stream.write(("|".join(layout.header) + "\n").encode())
                pc.write_csv(rows, stream, options)
            if stamp == STAMP:
                (place / STAMP_FILE).write_text(STAMP_TEXT, encoding="utf-8")
        if stamp == STAMP:
            (temporary / STAMP_FILE).write_text(STAMP_TEXT, encoding="utf-8")
    return tuple(folder / layout.name / f"{layout.name}.csv" for layout in written)


def _rows(layout: TableLayout, queries: Sequence[PublishedQuery], stamp: Stamp | None) -> pa.Table:
    blocks = [_block(layout, query, stamp) for query in queries]
    columns = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    cells = columns[layout.cell_column]
    numeric = all(re.fullmatch(r"[0-9]+", cell) for cell in np.unique(cells))
    cell_order = cells.astype(np.int64) if numeric else cells
    keys = [cell_order, columns["ITERATION_CODE"], columns["REGION_ID"], columns["REGION_TYPE"]]
    order = np.lexsort(keys)
    return pa.table({name: pa.array(columns[name][order].tolist()) for name in layout.header})


def _block(
    layout: TableLayout, query: PublishedQuery, stamp: Stamp | None
) -> Mapping[str, NDArray[np.str_] | NDArray[np.int64]]:
    keys = key_columns(query)
    if not layout.iterated and set(keys.iteration) - {"*"}:
        raise CheckError(f"table {layout.name}, level {query.level}: the layout has no column for iterations")
    size = query.domain.size
    law = query.law.bureau_name + (LAW_STAMP if stamp == STAMP else "")
    return {
        "REGION_ID": keys.region,
        "REGION_TYPE": np.full(size, region_type_of(query.level)),
        "ITERATION_CODE": keys.iteration,
        layout.cell_column: keys.cell,
        "COUNT": query.values,
        "NOISE_DISTRIBUTION": np.full(size, law),
        "VARIANCE": _variance_column(query.law, query.terms),
    }


def _variance_column(law: NoiseLaw, terms: NDArray[np.int64]) -> NDArray[np.str_]:
    single = reference_variance(law)
    distinct, inverse = np.unique(terms, return_inverse=True)
    texts = np.array([format_variance(single * int(count)) for count in distinct], dtype=np.str_)
    return texts[inverse]


_TOLERANCE = 1e-6  # relative, of VARIANCE
_LISTED = 20  # problems listed in the message

Key = tuple[str, str, str, str]  # region type, region, iteration, cell


@dataclass(frozen=True)
class DerivedTable:
    """A table that is not measured but made from another one's noisy answers.

    Args:
        terms: how many independent cells of the source are summed in each cell, by cell.
    """

    name: str
    source: str
    terms: Mapping[str, int]


@dataclass(frozen=True)
class ExpectedLevel:
    """One level of one table as it must stand in the file.

    Args:
        terms: independent draws in a row, by cell; cells not named have one.
    """

    table: str
    level: str
    domain: KeyDomain
    law: NoiseLaw
    terms: Mapping[str, int]

    def rows(self) -> Iterator[tuple[Key, float]]:
        """Key and VARIANCE of every row."""
        columns = [self.domain.column(name).tolist() for name in self.domain.names]
        if len(columns) == 2:
            columns.insert(1, ["*"] * self.domain.size)
        variance, kind = reference_variance(self.law), region_type_of(self.level)
        for region, iteration, cell in zip(*columns, strict=True):
            yield (kind, region, iteration, cell), variance * self.terms.get(cell, 1)


def expected_levels(
    plan: ReleasePlan,
    domains: Mapping[tuple[str, str], KeyDomain],
    derived: Sequence[DerivedTable] = (),
) -> tuple[ExpectedLevel, ...]:
    """What a release under ``plan`` must publish."""
    measured = [query for part in plan.parts for query in part.queries]
    levels = [
        ExpectedLevel(query.table, query.level, domains[query.table, query.level], query.law, {})
        for query in measured
    ]
    levels += [
        ExpectedLevel(table.name, query.level, domains[table.name, query.level], query.law, table.terms)
        for table in derived
        for query in measured
        if query.table == table.source
    ]
    return tuple(levels)


def check_tables(
    folder: Path,
    expected: Iterable[ExpectedLevel],
    layouts: Sequence[TableLayout],
    *,
    states: Sequence[str] | None = None,
    stamp: Stamp | None = None,
) -> int:
    """Reread the written tables and compare them with what the plan demands.

    Checked are: exactly the expected tables; header, number of fields and types; the complete key
    domain, once each and in order; states within the filter; the name of the noise law; VARIANCE
    within 1e-6 relative of the formula, recomputed from the plan.
    """
    by_table: dict[str, list[ExpectedLevel]] = {}
    for level in expected:
        by_table.setdefault(level.table, []).append(level)
    problems = file_problems(folder, {f"{name}/{name}.csv" for name in by_table}, stamp)
    total = 0
    for layout in layouts:
        path = folder / layout.name / f"{layout.name}.csv"
        if layout.name in by_table and path.is_file():
            rows, wrong = _check_file(path, layout, by_table[layout.name], states, stamp)
            total += rows
            problems += wrong
    raise_if_wrong(folder, problems)
    return total


def raise_if_wrong(folder: Path, problems: Sequence[str]) -> None:
    """Raise when there is a problem with the tables in a folder."""
    if problems:
        listed = "\n".join(f"  {problem}" for problem in problems[:_LISTED])
        more = f"\n  and {len(problems) - _LISTED} more" if len(problems) > _LISTED else ""
        raise CheckError(
            f"the tables in {folder} are not what the plan demands ({len(problems)} problems); "
            f"do not publish them:\n{listed}{more}"
        )


def file_problems(folder: Path, names: set[str], stamp: Stamp | None) -> list[str]:
    """Files of a release that are missing, and others that are there; each folder of one under a test key says so in a file."""
    expected = set(names)
    if stamp == STAMP:
        places = {parent for name in (STAMP_FILE, *names) for parent in Path(name).parents}
        expected |= {(place / STAMP_FILE).as_posix() for place in places}
    written = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return [
        *(f"{name}: missing" for name in sorted(expected - written)),
        *(f"{name}: not a file that this release publishes" for name in sorted(written - expected)),
    ]


def _check_file(
    path: Path,
    layout: TableLayout,
    levels: Sequence[ExpectedLevel],
    states: Sequence[str] | None,
    stamp: Stamp | None,
) -> tuple[int, list[str]]:
    """How many rows a file has, and what is wrong with them."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    header = list(layout.header)
    if not lines or lines[0].split("|") != header:
        return 0, [f"{path.name}: the header must be {'|'.join(header)}"]
    records = [line.split("|") for line in lines[1:]]
    bad = sum(len(record) != len(header) for record in records)
    if bad:
        return len(records), [f"{path.name}: {bad} rows without exactly {len(header)} fields"]
    rows = [dict(zip(header, record, strict=True)) for record in records]
    variances = dict(pair for level in levels for pair in level.rows())
    keys = [
        (row["REGION_TYPE"], row["REGION_ID"], row.get("ITERATION_CODE", "*"), row[layout.cell_column])
        for row in rows
    ]
    law = levels[0].law.bureau_name + (LAW_STAMP if stamp == STAMP else "")
    counts = [
        ("rows with a COUNT that is not a whole number", sum(not _is_integer(row["COUNT"]) for row in rows)),
        (
            f"rows with a NOISE_DISTRIBUTION other than {law}",
            sum(row["NOISE_DISTRIBUTION"] != law for row in rows),
        ),
        (
            "rows with a state outside the state filter",
            0 if states is None else sum(key[0] == "STATE" and key[1] not in states for key in keys),
        ),
        ("rows whose key is not in the table's domain", sum(key not in variances for key in keys)),
        ("rows whose key appears twice", sum(times - 1 for times in Counter(keys).values())),
        ("keys of the table's domain without a row", len(variances.keys() - set(keys))),
        ("rows out of order", _disorder(keys)),
    ]
    counts += list(_wrong_variances(rows, keys, variances))
    return len(rows), [f"{path.name}: {number} {what}" for what, number in counts if number]


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit()


def _disorder(keys: Sequence[Key]) -> int:
    numeric = all(key[3].isascii() and key[3].isdigit() for key in keys)
    ordered = [(*key[:3], int(key[3]) if numeric else key[3]) for key in keys]
    return sum(left > right for left, right in pairwise(ordered))


def _wrong_variances(
    rows: Sequence[Mapping[str, str]], keys: Sequence[Key], variances: Mapping[Key, float]
) -> Iterator[tuple[str, int]]:
    wrong: Counter[tuple[str, str]] = Counter()
    for row, key in zip(rows, keys, strict=True):
        expected = variances.get(key)
        if expected is not None and not _close(row["VARIANCE"], expected):
            wrong[key[0], f"{expected:.6g}"] += 1
    for (kind, expected_text), number in sorted(wrong.items()):
        yield f"rows of type {kind} whose VARIANCE is not {expected_text}", number


def _close(text: str, expected: float) -> bool:
    try:
        value = float(text)
    except ValueError:
        return False
    return math.isclose(value, expected, rel_tol=_TOLERANCE)
