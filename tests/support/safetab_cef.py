"""SafeTab records as Census Edited Files."""

from itertools import cycle
from pathlib import Path

from support.safetab_inputs import Rows, write_text

STATES = ("44", "50", "72")


def line(width: int, fields: dict[int, str]) -> str:
    """A fixed-width line with texts at some positions."""
    text = [" "] * width
    for start, value in fields.items():
        text[start : start + len(value)] = value
    return "".join(text)


def _cef_lines(tables: dict[str, Rows], state: str) -> tuple[list[str], list[str], list[str]]:
    """PER, UNIT and GRF-C lines of a state: households with one person each, their householder."""
    blocks = [row for row in tables["blocks"] if row[0] == state]
    person_lines, unit_lines = [], []
    types = cycle("1657")  # HHT 6 and 7 live alone and not alone
    for number, (person, home) in enumerate(zip(people(tables), tables["households"], strict=True)):
        kind = next(types)
        if home[0] != state:
            continue
        mafid = str(100_000_001 + number)
        races = {48 + 4 * k: code for k, code in enumerate(home[5:13]) if code != "Null"}
        person_lines.append(
            line(91, {0: "3", 1: mafid, 22: person[1], 23: f"{int(person[0]):3d}", 42: home[13], 81: person[7],
                      85: "20", **races})
        )  # fmt: skip
        unit_lines.append(
            line(76, {0: "2", 1: mafid, 29: str(int(home[15])), 27: home[4], 37: _place_of(home), 59: kind})
        )
    return person_lines, unit_lines, ["|".join([_place_of(row), *row]) for row in blocks]


def _place_of(row: list[str]) -> str:
    return "B" + "".join(row[:4])


def people(tables: dict[str, Rows]) -> Rows:
    """The person of every household, with the household's block and codes."""
    return [
        [*person[:2], "True", *home[:4], person[7], *home[5:14]]
        for person, home in zip(tables["persons"], tables["households"], strict=False)
    ]


def write_cef(folder: Path, tables: dict[str, Rows]) -> Path:
    """Write persons, units, blocks and totals of three states, and return the ini file."""
    folder.mkdir()
    header = "OIDTABBLK|TABBLKST|TABBLKCOU|TABTRACTCE|TABBLK|PLACEFP|AIANNHCE"
    for state in STATES:
        per, unit, blocks = _cef_lines(tables, state)
        (folder / f"per{state}").write_text("".join(f"{text}\n" for text in per))
        (folder / f"unit{state}").write_text("".join(f"{text}\n" for text in unit))
        (folder / f"geo{state}").write_text("\n".join([header, *blocks]) + "\n")
    write_text(folder / "pop" / "pop-group-totals.txt", "totals", tables["totals"])
    ini = folder / "cef.ini"
    ini.write_text(
        "[paths]\nper_dir = .\nunit_dir = .\nper_dir_pr = .\nunit_dir_pr = .\ngrfc_dir = .\npop_dir = pop\n"
        "per_file_format = per%%s\nunit_file_format = unit%%s\ngeo_file_format = geo%%s\n"
    )
    return ini
