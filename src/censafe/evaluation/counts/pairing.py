"""CONFIDENTIAL. The truth and what was published from it, over one spine, whatever form the file or folder of either side has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError, UsageError
from censafe.geography.geocodes import GeocodeForm
from censafe.geography.spines.tree import LevelRule, Spine, build_spine
from censafe.model import ExactHistograms, ProtectedUnit, Schema, SparseLevel
from censafe.model.schema import CellQuery
from censafe.model.topdown.histograms import HistogramSchema
from censafe.model.topdown.pl94 import TABLE_ITEMS
from censafe.population.blocks.imputation import RULE, imputed_cells
from censafe.products.topdown.census_tables.microdata_source import census_forms
from censafe.products.topdown.configuration.outputs import microdata_layouts
from censafe.results.districts import is_district_microdata, read_district_microdata
from censafe.results.histogram_files import (
    BlockCells,
    is_unit_table,
    read_block_cells,
    read_geocodes,
    read_unit_table,
)
from censafe.results.microdata import MicrodataRows, shows_cells
from censafe.results.source import PublishedSource, nearest_form, recognize
from censafe.results.summary import AreaTables

_LARGEST: Final = 2**31 - 1
_OCCUPANCY: Final = 2
_TABLES: Final = {ProtectedUnit.PERSON: ("P1", "P2", "P3", "P4", "P5"), ProtectedUnit.HOUSEHOLD: ("H1",)}
_SHAPES: Final = {ProtectedUnit.PERSON: (8, 2, 2, 63), ProtectedUnit.HOUSEHOLD: (2,)}
_NEAR: Final = 0.25  # of the columns of microdata that a file may lack to be taken for damaged microdata


def published_form(path: Path) -> PublishedSource | None:
    """Microdata or tables of areas at a path; None where it holds something else, such as histograms."""
    if not path.exists():
        return None
    source = recognize(path, census_forms())
    if source is None and path.is_file() and not is_district_microdata(path):
        layouts = [one for one in microdata_layouts().values() if shows_cells(one)]
        near = nearest_form(path, layouts)
        if near is not None and near.share < _NEAR:
            raise DataError(f"{near.words}; fix: give all columns of the microdata")
    return None if source is None or source.is_run else source


def shows_schema(source: PublishedSource, schema: HistogramSchema) -> bool:
    """Whether microdata or tables show the cells of a schema."""
    if source.tables is None:
        return _microdata_rows(source, schema) is not None
    same_shape = schema.schema.shape == _SHAPES[schema.record]
    return same_shape and not _missing(source.tables, _TABLES[schema.record])


def imputation_notes(path: Path, schema: HistogramSchema) -> tuple[str, ...]:
    """What of the persons of a path is made up by a rule, because no table has it."""
    source = published_form(path) if schema.record is ProtectedUnit.PERSON else None
    return () if source is None or source.tables is None else (RULE,)


def block_rows(path: Path, form: GeocodeForm, schema: HistogramSchema) -> BlockCells:
    """Checked rows of microdata, tables of areas, files of histograms or, for occupied and vacant units, tables of units."""
    source = published_form(path)
    if source is not None:
        rows = (
            _of_microdata(source, schema)
            if source.tables is None
            else _of_tables(source, source.tables, schema)
        )
    elif is_district_microdata(path):
        rows = read_district_microdata(path, schema)
    elif not is_unit_table(path):
        rows = read_block_cells(path, form, schema.schema)
    elif schema.schema.cells == _OCCUPANCY:
        return read_unit_table(path, form)
    else:
        raise DataError(
            f"{path.name}: a table of units tells occupied and vacant ones only; allowed for the schema {schema.name}: a file of "
            "histograms"
        )
    if rows.schema not in ("", schema.name):
        raise DataError(
            f"{rows.name}: histograms of the schema {rows.schema}; allowed: {schema.name}, as of the truth"
        )
    wrong = int((rows.cell >= schema.schema.cells).sum())
    if wrong:
        raise DataError(
            f"{rows.name}, cell: {wrong} rows are outside the schema {schema.name}; allowed: 0 to {schema.schema.cells - 1}"
        )
    if bool((rows.count > _LARGEST).any()):
        raise DataError(f"{rows.name}, count: values do not fit 32 bits; allowed: at most {_LARGEST:,}")
    return rows


def _microdata_rows(source: PublishedSource, schema: HistogramSchema) -> MicrodataRows | None:
    """The rows that show the cells of a schema."""
    for rows in source.rows.values():
        schemas = (
            rows.layout.schema,
            *(() if rows.layout.companion is None else (rows.layout.companion.schema,)),
        )
        if any(one.schema.shape == schema.schema.shape for one in schemas):
            return rows
    return None


def _of_microdata(source: PublishedSource, schema: HistogramSchema) -> BlockCells:
    """Persons or units by block and cell."""
    rows = _microdata_rows(source, schema)
    if rows is None:
        raise DataError(
            f"{source.path.name}: {source.words}, which cannot be counted in the schema {schema.name}; allowed: persons and units of the redistricting data and of the "
            "DHC; fix: compare the files of histograms"
        )
    geounits = rows.geounits
    if rows.layout.companion is None:
        level = rows.histograms(geounits)
    else:
        level = rows.joined_histograms(geounits)[rows.layout.schema.schema.shape != schema.schema.shape]
    counted = np.flatnonzero(np.diff(level.node_ptr))
    row = np.repeat(np.arange(len(counted)), np.diff(level.node_ptr)[counted])
    codes = level.geounits[counted].astype(np.int64)
    return BlockCells(
        source.path.name, "", codes, row, level.cell.astype(np.int64), level.count.astype(np.int64)
    )


def _missing(tables: AreaTables, names: tuple[str, ...]) -> list[str]:
    """What tables of the redistricting data lack, in words."""
    if tables.product != "pl94":
        return ["tables of the redistricting data"]
    return [one for name in names for one in tables.missing(name)]


def _of_tables(source: PublishedSource, tables: AreaTables, schema: HistogramSchema) -> BlockCells:
    """Persons or housing units of blocks from tables of the redistricting data, whoever wrote them.

    The joint of kind of quarters with age, origin and race is in no table; it is made up by the rule of the P.L. 94-171 reader.
    """
    path, needed = source.path, _TABLES[schema.record]
    if schema.schema.shape != _SHAPES[schema.record]:
        raise DataError(
            f"{path.name}: redistricting tables hold hhgq x votingage x hispanic x cenrace (8 x 2 x 2 x 63) and occupancy, which is "
            f"not the schema {schema.name}; fix: give a file of histograms"
        )
    missing = [*_missing(tables, needed), *(["numbers of blocks"] if "block" not in tables.levels else [])]
    if missing:
        some = f"{', '.join(missing[:5])}{', ...' if len(missing) > 5 else ''}"
        raise DataError(
            f"{path.name}: {source.words}, lacks {some}; allowed: every cell of {', '.join(needed)} of every block"
        )
    areas = tables.areas("block")
    order = np.argsort(areas.codes, kind="stable")
    values = {name: tables.values(name, areas, needed)[order] for name in needed}
    for name, own in values.items():
        empty, wrong = np.isnan(own).any(axis=1), ((own < 0) | (own != np.rint(own))).any(axis=1)
        if empty.any() or wrong.any():
            words = "empty cells" if empty.any() else "values that are not whole numbers from 0"
            number = int((empty if empty.any() else wrong).sum())
            raise DataError(
                f"{path.name}: {number:,} blocks have {words} in {name}; allowed: items 1 to {TABLE_ITEMS[name]} of every block"
            )
    codes = areas.codes[order].astype(np.int64)
    tables_of_block = {name: own.astype(np.int32) for name, own in values.items()}
    if schema.record is ProtectedUnit.HOUSEHOLD:
        counts = tables_of_block["H1"][:, [2, 1]].reshape(-1).astype(np.int64)
        blocks = np.arange(len(codes))
        return BlockCells(path.name, "", codes, np.repeat(blocks, 2), np.tile([0, 1], len(codes)), counts)
    keys, counts, failed = imputed_cells(tables_of_block)
    negative = int((counts < 0).sum())
    if failed or negative:
        raise DataError(
            f"{path.name}: tables of {failed or negative} blocks do not fit each other; allowed: P4 within P2 and P3, both within P1, "
            "and group quarters of P5 that fit P1 and P3; fix: copy the file again"
        )
    return BlockCells(path.name, "", codes, *np.divmod(keys, schema.schema.cells), counts)


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
