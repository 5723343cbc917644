"""The parameter folder: codes, iterations and the map between them, with every rule checked and reported together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from censafe.errors import DataError
from censafe.population.findings import Finding, Severity, raise_if_fatal
from censafe.products.detailed.codes.universe import (
    KINDS,
    CharacteristicIteration,
    Granularity,
    Kind,
    Universe,
)

Columns = Sequence[tuple[str, str, str]]
"""Name, regular expression and words for what is allowed, of every column in order."""

_EXAMPLES: Final = 5


@dataclass
class CodeFindings:
    """What is wrong with the parameter files, gathered before anything is raised."""

    findings: list[Finding] = field(default_factory=list)

    def add(
        self,
        file: str,
        column: str,
        rule: str,
        rows: int,
        problem: str,
        allowed: str,
        fix: str,
        severity: Severity = "stop",
    ) -> None:
        """Note one breach."""
        self.findings.append(Finding(file, column, rule, severity, rows, problem, allowed, fix))


@dataclass(frozen=True)
class Table:
    """The rows of one file whose columns all have the right form; ``rows`` is empty when the header has not."""

    file: str
    rows: tuple[tuple[str, ...], ...]


def read_table(path: Path, columns: Columns, findings: CodeFindings) -> Table:
    """Read a file with a header; CRLF and LF line ends, with or without a byte order mark."""
    lines = read_lines(path, findings)
    names = tuple(name for name, _, _ in columns)
    if lines is None or not _header_fits(path.name, lines[0], names, findings):
        return Table(path.name, ())
    rows = [tuple(line.split("|")) for line in lines[1:]]
    complete = [row for row in rows if len(row) == len(names)]
    if len(complete) < len(rows):
        findings.add(
            path.name,
            "",
            "fields",
            len(rows) - len(complete),
            "rows with another number of fields than the header",
            f"{len(names)} fields separated by |",
            "correct the rows",
        )
    return Table(path.name, tuple(_well_formed(path.name, complete, columns, findings)))


def read_lines(path: Path, findings: CodeFindings) -> list[str] | None:
    """Lines of a text file without their ends, header first, or None when there is no text."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        fix = "put the file into the parameter folder"
        findings.add(path.name, "", "readable", 0, f"cannot be read: {error.strerror}", "a text file", fix)
        return None
    except UnicodeDecodeError as error:
        findings.add(
            path.name,
            "",
            "encoding",
            0,
            f"not UTF-8 text (byte {error.start})",
            "UTF-8, with or without a byte order mark",
            "save the file as UTF-8",
        )
        return None
    lines = text.replace("\r\n", "\n").split("\n")
    while lines and not lines[-1]:
        lines.pop()
    if not lines:
        findings.add(path.name, "", "empty", 0, "the file is empty", "a header and rows", "supply the file")
        return None
    return lines


def examples_text(values: Iterable[str]) -> str:
    """The first few of some public values.

    Example:
        >>> examples_text(["1010", "1020"])
        '1010, 1020'
    """
    listed = list(values)
    more = f" and {len(listed) - _EXAMPLES} more" if len(listed) > _EXAMPLES else ""
    return ", ".join(listed[:_EXAMPLES]) + more


def _header_fits(file: str, line: str, names: tuple[str, ...], findings: CodeFindings) -> bool:
    header = tuple(line.split("|"))
    if header == names:
        return True
    missing = [name for name in names if name not in header]
    extra = [name for name in header if name not in names]
    if missing:
        problem = f"the header has no column {examples_text(missing)}"
    elif extra:
        problem = f"the header has the unexpected column {examples_text(repr(name) for name in extra)}"
    else:
        problem = "the columns are repeated or in another order"
    findings.add(
        file, "", "header", 0, problem, "|".join(names), "correct the header and the columns under it"
    )
    return False


