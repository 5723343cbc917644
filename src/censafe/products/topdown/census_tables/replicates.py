"""Replicates: further runs of a configuration on the counts that it published, which stand in for the truth.

A replicate lies from the published counts as these lie from the true ones, roughly; so replicates show how far published numbers may be from the
truth, whatever is computed of them. They are made of published counts with noise of test keys: public, and at no cost.

Source: approximate Monte Carlo method of the Census Bureau (dhc.md 10).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from censafe.errors import UsageError
from censafe.model.observer import Observer
from censafe.products.run.options import NO_TABLES, ReadOptions, RunOptions
from censafe.products.topdown.census_tables.microdata_source import census_forms
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.plan import CONFIGURATION, configuration_of_run
from censafe.products.topdown.recipe import run
from censafe.products.topdown.rehearsal import seed_of_run
from censafe.publication.manifest import Manifest, read_manifest, stopped_words, verify_outputs
from censafe.results.source import recognize

REPLICATES: Final = 25
"""How many suffice by the Bureau's experience."""


def make_replicates(
    folder: Path,
    out: Path,
    *,
    count: int,
    seed: int,
    workers: int,
    results: Mapping[str, Path],
    observer: Observer,
) -> tuple[Path, ...]:
    """Run the configuration of a finished run again and again on its published counts.

    Published results that constrain the run are replicated first, each replicate with its own.
    """
    sources = _with_results(folder, results)
    digits = max(2, len(str(count)))
    folders = []
    with observer.stage(f"{count} replicates"):
        for number in range(1, count + 1):
            place = out / f"{number:0{digits}}"
            options = RunOptions(test_key=seed_of_run(seed, number), workers=workers, tables=NO_TABLES)
            replicated: dict[str, Path] = {}
            for name, source in sources.items():
                own = place.with_name(f"{place.name}-{name}") if name else place
                with observer.stage(own.name):
                    known = {} if name else replicated
                    overrides = dict(_manifest(source).config.overrides)
                    reading = ReadOptions(results=known)
                    run(str(source / CONFIGURATION), source, own, overrides, reading, options)
                replicated[name] = own
            folders.append(place)
            observer.advance(number / count, count, "replicates")
    return tuple(folders)


def _with_results(folder: Path, results: Mapping[str, Path]) -> dict[str, Path]:
    """Run folders to replicate by name of the result, the run itself last and without a name."""
    config = _configuration(folder)
    strange = sorted(set(results) - set(config.published))
    if strange:
        raise UsageError(
            f"{', '.join(strange)}: {folder} was held to no such result; allowed: {', '.join(config.published) or 'none'}"
        )
    places = {name: results.get(name, folder.with_name(f"{folder.name}-{name}")) for name in config.published}
    for name, place in places.items():
        if not (place / "manifest.json").is_file():
            raise UsageError(
                stopped_words(place)
                or f"{folder} was held to {name}, and {place} is not a finished run; fix: give its run folder as the result called {name}"
            )
        _configuration(place)
    return {**places, "": folder}


def _manifest(folder: Path) -> Manifest:
    source = recognize(folder, census_forms()) if folder.exists() else None
    if source is not None and not source.is_run:
        raise UsageError(
            f"{folder}: {source.words}, which lack the configuration, the geography and the histograms of a run, of which replicates are made; fix: give the folder of a "
            "finished run"
        )
    manifest = read_manifest(folder / "manifest.json")
    if manifest.plan.product != "topdown":
        raise UsageError(
            f"{folder} is a run of {manifest.plan.product}, whose margins of error stand beside its numbers; replicates are made of runs of topdown"
        )
    if CONFIGURATION not in manifest.outputs:
        raise UsageError(
            f"{folder} did not keep its geography and configuration; give a finished run on records, not estimates from files of others"
        )
    return manifest


def _configuration(folder: Path) -> TopdownConfig:
    """The configuration of the run."""
    manifest = _manifest(folder)
    verify_outputs(
        folder, replace(manifest, parts=(), outputs={CONFIGURATION: manifest.outputs[CONFIGURATION]})
    )
    return configuration_of_run(folder, manifest)
