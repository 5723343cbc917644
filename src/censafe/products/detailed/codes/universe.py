"""Race and ethnicity codes, characteristic iterations and the levels of population groups: which iterations a record counts in, and in how many groups of one level it can be."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError, ConfigError
from censafe.model import Definition, NoiseLaw
from censafe.model.proven import proven

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


NULL_CODE: Final = 0
_ABSENT: Final = -1
_CODE_SPACE: Final = 10_000  # codes have four digits
_CHUNK: Final = 1 << 17


@dataclass(frozen=True, eq=False)
class IterationRows:
    """Iterations of every combination in compressed rows.

    Args:
        indptr: int64, shape (combinations + 1,); combination i has the ordinals ``indptr[i]`` to ``indptr[i + 1]``.
        ordinals: int32, ascending within a combination, none twice.
    """

    indptr: NDArray[np.int64]
    ordinals: NDArray[np.int32]

    @property
    def most(self) -> int:
        """Largest number of iterations of one combination."""
        return int(np.diff(self.indptr).max(initial=0))


def iteration_rows(
    universe: Universe, level: int, granularity: Granularity, combinations: NDArray[np.integer]
) -> IterationRows:
    """Iterations of every combination at a level and granularity.

    Args:
        combinations: shape (n, m + 1): m race codes, 0 for Null, then the ethnicity code.

    Source: SafeTab-P paper, definition of race groups; SafeTab-H code 3.0.0, characteristic iteration map.
    """
    kinds: tuple[Kind, ...] = ("alone", "combination", "ethnicity")
    # by kind, the ordinal of the only candidate of the kind that gathers a code
    ordinal_of = {kind: np.full(_CODE_SPACE, _ABSENT, dtype=np.int32) for kind in kinds}
    for ordinal, iteration in enumerate(universe.candidates(level, granularity).iterations):
        codes = np.fromiter(universe.members[iteration.code], dtype=np.int64)
        table = ordinal_of[iteration.kind]
        if (table[codes] != _ABSENT).any():
            raise ValueError(f"iteration {iteration.code} shares a code with another of its kind and level")
        table[codes] = ordinal
    known = np.zeros(_CODE_SPACE, dtype=np.bool_)
    known[np.fromiter(universe.codes, dtype=np.int64)] = True
    known[NULL_CODE] = True
    indptr = np.zeros(len(combinations) + 1, dtype=np.int64)
    pieces = []
    for start in range(0, len(combinations), _CHUNK):
        chunk = np.asarray(combinations[start : start + _CHUNK], dtype=np.int64)
        inside = (chunk >= 0) & (chunk < _CODE_SPACE)
        strange = ~(inside & known[np.where(inside, chunk, 0)]).all(axis=1)
        if strange.any():
            raise ValueError(f"{int(strange.sum())} combinations hold codes that are not in the code list")
        table = _iterations_of(chunk, ordinal_of)
        present = table != _ABSENT
        indptr[start + 1 : start + len(chunk) + 1] = present.sum(axis=1)
        pieces.append(table[present])
    ordinals = np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int32)
    return IterationRows(np.cumsum(indptr), ordinals)


@proven("stability.proof.md", digest="17620d9be04ee077")
def _iterations_of(
    combinations: NDArray[np.int64], ordinal_of: dict[Kind, NDArray[np.int32]]
) -> NDArray[np.int32]:
    """Iterations of every combination in ascending order, padded with -1; shape (n, m + 2)."""
    races, ethnicity = combinations[:, :-1], combinations[:, -1]
    filled = races != NULL_CODE
    alone = np.where(filled, ordinal_of["alone"][races], np.int32(_CODE_SPACE))
    shared = alone.min(axis=1)
    # A code without an alone candidate has -1, the least of all, and empties the intersection.
    same = (np.where(filled, alone, shared[:, None]) == shared[:, None]).all(axis=1) & filled.any(axis=1)
    columns = [
        np.where(same, shared, np.int32(_ABSENT))[:, None],
        np.where(filled, ordinal_of["combination"][races], np.int32(_ABSENT)),
        np.where(ethnicity != NULL_CODE, ordinal_of["ethnicity"][ethnicity], np.int32(_ABSENT))[:, None],
    ]
    table = np.sort(np.concatenate(columns, axis=1), axis=1)
    table[:, 1:][table[:, 1:] == table[:, :-1]] = _ABSENT
    return table


StabilityRule = Literal["bureau", "exact"]
STABILITY_RULES: Final[tuple[StabilityRule, ...]] = get_args(StabilityRule)

_PROOF: Final = "stability.proof.md"
REPLACE_FACTOR: Final = 2
"""Loss when one record is replaced, in terms of the loss when one is added or removed; see the proof."""


@proven(_PROOF, digest="6f4adbb859075579")
def stability(
    universe: Universe, level: int, granularity: Granularity, max_race_codes: int, rule: StabilityRule
) -> int:
    """Largest number of groups of one level that one record may be in.

    Args:
        universe: codes and iterations.
        level: 1 or 2.
        granularity: ``detailed`` or ``coarse``.
        max_race_codes: m, 1 to 8.
        rule: ``exact`` for the number that some record attains; ``bureau`` for the larger of it and the Bureau's
            formula.

    Returns:
        s; 0 when no record can be in any group.

    Source: SafeTab-P code 5.0.0, stability of the characteristic iteration map; ``stability.proof.md``.

    Example:
        >>> from censafe.products.detailed.codes.parameters import read_universe
        >>> stability(read_universe(), 2, "detailed", 8, "bureau")
        9
    """
    candidates = universe.candidates(level, granularity)
    attained = exact_stability(universe, candidates, max_race_codes)
    if rule == "exact":
        return attained
    return max(attained, bureau_stability(universe, candidates, max_race_codes))


def bureau_stability(universe: Universe, candidates: Candidates, max_race_codes: int) -> int:
    """The Bureau's formula max(h_alone, h_combination) max(2, m) + h_ethnicity.

    h is the largest number of candidates of a kind that gather one code. It is a bound only where alone iterations
    and iterations alone or in any combination divide the codes in the same way.
    """
    alone, combination, ethnicity = (
        max(
            Counter(code for codes in _code_sets(universe, candidates, kind) for code in codes).values(),
            default=0,
        )
        for kind in _KINDS
    )
    return max(alone, combination) * max(2, max_race_codes) + ethnicity


@proven(_PROOF, digest="a005314c0758cadd")
def exact_stability(universe: Universe, candidates: Candidates, max_race_codes: int) -> int:
    """Largest number of groups that some record attains.

    max(min(m, N), max over alone groups A of 1 + min(m, N(A))) + h_ethnicity, where N counts the candidates alone or in
    any combination, N(A) those of them that share a code with A, and h_ethnicity is 1 if there is an ethnicity
    candidate, all of them with at least one code.

    Args:
        universe: checked, so that a code has at most one candidate of each kind.
        candidates: of one level and granularity.
        max_race_codes: m.

    Example:
        >>> from censafe.products.detailed.codes.parameters import read_universe
        >>> exact_stability(read_universe(), read_universe().candidates(1, "coarse"), 3)
        4
    """
    alone, combination, ethnicity = (_code_sets(universe, candidates, kind) for kind in _KINDS)
    holder = {code: position for position, codes in enumerate(combination) for code in codes}
    apart = min(max_race_codes, len(combination))
    together = [1 + min(max_race_codes, len({holder[c] for c in codes if c in holder})) for codes in alone]
    return max(apart, *together, 0) + (1 if ethnicity else 0)


@proven(_PROOF, digest="b82820f1c63b1ba6")
def group_noise_law(definition: Definition, stable: int, budget: Fraction) -> NoiseLaw:
    """Noise law of a query over groups of one level.

    Args:
        definition: zCDP gives a discrete Gaussian, pure DP a two-sided geometric law.
        stable: s, from :func:`stability`.
        budget: rho or epsilon of the query, positive.

    Returns:
        The law, with sigma2 = s / (2 rho) or scale = s / epsilon.

    Raises:
        TypeError: the budget is not a Fraction.
        ConfigError: the budget or the stability is not positive.

    Example:
        >>> group_noise_law(Definition.ZCDP, 9, Fraction("2.134") * Fraction(9, 10)).parameter
        Fraction(2500, 1067)
    """
    if not isinstance(budget, Fraction):
        raise TypeError(f"a privacy budget must be a Fraction, not {type(budget).__name__}")
    if budget <= 0 or stable <= 0:
        raise ConfigError("a measured level needs a positive budget and an iteration that a record can be in")
    if definition is Definition.ZCDP:
        return NoiseLaw.gaussian(stable / (2 * budget))
    return NoiseLaw.laplace(stable / budget)


@proven(_PROOF, digest="ac708888d6e0d705")
def require_stable(indptr: NDArray[np.int64], stable: int, level: PopulationGroupLevel) -> None:
    """Stop before any noise is drawn when a combination of codes has more groups than the noise is made for.

    Args:
        indptr: int64, shape (combinations + 1,), where the iterations of each combination begin.
        stable: s of the level.
        level: for the message.

    Raises:
        CheckError: with the number of combinations.
    """
    over = int((np.diff(indptr) > stable).sum())
    if over:
        raise CheckError(
            f"({level.name}): {over} combinations of codes are in more than {stable} groups, the stability that the "
            "noise is made for; nothing was measured. Check the parameter files with 'censafe validate'"
        )


_KINDS: Final[tuple[Kind, ...]] = ("alone", "combination", "ethnicity")


def _code_sets(universe: Universe, candidates: Candidates, kind: Kind) -> list[frozenset[int]]:
    sets = (universe.members[one.code] for one in candidates.iterations if one.kind == kind)
    return [codes for codes in sets if codes]
