"""What is used of PySpark's client and of Ibis for it, imported so that any program may do it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Backend", "PrivateChannel", "PySparkCompiler", "PySparkException", "SparkSession"]


@contextmanager
def _program_with_a_file() -> Iterator[None]:
    """Give the program a file name for a moment.

    PySpark takes a program without one (``python -c``, a worker of some runners) for its own tests, and ends the process where these cannot run.
    """
    program = sys.modules["__main__"]
    if hasattr(program, "__file__"):
        yield
        return
    program.__file__ = __file__
    try:
        yield
    finally:
        del program.__file__


with _program_with_a_file():
    from ibis.backends.pyspark import Backend
    from ibis.backends.sql.compilers.pyspark import PySparkCompiler
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.session import SparkSession


class PrivateChannel(DefaultChannelBuilder):
    """A channel to a server that was started for one run."""

    def __init__(self, target: str) -> None:
        super().__init__("sc://localhost", [("grpc.default_authority", "localhost")])
        self._target = target

    def toChannel(self) -> Any:  # noqa: N802 (named by Spark)
        """Open it."""
        return self._insecure_channel(self._target)