def _well_formed(
    file: str, rows: list[tuple[str, ...]], columns: Columns, findings: CodeFindings
) -> list[tuple[str, ...]]:
    good = [True] * len(rows)
    for position, (name, pattern, allowed) in enumerate(columns):
        matches = re.compile(pattern, re.ASCII).fullmatch
        bad = [i for i, row in enumerate(rows) if not matches(row[position])]
        if not bad:
            continue
        examples = examples_text(dict.fromkeys(repr(rows[i][position][:40]) for i in bad))
        findings.add(
            file,
            name,
            "domain",
            len(bad),
            f"values of another form: {examples}",
            allowed,
            "correct the column",
        )
        for i in bad:
            good[i] = False
    return [row for row, fits in zip(rows, good, strict=True) if fits]


LONG_HEADER: Final = "ITERATION_CODE|RACE_ETH_CODE"
_LINE: Final = re.compile(
    r"\s*(\d{1,4})\s*\|\s*(\d{4}(?:\s*:\s*\d{4})?(?:\s*,\s*\d{4}(?:\s*:\s*\d{4})?)*)\s*", re.ASCII
)


def expand_short_form(
    lines: Iterable[str], known: Collection[int], where: str
) -> tuple[tuple[str, str], ...]:
    """Rows (iteration code, race or ethnicity code) of the long form.

    Example:
        >>> expand_short_form(["12|1010, 1020:1030"], {1010, 1021, 1029}, "map.txt")
        (('0012', '1010'), ('0012', '1021'), ('0012', '1029'))
    """
    ordered = sorted(known)
    rows: list[tuple[str, str]] = []
    wrong: list[int] = []
    for number, line in enumerate(lines, start=2):
        parsed = _LINE.fullmatch(line)
        ranges = [] if parsed is None else [_bounds(item) for item in parsed[2].split(",")]
        if parsed is None or any(low > high for low, high in ranges):
            wrong.append(number)
            continue
        for low, high in ranges:
            codes = [low] if low == high else [code for code in ordered if low <= code <= high]
            rows += [(parsed[1].zfill(4), f"{code:04d}") for code in codes]
    if wrong:
        numbers = ", ".join(str(number) for number in wrong[:10])
        raise DataError(
            f"{where}: {len(wrong)} malformed line{'s' if len(wrong) > 1 else ''} (line {numbers}); allowed: an "
            "iteration code of 1 to 4 digits, |, then four-digit codes or ranges aaaa:bbbb with aaaa up to bbbb, "
            "separated by commas; fix: correct the lines"
        )
    return tuple(rows)


def _bounds(item: str) -> tuple[int, int]:
    low, _, high = item.partition(":")
    return int(low), int(high or low)


CODES_FILE: Final = "race-and-ethnicity-codes.txt"
RACE_FILE: Final = "race-characteristic-iterations.txt"
ETHNICITY_FILE: Final = "ethnicity-characteristic-iterations.txt"
MAP_FILE: Final = "race-and-ethnicity-code-to-iteration.txt"
SHIPPED_UNIVERSE: Final = "2020"

_CODE: Final = (r"[1-9]\d{3}", "four digits, the first not 0")
_ITERATION: Final = (r"\d{4}", "four digits")
_NAME: Final = (r".+", "text")
_FLAG: Final = (r"True|False|Null", "True, False or Null")
_BOOLEAN: Final = (r"True|False", "True or False")
_LEVEL: Final = (r"\d", "one digit")
_CODES: Final = (("RACE_ETH_CODE", *_CODE), ("RACE_ETH_NAME", *_NAME))
_ETHNICITY: Final = (
    ("ITERATION_CODE", *_ITERATION),
    ("ITERATION_NAME", *_NAME),
    ("LEVEL", *_LEVEL),
    ("DETAILED_ONLY", *_FLAG),
    ("COARSE_ONLY", *_FLAG),
)
_RACE: Final = (*_ETHNICITY[:3], ("ALONE", *_BOOLEAN), *_ETHNICITY[3:])
_MAP: Final = (("ITERATION_CODE", *_ITERATION), ("RACE_ETH_CODE", *_CODE))
_GRANULARITIES: Final[tuple[Granularity, ...]] = ("detailed", "coarse")


