"""The plain-language sentences of the certificate."""

from __future__ import annotations

from collections.abc import Mapping

from censafe.model import Definition, Neighbours, ProtectedUnit

__all__ = [
    "CALIBRATIONS",
    "CONVERSIONS",
    "ESTIMATED",
    "NEIGHBOURS",
    "NOISE",
    "NOT_PROMISED",
    "UNITS",
    "group_words",
]

UNITS: Mapping[ProtectedUnit, str] = {
    ProtectedUnit.PERSON: "every single person's record",
    ProtectedUnit.HOUSEHOLD: "every single household's record, with all its members",
}

NEIGHBOURS: Mapping[Neighbours, str] = {
    Neighbours.ADD_REMOVE: "one {unit}'s record is present or absent",
    Neighbours.REPLACE: "one {unit}'s record has other values, the number of records being the same",
}

NOISE: Mapping[str, str] = {
    "gaussian": (
        "To every count a random whole number was added before anybody saw the result. It was drawn from the "
        "discrete Gaussian law, the bell curve on the whole numbers, so small changes are likely and large "
        "ones are rare. The number may be negative, and so may a published count."
    ),
    "laplace": (
        "To every count a random whole number was added before anybody saw the result. It was drawn from the "
        "two-sided geometric law, in which every further step away from zero is less likely by a fixed "
        "factor. The number may be negative, and so may a published count."
    ),
}

ESTIMATED = (
    "Noisy counts were made in this way for every geounit of every level. Apart from what is published exactly, all "
    "published counts are whole numbers, none negative, that fit the noisy counts of all levels best and add up."
)

CONVERSIONS: Mapping[str, tuple[str, str]] = {
    "tight": (
        "Tight bound",
        "Canonne, Kamath and Steinke (2020), Corollary 13. Valid for every mechanism; the one to quote.",
    ),
    "slide": (
        "Simple bound",
        "rho + 2 sqrt(rho ln(1/delta)), Bun and Steinke (2016). Valid, wider; the form in which the "
        "Census Bureau published its 2020 values.",
    ),
    "prefactor": (
        "Simple bound with prefactor",
        "rho + 2 sqrt(rho ln(sqrt(pi rho)/delta)), Bun and Steinke (2016). Valid, narrower than the "
        "simple bound only for small rho.",
    ),
    "gaussian": (
        "One Gaussian answer",
        "What a single continuous Gaussian answer with this rho would have. For information; it is not a "
        "bound for this release.",
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
        "The tables are meant to teach something about the population. What they teach about everybody of a kind "
        "may be guessed of each of them, whether or not that person's record was used.",
    ),
    (
        "The curator",
        "Whoever runs the program holds the records. The promise is about what is published, not about the "
        "people and computers that handle the input.",
    ),
    (
        "Time and traces",
        "How long the program ran, how much memory it used, and what another program on the same processor "
        "could observe while it ran, are not covered. Publish results as a batch, not as they appear.",
    ),
    (
        "Unlimited computing power",
        "The noise is made with AES-256 from a key of the operating system. No method is known that tells it from true "
        "randomness; it is not secure against an adversary who breaks AES-256 or the operating system's generator.",
    ),
    (
        "What is public beforehand",
        "The list of regions, the tables, the population groups, the budgets and the noise laws are treated as "
        "public. That the run passed its input checks at all is visible in this certificate.",
    ),
    (
        "Other releases",
        "Releases from the same records add up. The ledger adds the losses of all runs that were entered in it; "
        "it does not know about releases made elsewhere.",
    ),
)


def group_words(definition: Definition) -> str:
    """How the loss grows for several people at once."""
    if definition is Definition.ZCDP:
        return "For k records together the loss is at most k times k times as large: 4 times for two, 9 times for three."
    return "For k records together the loss is at most k times as large."
