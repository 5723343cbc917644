"""Where a folder of public noisy measurement files holds what a configuration estimates from: all of it, or one state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.estimation.topdown.levels.facts import part_of
from censafe.model import SparseLevel
from censafe.model.topdown.histograms import HistogramSchema, MeasuredHistogram
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.intake.results import MicrodataResult, PublishedResult
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


@dataclass(frozen=True, eq=False)
class StateResult:
    """A published result as far as it is of one state."""

    whole: PublishedResult | MicrodataResult
    state: str

    @property
    def name(self) -> str:
        """Of the result in the configuration."""
        return self.whole.name

    @property
    def schemas(self) -> Mapping[str, HistogramSchema]:
        """Of its histograms, by their names."""
        return self.whole.schemas

    @property
    def digest(self) -> str:
        """SHA-256 that tells it from other results, hexadecimal."""
        return self.whole.digest

    @property
    def remark(self) -> str:
        """What a certificate says of it."""
        return self.whole.remark

    def blocks(self, histogram: str, geounits: NDArray[np.str_]) -> SparseLevel:
        """Histograms of the blocks of the state, whose geocodes are given sorted."""
        published = self.whole.published_blocks(histogram)
        others = published[~np.char.startswith(published, self.state)]
        every = np.union1d(geounits, others)
        first = int(np.searchsorted(every, geounits[0]))
        return part_of(self.whole.blocks(histogram, every), slice(first, first + len(geounits)))


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
