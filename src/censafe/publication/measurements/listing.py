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
from censafe.publication.measurements.layout import CONSTRAINT, CONSTRAINT_SUFFIX, LevelFiles
from censafe.publication.measurements.rows import Faults, Rows, letters, read_answer_rows

_NARROW: Final = np.iinfo(np.int32)
_GET_FILES: Final = "get the files again"
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
    parts = [listing.folder(files.constraints[place]) for place in files.constraints]
    faults.raise_if_any()
    if not sum(len(part.codes) for part in parts):
        raise DataError(f"level {files.name}: the files in {faults.folder} have no rows; fix: get them again")
    codes = np.concatenate([part.codes for part in parts])
    place = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part.codes) for part in parts])
    order = None
    if not (codes[1:] > codes[:-1]).all():
        order = np.argsort(codes, kind="stable")
        codes, place = codes[order], place[order]
        twice = codes[1:][codes[1:] == codes[:-1]]
        faults.add(
            "geounits in two folders", texts(_letters(twice, listing.width)), "remove the repeated rows"
        )
    constraints = {}
    for name in sorted({name for part in parts for name in part.figures}):
        constraints[name.removesuffix(CONSTRAINT_SUFFIX)] = _joined(name, parts, order, listing, faults)
    few = {
        name.removesuffix(CONSTRAINT_SUFFIX): _joined_sparse(name, parts, order, listing, faults)
        for name in sorted({name for part in parts for name in part.sparse})
    }
    faults.raise_if_any()
    found = _letters(codes, listing.width)
    return ListedLevel(files.name, files.folder, found, tuple(files.constraints), place, constraints, few)


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


def _joined(
    name: str, parts: Sequence[_Folder], order: NDArray[np.int64] | None, listing: _Listing, faults: Faults
) -> PublicConstraint:
    signs = {part.figures[name][0] for part in parts if name in part.figures}
    widths = {part.figures[name][1].shape[1] for part in parts if name in part.figures}
    for part in parts:
        own = part.figures.get(name)
        if own is None and len(part.codes):
            faults.add(
                f"{name}: geounits without a row", texts(_letters(part.codes, listing.width)), COMPLETE
            )
        elif own is not None and own[1].shape[1] != max(widths):
            faults.add(
                f"{name}: another number of figures", texts(_letters(part.codes, listing.width)), _GET_FILES
            )
    faults.raise_if_any()
    values = np.concatenate([part.figures[name][1] for part in parts if name in part.figures])
    return PublicConstraint(min(signs), values if order is None else values[order])


def _joined_sparse(
    name: str, parts: Sequence[_Folder], order: NDArray[np.int64] | None, listing: _Listing, faults: Faults
) -> SparseFigures:
    starts = np.cumsum([0, *(len(part.codes) for part in parts)])
    found = [
        (start, part.sparse[name]) for start, part in zip(starts, parts, strict=False) if name in part.sparse
    ]
    for part in parts:
        if name not in part.sparse and len(part.codes):
            names = texts(_letters(part.codes, listing.width))
            faults.add(f"{name}: geounits without a row", names, COMPLETE)
    if len({one.figures for _, one in found}) > 1:
        names = texts(_letters(np.concatenate([part.codes for part in parts]), listing.width))
        faults.add(f"{name}: another number of figures", names, _GET_FILES)
    faults.raise_if_any()
    node = np.concatenate([start + one.node for start, one in found])
    if order is not None:
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        node = rank[node]
    place, value = (np.concatenate([getattr(one, what) for _, one in found]) for what in ("place", "value"))
    rising = np.lexsort((place, node))
    first = found[0][1]
    return SparseFigures(first.sign, first.figures, node[rising], place[rising], value[rising])


@dataclass
class _Wide:
    """Rows of a constraint with many figures: their codes, and of every figure that is not 0 the row, the place and the value."""

    sign: str
    figures: int
    codes: list[NDArray[np.bytes_]] = field(default_factory=list)
    entries: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] = field(
        default_factory=list
    )

    def add(self, codes: NDArray[np.bytes_], values: NDArray[Any]) -> None:
        """Take rows."""
        row, place = np.nonzero(values)
        before = sum(map(len, self.codes))
        self.codes.append(codes)
        self.entries.append((before + row, place, values[row, place].astype(np.int64)))


