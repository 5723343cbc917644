"""Work of threads comes back in its order, and none waits for one item that takes long."""

from threading import Event

import pytest

from censafe.model.work_ahead import worked_ahead

ITEMS = 30


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_results_are_in_the_order_of_their_items(workers: int) -> None:
    assert list(range(ITEMS)) == list(worked_ahead(lambda item: item, range(ITEMS), workers))


def test_others_are_worked_out_while_the_first_item_takes_long() -> None:
    last = Event()

    def work(item: int) -> int:
        if item == 0:
            assert last.wait(20)
        elif item == ITEMS - 1:
            last.set()
        return item

    assert list(range(ITEMS)) == list(worked_ahead(work, range(ITEMS), 2, ahead=ITEMS))


def test_few_are_begun_ahead_unless_asked_for() -> None:
    begun: list[int] = []

    def items() -> object:
        for item in range(ITEMS):
            begun.append(item)
            yield item

    found = worked_ahead(lambda item: item, items(), 2)  # type: ignore[arg-type]
    assert next(found) == 0
    assert len(begun) == 6
    found.close()
