"""The spine of a configuration that asks for that of the 2020 production: optimized wherever the data give block attributes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.intake.intake import open_intake
from censafe.products.topdown.intake.spines import optimized_config, standard_reason


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
        attribute_source = intake.attribute_source
    chosen = optimized_config(source, config) if attribute_source else None
    if chosen is not None:
        reading.observer.remark(
            f"Spine: optimized, that of the 2020 production; block attributes from {attribute_source}."
        )
        return chosen
    reading.observer.remark(f"Spine: standard. {standard_reason(config, attributes=bool(attribute_source))}")
    return load_config(source, {**config.overrides, "spine": "standard"})
