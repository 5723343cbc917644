"""What a folder of public noisy measurement files holds of a configuration, and which areas its lowest geounits make up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError, UsageError
from censafe.geography.spines.paths import RunSpine
from censafe.model.topdown.constraints import AnswersInStack
from censafe.model.topdown.histograms import GeoLevel, MeasuredHistogram
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.folder import STATE
from censafe.products.topdown.public.places import product_folder
from censafe.products.topdown.table_estimates.choice import EstimatedAreas, TableChoice
from censafe.publication.measurements.layout import CONSTRAINT, DPQUERY
from censafe.publication.measurements.rows import data_files

_UNCHANGED: Final = "10"
"""Digits before the three of a county that keeps its code."""
_COUNTY: Final = slice(3, 8)
_NAMED: Final = 5


@dataclass(frozen=True, eq=False)
class PresentFiles:
    """What is read for some tables."""

    config: TopdownConfig
    blocks: bool
    remarks: tuple[str, ...]


def present_files(config: TopdownConfig, folder: Path, choice: TableChoice) -> PresentFiles:
    """The histograms that tables need and the levels that the files hold of them."""
    wanted = [one for one in config.histograms if choice.of(one.name)]
    linked = [one for one in config.histograms if one not in wanted and _is_linked(one, wanted)]
    alone = replace(config, histograms=tuple(wanted))
    own = {one.name: product_folder(alone, folder, one) for one in wanted}
    remarks: list[str] = []
    for one in linked:
        place = folder / one.folder
        if place.is_dir():
            own[one.name] = place
        else:
            names = " and ".join(other.name for other in wanted)
            remarks.append(
                f"{folder}: there is no folder {one.folder}; what {one.name} say of the same numbers is not used for tables of {names}"
            )
    levels, absent = _levels(config, tuple(own.values()))
    remarks += absent
    blocks = levels[-1] is config.run_levels[-1]
    if choice.areas is not None and not blocks:
        raise UsageError(
            f"`areas`: the files end at level {levels[-1].name} and do not say which blocks there are, so that areas of blocks cannot be estimated; "
            f"fix: leave `areas` out, or get the files of {config.run_levels[-1].name}"
        )
    found = replace(
        config,
        levels=levels,
        root=levels[0].name,
        histograms=tuple(one for one in config.histograms if one.name in own),
    )
    return PresentFiles(found, blocks, tuple(remarks))


def _levels(config: TopdownConfig, own: Sequence[Path]) -> tuple[tuple[GeoLevel, ...], tuple[str, ...]]:
    """Levels of which there are files in all folders, and what is said of the others."""
    levels = tuple(
        level
        for level in config.run_levels
        if all(data_files(place / f"{level.name}.parquet" / CONSTRAINT) for place in own)
    )
    if not levels:
        raise DataError(
            f"{' and '.join(map(str, own))}: there are no files of any level; allowed: folders LEVEL.parquet/{CONSTRAINT} and "
            f"LEVEL.parquet/{DPQUERY} of one or more of {', '.join(level.name for level in config.run_levels)}; fix: name the folder that holds them"
        )
    absent = [level.name for level in config.run_levels if level not in levels]
    if not absent:
        return levels, ()
    return levels, (
        f"there are no files of level{'s' if len(absent) > 1 else ''} {', '.join(absent)}; the estimates are those from "
        f"{', '.join(level.name for level in levels)} alone",
    )


def _is_linked(histogram: MeasuredHistogram, wanted: Sequence[MeasuredHistogram]) -> bool:
    """Whether one of the wanted histograms has sums that are the same in this one."""
    return any(
        isinstance(one.right, AnswersInStack)
        and one.relation == "="
        and one.right.histogram == histogram.name
        for other in wanted
        for one in other.constraints
    )


def areas_above_blocks(run: RunSpine) -> tuple[tuple[EstimatedAreas, ...], tuple[str, ...]]:
    """States and counties that the geounits of files without blocks make up, and what is said of the others.

    A code says the county of a geounit outside of American Indian areas alone; counties of states that such areas divide are left out,
    since parts of them may lie inside.
    """
    leaf, lowest = run.spine.leaf, len(run.spine.levels) - 1
    if STATE not in run.standard.names:
        return (), ("the files hold no level State: nothing but their own geounits could be estimated",)
    depth = run.standard.names.index(STATE)
    state = run.standard.ancestors(depth).astype(np.int64)
    state = state if run.order is None else state[run.order]
    names = run.standard.levels[depth].geounits
    found = [EstimatedAreas("state", names, state, lowest)]
    codes = leaf.geounits.astype("U8")
    if run.spine is run.standard or leaf.digits + leaf.prefix_digits < _COUNTY.stop:
        return tuple(found), ("the files end above the counties, which have no estimates",)
    county = np.array([code[_COUNTY] for code in codes.tolist()])
    outside = np.char.startswith(county, _UNCHANGED)
    divided = np.unique(state[np.array([code[0] != "0" for code in codes.tolist()])])
    inside = outside & ~np.isin(state, divided)
    area_of = np.full(len(codes), -1)
    keys = np.char.add(names[state], county.astype("U5"))
    whole, number = np.unique(
        np.array([key[:2] + key[4:] for key in keys[inside].tolist()], "U5"), return_inverse=True
    )
    area_of[inside] = number.ravel()
    found.append(EstimatedAreas("county", whole, area_of, lowest))
    return tuple(found), _left_out(names[divided], keys[outside & ~inside])


def _left_out(states: NDArray[np.str_], counties: NDArray[np.str_]) -> tuple[str, ...]:
    if not len(states):
        return ()
    return (
        f"{len(np.unique(counties))} counties of {len(states)} states that American Indian areas divide ({', '.join(states[:_NAMED].tolist())}"
        f"{', ...' if len(states) > _NAMED else ''}) have no estimate: files without blocks do not say which counties these areas lie in",
    )
