"""What a run folder holds, so that it can be re-estimated, or resumed part by part.

Measurements are stored in the Bureau's public layout, beside the figures known exactly.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.levels.facts import (
    DeclaredTotals,
    PublicFacts,
    standard_depth,
    standard_geounits,
)
from censafe.estimation.topdown.levels.limits import GroupTotals, LevelLimits
from censafe.estimation.topdown.whole_tree.sweep import Children, LowerLevel
from censafe.geography.own_codes import AREA_CODES, OTHER_AREAS
from censafe.geography.regions import states
from censafe.geography.spines.paths import RunSpine
from censafe.geography.spines.tree import Spine, build_spine
from censafe.model import PartPlan, SparseLevel
from censafe.model.arrays import Integers
from censafe.model.topdown.histograms import HistogramSchema, MeasuredHistogram, constraints_on
from censafe.model.topdown.level_measurements import LevelBudgets, LevelMeasurements
from censafe.products.run.account import MeasurementFiles
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.layout import level_rules
from censafe.products.topdown.intake.facts import public_facts, run_spine
from censafe.products.topdown.plan import CONFIGURATION, LevelWorkload, exact_levels, histogram_part
from censafe.publication.atomic import atomic_bytes, atomic_text
from censafe.publication.manifest import Manifest
from censafe.publication.measurements.final_levels import (
    FinishedLevel,
    read_finished_level,
    write_finished_level,
)
from censafe.publication.measurements.geography import (
    Blocks,
    ExactTotal,
    read_exact_totals,
    read_geography,
    write_exact_totals,
    write_geography,
)
from censafe.publication.measurements.levels import (
    SUMMED,
    Constraint,
    NmfLayout,
    read_constraints,
    read_noisy_measurements,
    write_noisy_measurements,
)
from censafe.publication.stamps import STAMP, Stamp

STATE: Final = "State"
"""The level whose geounits have folders of their own."""


def place_of(config: TopdownConfig) -> Callable[[str], str]:
    """Folder of a part below the measurements of a run, by the part's name.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> place_of(load_config("pl94-us"))("persons_Tract")
        'US_Person_PL_PROD/Tract.parquet'
    """
    places = {
        histogram_part(histogram, level): f"{histogram.folder}/{level.name}.parquet"
        for histogram in config.histograms
        for level in config.run_levels
    }
    return places.__getitem__


def stored_files(load: LevelWorkload, public: PublicFacts) -> MeasurementFiles[LevelMeasurements]:
    """How the measurements of one histogram at one level are written and read."""
    histogram, spine = load.histogram, public.spine
    depth = spine.names.index(load.level.name)
    limits = public.exact_limits(histogram.name)[depth]
    constraints = constraints_of(histogram, limits, spine.levels[depth].nodes)
    layout = layout_of(histogram, spine, depth)
    write = partial(write_noisy_measurements, constraints=constraints, layout=layout)
    return MeasurementFiles(write, read_noisy_measurements, lambda measured: {measured.source})


def layout_of(histogram: MeasuredHistogram, spine: Spine, depth: int) -> NmfLayout:
    """What the rows of a level say besides codes and numbers."""
    widths = {one.name: one.prefix_digits + one.digits for one in spine.levels[: depth + 1]}
    names = tuple(histogram.query_shares[spine.levels[depth].name])
    return NmfLayout(
        attributes=histogram.schema.schema.names,
        queries=names,
        recodes=tuple(recodes_of(histogram.schema, name) for name in names),
        partition=widths.get(STATE, 0),
    )


def are_of_part(
    measured: LevelMeasurements, part: PartPlan, geounits: NDArray[np.str_], budgets: LevelBudgets
) -> bool:
    """Whether measurements are those of a part, at these geounits and budgets."""
    same = (measured.part, measured.queries) == (part.name, part.queries)
    return same and np.array_equal(measured.geounits, geounits) and measured.budgets.same_as(budgets)


def level_reader(
    out: Path, config: TopdownConfig, manifest: Manifest, public: PublicFacts
) -> Callable[[LevelWorkload], LevelMeasurements]:
    """What reads the measurements of a level of a finished run, and refuses those of others."""
    place, levels = place_of(config), {level.name: level for level in public.spine.levels}

    def read(load: LevelWorkload) -> LevelMeasurements:
        path = out / "measurements" / place(load.part.name)
        measured = read_noisy_measurements(path, plan_digest=manifest.plan.digest())
        geounits, budgets = levels[load.level.name].geounits, public.budgets[load.part.name]
        if not are_of_part(measured, load.part, geounits, budgets):
            raise CheckError(
                f"{path} does not hold the measurements of {load.part.name} at the geounits of the run; restore the run folder "
                "from a copy"
            )
        return measured

    return read


def recodes_of(schema: HistogramSchema, query: str) -> tuple[str, ...]:
    """What the column of each attribute says of a query.

    Example:
        >>> from censafe.products.topdown.configuration.shipped import shipped_schemas
        >>> recodes_of(shipped_schemas()["pl94-persons"], "hispanic * hhinstlevels")
        ('hhinstlevels', '*', 'hispanic', '*')
    """
    if query == "detailed":
        return schema.schema.names
    recodes = dict.fromkeys(schema.schema.names, SUMMED)
    for name in (word.strip() for word in query.split("*")):
        if name in recodes:
            recodes[name] = name
        elif name in schema.recodes:
            recodes[schema.recodes[name].attribute] = name
    return tuple(recodes.values())


def constraints_of(
    histogram: MeasuredHistogram, limits: LevelLimits, geounits: int
) -> tuple[Constraint, ...]:
    """The exact figures of a level's geounits, all of them declared invariants or what follows from these.

    There is always one, since the constraints list the geounits.
    """
    schema = histogram.schema
    names = schema.schema.names
    single = (1,) * len(names)
    nothing = (SUMMED,) * len(names)
    zeros = np.zeros((geounits, 1), np.int64)
    constraints: list[Constraint] = []
    if limits.kinds is not None:
        shape = tuple(limits.upper.shape[1] if name == schema.kind_attribute else 1 for name in names)
        for sign, sides in (("<=", limits.upper), (">=", limits.lower)):
            (bound,) = (bound for bound in constraints_on(histogram) if bound.relation == sign)
            constraints.append(
                Constraint(bound.name, sign, recodes_of(schema, bound.groups.query), shape, sides)
            )
    for zero in schema.zeros:
        factors = tuple(zero.name if name in zero.when else SUMMED for name in names)
        constraints.append(Constraint(zero.name, "=", factors, single, zeros))
    for name, known in limits.answers.items():
        (query,) = (one.groups.query for one in histogram.invariants if one.name == name)
        shape = tuple(factor.groups for factor in schema.query(query).factors)
        constraints.append(Constraint(name, "=", recodes_of(schema, query), shape, known.values))
    if limits.totals is not None:
        constraints.append(Constraint("total", "=", nothing, single, limits.totals.reshape(-1, 1)))
    if not constraints:
        constraints.append(Constraint("total_lb", ">=", nothing, single, zeros))
    return tuple(constraints)


GEOGRAPHY: Final = "measurements/geography.parquet"
TOTALS: Final = "measurements/exact_totals.csv"
AREA_FILES: Final = (AREA_CODES, OTHER_AREAS)
"""Files with codes and geocodes of areas, where the records have codes of their own."""
RUN_FACTS: Final = (GEOGRAPHY, TOTALS, CONFIGURATION)
"""Files of a run folder beside its measurements."""
ESTIMATES: Final = "table_estimates.parquet"
"""Linear estimates of tables in the folder of a run."""
ESTIMATES_CODEBOOK: Final = "table_estimates_codebook.csv"
ESTIMATE_FILES: Final = (ESTIMATES, ESTIMATES_CODEBOOK)
"""What estimates of tables add to a run folder."""


def write_facts(folder: Path, config: TopdownConfig, public: PublicFacts, *, stamp: Stamp | None) -> None:
    """Write blocks, totals of parted geounits and the configuration."""
    leaf = public.run.standard.leaf
    blocks = Blocks(leaf.codes, leaf.form, public.facilities, public.areas, public.imputed)
    write_geography(folder / GEOGRAPHY, blocks, stamp=stamp)
    names = {state.code: state.name for state in states()}
    totals = []
    for histogram in config.histograms:
        for depth, limits in enumerate(public.exact_limits(histogram.name)):
            if limits.groups is not None:
                level = public.run.standard.levels[standard_depth(public.run, depth)]
                pairs = zip(level.geounits.tolist(), limits.groups.totals.tolist(), strict=True)
                totals += [
                    ExactTotal(code, value, histogram.name, level.name, names.get(code, ""))
                    for code, value in pairs
                ]
    write_exact_totals(folder / TOTALS, totals)
    atomic_text(folder / CONFIGURATION, config.text)


def read_facts(out: Path, config: TopdownConfig, plan_digest: str) -> PublicFacts:
    """What is published exactly of a finished run, from its folder alone."""
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
            folder = out / "measurements" / place_of(config)(histogram_part(histogram, level))
            stored = read_constraints(folder, plan_digest=plan_digest)
            for one in histogram.known_at(level.name):
                known.answers[one.name, level.name] = stored[one.name]
            exact = stored.get("total")
            if exact is not None:
                known.single[level.name] = exact.reshape(-1)
            else:
                known.groups[level.name] = group_totals(run, depth, histogram, table)
        totals[histogram.name] = known
    return public_facts(config, run, blocks.units, totals, imputed=blocks.imputed, areas=blocks.areas)


def group_totals(
    run: RunSpine, depth: int, histogram: MeasuredHistogram, table: Sequence[ExactTotal]
) -> GroupTotals:
    """Totals of the standard geounits of a level, for the sums of their parts."""
    level = run.standard.levels[standard_depth(run, depth)]
    known = {
        total.geocode: total.value
        for total in table
        if total.histogram in ("", histogram.name) and total.level in ("", level.name)
    }
    missing = [code for code in level.geounits.tolist() if code not in known]
    if missing:
        raise CheckError(
            f"level {level.name}: {len(missing)} geounits have no exact total, such as {', '.join(missing[:5])}; fix: give "
            "their totals in a table with the columns geocode, name and value"
        )
    values: NDArray[np.int64] = np.array([known[code] for code in level.geounits.tolist()], np.int64)
    return GroupTotals(standard_geounits(run, depth), values)


_KEY: Final = 32  # bytes of a digest


@dataclass(frozen=True)
class StoredParts:
    """Where the finished parts of one run are stored; a file appears there complete or not at all.

    Args:
        plan_digest: of its plan, which with the inputs and the configuration is the identity of the run folder.
    """

    folder: Path
    plan_digest: str
    stamped: bool

    def blocks(self, name: str) -> FinishedLevel | None:
        """Final histograms of the blocks of a part, or None where it is not done."""
        path = self.folder / f"{name}.parquet"
        return read_finished_level(path, plan_digest=self.plan_digest) if path.exists() else None

    def store_blocks(
        self, name: str, level: SparseLevel, report: dict[str, Any], split: Integers | None = None
    ) -> FinishedLevel:
        """Store the final histograms of the blocks of a part."""
        finished = FinishedLevel.of(name, level, report, "seeded" if self.stamped else "system", split=split)
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{name}.parquet"
        write_finished_level(
            path, finished, plan_digest=self.plan_digest, stamp=STAMP if self.stamped else None
        )
        return finished

    def children(self, name: str) -> Children | None:
        """What a part hands to its widest geounits, or None where its linear estimates are not done."""
        arrays = self._read(f"{name}.children.npz")
        return None if arrays is None else Children(**arrays)

    def lower(self, name: str) -> Iterator[LowerLevel]:
        """Linear estimates of the levels of a part, the widest first, each read on first use."""
        for depth in range(int(self._lower(name, "levels")["levels"])):
            suffix = f"_{depth}"
            arrays = self._lower(name, suffix)
            own = {field.name: arrays.get(f"{field.name}{suffix}") for field in fields(LowerLevel)}
            yield LowerLevel(**own)  # type: ignore[arg-type]  # from a file

    def _lower(self, name: str, last: str) -> dict[str, Any]:
        arrays = self._read(f"{name}.lower.npz", last)
        if arrays is None:
            raise CheckError(f"{self.folder / name}.lower.npz is missing; start again in a new folder")
        return arrays

    def store_lower(self, name: str, lower: tuple[LowerLevel, ...], children: Children) -> None:
        """Store linear estimates of a part; what it hands up is written last and says that the rest is there."""
        arrays: dict[str, NDArray[Any]] = {"levels": np.array(len(lower))}
        for depth, level in enumerate(lower):
            arrays |= {f"{name}_{depth}": values for name, values in _arrays(level).items()}
        self.folder.mkdir(parents=True, exist_ok=True)
        for what, content in (("lower", arrays), ("children", _arrays(children))):
            with atomic_bytes(self.folder / f"{name}.{what}.npz") as stream:
                np.savez(stream, **content)  # type: ignore[arg-type]  # its second parameter is not an array

    def _read(self, name: str, last: str = "") -> dict[str, Any] | None:
        """The arrays of a file whose names end so, digests as bytes; None where there is no file."""
        path = self.folder / name
        if not path.exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as stored:
                arrays = {key: stored[key] for key in stored.files if key.endswith(last)}
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise CheckError(f"{path} is damaged; remove it and start again") from error
        return {
            key: tuple(row.tobytes() for row in values.reshape(-1, _KEY))
            if key.startswith("keys")
            else values
            for key, values in arrays.items()
        }


def _arrays(estimates: LowerLevel | Children) -> dict[str, NDArray[Any]]:
    values = {field.name: getattr(estimates, field.name) for field in fields(estimates)}
    values["keys"] = np.frombuffer(b"".join(values["keys"]), np.uint8)
    return {name: array for name, array in values.items() if array is not None}
