"""Public noisy measurement files as a run needs them: the tree and what is known exactly, and the measurements when asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError, UsageError
from censafe.estimation.topdown.levels.facts import (
    DeclaredTotals,
    PublicFacts,
    standard_depth,
    standard_geounits,
)
from censafe.estimation.topdown.levels.limits import level_limits
from censafe.geography.geocodes import ALPHABETS, pack_characters
from censafe.geography.spines.paths import RunSpine
from censafe.geography.spines.tree import LevelRule, Spine, SpineLevel, Subtree, build_spine, subtrees
from censafe.model import NoiseLaw, QueryPlan
from censafe.model.topdown.histograms import (
    FacilityCounts,
    HistogramSchema,
    LinearConstraint,
    MeasuredHistogram,
    PublishedAnswers,
    constraints_on,
)
from censafe.model.topdown.level_measurements import LevelBudgets, LevelMeasurements
from censafe.privacy.noise.variance import exact_variance
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.layout import level_rules
from censafe.products.topdown.folder import GEOGRAPHY, STATE, group_totals
from censafe.products.topdown.intake.equations import BlockRows, has_exact_sums
from censafe.products.topdown.measuring import full_shape
from censafe.products.topdown.plan import LevelWorkload, exact_levels, histogram_part, workloads
from censafe.publication.measurements.geography import ExactTotal, read_geography
from censafe.publication.stamps import DEMONSTRATION, STAMP, Stamp, stamp_of
from censafe.results.measurements.chosen import AnswerIndex, index_answers
from censafe.results.measurements.files import LevelFiles, level_files
from censafe.results.measurements.level import read_answers
from censafe.results.measurements.listing import ListedLevel, list_level, texts
from censafe.results.measurements.rows import locate_rows

_BLOCK_DIGITS: Final = 16

_ALL_LEVELS: Final = "get the files of all levels of one product"
_ONE_PRODUCT: Final = "name files and configuration of one product"
_NAMED: Final = 5
_TOTAL: Final = "total"
_Codes = NDArray[np.uint8]


def files_of_levels(config: TopdownConfig, folder: Path, state: str | None = None) -> dict[str, LevelFiles]:
    """The files of every histogram and level, by name of the part."""
    files = {}
    chosen = None if state is None else [f"State={half}{state}" for half in ("", "0", "1")]
    for histogram in config.histograms:
        own = product_folder(config, folder, histogram)
        _require_levels(config, own, histogram)
        for level in config.run_levels:
            files[histogram_part(histogram, level)] = level_files(
                own / f"{level.name}.parquet", level.name, chosen
            )
    return files


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


def spine_of_files(
    geounits: Sequence[_Codes],
    rules: Sequence[LevelRule],
    folder: Path,
    published: Sequence[LevelRule] | None = None,
) -> RunSpine:
    """The tree of a run from the codes of its levels, beside the standard one.

    Codes are nested: a parent's code begins those of its children. How long they are is taken from the files. The last
    digits of a block's code are its census code, under which everything is published.

    Args:
        geounits: letters of the sorted codes of every level, root first, each of shape (n, width).

    Example:
        >>> codes = [np.array([list(code.encode()) for code in level], np.uint8)
        ...          for level in (["044", "144"], ["04400" + "4410", "14400" + "4411"])]
        >>> run = spine_of_files(codes, (LevelRule("State", 2), LevelRule("Block", 4)), Path("files"))
        >>> run.spine.leaf.parent.tolist(), run.standard.leaf.geounits.tolist()
        ([0, 1], ['4410', '4411'])
    """
    spine = _tree(geounits, rules, folder)
    codes, rule = geounits[-1], rules[-1]
    width = codes.shape[1]
    if width < rule.digits:
        raise DataError(
            f"level {rule.name}, {folder}: codes have {width} digits; allowed: {rule.digits} or more, the last of which are the "
            "census code; fix: name files and configuration of one product"
        )
    blocks = _numbers(codes, width - rule.digits, width, rule, folder)
    standard = build_spine(blocks, rules if published is None else published)
    order = np.searchsorted(standard.leaf.codes, blocks).astype(np.int64)
    same = spine.names == standard.names and all(
        np.array_equal(one.geounits, other.geounits)
        for one, other in zip(spine.levels, standard.levels, strict=True)
    )
    if same:
        return RunSpine("standard", standard, standard, None, {})
    moved = None if np.array_equal(order, np.arange(len(order))) else order
    return RunSpine("files", spine, standard, moved, {})


def spine_above_blocks(geounits: Sequence[_Codes], rules: Sequence[LevelRule], folder: Path) -> RunSpine:
    """The tree of files whose lowest level is none of blocks, beside that of its states.

    Codes with a flag before the state part states by American Indian areas; the standard tree has whole states, and below them the
    geounits of the lowest level.

    Args:
        geounits: letters of the sorted codes of every level, root first, each of shape (n, width).

    Example:
        >>> codes = [np.array([list(code.encode()) for code in level], np.uint8)
        ...          for level in (["044", "144"], ["04410001", "14400010"])]
        >>> run = spine_above_blocks(codes, (LevelRule("State", 2), LevelRule("County", 5)), Path("files"))
        >>> run.spine.leaf.geounits.tolist(), [level.geounits.tolist() for level in run.standard.levels]
        (['04410001', '14400010'], [[''], ['44'], ['44010001', '44100010']])
    """
    spine = _tree(geounits, rules, folder)
    names = [rule.name for rule in rules]
    depth = names.index(STATE) if STATE in names else None
    if depth is None or geounits[depth].shape[1] != rules[depth].digits + 1:
        return RunSpine("files", spine, spine, None, {})
    rule, leaf = rules[depth], geounits[-1]
    digits = rule.digits + 1
    moved = np.concatenate([leaf[:, 1:digits], leaf[:, :1], leaf[:, digits:]], axis=1)
    numbers = _numbers(moved, 0, moved.shape[1], rules[-1], folder)
    parts = LevelRule(f"parts of level {rules[-1].name}", moved.shape[1], alphabet=rule.alphabet)
    above = rules[:depth] or [LevelRule("all states", 0, alphabet=rule.alphabet)]
    standard = build_spine(numbers, [*above, rule, parts])
    order = np.searchsorted(standard.leaf.codes, numbers).astype(np.int64)
    return RunSpine("files", spine, standard, order, {})


def _tree(geounits: Sequence[_Codes], rules: Sequence[LevelRule], folder: Path) -> Spine:
    """The levels of the files, as their codes are nested."""
    levels: list[SpineLevel] = []
    parents = [np.full(len(geounits[0]), -1, np.int32)]
    parents += [
        _parents(above, codes, rule, rules[depth].digits, folder)
        for depth, (above, codes, rule) in enumerate(zip(geounits[:-1], geounits[1:], rules[1:], strict=True))
    ]
    for depth, (codes, rule) in enumerate(zip(geounits, rules, strict=True)):
        edges = np.zeros(len(codes) + 1, np.int64)
        if depth + 1 < len(geounits):
            edges = np.searchsorted(parents[depth + 1], np.arange(len(codes) + 1)).astype(np.int64)
            childless = codes[np.diff(edges) == 0]
            what = f"no geounit lies in those of level {rule.name}"
            _refuse(rules[depth + 1].name, folder, childless, what)
        levels.append(_level(codes, rule, parents[depth], edges, folder))
    return Spine(tuple(levels))


def _parents(
    above: _Codes, codes: _Codes, rule: LevelRule, digits_above: int, folder: Path
) -> NDArray[np.int32]:
    if digits_above == 0:
        return np.zeros(len(codes), np.int32)
    width, parent = above.shape[1], np.full(len(codes), -1, np.int64)
    if width <= codes.shape[1]:
        locate_rows(np.ascontiguousarray(above), np.ascontiguousarray(codes[:, :width]), parent)
    _refuse(rule.name, folder, codes[parent < 0], "codes begin with that of no geounit of the level above")
    return parent.astype(np.int32)


def _level(
    codes: _Codes,
    rule: LevelRule,
    parent: NDArray[np.int32],
    edges: NDArray[np.int64],
    folder: Path,
) -> SpineLevel:
    if rule.digits == 0:
        return SpineLevel(rule.name, 0, str(texts(codes[:1])[0]), np.zeros(1, np.int64), parent, edges)
    width = codes.shape[1]
    most = rule.form.longest
    before = 0 if width <= most else width - min(_BLOCK_DIGITS, most)
    numbers = _numbers(codes, before, width, rule, folder)
    prefix = _numbers(codes, 0, before, rule, folder) if before else None
    return SpineLevel(rule.name, width - before, "", numbers, parent, edges, prefix, before, rule.alphabet)


def _numbers(codes: _Codes, first: int, last: int, rule: LevelRule, folder: Path) -> NDArray[np.int64]:
    numbers = pack_characters(codes[:, first:last], rule.alphabet)
    what = "codes have other characters than the configuration says"
    _refuse(rule.name, folder, codes[numbers < 0], what)
    return numbers


def _refuse(level: str, folder: Path, wrong: _Codes, what: str, fix: str = _ALL_LEVELS) -> None:
    if len(wrong):
        raise DataError(
            f"level {level}, {folder}: {what} ({len(wrong)} geounits), such as {', '.join(texts(wrong[:_NAMED]).tolist())}; fix: {fix}"
        )


_KINDS: Final = 8


def list_stated(load: LevelWorkload, files: LevelFiles, config: TopdownConfig) -> ListedLevel:
    """The geounits of a level and those exact figures that an estimate uses.

    Of a histogram that is held to other results these are totals and, of the blocks, its facilities and published sums.
    """
    if not has_exact_sums(load.histogram):
        return list_level(files)
    if load.level.name != config.run_levels[-1].name:
        return list_level(files, (_TOTAL,))
    counted = (one.name for one in load.histogram.constraints if isinstance(one.right, FacilityCounts))
    published = (one.name for one in load.histogram.constraints if isinstance(one.right, PublishedAnswers))
    return list_level(files, (_TOTAL, *counted), tuple(published))


def bounded_facilities(schema: HistogramSchema, blocks: ListedLevel) -> NDArray[np.int64]:
    """Counts of units from the bounds of the persons in them; a block has no total beside them."""
    rule = schema.facilities
    if rule is None:
        raise ValueError("the schema has no facilities")
    names = [f"{rule.attribute}_total_{side}" for side in ("lb", "ub")]
    for name in names:
        if name not in blocks.constraints or blocks.constraints[name].values.shape[1] != len(rule.minimum):
            raise DataError(
                f"level {blocks.name}, {blocks.folder}: there is no constraint {name}_con with {len(rule.minimum)} figures, which says "
                "where group quarters are; fix: get the files again"
            )
    lower, upper = (blocks.constraints[name].values.astype(np.int64) for name in names)
    counts: NDArray[np.int64] = upper // np.asarray(rule.largest, np.int64)
    wrong = (
        (counts * np.asarray(rule.largest) != upper)
        | (counts * np.asarray(rule.minimum) != lower)
        | (counts < 0)
    )
    _refuse(
        blocks.name,
        blocks.folder,
        blocks.codes[wrong.any(axis=1)],
        "bounds that are not multiples of those of one unit",
        _ONE_PRODUCT,
    )
    return counts


def stated_facilities(config: TopdownConfig, listed: Mapping[str, ListedLevel]) -> NDArray[np.int64] | None:
    """Counts of facilities by kind in every block, from the bounds that the files state of the records in them."""
    known: dict[int, NDArray[np.int64]] = {}
    kinds = 0
    for histogram in config.histograms:
        blocks = listed[histogram_part(histogram, config.run_levels[-1])]
        for one in histogram.constraints:
            if not isinstance(one.right, FacilityCounts):
                continue
            kinds = max(kinds, len(one.right.each))
            if one.name not in blocks.constraints:
                continue
            for kind, counts in _facility_counts(one, one.right.each, blocks).items():
                before = known.setdefault(kind, counts)
                wrong = before != counts
                _refuse(
                    blocks.name,
                    blocks.folder,
                    blocks.codes[wrong],
                    f"{one.name}: other counts of facilities than another constraint",
                    _ONE_PRODUCT,
                )
    if not kinds or len(known) < kinds:
        return None
    return np.stack([known[kind] for kind in range(kinds)], axis=1)


def _facility_counts(
    one: LinearConstraint, each: tuple[int, ...], blocks: ListedLevel
) -> dict[int, NDArray[np.int64]]:
    """Facilities of every kind that counts for something."""
    values = blocks.constraints[one.name].values.astype(np.int64)
    if values.shape[1] != len(each):
        raise DataError(
            f"level {blocks.name}, {blocks.folder}: {one.name} has {values.shape[1]} figures; allowed: {len(each)}, one for each kind; fix: "
            "name files and configuration of one product"
        )
    facilities = {}
    for kind, one_unit in enumerate(each):
        if one_unit:
            counts = values[:, kind] // one_unit
            wrong = (counts * one_unit != values[:, kind]) | (counts < 0)
            _refuse(
                blocks.name,
                blocks.folder,
                blocks.codes[wrong],
                f"{one.name}: figures that are not multiples of those of one facility",
                _ONE_PRODUCT,
            )
            facilities[kind] = counts
    return facilities


def require_facilities(config: TopdownConfig, counts: NDArray[np.int64] | None, folder: Path) -> None:
    """Refuse files that do not tell which facilities every block has, where constraints need them."""
    needed = [
        f"{one.name}_con of {histogram.name}"
        for histogram in config.histograms
        for one in histogram.constraints
        if isinstance(one.right, FacilityCounts)
    ]
    if needed and counts is None:
        raise DataError(
            f"{folder}: the files do not tell how many housing units and group quarters of every kind each {config.run_levels[-1].name} has; "
            f"allowed: the constraints {', '.join(needed)}, or geography.parquet of a run; fix: get the files again with their constraints"
        )


def stated_right_sides(
    config: TopdownConfig, listed: Mapping[str, ListedLevel]
) -> dict[tuple[str, str], BlockRows]:
    """Sums of published results that the files state of their blocks, by histogram and constraint."""
    sides = {}
    for histogram in config.histograms:
        blocks = listed[histogram_part(histogram, config.run_levels[-1])]
        for one in histogram.constraints:
            stated = blocks.sparse.get(one.name)
            if stated is None:
                continue
            groups = int(histogram.schema.grouped(one.groups).label.max()) + 1
            if stated.figures != groups:
                raise DataError(
                    f"level {blocks.name}, {blocks.folder}: {one.name} has {stated.figures} figures; allowed: {groups}, one for each group of "
                    f"{one.groups.query}; fix: name files and configuration of one product"
                )
            wrong = np.zeros(blocks.nodes, np.bool_)
            wrong[stated.node[stated.value < 0]] = True
            _refuse(
                blocks.name, blocks.folder, blocks.codes[wrong], f"{one.name}: negative counts", _ONE_PRODUCT
            )
            sides[histogram.name, one.name] = BlockRows(stated.node, stated.place, stated.value)
    return sides


def require_right_sides(
    config: TopdownConfig, stated: Mapping[tuple[str, str], BlockRows], results: Mapping[str, Path]
) -> None:
    """Refuse an estimate whose published sums are neither in the files nor in a result that was named."""
    missing: dict[str, list[str]] = {}
    for histogram in config.histograms:
        for one in histogram.constraints:
            if isinstance(one.right, PublishedAnswers) and (histogram.name, one.name) not in stated:
                missing.setdefault(one.right.result, []).append(f"{one.name}_con of {histogram.name}")
    for name, sums in missing.items():
        if name not in results:
            raise UsageError(
                f"the measurement files do not state {', '.join(sums)}, to which the estimate is held; fix: name the published result {name} by "
                "`results`: its run folder, or a folder with its microdata"
            )


def facilities_of_files(
    config: TopdownConfig,
    folder: Path,
    run: RunSpine,
    listed: Mapping[str, ListedLevel],
    state: str | None,
    *,
    blocks: bool,
) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Counts of units by kind in every block: from the file of blocks, or from the bounds."""
    counts = _counts(config, run, listed)
    path = folder / Path(GEOGRAPHY).name
    if blocks and path.is_file():
        known, codes = read_geography(path), run.standard.leaf.codes
        own = slice(None) if state is None else np.isin(known.codes, codes)
        units = known.units[own]
        same = np.array_equal(known.codes[own], codes)
        if not same or (counts is not None and not np.array_equal(units[:, : counts.shape[1]], counts)):
            raise DataError(f"{path}: other blocks or other counts of units than the measurement files have")
        return units, ()
    # there is no file of blocks; what is missing in the counts is said
    rules = [rule for one in config.histograms if (rule := one.schema.facilities) is not None]
    require_facilities(config, counts, folder)
    if counts is not None and not rules:
        return counts.astype(np.int32), ()
    if counts is None:
        words = "no measured histogram has bounds by kind of unit: the records of group quarters are not in the output"
        alone = np.zeros((run.standard.leaf.nodes, _KINDS), np.int32)
        lowest = listed[histogram_part(config.histograms[0], config.run_levels[-1])].constraints
        if "total" in lowest:
            place = np.arange(len(alone)) if run.order is None else run.order
            alone[place, 0] = lowest["total"].values[:, 0]
        return alone, (words,)
    kinds = rules[0].other_kinds
    others = np.zeros((len(counts), len(kinds)), np.int64)
    missing = f"units of {', '.join(kinds)} are not in the measurement files, and taken as none"
    return np.hstack([counts, others]).astype(np.int32), (missing,) if kinds else ()


