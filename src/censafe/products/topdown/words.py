"""Words for what TopDown counts: answers of queries, and items of the redistricting tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Final

from censafe.model import CellQuery
from censafe.model.histograms import HistogramSchema
from censafe.model.pl94 import GQ_ITEMS, TABLE_ITEMS, race_matrix
from censafe.products.topdown.configuration.shipped import gq_kinds, race_sets, shipped_schemas

__all__ = ["answer_words", "item_words", "race_words"]

_RACES: Final = {
    "white": "White",
    "black": "Black",
    "aian": "American Indian or Alaska Native",
    "asian": "Asian",
    "nhopi": "Native Hawaiian or Pacific Islander",
    "sor": "some other race",
}


def answer_words(schema: HistogramSchema, query: CellQuery) -> Iterator[str]:
    """Words for every answer of a query, in their order."""
    sizes = [size for size in query.shape if size > 1]
    axes = [_levels(schema, query, name, size) for name, size in zip(query.attributes, sizes, strict=True)]
    for levels in product(*axes):
        yield ", ".join(levels) or "total"


def _levels(schema: HistogramSchema, query: CellQuery, attribute: str, size: int) -> list[str]:
    """Words for the groups of one attribute that a query tells apart."""
    names = [word.strip() for word in query.name.split("*")]
    recode = next(
        (one for name, one in schema.recodes.items() if one.attribute == attribute and name in names), None
    )
    shipped: dict[tuple[str, int], list[str]] = {
        ("votingage", 2): ["under 18", "18 and over"],
        ("hispanic", 2): ["not Hispanic", "Hispanic"],
        ("h1", 2): ["vacant", "occupied"],
        ("hhinstlevels", 3): ["household", "institution", "other group quarters"],
    }
    named = attribute if recode is None else recode.name
    if len(schema.labels.get(named, ())) == size:
        return list(schema.labels[named])
    if (named, size) in shipped:
        return shipped[named, size]
    if (named, size) == ("cenrace", 63):
        return [race_words(level) for level in range(size)]
    if (named, size) == ("hhgq", 8):
        return [kind.label for kind in gq_kinds()]
    return [f"{named} {level}" for level in range(size)]


def race_words(level: int) -> str:
    """The races of a level of CENRACE.

    Example:
        >>> race_words(0), race_words(6)
        ('White', 'White and Black')
    """
    return " and ".join(_RACES[one] for one in race_sets()[level].races)


@cache
def item_words() -> dict[str, tuple[str, ...]]:
    """What every item of the redistricting tables counts, by table.

    Example:
        >>> labels = item_words()
        >>> labels["P1"][:3], labels["P1"][8:11]
        (('total', 'one race', 'White alone'), ('two or more races', 'two races', 'White and Black'))
        >>> labels["P2"][3], labels["H1"]
        ('not Hispanic, one race', ('total', 'occupied', 'vacant'))
    """
    counts = ("", "one race", "two races", "three races", "four races", "five races", "six races")
    persons = shipped_schemas()["pl94-persons"]
    words = tuple(answer_words(persons, persons.query("cenrace")))
    races = ["total"]
    for row in race_matrix()[1:]:
        codes = row.nonzero()[0].tolist()
        numbers = {len(race_sets()[code].races) for code in codes}
        if len(numbers) > 1:
            races.append("two or more races")
        elif len(codes) > 1 or (numbers == {6} and counts[6] not in races):
            races.append(counts[numbers.pop()])
        else:
            races.append(words[codes[0]] + (" alone" if numbers == {1} else ""))
    by_origin = ["total", "Hispanic", "not Hispanic", *(f"not Hispanic, {one}" for one in races[1:])]
    quarters = ["total", "institutions"] + [""] * (TABLE_ITEMS["P5"] - 2)
    quarters[6] = "other group quarters"
    for item, kind in zip(GQ_ITEMS, gq_kinds()[1:], strict=True):
        quarters[item] = kind.label
    both = {"P1": tuple(races), "P2": tuple(by_origin), "P3": tuple(races), "P4": tuple(by_origin)}
    return {**both, "P5": tuple(quarters), "H1": ("total", "occupied", "vacant")}
