"""Relations between persons and households of every block, counted in the microdata alone: plain loops over plain text rows."""

import csv
from collections import Counter, defaultdict
from pathlib import Path

AREA = ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLKGRPCE", "TABBLK")
AGES = (25, 35, 45, 55, 60, 65, 75, 85, 999)
COUPLES = {"1": "21", "2": "23", "3": "22", "4": "24"}


def blocks_of(path: Path) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    with path.open(newline="") as stream:
        for row in csv.DictReader(stream, delimiter="|"):
            found["".join(row[name] for name in AREA)].append(row)
    return found


def breaches(people: list[dict[str, str]], units: list[dict[str, str]]) -> set[str]:
    """Relations that one block breaks."""
    homes = [row for row in people if row["RTYPE"] == "3"]
    heads = [row for row in homes if row["RELSHIP"] == "20"]
    households = [row for row in units if row["RTYPE"] == "2" and row["TEN"] != "0"]
    size = Counter(row["HHSIZE"] for row in households)
    lived = sum(int(one) * number for one, number in size.items())
    found = set()
    if len(heads) != len(households):
        found.add("occupied_units")
    if sum(row["LIVE_ALONE"] == "1" for row in heads) != size["1"]:
        found.add("living_alone")
    if lived > len(homes) or (not size["7"] and lived != len(homes)):
        found.add("persons_of_sizes")
    found |= {
        f"couples {kind}"
        for kind, code in COUPLES.items()
        if sum(row["CPLT"] == kind for row in households) != sum(row["RELSHIP"] == code for row in homes)
    }
    theirs = Counter(
        (
            row["QSEX"],
            next(place for place, end in enumerate(AGES, 1) if int(row["QAGE"]) < end),
            row["CENHISP"],
            min(int(row["CENRACE"]), 7),
        )
        for row in heads
    )
    ours = Counter(
        (row["HHSEX"], int(row["THHLDRAGE"]), row["THHSPAN"], int(row["THHRACE"])) for row in households
    )
    if theirs != ours:
        found.add("householders")
    children = [int(row["QAGE"]) for row in homes if row["RELSHIP"] in ("25", "26", "27")]
    for name, flagged, there, both in (
        ("under_18", sum(row["TP18"] == "1" for row in households), sum(int(row["QAGE"]) < 18 for row in homes), True),
        ("own_children", sum(row["PAOC"] in "123" for row in households), sum(age < 18 for age in children), False),
        ("own_under_6", sum(row["PAOC"] in "13" for row in households), sum(age < 6 for age in children), False),
        *(
            (f"{age}", sum(row[f"TP{age}"] == "1" for row in households), sum(int(row["QAGE"]) >= age for row in homes), True)
            for age in (60, 65, 75)
        ),
        (
            "generations", sum(row["MULTG"] == "2" for row in households),
            sum(row["RELSHIP"] in ("29", "30", "31") for row in homes), False,
        ),
    ):  # fmt: skip
        if flagged > there or (both and there and not flagged):
            found.add(name)
    return found


def broken_blocks(run: Path) -> dict[str, set[str]]:
    """Relations that are broken, by block; blocks that break none are left out."""
    people, units = (blocks_of(run / "microdata" / name) for name in ("persons.txt", "units.txt"))
    found = {
        block: breaches(people.get(block, []), units.get(block, [])) for block in people.keys() | units.keys()
    }
    return {block: names for block, names in found.items() if names}
