from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Before numpy is loaded, as the command line does it: workers on all processors, with as many threads each, wait for one another.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

sys.path.insert(0, str(Path(__file__).parent))

from support.commands import CommandLine
from support.every import LIST, left_out, listed_tests
from support.once import made_once
from support.runs import Runs

LOAD = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture)
"""Health checks that are off: the first depends on the load of the machine, the second is about fixtures that hold no state."""

settings.register_profile("suite", derandomize=True, deadline=None, suppress_health_check=LOAD)
settings.register_profile(
    "campaign",
    derandomize=False,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=LOAD,
)
settings.load_profile("suite")


@pytest.fixture(scope="session", autouse=True)
def _no_wait_for_the_disk() -> Iterator[None]:
    """Flushing waits for the disk hundreds of times in a run, and only a loss of power would show what it is for.

    A descriptor that is not open is still refused. Tests of what is flushed, and of a disk that refuses, put their own function in
    this place; commands in processes of their own flush.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: (os.fstat(descriptor), None)[1])
        yield


def pytest_configure() -> None:
    """Hypothesis also draws constants of the modules imported so far, so that examples depend on what ran before."""
    if settings.default.derandomize:
        providers._get_local_constants = providers.Constants


def pytest_sessionstart() -> None:
    """Collecting makes most of a million objects that all stay; looking through them again and again takes a third of its time."""
    gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What the suite leaves to ``make test-every`` is marked before marks choose among the tests."""
    ordinary = [item.nodeid for item in items if not item.get_closest_marker("long")]
    chosen, unused = left_out(ordinary, listed_tests())
    for item in items:
        if item.nodeid in chosen:
            item.add_marker("every")
    if unused and config.option.markexpr == "every" and not config.option.file_or_dir:
        raise pytest.UsageError(f"{LIST}: there is no such test: {', '.join(sorted(unused))}")


def pytest_collection_finish() -> None:
    """From here on what was collected is not looked through any more."""
    gc.freeze()
    gc.enable()


@pytest.fixture
def plain_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """No figure is drawn, for tests that look at none: drawing takes a third of an evaluation."""
    monkeypatch.setattr(
        "censafe.publication.pages.svg_text", lambda _, name: f'<svg id="figure-{name}"></svg>'
    )


@pytest.fixture(scope="session")
def censafe() -> CommandLine:
    return CommandLine()


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from censafe.tabulation.engine import connect

    engine = connect(tmp_path_factory.mktemp("engine"), threads=2)
    yield engine
    engine.disconnect()


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Runs with a test key that tests share."""
    return Runs(tmp_path_factory)


@pytest.fixture(scope="session")
def dhc_records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of a small state, for tests that do not change them."""
    from censafe import synthesize

    return made_once(
        tmp_path_factory,
        "dhc-records",
        lambda folder: synthesize(folder / "data", persons=2500, states=("44",), layout="dhc"),
    ).joinpath("data")


@pytest.fixture(scope="session")
def dhc(tmp_path_factory: pytest.TempPathFactory, dhc_records: Path) -> Path:
    """A run of the DHC, for tests that do not change it; the redistricting data that it makes first lie beside it."""
    from censafe import configuration, release

    chosen = configuration("topdown", "dhc-us", {"root": "State"})
    return made_once(
        tmp_path_factory, "dhc-run", lambda folder: release(chosen, dhc_records, folder / "dhc", test_key=3)
    ).joinpath("dhc")
