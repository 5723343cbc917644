"""CONFIDENTIAL. What a defense is, and the options by which one is named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Generic, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.attack.defenses.households import Records
from censafe.attack.defenses.recoding import MergedAreas, MergedCategories
from censafe.attack.defenses.targeted import BlockPoints
from censafe.attack.people import AREA_DIGITS, People
from censafe.attack.reconstruction.problem import NO_LIMIT
from censafe.attack.tables import CountedLines
from censafe.errors import ConfigError, UsageError
from censafe.model.entries import nearest
from censafe.model.parsing import parse_integer, parse_number

_Ints = NDArray[np.int64]
NO_VALUE: Final = -1
"""Published value of a count that is not published."""


@dataclass(frozen=True, eq=False)
class TableIntervals:
    """Counts of areas, as published.

    Args:
        low: least count that agrees with what is published, shape (areas, lines).
        high: greatest one, ``NO_LIMIT`` where there is none, shape (areas, lines).
        value: printed, ``NO_VALUE`` where nothing is, shape (areas, lines).
    """

    low: _Ints = field(repr=False)
    high: _Ints = field(repr=False)
    value: _Ints = field(repr=False)

    def __post_init__(self) -> None:
        if not self.low.shape == self.high.shape == self.value.shape:
            raise ValueError("the ends of the intervals and the values must have one shape")
        if (self.low > self.high).any() or (self.low < 0).any():
            raise ValueError("intervals must not be empty, and counts are not negative")

    @staticmethod
    def exact(counts: _Ints) -> TableIntervals:
        """Every count as it is."""
        return TableIntervals(counts, counts, counts)

    @property
    def published(self) -> NDArray[np.bool_]:
        """Where there is a value, shape (areas, lines)."""
        return self.value != NO_VALUE

    def without(self, hidden: NDArray[np.bool_]) -> TableIntervals:
        """The same where some counts are not published.

        Example:
            >>> TableIntervals.exact(np.array([[3, 4]])).without(np.array([[True, False]])).value.tolist()
            [[-1, 4]]
        """
        return TableIntervals(
            np.where(hidden, 0, self.low),
            np.where(hidden, NO_LIMIT, self.high),
            np.where(hidden, NO_VALUE, self.value),
        )


@dataclass(frozen=True, eq=False)
class TableAreas:
    """The true tables of the areas of a level.

    Args:
        types: of every person, rows of the matrix of the lines, shape (n,).
        area: of every person, shape (n,).
        counts: true, shape (areas, lines).
    """

    types: _Ints = field(repr=False)
    area: _Ints = field(repr=False)
    workload: CountedLines
    counts: _Ints = field(repr=False)
    level: str = "block"


Publish = Callable[[TableAreas, int], TableIntervals]
"""True tables of a level, and a seed, to the published ones."""


@dataclass(frozen=True, eq=False)
class ChangedPeople(Generic[Records]):
    """Persons of whom exact tables are published."""

    people: Records
    claim: str = ""
    files: Mapping[str, pa.Table] = field(default_factory=dict, repr=False)
    areas: MergedAreas | None = None


class Swap(Protocol):
    """Households exchange their areas."""

    def __call__(self, people: Records, seed: int) -> ChangedPeople[Records]:
        """Persons of any records after the exchange."""


@dataclass(frozen=True)
class AreaWords:
    """The areas of some records in the words of defenses.

    Args:
        areas: those whose tables are attacked, in the plural.
        area: one of them.
        levels: whose tables are published, the attacked one first.
        around: levels within which households can be permuted.
        near: levels within which households are matched, from near to far.
        sizes: in what permuted households are alike, behind their area.
        by_size: the same as it stands in what is kept.
        quarters: where persons live who are in no household.
        forms: how defenses of such records are named; empty for all.
        refused: why a defense cannot be applied, by the beginning of its name.
    """

    areas: str = "blocks"
    area: str = "block"
    levels: tuple[str, ...] = ("block", "tract", "county")
    around: tuple[str, ...] = tuple(AREA_DIGITS)
    near: tuple[str, str, str] = ("tract", "county", "state")
    sizes: str = ", size and number of adults"
    by_size: str = "size and adults"
    quarters: str = "group quarters"
    forms: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)


CENSUS_AREAS: Final = AreaWords()


@dataclass(frozen=True, eq=False)
class Defense:
    """A defense, ready to be applied. Exactly one of the functions is there, or the folder, or the run.

    Args:
        family: defenses that differ in strength alone, joined by a line in figures.
        run: configuration of TopDown that is run with a test key; empty for the other defenses.
        points: of blocks, by which the defense measures distances.
    """

    spec: str
    words: str
    keeps: str
    claim: str = ""
    family: str = ""
    strength: float = 0.0
    change: Callable[[People, int], ChangedPeople[People]] | None = field(default=None, repr=False)
    swap: Swap | None = field(default=None, repr=False)
    tables: Publish | None = field(default=None, repr=False)
    recode: MergedCategories | None = field(default=None, repr=False)
    folder: Path | None = None
    run: str = ""
    points: BlockPoints | None = None
    notes: Mapping[str, Callable[[Any], pa.Table]] = field(default_factory=dict, repr=False)


class DefenseOptions:
    """The parts of a name such as ``swap:HI:rate=0.2``: a parameter, and options by their names."""

    def __init__(self, spec: str, form: str, areas: AreaWords) -> None:
        parts = spec.split(":")[1:]
        self.spec = spec
        self.areas = areas
        self._form = form
        self.parameter = parts.pop(0) if parts and "=" not in parts[0] else ""
        pairs = [one.partition("=") for one in parts]
        self._options = {name: value for name, _, value in pairs}
        self._read: list[str] = []
        if len(self._options) < len(pairs) or not all(name and value for name, _, value in pairs):
            raise self.refused("options are name=value, each once")

    def refused(self, problem: str) -> UsageError:
        """The error for a name that breaks a rule."""
        return UsageError(f"defense {self.spec!r}: {problem}; allowed: {self._form}")

    def number(self, name: str, default: int | None = None) -> int:
        """A whole number: of an option, or of the parameter where the name is empty."""
        return self._value(name, default, parse_integer, "a whole number of at most 9 digits")

    def real(self, name: str, default: float) -> float:
        """A number with decimals."""
        return self._value(name, default, float, "a number")

    def exact(self, name: str) -> Fraction:
        """An exact number such as 0.05 or 1/20."""
        return self._value(
            name, None, lambda text: parse_number(text, self.spec), "a number such as 0.05 or 1/20"
        )

    def chances(self, name: str, default: tuple[float, float, float]) -> tuple[float, float, float]:
        """Three numbers separated by commas."""

        def three(text: str) -> tuple[float, float, float]:
            first, second, third = map(float, text.split(","))
            return first, second, third

        return self._value(name, default, three, "three numbers such as 0.1,0.8,0.1")

    def word(self, name: str, default: str) -> str:
        """A word."""
        return self._value(name, default, str, "a word")

    def finish(self) -> None:
        """Refuse options that were not requested."""
        unknown = sorted(set(self._options) - set(self._read))
        if unknown:
            raise self.refused(f"there is no option {unknown[0]!r}.{nearest(unknown[0], self._read)}")

    def _value(self, name: str, default: Any, kind: Callable[[str], Any], words: str) -> Any:
        self._read.append(name)
        text = self._options.get(name, "") if name else self.parameter
        if not text:
            if default is None:
                raise self.refused(f"{name or 'its parameter'} is missing")
            return default
        try:
            return kind(text)
        except (ValueError, ConfigError):
            raise self.refused(f"{name or 'its parameter'} must be {words}") from None
