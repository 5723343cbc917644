"""Codes of areas of one's own, which are any text, beside the geocodes that stand for them. All of it is public."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.model.safe_text import csv_text, text_of_cell

AREA_CODES: Final = "areas.csv"
"""Codes and geocodes of all areas, in the folder of a run."""
OTHER_AREAS: Final = "other_areas.csv"
"""Areas of the other tree in which each lowest area lies: a list for ``--areas``."""
_SEVERAL: Final = ""
"""In the place of a geocode: several areas have the codes."""
_NAMED: Final = 5
_AFTER: Final = "\U0010ffff"
"""Behind every character of a geocode."""


@dataclass(frozen=True)
class AreaLevel:
    """The areas of one level.

    Args:
        geocodes: text of one length, rising, shape (areas,).
        codes: of the areas and of those above them, as the files have them, one row an area.
    """

    name: str
    geocodes: NDArray[np.str_] = field(repr=False)
    codes: tuple[tuple[str, ...], ...] = field(repr=False)

    @cached_property
    def own(self) -> dict[str, str]:
        """Code of every area by its geocode: the geocode itself where several areas of the level have its code."""
        codes = [path[-1] for path in self.codes]
        names, times = np.unique(np.array(codes, np.str_), return_counts=True)
        repeated = set(names[times > 1].tolist())
        geocodes = self.geocodes.tolist()
        return {
            geocode: geocode if code in repeated else code
            for geocode, code in zip(geocodes, codes, strict=True)
        }

    def geocodes_of(self, code: str) -> list[str]:
        """Geocodes of the areas that have a code."""
        return [
            geocode
            for geocode, path in zip(self.geocodes.tolist(), self.codes, strict=True)
            if path[-1] == code
        ]


@dataclass(frozen=True)
class AreaCodes:
    """Codes and geocodes of all areas below the root, the widest level first.

    Args:
        columns: of the records that have the codes, one a level.
        others: by column of another tree, codes of the areas in which the lowest areas lie.
    """

    columns: tuple[str, ...]
    levels: tuple[AreaLevel, ...]
    others: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    @property
    def names(self) -> dict[str, str]:
        """Code of every area, by geocode."""
        return {
            geocode: codes[-1]
            for level in self.levels
            for geocode, codes in zip(level.geocodes.tolist(), level.codes, strict=True)
        }

    @property
    def files(self) -> dict[str, str]:
        """Files of a run folder, by name: every area with its codes, and every lowest area with those of another tree in which it lies."""
        if not self.others:
            return {AREA_CODES: self._table()}
        rows = zip(self.levels[-1].geocodes.tolist(), *self.others.values(), strict=True)
        return {AREA_CODES: self._table(), OTHER_AREAS: csv_text([("geocode", *self.others), *rows])}

    def _table(self) -> str:
        rows = [("level", "geocode", *self.columns)]
        for level in self.levels:
            rows += [
                (level.name, geocode, *codes, *[""] * (len(self.columns) - len(codes)))
                for geocode, codes in zip(level.geocodes.tolist(), level.codes, strict=True)
            ]
        return csv_text(rows)

    @classmethod
    def of_text(cls, text: str) -> Self:
        """The same from :data:`AREA_CODES`; areas of another tree are not in it.

        Example:
            >>> codes = AreaCodes.of_text(chr(10).join(["level,geocode,region,grid", "Region,1,Nord,", "Grid,101,Nord,N1:E 1"]))
            >>> codes.columns, [(level.name, level.own) for level in codes.levels]
            (('region', 'grid'), [('Region', {'1': 'Nord'}), ('Grid', {'101': 'N1:E 1'})])
        """
        header, *rows = list(csv.reader(text.splitlines(keepends=True)))
        by_level: dict[str, list[list[str]]] = {}
        for row in rows:
            by_level.setdefault(row[0], []).append([text_of_cell(cell) for cell in row[1:]])
        levels = tuple(
            AreaLevel(
                name,
                np.array([row[0] for row in own], np.str_),
                tuple(tuple(row[1 : depth + 2]) for row in own),
            )
            for depth, (name, own) in enumerate(by_level.items())
        )
        return cls(tuple(header[2:]), levels)

    @classmethod
    def of_run(cls, folder: Path) -> Self | None:
        """Those of a run folder; None where its areas have no codes but their geocodes."""
        path = folder / AREA_CODES
        return cls.of_text(path.read_text(encoding="utf-8")) if path.is_file() else None

    @property
    def lowest(self) -> AreaLevel:
        """The lowest level."""
        return self.levels[-1]

    def keys(self, names: Sequence[str]) -> dict[int, str]:
        """Which columns of a table have codes of areas, by position of the level.

        Example:
            >>> AreaCodes(("region", "grid"), ()).keys(["GRID", "zone"])
            {1: 'GRID'}
        """
        lower = {name.lower(): name for name in names}
        keys = {
            depth: lower[name.lower()] for depth, name in enumerate(self.columns) if name.lower() in lower
        }
        cut, _, length = self.columns[-1].rpartition("_")  # of one column that has the codes of all levels
        if not keys and length.isdecimal() and cut.lower() in lower:
            return {len(self.columns) - 1: lower[cut.lower()]}
        return keys

    def lowest_of(self, place: str, keys: Mapping[int, NDArray[np.str_]]) -> ListedCodes:
        """The lowest areas that rows with codes are about: the area itself, or all inside of it.

        Args:
            place: of the rows, for messages.
            keys: codes by position of their level, each of shape (rows,); the last level is that of the rows, and those above it tell areas of one code apart.
        """
        depths = sorted(keys)
        level = self.levels[depths[-1]]
        known: dict[tuple[str, ...], str] = {}
        for geocode, path in zip(level.geocodes.tolist(), level.codes, strict=True):
            key = tuple(path[depth] for depth in depths)
            known[key] = _SEVERAL if key in known else geocode
        rows = list(zip(*(keys[depth].tolist() for depth in depths), strict=True))
        geocodes = [known.get(row, known.get(tuple(map(text_of_cell, row)))) for row in rows]
        self._refuse_unclear(place, level, rows, geocodes, depths)
        unknown = [number for number, geocode in enumerate(geocodes) if geocode is None]
        there = np.array([number for number, geocode in enumerate(geocodes) if geocode is not None], np.int64)
        if not len(there):
            some = ", ".join(
                list(dict.fromkeys(rows[number][-1] or "an empty one" for number in unknown))[:_NAMED]
            )
            examples = ", ".join(path[-1] for path in level.codes[:_NAMED])
            raise DataError(
                f"{place}: none of the {len(rows):,} rows is of an area of the level {level.name} of this run; its codes are such as {some}; allowed: codes such "
                f"as {examples}, which {AREA_CODES} of the run lists"
            )
        leaves = self.lowest.geocodes
        chosen = np.array([geocodes[number] for number in there.tolist()], np.str_)
        first = np.searchsorted(leaves, chosen)
        inside = np.searchsorted(leaves, np.char.add(chosen, _AFTER)) - first
        row = np.repeat(there, inside)
        leaf = (
            np.arange(int(inside.sum()))
            - np.repeat(np.cumsum(inside) - inside, inside)
            + np.repeat(first, inside)
        )
        remarks = []
        if unknown:
            few = "; fewer than half are areas of this run: check that the list has the same areas" * (
                2 * len(there) < len(rows)
            )
            remarks.append(
                f"{Path(place).name}: {len(unknown):,} of {len(rows):,} rows are of no area of the level {level.name} of this run, such as "
                f"{rows[unknown[0]][-1] or 'an empty code'}, and are passed over{few}."
            )
        return ListedCodes(row, leaves[leaf], tuple(remarks))

    def _refuse_unclear(
        self,
        place: str,
        level: AreaLevel,
        rows: Sequence[tuple[str, ...]],
        geocodes: Sequence[str | None],
        depths: Sequence[int],
    ) -> None:
        """Refuse codes that several areas have, and those that lost their leading zeros."""
        several = list(
            dict.fromkeys(row[-1] for row, geocode in zip(rows, geocodes, strict=True) if geocode == _SEVERAL)
        )
        if several:
            above = ", ".join(
                name for depth, name in enumerate(self.columns[: depths[-1]]) if depth not in depths
            )
            raise DataError(
                f"{place}: {len(several):,} codes are those of several areas of the level {level.name}, such as {several[0]}; fix: give the columns of the "
                f"areas above ({above}), too, or the column geocode of {AREA_CODES}"
            )
        short = {path[-1].lstrip("0"): path[-1] for path in level.codes if path[-1].startswith("0")}
        lost = list(
            dict.fromkeys(
                row[-1]
                for row, geocode in zip(rows, geocodes, strict=True)
                if geocode is None and row[-1] in short
            )
        )
        if lost:
            raise DataError(
                f"{place}: {len(lost):,} codes of the level {level.name} lost their leading zeros, such as {lost[0]} for {short[lost[0]]}; allowed: codes as "
                "text with all their characters; fix: write them again, spreadsheets drop these zeros"
            )


@dataclass(frozen=True, eq=False)
class ListedCodes:
    """Lowest areas of the rows of a list.

    Args:
        row: of the list, for each of the lowest areas, shape (n,).
        geocodes: of the lowest areas, shape (n,).
    """

    row: NDArray[np.int64] = field(repr=False)
    geocodes: NDArray[np.str_] = field(repr=False)
    remarks: tuple[str, ...] = ()
