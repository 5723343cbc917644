"""Levels of TopDown on the workers of every engine: the integers of one thread, whoever does which parents, and however often."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np
import pytest

import censafe
from censafe.errors import CheckError, StorageError
from censafe.model import SparseLevel
from censafe.model.engine import Engine, EngineChoice
from censafe.tabulation.engine import connect
from censafe.tabulation.engine.tasks import EngineTasks
from support.engines import SAIL, Losing, Repeating, SailServer
from support.histograms import dense, sparse_level
from support.random_levels import (
    CELLS,
    ONE,
    TOTALS_FIRST,
    estimated,
    impossible,
    random_level,
    rules,
    same,
)
from support.topdown_inputs import write_1940


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some batches of a few parents each, so that there is something to divide."""
    monkeypatch.setattr("censafe.estimation.topdown.levels.batches._BATCH_WORK", 2e4)


def both(level: Any, passes: Any, workers: EngineTasks) -> None:
    spine, parents, task = level
    expected, report = estimated(spine, parents, task, rules(passes))
    found, theirs = estimated(spine, parents, task, rules(passes), workers)
    assert same(expected, found)
    assert report.document() == theirs.document()


@pytest.mark.parametrize(
    ("seed", "bounded", "known", "passes"), [(1, True, False, TOTALS_FIRST), (2, False, True, ONE)]
)
def test_a_level_on_workers(workers: EngineTasks, seed: int, bounded: bool, known: bool, passes: Any) -> None:
    both(random_level(seed, bounded=bounded, known=known, parents=40), passes, workers)


def test_a_parent_that_is_repaired_and_one_that_stops_the_run(workers: EngineTasks) -> None:
    spine, parents, task, closed = impossible()
    name = spine.levels[1].geounits[closed]
    with pytest.raises(CheckError, match=f"level Block, children of {name}"):
        estimated(spine, parents, task, rules(ONE, infeasible="stop"), workers)


def test_skewed_and_empty_parents(workers: EngineTasks) -> None:
    """One parent has nearly all records, and half of the others have none."""
    spine, parents, task = random_level(4, bounded=False, known=False, parents=30)
    counts = dense(parents, CELLS)
    counts[::2] = 0
    counts[1] *= 10_000
    skewed = sparse_level(parents.geounits, counts)
    both((spine, skewed, task), ONE, workers)
    nothing = SparseLevel(
        parents.geounits, np.zeros_like(parents.node_ptr), parents.cell[:0], parents.count[:0]
    )
    both((spine, nothing, task), ONE, workers)


def through(wrapped: Callable[[Engine], Any], tasks: EngineTasks) -> EngineTasks:
    return EngineTasks(wrapped(tasks._engine), tasks._scratch, 1)


def test_a_task_that_runs_twice_counts_once(workers: EngineTasks) -> None:
    both(random_level(5, bounded=True, known=False, parents=40), ONE, through(Repeating, workers))


def test_a_result_that_is_missing_stops_the_run(workers: EngineTasks) -> None:
    with pytest.raises(StorageError, match=r"1 of \d+ results of workers are missing"):
        both(random_level(5, bounded=True, known=False, parents=40), ONE, through(Losing, workers))


@pytest.mark.long
@pytest.mark.skipif(not SAIL, reason="neither Sail nor its client is installed")
def test_a_killed_server_is_asked_once_more(tmp_path: Path) -> None:
    server = SailServer()
    try:
        engine = connect(tmp_path / "engine", choice=EngineChoice.parse(f"spark={server.url}"))
        tasks = EngineTasks(engine, tmp_path / "tasks", 1)
        server.kill()
        restart = Timer(0.3, server.start)
        restart.start()
        both(random_level(6, bounded=False, known=False, parents=40), ONE, tasks)
        restart.join()
        engine.disconnect()
    finally:
        server.kill()


@pytest.mark.parametrize(
    "choices",
    [("lazy", "level"), pytest.param(("stored", "lower"), marks=pytest.mark.long)],
    ids=" ".join,
)
def test_a_release_has_the_same_bytes(tmp_path: Path, choice: EngineChoice, choices: tuple[str, str]) -> None:
    districts = write_1940(tmp_path / "districts")
    measurements, information = choices
    chosen = censafe.configuration(
        "topdown", "e2e-1940", epsilon="8", noisy_measurements=measurements, information=information
    )
    found = []
    for engine in ("duckdb", choice.name if choice.name == "sail" else f"spark={choice.url}"):
        out = tmp_path / engine[:5]
        censafe.release(chosen, districts, out, test_key=3, engine=engine)
        files = [path for path in out.rglob("*") if path.is_file() and path.suffix in (".csv", ".parquet")]
        found.append({path.relative_to(out): hashlib.sha256(path.read_bytes()).hexdigest() for path in files})
    assert len(found[0]) > 5
    assert found[0] == found[1]
