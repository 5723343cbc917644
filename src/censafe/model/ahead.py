"""Compile in a second process what a command will need soon, while the first one reads and counts.

Only the first command after an installation does this. Both processes share the cache on disk, and whoever comes second to a function
waits for the other's machine code; the second process goes through the functions from the last to the first, so that they meet.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from threading import Thread

from censafe.model.compiled import LazyKernel, is_cached


def compile_ahead(*names: str) -> bool:
    """Start compiling kernels that are not in the cache; returns at once.

    The second process ends when it is done or when this one has ended. It gets names alone, and opens no file but the package's own.
    """
    waiting = [name for name in names if not is_cached(_kernel(name))]
    if not waiting:
        return False
    silent = subprocess.DEVNULL
    command = [sys.executable, "-m", __name__, str(os.getpid()), *waiting]
    process = subprocess.Popen(command, stdin=silent, stdout=silent, stderr=silent)  # noqa: S603 (names of our kernels)
    Thread(target=process.wait, daemon=True).start()
    return True


def _kernel(name: str) -> LazyKernel:
    module, _, kernel = name.partition(":")
    function = getattr(import_module(module), kernel)
    if not isinstance(function, LazyKernel):
        raise TypeError(f"{name} is not a compiled function with a signature")
    return function


def _backwards(kernel: LazyKernel, parent: int) -> None:
    """Compile the kernel after all that it calls by address, the last of these first; ends with the parent process."""
    for called in reversed(list(kernel.called_apart())):
        _backwards(called, parent)
    if os.getppid() != parent:
        raise SystemExit(0)
    _ = kernel.dispatcher


if __name__ == "__main__":
    os.nice(1)
    for argument in reversed(sys.argv[2:]):
        _backwards(_kernel(argument), int(sys.argv[1]))
