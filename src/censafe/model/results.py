"""Which types hold results of a run that writers may publish."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["is_run_result", "run_result"]

_T = TypeVar("_T")
_MARK = "__run_result__"


def run_result(cls: type[_T]) -> type[_T]:
    """Class decorator: values of this type, and of no subclass, may be published if their noise came from a release.

    Example:
        >>> @run_result
        ... class Counts: ...
        >>> class Own(Counts): ...
        >>> is_run_result(Counts()), is_run_result(Own())
        (True, False)
    """
    setattr(cls, _MARK, cls)
    return cls


def is_run_result(value: object) -> bool:
    """Whether a value is of exactly such a type.

    Args:
        value: anything.
    """
    return getattr(type(value), _MARK, None) is type(value)
