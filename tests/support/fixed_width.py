"""Fixed-width records for tests: lines, small extracts of 1940, small Census Edited Files."""

from collections.abc import Iterable
from pathlib import Path

IPUMS_WIDTH, UNIT_WIDTH, PERSON_WIDTH = 273, 76, 91
GRFC_HEADER = "OIDTABBLK|TABBLKST|TABBLKCOU|TABTRACTCE|TABBLKGRPCE|TABBLK|AIANNHCE|PLACEFP|COUSUBFP"


def line(width: int, fields: dict[int, object]) -> str:
    """A line with texts at some positions, counted from 0."""
    text = [" "] * width
    for start, value in fields.items():
        text[start : start + len(str(value))] = str(value)
    assert len(text) == width
    return "".join(text)


def home_1940(
    serial: int, persons: int, place: str = "4400100001", gq: object = 1, gqtype: object = 0
) -> str:
    """A household record; the place is state, county and district."""
    return line(
        IPUMS_WIDTH,
        {0: "H", 7: f"{serial:08d}", 15: f"{persons:02d}", 53: place[:6], 93: gq, 94: gqtype, 124: place[6:]},
    )


def person_1940(
    serial: int, age: object = "030", race: object = 1, hispan: object = 0, record: str = "P"
) -> str:
    return line(IPUMS_WIDTH, {0: record, 7: f"{serial:08d}", 73: age, 84: race, 88: hispan})


def unit_2020(
    mafid: object, persons: int, block: str, *, rtype: object = 2, vacs: object = 0, quarters: str = ""
) -> str:
    return line(
        UNIT_WIDTH,
        {0: rtype, 1: mafid, 17: f"{persons:05d}", 32: vacs, 33: quarters, 37: f"{block:<22}"},
    )


def person_2020(
    mafid: object, age: object = 30, hispanic: object = 1, race: object = "01", quarters: str = "000"
) -> str:
    return line(PERSON_WIDTH, {0: "3", 1: mafid, 23: f"{age:>3}", 47: hispanic, 81: race, 87: quarters})


def write_lines(path: Path, lines: Iterable[str]) -> Path:
    """One file of lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{text}\n" for text in lines).encode("ascii"))
    return path
