"""SafeTab-P: ``validate`` and ``run``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from censafe.errors import ReleaseError
from censafe.model import GroupMeasurements
from censafe.population.findings import Finding
from censafe.products.options import EstimateOptions, ReadOptions, RunOptions
from censafe.products.runner import RunResult
from censafe.products.safetab.again import estimate_with
from censafe.products.safetab.config import SafetabPConfig, load_p_config
from censafe.products.safetab.recipe import Key, LevelTask, run_with, validate_with
from censafe.products.safetab_p.counting import count_persons
from censafe.products.safetab_p.measuring import measure_level

__all__ = ["estimate", "run", "validate"]


def validate(
    config: str, data: Path, settings: Mapping[str, str], reading: ReadOptions
) -> tuple[Finding, ...]:
    """Check configuration, parameter files and records; see :func:`censafe.products.safetab.recipe.validate_with`."""
    return validate_with(load_p_config, config, data, settings, reading)


def run(
    config: str,
    data: Path,
    out: Path,
    settings: Mapping[str, str],
    reading: ReadOptions,
    options: RunOptions,
) -> RunResult:
    """The protected release; see :func:`censafe.products.safetab.recipe.run_with`."""
    return run_with(load_p_config, count_persons, _measure, config, data, out, settings, reading, options)


def estimate(out: Path, options: EstimateOptions) -> RunResult:
    """Everything right of the door again; see :func:`censafe.products.safetab.again.estimate_with`."""
    return estimate_with(load_p_config, out, options)


def _measure(task: LevelTask, key: Key) -> GroupMeasurements:
    if not isinstance(task.config, SafetabPConfig):
        raise ReleaseError("a part of SafeTab-P needs a configuration of SafeTab-P")
    return measure_level(
        task.counter,
        task.config,
        task.level,
        task.part,
        key,
        stable=task.stable,
        threads=task.threads,
    )
