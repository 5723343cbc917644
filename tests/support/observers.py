"""An observer that keeps what it is told."""

from collections.abc import Iterator
from contextlib import contextmanager

from censafe.model.observer import SilentObserver


class StageListener(SilentObserver):
    """Keeps, by stage, the shares of its work that it was told, with the number and the noun of the pieces."""

    def __init__(self) -> None:
        super().__init__()
        self.shares: dict[str, list[tuple[float, int, str]]] = {}
        self._running = [""]

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self._running.append(name)
        with super().stage(name):
            yield
        self._running.pop()

    def advance(self, share: float, total: int = 0, noun: str = "") -> None:
        self.shares.setdefault(self._running[-1], []).append((share, total, noun))
