"""One server of every engine for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from censafe.model.engine import EngineChoice
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
