"""Modules of the package as trees, read once for all tests of a process."""

import ast
import gc
from functools import cache
from pathlib import Path

import censafe

PACKAGE = Path(censafe.__path__[0])


@cache
def modules() -> tuple[tuple[str, ast.Module], ...]:
    """Every module by its path in the package, with its tree.

    The trees stay, a million objects: they are not looked through while they are made, nor afterwards.
    """
    paths = sorted(PACKAGE.rglob("*.py"))
    gc.disable()
    try:
        return tuple((path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_bytes())) for path in paths)
    finally:
        gc.freeze()
        gc.enable()
