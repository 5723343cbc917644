"""Estimates of the chosen tables for the chosen areas, from the states of all levels; written as published files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.cell_sums.structure import CellSum
from censafe.estimation.topdown.cell_sums.tree import SumTree, area_members, used_geounits
from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.model.arrays import Flags, Floats
from censafe.model.cells.lines import CensusTable
from censafe.model.observer import Observer
from censafe.model.topdown.answers import Summing, SummingInRounds
from censafe.model.topdown.histograms import AnswersInStack, CellGroups, MeasuredHistogram
from censafe.products.topdown.census_tables.writing import full_labels
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.folder import ESTIMATES, ESTIMATES_CODEBOOK
from censafe.products.topdown.plan import LevelWorkload, workloads
from censafe.products.topdown.table_estimates.choice import EstimatedAreas, TableChoice, estimated_areas
from censafe.products.topdown.table_estimates.sums import (
    EarlierAnswers,
    HistogramSums,
    group_sums,
    stacked_tree,
)
from censafe.publication.atomic import atomic_write
from censafe.publication.columns import coded_words, tidy_columns, write_codebook_rows
from censafe.publication.stamps import STAMP_REASONS, Stamp

_CONFIDENCES: Final = (0.9, 0.95)
_COLUMNS: Final = (
    "geography", "area", "table", "variable", "estimate", "sd", "lo90", "hi90", "lo95", "hi95",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class TableRows:
    """Estimates of tables of one histogram for areas of one kind.

    Args:
        codes: of the areas, shape (areas,).
        values: shape (areas, cells).
        variances: shape (areas, cells).
        left_out: areas that geounits without used answers cut, so that they have no estimate.
    """

    kind: str
    codes: NDArray[np.str_] = field(repr=False)
    tables: tuple[str, ...]
    variables: tuple[str, ...]
    values: Floats = field(repr=False)
    variances: Floats = field(repr=False)
    left_out: int = 0


class TableEstimates:
    """Takes the answers of a run level by level, and estimates its tables in the end."""

    def __init__(
        self,
        config: TopdownConfig,
        choice: TableChoice,
        public: PublicFacts,
        observer: Observer,
        *,
        stored: bool,
        areas: Sequence[EstimatedAreas] | None = None,
        workers: int = 1,
        earlier: EarlierAnswers | None = None,
    ) -> None:
        self._config = config
        self._workers = workers
        self._public = public
        self._observer = observer
        self.choice = choice
        self._areas = (
            estimated_areas(choice, public, observer, stored=stored) if areas is None else tuple(areas)
        )
        self._earlier = {} if earlier is None else dict(earlier)
        self._used = _used(public, self._areas, stored=stored)
        self._sums: dict[str, HistogramSums] = {}
        self._counted: dict[str, tuple[int, int]] = {}
        self._complete: set[str] = set()
        self.rows: list[TableRows] = []

    def sums(self, load: LevelWorkload) -> HistogramSums | None:
        """The sums of the histogram of a level; None where none of its answers are used."""
        histogram = load.histogram
        tables = self.choice.of(histogram.name)
        shared: tuple[CellSum, ...] = ()  # sums that a histogram shares with another one
        if (linked := self._linked()) is not None and histogram.name in (linked[0].name, linked[1].name):
            shared = group_sums(
                histogram.schema, linked[2] if histogram.name == linked[0].name else linked[3]
            )
        depth = self._public.spine.names.index(load.level.name)
        if not (tables or shared) or not self._used[depth].any():
            return None
        if histogram.name not in self._sums:
            self._sums[histogram.name] = HistogramSums(
                histogram, self._public, tables, self._used, shared, self._earlier
            )
        return self._sums[histogram.name]

    def _linked(self) -> tuple[MeasuredHistogram, MeasuredHistogram, CellGroups, CellGroups] | None:
        """Two measured histograms with equal sums in every geounit, of which tables of the second are estimated, and these sums."""
        measured = {constraint.name: constraint for constraint in self._config.histograms}
        for second in measured.values():
            for constraint in second.constraints:
                right = constraint.right
                if (
                    isinstance(right, AnswersInStack)
                    and right.histogram in measured
                    and constraint.relation == "="
                    and self.choice.of(second.name)
                ):
                    return measured[right.histogram], second, right.groups, constraint.groups
        return None

    def read(self, load: LevelWorkload, source: Summing | SummingInRounds) -> Floats | None:
        """Estimate the states of a level from its answers; None where none are used."""
        sums = self.sums(load)
        if sums is None:
            return None
        with self._observer.stage(f"linear estimates {load.part.name}"):
            self._counted[load.part.name] = sums.geounits(load), sums.answers(load)
            return sums.read(load, source, self._workers)

    def take(self, load: LevelWorkload, states: Floats | None) -> None:
        """Take the states of a level that was measured before the run was stopped."""
        sums = self.sums(load)
        if sums is None and states is None:
            return
        if sums is None or states is None or states.shape != sums.shape(load):
            raise CheckError(
                f"the finished level of {load.part.name} does not hold the linear estimates of these tables and areas; restore the file that was "
                "written under this name, or name a new folder"
            )
        self._counted[load.part.name] = sums.geounits(load), sums.answers(load)
        sums.take(load, states)

    def finish(self, histogram: str) -> None:
        """Estimate the tables of a histogram, all of whose levels are taken."""
        linked, ready = self._linked(), [histogram]
        if linked is not None and histogram in (linked[0].name, linked[1].name):
            ready = [linked[0].name, linked[1].name]
            self._complete.add(histogram)
            if not self._complete.issuperset(ready):
                return
        if any(name not in self._sums for name in ready):
            return
        sums = [self._sums.pop(name) for name in ready]
        loads = [workloads(self._config, name) for name in ready]
        with self._observer.stage(f"estimate tables of {' and '.join(ready)}"):
            for tree, places, tables, columns in _trees(sums, loads):
                for rows in self._rows(tree, places, tables, columns):
                    self.rows.append(rows)
                    if rows.left_out:
                        self._observer.remark(
                            f"tables {tables[0].name} to {tables[-1].name}: {rows.left_out} areas of {rows.kind} have no linear estimate, since they "
                            "divide geounits whose parts were not drawn; name them in `areas` for one."
                        )

    def _rows(
        self,
        tree: SumTree,
        places: Mapping[int, int],
        tables: Sequence[CensusTable],
        columns: NDArray[np.int64],
    ) -> Iterator[TableRows]:
        """Estimates of tables for the areas of every kind, from the depth in their tree of every level of the spine and the columns of their cells."""
        names = tuple(table.name for table in tables for _ in table.lines)
        variables = tuple(variable for table in tables for variable in table.variables)
        for areas in self._areas:
            members, covered = area_members(self._public.spine, areas.area_of, len(areas.codes), self._used)
            chosen = np.flatnonzero(covered)
            values = np.zeros((len(chosen), len(variables)))
            variances = values.copy()
            for row, area in enumerate(chosen.tolist()):
                own = [(places[depth], node) for depth, node in members[area]]
                values[row] = tree.union_values(own)[columns]
                variances[row] = tree.union_variances(own)[columns]
            left_out = len(covered) - len(chosen)
            yield TableRows(areas.kind, areas.codes[chosen], names, variables, values, variances, left_out)

    def estimated(self) -> tuple[dict[str, int], dict[str, int]]:
        """Areas that get estimates, by kind, and those that geounits without used answers cut, where there are any."""
        estimated, left_out = {}, {}
        for areas in self._areas:
            _, complete = area_members(self._public.spine, areas.area_of, len(areas.codes), self._used)
            estimated[areas.kind] = int(complete.sum())
            if not complete.all():
                left_out[areas.kind] = int((~complete).sum())
        return estimated, left_out

    def document(self) -> dict[str, Any]:
        """What the manifest says of the estimates, as JSON values."""
        levels: dict[str, list[str]] = {}  # levels at which answers of earlier results are used
        for histogram, level in self._earlier:
            levels.setdefault(histogram, []).append(level)
        return {
            "tables": [table.name for table in self.choice.tables],
            "areas": {one.kind: len(one.codes) for one in self._areas},
            "geounits": {part: geounits for part, (geounits, _) in self._counted.items()},
            "answers": {part: answers for part, (_, answers) in self._counted.items()},
            "beside": levels,
            "rows": sum(one.values.size for one in self.rows),
            "left_out": {one.kind: one.left_out for one in self.rows if one.left_out},
        }

    def write(self, folder: Path, stamp: Stamp | None) -> None:
        """Write the estimates and their codebook."""
        known = tidy_columns("table_estimates")
        metadata = {"private": "true" if stamp is None else "false", **({"stamp": stamp} if stamp else {})}
        schema = pa.schema([(name, known[name].type) for name in _COLUMNS]).with_metadata(metadata)
        with (
            atomic_write(folder / ESTIMATES) as path,
            pq.ParquetWriter(path, schema, compression="zstd") as writer,
        ):
            for rows in self.rows:
                writer.write_table(_table(rows, schema))
        words = (
            ("variable", table.name, variable, label)
            for table in self.choice.tables
            for variable, label in zip(table.variables, full_labels(table), strict=True)
        )
        reason = {} if stamp is None else {"reason": STAMP_REASONS[stamp]}
        write_codebook_rows(
            folder / ESTIMATES_CODEBOOK, "table_estimates", words, stamp=stamp, universe=False, **reason
        )


def _used(public: PublicFacts, areas: Sequence[EstimatedAreas], *, stored: bool) -> tuple[Flags, ...]:
    """Of every level, the geounits whose answers are used: all that are stored, or those that make up the areas."""
    if stored:
        return tuple(np.ones(level.nodes, np.bool_) for level in public.spine.levels)
    return used_geounits(public.spine, [(one.area_of, one.lowest) for one in areas])


def _trees(
    sums: Sequence[HistogramSums], loads: Sequence[Sequence[LevelWorkload]]
) -> Iterator[tuple[SumTree, Mapping[int, int], tuple[CensusTable, ...], NDArray[np.int64]]]:
    """The tree of one histogram, or that of two together where these can be tied: depths, tables, and which of its sums are their cells."""
    if len(sums) == 2 and all(part.tied for part in sums):
        tree, places = stacked_tree(sums[0], sums[1], list(zip(*loads, strict=True)))
        columns = [np.arange(part.problem.sums) < part.problem.sums - part.shared for part in sums]
        tables = tuple(table for part in sums for table in part.tables)
        yield tree, places, tables, np.flatnonzero(np.concatenate(columns))
        return
    for part, own in zip(sums, loads, strict=True):
        if part.tables:
            yield *part.tree(own), part.tables, np.arange(part.problem.sums - part.shared)


def _table(rows: TableRows, schema: pa.Schema) -> pa.Table:
    areas, cells = rows.values.shape
    area, cell = np.divmod(np.arange(areas * cells), cells)
    values, spread = rows.values.reshape(-1) + 0.0, np.sqrt(rows.variances.reshape(-1))
    columns: dict[str, pa.Array] = {
        "geography": coded_words(np.zeros(areas * cells, np.int32), [rows.kind]),
        "area": coded_words(area, rows.codes.tolist()),
        "table": coded_words(cell, rows.tables),
        "variable": coded_words(cell, rows.variables),
        "estimate": pa.array(values),
        "sd": pa.array(spread),
    }
    for level in _CONFIDENCES:
        reach = NormalDist().inv_cdf(0.5 + level / 2) * spread
        columns |= {
            f"lo{level * 100:g}": pa.array(values - reach),
            f"hi{level * 100:g}": pa.array(values + reach),
        }
    return pa.table([columns[name] for name in schema.names], schema=schema)
