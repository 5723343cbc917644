"""Summaries of households: packed digits say what counting every kind by itself says, in households of any size."""

import random
from typing import Any

from censafe.model.engine import fetch
from censafe.population.households import load
from support.typed_tables import Records, typed


def people(seed: int, rows: int, households: int) -> list[tuple[int | None, ...]]:
    """Persons of every kind, some with values that could not be read."""
    drawn = random.Random(seed)

    def one(*values: int) -> int | None:
        return None if drawn.random() < 0.05 else drawn.choice(values)

    keys = range(100000001, 100000001 + households)
    return [
        (one(3, 3, 5), one(*keys), one(2, 17, 18, 40), one(1, 2), one(1, 40, 63), one(*range(20, 39)))
        for _ in range(rows)
    ]


def rows_of(table: Any) -> list[tuple[Any, ...]]:
    """Rows in order; the householder's race counts only where there is one householder."""
    found = fetch(table.order_by("MAFID")).to_pylist()
    return [
        tuple(row[name] if name != "HEAD" or row["HOUSEHOLDERS"] == 1 else None for name in sorted(row))
        for row in found
    ]


def test_packed_digits_are_what_counting_every_kind_gives(backend: Any) -> None:
    crowd = [(3, 100000999, 40, 1, 1, 28)] * 5_000
    persons = typed(Records([*people(1, 800, 60), *crowd], [], []), backend).persons
    known = persons.filter(persons.MAFID.notnull())
    units = known.select("MAFID").distinct()
    plain = rows_of(load._counted(known))
    for largest in (100_000_900, 100_001_000):  # without the crowd, and with it
        few = backend.store("few", persons.filter((persons.MAFID.between(0, largest)).fill_null(True)))
        packed = load.packed_summary(few, "packed")
        summary = load.with_persons(units, few, packed, "summary")
        found = rows_of(summary.filter(summary.PERSONS.notnull()))
        assert [row for row in plain if row[4] < largest] == found
    assert len(plain) == 61
