"""Work that threads do ahead, taken in its order, so that results do not depend on their number."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

_AHEAD: Final = 3
Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


def worked_ahead(
    work: Callable[[Item], Outcome], items: Iterable[Item], workers: int, *, ahead: int | None = None
) -> Iterator[Outcome]:
    """Results in the order of their items, worked out by some threads a few items ahead.

    Example:
        >>> list(worked_ahead(abs, [-2, 1], 2))
        [2, 1]
    """
    if workers <= 1:
        yield from map(work, items)
        return
    most = _AHEAD * workers if ahead is None else ahead
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[Outcome]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) >= most:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
