"""CONFIDENTIAL. The truth and what was published from it, over one spine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError, UsageError
from censafe.evaluation.counts.block_rows import block_rows
from censafe.geography.spines.tree import LevelRule, Spine, build_spine
from censafe.model import ExactHistograms, Schema, SparseLevel
from censafe.model.schema import CellQuery
from censafe.model.topdown.histograms import HistogramSchema
from censafe.results.histogram_files import BlockCells, read_geocodes


@dataclass(frozen=True, eq=False)
class PublishedRun:
    """Published block histograms.

    Args:
        weight: what a count stands for: 1, or the inverse of the rate of a sample.
        setting: what distinguishes runs of different parameters, such as an epsilon; runs of one setting may be pooled.
    """

    run_id: str
    histograms: SparseLevel = field(repr=False)
    weight: Fraction = Fraction(1)
    setting: str = ""


@dataclass(frozen=True, eq=False)
class Pair:
    """CONFIDENTIAL. True block histograms and one or more published runs.

    Args:
        facts: counted when the files were matched: ``only_true`` and ``only_published``, blocks with records on
            one side only, where no list of blocks was given.
    """

    schema: HistogramSchema
    spine: Spine = field(repr=False)
    confidential: ExactHistograms = field(repr=False)
    runs: tuple[PublishedRun, ...]
    facts: Mapping[str, int] = field(default_factory=dict)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a pair holds confidential counts and cannot be pickled")

    def query(self, text: str) -> CellQuery:
        """The query that ``text`` names; UsageError when the schema has none such."""
        try:
            return self.schema.query(text)
        except ValueError as error:
            raise UsageError(str(error)) from None

    def with_runs(self, runs: Sequence[PublishedRun]) -> Pair:
        """The same truth with other published runs."""
        return replace(self, runs=tuple(runs))


def pair_histograms(
    schema: HistogramSchema, spine: Spine, confidential: ExactHistograms, runs: Sequence[PublishedRun]
) -> Pair:
    """A pair of histograms that are in memory and in the order of one spine."""
    if len({run.run_id for run in runs}) != len(runs):
        raise UsageError("two published runs have one name; give each its own")
    sides: list[tuple[str, ExactHistograms | SparseLevel]] = [("the truth", confidential)]
    sides += [(f"run {run.run_id}", run.histograms) for run in runs]
    for name, side in sides:
        if not np.array_equal(side.geounits, spine.leaf.geounits):
            raise DataError(
                f"{name}: histograms of other blocks than those of the spine; fix: match the files first"
            )
        if len(side.cell) and not 0 <= int(side.cell.min()) <= int(side.cell.max()) < schema.schema.cells:
            raise DataError(
                f"{name}: cells outside the schema {schema.name}; allowed: 0 to {schema.schema.cells - 1}"
            )
    return Pair(schema, spine, confidential, tuple(runs))


def pair_files(
    schema: HistogramSchema,
    rules: Sequence[LevelRule],
    confidential: Path,
    published: Mapping[str, Path],
    *,
    domain: Path | None = None,
    more: Sequence[tuple[Path, HistogramSchema]] = (),
) -> Pair:
    """Read and match files of histograms (geocode, cell, count) or microdata of the redistricting data."""
    form = rules[-1].form
    true = block_rows(confidential, form, schema)
    public = {name: block_rows(path, form, schema) for name, path in published.items()}
    facts: dict[str, int] = {}
    if domain is not None:
        blocks = read_geocodes(domain, form)
        for side in (true, *public.values()):
            _inside(side, blocks, rules)
    else:
        known = true.codes
        others = np.unique(np.concatenate([np.zeros(0, np.int64), *(one.codes for one in public.values())]))
        common = len(np.intersect1d(known, others, assume_unique=True))
        if public and len(known) and len(others) and not common:
            raise DataError(
                f"{', '.join(one.name for one in public.values())}: no {rules[-1].name} in common with the truth; fix: compare "
                "files of the same areas"
            )
        facts = {"only_true": len(known) - common, "only_published": len(others) - common}
        blocks = np.unique(
            np.concatenate([known, others, *(block_rows(path, form, one).codes for path, one in more)])
        )
    spine = build_spine(blocks, rules)
    exact = ExactHistograms(*_sparse(true, spine, schema))
    runs = [PublishedRun(name, SparseLevel(*_sparse(one, spine, schema))) for name, one in public.items()]
    return replace(pair_histograms(schema, spine, exact, runs), facts=facts)


def pair_with_files(truth: Pair, rules: Sequence[LevelRule], published: Mapping[str, Path]) -> Pair:
    """Published files paired with a truth that was read already, whose blocks are the domain."""
    read = {name: block_rows(path, rules[-1].form, truth.schema) for name, path in published.items()}
    for side in read.values():
        _inside(side, truth.spine.leaf.codes, rules)
    runs = [
        PublishedRun(name, SparseLevel(*_sparse(side, truth.spine, truth.schema)))
        for name, side in read.items()
    ]
    return pair_histograms(truth.schema, truth.spine, truth.confidential, runs)


def pair_on_spine(
    persons: Pair, schema: HistogramSchema, confidential: Path | ExactHistograms, published: Sequence[Path]
) -> Pair:
    """Another histogram of the blocks and runs of a pair, such as occupied and vacant housing units."""
    if len(published) != len(persons.runs):
        raise UsageError(
            f"{len(published)} files of units for {len(persons.runs)} published runs; give one for each"
        )
    spine = persons.spine
    if isinstance(confidential, Path):
        confidential = ExactHistograms(*_sparse(_block_rows(confidential, spine, schema), spine, schema))
    sides = [_block_rows(path, spine, schema) for path in published]
    runs = [
        PublishedRun(run.run_id, SparseLevel(*_sparse(side, spine, schema)), setting=run.setting)
        for run, side in zip(persons.runs, sides, strict=True)
    ]
    return pair_histograms(schema, spine, confidential, runs)


def _block_rows(path: Path, spine: Spine, schema: HistogramSchema) -> BlockCells:
    """Rows of a file, of blocks of a spine only."""
    read = block_rows(path, spine.leaf.form, schema)
    foreign = len(np.setdiff1d(read.codes, spine.leaf.codes, assume_unique=True))
    if foreign:
        raise DataError(
            f"{read.name}, geocode: {foreign} blocks are not among those of the persons; allowed: blocks of the list of areas"
        )
    return read


def _inside(rows: BlockCells, blocks: NDArray[np.int64], rules: Sequence[LevelRule]) -> None:
    """Refuse areas that the list of blocks does not have; name the widest level at which they differ."""
    form = rules[-1].form
    foreign = np.setdiff1d(rows.codes, blocks, assume_unique=True)
    if not len(foreign):
        return
    for rule in rules:
        there, prefixes = (form.prefixes(codes, rule.digits) for codes in (blocks, foreign))
        missing = np.setdiff1d(prefixes, there) if rule.digits else foreign[:0]
        if len(missing):
            raise DataError(
                f"{rows.name}, geocode: {len(foreign)} {rules[-1].name} geounits are not in the list of areas, the first at level "
                f"{rule.name} ({len(missing)} of that level are unknown); allowed: areas of the list; fix: compare files of the "
                "same areas"
            )


def _sparse(
    rows: BlockCells, spine: Spine, schema: HistogramSchema
) -> tuple[NDArray[np.str_], NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Rows in the order of the spine; cells of count zero are left out."""
    cells = schema.schema.cells
    key = (np.searchsorted(spine.leaf.codes, rows.codes) * cells)[rows.row] + rows.cell
    count = rows.count
    if bool((np.diff(key) <= 0).any()):
        order = np.argsort(key, kind="stable")
        key, count = key[order], count[order]
        repeated = int((np.diff(key) == 0).sum())
        if repeated:
            raise DataError(
                f"{rows.name}: {repeated} rows repeat a geocode and cell; allowed: one row for each"
            )
    key, count = key[count > 0], count[count > 0]
    pointer = np.searchsorted(key, np.arange(spine.leaf.nodes + 1, dtype=np.int64) * cells).astype(np.int64)
    return spine.leaf.geounits, pointer, (key % cells).astype(np.int32), count.astype(np.int32)


