"""Codes and names that stand beside the geocodes of census areas in published files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from censafe.geography.identifiers import codes_of_level, geoids, gisjoins
from censafe.geography.regions import states

__all__ = ["AREA_COLUMNS", "AreaNames", "region_names"]

AREA_COLUMNS = ("GEOID", "GISJOIN", "NAME")
"""Columns that stand beside the geocodes of census areas."""


@dataclass(frozen=True)
class AreaNames:
    """Codes and names of areas; those of states are always known.

    Args:
        by_code: further names, by GEOID for areas of census geography and by geocode for others.
        census: whether geocodes are those of census geography.
    """

    by_code: Mapping[str, str] = field(default_factory=dict, repr=False)
    census: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that :meth:`beside` gives."""
        if self.census:
            return AREA_COLUMNS
        return ("NAME",) if self.by_code else ()

    def beside(self, codes: NDArray[np.str_]) -> dict[str, NDArray[np.str_]]:
        """The columns beside geocodes.

        Args:
            codes: geocodes of one level, shape (n,).

        Returns:
            Texts of shape (n,) by name of the column, in the order of :attr:`columns`; empty where there is no code or name.

        Example:
            >>> found = AreaNames({"44001": "Bristol County"}).beside(np.array(["44001", "44003"]))
            >>> {name: texts.tolist() for name, texts in found.items()}
            {'GEOID': ['44001', '44003'], 'GISJOIN': ['G4400010', 'G4400030'], 'NAME': ['Bristol County', '']}
        """
        if not self.census:
            return {"NAME": self.names(codes)} if self.by_code else {}
        return {"GEOID": geoids(codes), "GISJOIN": gisjoins(codes), "NAME": self.names(codes)}

    def of_level(self, level: str, codes: NDArray[np.str_]) -> dict[str, NDArray[np.str_]]:
        """The columns beside areas of a named level or kind; given names alone where it is none of the census.

        Args:
            level: such as ``County``.
            codes: geocodes, shape (n,).

        Example:
            >>> {name: texts.tolist() for name, texts in AreaNames().of_level("State", np.array(["44"])).items()}
            {'GEOID': ['44'], 'GISJOIN': ['G440'], 'NAME': ['Rhode Island']}
            >>> AreaNames().of_level("place", np.array(["44"]))
            {}
        """
        if not self.census:
            return self.beside(codes)
        known = codes_of_level(level, codes)
        if known:
            return {**known, "NAME": self.names(codes.astype(f"U{len(codes[0])}"))}
        return {"NAME": self.given(codes)} if self.by_code else {}

    def given(self, codes: NDArray[np.str_]) -> NDArray[np.str_]:
        """Names that were given to areas of any kind, empty for the others.

        Args:
            codes: such as those of places, shape (n,).
        """
        return np.array([self.by_code.get(code, "") for code in codes.tolist()], np.str_).reshape(len(codes))

    def names(self, codes: NDArray[np.str_]) -> NDArray[np.str_]:
        """Names of the areas of one level, empty where they are not known.

        Args:
            codes: geocodes of one level, shape (n,).

        Example:
            >>> AreaNames().names(np.array(["44", "45"])).tolist()
            ['Rhode Island', 'South Carolina']
        """
        keys = geoids(codes) if self.census else codes
        known = {**({state.code: state.name for state in states()} if self.census else {}), **self.by_code}
        lengths = {len(code) for code in known}
        if not lengths & set(np.unique(np.char.str_len(keys)).tolist()):
            return np.full(len(codes), "")
        return np.array([known.get(code, "") for code in keys.tolist()], np.str_).reshape(len(codes))


def region_names(kind: str, codes: NDArray[np.str_], given: Mapping[str, str]) -> NDArray[np.str_]:
    """Names of regions of the S-DHC and Detailed DHC files, empty where they are not known.

    Args:
        kind: of region, such as ``COUNTY`` or ``PLACE``, without the area it belongs to.
        codes: REGION_ID, shape (n,).
        given: names by REGION_ID; those of the nation and of states need none.

    Example:
        >>> region_names("USA", np.array(["1"]), {}).tolist(), region_names("STATE", np.array(["44"]), {}).tolist()
        (['United States'], ['Rhode Island'])
    """
    if kind == "USA":
        return np.full(len(codes), "United States")
    known = {**({state.code: state.name for state in states()} if kind == "STATE" else {}), **given}
    return AreaNames(known).given(codes)
