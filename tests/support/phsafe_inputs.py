"""Small valid PHSafe inputs for tests: three tables as lists of rows of text, and their writers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from censafe.population.households.load import Population
    from censafe.population.households.validation import ValidationReport

PERSONS_HEADER = ("RTYPE", "MAFID", "QAGE", "CENHISP", "CENRACE", "RELSHIP")
UNITS_HEADER = ("RTYPE", "MAFID", "FINAL_POP", "NPF", "HHSPAN", "HHRACE", "TEN", "HHT", "HHT2", "CPLT")
GEO_HEADER = (
    "RTYPE", "MAFID", "TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK", "TABBLKGRPCE",
    "REGIONCE", "DIVISIONCE", "PLACEFP", "AIANNHCE",
)  # fmt: skip
HEADERS = {"persons": PERSONS_HEADER, "units": UNITS_HEADER, "geo": GEO_HEADER}

Row = tuple[str, ...]
Tables = dict[str, list[Row]]

# A tiny population that passes strict validation: seven units in two states.
PERSONS: tuple[Row, ...] = (
    ("3", "100000001", "40", "1", "01", "20"),  # married couple with own child, Rhode Island
    ("3", "100000001", "39", "1", "01", "21"),
    ("3", "100000001", "7", "1", "01", "25"),
    ("3", "100000002", "70", "2", "02", "20"),  # woman alone
    ("3", "100000004", "30", "1", "07", "20"),  # cohabiting couple, no own child
    ("3", "100000004", "31", "2", "07", "24"),
    ("5", "100000005", "20", "1", "04", "38"),  # college dormitory
    ("5", "100000005", "21", "2", "05", "38"),
    ("3", "100000006", "50", "1", "63", "20"),  # male householder with mother, Vermont
    ("3", "100000006", "75", "1", "63", "29"),
    ("3", "100000007", "33", "1", "03", "20"),  # female householder with own child and a roommate
    ("3", "100000007", "2", "1", "03", "26"),
    ("3", "100000007", "35", "1", "01", "34"),
)
UNITS: tuple[Row, ...] = (
    ("2", "100000001", "3", "3", "1", "01", "1", "1", "01", "1"),
    ("2", "100000002", "1", "0", "2", "02", "2", "6", "05", "5"),
    ("2", "100000003", "0", "0", "0", "00", "0", "0", "00", "0"),
    ("2", "100000004", "2", "0", "1", "07", "3", "5", "04", "4"),
    ("4", "100000005", "2", "0", "0", "00", "0", "0", "00", "0"),
    ("2", "100000006", "2", "2", "1", "63", "4", "2", "11", "5"),
    ("2", "100000007", "3", "2", "1", "03", "3", "3", "06", "5"),
)
GEO: tuple[Row, ...] = tuple(
    (unit[0], unit[1], "44" if int(unit[1]) < 100000006 else "50", "001", "000100", "1000", "1", "1", "1",
     "99999", "9999")
    for unit in UNITS
)  # fmt: skip
STATES = ("44", "50")


def valid_tables() -> Tables:
    """The tiny population as fresh lists."""
    return {"persons": list(PERSONS), "units": list(UNITS), "geo": list(GEO)}


def csv_text(table: str, rows: Sequence[Sequence[str]], *, delimiter: str = ",", newline: str = "\n") -> str:
    """One table as CSV text with header."""
    lines = [delimiter.join(line) for line in (HEADERS[table], *rows)]
    return newline.join(lines) + newline


def write_folder(
    folder: Path,
    persons: Sequence[Sequence[str]] = PERSONS,
    units: Sequence[Sequence[str]] = UNITS,
    geo: Sequence[Sequence[str]] = GEO,
) -> Path:
    """Write the three tables as CSV files into ``folder`` (made if missing) and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for table, rows in (("persons", persons), ("units", units), ("geo", geo)):
        (folder / f"{table}.csv").write_text(csv_text(table, rows), encoding="utf-8")
    return folder


