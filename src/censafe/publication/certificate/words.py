"""The plain-language sentences of the certificate."""

from __future__ import annotations

from collections.abc import Mapping

from censafe.model import Definition, Neighbors, ProtectedUnit

UNITS: Mapping[ProtectedUnit, str] = {
    ProtectedUnit.PERSON: "every single person's record",
    ProtectedUnit.HOUSEHOLD: "every single household's record, with all its members",
}

NEIGHBORS: Mapping[Neighbors, str] = {
    Neighbors.ADD_REMOVE: "one {unit}'s record is present or absent",
    Neighbors.REPLACE: "one {unit}'s record has other values, the number of records being the same",
}

NOISE: Mapping[str, str] = {
    "gaussian": (
        "A random whole number was added to every count before it was used any further. It was drawn from the discrete Gaussian "
        "distribution, a bell curve on the whole numbers, so that small changes are likely and large ones are rare. The number "
        "may be negative, and so may the noisy count."
    ),
    "laplace": (
        "A random whole number was added to every count before it was used any further. It was drawn from the two-sided geometric "
        "distribution, in which each further step away from zero is less likely by a fixed factor. The number may be negative, "
        "and so may the noisy count."
    ),
}

ESTIMATED = (
    "Noisy counts were drawn in this way for every geounit of every level. Apart from what is published exactly, all published "
    "counts are nonnegative whole numbers that are estimated from the noisy counts of all levels and add up."
)

CONVERSIONS: Mapping[str, tuple[str, str]] = {
    "tight": (
        "Tight bound",
        "Canonne, Kamath and Steinke (2020), Corollary 13. Valid for every mechanism; the recommended value to quote.",
    ),
    "slide": (
        "Simple bound",
        "rho + 2 sqrt(rho ln(1/delta)), Bun and Steinke (2016). Valid but looser; the form in which the Census Bureau published "
        "its 2020 values.",
    ),
    "prefactor": (
        "Simple bound with prefactor",
        "rho + 2 sqrt(rho ln(sqrt(pi rho)/delta)), Bun and Steinke (2016). Valid; tighter than the simple bound only for small rho.",
    ),
    "gaussian": (
        "Single Gaussian query",
        "The value for a single query with continuous Gaussian noise and this rho. For information only; it is not a bound for this release.",
    ),
}

CALIBRATIONS: Mapping[str, str] = {
    "bureau": (
        "The noise is scaled by the rule of the Census Bureau's PHSafe: when at most tau persons of a "
        "household are counted in a table, one person can change a person table by at most 2 tau + 2 and a "
        "table of households by at most 2. The Census Bureau's own 2020 tables were protected by this rule."
    ),
    "household-local": (
        "The noise is scaled by what one person can change when the change stays inside that person's own "
        "household: at most sqrt(2) tau in a person table and sqrt(2) in a table of households under rho "
        "(2 tau and 2 under epsilon). This needs less noise than the Census Bureau's rule for the same loss. "
        "Where a person may instead move between two households, the loss is the larger one stated here "
        "for the other relation."
    ),
    "household-local-bounded": (
        "The noise is scaled for the relation in which one person's record is changed and may move between two "
        "households: at most 2 sqrt(2) tau in a person table and 2 sqrt(2) in a table of households under rho. "
        "The losses under both relations are stated here."
    ),
}

NOT_PROMISED: tuple[tuple[str, str], ...] = (
    (
        "Facts about groups",
        "The tables are meant to teach something about the population. What they show about all people of a kind may be inferred "
        "about each of them, whether or not that person's record was used.",
    ),
    (
        "The curator",
        "The agency that runs the software holds the records. The guarantee covers what is published, not the people and "
        "computers that handle the input.",
    ),
    (
        "Running time and side channels",
        "The running time, the memory use, and what another program on the same processor could observe during the run are not "
        "covered. Publish results together after the run.",
    ),
    (
        "Unlimited computing power",
        "The noise is made with AES-256 from a key of the operating system. No method is known that distinguishes it from true "
        "randomness; it is not secure against an adversary who breaks AES-256 or the operating system's generator.",
    ),
    (
        "What is treated as public",
        "The list of regions, the tables, the population groups, the budgets and the noise distributions are treated as public. "
        "This certificate also reveals that the run passed its input checks.",
    ),
    (
        "Other releases",
        "Losses of releases from the same records add up. The ledger adds the losses of all runs recorded in it; it does not know "
        "of releases made elsewhere.",
    ),
)


def group_words(definition: Definition) -> str:
    """How the loss grows for several people at once."""
    if definition is Definition.ZCDP:
        return "For k records together the loss is at most k times k times as large: 4 times for two, 9 times for three."
    return "For k records together the loss is at most k times as large."
