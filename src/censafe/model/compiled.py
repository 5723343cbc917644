"""Compile a numeric function; a leaf, so that every room compiles in one way."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["compiled", "kernel_files"]

_PACKAGE = Path(__file__).parents[1]
_MARKS = (b"import compiled", b"import numba", b"from numba", b"(NamedTuple)")


def compiled(signature: Any = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile with a cache on disk, or without one where no folder is writable.

    The compiled function holds no interpreter lock. The compiler is imported here, so that importing this module
    is cheap. Machine code holds that of the functions it calls, and the compiler's cache looks at the file of the outer one
    alone; so the cache lies in a folder named by the contents of all files with compiled functions.

    Args:
        signature: types of the result and the arguments; without them the function is compiled at its first call.

    Returns:
        A decorator.
    """
    from numba import config, njit

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        given = config.CACHE_DIR
        config.CACHE_DIR = given or _folder()
        try:
            return njit(signature, nogil=True, cache=True)(function)
        except RuntimeError:  # raised when the compiler finds no place for its cache
            return njit(signature, nogil=True)(function)
        finally:
            config.CACHE_DIR = given

    return decorate


def kernel_files() -> tuple[Path, ...]:
    """Source files of this package that decide compiled code, in a fixed order: functions, and the tuples they take."""
    files = sorted(_PACKAGE.rglob("*.py"))
    return tuple(path for path in files if any(mark in path.read_bytes() for mark in _MARKS))


@cache
def _folder() -> str:
    """Where the cache of just these kernels lies; empty where none of ours is writable, which leaves it to the compiler."""
    digest = hashlib.sha256()
    for path in kernel_files():
        digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    folder = _PACKAGE / "__pycache__" / f"kernels-{digest.hexdigest()[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return ""
    return str(folder) if os.access(folder, os.W_OK) else ""
