"""Validation of written tables against the plan, from the files alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from censafe.errors import CheckError
from censafe.model import KeyDomain, NoiseLaw, ReleasePlan
from censafe.privacy.noise.variance import reference_variance
from censafe.publication.stamps import LAW_STAMP, STAMP, Stamp
from censafe.publication.tables.bureau import STAMP_FILE, TableLayout, region_type_of

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
