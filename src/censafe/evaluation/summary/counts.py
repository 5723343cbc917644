"""CONFIDENTIAL. True and published counts of many sets of records at every kind of areas that tables of summary metrics name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from censafe.evaluation.areas import ComparedAreas, level_areas
from censafe.evaluation.counts.cell_sets import CellSets, shipped_cell_sets
from censafe.evaluation.counts.cells import match_labels
from censafe.evaluation.counts.pairing import Pair
from censafe.evaluation.summary.tables import SummaryAreas, SummaryRequest
from censafe.model import ProtectedUnit
from censafe.model.topdown.histograms import HistogramSchema

_AT_ONCE: Final = 62  # sets of cells in one pass, one bit each of 64
_STATE: Final = "State"
TRUTH: Final = "truth"
"""What the side of the truth is called in the column ``run_id``."""
_NOWHERE: Final = re.compile("9{4,}")  # how block files write that a block lies in no area
_RECORDS: Final = {"person": ProtectedUnit.PERSON, "household": ProtectedUnit.HOUSEHOLD}


@dataclass(frozen=True, eq=False)
class Counted:
    """CONFIDENTIAL. Counts of one set of records at all areas of one kind.

    Args:
        true: int64, shape (areas,).
        published: shape (runs, areas); whole numbers, or weighted ones of a sample.
    """

    true: NDArray[np.int64] = field(repr=False)
    published: NDArray[Any] = field(repr=False)

    def __reduce__(self) -> NoReturn:
        raise TypeError("counts are confidential and cannot be pickled")


@dataclass(frozen=True, eq=False)
class SummarySources:
    """CONFIDENTIAL. What tables are filled from.

    Args:
        pairs: of persons, households or housing units over one spine, with the same runs.
        facilities: published numbers of units, shape (blocks, kinds), housing units first; None where they are not known.
    """

    pairs: tuple[Pair, ...]
    lists: tuple[ComparedAreas, ...] = ()
    facilities: NDArray[np.integer] | None = field(default=None, repr=False)
    sets: CellSets = field(default_factory=shipped_cell_sets)
    _masks: dict[tuple[int, str], NDArray[np.bool_] | None] = field(
        default_factory=dict, init=False, repr=False
    )

    @property
    def runs(self) -> tuple[str, ...]:
        """Names of the published runs."""
        return tuple(run.run_id for run in self.pairs[0].runs)

    @cached_property
    def states(self) -> NDArray[np.int64]:
        """Code of the state of every block, shape (blocks,)."""
        spine = self.pairs[0].spine
        digits = 2
        if _STATE in spine.names:
            digits = spine.levels[spine.names.index(_STATE)].digits or 2
        return spine.leaf.form.prefixes(spine.leaf.codes, min(spine.leaf.digits, digits))

    def areas(self, kind: SummaryAreas) -> ComparedAreas | str:
        """Areas of one kind, those that are left after its filters; or what is missing for them, such as ``needs areas of the level tract``."""
        spine = self.pairs[0].spine
        by_name = {areas.area_class.casefold(): areas for areas in self.lists}
        listed = next((by_name[name] for name in kind.lists if name in by_name), None)
        if kind.level and kind.level not in spine.names:
            return f"needs areas of the level {kind.level.replace('_', ' ').lower()}"
        if kind.lists and listed is None:
            return f"needs a list of areas {kind.lists[0]}"
        unfiltered = level_areas(spine, kind.level) if kind.level or listed is None else listed
        included = np.ones(unfiltered.number, np.bool_)
        if listed is not None and kind.within:
            chosen = np.array([_is_within(str(code), kind.within) for code in listed.names], np.bool_)
            included &= (
                chosen
                if listed is unfiltered
                else _of_blocks(unfiltered, np.append(chosen, False)[listed.of_block])
            )
        state = _first_of_blocks(unfiltered, self.states)
        if kind.only_in:
            included &= np.isin(state, kind.only_in)
        if kind.not_in:
            included &= ~np.isin(state, kind.not_in)
        if listed is unfiltered:
            included &= np.array([not _NOWHERE.fullmatch(str(code)) for code in unfiltered.names], np.bool_)
        if included.all():
            return unfiltered  # the same object, so that what it has sorted stays known
        place = np.append(np.where(included, np.cumsum(included) - 1, -1), -1).astype(np.int32)
        return ComparedAreas(
            unfiltered.level, unfiltered.area_class, unfiltered.names[included], place[unfiltered.of_block]
        )

    def of_state(self, areas: ComparedAreas) -> NDArray[np.int64]:
        """Code of the state of every area, that of its first block, shape (areas,)."""
        return _first_of_blocks(areas, self.states)

    def state_areas(self) -> ComparedAreas:
        """Every state as an area, by code; Puerto Rico with the others."""
        codes, place = np.unique(self.states, return_inverse=True)
        return ComparedAreas(_STATE, "", codes.astype(np.str_), place.astype(np.int32))

    def why_unmeasured(self, request: SummaryRequest) -> str:
        """Why no pair distinguishes these records; empty where one does."""
        return self._pair(request)[1]

    def count(
        self, areas: ComparedAreas, requests: Iterable[SummaryRequest]
    ) -> dict[SummaryRequest, Counted]:
        """Counts of every request at every area."""
        by_pair: dict[int, list[SummaryRequest]] = {}
        for request in dict.fromkeys(requests):
            place, reason = self._pair(request)
            if place is None:
                raise ValueError(f"{request.text}: {reason}")
            by_pair.setdefault(place, []).append(request)
        counts: dict[SummaryRequest, Counted] = {}
        for place, own in by_pair.items():
            for start in range(0, len(own), _AT_ONCE):
                counts |= self._counted(place, areas, own[start : start + _AT_ONCE])
        return counts

    def sides(
        self, counted: Mapping[SummaryRequest, Counted], requests: Iterable[SummaryRequest]
    ) -> dict[str, dict[SummaryRequest, NDArray[Any]]]:
        """Counts of some requests, first those of the truth, then those of every run by its name."""
        own = {request: counted[request] for request in requests}
        sides = {TRUTH: {request: counts.true for request, counts in own.items()}}
        for run, name in enumerate(self.runs):
            sides[name] = {request: counts.published[run] for request, counts in own.items()}
        return sides

    def without_quarters(self, areas: ComparedAreas) -> NDArray[np.bool_] | None:
        """Areas without a facility of group quarters, shape (areas,); None where facilities are not known."""
        if self.facilities is None:
            return None
        with_quarters = self.facilities[:, 1:].sum(axis=1) > 0
        return ~_of_blocks(areas, with_quarters)

    def _pair(self, request: SummaryRequest) -> tuple[int | None, str]:
        """Position of the first pair that distinguishes the records of a request, or why none does, such as ``needs AGE``."""
        missing: list[str] = []
        for place, pair in enumerate(self.pairs):
            if pair.schema.record is _RECORDS[request.record]:
                unmeasured = [term for term in request.terms if self._mask(place, term) is None]
                if not unmeasured:
                    return place, ""
                missing = unmeasured if not missing or len(unmeasured) < len(missing) else missing
        if not missing:
            return None, "needs records of persons" if request.record == "person" else "needs housing units"
        names = sorted({_attribute(self.sets, term, _RECORDS[request.record]) for term in missing})
        return None, f"needs {', '.join(names)}"

    def _mask(self, place: int, term: str) -> NDArray[np.bool_] | None:
        """Which of the cells with records lie in a set; None where the schema does not distinguish it."""
        if (place, term) not in self._masks:
            cells = self.sets.cells(self.pairs[place].schema, [term])
            self._masks[place, term] = None if cells is None else cells[self._used[place]]
        return self._masks[place, term]

    @cached_property
    def _used(self) -> tuple[NDArray[np.int64], ...]:
        """Of every pair, cells that hold anybody on some side: few of the million of a demographic file."""
        used = []
        for pair in self.pairs:
            filled = np.zeros(pair.schema.schema.cells, np.bool_)
            for cells in (pair.confidential.cell, *(run.histograms.cell for run in pair.runs)):
                filled[cells] = True
            used.append(np.flatnonzero(filled))
        return tuple(used)

    def _counted(
        self, place: int, areas: ComparedAreas, requests: Sequence[SummaryRequest]
    ) -> Iterator[tuple[SummaryRequest, Counted]]:
        pair, used = self.pairs[place], self._used[place]
        key = np.zeros(len(used), np.int64)
        for bit, request in enumerate(requests):
            masks = [mask for term in request.terms if (mask := self._mask(place, term)) is not None]
            inside = np.logical_and.reduce(masks) if masks else np.ones(len(used), np.bool_)
            key |= inside.astype(np.int64) << bit
        kinds, of_used = np.unique(key, return_inverse=True)
        nowhere = int((kinds == 0).any())
        label = np.full(pair.schema.schema.cells, -1, np.int32)
        label[used] = of_used - nowhere
        member = (kinds[nowhere:, None] >> np.arange(len(requests))) & 1
        sides: list[NDArray[Any]] = []
        true = np.zeros((areas.number, len(requests)), np.int64)
        for run in range(len(pair.runs)):
            cells = match_labels(pair, areas, "", label, len(member), run)
            shape = (areas.number, len(member))
            true = csr_array((cells.confidential, cells.answer, cells.ptr), shape=shape) @ member
            sides.append(csr_array((cells.published, cells.answer, cells.ptr), shape=shape) @ member)
        public = np.stack(sides)
        return ((one, Counted(true[:, at], public[:, :, at])) for at, one in enumerate(requests))


def kinds_of_units(schema: HistogramSchema, facilities: NDArray[np.integer]) -> NDArray[np.integer] | None:
    """Columns of the kinds of units among the published ones, housing units first; None for a census without group quarters.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> schema = load_config("e2e-1940").histograms[0].schema
        >>> kinds_of_units(schema, np.ones((3, 9), np.int32)).shape
        (3, 8)
    """
    kinds = facilities.shape[1] if schema.facilities is None else len(schema.facilities.minimum)
    return None if kinds < 2 else facilities[:, :kinds]


def _attribute(sets: CellSets, term: str, record: ProtectedUnit) -> str:
    """Name of the attribute that distinguishes a set, in capitals.

    Example:
        >>> _attribute(shipped_cell_sets(), "householder hispanic", ProtectedUnit.HOUSEHOLD)
        'HISP of householders'
    """
    names = [part.strip().removeprefix("not ") for part in term.split("|")]
    for name in (*names, *(f"not {name}" for name in names)):
        for described in sets.attributes:
            if described.record is record and described.levels_in(name) is not None:
                return described.names[0].upper() + (" of householders" if "householder" in name else "")
        if name in sets.aliases:
            return ", ".join(dict.fromkeys(_attribute(sets, part, record) for part in sets.aliases[name]))
    return term.upper()


def _is_within(code: str, ranges: Sequence[Sequence[str]]) -> bool:
    """Whether a code starts within one of the ranges.

    Example:
        >>> _is_within("0010R", [["0001", "4799"]]), _is_within("U", [["R"]])
        (True, False)
    """
    folded = code.upper()
    return any(ends[0] <= folded[: len(ends[0])] <= ends[-1] for ends in ranges)


def _first_of_blocks(areas: ComparedAreas, values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Value of the first block of every area; -1 where there is none."""
    order, starts = areas.blocks
    first = np.full(areas.number, -1, np.int64)
    filled = starts[1:] > starts[:-1]
    first[filled] = values[order[starts[:-1][filled]]]
    return first


def _of_blocks(areas: ComparedAreas, hit: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Areas of which some block is hit, shape (areas,)."""
    inside = areas.of_block >= 0
    return np.bincount(areas.of_block[inside & hit], minlength=areas.number) > 0