def _counts(
    config: TopdownConfig, run: RunSpine, listed: Mapping[str, ListedLevel]
) -> NDArray[np.int64] | None:
    """Counts by kind that bounds of the records tell, in the standard order; None where they do not."""
    bounded = next((one for one in config.histograms if one.schema.facilities is not None), None)
    if bounded is None:
        counts = stated_facilities(config, listed)
    else:
        counts = bounded_facilities(bounded.schema, listed[histogram_part(bounded, config.run_levels[-1])])
    if counts is not None and run.order is not None:
        back = np.empty_like(run.order)
        back[run.order] = np.arange(len(back))
        counts = counts[back]
    return counts


def totals_of_files(
    config: TopdownConfig,
    histogram: MeasuredHistogram,
    run: RunSpine,
    listed: Mapping[str, ListedLevel],
    table: Sequence[ExactTotal],
) -> DeclaredTotals:
    """Exact totals of the levels that declare them: from the constraints, or from the table."""
    known = DeclaredTotals({}, {})
    for depth, level in enumerate(config.run_levels):
        if level.name not in exact_levels(histogram):
            continue
        files = listed[histogram_part(histogram, level)]
        for one in histogram.known_at(level.name):
            if one.name not in files.constraints:
                raise DataError(
                    f"level {level.name}, {files.folder}: the files hold no {one.name}_con, the exact answers of {histogram.name} that the configuration declares; "
                    "fix: get the files of the run with these invariants"
                )
            known.answers[one.name, level.name] = files.constraints[one.name].values.astype(np.int64)
        if "total" in files.constraints:
            known.single[level.name] = files.constraints["total"].values[:, 0].astype(np.int64)
            continue
        if not table:
            if has_exact_sums(histogram):  # what it is held to has them
                continue
            raise DataError(
                f"level {level.name}, {files.folder}: the files hold no exact totals (total_con) of {histogram.name}, which the "
                "configuration declares; fix: give a table with the columns geocode, name and value by `totals`"
            )
        if run.standard.levels[standard_depth(run, depth)].digits == 0:
            own = [one for one in table if one.histogram in ("", histogram.name) and one.level in ("", STATE)]
            known.single[level.name] = np.array([sum(one.value for one in own)], np.int64)
            continue
        groups = group_totals(run, depth, histogram, table)
        if len(groups.of) == len(groups.totals):
            known.single[level.name] = groups.totals[standard_geounits(run, depth)]
        else:
            known.groups[level.name] = groups
    return known