class _Listing:
    """Reads folder after folder; all codes have the length of the first."""

    def __init__(self, faults: Faults, names: Collection[str] | None, sparse: Collection[str]) -> None:
        self._faults = faults
        self._names = names
        self._sparse = sparse
        self.width = -1

    def folder(self, files: Sequence[Path]) -> _Folder:
        """Codes and figures of a folder."""
        found: dict[str, tuple[str, list[NDArray[np.bytes_]], list[NDArray[Any]]]] = {}
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
                        known = found.setdefault(name, (sign, [], []))
                        known[1].append(codes)
                        known[2].append(values)
                    else:
                        others.append(np.unique(codes))
        self._faults.raise_if_any()
        empty = np.zeros(0, f"S{max(1, self.width)}")
        dense = (one for _, some, _ in found.values() for one in some)
        sparse = (one for some in wide.values() for one in some.codes)
        geounits = np.unique(np.concatenate([empty, *others, *dense, *sparse]))
        return _Folder(
            geounits,
            {
                name: (sign, self._placed(name, geounits, np.concatenate(codes), values))
                for name, (sign, codes, values) in found.items()
            },
            {name: self._placed_wide(name, geounits, one) for name, one in wide.items()},
        )

    def _add_wide(self, known: _Wide, name: str, codes: NDArray[np.bytes_], values: NDArray[Any]) -> None:
        if values.shape[1] == known.figures:
            known.add(codes, values)
        else:
            self._faults.add(
                f"{name}: another number of figures", texts(_letters(codes, self.width)), _GET_FILES
            )

    def _placed_wide(self, name: str, geounits: NDArray[np.bytes_], one: _Wide) -> SparseFigures:
        """The same with the positions of the geounits of a folder."""
        nodes = np.searchsorted(geounits, np.concatenate(one.codes))
        self._require_once(name, geounits, nodes)
        row, place, value = (np.concatenate(parts) for parts in zip(*one.entries, strict=True))
        return SparseFigures(one.sign, one.figures, nodes[row].astype(np.int64), place, value)

    def _require_once(self, name: str, geounits: NDArray[np.bytes_], nodes: NDArray[np.int64]) -> None:
        """Note geounits that have several rows or none."""
        count = np.bincount(nodes, minlength=len(geounits))
        for what, wrong, fix in (
            ("rows there twice", count > 1, "remove the repeated rows"),
            ("geounits without a row", count == 0, COMPLETE),
        ):
            self._faults.add(f"{name}: {what}", texts(_letters(geounits[wrong], self.width)), fix)

    def _taken(self, rows: Rows) -> Iterator[tuple[str, str, NDArray[np.bytes_], NDArray[Any]]]:
        lengths = pc.binary_length(rows.geocodes).to_numpy(zero_copy_only=False).astype(np.int64)
        if self.width < 0 and len(lengths):
            self.width = int(np.bincount(lengths).argmax())
        odd = np.flatnonzero(lengths != self.width)
        self._faults.add("codes of different lengths", rows.codes(odd), _GET_FILES)
        if len(odd):
            return
        codes = np.zeros(len(lengths), f"S{max(1, self.width)}")
        if self.width:
            codes = letters(rows.geocodes, self.width).reshape(-1).view(f"S{self.width}")
        for number in np.unique(rows.name).tolist():
            own = np.flatnonzero(rows.name == number)
            width = int(rows.starts[own[0] + 1] - rows.starts[own[0]])
            wrong = own[np.diff(rows.starts)[own] != width]
            self._faults.add(
                f"{rows.names[number]}: another number of figures", rows.codes(wrong), _GET_FILES
            )
            if not len(wrong):
                sign = rows.signs[int(rows.sign[own[0]])]
                yield rows.names[number], sign, codes[own], rows.matrix(own, width)

    def _placed(
        self, name: str, geounits: NDArray[np.bytes_], codes: NDArray[np.bytes_], values: list[NDArray[Any]]
    ) -> NDArray[np.integer]:
        """Figures of every geounit of a folder."""
        widths = {one.shape[1] for one in values}
        if len(widths) > 1:
            self._faults.add(
                f"{name}: another number of figures", texts(_letters(codes, self.width)), _GET_FILES
            )
            self._faults.raise_if_any()
        nodes = np.searchsorted(geounits, codes)
        self._require_once(name, geounits, nodes)
        together = np.concatenate(values)
        narrow = not together.size or (_NARROW.min <= together.min() and together.max() <= _NARROW.max)
        found = np.zeros((len(geounits), together.shape[1]), np.int32 if narrow else np.int64)
        found[nodes] = together
        return found
