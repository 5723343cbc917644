"""What a run folder keeps beside stored measurements, so that it can be estimated again without its input."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.geography.run_spine import RunSpine
from censafe.geography.spine import build_spine
from censafe.geography.states import states
from censafe.products.topdown.config import TopdownConfig
from censafe.products.topdown.config_types import MeasuredHistogram
from censafe.products.topdown.exact_totals import DeclaredTotals, whole_geounits
from censafe.products.topdown.facts import PublicFacts, public_facts, run_spine
from censafe.products.topdown.invariants import GroupTotals
from censafe.products.topdown.layout import level_rules
from censafe.products.topdown.plan import exact_levels, part_name
from censafe.products.topdown.stored import place_of
from censafe.publication.atomic import atomic_text
from censafe.publication.exact_totals_file import ExactTotal, read_exact_totals, write_exact_totals
from censafe.publication.geography_file import Blocks, read_geography, write_geography
from censafe.publication.nmf_reader import read_constraints
from censafe.publication.stamps import Stamp

__all__ = ["CONFIGURATION", "GEOGRAPHY", "KEPT", "TOTALS", "group_totals", "read_facts", "write_facts"]

GEOGRAPHY: Final = "measurements/geography.parquet"
TOTALS: Final = "measurements/exact_totals.csv"
CONFIGURATION: Final = "measurements/configuration.toml"
KEPT: Final = (GEOGRAPHY, TOTALS, CONFIGURATION)
"""Files of a run folder beside its measurements."""


def write_facts(folder: Path, config: TopdownConfig, public: PublicFacts, *, stamp: Stamp | None) -> None:
    """Write blocks, totals of parted geounits and the configuration.

    Args:
        folder: where the run's files are put together.
        config: of the run.
        public: what is published exactly.
        stamp: ``"NOT PRIVATE"`` beside measurements drawn with a test key.
    """
    leaf = public.run.standard.leaf
    blocks = Blocks(leaf.codes, leaf.digits, public.facilities, public.areas, public.imputed)
    write_geography(folder / GEOGRAPHY, blocks, stamp=stamp)
    write_exact_totals(folder / TOTALS, _grouped(config, public))
    atomic_text(folder / CONFIGURATION, config.text)


def read_facts(out: Path, config: TopdownConfig, plan_digest: str) -> PublicFacts:
    """What is published exactly of a finished run, from its folder alone.

    Args:
        out: the run folder.
        config: of the run.
        plan_digest: of the plan that its measurements belong to.

    Raises:
        CheckError: files are damaged, or do not belong together.
        DataError: published counts contradict each other.
    """
    blocks = read_geography(out / GEOGRAPHY)
    standard = build_spine(blocks.codes, level_rules(config))
    run = run_spine(config, standard, blocks.areas, blocks.units)
    table = read_exact_totals(out / TOTALS)
    totals = {}
    for histogram in config.histograms:
        known = DeclaredTotals({}, {})
        for depth, level in enumerate(config.run_levels):
            if level.name not in exact_levels(histogram):
                continue
            folder = out / "measurements" / place_of(config)(part_name(histogram, level))
            exact = read_constraints(folder, plan_digest=plan_digest).get("total")
            if exact is not None:
                known.single[level.name] = exact.reshape(-1)
            else:
                known.groups[level.name] = group_totals(run, depth, histogram, table)
        totals[histogram.name] = known
    return public_facts(config, run, blocks.units, totals, imputed=blocks.imputed, areas=blocks.areas)


def group_totals(
    run: RunSpine, depth: int, histogram: MeasuredHistogram, table: Sequence[ExactTotal]
) -> GroupTotals:
    """Totals of the standard geounits of a level, for the sums of their parts.

    Args:
        run: the tree.
        depth: of the level.
        histogram: whose records are counted.
        table: totals by geocode; rows that name another histogram or level are passed over.

    Raises:
        CheckError: a geounit has no total.
    """
    level = run.standard.levels[depth]
    known = {
        one.geocode: one.value
        for one in table
        if one.histogram in ("", histogram.name) and one.level in ("", level.name)
    }
    missing = [code for code in level.geounits.tolist() if code not in known]
    if missing:
        raise CheckError(
            f"level {level.name}: {len(missing)} geounits have no exact total, such as {', '.join(missing[:5])}; fix: give "
            "their totals in a table with the columns geocode, name and value"
        )
    values: NDArray[np.int64] = np.array([known[code] for code in level.geounits.tolist()], np.int64)
    return GroupTotals(whole_geounits(run, depth), values)


def _grouped(config: TopdownConfig, public: PublicFacts) -> list[ExactTotal]:
    names = {state.code: state.name for state in states()}
    found = []
    for histogram in config.histograms:
        for level, limits in zip(public.run.standard.levels, public.limits[histogram.name], strict=True):
            if limits.groups is not None:
                pairs = zip(level.geounits.tolist(), limits.groups.totals.tolist(), strict=True)
                found += [
                    ExactTotal(code, value, histogram.name, level.name, names.get(code, ""))
                    for code, value in pairs
                ]
    return found
