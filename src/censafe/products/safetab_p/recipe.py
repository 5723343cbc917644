"""SafeTab-P: ``validate``, ``run`` and ``estimate``."""

from __future__ import annotations

from censafe.errors import ReleaseError
from censafe.model import GroupMeasurements
from censafe.products.safetab.config import SafetabPConfig, load_p_config
from censafe.products.safetab.recipe import Key, LevelTask, SafetabRecipe
from censafe.products.safetab_p.counting import count_persons
from censafe.products.safetab_p.measuring import measure_level

__all__ = ["estimate", "run", "validate"]


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


_RECIPE = SafetabRecipe(load_p_config, count_persons, _measure)
validate = _RECIPE.validate
run = _RECIPE.run
estimate = _RECIPE.estimate
