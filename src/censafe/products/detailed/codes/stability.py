"""In how many groups of one level a record can be: the stability that the noise is made for."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError, ConfigError
from censafe.model import Definition, NoiseLaw
from censafe.model.proven import proven
from censafe.products.detailed.codes.universe import (
    Candidates,
    Granularity,
    Kind,
    PopulationGroupLevel,
    Universe,
)

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
