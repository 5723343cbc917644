"""The parameter folder: codes, iterations and the map between them, with every rule checked and reported together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

from censafe.errors import DataError
from censafe.population.findings import Finding, raise_if_fatal
from censafe.products.detailed.codes.parameter_files import (
    LONG_HEADER,
    CodeFindings,
    Table,
    examples_text,
    expand_short_form,
    is_short_form,
    read_lines,
    read_table,
)
from censafe.products.detailed.codes.universe import (
    KINDS,
    CharacteristicIteration,
    Granularity,
    Kind,
    Universe,
)

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


def shipped_universe_folder() -> Path:
    """The folder of the universe that ships with censafe: the Bureau's of 2020, its map in the short form."""
    return Path(__file__).parent / "shipped"


def read_universe(folder: Path | None = None) -> Universe:
    """Read the four files of a parameter folder and refuse them if any rule is broken.

    Example:
        >>> universe = read_universe()
        >>> len(universe.codes), len(universe.iterations), universe.candidates(2, "coarse").size
        (1755, 3054, 2150)
    """
    if folder is None:
        return _shipped_universe()
    universe, findings = load_universe(folder)
    raise_if_fatal(findings, f"parameter files in {universe.origin}")
    return universe


@cache
def _shipped_universe() -> Universe:
    """Read once; nothing changes it."""
    universe, findings = load_universe()
    raise_if_fatal(findings, f"parameter files in {universe.origin}")
    return universe


def load_universe(folder: Path | None = None) -> tuple[Universe, tuple[Finding, ...]]:
    """Read the four files and check them; a universe with findings that stop is for reporting only.

    Rules: encoding, header and its order, the form of every value, repeated codes and iterations, both flags True, LEVEL
    0 exactly where both flags are Null, LEVEL at most 2, race and ethnicity iterations that share a code, map
    rows with unknown codes, and a code in two iterations of one kind, level and granularity. Repeated map rows warn.
    """
    place = shipped_universe_folder() if folder is None else folder
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
    gathered: dict[str, set[int]] = {iteration.code: set() for iteration in iterations}
    for iteration, code in pairs.rows:
        gathered.setdefault(iteration, set()).add(int(code))
    members = {one.code: frozenset(gathered[one.code]) for one in iterations}
    files = tuple(place / name for name in (CODES_FILE, RACE_FILE, ETHNICITY_FILE, MAP_FILE))
    universe = Universe(
        names, iterations, members, SHIPPED_UNIVERSE if folder is None else str(folder), files
    )
    _check_hierarchy(universe, findings)
    return universe, tuple(findings.found)


def _read_map(path: Path, known: dict[int, str], findings: CodeFindings) -> Table:
    unread = CodeFindings()
    lines = read_lines(path, unread)
    if lines is None or not is_short_form(lines):
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
            shown = examples_text(dict.fromkeys(row[position] for row in rows))
            findings.add(
                table.file,
                column,
                "unknown-code",
                len(rows),
                f"codes that are not listed: {shown}",
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
            for one in universe.candidates(level, granularity).iterations:
                for code in sorted(universe.members[one.code]):
                    other = first.setdefault((one.kind, code), one.code)
                    if other != one.code:
                        broken.setdefault((one.kind, level, other, one.code), []).append(str(code))
    if not broken:
        return
    shown = examples_text(
        f"iterations {one} and {other} ({KINDS[kind]}, level {level}) both hold {examples_text(dict.fromkeys(codes))}"
        for (kind, level, one, other), codes in broken.items()
    )
    findings.add(
        MAP_FILE,
        LONG_HEADER.replace("|", ","),
        "hierarchy",
        len({code for codes in broken.values() for code in codes}),
        f"codes in two iterations of one kind, level and granularity: {shown}",
        "one iteration of a kind, level and granularity for every code",
        "take the codes out of one of them, or make one DETAILED_ONLY and the other COARSE_ONLY",
    )