def stated_totals(
    histogram: MeasuredHistogram, run: RunSpine, right_sides: Mapping[tuple[str, str], BlockRows]
) -> tuple[ExactTotal, ...]:
    """Totals of the states that follow from published counts of all records: the sums over their blocks, which are exact there."""
    if STATE not in run.standard.names or STATE not in exact_levels(histogram):
        return ()
    for one in histogram.constraints:
        rows = right_sides.get((histogram.name, one.name))
        every = one.relation == "=" and isinstance(one.right, PublishedAnswers)
        if rows is None or not every or not (histogram.schema.grouped(one.groups).label >= 0).all():
            continue
        depth = run.standard.names.index(STATE)
        state = run.in_order(run.standard.ancestors(depth))
        sums = np.zeros(run.standard.levels[depth].nodes, np.int64)
        np.add.at(sums, state[rows.block], rows.records)
        codes = run.standard.levels[depth].geounits
        return tuple(
            ExactTotal(code, value, histogram.name, STATE)
            for code, value in zip(codes.tolist(), sums.tolist(), strict=True)
        )
    return ()


_INNER: Final = 16  # digits of a level that no geocode holds
_CLOSE: Final = 1e-9
_FEW: Final = 64
_STEPS: Final = 20


@dataclass(frozen=True, eq=False)
class FilesRun:
    """What a folder of public noisy measurement files gives; its measurements are read when they are asked for.

    Args:
        stamp: the stamp that a file has, that of a test key first; None where none has one.
        parts: parts of the tree whose measurements below the states have files of their own, such as half-states; none where
            all have to be read together.
        places: of every part of the plan, folders of its files, and which of them every geounit is in.
        right_sides: right sides of constraints that the files state, by histogram and constraint.
        totals: exact totals of states, from a table or as the sums of what the files state.
    """

    facts: PublicFacts
    stamp: Stamp | None
    remarks: tuple[str, ...]
    parts: tuple[Subtree, ...]
    files: Mapping[str, LevelFiles] = field(repr=False)
    places: Mapping[str, tuple[tuple[str, ...], NDArray[np.int32]]] = field(repr=False)
    right_sides: Mapping[tuple[str, str], BlockRows] = field(default_factory=dict, repr=False)
    totals: tuple[ExactTotal, ...] = ()

    @property
    def stamped(self) -> bool:
        """Whether a file says that its noise came from a test key."""
        return self.stamp == STAMP

    def read(self, load: LevelWorkload, part: Subtree | None = None) -> LevelMeasurements:
        """The measurements of a level, or of a part of the tree."""
        spine, name = self.facts.run.spine, load.part.name
        depth = spine.names.index(load.level.name)
        nodes = slice(0, spine.levels[depth].nodes) if part is None else part.nodes(depth)
        places, place = self.places[name]
        folders = [places[one] for one in np.unique(place[nodes]).tolist()]
        level = spine.levels[depth]
        geounits = level.names(np.arange(nodes.start, nodes.stop))
        shapes = tuple(full_shape(load.histogram.schema.schema, query) for query in load.queries)
        queries = [query.name for query in load.queries]
        answers = read_answers(self.files[name], folders, _letters(geounits), queries, shapes)
        self._require_measured(depth, nodes, self.files[name], answers.variances)
        budgets, rows = file_budgets(load, answers.variances)
        return LevelMeasurements(
            name,
            geounits,
            load.part.queries,
            shapes,
            budgets,
            tuple(tuple(row) for row in rows.tolist()),
            answers.values,
            "seeded" if self.stamped else "system",
        )

    def index(self, load: LevelWorkload) -> AnswerIndex:
        """Where the measurements of a level are, and how exact, without their answers."""
        spine, files = self.facts.run.spine, self.files[load.part.name]
        depth = spine.names.index(load.level.name)
        codes = _letters(spine.levels[depth].geounits)
        shapes = [full_shape(load.histogram.schema.schema, query) for query in load.queries]
        queries = [query.name for query in load.queries]
        index = index_answers(files, self.places[load.part.name][0], codes, queries, shapes)
        self._require_measured(depth, slice(0, len(codes)), files, index.variances)
        return index

    def _require_measured(
        self, depth: int, nodes: slice, files: LevelFiles, variances: NDArray[np.float64]
    ) -> None:
        """Only an only child may go without measurements: it is its parent."""
        spine = self.facts.run.spine
        level = spine.levels[depth]
        missing = ~np.isfinite(variances).any(axis=1)
        if depth:
            missing &= ~spine.levels[depth - 1].single_child[level.parent[nodes]]
        if missing.any():
            names = level.names(nodes.start + np.flatnonzero(missing)[:_NAMED])
            raise DataError(
                f"level {files.name}, {files.folder / 'DPQuery'}: geounits without a row that are not the only child of their parent "
                f"({int(missing.sum())} geounits), such as {', '.join(names.tolist())}; fix: get the files of the level again"
            )


