"""An independent check of PHSafe records: one loop per rule C1 to C12, over plain text rows."""

import csv
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow.dataset as ds

Row = Mapping[str, str]

PERSON_COLUMNS = ["RTYPE", "MAFID", "QAGE", "CENHISP", "CENRACE", "RELSHIP"]
UNIT_COLUMNS = ["RTYPE", "MAFID", "FINAL_POP", "NPF", "HHSPAN", "HHRACE", "TEN", "HHT", "HHT2", "CPLT"]
GEO_COLUMNS = [
    "RTYPE", "MAFID", "TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK", "TABBLKGRPCE", "REGIONCE", "DIVISIONCE",
    "PLACEFP", "AIANNHCE",
]  # fmt: skip

_FAMILY = {"20", "21", "23", *map(str, range(25, 34))}
_PARTNERS = {"21": "1", "23": "2", "22": "3", "24": "4"}
_OWN_CHILD = {"25", "26", "27"}
_NOT_APPLICABLE = {"HHT": "0", "HHT2": "00", "CPLT": "0", "TEN": "0", "HHSPAN": "0", "HHRACE": "00"}


def read_table(folder: Path, table: str) -> list[dict[str, str]]:
    """The rows of a table as text, from one CSV or Parquet file or a folder of parts."""
    for ending in ("csv", "parquet"):
        single = folder / f"{table}.{ending}"
        parts = [single] if single.exists() else sorted((folder / table).glob(f"*.{ending}"))
        if not parts:
            continue
        if ending == "parquet":
            rows = ds.dataset([str(part) for part in parts]).to_table().to_pylist()
            return [{name: str(value) for name, value in row.items()} for row in rows]
        rows = []
        for part in parts:
            with part.open(newline="") as file:
                rows += csv.DictReader(file)
        return rows
    raise FileNotFoundError(f"{folder}/{table}")


def _household_rules(unit: Row, members: list[Row]) -> Iterable[str]:
    codes = [person["RELSHIP"] for person in members]
    occupied = unit["RTYPE"] == "2" and len(members) > 0
    if codes.count("20") != (1 if occupied else 0):
        yield "C4"
    empty = {name for name, code in _NOT_APPLICABLE.items() if unit[name] == code}
    if empty != (set() if occupied else set(_NOT_APPLICABLE)):
        yield "C5"
    family = sum(code in _FAMILY for code in codes) if occupied else 0
    if int(unit["NPF"]) != (family if family >= 2 else 0):
        yield "C12"
    if occupied:
        yield from _type_rules(unit["HHT"], unit["HHT2"], unit["CPLT"])
        yield from _member_rules(unit, members, family)


def _type_rules(hht: str, hht2: str, cplt: str) -> Iterable[str]:
    if not (hht == "1") == (hht2 in {"01", "02"}) == (cplt in {"1", "2"}):
        yield "C6"
    if (hht2 in {"03", "04"}) != (cplt in {"3", "4"}) or (hht2 >= "05" and cplt != "5"):
        yield "C6"
    if (hht2 == "05") != (hht == "6") or (hht2 == "09") != (hht == "4"):
        yield "C7"
    allowed = {"03": "2357", "04": "2357", "06": "3", "07": "3", "10": "2", "11": "2", "08": "7", "12": "5"}
    if hht2 in allowed and hht not in allowed[hht2]:
        yield "C7"


def _member_rules(unit: Row, members: list[Row], family: int) -> Iterable[str]:
    codes = [person["RELSHIP"] for person in members]
    hht, hht2, cplt = unit["HHT"], unit["HHT2"], unit["CPLT"]
    partners = [_PARTNERS[code] for code in codes if code in _PARTNERS]
    if len(partners) > 1 or (partners or ["5"]) != [cplt]:
        yield "C8"
    own = any(person["RELSHIP"] in _OWN_CHILD and int(person["QAGE"]) < 18 for person in members)
    if own != (hht2 in {"01", "03", "06", "10"}):
        yield "C9"
    head = next((person for person in members if person["RELSHIP"] == "20"), None)
    if head is None or (head["CENRACE"], head["CENHISP"]) != (unit["HHRACE"], unit["HHSPAN"]):
        yield "C10"
    if hht in {"4", "6"} and len(members) != 1:
        yield "C11"
    # beyond C1-C12: HHT against the members themselves
    if (hht in {"1", "2", "3"}) != (family >= 2):
        yield "family"


def breaches(persons: list[Row], units: list[Row], geo: list[Row]) -> Counter[str]:
    """How many units or persons break each rule; empty when the records are consistent."""
    found: Counter[str] = Counter()
    members: dict[str, list[Row]] = defaultdict(list)
    for person in persons:
        members[person["MAFID"]].append(person)
    unit_of = {unit["MAFID"]: unit for unit in units}
    geo_of = {row["MAFID"]: row for row in geo}
    found["MAFID"] = len(units) - len(unit_of) + len(geo) - len(geo_of) + len(set(unit_of) ^ set(geo_of))
    for person in persons:
        unit_type = unit_of[person["MAFID"]]["RTYPE"] if person["MAFID"] in unit_of else "none"
        code = int(person["RELSHIP"])
        ok = (person["RTYPE"], unit_type) == (("3", "2") if 20 <= code <= 36 else ("5", "4"))
        found["C1"] += not (ok and 20 <= code <= 38)
    for mafid, unit in unit_of.items():
        found["C2"] += geo_of.get(mafid, {}).get("RTYPE") != unit["RTYPE"]
        found["C3"] += int(unit["FINAL_POP"]) != len(members[mafid])
        found.update(_household_rules(unit, members[mafid]))
    return +found
