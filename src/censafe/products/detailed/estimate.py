"""Tables once more from the stored measurements of a finished run; no record is opened and nothing is spent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from censafe.errors import CheckError, ConfigError, DataError, UsageError
from censafe.estimation.detailed.area_classes import AreaClasses
from censafe.geography.areas import read_areas
from censafe.model import GroupMeasurements
from censafe.model.entries import nearest
from censafe.population.detailed.files import find_input
from censafe.products.detailed.codes.parameters import read_universe
from censafe.products.detailed.codes.universe import Universe
from censafe.products.detailed.config import SafetabConfig
from censafe.products.detailed.keys import bureau_name
from censafe.products.detailed.plan import plan_release
from censafe.products.detailed.release import SAME_AREAS, Published, configured_classes, files_of, publish
from censafe.products.run.folder import finished_run
from censafe.products.run.options import EstimateOptions, stored_names
from censafe.products.run.publishing import measured_before
from censafe.products.run.runner import RunResult
from censafe.publication.groups.tidy import CLASSES_FILE, read_coterminous_classes
from censafe.publication.manifest import ConfigRecord, Manifest, verify_outputs
from censafe.publication.measurements.groups import read_group_measurements
from censafe.publication.sums import require_confidence

AFTERWARDS: Final = {
    "safetab-p": ("t1", "negatives", "coterminous", "mark_x"),
    "safetab-h": ("negatives", "coterminous", "mark_x"),
}
"""Keys that say what is done to the measurements, by product; they may change after a run."""

_SHIPPED: Final = {"safetab-p": "ddhca", "safetab-h": "ddhcb"}
LoadFinished = Callable[[str, Mapping[str, str]], SafetabConfig]


def estimate_with(load: LoadFinished, out: Path, options: EstimateOptions) -> RunResult:
    """Repeat the post-processing, under other rules for published tables where they are given."""
    require_confidence(options.confidence)
    observer = options.observer
    with finished_run(out) as (folder, manifest):
        settings = _changes(manifest.plan.product, options.settings)
        config, universe = _rebuilt(load, manifest, settings, options.config)
        with observer.stage("publish"):
            release = measured_before(folder, manifest, read_group_measurements, options)
            classes = _classes(config, manifest, release.measured, out, options.data)
            names = stored_names(options.names, out, manifest)
            renewed = {bureau_name(manifest.plan.product, noun) for noun in settings}
            before = {key: text for key, text in manifest.config.overrides.items() if key not in renewed}
            record = ConfigRecord(manifest.config.origin, {**before, **settings}, config.record)
            release = replace(release, manifest=replace(manifest, config=record))
            publish(Published(config, universe, classes, names), release)
    return RunResult(
        out,
        manifest.plan,
        manifest.stamp,
        resumed=True,
        files=files_of(config),
        repeated=True,
        stages=observer.stages,
    )


def _changes(product: str, settings: Mapping[str, str]) -> dict[str, str]:
    """The given settings under our keys."""
    allowed = AFTERWARDS[product]
    ours = {bureau_name(product, noun): noun for noun in allowed} | {noun: noun for noun in allowed}
    refused = [key for key in settings if key not in ours]
    if refused:
        hints = "".join(nearest(key, allowed) for key in refused)
        raise UsageError(
            f"--set {', '.join(refused)}: not a rule for published tables, and what was measured stays as it is. After a "
            f"run only {', '.join(allowed)} can change.{hints} For anything else start a new run in a new folder."
        )
    flags = {"true": "keep", "false": "zero"}  # the Bureau's about negative counts, in words of ours
    return {
        ours[key]: flags.get(text.strip().lower(), text) if key == "allow_negative_counts" else text
        for key, text in settings.items()
    }


def _rebuilt(
    load: LoadFinished, manifest: Manifest, settings: Mapping[str, str], source: str | None
) -> tuple[SafetabConfig, Universe]:
    """The configuration of the run with the changes, and its iterations."""
    product = manifest.plan.product
    recorded = {key: str(value) for key, value in manifest.config.settings.items() if key != "title"}
    config = load(source or _SHIPPED[product], {**recorded, **settings})
    universe = read_universe(config.universe)
    if universe.digest != manifest.plan.settings.get("universe"):
        raise ConfigError(
            f"{source}: its parameter files are not those of the run; name those that the run used"
            if source
            else "the run used iterations of a parameter folder, not the shipped ones; name its configuration or "
            f"folder with `parameters` (it was {manifest.config.origin})"
        )
    if plan_release(config, universe).digest() != manifest.plan.digest():
        raise CheckError(
            "the plan cannot be rebuilt from the settings in manifest.json; they were changed by hand, or another "
            "version of censafe wrote them"
        )
    title = str(manifest.config.settings.get("title", ""))
    return replace(config, origin=manifest.config.origin, title=title), universe


def _classes(
    config: SafetabConfig,
    manifest: Manifest,
    measured: list[GroupMeasurements],
    out: Path,
    data: Path | None,
) -> AreaClasses | None:
    """Areas of the same blocks: as the run listed them, or from the geography file."""
    if config.coterminous == "off":
        return None
    listed = [
        name for name in manifest.outputs if name.startswith(f"{SAME_AREAS}/") and name.endswith(CLASSES_FILE)
    ]
    if listed and data is None:
        verify_outputs(out, replace(manifest, parts=(), outputs={listed[0]: manifest.outputs[listed[0]]}))
        return AreaClasses(read_coterminous_classes(out / listed[0]))
    if config.reader == "cef":
        raise UsageError(
            "areas of the same blocks cannot be found afterwards for a run from Census Edited Files, because the blocks "
            "of its areas are those with a unit record. Start a new run with --set coterminous."
        )
    if data is None:
        raise UsageError(
            "areas of the same blocks are found in the geography file. Name GRF-C or its folder with `data`; no other "
            "file there is opened."
        )
    return _from_geography(config, measured, data)


def _from_geography(config: SafetabConfig, measured: list[GroupMeasurements], data: Path) -> AreaClasses:
    paths = (data,) if data.is_file() else find_input(data, "blocks").paths
    areas, problems = read_areas(paths, config.all_states)
    if problems:
        lines = "\n".join(f"  - {problem.text()}" for problem in problems)
        raise DataError(f"{paths[0].name}:\n{lines}")
    other = sorted(
        {
            groups.level.region_type
            for groups in measured
            if tuple(groups.level.regions.tolist()) != areas.regions(groups.level.region_type)
        }
    )
    if other:
        raise CheckError(
            f"{paths[0]}: other areas of {', '.join(other)} than those that were measured; name the geography file of "
            "the run"
        )
    return configured_classes(config, areas)
