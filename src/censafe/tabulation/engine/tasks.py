"""Work of an estimation done by the workers of an engine: parcels in the scratch folder, results by number, each once."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from censafe.errors import StorageError
from censafe.version import __version__

if TYPE_CHECKING:
    from censafe.model.engine import Engine


_SCHEMA = pa.schema([("number", pa.int64()), ("result", pa.binary())])
_COMMON = "common.pickle"
_ROWS = 16


class EngineTasks:
    """CONFIDENTIAL. What :class:`censafe.model.topdown.answers.EngineWorkers` asks for.

    Work travels inside the serialized tasks and is written nowhere by this package; parcels and results lie in the scratch folder, as records
    do, until the work is done.
    """

    def __init__(self, engine: Engine, scratch: Path, threads: int) -> None:
        self._engine = engine
        self._scratch = scratch
        self.threads = threads

    def results(
        self, work: Callable[[Any], bytes], parcels: Iterable[Any], common: Sequence[object] = ()
    ) -> Iterator[bytes]:
        """The results of the same work on every parcel, each once, in the order of the parcels."""
        name = f"tasks_{uuid4().hex[:8]}"
        folder = self._scratch / name
        folder.mkdir(mode=0o700, parents=True)
        try:
            _write(folder / _COMMON, tuple(common), ())
            files = []
            for number, parcel in enumerate(parcels):
                files.append(folder / f"{number}.pickle")
                _write(files[-1], parcel, common)
            if not files:
                return
            tasks = [partial(_done, work, number, file, __version__) for number, file in enumerate(files)]
            table = self._engine.compute(name, tasks, _SCHEMA)
            yield from _in_order(self._engine.batches(table, _ROWS), len(tasks))
        finally:
            self._engine.drop(name)
            shutil.rmtree(folder, ignore_errors=True)


def _write(path: Path, content: Any, common: Sequence[object]) -> None:
    """Pickle an object; what it shares with others is a place in ``common``, which is written once."""
    places = {id(shared): place for place, shared in enumerate(common)}
    with path.open("xb") as stream:
        pickler = pickle.Pickler(stream, protocol=5)
        pickler.persistent_id = lambda part: places.get(id(part))  # type: ignore[method-assign]
        pickler.dump(content)


def _done(work: Callable[[Any], bytes], number: int, file: Path, version: str) -> Iterator[pa.RecordBatch]:
    """One task, where the engine does it."""
    if version != __version__:
        raise RuntimeError(f"worker of another version of censafe: {__version__}, not {version}")
    common = _read(file.with_name(_COMMON), ())
    result = work(_read(file, common))
    yield pa.RecordBatch.from_arrays(
        [pa.array([number], pa.int64()), pa.array([result], pa.binary())], schema=_SCHEMA
    )


def _read(path: Path, common: Sequence[object]) -> Any:
    with path.open("rb") as stream:
        unpickler = pickle.Unpickler(stream)  # noqa: S301 (written by who sent the task, into a private folder)
        unpickler.persistent_load = common.__getitem__  # type: ignore[method-assign]
        return unpickler.load()


def _in_order(batches: Iterable[pa.RecordBatch], tasks: int) -> Iterator[bytes]:
    """Results by number; a task that ran twice gave the same result twice, and counts once."""
    waiting: dict[int, bytes] = {}
    expected = 0
    for batch in batches:
        results = zip(batch["number"].to_pylist(), batch["result"].to_pylist(), strict=True)
        waiting |= {number: result for number, result in results if number >= expected}
        while expected in waiting:
            yield waiting.pop(expected)
            expected += 1
    if expected < tasks:
        raise StorageError(
            f"`engine`: {tasks - expected - len(waiting)} of {tasks} results of workers are missing; start the same command again"
        )
