"""The same counts whatever the order of the rows, the number of threads, or the cut into parts."""

import random
from pathlib import Path

from censafe.products.phsafe.definitions import phsafe_definitions
from censafe.tabulation.engine import connect
from censafe.tabulation.tables.counting import CountAccumulator
from support.typed_tables import Records, typed

TAU = {"PH1_num": 3, "PH2": 2, "PH3": 1, "PH4": 3, "PH6": 2, "PH7": 4}


def population(households: int, chance: random.Random) -> Records:
    """Households of one to nine persons, some of them alike, in five states."""
    persons, units, geo = [], [], []
    for mafid in range(100000001, 100000001 + households):
        size = chance.randrange(1, 10)
        household = [chance.randrange(codes) for codes in (3, 64, 5, 8, 13, 6)]  # HHSPAN to CPLT
        units.append((2, mafid, size, size, *household))
        geo.append((2, mafid, f"{chance.randrange(1, 6):02d}"))
        persons += [
            (
                3,
                mafid,
                chance.choice([2, 5, 9, 40]),
                1,
                chance.randrange(1, 8),
                chance.choice([20, 25, 26, 30]),
            )
            for _ in range(size)
        ]
    return Records(persons, units, geo)


def shuffled(records: Records, chance: random.Random) -> Records:
    return Records(
        *(chance.sample(list(rows), len(rows)) for rows in (records.persons, records.units, records.geo))
    )


def counted(parts: list[Records], work: Path, threads: int) -> dict[tuple[str, str], list[int]]:
    backend = connect(work, threads=threads)
    counts = CountAccumulator(phsafe_definitions(), tau=TAU)
    for part in parts:
        counts.add(typed(part, backend))
    backend.disconnect()
    return {key: exact.values.tolist() for key, exact in counts.finish().items()}


def test_order_threads_and_parts_do_not_matter(tmp_path: Path) -> None:
    chance = random.Random(20200401)
    records = population(400, chance)
    expected = counted([records], tmp_path / "one", threads=1)
    assert sum(expected["PH1_num", "usa_*"]) < len(records.persons)  # truncation bites
    assert expected == counted([shuffled(records, chance)], tmp_path / "two", threads=2)
    middle = 100000201
    parts = [
        Records(
            *(
                [row for row in rows if (row[1] < middle) == low]
                for rows in (records.persons, records.units, records.geo)
            )
        )
        for low in (True, False)
    ]
    assert expected == counted(parts, tmp_path / "three", threads=2)