def _letters(geounits: NDArray[np.str_]) -> NDArray[np.uint8]:
    width = geounits.dtype.itemsize // 4 if geounits[0] else 0
    return (
        np.ascontiguousarray(geounits).view(np.uint32).reshape(len(geounits), -1)[:, :width].astype(np.uint8)
    )


def open_files(
    config: TopdownConfig,
    folder: Path,
    table: Sequence[ExactTotal],
    state: str | None = None,
    *,
    blocks: bool = True,
) -> FilesRun:
    """Find and check all files that a configuration estimates from, and read what they say besides measurements."""
    files = files_of_levels(config, folder, state)
    listed = {load.part.name: list_stated(load, files[load.part.name], config) for load in workloads(config)}
    first = [listed[histogram_part(config.histograms[0], level)] for level in config.run_levels]
    for histogram in config.histograms[1:]:
        for one, level in zip(first, config.run_levels, strict=True):
            other = listed[histogram_part(histogram, level)]
            if not np.array_equal(one.codes, other.codes):
                only = np.setxor1d(texts(one.codes), texts(other.codes))
                raise DataError(
                    f"level {one.name}: {len(only)} geounits stand in only one of {one.folder} and {other.folder}, such as "
                    f"{', '.join(only[:_NAMED].tolist())}; fix: name files of one run, or estimate one product at a time (--set measure=...)"
                )
    codes = [level.codes for level in first]
    # the levels of the files, also those that no geocode holds
    rules = [
        LevelRule(
            level.name,
            _INNER if level.prefix is None else level.prefix,
            level.code,
            ALPHABETS[config.geocodes],
        )
        for level in config.run_levels
    ]
    if blocks:
        run = spine_of_files(codes, rules, folder, level_rules(config))
    else:
        run = spine_above_blocks(codes, rules, folder)
    facilities, remarks = facilities_of_files(config, folder, run, listed, state, blocks=blocks)
    right_sides = stated_right_sides(config, listed)
    known = tuple(table) or sum((stated_totals(one, run, right_sides) for one in config.histograms), ())
    units = run.in_order(facilities).astype(np.int64)
    limits, declared = {}, {}
    for histogram in config.histograms:
        own = [one for one in known if one.histogram in ("", histogram.name)]
        totals = totals_of_files(config, histogram, run, listed, own)
        if has_exact_sums(histogram):  # its exact sums are limits of every cell
            declared[histogram.name] = totals
        else:
            limits[histogram.name] = level_limits(
                run.spine,
                histogram.schema,
                constraints_on(histogram),
                units,
                totals.single,
                totals.groups,
                totals.answers,
            )
    stamps = {level.stamp for level in files.values()}
    return FilesRun(
        PublicFacts(run, facilities, limits, {}, (), None, declared),
        stamp_of(test_key=STAMP in stamps, published_data=DEMONSTRATION in stamps),
        remarks,
        () if declared else _parts(run, listed, config),
        files,
        {name: (level.places, level.place) for name, level in listed.items()},
        right_sides,
        known,
    )