def read_universe(folder: Path | None = None) -> Universe:
    """Read the four files of a parameter folder and refuse them if any rule is broken.

    Example:
        >>> universe = read_universe()
        >>> len(universe.codes), len(universe.iterations), universe.candidates(2, "coarse").size
        (1755, 3054, 2150)
    """
    universe, findings = _shipped_universe() if folder is None else load_universe(folder)
    raise_if_fatal(findings, f"parameter files in {universe.origin}")
    return universe


def load_universe(folder: Path | None = None) -> tuple[Universe, tuple[Finding, ...]]:
    """Read the four files, or those that ship with censafe (the Bureau's of 2020, the map in the short form), and check them.

    A universe with findings that stop is for reporting only.

    Rules: encoding, header and its order, the form of every value, repeated codes and iterations, both flags True, LEVEL
    0 exactly where both flags are Null, LEVEL at most 2, race and ethnicity iterations that share a code, map
    rows with unknown codes, and a code in two iterations of one kind, level and granularity. Repeated map rows warn.
    """
    place = folder or Path(__file__).parent / "shipped"
    findings = CodeFindings()
    codes = read_table(place / CODES_FILE, _CODES, findings)
    races = read_table(place / RACE_FILE, _RACE, findings)
    ethnicities = read_table(place / ETHNICITY_FILE, _ETHNICITY, findings)
    _check_repeats(codes, "RACE_ETH_CODE", findings)
    for table in (races, ethnicities):
        _check_repeats(table, "ITERATION_CODE", findings)
        _check_flags(table, findings)
    _check_overlap(races, ethnicities, findings)
    names = {int(code): name for code, name in codes.rows}
    iterations = (*_iterations(races), *_iterations(ethnicities))
    pairs = _read_map(place / MAP_FILE, names, findings)
    _check_map(pairs, names, iterations, findings)
    gathered: dict[str, set[int]] = {}
    for iteration_code, code in pairs.rows:
        gathered.setdefault(iteration_code, set()).add(int(code))
    members = {iteration.code: frozenset(gathered.get(iteration.code, ())) for iteration in iterations}
    universe = Universe(names, iterations, members, SHIPPED_UNIVERSE if folder is None else str(folder))
    _check_hierarchy(universe, findings)
    return universe, tuple(findings.findings)


_shipped_universe = cache(load_universe)  # nothing changes it


def _read_map(path: Path, known: dict[int, str], findings: CodeFindings) -> Table:
    unread = CodeFindings()
    lines = read_lines(path, unread)
    # in the short form some line has a list or a range
    if lines is None or not any("," in line or ":" in line for line in lines[1:]):
        return read_table(path, _MAP, findings)
    try:
        return Table(path.name, expand_short_form(lines[1:], known, path.name))
    except DataError as error:
        message = str(error).removeprefix(f"{path.name}: ")
        problem, _, rest = message.partition("; allowed: ")
        allowed, _, fix = rest.partition("; fix: ")
        findings.add(path.name, "", "short-form", 0, problem, allowed, fix)
        return Table(path.name, ())


def _iterations(table: Table) -> Iterator[CharacteristicIteration]:
    """Iterations of a list; DETAILED_ONLY and COARSE_ONLY of level 0 are Null and read as False."""
    for row in table.rows:
        code, name, level, *flags = row
        kind: Kind = "ethnicity"
        if len(flags) == 3:
            kind = "alone" if flags[0] == "True" else "combination"
        yield CharacteristicIteration(code, name, kind, int(level), flags[-2] == "True", flags[-1] == "True")


def _check_repeats(table: Table, column: str, findings: CodeFindings) -> None:
    repeated = [code for code, count in Counter(row[0] for row in table.rows).items() if count > 1]
    if repeated:
        findings.add(
            table.file,
            column,
            "duplicate",
            sum(row[0] in repeated for row in table.rows),
            f"codes listed more than once: {examples_text(repeated)}",
            "every code once",
            "keep one row of each",
        )


