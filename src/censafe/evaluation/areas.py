"""The areas that counts are compared for, levels of a spine and others (from lists, from the block file GRF-C, or from what a run read), and strata of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError, UsageError
from censafe.geography.area_lists import BlockTable, block_tables, listed_tables
from censafe.geography.crosswalk import district_codes
from censafe.geography.grfc import BlockAreas
from censafe.geography.identifiers import block_words, no_area
from censafe.geography.own_codes import AreaCodes
from censafe.geography.spines.tree import Spine

_THREADS: Final = 2  # compiled loops and array operations hold no interpreter lock
Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Call a function for every item, two at a time; results in the order of the items.

    Example:
        >>> in_threads(lambda one: one * one, [3, 1, 2])
        [9, 1, 4]
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(work, items))


@dataclass(frozen=True, eq=False)
class ComparedAreas:
    """Disjoint areas made of blocks; a block may lie in none of them.

    Args:
        level: name of the level of the spine, or of the kind of area, such as ``place``.
        area_class: empty for a level of the spine; otherwise the name of the area list.
        names: codes of the areas, shape (n,).
        of_block: int32, shape (blocks,), area of every block in the order of the spine; -1 in none.
    """

    level: str
    area_class: str
    names: NDArray[np.str_] = field(repr=False)
    of_block: NDArray[np.int32] = field(repr=False)
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.of_block) and not -1 <= int(self.of_block.min()) <= int(self.of_block.max()) < len(
            self.names
        ):
            raise ValueError("a block lies in an area that is not listed")

    @property
    def number(self) -> int:
        """How many areas there are."""
        return len(self.names)

    @cached_property
    def blocks(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Blocks by area: their positions, and shape (n + 1,) where those of each area start."""
        inside = np.flatnonzero(self.of_block >= 0)
        order = inside[np.argsort(self.of_block[inside], kind="stable")]
        starts = np.searchsorted(self.of_block[order], np.arange(self.number + 1))
        return order.astype(np.int64), starts.astype(np.int64)


def level_areas(spine: Spine, level: str) -> ComparedAreas:
    """The geounits of one level of a spine.

    Example:
        >>> from censafe.geography.spines.tree import LevelRule, build_spine
        >>> spine = build_spine(np.array(["11", "12", "21"]), (LevelRule("US", 0), LevelRule("State", 1), LevelRule("Block", 2)))
        >>> level_areas(spine, "State").of_block.tolist()
        [0, 0, 1]
    """
    if level not in spine.names:
        raise UsageError(f"there is no level {level}; the levels are {', '.join(spine.names)}")
    depth = spine.names.index(level)
    return ComparedAreas(level, "", spine.levels[depth].geounits, spine.ancestors(depth))


def areas_of_codes(
    spine: Spine, name: str, blocks: NDArray[np.int64], codes: NDArray[np.str_]
) -> ComparedAreas:
    """Areas from the code of the area of some blocks.

    Args:
        blocks: geocodes as numbers, shape (m,), each once. Blocks that the spine does not have are left out.
        codes: code of the area of every one of them, shape (m,); an empty text means no area.
    """
    if len(np.unique(blocks)) != len(blocks):
        raise DataError(
            f"area list {name}: {len(blocks) - len(np.unique(blocks))} blocks are given twice; allowed: once"
        )
    place = np.minimum(np.searchsorted(spine.leaf.codes, blocks), spine.leaf.nodes - 1)
    known = spine.leaf.codes[place] == blocks
    if not known.any():
        raise DataError(
            f"area list {name}: none of its {len(blocks)} blocks is in the data; allowed: {block_words(spine.leaf.form)}"
        )
    inside = known & (codes != "")
    names, area = np.unique(codes[inside], return_inverse=True)
    of_block = np.full(spine.leaf.nodes, -1, np.int32)
    of_block[place[inside]] = area
    remarks: tuple[str, ...] = ()
    if 2 * int(known.sum()) < min(len(blocks), spine.leaf.nodes):
        remarks = (
            f"area list {name}: {int(known.sum()):,} of its {len(blocks):,} blocks are among the {spine.leaf.nodes:,} of the data; check that it is of "
            "the same states and vintage.",
        )
    return ComparedAreas(name, name, names, of_block, remarks)


