"""Compile a numeric function; a leaf, so that every room compiles in one way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["compiled"]


def compiled(signature: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile with a cache on disk, or without one where no folder is writable.

    The compiled function holds no interpreter lock. The compiler is imported here, so that importing this module
    is cheap.

    Args:
        signature: types of the result and the arguments.

    Returns:
        A decorator.
    """
    from numba import njit

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        try:
            return njit(signature, nogil=True, cache=True)(function)
        except RuntimeError:  # raised when the compiler finds no place for its cache
            return njit(signature, nogil=True)(function)

    return decorate
