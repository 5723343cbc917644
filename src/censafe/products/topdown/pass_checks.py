"""Rules for the order in which a level is estimated, and for the queries that it names."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from censafe.products.config_rules import Problems, check_choice, listed, shown
from censafe.products.topdown.config_types import Passes, PassList
from censafe.products.topdown.schema_checks import check_keys, check_table
from censafe.products.topdown.schemas import HistogramSchema

__all__ = ["Queries", "check_passes"]


class Queries:
    """Queries of one schema, each looked at once."""

    def __init__(self, schema: HistogramSchema) -> None:
        self._schema = schema
        self._wrong: dict[str, str] = {}

    def check(self, text: str, key: str, problems: Problems) -> None:
        """Note a query that cannot be measured."""
        if text not in self._wrong:
            try:
                self._schema.query(text)
            except ValueError as error:
                self._wrong[text] = str(error)
            else:
                self._wrong[text] = ""
        if self._wrong[text]:
            problems.add(key, self._wrong[text])

    def meaning(self, text: str) -> frozenset[str]:
        """What a query keeps, however it is written."""
        names = frozenset(name.strip() for name in text.split("*"))
        if names == {"detailed"}:
            return frozenset(self._schema.schema.names)
        return names


def check_passes(
    raw: object,
    key: str,
    names: tuple[str, ...],
    shares: Mapping[str, Mapping[str, Fraction]],
    words: Queries,
    problems: Problems,
) -> dict[str, Passes]:
    """Passes by level; a level that no entry names gets one pass with all its queries."""
    if not isinstance(raw, list):
        problems.add(key, f"{shown(raw)} is not a list of passes")
        return {}
    passes: dict[str, Passes] = {}
    for position, item in enumerate(raw):
        where = f"{key}[{position}]"
        table = check_table(item, where, problems)
        check_keys(table, where, ("levels", "l2", "rounding"), problems)
        l2 = _check_pass_list(table.get("l2"), f"{where}.l2", words, problems)
        rounding = _check_pass_list(table.get("rounding"), f"{where}.rounding", words, problems)
        if len(l2) != len(rounding):
            problems.add(where, "l2 and rounding must have the same number of outer passes")
        levels = table.get("levels")
        for level in levels if isinstance(levels, list) else [levels]:
            name = check_choice(level, f"{where}.levels", names, problems)
            if name is None:
                continue
            if name in passes:
                problems.add(f"{where}.levels", f"{name} has passes already; name every level once")
            passes[name] = Passes(l2, rounding)
            _require_named(shares.get(name, {}), l2, f"{where}.l2", name, words, problems)
    one = (("detailed",),)
    return {
        level: passes.get(level)
        or Passes(((tuple(q for q, s in shares.get(level, {}).items() if s),),), (one,))
        for level in names
    }


def _check_pass_list(raw: object, key: str, words: Queries, problems: Problems) -> PassList:
    good = isinstance(raw, list) and bool(raw)
    outer = raw if isinstance(raw, list) else []
    good &= all(isinstance(inner, list) and inner for inner in outer)
    queries = [query for inner in outer if isinstance(inner, list) for query in inner]
    good &= all(isinstance(group, list) and group for group in queries)
    if not good or not all(isinstance(text, str) for group in queries for text in group):
        problems.add(key, 'give outer passes of inner passes of queries, such as [[["total"], ["detailed"]]]')
        return ()
    for text in dict.fromkeys(text for group in queries for text in group):
        words.check(text, key, problems)
    return tuple(tuple(tuple(group) for group in inner) for inner in outer)


def _require_named(
    shares: Mapping[str, Fraction],
    passes: PassList,
    key: str,
    level: str,
    words: Queries,
    problems: Problems,
) -> None:
    """Every measured query must be in some pass, or its measurement would be paid for and never used."""
    named = {words.meaning(text) for inner in passes for group in inner for text in group}
    missing = [query for query, share in shares.items() if share and words.meaning(query) not in named]
    if missing and passes:
        problems.add(key, f"{listed(missing)} is measured at {level} and in no pass; add it to one")