COUNTY_SIZES: Final = (0, 1_000, 5_000, 10_000, 50_000, 100_000)
PLACE_SIZES: Final = (0, 500, 1_000, 5_000, 10_000, 50_000, 100_000)
AIANNH_SIZES: Final = (0, 100, 1_000, 10_000)
BLOCK_SIZES: Final = (0, 1, 10, 50, 100, 250, 500, 1_000)
_AIANNH: Final = ("aian", "air", "otsa", "anvsa", "tribal", "reservation")


@dataclass(frozen=True, eq=False)
class Strata:
    """Named classes of the areas of one level.

    Args:
        of_area: int32, shape (areas,); -1 for areas in no class.
    """

    kind: str
    names: tuple[str, ...]
    of_area: NDArray[np.int32] = field(repr=False)


def everything(areas: int) -> Strata:
    """One class, ``all``, that holds every area."""
    return Strata("all", ("all",), np.zeros(areas, np.int32))


def size_classes(population: NDArray[np.int64], edges: Sequence[int]) -> Strata:
    """Classes by true population, closed on the left, the last one open above.

    Args:
        population: true count of every area, shape (areas,).

    Example:
        >>> found = size_classes(np.array([999, 1000, 200000]), COUNTY_SIZES)
        >>> found.names[0], found.names[-1], found.of_area.tolist()
        ('0-999', '100000+', [0, 1, 5])
    """
    names = [f"{low}-{high - 1}" if high - low > 1 else str(low) for low, high in pairwise(edges)]
    names.append(f"{edges[-1]}+")
    place = np.searchsorted(np.asarray(edges, np.int64), population, side="right") - 1
    return Strata("population", tuple(names), place.astype(np.int32))


