"""The geounits of a level of public noisy measurement files and what is known of them exactly: every rule checked."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.publication.measurements.levels import CONSTRAINT, CONSTRAINT_SUFFIX
from censafe.results.measurements.files import LevelFiles
from censafe.results.measurements.rows import Faults, Rows, letters, read_answer_rows

_NARROW: Final = np.iinfo(np.int32)
GET_FILES: Final = "get the files again"
_REMOVE: Final = "remove the repeated rows"
_OTHER_FIGURES: Final = "another number of figures"
_NO_ROW: Final = "geounits without a row"
COMPLETE: Final = (
    "get the files of the level again; every geounit stands in the constraints, once for each of them"
)


@dataclass(frozen=True, eq=False)
class PublicConstraint:
    """An exact figure of every geounit of a level.

    Args:
        values: int32, or int64 where that is too narrow, shape (geounits, figures).
    """

    sign: str
    values: NDArray[np.integer] = field(repr=False)


@dataclass(frozen=True, eq=False)
class SparseFigures:
    """Exact figures of which nearly all are 0: those that are not, by geounit.

    Args:
        node: position of the geounit, rising, shape (n,).
        place: position among its figures, shape (n,).
        value: the figure, shape (n,).
    """

    sign: str
    figures: int
    node: NDArray[np.int64] = field(repr=False)
    place: NDArray[np.int64] = field(repr=False)
    value: NDArray[np.int64] = field(repr=False)


@dataclass(frozen=True, eq=False)
class ListedLevel:
    """The geounits of a level.

    Args:
        codes: letters of all geounits, sorted, uint8, shape (n, width).
        place: which of them every geounit is in, shape (n,).
    """

    name: str
    folder: Path
    codes: NDArray[np.uint8] = field(repr=False)
    places: tuple[str, ...]
    place: NDArray[np.int32] = field(repr=False)
    constraints: Mapping[str, PublicConstraint] = field(repr=False)
    sparse: Mapping[str, SparseFigures] = field(default_factory=dict, repr=False)

    @property
    def nodes(self) -> int:
        """Number of geounits."""
        return len(self.codes)


def texts(codes: NDArray[np.uint8]) -> NDArray[np.str_]:
    """Codes as text, shape (n,), from their letters, shape (n, width).

    Example:
        >>> texts(np.array([[48, 52], [49, 52]], np.uint8)).tolist()
        ['04', '14']
    """
    width = codes.shape[1]
    if not width:
        return np.full(len(codes), "")
    return np.ascontiguousarray(codes.astype(np.uint32)).reshape(-1).view(f"U{width}")


def list_level(
    files: LevelFiles, names: Collection[str] | None = None, sparse: Collection[str] = ()
) -> ListedLevel:
    """Read what the constraints of a level say, one folder after another."""
    faults = Faults(files.name, files.folder / CONSTRAINT)
    listing = _Listing(faults, names, sparse)
    parts = [listing.folder(paths) for paths in files.constraints.values()]
    faults.raise_if_any()
    if not sum(len(part.codes) for part in parts):
        raise DataError(f"level {files.name}: the files in {faults.folder} have no rows; fix: get them again")
    codes = np.concatenate([part.codes for part in parts])
    place = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part.codes) for part in parts])
    order = None
    if not (codes[1:] > codes[:-1]).all():
        order = np.argsort(codes, kind="stable")
        codes, place = codes[order], place[order]
        listing.note("geounits in two folders", codes[1:][codes[1:] == codes[:-1]], _REMOVE)
    constraints = {
        name.removesuffix(CONSTRAINT_SUFFIX): listing.joined(name, parts, order)
        for name in sorted({name for part in parts for name in part.figures})
    }
    few = {
        name.removesuffix(CONSTRAINT_SUFFIX): listing.joined_sparse(name, parts, order)
        for name in sorted({name for part in parts for name in part.sparse})
    }
    faults.raise_if_any()
    letters_of = _letters(codes, listing.width)
    return ListedLevel(
        files.name, files.folder, letters_of, tuple(files.constraints), place, constraints, few
    )


@dataclass(frozen=True, eq=False)
class _Folder:
    """Codes of a folder as bytes, sorted, and sign and figures by name; sparse ones by the positions of these codes."""

    codes: NDArray[np.bytes_]
    figures: Mapping[str, tuple[str, NDArray[np.integer]]]
    sparse: Mapping[str, SparseFigures]


def _letters(codes: NDArray[np.bytes_], width: int) -> NDArray[np.uint8]:
    if not width:
        return np.zeros((len(codes), 0), np.uint8)
    return np.ascontiguousarray(codes).view(np.uint8).reshape(len(codes), width)


@dataclass
class _Wide:
    """Rows of a constraint with many figures: their codes, and of every figure that is not 0 the row, the place and the value."""

    sign: str
    figures: int
    codes: list[NDArray[np.bytes_]] = field(default_factory=list)
    entries: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] = field(
        default_factory=list
    )


class _Listing:
    """Reads folder after folder; all codes have the length of the first."""

    def __init__(self, faults: Faults, names: Collection[str] | None, sparse: Collection[str]) -> None:
        self._faults = faults
        self._names = names
        self._sparse = sparse
        self.width = -1

    def note(self, what: str, codes: NDArray[np.bytes_], fix: str) -> None:
        """Note geounits that break a rule."""
        self._faults.add(what, texts(_letters(codes, self.width)), fix)

    def folder(self, files: Sequence[Path]) -> _Folder:
        """Codes and figures of a folder."""
        dense: dict[str, tuple[str, list[NDArray[np.bytes_]], list[NDArray[Any]]]] = {}
        wide: dict[str, _Wide] = {}
        others: list[NDArray[np.bytes_]] = []
        for path in files:
            for rows in read_answer_rows(path):
                for name, sign, codes, values in self._taken(rows):
                    short = name.removesuffix(CONSTRAINT_SUFFIX)
                    if short in self._sparse:
                        self._add_wide(
                            wide.setdefault(name, _Wide(sign, values.shape[1])), name, codes, values
                        )
                    elif self._names is None or short in self._names:
                        known = dense.setdefault(name, (sign, [], []))
                        known[1].append(codes)
                        known[2].append(values)
                    else:
                        others.append(np.unique(codes))
        self._faults.raise_if_any()
        empty = np.zeros(0, f"S{max(1, self.width)}")
        listed = (
            code
            for some in (*(codes for _, codes, _ in dense.values()), *(one.codes for one in wide.values()))
            for code in some
        )
        geounits = np.unique(np.concatenate([empty, *others, *listed]))
        return _Folder(
            geounits,
            {
                name: (sign, self._placed(name, geounits, codes, values))
                for name, (sign, codes, values) in dense.items()
            },
            {name: self._placed_wide(name, geounits, one) for name, one in wide.items()},
        )

    def joined(
        self, name: str, parts: Sequence[_Folder], order: NDArray[np.int64] | None
    ) -> PublicConstraint:
        """The figures of all folders."""
        named = [part.figures[name] for part in parts if name in part.figures]
        width = max(values.shape[1] for _, values in named)
        for part in parts:
            if name not in part.figures:
                self.note(f"{name}: {_NO_ROW}", part.codes, COMPLETE)
            elif part.figures[name][1].shape[1] != width:
                self.note(f"{name}: {_OTHER_FIGURES}", part.codes, GET_FILES)
        self._faults.raise_if_any()
        figures = np.concatenate([values for _, values in named])
        return PublicConstraint(min(sign for sign, _ in named), figures if order is None else figures[order])

    def joined_sparse(
        self, name: str, parts: Sequence[_Folder], order: NDArray[np.int64] | None
    ) -> SparseFigures:
        """The same for those of which nearly all are 0."""
        starts = np.cumsum([0, *(len(part.codes) for part in parts)])
        named = [
            (start, part.sparse[name])
            for start, part in zip(starts, parts, strict=False)
            if name in part.sparse
        ]
        for part in parts:
            if name not in part.sparse:
                self.note(f"{name}: {_NO_ROW}", part.codes, COMPLETE)
        if len({figures.figures for _, figures in named}) > 1:
            self.note(f"{name}: {_OTHER_FIGURES}", np.concatenate([part.codes for part in parts]), GET_FILES)
        self._faults.raise_if_any()
        node = np.concatenate([start + figures.node for start, figures in named])
        if order is not None:
            rank = np.empty_like(order)
            rank[order] = np.arange(len(order))
            node = rank[node]
        place = np.concatenate([figures.place for _, figures in named])
        value = np.concatenate([figures.value for _, figures in named])
        rising = np.lexsort((place, node))
        first = named[0][1]
        return SparseFigures(first.sign, first.figures, node[rising], place[rising], value[rising])

    def _add_wide(self, known: _Wide, name: str, codes: NDArray[np.bytes_], values: NDArray[Any]) -> None:
        if values.shape[1] != known.figures:
            self.note(f"{name}: {_OTHER_FIGURES}", codes, GET_FILES)
            return
        row, place = np.nonzero(values)
        before = sum(map(len, known.codes))
        known.codes.append(codes)
        known.entries.append((before + row, place, values[row, place].astype(np.int64)))

    def _placed_wide(self, name: str, geounits: NDArray[np.bytes_], wide: _Wide) -> SparseFigures:
        """The same with the positions of the geounits of a folder."""
        nodes = np.searchsorted(geounits, np.concatenate(wide.codes))
        self._require_once(name, geounits, nodes)
        row, place, value = (np.concatenate(parts) for parts in zip(*wide.entries, strict=True))
        return SparseFigures(wide.sign, wide.figures, nodes[row].astype(np.int64), place, value)

    def _require_once(self, name: str, geounits: NDArray[np.bytes_], nodes: NDArray[np.int64]) -> None:
        """Note geounits that have several rows or none."""
        count = np.bincount(nodes, minlength=len(geounits))
        self.note(f"{name}: rows there twice", geounits[count > 1], _REMOVE)
        self.note(f"{name}: {_NO_ROW}", geounits[count == 0], COMPLETE)

    def _taken(self, rows: Rows) -> Iterator[tuple[str, str, NDArray[np.bytes_], NDArray[Any]]]:
        lengths = pc.binary_length(rows.geocodes).to_numpy(zero_copy_only=False).astype(np.int64)
        if self.width < 0 and len(lengths):
            self.width = int(np.bincount(lengths).argmax())
        odd = np.flatnonzero(lengths != self.width)
        self._faults.add("codes of different lengths", rows.codes(odd), GET_FILES)
        if len(odd):
            return
        codes = np.zeros(len(lengths), f"S{max(1, self.width)}")
        if self.width:
            codes = letters(rows.geocodes, self.width).reshape(-1).view(f"S{self.width}")
        for number in np.unique(rows.name).tolist():
            own = np.flatnonzero(rows.name == number)
            width = int(rows.starts[own[0] + 1] - rows.starts[own[0]])
            wrong = own[np.diff(rows.starts)[own] != width]
            self._faults.add(f"{rows.names[number]}: {_OTHER_FIGURES}", rows.codes(wrong), GET_FILES)
            if not len(wrong):
                sign = rows.signs[int(rows.sign[own[0]])]
                yield rows.names[number], sign, codes[own], rows.matrix(own, width)

    def _placed(
        self,
        name: str,
        geounits: NDArray[np.bytes_],
        codes: list[NDArray[np.bytes_]],
        values: list[NDArray[Any]],
    ) -> NDArray[np.integer]:
        """Figures of every geounit of a folder."""
        if len({one.shape[1] for one in values}) > 1:
            self.note(f"{name}: {_OTHER_FIGURES}", np.concatenate(codes), GET_FILES)
            self._faults.raise_if_any()
        nodes = np.searchsorted(geounits, np.concatenate(codes))
        self._require_once(name, geounits, nodes)
        together = np.concatenate(values)
        narrow = not together.size or (_NARROW.min <= together.min() and together.max() <= _NARROW.max)
        figures = np.zeros((len(geounits), together.shape[1]), np.int32 if narrow else np.int64)
        figures[nodes] = together
        return figures
