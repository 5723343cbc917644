"""What the workers of an engine do for an estimation, and answers that can be taken there in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from censafe.model.topdown.families import AnswerSource


class EngineWorkers(Protocol):
    """Workers of an engine; what they do may be done elsewhere, in any order and more than once."""

    @property
    def threads(self) -> int:
        """Threads of this process, for what is done here."""

    def results(
        self, work: Callable[[Any], bytes], parcels: Iterable[Any], common: Sequence[object] = ()
    ) -> Iterator[bytes]:
        """The results of the same work on every parcel, each once, in the order of the parcels."""


def threads_of(workers: int | EngineWorkers) -> int:
    """Threads of this process.

    Example:
        >>> threads_of(2)
        2
    """
    return workers if isinstance(workers, int) else workers.threads


class DrawingEffort(NamedTuple):
    """What drawing answers took."""

    answers: int
    blocks: int
    """Of the cipher."""
    seconds: float
    """Of processors."""


class OpenedAnswers(AnswerSource, Protocol):
    """Noisy answers of consecutive geounits, numbered from 0, where an engine has its workers."""

    @property
    def effort(self) -> DrawingEffort:
        """What drawing took so far."""

    def close(self) -> None:
        """Forget the key, where there is one."""


@runtime_checkable
class PartedAnswers(Protocol):
    """Noisy answers of a level of which parts can be taken to workers."""

    def part(self, first: int, last: int) -> Any:
        """What workers need of consecutive geounits beside the key; it can be pickled."""

    def opener(self) -> Callable[[Any], OpenedAnswers]:
        """What makes answers of a part; it can be pickled, and holds the key where one is needed."""

    def add(self, effort: DrawingEffort) -> None:
        """Count what workers drew."""
