"""How far one person can move PHSafe's answers, and the noise that hides it.

Three calibrations. ``bureau`` is the Bureau's bound; the two ``household-local`` ones are tighter and tied to
a neighbor relation of their own. Every claim is proved in ``sensitivity.proof.md`` and checked by brute force.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, get_args

from censafe.errors import ConfigError
from censafe.model import Definition, Neighbors, NoiseLaw
from censafe.model.proven import proven

Sensitivity = Literal["bureau", "household-local", "household-local-bounded"]
SENSITIVITIES: Final[tuple[Sensitivity, ...]] = get_args(Sensitivity)

_PROOF = "sensitivity.proof.md"
_RELATIONS: Final = {
    ("bureau", Neighbors.ADD_REMOVE): (
        "one person record is added or removed, and at most two unit records with it (one leaves, one enters), "
        "each with any MAFID and any attributes"
    ),
    ("household-local", Neighbors.ADD_REMOVE): (
        "one person record is added or removed, and the unit record of that person's MAFID, and no other, "
        "may change arbitrarily"
    ),
    ("local", Neighbors.REPLACE): (
        "one person record is replaced by another, in the same MAFID or another, and the unit records of the "
        "old and the new MAFID, and no others, may change arbitrarily"
    ),
}


@dataclass(frozen=True)
class Bound:
    """Largest change of one query's exact answers under one protected change."""

    l1: Fraction
    l2_squared: Fraction


def neighbors_of(sensitivity: Sensitivity) -> Neighbors:
    """The relation under which a configured budget holds as it is.

    Example:
        >>> neighbors_of("bureau").value, neighbors_of("household-local-bounded").value
        ('add_remove', 'replace')
    """
    return Neighbors.REPLACE if sensitivity == "household-local-bounded" else Neighbors.ADD_REMOVE


def relation_text(sensitivity: Sensitivity, neighbors: Neighbors) -> str:
    """What one protected change is, in words, for the manifest and the certificate."""
    if neighbors is Neighbors.REPLACE:
        return _RELATIONS["local", neighbors]
    return _RELATIONS["bureau" if sensitivity == "bureau" else "household-local", neighbors]


@proven(_PROOF, digest="09ec90bd2a715ea0")
def sensitivity_bound(sensitivity: Sensitivity, neighbors: Neighbors, tau: int | Fraction | None) -> Bound:
    """Bound the change of one table at one level.

    Args:
        sensitivity: the calibration, which decides the relation that ``add_remove`` stands for.
        neighbors: the relation, as :func:`relation_text` puts it.
        tau: largest number of persons of one household that enter the table; None for the
            denominators, which count units.

    Returns:
        L1 and squared L2 bounds as exact fractions.

    Source: PHSafe paper, Lemma 6, for ``bureau``; ``sensitivity.proof.md`` for the others.

    Example:
        >>> sensitivity_bound("bureau", Neighbors.ADD_REMOVE, 10)
        Bound(l1=Fraction(22, 1), l2_squared=Fraction(484, 1))
        >>> sensitivity_bound("household-local", Neighbors.ADD_REMOVE, 10)
        Bound(l1=Fraction(20, 1), l2_squared=Fraction(200, 1))
    """
    rows = Fraction(1 if tau is None else tau)  # joined rows of one household, at most
    if neighbors is Neighbors.REPLACE:
        return Bound(4 * rows, 8 * rows**2)
    if sensitivity != "bureau":
        return Bound(2 * rows, 2 * rows**2)
    changed = Fraction(2) if tau is None else 2 * rows + 2
    return Bound(changed, changed**2)


@proven(_PROOF, digest="4932bb5132960526")
def noise_law(
    definition: Definition, sensitivity: Sensitivity, tau: int | Fraction | None, budget: Fraction
) -> NoiseLaw:
    """Noise law of every answer of one table at one level.

    Args:
        definition: zCDP gives a discrete Gaussian, pure DP a two-sided geometric law.
        sensitivity: the calibration.
        tau: truncation of the table; None for the denominators.
        budget: rho or epsilon of the table at the level, positive.

    Returns:
        The law, with sigma2 = L2^2 / (2 rho) or scale = L1 / epsilon.

    Raises:
        TypeError: the budget is not a Fraction.
        ConfigError: the budget is not positive.

    Example:
        >>> noise_law(Definition.ZCDP, "bureau", 10, Fraction("0.002619")).parameter
        Fraction(242000000, 2619)
    """
    if not isinstance(budget, Fraction):
        raise TypeError(f"a privacy budget must be a Fraction, not {type(budget).__name__}")
    if budget <= 0:
        raise ConfigError("a measured table needs a positive budget; 0 means that it is not measured")
    bound = sensitivity_bound(sensitivity, neighbors_of(sensitivity), tau)
    if definition is Definition.ZCDP:
        return NoiseLaw.gaussian(bound.l2_squared / (2 * budget))
    return NoiseLaw.laplace(bound.l1 / budget)


@proven(_PROOF, digest="25bba219cbee8a43")
def query_loss(
    law: NoiseLaw, sensitivity: Sensitivity, neighbors: Neighbors, tau: int | Fraction | None
) -> Fraction:
    """Privacy loss of one query under a relation: rho for a Gaussian law, epsilon for a geometric one.

    Example:
        >>> law = noise_law(Definition.ZCDP, "household-local", 10, Fraction(1, 100))
        >>> query_loss(law, "household-local", Neighbors.REPLACE, 10)
        Fraction(1, 25)
    """
    bound = sensitivity_bound(sensitivity, neighbors, tau)
    if law.kind == "gaussian":
        return bound.l2_squared / (2 * law.parameter)
    return bound.l1 / law.parameter


@proven(_PROOF, digest="80a0002fac110cf0")
def loss_factor(definition: Definition, sensitivity: Sensitivity, neighbors: Neighbors) -> Fraction:
    """How many times the configured budget a run loses at most under a relation, whatever tau is.

    Returns:
        1 under the relation of the calibration. Under the other one: 2 for ``bureau`` (the paper's
        Theorems 3 and 4); 4 (zCDP) or 2 (pure DP) for ``household-local``; 1/4 or 1/2 for
        ``household-local-bounded``.

    Example:
        >>> loss_factor(Definition.ZCDP, "household-local", Neighbors.REPLACE)
        Fraction(4, 1)
    """
    own = neighbors_of(sensitivity)
    if neighbors is own:
        return Fraction(1)
    factor = Fraction(2) if sensitivity == "bureau" or definition is Definition.PURE else Fraction(4)
    return factor if own is Neighbors.ADD_REMOVE else 1 / factor