def write_parquet_folder(
    folder: Path,
    persons: Sequence[Sequence[str]] = PERSONS,
    units: Sequence[Sequence[str]] = UNITS,
    geo: Sequence[Sequence[str]] = GEO,
    *,
    integers: bool = False,
) -> Path:
    """Write the three tables as Parquet files, values as text or all as integers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    for table, rows in (("persons", persons), ("units", units), ("geo", geo)):
        columns = {
            name: pa.array([row[i] for row in rows], pa.string()) for i, name in enumerate(HEADERS[table])
        }
        if integers:
            columns = {
                name: pa.array([int(v) for v in column.to_pylist()], pa.int32())
                for name, column in columns.items()
            }
        pq.write_table(pa.table(columns), folder / f"{table}.parquet")
    return folder


def cef_texts(tables: Tables) -> tuple[str, str, str]:
    """PER, UNIT and GRF-C texts of the tables, in the layout of the Census Edited File."""
    per = "".join(
        _place(91, {0: p[0], 1: p[1], 23: p[2].zfill(3), 47: p[3], 81: p[4], 85: p[5]}) + "\n"
        for p in tables["persons"]
    )
    unit = "".join(
        _place(
            76,
            {
                0: u[0], 1: u[1], 17: u[2].zfill(5), 25: u[4].replace("0", " "), 27: u[5].replace("00", "  "),
                29: u[6], 37: "B" + g[1], 59: u[7], 60: u[8], 62: u[9],
            },
        )
        + "\n"
        for u, g in zip(tables["units"], tables["geo"], strict=True)
    )  # fmt: skip
    header = "|".join(("OIDTABBLK", *GEO_HEADER[2:], "COUSUBFP"))
    blocks = "".join("|".join(("B" + g[1], *g[2:], "00000")) + "\n" for g in tables["geo"])
    return per, unit, header + "\n" + blocks


def write_cef(folder: Path, tables: Tables | None = None, states: Sequence[str] = STATES) -> Path:
    """Write the tables as CEF files by state, and return the .ini that names them."""
    tables = tables or valid_tables()
    folder.mkdir(parents=True, exist_ok=True)
    home = {row[1]: row[2] for row in tables["geo"]}
    for state in states:
        here = {name: [row for row in rows if home.get(row[1]) == state] for name, rows in tables.items()}
        names = ("CEF20_PER_", "CEF20_UNIT_", "grfc_tab20_")
        for name, text in zip(names, cef_texts(here), strict=True):
            (folder / f"{name}{state}.txt").write_text(text, encoding="utf-8")
    ini = folder / "paths.ini"
    ini.write_text(
        "[paths]\nper_dir = .\nunit_dir = .\nper_dir_pr = .\nunit_dir_pr = .\ngrfc_dir = .\n"
        "per_file_format = CEF20_PER_%%s.txt\nunit_file_format = CEF20_UNIT_%%s.txt\n"
        "geo_file_format = grfc_tab20_%%s.txt\n",
        encoding="utf-8",
    )
    return ini


def _place(width: int, fields: dict[int, str]) -> str:
    line = [" "] * width
    for start, text in fields.items():
        line[start : start + len(text)] = text
    return "".join(line)


@contextmanager
def opened(
    folder: Path, *, states: Sequence[str] = STATES, reader: str = "csv", max_persons: int | None = None
) -> Iterator[Iterator[Population]]:
    """The parts of a folder in an engine of their own, with scratch in a temporary folder: that of the records may be shared."""
    from censafe.population.households.source import open_population
    from censafe.tabulation.engine import connect

    with TemporaryDirectory() as name:
        work = Path(name)
        backend = connect(work / "engine")
        try:
            source = open_population(folder, reader=reader, states=tuple(states), backend=backend, work=work)
            with closing(source.parts(max_persons)) as parts:
                yield parts
        finally:
            backend.disconnect()


def check(
    folder: Path,
    *,
    states: Sequence[str] = STATES,
    reader: str = "csv",
    max_persons: int | None = None,
    strict: bool = False,
    checks: Literal["full", "off"] = "full",
    examples: Path | None = None,
) -> ValidationReport:
    """Open a folder, validate every part and merge the reports."""
    from censafe.population.households.validation import validate

    report = None
    with opened(folder, states=states, reader=reader, max_persons=max_persons) as parts:
        for part in parts:
            found = validate(part, strict=strict, checks=checks, examples=examples)
            report = report.merge(found) if report else found
    if report is None:
        raise LookupError("a source has at least one part")
    return report
