"""Compile a numeric function; a leaf, so that every package compiles in one way."""

from __future__ import annotations

import dis
import fcntl
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, update_wrapper
from pathlib import Path
from typing import Any, ClassVar

_PACKAGE = Path(__file__).parents[1]
_MARKS = (b"import compiled", b"import numba", b"from numba", b"(NamedTuple)")
_OF_DISPATCHER = ("signatures", "stats", "targetoptions", "_cache")
_IMPORT = re.compile(rb"^\s*from (censafe[\w.]*) import", re.MULTILINE)


class LazyKernel:
    """A function that is compiled, or whose machine code is read from its cache, when it is first needed.

    That is when it is called, or when another function that calls it is compiled; importing a module with many of them is cheap.

    Args:
        apart: whether other kernels call its machine code where it is; otherwise the compiler puts a copy into each of them.
    """

    def __init__(self, function: Callable[..., Any], signature: Any, apart: bool = False) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._signature = signature
        self._apart = apart
        self._compiled: Any = None

    @property
    def dispatcher(self) -> Any:
        """What the compiler made of the function; made once, in the first thread that uses it."""
        if self._compiled is None:
            from numba.core.compiler_lock import global_compiler_lock

            with global_compiler_lock:
                if self._compiled is None:
                    for kernel in self.called_apart():
                        _ = kernel.dispatcher
                    self._compiled = _dispatcher(self.py_func, self._signature)
                    if self._apart:
                        _publish(self._symbol, self._compiled)
        return self._compiled

    def __call__(self, *arguments: Any) -> Any:
        """Call the machine code."""
        return (self._compiled or self.dispatcher)(*arguments)

    @property
    def _symbol(self) -> str:
        return f"{self.py_func.__module__}.{self.py_func.__qualname__}"

    def called_apart(self) -> Iterator[LazyKernel]:
        """Kernels whose machine code that of this one calls: it can neither be made nor read before theirs has an address."""
        globals_read = dict.fromkeys(
            instruction.argval
            for instruction in dis.get_instructions(self.py_func)
            if instruction.opname == "LOAD_GLOBAL"
        )  # co_names would have names of attributes as well
        for name in globals_read:
            kernel = self.py_func.__globals__.get(name)
            if isinstance(kernel, LazyKernel) and kernel is not self:
                if kernel._apart:
                    yield kernel
                else:
                    yield from kernel.called_apart()

    def numba_type(self) -> Any:
        """What the compiler takes the kernel for inside another one: code to copy, or an address to call."""
        from numba.core import types

        return (
            _by_address(self._symbol, self._signature) if self._apart else types.Dispatcher(self.dispatcher)
        )

    def __getattr__(self, name: str) -> Any:
        if name in _OF_DISPATCHER:
            return getattr(self.dispatcher, name)
        raise AttributeError(name)


def compiled(
    signature: Any = None, *, apart: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile with a cache on disk, or without one where no folder is writable; at the first call, not before.

    The compiled function holds no interpreter lock. The compiler is imported when a function is compiled, so that importing one
    is cheap. Machine code holds that of the functions it calls, and the compiler's cache looks at the file of the outer one
    alone; so the cache of a file lies in a folder named by its contents and those of all files with compiled functions that it
    imports, directly or through others, and of the data beside them: fixed_width.toml beside fixed_width.py.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        return LazyKernel(function, signature, apart)

    return decorate


def _dispatcher(function: Callable[..., Any], signature: Any) -> Any:
    from numba import config, njit

    _teach_types()
    configured = config.CACHE_DIR
    folder = configured or _folder(function.__code__.co_filename)
    config.CACHE_DIR = folder
    try:
        with _alone(folder, function):
            return njit(signature, nogil=True, cache=True, no_cfunc_wrapper=True)(function)
    except RuntimeError:  # raised when the compiler finds no place for its cache
        return njit(signature, nogil=True, no_cfunc_wrapper=True)(function)
    finally:
        config.CACHE_DIR = configured


@contextmanager
def _alone(folder: str, function: Callable[..., Any]) -> Iterator[None]:
    """Let no other process compile a function meanwhile; whoever waited reads the machine code of the other."""
    if not folder or function.__module__ == "__main__":
        yield
        return
    Path(folder).mkdir(parents=True, exist_ok=True)
    with (Path(folder) / f"{function.__module__}.{function.__qualname__}.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_cached(kernel: LazyKernel) -> bool:
    """Whether machine code of a kernel lies in the cache, or could not be kept there."""
    from numba import config

    code = kernel.py_func.__code__
    folder = "" if config.CACHE_DIR else _folder(code.co_filename)
    pattern = f"*/{Path(code.co_filename).stem}.{kernel.py_func.__qualname__}-*.nbi"
    return not folder or any(Path(folder).glob(pattern))


@cache
def _teach_types() -> None:
    """Register the type of a kernel that another function calls."""
    from numba.core.typing.typeof import typeof_impl

    @typeof_impl.register(LazyKernel)
    def _type_of(kernel: LazyKernel, _context: Any) -> Any:
        return kernel.numba_type()


def _publish(symbol: str, dispatcher: Any) -> None:
    """Register the address of the machine code of a kernel with the linker."""
    from llvmlite.binding import add_symbol

    (compiled,) = dispatcher.overloads.values()
    add_symbol(symbol, compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))


@cache
def _by_address(symbol: str, signature: Any) -> Any:
    """The type of a function that is called by the name of its machine code, with the compiler's own calling convention.

    The name is the same in every process, so that machine code which calls it can be kept on disk; errors go up as in other calls.
    """
    from numba.core import cgutils, imputils, types, typing
    from numba.core.sigutils import normalize_signature

    arguments, result = normalize_signature(signature)

    class Template(typing.templates.ConcreteTemplate):
        key = symbol
        cases: ClassVar = [typing.signature(result, *arguments)]

    @imputils.lower_builtin(symbol, *arguments)
    def _lower(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        convention = context.call_conv
        shape = convention.get_function_type(result, arguments)
        callee = cgutils.get_or_insert_function(builder.module, shape, symbol)
        status, value = convention.call_function(builder, callee, result, arguments, values)
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return imputils.impl_ret_new_ref(context, builder, result, value)

    return types.Function(Template)


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
        for source in (path, data) if data.is_file() else (path,):
            digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    folder = _PACKAGE / "__pycache__" / f"kernels-{digest.hexdigest()[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return ""
    return str(folder) if os.access(folder, os.W_OK) else ""


def _reached(file: Path) -> set[Path]:
    """The file, and every file with compiled functions that it imports, directly or through such files."""
    imports = _imports()
    files, waiting = {file}, [file]
    while waiting:
        source = waiting.pop()
        new = set(imports.get(source) or _imported(source)) - files
        files |= new
        waiting += new
    return files


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