def _parts(run: RunSpine, listed: Mapping[str, ListedLevel], config: TopdownConfig) -> tuple[Subtree, ...]:
    """Parts below the geounits of the level that has folders of its own, none smaller than a folder."""
    names = run.spine.names
    depth = names.index(STATE) if STATE in names else 0
    together: list[NDArray[np.integer]] = []
    for histogram in config.histograms:
        ancestor = np.arange(run.spine.levels[depth].nodes)
        for level, above in zip(config.run_levels[depth + 1 :], run.spine.levels[depth + 1 :], strict=True):
            ancestor = ancestor[above.parent]
            own = listed[histogram_part(histogram, level)]
            together += [ancestor[own.place == place] for place in range(len(own.places))]
    if depth == len(names) - 1:
        return ()
    parts = subtrees(run.spine, depth, together)
    return parts if len(parts) > 1 else ()


def file_budgets(
    load: LevelWorkload, variances: NDArray[np.float64]
) -> tuple[LevelBudgets, NDArray[np.float64]]:
    """Laws and costs of a level that follow from its variances, and the variances of every kind of geounits.

    Args:
        variances: of every geounit and query, infinite where nothing was measured, shape (n, queries).
    """
    rows, kinds = variance_kinds(variances)
    laws, costs = [], []
    for row in rows.tolist():
        pairs = [_law(plan, variance) for plan, variance in zip(load.part.queries, row, strict=True)]
        laws.append(tuple(law for law, _ in pairs))
        costs.append(tuple(cost for _, cost in pairs))
    return LevelBudgets(kinds, tuple(laws), tuple(costs)), rows


