"""What is opened in a ``with`` block and closes itself at its end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

__all__ = ["Closing"]


class Closing(ABC):
    """Base of what holds a file, a key or records: a ``with`` block ends with its ``close``.

    Example:
        >>> class Door(Closing):
        ...     def close(self):
        ...         print("closed")
        >>> with Door():
        ...     pass
        closed
    """

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Give up what is held."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
