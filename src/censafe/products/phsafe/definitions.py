"""PHSafe's table definitions, read from ``tables.toml`` once, tables that are sums of answers already measured, and how far one person can move the answers.

Three calibrations. ``bureau`` is the Bureau's bound; the two ``household-local`` ones are tighter and tied to
a neighbor relation of their own. Every claim is proved in ``sensitivity.proof.md`` and checked by brute force.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from importlib import resources
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from censafe.errors import ConfigError
from censafe.model import Axis, Definition, KeyDomain, Measurements, Neighbors, NoiseLaw, PublishedQuery
from censafe.model.proven import proven
from censafe.tabulation.tables.definitions import DefinitionSet, TableDefinition, load_definitions


@lru_cache(maxsize=1)
def phsafe_definitions() -> DefinitionSet:
    """The eleven S-DHC tables with their cells, iterations and levels.

    Source: PHSafe paper, section 4; the Bureau's PHSafe 3.0.0.

    Example:
        >>> definitions = phsafe_definitions()
        >>> [table.name for table in definitions.measured]
        ['PH1_num', 'PH1_denom', 'PH2', 'PH3', 'PH4', 'PH5_denom', 'PH6', 'PH7', 'PH8_denom']
        >>> list(definitions.levels(definitions.table("PH2")))
        ['usa_*', 'state_*']
    """
    return load_definitions(definitions_text(), "tables.toml")


def definitions_text() -> str:
    """The definitions as they are shipped, TOML."""
    return resources.files("censafe.products.phsafe").joinpath("tables.toml").read_text(encoding="utf-8")


def measured_tables() -> tuple[str, ...]:
    """Tables that noise is added to, in their fixed order."""
    return tuple(table.name for table in phsafe_definitions().measured)


def truncated_tables() -> tuple[str, ...]:
    """Measured tables of persons, each with a tau."""
    return tuple(table.name for table in phsafe_definitions().measured if table.truncated)


def levels_of(table: str) -> tuple[str, ...]:
    """Population group levels of a measured table, in their fixed order.

    Example:
        >>> levels_of("PH2")
        ('usa_*', 'state_*')
    """
    definitions = phsafe_definitions()
    return tuple(definitions.levels(definitions.table(table)))


def published_queries(measurements: Iterable[Measurements]) -> tuple[PublishedQuery, ...]:
    """Everything that a release publishes: the measured tables and the derived ones, in output order.

    PH5_num exists at the levels where PH4 does, PH8_num where PH7 does.

    Source: PHSafe paper, section 5; the Bureau's PHSafe 3.0.0.
    """
    answers = {(answer.query.table, answer.query.level): answer for answer in measurements}
    definitions = phsafe_definitions()
    published = []
    for table in definitions.tables:
        source = table.derived.source if table.derived else table.name
        for level in definitions.levels(table):
            answer = answers.get((source, level))
            if answer is not None:
                published.append(derive(table, answer) if table.derived else PublishedQuery.measured(answer))
    return tuple(published)


def derive(table: TableDefinition, answer: Measurements) -> PublishedQuery:
    """The answers of a derived table at the level of ``answer``, which are those of its source table."""
    if table.derived is None or table.derived.source != answer.query.table:
        raise ValueError(f"{table.name} is not derived from {answer.query.table}")
    domain, values, terms = sum_cells(table, answer.domain, answer.values)
    return PublishedQuery(
        table=table.name,
        level=answer.query.level,
        domain=domain,
        values=values,
        terms=terms,
        law=answer.query.law,
        cost=Fraction(0),
        source=answer.source,
    )


def sum_cells(
    table: TableDefinition, domain: KeyDomain, values: NDArray[np.int64]
) -> tuple[KeyDomain, NDArray[np.int64], NDArray[np.int64]]:
    """Add up the cells of a source table to those of a derived table.

    Args:
        values: int64, shape (domain.size,).
    """
    if table.derived is None:
        raise ValueError(f"{table.name} is measured, not derived")
    *outer, cells = domain.axes
    matrix = np.zeros((len(cells.values), len(table.derived.cells)), dtype=np.int64)
    for column, sources in enumerate(table.derived.cells.values()):
        matrix[[cells.values.index(source) for source in sources], column] = 1
    sums = values.reshape(-1, len(cells.values)) @ matrix
    terms = np.tile(matrix.sum(axis=0), len(sums))
    keys = KeyDomain((*outer, Axis(table.cell_column, tuple(table.derived.cells))))
    return keys, sums.reshape(-1), terms


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
