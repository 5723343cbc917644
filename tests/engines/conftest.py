"""One server of every engine for all tests of this folder."""

from collections.abc import Iterator

import pytest

from censafe.model.engine import EngineChoice
from censafe.tabulation.engine import connect
from censafe.tabulation.engine.tasks import EngineTasks
from support.engines import installed, spark_server


@pytest.fixture(scope="session", params=installed())
def choice(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EngineChoice]:
    """Every engine beside DuckDB that is installed."""
    if request.param == "sail":
        yield EngineChoice.parse("sail")
        return
    with spark_server(tmp_path_factory.mktemp("spark")) as url:
        yield EngineChoice.parse(f"spark={url}")


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory, choice: EngineChoice) -> Iterator[EngineTasks]:
    """The workers of the engine; nothing of what they were given or gave is left in the end."""
    work = tmp_path_factory.mktemp("workers")
    engine = connect(work / "engine", threads=2, choice=choice)
    yield EngineTasks(engine, work / "tasks", 1)
    engine.disconnect()
    assert [path for path in work.rglob("*") if path.is_file()] == []