def population_bins(population: NDArray[np.int64], width: int) -> Strata:
    """Bins of equal width, those that hold an area.

    Args:
        population: true count of every area, shape (areas,).
        width: of a bin, in persons.

    Example:
        >>> population_bins(np.array([3, 120, 7]), 50).names
        ('0-49', '100-149')
    """
    filled, place = np.unique(population // width, return_inverse=True)
    names = tuple(f"{bin_ * width}-{bin_ * width + width - 1}" for bin_ in filled.tolist())
    return Strata("population", names, place.astype(np.int32))


def size_edges(areas: ComparedAreas, lowest: str = "") -> tuple[int, ...]:
    """Lower ends of the classes that areas of a kind are sorted into.

    Args:
        lowest: name of the lowest level, whose areas are sorted as blocks are.

    Source: classes of the Bureau's demonstration metrics; those of blocks are the ones of its slides.
    """
    if areas.level == lowest:
        return BLOCK_SIZES
    if not areas.area_class:
        return COUNTY_SIZES
    kind = areas.area_class.lower()
    if any(word in kind for word in ("place", "city", "town")):
        return PLACE_SIZES
    return AIANNH_SIZES if any(word in kind for word in _AIANNH) else COUNTY_SIZES


_KINDS: Final = {"placefp": "place", "cousubfp": "cousub", "aiannhce": "aiannh"}
_WITHIN: Final = {
    "place": 2,
    "cousub": 5,
    "aiannh": 0,
    "unified_school_district": 2,
    "secondary_school_district": 2,
    "elementary_school_district": 2,
}  # digits of the block's code that make the code unique
_DISTRICTS: Final = ("unified_school_district", "secondary_school_district", "elementary_school_district")
_CENSUS_DIGITS: Final = 16


def known_areas(spine: Spine, known: BlockAreas) -> tuple[ComparedAreas, ...]:
    """Places, county subdivisions, American Indian, Alaska Native and Hawaiian areas, and school districts, as far as there are any."""
    columns: dict[str, tuple[NDArray[np.integer], int]]
    columns = {"place": (known.place, 5), "cousub": (known.cousub, 5), "aiannh": (known.aiannh, 4)}
    if "districts" in known.keys:
        columns |= {kind: (codes, 5) for kind, codes in zip(_DISTRICTS, district_codes(known), strict=True)}
    lists = []
    for kind, (numbers, digits) in columns.items():
        codes = np.char.zfill(numbers.astype(np.str_), digits)
        areas = areas_of_codes(spine, kind, known.codes, _unique(kind, known.codes, codes))
        if areas.number:
            lists.append(areas)
    return tuple(lists)


def area_kinds(path: Path, spine: Spine, own: AreaCodes | None = None) -> tuple[str, ...]:
    """Kinds of areas that a file lists: columns of codes that are neither geocodes nor levels of the spine."""
    return tuple(_kind(name) for table in _tables(path, spine, own) for name in table.areas)


def read_area_lists(
    path: Path, spine: Spine, columns: Sequence[str] = (), own: AreaCodes | None = None
) -> tuple[ComparedAreas, ...]:
    """Read which areas every block lies in, for several kinds of areas of a file.

    Args:
        path: any list of :func:`censafe.geography.area_lists.block_tables`; codes of :func:`censafe.geography.identifiers.no_area` mean that the block lies in none.
        columns: kinds of areas; all without.
        own: codes of areas of records with codes of their own.
    """
    listed = listed_tables(path, _tables(path, spine, own), spine.leaf.form)
    codes = {_kind(name): own for name, own in listed.areas.items()}
    kinds = tuple(columns) or tuple(codes)
    missing = [one for one in kinds if one not in codes]
    if missing or not kinds:
        allowed = ", ".join(codes) or "one for each kind of area, as text"
        raise DataError(f"{path.name}: no column {', '.join(missing) or 'of area codes'}; allowed: {allowed}")
    lists, remarks = [], listed.remarks
    for kind in kinds:
        areas = areas_of_codes(spine, kind, listed.numbers, codes[kind])
        if columns or areas.number:
            lists.append(replace(areas, remarks=(*areas.remarks, *remarks)))
            remarks = ()
    return tuple(lists)


def _kind(name: str) -> str:
    return _KINDS.get(name.lower(), name)


def _tables(path: Path, spine: Spine, own: AreaCodes | None = None) -> list[BlockTable]:
    """The tables of a list without columns of numbers and those with the codes of levels."""
    levels = {name.lower() for name in spine.names}
    return [
        replace(
            table,
            areas={
                name: codes
                for name, codes in table.areas.items()
                if name.lower() not in levels and name not in table.numbers
            },
        )
        for table in block_tables(path, spine.leaf.form, own)
    ]


def read_named_lists(
    spine: Spine, files: Sequence[Path], own: AreaCodes | None = None
) -> tuple[ComparedAreas, ...]:
    """All areas of some files, each kind once."""
    lists = [one for path in files for one in read_area_lists(path, spine, own=own)]
    names = [one.level for one in lists]
    wrong = sorted({name for name in names if names.count(name) > 1 or name in spine.names})
    if wrong:
        raise UsageError(
            f"areas {', '.join(wrong)} are listed twice or have the name of a level; name every kind of area once"
        )
    return tuple(lists)


def _unique(kind: str, blocks: NDArray[np.int64], codes: NDArray[np.str_]) -> NDArray[np.str_]:
    """Codes with those of the state or county before them, where they are unique within it; empty for none."""
    digits = _WITHIN[kind]
    empty = no_area(codes)
    if digits:
        codes = np.char.add(
            np.char.zfill((blocks // 10 ** (_CENSUS_DIGITS - digits)).astype(np.str_), digits), codes
        )
    return np.where(empty, "", codes)