def _check_flags(table: Table, findings: CodeFindings) -> None:
    flags = "DETAILED_ONLY,COARSE_ONLY"
    both = [row[0] for row in table.rows if row[-2:] == ("True", "True")]
    uneven = [row[0] for row in table.rows if len({row[2] == "0", row[-2] == "Null", row[-1] == "Null"}) > 1]
    high = [row[0] for row in table.rows if int(row[2]) > 2]
    for column, rule, codes, problem, allowed, fix in (
        (
            flags,
            "both-flags",
            both,
            "both flags are True",
            "at most one True",
            "an iteration has a place at one of them",
        ),
        (
            f"LEVEL,{flags}",
            "level-null",
            uneven,
            "LEVEL is 0 and a flag is not Null, or a flag is Null and LEVEL is not 0",
            "Null in both flags exactly where LEVEL is 0",
            "correct LEVEL or the flags",
        ),
        ("LEVEL", "level", high, "LEVEL is above 2", "0, 1 or 2", "correct LEVEL"),
    ):
        if codes:
            listed = f"{problem}: iteration {examples_text(codes)}"
            findings.add(table.file, column, rule, len(codes), listed, allowed, fix)


def _check_overlap(races: Table, ethnicities: Table, findings: CodeFindings) -> None:
    shared = sorted({row[0] for row in races.rows} & {row[0] for row in ethnicities.rows})
    if shared:
        findings.add(
            ethnicities.file,
            "ITERATION_CODE",
            "overlap",
            len(shared),
            f"iteration codes that {races.file} has too: {examples_text(shared)}",
            "codes of ethnicity iterations that no race iteration has",
            "give the iterations codes of their own",
        )


def _check_map(
    table: Table, codes: dict[int, str], iterations: Iterable[CharacteristicIteration], findings: CodeFindings
) -> None:
    known = {one.code for one in iterations}
    strangers = [row for row in table.rows if row[0] not in known]
    unknown = [row for row in table.rows if int(row[1]) not in codes]
    for column, position, rows, where in (
        ("ITERATION_CODE", 0, strangers, f"{RACE_FILE} or {ETHNICITY_FILE}"),
        ("RACE_ETH_CODE", 1, unknown, CODES_FILE),
    ):
        if rows:
            examples = examples_text(dict.fromkeys(row[position] for row in rows))
            findings.add(
                table.file,
                column,
                "unknown-code",
                len(rows),
                f"codes that are not listed: {examples}",
                f"codes of {where}",
                "add the codes to the list or remove the rows",
            )
    repeated = len(table.rows) - len(set(table.rows))
    if repeated:
        findings.add(
            table.file,
            LONG_HEADER.replace("|", ","),
            "duplicate",
            repeated,
            "rows that repeat another; they change nothing",
            "every pair once",
            "remove the repeated rows",
            severity="warn",
        )


def _check_hierarchy(universe: Universe, findings: CodeFindings) -> None:
    broken: dict[tuple[Kind, int, str, str], list[str]] = {}
    for level in (1, 2):
        for granularity in _GRANULARITIES:
            first: dict[tuple[Kind, int], str] = {}
            for iteration in universe.candidates(level, granularity).iterations:
                for member in sorted(universe.members[iteration.code]):
                    other = first.setdefault((iteration.kind, member), iteration.code)
                    if other != iteration.code:
                        broken.setdefault((iteration.kind, level, other, iteration.code), []).append(
                            str(member)
                        )
    if not broken:
        return
    examples = examples_text(
        f"iterations {code} and {other} ({KINDS[kind]}, level {level}) both hold {examples_text(dict.fromkeys(codes))}"
        for (kind, level, code, other), codes in broken.items()
    )
    findings.add(
        MAP_FILE,
        LONG_HEADER.replace("|", ","),
        "hierarchy",
        len({code for codes in broken.values() for code in codes}),
        f"codes in two iterations of one kind, level and granularity: {examples}",
        "one iteration of a kind, level and granularity for every code",
        "take the codes out of one of them, or make one DETAILED_ONLY and the other COARSE_ONLY",
    )