def summed_out(pair: Pair, attribute: str) -> Pair:
    """The same records counted without an attribute."""
    full = pair.schema.schema
    remaining = [one for one in full.attributes if one.name != attribute]
    schema = HistogramSchema(
        Schema(full.name, tuple(remaining)),
        pair.schema.record,
        {name: one for name, one in pair.schema.recodes.items() if one.attribute != attribute},
        tuple(one for one in pair.schema.zeros if attribute not in one.when),
        None,
    )
    cell_of = np.zeros(full.cells, np.int64)
    for attribute_left in remaining:
        cell_of = cell_of * attribute_left.levels + full.levels_of(attribute_left.name)
    cells = schema.schema.cells
    runs = [
        replace(run, histograms=SparseLevel(*_added(run.histograms, cell_of, cells))) for run in pair.runs
    ]
    exact = ExactHistograms(*_added(pair.confidential, cell_of, cells))
    return replace(pair_histograms(schema, pair.spine, exact, runs), facts=pair.facts)


def _added(
    histograms: ExactHistograms | SparseLevel, cell_of: NDArray[np.int64], cells: int
) -> tuple[NDArray[np.str_], NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Counts of cells that become one, added up."""
    nodes = len(histograms.geounits)
    node = np.repeat(np.arange(nodes, dtype=np.int64), np.diff(histograms.node_ptr))
    keys, place = np.unique(node * cells + cell_of[histograms.cell], return_inverse=True)
    count = np.zeros(len(keys), np.int64)
    np.add.at(count, place, histograms.count)
    pointer = np.searchsorted(keys, np.arange(nodes + 1, dtype=np.int64) * cells).astype(np.int64)
    return histograms.geounits, pointer, (keys % cells).astype(np.int32), count.astype(np.int32)
