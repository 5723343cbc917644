"""The canonical order, with digests computed by hashlib, and the numbers that truncation keeps."""

import hashlib
import random
from collections import Counter
from typing import Any

import pytest

from censafe.products.phsafe.definitions import phsafe_definitions
from censafe.tabulation.tables.counting import canonical_text, over_threshold, truncate
from support.typed_tables import PERSON_COLUMNS, Records, typed

CANONICAL = phsafe_definitions().canonical

HOUSEHOLD = [
    (3, 100000001, 41, 1, 1, 20),
    (3, 100000001, 39, 1, 1, 21),
    (3, 100000001, 7, 1, 12, 25),
    (3, 100000001, 7, 1, 12, 25),
    (3, 100000001, 3, 2, 63, 25),
    (3, 100000001, None, 1, 1, 29),
]
# SHA-256 of "3|100000001|41|1|01|20|1" and so on: the order in which this household is retained.
RETAINED_IN_ORDER = [4, 3, 1, 2, 0, 5]


def persons(backend: Any, rows: list[tuple[int | None, ...]]) -> Any:
    return typed(Records(rows, [], []), backend).persons


def people(table: Any) -> Counter[tuple[Any, ...]]:
    arrow = table.to_pyarrow()
    return Counter(zip(*(arrow[column].to_pylist() for column in PERSON_COLUMNS), strict=True))


def test_canonical_text_is_fixed(backend: Any) -> None:
    records = persons(backend, HOUSEHOLD)
    texts = records.select(text=canonical_text(records, CANONICAL)).to_pyarrow()["text"].to_pylist()
    assert Counter(
        [
            "3|100000001|41|1|01|20", "3|100000001|39|1|01|21", "3|100000001|7|1|12|25", "3|100000001|7|1|12|25",
            "3|100000001|3|2|63|25", "3|100000001||1|01|29",
        ]
    ) == Counter(texts)  # fmt: skip


def test_the_kept_rows_of_a_household_are_fixed_for_all_time(backend: Any) -> None:
    digests = {
        hashlib.sha256(text.encode()).hexdigest()[:8]: row
        for text, row in [
            ("3|100000001|41|1|01|20|1", 0),
            ("3|100000001|39|1|01|21|1", 1),
            ("3|100000001|7|1|12|25|1", 2),
            ("3|100000001|7|1|12|25|2", 3),
            ("3|100000001|3|2|63|25|1", 4),
            ("3|100000001||1|01|29|1", 5),
        ]
    }
    assert [digests[digest] for digest in sorted(digests)] == RETAINED_IN_ORDER
    for tau in range(1, len(HOUSEHOLD) + 2):
        retained, dropped = truncate(persons(backend, HOUSEHOLD), "MAFID", CANONICAL, tau)
        assert Counter(HOUSEHOLD[row] for row in RETAINED_IN_ORDER[:tau]) == people(retained)
        assert Counter(HOUSEHOLD[row] for row in RETAINED_IN_ORDER[tau:]) == people(dropped)


@pytest.mark.parametrize(("tau", "retained_rows"), [(4, 8), (5, 9), (6, 9), (1, 2)])
def test_households_of_four_and_five(backend: Any, tau: int, retained_rows: int) -> None:
    rows = [(3, 100000001 + (row >= 4), 30 + row % 3, 1, 1, 20) for row in range(9)]
    retained, dropped = truncate(persons(backend, rows), "MAFID", CANONICAL, tau)
    assert retained_rows == people(retained).total()
    assert 9 - retained_rows == people(dropped).total()


def test_one_person_changes_the_kept_rows_by_at_most_two(backend: Any) -> None:
    chance = random.Random(7)
    rows = [(3, chance.choice([100000001, 100000002]), chance.randrange(3), 1, 1, 25) for _ in range(9)]
    for tau in (1, 3):
        reached = 0
        whole = people(truncate(persons(backend, rows), "MAFID", CANONICAL, tau)[0])
        for position in range(len(rows)):
            fewer = rows[:position] + rows[position + 1 :]
            retained = people(truncate(persons(backend, fewer), "MAFID", CANONICAL, tau)[0])
            change = (whole - retained).total() + (retained - whole).total()
            assert change <= 2
            reached = max(reached, change)
        assert reached == 2


def test_only_households_over_the_threshold_are_named(backend: Any) -> None:
    records = persons(backend, [(3, mafid, 1, 1, 1, 25) for mafid in (100000001, 100000002, 100000002)])
    assert over_threshold(records, "MAFID", 1).to_pyarrow()["MAFID"].to_pylist() == [100000002]
    assert over_threshold(records, "MAFID", 2).to_pyarrow()["MAFID"].to_pylist() == []
