"""Work for an engine's workers, done by the embedded engine: every result once, in the order of the parcels."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from censafe.errors import StorageError
from censafe.tabulation.engine import connect
from censafe.tabulation.engine import tasks as tasks_module
from censafe.tabulation.engine.tasks import EngineTasks
from support.engines import Losing, Repeating


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    opened = connect(tmp_path_factory.mktemp("engine"), threads=1)
    yield opened
    opened.disconnect()


def doubled(parcel: tuple[int, str]) -> bytes:
    number, text = parcel
    return f"{2 * number} {text}".encode()


PARCELS = [(number, "shared") for number in range(40)]
RESULTS = [f"{2 * number} shared".encode() for number in range(40)]


@pytest.mark.parametrize("wrapped", [None, Repeating])
def test_results_come_once_and_in_the_order_of_the_parcels(engine: Any, tmp_path: Path, wrapped: Any) -> None:
    tasks = EngineTasks(engine if wrapped is None else wrapped(engine), tmp_path, 1)
    assert list(tasks.results(doubled, PARCELS, ("shared",))) == RESULTS
    assert list(tmp_path.rglob("*")) == []
    assert list(tasks.results(doubled, [])) == []


def test_a_missing_result_stops_what_waits_for_it(engine: Any, tmp_path: Path) -> None:
    tasks = EngineTasks(Losing(engine), tmp_path, 1)
    with pytest.raises(StorageError, match="1 of 40 results of workers are missing"):
        list(tasks.results(doubled, PARCELS, ("shared",)))
    assert list(tmp_path.rglob("*")) == []


def test_a_worker_of_another_version_does_nothing(tmp_path: Path) -> None:
    file = tmp_path / "0.pickle"
    tasks_module._write(tmp_path / "common.pickle", (), ())
    tasks_module._write(file, PARCELS[0], ())
    (batch,) = tasks_module._done(doubled, 0, file, tasks_module.__version__)
    assert batch.to_pydict() == {"number": [0], "result": [RESULTS[0]]}
    with pytest.raises(RuntimeError, match="worker of another version"):
        list(tasks_module._done(doubled, 0, file, "0.0.1"))