def variance_kinds(variances: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """The distinct rows of variances, sorted, and which of them every row is; they are few, so that comparing beats sorting.

    Args:
        variances: shape (geounits, queries).
    """
    kinds = np.full(len(variances), -1, np.int32)
    rows: list[NDArray[np.float64]] = []
    while len(rows) < _FEW and (kinds < 0).any():
        rows.append(variances[int(np.argmax(kinds < 0))])
        kinds[(variances == rows[-1]).all(axis=1)] = len(rows) - 1
    if (kinds < 0).any():
        distinct, place = np.unique(variances, axis=0, return_inverse=True)
        return distinct, place.reshape(-1).astype(np.int32)
    order = np.lexsort(np.array(rows).T[::-1])
    number = np.empty(len(rows), np.int32)
    number[order] = np.arange(len(rows), dtype=np.int32)
    return np.array(rows)[order], number[kinds]


def _law(plan: QueryPlan, variance: float) -> tuple[NoiseLaw | None, Fraction]:
    """The law with a variance and its cost, as planned where the plan has that variance.

    A cost is inverse to the variance for the discrete Gaussian, and to its root for the geometric law, nearly.
    """
    if np.isinf(variance):
        return None, Fraction(0)
    planned = exact_variance(plan.law)
    if abs(planned - variance) <= _CLOSE * planned:
        return plan.law, plan.cost
    if plan.law.kind == "gaussian":
        law = NoiseLaw(plan.law.kind, _gaussian_parameter(variance))
        return law, plan.cost * plan.law.parameter / law.parameter
    root = Fraction(float(Fraction(variance) / Fraction(planned)) ** 0.5)
    return NoiseLaw(plan.law.kind, plan.law.parameter * root), plan.cost / root


def _gaussian_parameter(variance: float) -> Fraction:
    """The parameter of the discrete Gaussian law with a variance, which is a little smaller than the parameter.

    Example:
        >>> law = NoiseLaw("gaussian", _gaussian_parameter(0.5))
        >>> abs(exact_variance(law) - 0.5) < 1e-12, law.parameter > Fraction(1, 2)
        (True, True)
    """
    parameter = variance
    for _ in range(_STEPS):
        law = NoiseLaw("gaussian", Fraction(parameter))
        parameter += variance - exact_variance(law)
    return Fraction(parameter)
