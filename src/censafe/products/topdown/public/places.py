"""Where a folder of public noisy measurement files holds what a configuration estimates from: all of it, or one state."""

from __future__ import annotations

from pathlib import Path

from censafe.errors import DataError
from censafe.model.topdown.histograms import MeasuredHistogram
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.plan import histogram_part
from censafe.publication.measurements.layout import LevelFiles, level_files


def files_of_levels(config: TopdownConfig, folder: Path, state: str | None = None) -> dict[str, LevelFiles]:
    """The files of every histogram and level, by name of the part."""
    found = {}
    chosen = None if state is None else [f"State={half}{state}" for half in ("", "0", "1")]
    for histogram in config.histograms:
        own = product_folder(config, folder, histogram)
        _require_levels(config, own, histogram)
        for level in config.run_levels:
            found[histogram_part(histogram, level)] = level_files(
                own / f"{level.name}.parquet", level.name, chosen
            )
    return found


def product_folder(config: TopdownConfig, folder: Path, histogram: MeasuredHistogram) -> Path:
    """The folder of the measurements of a histogram."""
    own = folder / histogram.folder
    if own.is_dir():
        return own
    levels = [folder / f"{level.name}.parquet" for level in config.run_levels]
    if len(config.histograms) == 1 and any(path.is_dir() for path in levels):
        return folder
    raise DataError(
        f"{folder}: there is no folder {histogram.folder} with the measurements of {histogram.name}; fix: name the "
        "folder that holds it, choose what is estimated by --set measure=..., or give the folder's name in the "
        "configuration (histograms.NAME.measurements)"
    )


def _require_levels(config: TopdownConfig, own: Path, histogram: MeasuredHistogram) -> None:
    """Refuse files of some levels only, which many collections are: all that are absent are named at once."""
    names = [level.name for level in config.run_levels]
    there = [(own / f"{name}.parquet").is_dir() for name in names]
    if all(there) or not any(there):
        return
    absent = [name for name, known in zip(names, there, strict=True) if not known]
    present = [name for name, known in zip(names, there, strict=True) if known]
    first = there.index(True)
    fix = f"get the files of {', '.join(absent)}"
    if all(there[first:]):
        fix += f", or start below them (--set root={names[first]})"
    raise DataError(
        f"level{'s' if len(absent) > 1 else ''} {', '.join(absent)}: there are no files in {own}; those of {histogram.name} hold "
        f"{', '.join(present)}, and the estimate goes from {names[0]} down to {names[-1]} and fits every level to its own answers; fix: {fix}"
    )
