"""SafeTab-H: ``validate``, ``run`` and ``estimate``."""

from __future__ import annotations

from itertools import groupby

from censafe.errors import DataError, ReleaseError
from censafe.model import GroupMeasurements
from censafe.population.findings import raise_if_fatal
from censafe.population.safetab.checks import no_group_finding
from censafe.population.safetab.source import SafetabInput
from censafe.products.safetab.config import SafetabConfig, SafetabHConfig, load_h_config
from censafe.products.safetab.counting import GroupCounter
from censafe.products.safetab.recipe import Key, LevelTask, SafetabRecipe
from censafe.products.safetab_h.counting import count_households
from censafe.products.safetab_h.measuring import measure_level
from censafe.products.safetab_h.truth import true_counts

__all__ = ["estimate", "run", "validate"]


def _measure(task: LevelTask, key: Key) -> GroupMeasurements:
    if not isinstance(task.config, SafetabHConfig):
        raise ReleaseError("a part of SafeTab-H needs a configuration of SafeTab-H")
    if task.data.totals is None:
        raise DataError("SafeTab-H needs totals of population groups (T1). Name them with --t1.")
    return measure_level(
        task.counter,
        task.config,
        task.data.totals,
        task.level,
        "t3" if task.table_class == "t3" else "t4",
        task.part,
        key,
        stable=task.stable,
        threads=task.threads,
    )


def _require_overlap(config: SafetabConfig, data: SafetabInput, counter: GroupCounter) -> None:
    """Stop when no household of a run, US or Puerto Rico, is in any group that has a total."""
    if data.totals is None:
        return
    findings = []
    for run, levels in groupby(
        config.levels, key=lambda level: "PR" if level.key.startswith("pr_") else "US"
    ):
        if not any(
            true_counts(counter, None, data.totals, level, "t4").values.any()
            for level in levels
            if config.budgets["t3", level.key] != 0 or config.budgets["t4", level.key] != 0
        ):
            findings.append(no_group_finding("household records", run))
    raise_if_fatal(findings, "input data")


_RECIPE = SafetabRecipe(load_h_config, count_households, _measure, _require_overlap)
validate = _RECIPE.validate
run = _RECIPE.run
estimate = _RECIPE.estimate
