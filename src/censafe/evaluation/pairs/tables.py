"""CONFIDENTIAL. What the measures of a pair are about (areas, their classes, and what is counted), and original and protected counts side by side."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from censafe.errors import DataError, UsageError
from censafe.evaluation.areas import (
    ComparedAreas,
    Strata,
    level_areas,
    population_bins,
    size_classes,
    size_edges,
)
from censafe.evaluation.confidential import Confidentiality
from censafe.evaluation.counts.accuracy import race_groups
from censafe.evaluation.counts.cell_sets import CellSets, Characteristic, Definitions
from censafe.evaluation.counts.cells import MatchedCells, cells_of_counts, match_labels, true_answers
from censafe.evaluation.counts.frames import LossMode, stacked
from censafe.evaluation.counts.pairing import Pair
from censafe.evaluation.outputs import side_by_side
from censafe.evaluation.pairs.inputs import OpenedPair
from censafe.evaluation.summary.tables import SummaryBook
from censafe.evaluation.topdown.evaluation import answer_labels
from censafe.evaluation.topdown.runs import characteristics
from censafe.geography.files import number_faults, texts_of
from censafe.geography.identifiers import BLOCK_COLUMNS, AreaNames, block_column, geoid_of, plain_codes
from censafe.model import CellQuery
from censafe.model.safe_text import file_name
from censafe.products.topdown.census_tables.microdata_source import census_forms
from censafe.products.topdown.configuration.shipped import shipped_schemas
from censafe.products.topdown.labels import answer_words
from censafe.results.source import recognize
from censafe.results.summary import SummaryFiles
from censafe.results.table_files import table_rows

SUITES: Final = ("accuracy", "epl", "bias", "reliability", "impossible", "variability", "summary")


@dataclass(frozen=True)
class PairChoices:
    """What is measured of a pair, and how; see :class:`censafe.api.evaluations.CompareKeywords` for the fields of its names.

    Args:
        side_by_side: all levels and lists of at most 10,000 areas where empty.
        defined: characteristics and queries in addition to those of the schema, and what sets of cells mean.
    """

    suites: Collection[str] = SUITES
    mode: LossMode = "corrected"
    groups: str | None = None
    bins: int = 0
    side_by_side: Sequence[str] = ()
    residuals: bool = False
    alpha: float = 0.05
    beta: float = 0.05
    published_data: bool = False
    defined: Definitions = field(default_factory=Definitions)
    book: SummaryBook | None = None

    @property
    def confidentiality(self) -> Confidentiality:
        """Who may see the result."""
        return Confidentiality.of(published_data=self.published_data)


@dataclass(frozen=True, eq=False)
class PairSubject:
    """Something that is counted at every area.

    Args:
        label: answer of every cell, below 0 for none, shape (cells,).
    """

    name: str
    words: str
    pair: Pair
    label: NDArray[np.int32] = field(repr=False)
    labels: tuple[str, ...]
    meanings: tuple[str, ...]
    answers: int
    apart: bool = False

    def cells(self, areas: ComparedAreas, run: int = 0) -> MatchedCells:
        """True counts and those of one run."""
        return match_labels(self.pair, areas, self.name, self.label, self.answers, run)

    def runs(self, areas: ComparedAreas) -> tuple[MatchedCells, ...]:
        """The same for every run."""
        return tuple(self.cells(areas, run) for run in range(len(self.pair.runs)))


@dataclass(frozen=True, eq=False)
class Scope:
    """CONFIDENTIAL. Areas, classes and subjects of an evaluation."""

    opened: OpenedPair
    lists: tuple[ComparedAreas, ...]
    subjects: tuple[PairSubject, ...]
    unmeasured: tuple[tuple[Characteristic, str], ...]
    groups: CellQuery | None
    choices: PairChoices

    @property
    def pair(self) -> Pair:
        """The main pair."""
        return self.opened.persons

    @property
    def lowest(self) -> str:
        """Name of the lowest level."""
        return self.pair.spine.names[-1]

    @cached_property
    def strata(self) -> tuple[Strata, ...]:
        """Classes of the areas of every list, by true population."""
        strata = []
        for areas in self.lists:
            counts, bins = true_answers(self.pair, areas), self.choices.bins
            strata.append(
                population_bins(counts, bins)
                if bins
                else size_classes(counts, size_edges(areas, self.lowest))
            )
        return tuple(strata)

    def classes(self, areas: ComparedAreas) -> Strata | None:
        """Classes of one list; None where it has one area only, or one class holds all areas."""
        strata = self.strata[self.lists.index(areas)]
        return strata if areas.number > 1 and len(np.unique(strata.of_area)) > 1 else None


def scope_of(opened: OpenedPair, choices: PairChoices) -> Scope:
    """What is measured on a pair."""
    if choices.bins < 0:
        raise UsageError("the width of population bins must be 1 person or more")
    pair, defined = opened.persons, choices.defined
    lists = (*(level_areas(pair.spine, name) for name in pair.spine.names), *opened.lists)
    subjects = [_query(pair, one.query, one.words) for one in characteristics(pair.schema)]
    known = {one.name for one in subjects}
    subjects += [_query(pair, text, text, apart=True) for text in defined.queries if text not in known]
    unmeasured = []
    for characteristic in defined.characteristics:
        subject = _characteristic(opened.pairs, characteristic, defined.sets)
        if subject is not None:
            subjects.append(subject)
            continue
        near = next((pair for pair in opened.pairs if pair.schema.record is characteristic.record), pair)
        unmeasured.append((characteristic, characteristic.why_unmeasured(near.schema, defined.sets)))
    names = [one.name for one in subjects]
    twice = sorted({one for one in names if names.count(one) > 1})
    if twice:
        raise UsageError(f"two characteristics have one name: {', '.join(twice)}; give each its own")
    groups = None
    try:
        groups = race_groups(pair.schema, choices.groups)
    except UsageError:
        if choices.groups is not None or tuple(choices.suites) == ("reliability",):
            raise
    return Scope(opened, lists, tuple(subjects), tuple(unmeasured), groups, choices)


def _query(pair: Pair, text: str, words: str, *, apart: bool = False) -> PairSubject:
    query = pair.query(text)
    labels, meanings = tuple(answer_labels(query)), tuple(answer_words(pair.schema, query))
    apart = apart or query.answers == 1
    return PairSubject(query.name, words, pair, query.label, labels, meanings, query.answers, apart)


def _characteristic(
    pairs: Sequence[Pair], characteristic: Characteristic, sets: CellSets
) -> PairSubject | None:
    """A characteristic of the first pair that can count it."""
    for pair in pairs:
        cells = (
            sets.cells(pair.schema, characteristic.sets)
            if pair.schema.record is characteristic.record
            else None
        )
        if cells is not None:
            label = np.where(cells, 0, -1).astype(np.int32)
            return PairSubject(
                characteristic.name,
                characteristic.label,
                pair,
                label,
                (characteristic.name,),
                (characteristic.label,),
                1,
                apart=True,
            )
    return None


MOST_AREAS: Final = 10_000
NONE: Final = "none"
_DIGITS: Final = {"State": 2, "County": 5, "Tract": 11, "Block_Group": 12, "Block": 16}
_PARTS: Final = (
    ("STATEA", 0, 2),
    ("COUNTYA", 2, 5),
    ("TRACTA", 5, 11),
    ("BLKGRPA", 11, 12),
    ("BLOCKA", 12, 16),
)


def side_frames(scope: Scope) -> dict[str, pa.Table]:
    """``side_by_side_long``, and ``side_by_side/<areas>`` with one row an area and two columns an answer.

    Answers end in ``_sf`` as tabulated and in ``_dp`` as published by the first run. Subjects of more than 150 answers are in the
    long frame only. Areas of the census have a GEOID, a GISJOIN, a NAME
    where it is known, and the parts of their geocode.
    """
    kinds = scope.choices.side_by_side
    if tuple(kinds) == (NONE,):
        return {}
    known = {areas.level: areas for areas in scope.lists}
    missing = [one for one in kinds if one not in known]
    if missing:
        raise UsageError(f"there are no areas {', '.join(missing)}; allowed: {', '.join(known)}, or none")
    chosen = [known[one] for one in kinds] or [one for one in scope.lists if one.number <= MOST_AREAS]
    names = scope.opened.names
    longs, wides = [], {}
    for areas in chosen:
        wide = pa.table(_geocodes(areas, names))
        for subject in scope.subjects:
            long, side = side_by_side(subject.cells(areas), subject.labels, subject.meanings, names)
            longs.append(long)
            if side is not None:
                for name in (one for one in side.column_names if one not in wide.column_names):
                    wide = wide.append_column(name, side.column(name))
        wides[f"side_by_side/{file_name(areas.level)}"] = wide
    return {**({"side_by_side_long": stacked(longs)} if longs else {}), **wides}


def _geocodes(areas: ComparedAreas, names: AreaNames) -> dict[str, Any]:
    """GEOID, GISJOIN and parts of the geocode of areas of the census; the code alone of others."""
    codes = areas.names
    digits = _DIGITS.get(areas.level)
    if (
        not names.census
        or areas.area_class
        or not len(codes)
        or {len(code) for code in codes.tolist()} != {digits}
    ):
        columns = names.of_level(areas.level, codes)
        return {"geocode": codes.tolist(), **{name: texts.tolist() for name, texts in columns.items()}}
    parts = {
        name: [code[first:last] for code in codes.tolist()]
        for name, first, last in _PARTS
        if digits is not None and last <= digits
    }
    known = {name: texts.tolist() for name, texts in names.of_level(areas.level, codes).items()}
    return {**known, "geocode": codes.tolist(), **parts}


_COUNTS: Final = ("COUNT", "count", "value")
_NOT_KEYS: Final = ("NOISE_DISTRIBUTION", "VARIANCE", "classification")
_FILE: Final = "file"
_MOST: Final = 2**53  # up to which doubles are exact
_PERCENT: Final = 5  # of rows that may be on one side only
_LEAST: Final = 0.5  # share of values that both sides have of a column of numbers that is a key
_CODES: Final = (*BLOCK_COLUMNS, "gisjoin20", "gisjoin10", "fips", "geoid_tract", "region_id")
_ITEMS: Final = (
    "table",
    "item",
    "variable",
    "cell",
    "line",
    "level",
    "year",
    "region_type",
    "region_level",
    "iteration_code",
    _FILE,
)
_NAMES: Final = ("name", "namelsad", "name20", "namelsad20", "basename", "label")
_PLAIN: Final = "^[+-]?(0|[1-9][0-9]{0,9})(\\.[0-9]*)?$"
_FRACTION: Final = "\\.[0-9]*[1-9]"
_VINTAGE: Final = re.compile("(20|10)$")


def match_tables(
    truth: Path,
    published: Path,
    *,
    count: str | None = None,
    by: Sequence[str] = (),
    unmatched_as_zero: bool = False,
) -> tuple[dict[str, MatchedCells], dict[str, int], list[str]]:
    """CONFIDENTIAL. Two tables, such as a truth run and a release of any product, row by row.

    Rows are matched by the columns of codes, attributes and texts that both sides have, and by as many columns of whole numbers as make each row one of its
    own; other counts are not keys.

    Returns:
        Counts by level; numbers of rows on one side only, which count as 0 on the other, and of published rows without a count, which are
        withheld and left out on both; and notes.
    """
    paths = (truth, published)
    for path in paths if count is None else ():
        source = recognize(path, census_forms()) if path.exists() else None
        if source is not None and (source.rows or isinstance(source.tables, SummaryFiles)):
            raise UsageError(
                f"{path}: {source.words}, which have no rows that are matched by themselves; fix: compare them by block with `config`, such as pl94-us"
            )
    sides = [table_rows(path, file_column=_FILE if _FILE in by else None) for path in paths]
    for path, side in zip(paths, sides, strict=True):
        repeated = sorted({one for one in side.column_names if side.column_names.count(one) > 1})
        if repeated:
            raise DataError(f"{path.name}: columns repeated: {', '.join(repeated)}; allowed: each name once")
    name = _count_column(sides[0].column_names, truth, count)
    sides, notes = _named_alike(sides, name)
    if name not in sides[1].column_names:
        raise DataError(f"{published.name}: no column {name}; both tables must have the column of counts")
    sides = [
        _checked(path, side, name, withheld=place == 1)
        for place, (path, side) in enumerate(zip(paths, sides, strict=True))
    ]
    keys = _keys(paths, sides, name, by)
    hidden = sides[1].filter(pc.is_null(sides[1].column(name))).select(keys)
    if hidden.num_rows:
        sides = [side.join(hidden, keys=keys, join_type="left anti") for side in sides]
    joined = sides[0].select([*keys, name]).rename_columns([*keys, "_true"])
    joined = joined.join(
        sides[1].select([*keys, name]).rename_columns([*keys, "_public"]), keys=keys, join_type="full outer"
    ).sort_by([(key, "ascending") for key in keys])
    facts = {
        "only_true": joined.column("_public").null_count,
        "only_published": joined.column("_true").null_count,
    } | ({"withheld": hidden.num_rows} if hidden.num_rows else {})
    others = [
        column
        for column in sides[0].column_names
        if column in sides[1].column_names and column not in (*keys, name)
    ]
    others = [one for one in others if one.lower() not in _NAMES]
    notes.append(
        f"rows are matched by {', '.join(keys)}" + (f"; {', '.join(others)} are not keys" if others else "")
    )
    notes += _unmatched(paths, joined, keys, facts, unmatched_as_zero=unmatched_as_zero)
    true, public = (
        pc.fill_null(joined.column(column), 0).to_numpy().astype(np.int64) for column in ("_true", "_public")
    )
    areas = np.arange(joined.num_rows).astype(np.str_)
    names = np.full(joined.num_rows, "all")
    if by:
        parts = zip(*(joined.column(name).to_pylist() for name in by), strict=True)
        names = np.array([" ".join(map(str, row)) for row in parts], np.str_)
    cells = {}
    for level in dict.fromkeys(names.tolist()):
        rows = names == level
        cells[level] = cells_of_counts(
            true[rows], public[rows], areas=areas[rows], level=level, query="count"
        )
    return cells, facts, notes


def _named_alike(sides: Sequence[pa.Table], count: str) -> tuple[list[pa.Table], list[str]]:
    """Both sides with the names that columns have in the truth, where case, or the name for codes of areas, differs."""
    truth, other = sides
    known = {name.casefold(): name for name in truth.column_names}
    names = [
        name if name in truth.column_names else known.get(name.casefold(), name)
        for name in other.column_names
    ]
    names = names if len(set(names)) == len(names) else other.column_names
    codes = [block_column(own, _CODES) for own in (truth.column_names, names)]
    notes = []
    own, other_codes = codes
    if (
        own
        and other_codes
        and own != other_codes
        and own not in names
        and other_codes not in truth.column_names
        and count not in codes
    ):
        place = names.index(other_codes)
        names = [own if name == other_codes else name for name in names]
        notes = [f"{own} of the truth is {other_codes} as published"]
        vintages = [_VINTAGE.search(one) for one in (own, other_codes)]
        if all(vintages) and vintages[0] and vintages[1] and vintages[0][1] != vintages[1][1]:
            notes = [f"{notes[0]}, codes of 20{vintages[0][1]} and of 20{vintages[1][1]}"]
        truth = _with_codes(truth, truth.column_names.index(own))
        other = _with_codes(other, place)
    return [truth, other.rename_columns(names)], notes


def _with_codes(table: pa.Table, place: int) -> pa.Table:
    """A table with a column of codes of areas in the form of GEOIDs."""
    column = plain_codes(texts_of(table.column(place))).combine_chunks().dictionary_encode()
    known = pa.array([geoid_of(code) for code in column.dictionary.to_pylist()], pa.string())
    return table.set_column(place, table.column_names[place], known.take(column.indices))


def _checked(path: Path, table: pa.Table, count: str, *, withheld: bool) -> pa.Table:
    """Keys as text, so that a CSV file and a Parquet file can be compared, missing ones as empty text; counts as whole numbers."""
    if not table.num_rows:
        raise DataError(f"{path.name}: the table has no rows")
    columns = {}
    for name in table.column_names:
        if name == count:
            columns[name] = _integers(path, table.column(name), count, withheld=withheld)
        elif name not in _NOT_KEYS:
            texts = texts_of(table.column(name))
            columns[name] = plain_codes(texts) if name.lower() in _CODES else pc.utf8_trim_whitespace(texts)
    return pa.table(columns)


def _integers(path: Path, column: pa.ChunkedArray, count: str, *, withheld: bool) -> pa.ChunkedArray:
    """Counts; None where they were withheld."""
    texts = pc.utf8_trim_whitespace(column.cast(pa.string()))
    texts = pc.if_else(pc.equal(texts, ""), None, texts)
    faults = number_faults(texts)
    if faults:
        raise DataError(
            f"{path.name}: column {count} holds values that are not whole numbers: {'; '.join(faults)}; fix: plain whole numbers, or an empty field "
            "as published where a count was withheld"
        )
    numbers = texts.cast(pa.float64())
    if numbers.null_count == len(numbers):
        raise DataError(f"{path.name}: every row of column {count} is withheld; nothing can be compared")
    if pc.max(pc.abs_checked(numbers)).as_py() > _MOST:
        raise DataError(f"{path.name}: column {count} holds values above {_MOST:,}")
    fractions = pc.sum(pc.not_equal(pc.round(numbers), numbers)).as_py()
    if fractions or (numbers.null_count and not withheld):
        words = f"{fractions:,} fractions" if fractions else f"{numbers.null_count:,} empty fields"
        raise DataError(f"{path.name}: column {count} holds values that are not whole numbers: {words}")
    return numbers.cast(pa.int64())


def _count_column(names: Sequence[str], path: Path, count: str | None) -> str:
    columns = [name for name in ((count,) if count else _COUNTS) if name in names]
    if not columns:
        raise DataError(
            f"{path.name}: no column {count or ' or '.join(_COUNTS)}; the columns are {', '.join(names)}; fix: name the "
            "column of counts with `count`"
        )
    return columns[0]


def _keys(paths: Sequence[Path], sides: Sequence[pa.Table], count: str, by: Sequence[str]) -> list[str]:
    """The columns by which rows are matched: codes, attributes and texts of both sides, and then the fewest others that make every row one of its own."""
    shared = [
        name
        for name in sides[0].column_names
        if name in sides[1].column_names and name not in (count, *_NOT_KEYS)
    ]
    unknown = [name for name in by if name not in shared]
    if unknown:
        raise DataError(
            f"`by` {', '.join(unknown)}: no such column of both tables; allowed: {', '.join(shared)}"
        )
    kinds = {name: _kind(name, [side.column(name) for side in sides]) for name in shared}
    coded = any(name.lower() in _CODES for name in shared)
    keys = [
        name
        for name in shared
        if name in by or (kinds[name] == "key" and not (coded and name.lower() in _NAMES))
    ]
    others = [name for name in shared if kinds[name] == "number" and name not in keys]
    while others and any(_repeated(side, keys) for side in sides):
        shares = {one: _share_of_both(sides, [*keys, one]) for one in others}
        best = max(others, key=shares.__getitem__)
        if keys and shares[best][0] < _LEAST:
            break
        others.remove(best)
        keys.append(best)
    if not coded:  # a column of areas may have any name
        keys += [name for name in others if _share_of_both(sides, [*keys, name])[0] == 1]
    if not keys:
        raise DataError(
            f"{paths[0].name}, {paths[1].name}: no column is a key on both sides; the columns are {', '.join(sides[0].column_names)} and "
            f"{', '.join(sides[1].column_names)}; fix: a column of codes of one name, such as GEOID"
        )
    for path, side in zip(paths, sides, strict=True):
        repeated = _repeated(side, keys)
        if repeated:
            raise DataError(
                f"{path.name}: {repeated:,} rows repeat the key of another row ({', '.join(keys)}); allowed: each key once"
            )
    return [name for name in shared if name in keys]


def _kind(name: str, columns: Sequence[pa.ChunkedArray]) -> str:
    """Whether a column is a key, a number that may be one, or a measure."""
    if name.lower() in (*_CODES, *_ITEMS, *_attributes()):
        return "key"
    texts = [column.filter(pc.not_equal(column, "")) for column in columns]
    if not all(pc.all(pc.match_substring_regex(column, _PLAIN)).as_py() is not False for column in texts):
        return "key"
    fractions = any(pc.any(pc.match_substring_regex(column, _FRACTION)).as_py() for column in texts)
    return "measure" if fractions else "number"


@cache
def _attributes() -> frozenset[str]:
    """Names of attributes of all schemas that ship."""
    return frozenset(name.lower() for schema in shipped_schemas().values() for name in schema.schema.names)


def _repeated(table: pa.Table, keys: Sequence[str]) -> int:
    return int(table.num_rows - (table.group_by(list(keys)).aggregate([]).num_rows if keys else 0))


def _share_of_both(sides: Sequence[pa.Table], keys: Sequence[str]) -> tuple[float, int]:
    """Share of the keys that both sides have, and how many there are."""
    once = [side.group_by(list(keys)).aggregate([]) for side in sides]
    both = once[0].join(once[1], keys=list(keys), join_type="inner").num_rows
    most = max(one.num_rows for one in once)
    return both / most, most


def _unmatched(
    paths: Sequence[Path],
    joined: pa.Table,
    keys: Sequence[str],
    facts: Mapping[str, int],
    *,
    unmatched_as_zero: bool,
) -> list[str]:
    """What is to be said of rows on one side only."""
    number = facts["only_true"] + facts["only_published"]
    if not number:
        return []
    alone = [
        joined.filter(pc.is_null(joined.column(name))).select(list(keys)) for name in ("_public", "_true")
    ]
    forms = [
        f"{same:,} of them would match {words}"
        for words, form in _FORMS.items()
        if (same := _alike(alone, form))
    ]
    words = f"{number:,} of {joined.num_rows:,} rows are on one side only ({facts['only_true']:,} in {paths[0].name}, {facts['only_published']:,} in {paths[1].name})"
    words = "; ".join([words, *forms])
    if 100 * number > _PERCENT * joined.num_rows and not unmatched_as_zero:
        raise DataError(
            f"{words}; matched by {', '.join(keys)}; allowed: {_PERCENT}% of the rows; fix: tables of the same rows with the same codes, or count such rows as 0 with "
            "`unmatched_as_zero`"
        )
    return [f"{words} and count as 0 on the other"]


def _without_zeros(text: str) -> str:
    return text.lstrip("0") if text.isascii() and text.isdigit() else text


def _without_accents(text: str) -> str:
    letters = unicodedata.normalize("NFKD", text)
    return "".join(one for one in letters.casefold() if one.isalnum())


_FORMS: Final[Mapping[str, Callable[[str], str]]] = {
    "if leading zeros did not count": _without_zeros,
    "if accents, capitals, blanks and points did not count": _without_accents,
}


def _alike(alone: Sequence[pa.Table], form: Callable[[str], str]) -> int:
    """How many rows of the one side have the key of a row of the other in a form of it."""
    first, second = (
        {tuple(map(form, row)) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)}
        for table in alone
    )
    return len(first & second)
