"""Race and ethnicity codes, characteristic iterations, which iteration gathers which codes, and the levels of population groups."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

Granularity = Literal["detailed", "coarse"]

US_REGION_TYPES: Final = ("USA", "STATE", "COUNTY", "TRACT", "PLACE", "AIANNH")
PR_REGION_TYPES: Final = ("PR-STATE", "PR-COUNTY", "PR-TRACT", "PR-PLACE")
_DETAILED: Final = ("USA", "STATE", "PR-STATE")
_REGION_WORDS: Final = {
    "USA": "Nation",
    "STATE": "State",
    "COUNTY": "County",
    "TRACT": "Tract",
    "PLACE": "Place",
    "AIANNH": "AIANNH",
    "PR-STATE": "Puerto Rico",
    "PR-COUNTY": "Puerto Rico County",
    "PR-TRACT": "Puerto Rico Tract",
    "PR-PLACE": "Puerto Rico Place",
}
_LEVEL_WORDS: Final = {1: "Regional", 2: "Detailed"}


@dataclass(frozen=True)
class PopulationGroupLevel:
    """One population group level.

    Example:
        >>> result = PopulationGroupLevel("PR-COUNTY", 1)
        >>> result.key, result.name, result.bureau_key, result.label, result.granularity
        ('pr_county_1', 'PR-COUNTY, 1', 'level_1_pr_county', 'Puerto Rico County, Regional', 'coarse')
    """

    region_type: str
    level: int

    @property
    def key(self) -> str:
        """The name in our configurations, plans and part files."""
        return f"{self._geography}_{self.level}"

    @property
    def name(self) -> str:
        """The name in messages; in brackets it is the Bureau's key of thresholds."""
        return f"{self.region_type}, {self.level}"

    @property
    def bureau_key(self) -> str:
        """How the Bureau's budget keys end."""
        return f"level_{self.level}_{self._geography}"

    @property
    def label(self) -> str:
        """The level in the words of the SafeTab-H paper's Table 9."""
        return f"{_REGION_WORDS[self.region_type]}, {_LEVEL_WORDS[self.level]}"

    @property
    def granularity(self) -> Granularity:
        """``detailed`` for nation, state and Puerto Rico as a whole, ``coarse`` below."""
        return "detailed" if self.region_type in _DETAILED else "coarse"

    @property
    def _geography(self) -> str:
        return self.region_type.lower().replace("-", "_")


def group_levels(*, us: bool = True, pr: bool = True) -> tuple[PopulationGroupLevel, ...]:
    """Every level of a run in the order in which it is measured: US before Puerto Rico, large regions first.

    Example:
        >>> [result.key for result in group_levels(pr=False)][:4]
        ['usa_1', 'usa_2', 'state_1', 'state_2']
    """
    types = (US_REGION_TYPES if us else ()) + (PR_REGION_TYPES if pr else ())
    return tuple(PopulationGroupLevel(region_type, level) for region_type in types for level in (1, 2))


Kind = Literal["alone", "combination", "ethnicity"]
KINDS: Final[Mapping[Kind, str]] = {
    "alone": "race alone",
    "combination": "race alone or in any combination",
    "ethnicity": "ethnicity",
}


@dataclass(frozen=True)
class CharacteristicIteration:
    """One characteristic iteration."""

    code: str
    name: str
    kind: Kind
    level: int
    detailed_only: bool
    coarse_only: bool


@dataclass(frozen=True, eq=False)
class Candidates:
    """The iterations that are tabulated at one level and granularity, by ascending code.

    The position of an iteration is its ordinal in key domains and in the addresses of the noise.

    Args:
        detailed_only: bool, shape (iterations,).
    """

    iterations: tuple[CharacteristicIteration, ...]
    detailed_only: NDArray[np.bool_]

    @property
    def size(self) -> int:
        """Number of iterations."""
        return len(self.iterations)

    @property
    def codes(self) -> tuple[str, ...]:
        """Iteration codes in order."""
        return tuple(iteration.code for iteration in self.iterations)


@dataclass(frozen=True, eq=False)
class Universe:
    """Codes and iterations of a release; public.

    Args:
        codes: name by race or ethnicity code, in the order of the file.
        iterations: of both kinds of race, then of ethnicity, in the order of the files.
        members: the codes that an iteration gathers, by iteration code; every iteration has an entry.
    """

    codes: Mapping[int, str]
    iterations: tuple[CharacteristicIteration, ...]
    members: Mapping[str, frozenset[int]]
    origin: str

    def candidates(self, level: int, granularity: Granularity) -> Candidates:
        """The iterations that are tabulated at a level and a granularity."""
        excluding = "coarse_only" if granularity == "detailed" else "detailed_only"
        own = (one for one in self.iterations if one.level == level > 0 and not getattr(one, excluding))
        iterations = tuple(sorted(own, key=lambda iteration: iteration.code))
        flags = [iteration.detailed_only for iteration in iterations]
        return Candidates(iterations, np.array(flags, dtype=np.bool_))

    def pairs(self, level: int) -> tuple[tuple[CharacteristicIteration, CharacteristicIteration], ...]:
        """Race alone and race alone or in any combination of one level with the same codes, by ascending code."""
        races = [race for race in self.iterations if race.level == level and self.members[race.code]]
        pairs = []
        unpaired: dict[tuple[Kind, frozenset[int]], CharacteristicIteration] = {}
        other: Mapping[Kind, Kind] = {"alone": "combination", "combination": "alone"}
        for race in sorted(races, key=lambda race: race.code):
            if race.kind in other:
                codes = self.members[race.code]
                partner = unpaired.pop((other[race.kind], codes), None)
                if partner is None:
                    unpaired[race.kind, codes] = race
                else:
                    pairs.append((race, partner) if race.kind == "alone" else (partner, race))
        return tuple(sorted(pairs, key=lambda pair: pair[0].code))

    @property
    def digest(self) -> str:
        """SHA-256 of everything but the names, hexadecimal: what decides which group a record is in."""
        facts = {
            "codes": sorted(self.codes),
            "iterations": sorted(
                [
                    iteration.code,
                    iteration.kind,
                    iteration.level,
                    iteration.detailed_only,
                    iteration.coarse_only,
                    sorted(self.members[iteration.code]),
                ]
                for iteration in self.iterations
            ),
        }
        return hashlib.sha256(json.dumps(facts, separators=(",", ":")).encode()).hexdigest()
