"""Small countries in memory whose configuration publishes answers of queries exactly, and their records with everything that is known of them."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from censafe.estimation.topdown.levels.facts import DeclaredTotals
from censafe.geography.spines.sums import sum_histograms
from censafe.geography.spines.tree import build_spine
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.configuration.layout import level_rules
from censafe.products.topdown.intake.facts import (
    declared_answers,
    declared_totals,
    public_facts,
    require_answers_met,
    run_spine,
)
from censafe.products.topdown.intake.intake import Loaded
from censafe.products.topdown.plan import exact_levels
from support.histograms import exact_level

LEVELS = ("Country", "Region", "Area")
PERSONS = """
[schemas.residents]
attributes = [
    { name = "sex", levels = 2, labels = ["female", "male"] },
    { name = "age", levels = 3, labels = ["young", "middle", "old"] },
    { name = "citizenship", levels = 3, labels = ["own", "near", "far"] },
]
MORE
[schemas.residents.recodes.foreign]
attribute = "citizenship"
groups = [[0], [1, 2]]
"""
ZEROS = 'zeros = [{ name = "no_young_far", when = { age = [0], citizenship = [2] } }]'
HOMES = '[schemas.residents.facilities]\nattribute = "foreign"\nminimum = [0, 1]\nlargest = [99, 40]'
QUERIES = '{ total = "1/4", "sex * age" = "1/4", detailed = "1/2" }'


def invariants(*queries: tuple[str, str]) -> str:
    """Tables of a configuration, each of a query and its level."""
    return "".join(f'[[invariants]]\nquery = "{query}"\nlevel = "{level}"\n' for query, level in queries)


def country_config(
    folder: Path, tables: str, *, schema: str = PERSONS, more: str = "", loss: str = "rho", extra: str = ""
) -> TopdownConfig:
    """A configuration of one histogram at three levels."""
    shares = "\n".join(f'{level} = "1/3"' for level in LEVELS)
    queries = "\n".join(f"{level} = {QUERIES}" for level in LEVELS)
    path = folder / "own.toml"
    path.write_text(
        f"""title = "A small country"
levels = [{{ name = "Country", prefix = 0, code = "X" }}, {{ name = "Region", prefix = 1 }}, {{ name = "Area", prefix = 3 }}]
{extra}
{tables}
[{loss}]
residents = "1/20"
{schema.replace("MORE", more)}
[histograms.residents]
schema = "residents"
[level_shares.residents]
{shares}
[query_shares.residents]
{queries}
""",
        encoding="utf-8",
    )
    return load_config(path)


def country(
    config: TopdownConfig, seed: int, *, diagonal: bool = False, units: tuple[int, ...] | None = None
) -> Loaded:
    """Records of a country of three regions with one to four areas each; on the diagonal, sex and age follow the area.

    Args:
        units: of every kind in every area; None for as many as its records need.
    """
    rng = np.random.default_rng(seed)
    (histogram,) = config.histograms
    schema = histogram.schema
    codes = [f"{region}{area:02d}" for region in range(1, 4) for area in range(rng.integers(1, 5))]
    spine = build_spine(np.array(codes), level_rules(config))
    cells = schema.schema.cells
    counts = rng.poisson(rng.choice([0.2, 2.0, 9.0], (len(codes), 1)), (len(codes), cells))
    counts *= (rng.random(counts.shape) < 0.5) & schema.allowed()
    if diagonal:
        sex, age = schema.schema.levels_of("sex"), schema.schema.levels_of("age")
        group = np.arange(len(codes))[:, None] % 2
        counts *= (sex == group) & (age == group)
    blocks = exact_level(spine.leaf.geounits, counts)
    facilities = np.zeros((len(codes), 0), np.int32)
    if schema.facilities is not None:
        kinds = schema.query(schema.facilities.attribute)
        held = np.zeros((len(codes), kinds.answers), np.int64)
        np.add.at(held.T, kinds.label, counts.T)
        facilities = (-(-held // np.array(schema.facilities.largest))).astype(np.int32)
        facilities[:] = facilities if units is None else units
    run = run_spine(config, spine, None, facilities)
    levels = sum_histograms(run.spine, blocks, cells)
    totals: DeclaredTotals = replace(
        declared_totals(run, levels, exact_levels(histogram)),
        answers=declared_answers(histogram, run, levels),
    )
    facts = public_facts(config, run, facilities, {histogram.name: totals})
    require_answers_met(config, facts, {histogram.name: levels})
    return Loaded({histogram.name: tuple(levels)}, facts)
