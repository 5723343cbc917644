"""Compile a numeric function; a leaf, so that every room compiles in one way."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial, update_wrapper
from pathlib import Path
from typing import Any

__all__ = ["LazyKernel", "compiled", "kernel_files"]

_PACKAGE = Path(__file__).parents[1]
_MARKS = (b"import compiled", b"import numba", b"from numba", b"(NamedTuple)")
_ASKED = ("signatures", "stats", "targetoptions", "_cache")
_IMPORT = re.compile(rb"^\s*from (censafe[\w.]*) import", re.MULTILINE)


class LazyKernel:
    """A function with known types that is compiled, or whose machine code is read from its cache, when it is first needed.

    That is when it is called, or when another function that calls it is compiled; importing a module with many of them is cheap.

    Args:
        function: in Python; also ``py_func``.
        signature: types of the result and the arguments.
    """

    def __init__(self, function: Callable[..., Any], signature: Any) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._signature = signature
        self._compiled: Any = None

    @property
    def dispatcher(self) -> Any:
        """What the compiler made of the function; made once, in whichever thread asks first."""
        if self._compiled is None:
            from numba.core.compiler_lock import global_compiler_lock

            with global_compiler_lock:
                if self._compiled is None:
                    self._compiled = _dispatcher(self.py_func, self._signature)
        return self._compiled

    def __call__(self, *arguments: Any) -> Any:
        """Call the machine code."""
        return (self._compiled or self.dispatcher)(*arguments)

    def __wrapper_address__(self) -> int:
        """Where the machine code is, for kernels that take this one as an argument; the name is the compiler's."""
        (found,) = self.dispatcher.overloads.values()
        address: int = found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name)
        return address

    def __getattr__(self, name: str) -> Any:
        if name in _ASKED:
            return getattr(self.dispatcher, name)
        raise AttributeError(name)


def compiled(signature: Any = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile with a cache on disk, or without one where no folder is writable; at the first call, not before.

    The compiled function holds no interpreter lock. The compiler is imported here, so that importing this module
    is cheap. Machine code holds that of the functions it calls, and the compiler's cache looks at the file of the outer one
    alone; so the cache of a file lies in a folder named by its contents and those of all files with compiled functions that it
    imports, directly or through others, and of the data beside them: fixed_width.toml beside fixed_width.py.

    Args:
        signature: types of the result and the arguments; without them the function is compiled for those of its calls.

    Returns:
        A decorator.
    """
    _teach_types()
    if signature is None:
        return partial(_dispatcher, signature=None)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        return LazyKernel(function, signature)

    return decorate


def _dispatcher(function: Callable[..., Any], signature: Any) -> Any:
    from numba import config, njit

    given = config.CACHE_DIR
    config.CACHE_DIR = given or _folder(function.__code__.co_filename)
    try:
        return njit(signature, nogil=True, cache=True)(function)
    except RuntimeError:  # raised when the compiler finds no place for its cache
        return njit(signature, nogil=True)(function)
    finally:
        config.CACHE_DIR = given


@cache
def _teach_types() -> None:
    """Let the compiler know what a kernel is that another function calls."""
    from numba.core import types
    from numba.core.typing.typeof import typeof_impl

    @typeof_impl.register(LazyKernel)
    def _type_of(kernel: LazyKernel, _context: Any) -> Any:
        return types.Dispatcher(kernel.dispatcher)


@cache
def kernel_files() -> tuple[Path, ...]:
    """Source files of this package that decide compiled code, in a fixed order: functions, and the tuples they take."""
    files = sorted(_PACKAGE.rglob("*.py"))
    return tuple(path for path in files if any(mark in path.read_bytes() for mark in _MARKS))


@cache
def _folder(file: str) -> str:
    """Where the cache of a file lies; empty where none of ours is writable, which leaves it to the compiler."""
    digest = hashlib.sha256()
    for path in sorted(_reached(Path(file))):
        data = path.with_suffix(".toml")
        for one in (path, data) if data.is_file() else (path,):
            digest.update(one.name.encode() + b"\0" + one.read_bytes() + b"\0")
    folder = _PACKAGE / "__pycache__" / f"kernels-{digest.hexdigest()[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return ""
    return str(folder) if os.access(folder, os.W_OK) else ""


def _reached(file: Path) -> set[Path]:
    """The file, and every file with compiled functions that it imports, directly or through such files."""
    imports = _imports()
    found, waiting = {file}, [file]
    while waiting:
        one = waiting.pop()
        new = set(imports.get(one) or _imported(one)) - found
        found |= new
        waiting += new
    return found


@cache
def _imports() -> Mapping[Path, tuple[Path, ...]]:
    return {path: tuple(_imported(path)) for path in kernel_files()}


def _imported(file: Path) -> Iterator[Path]:
    """Files with compiled functions that a file imports; those of a whole folder where a name comes from the folder."""
    for module in _IMPORT.findall(file.read_bytes()):
        place = _PACKAGE.parent.joinpath(*module.decode().split("."))
        for path in kernel_files():
            if path == place.with_suffix(".py") or path.parent == place:
                yield path
