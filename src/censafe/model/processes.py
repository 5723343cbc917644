"""Further processes for work that is spread over them; they never run the script that started the work."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType
from typing import Any

from censafe.errors import StorageError

_STARTING = threading.Lock()


class _Process(SpawnProcess):
    """A process that does not import the main module of the one that starts it, which would repeat a script without a guard."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802 (the name is that of multiprocessing)
        with _STARTING:
            main = sys.modules["__main__"]
            sys.modules["__main__"] = ModuleType("__main__")
            try:
                return SpawnProcess._Popen(process_obj)
            finally:
                sys.modules["__main__"] = main


class _Context(SpawnContext):
    Process = _Process


@contextmanager
def process_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of processes, which take functions of the package and their arguments."""
    try:
        with ProcessPoolExecutor(workers, _Context()) as pool:
            yield pool
    except BrokenProcessPool:
        raise StorageError(
            f"a process of {workers} ended before its work was done, usually because memory ran out; give `workers` 1, or a machine with more memory"
        ) from None
