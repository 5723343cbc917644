"""The spine of a configuration that asks for that of the 2020 production: optimized wherever the data give block attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.intake.intake import open_intake
from censafe.products.topdown.intake.spines import spine_refusal, standard_reason
from censafe.products.topdown.plan import plan_release


def load_for_plan(source: str | Path, overrides: Mapping[str, str]) -> TopdownConfig:
    """A configuration before any data are known: on the spine of the production where its levels and schemas allow that.

    What is stated of the loss holds on the standard one as well, where two blocks of an area share more and a person costs less.

    Example:
        >>> load_for_plan("pl94-us", {}).choices.spine, load_for_plan("pl94-us", {"spine": "standard"}).choices.spine
        ('optimized', 'standard')
    """
    config = load_config(source, overrides)
    found = _optimized(source, config)
    return config if found is None else replace(found, choices=replace(found.choices, production_spine=True))


def load_of_unknown_run(source: str | Path) -> TopdownConfig:
    """The configuration of a published result whose run is not known: from its widest level, on the spine on which a person costs more.

    Example:
        >>> load_of_unknown_run("pl94-us").choices.spine, load_of_unknown_run("blocks-16").choices.spine
        ('optimized', 'standard')
    """
    spines = (load_config(source), load_for_plan(source, {}))
    return max(spines, key=lambda one: plan_release(one).total)


def load_for_data(
    source: str | Path, overrides: Mapping[str, str], data: Path, reading: ReadOptions
) -> TopdownConfig:
    """A configuration on the spine that the data allow; the operator reads which one, and why.

    The choice is recorded as an override of ``spine``, so that everything made from the run later takes the same.
    """
    config = load_config(source, overrides)
    for warning in config.warnings:
        reading.observer.remark(f"Warning: {warning}")
    if not config.choices.production_spine:
        return config
    with open_intake(data, config, reading) as intake:
        given = intake.attribute_source
    chosen = _optimized(source, config) if given else None
    if chosen is not None:
        reading.observer.remark(
            f"Spine: optimized, that of the 2020 production; block attributes from {given}."
        )
        return chosen
    reading.observer.remark(f"Spine: standard. {standard_reason(config, attributes=bool(given))}")
    return load_config(source, {**config.overrides, "spine": "standard"})


def _optimized(source: str | Path, config: TopdownConfig) -> TopdownConfig | None:
    """The configuration on the optimized spine, if it leaves the spine to the data and its levels and schemas allow that one."""
    if not config.choices.production_spine or spine_refusal(config):
        return None
    return load_config(source, {**config.overrides, "spine": "optimized"})
