"""Rules for TopDown configurations, checked one by one and reported together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final

from censafe.geography.geocodes import ALPHABETS, GeocodeForm
from censafe.geography.spines.prim import PRIM_LEVELS
from censafe.model import Definition
from censafe.model.cells.levels import integer
from censafe.model.entries import Problems, nearest
from censafe.model.topdown.histograms import GeoLevel, HistogramSchema, MeasuredHistogram
from censafe.privacy.loss.budget import NotFinite
from censafe.products.configuration.document import Document
from censafe.products.configuration.source import check_budget, check_choice, listed, value_text
from censafe.products.topdown.configuration.keys import LOSSES
from censafe.products.topdown.configuration.schema_checks import (
    check_entry,
    check_passes,
    check_query,
    check_schema_table,
    check_schemas,
    named_table,
    query_meaning,
)
from censafe.products.topdown.configuration.shipped import shipped_schemas

LEVEL_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]*(_[A-Za-z0-9-]+)*", re.ASCII)
_DEFINITIONS: Final = {"rho": Definition.ZCDP, "epsilon": Definition.PURE}


def check_levels(document: Document, spine: str) -> tuple[GeoLevel, ...]:
    """The levels of the geography, each with a longer prefix than the one above it, an area of a crosswalk, or made by the spine."""
    if not document.has("levels"):
        return ()
    raw = document.values["levels"]
    if not isinstance(raw, list) or not raw:
        document.add(
            "levels", 'give a list of levels, the widest first, such as { name = "State", prefix = 2 }'
        )
        return ()
    levels: list[GeoLevel] = []
    for position, item in enumerate(raw):
        level = _check_level(item, f"levels[{position}]", levels, document)
        levels += [level] if level is not None else []
    _refuse_repeated([level.name for level in levels], "levels", document)
    prefixed = [(level.name, level.prefix) for level in levels if level.prefix is not None]
    for (upper, above), (lower, below) in pairwise(prefixed):
        if below <= above:
            document.add("levels", f"{lower} must have a longer prefix than {upper}, which stands above it")
    own = PRIM_LEVELS if spine == "prim" else ()
    derived = [level.name for level in levels if level.prefix is None and level.name not in own]
    if derived:
        document.add(
            "levels",
            f"{listed(derived)} without a prefix: give the length of the prefix, 0 or more; only spine = prim makes levels of its own, "
            f"those of {listed(PRIM_LEVELS)}",
        )
    return tuple(levels)


_LEVEL_KEYS: Final = ("name", "prefix", "code", "crosswalk", "digits")


def _check_level(raw: object, where: str, above: Sequence[GeoLevel], problems: Problems) -> GeoLevel | None:
    """One level; the codes of areas of crosswalks above it are part of its prefix."""
    table = check_entry(raw, where, _LEVEL_KEYS, problems)
    name, prefix = table.get("name"), integer(table.get("prefix"))
    if not isinstance(name, str) or not LEVEL_NAME.fullmatch(name) or ("prefix" in table and prefix is None):
        problems.add(
            where, "give a name of letters, digits, - and _, and the length of the prefix, 0 or more"
        )
        return None
    code, column = table.get("code", ""), table.get("crosswalk", "")
    if not isinstance(code, str) or (code and (prefix or column)):
        problems.add(f"{where}.code", "only a level of prefix 0 has a code of its own, text in quotes")
        return None
    if "crosswalk" not in table and "digits" not in table:
        areas = sum(level.digits for level in above)
        return GeoLevel(name, prefix + areas if prefix else prefix, code)
    digits = integer(table.get("digits"))
    if not isinstance(column, str) or not column or not digits or "prefix" in table:
        problems.add(
            where,
            "a level of a crosswalk has the name of its column and the length of its codes, 1 or more, such as "
            '{ name = "Service_Area", crosswalk = "service_area", digits = 3 }, and no prefix',
        )
        return None
    if not above or above[-1].prefix is None:
        problems.add(
            where, "above a level of a crosswalk stands a level with a prefix, or another of a crosswalk"
        )
        return None
    return GeoLevel(name, above[-1].prefix + digits, "", column, digits)


def check_geocodes(
    document: Document, levels: Sequence[GeoLevel], reader: str | None, spine: str
) -> str | None:
    """Which characters geocodes have; with letters, blocks come from histograms and the spine is the standard one."""
    word = document.read("geocodes")
    if word is None or not levels:
        return word
    lowest = levels[-1]
    if lowest.prefix is None:
        document.add("levels", f"{lowest.name}, the lowest level, needs a prefix")
        return word
    form = GeocodeForm(lowest.prefix, ALPHABETS[word])
    if form.length > form.longest:
        document.add(
            "levels", f"{lowest.name} has codes of {form.words}; at most {form.longest} are allowed for them"
        )
    crossed = [level.name for level in levels if level.crosswalk]
    if crossed and lowest.crosswalk:
        document.add("levels", f"{lowest.name}, the lowest level, needs a prefix, not a crosswalk")
    if word != "digits" or crossed:
        for key, value, allowed in (("reader", reader, "histogram"), ("spine", spine, "standard")):
            if value not in (allowed, None):
                document.add(
                    "geocodes",
                    f"{' and '.join(crossed) or word} is for codes of your own; {key} = {value} needs the codes of the census",
                )
    return word


def check_loss(document: Document) -> tuple[Definition | None, Mapping[str, Any]]:
    """Which loss is spent, and the raw losses by histogram; the key ``""`` holds a loss without a name."""
    nouns = [noun for noun in LOSSES if noun in document.values]
    if len(nouns) != 1:
        breach = "both are there" if nouns else "neither is there"
        document.add(
            "rho, epsilon", f"give one of them, rho for Gaussian noise or epsilon for geometric; {breach}"
        )
        return None, {}
    raw = document.values[nouns[0]]
    losses = raw if isinstance(raw, Mapping) else {"": raw}
    return _DEFINITIONS[nouns[0]], {name: (nouns[0], value) for name, value in losses.items()}


def check_histograms(
    document: Document, levels: tuple[GeoLevel, ...], root: str | None, losses: Mapping[str, Any]
) -> tuple[MeasuredHistogram, ...]:
    """The histograms that are measured, in the order of ``measure``; all that stand in the file are checked."""
    if not document.has("histograms"):
        return ()
    table = check_schema_table(document.values["histograms"], "histograms", document)
    own = check_schemas(document.values.get("schemas", {}), "schemas", document)
    schemas = {**shipped_schemas(), **own}
    for name in sorted(set(own) & set(shipped_schemas())):
        document.add(f"schemas.{name}", "a shipped schema has this name; choose another")
    names = tuple(table)
    for noun in ("level_shares", "query_shares"):
        check_entry(document.values.get(noun, {}), noun, names, document)
    histograms = {
        name: _check_histogram(name, raw, document, levels, schemas, losses) for name, raw in table.items()
    }
    for name in losses:
        if name not in names and (name or len(names) != 1):
            noun = losses[name][0]
            message = (
                f"there is no such histogram.{nearest(name, names)}"
                if name
                else "give one number a histogram"
            )
            document.add(f"{noun}.{name}" if name else noun, f"{message} Histograms are {listed(names)}")
    chosen = _check_measure(document, names)
    measured = tuple(histogram for name in chosen if (histogram := histograms[name]) is not None)
    _refuse_repeated([histogram.folder for histogram in measured], "histograms.NAME.measurements", document)
    order = [level.name for level in levels]
    for histogram in measured:  # a run must not start below the level whose totals make its promise
        exact = histogram.exact_totals
        if exact and root and order.index(exact) < order.index(root):
            document.add(
                "root",
                f"{root} is below {exact}, whose totals are the exact ones of histograms.{histogram.name}; "
                "start there or above",
            )
    return measured


def _check_measure(document: Document, names: tuple[str, ...]) -> tuple[str, ...]:
    raw = document.values.get("measure", list(names))
    if not isinstance(raw, list) or not raw:
        document.add("measure", f"{value_text(raw)} is not a list of histograms; allowed are {listed(names)}")
        return ()
    read = [check_choice(item, "measure", names, document) for item in raw]
    _refuse_repeated([name for name in read if name], "measure", document)
    return tuple(name for name in names if name in read)


_HISTOGRAM_KEYS: Final = ("schema", "exact_totals", "measurements", "passes", "constraints", "informed")


def _check_histogram(
    name: str,
    raw: object,
    document: Document,
    levels: tuple[GeoLevel, ...],
    schemas: Mapping[str, HistogramSchema],
    losses: Mapping[str, Any],
) -> MeasuredHistogram | None:
    before, key = len(document.messages), f"histograms.{name}"
    if not LEVEL_NAME.fullmatch(name):
        document.add(key, "the name of a histogram has letters, digits, - and _")
    table = check_entry(raw, key, _HISTOGRAM_KEYS, document)
    names = tuple(level.name for level in levels)
    chosen = check_choice(table.get("schema"), f"{key}.schema", tuple(schemas), document)
    exact = None
    if "exact_totals" in table:
        exact = check_choice(table["exact_totals"], f"{key}.exact_totals", names, document)
    folder = table.get("measurements", name)
    if "measurements" in table and not (isinstance(folder, str) and LEVEL_NAME.fullmatch(folder)):
        document.add(f"{key}.measurements", "the name of a folder has letters, digits, - and _")
    loss = _check_histogram_loss(name, losses, document)
    level_shares = _check_level_shares(document, name, names)
    if chosen is None:
        return None
    schema = schemas[chosen]
    shares = named_table(document, "query_shares").get(name, {})
    query_shares = _check_query_shares(shares, f"query_shares.{name}", names, schema, document)
    passes = check_passes(table.get("passes", []), f"{key}.passes", names, query_shares, schema, document)
    if len(document.messages) > before or loss is None:
        return None
    measured = {level: {q: s for q, s in query_shares[level].items() if s} for level in names}
    return MeasuredHistogram(
        name,
        schema,
        loss,
        exact,
        {n: level_shares[n] for n in names},
        measured,
        passes,
        folder,
    )


def _check_level_shares(document: Document, name: str, names: tuple[str, ...]) -> dict[str, Fraction]:
    key = f"level_shares.{name}"
    shares = _check_shares(named_table(document, "level_shares").get(name, {}), key, document)
    _require_levels(shares, names, key, "has no budget; give it a share above 0", document)
    for level, share in shares.items():
        if share == 0:
            document.add(f"{key}.{level}", "a level without budget cannot be estimated; give it more than 0")
    return shares


def _check_histogram_loss(name: str, losses: Mapping[str, Any], problems: Problems) -> Fraction | None:
    noun, raw = losses.get(name, losses.get("", (None, None)))
    if noun is None:
        if losses:
            problems.add(
                f"histograms.{name}", f"it has no loss; give {next(iter(losses.values()))[0]}.{name}"
            )
        return None
    key = f"{noun}.{name}" if name in losses else noun
    loss = check_budget(raw, key, problems, infinite=False, text=True)
    if loss == 0:
        problems.add(key, "0 measures nothing; give a number above 0, or leave the histogram out of measure")
    return None if isinstance(loss, NotFinite) else loss


def _check_shares(raw: object, key: str, problems: Problems) -> dict[str, Fraction]:
    """Shares of 0 or more that sum to exactly 1."""
    table = check_schema_table(raw, key, problems)
    shares, before = {}, len(problems.messages)
    for name, value in table.items():
        share = check_budget(value, f"{key}.{name}", problems, infinite=False, text=True)
        if isinstance(share, Fraction):
            shares[name] = share
    total = sum(shares.values(), Fraction(0))
    if table and len(problems.messages) == before and total != 1:
        problems.add(key, f"the shares sum to {total}, not to 1")
    return shares


def _require_levels(
    levels: Iterable[str], names: tuple[str, ...], key: str, missing: str, problems: Problems
) -> None:
    """Every level must be there, and nothing else."""
    there = tuple(levels)
    for name in names:
        if name not in there:
            problems.add(f"{key}.{name}", f"the level {missing}")
    for name in there:
        if name not in names:
            problems.add(
                f"{key}.{name}", f"there is no such level.{nearest(name, names)} Levels are {listed(names)}"
            )


def _check_query_shares(
    raw: object, key: str, names: tuple[str, ...], schema: HistogramSchema, problems: Problems
) -> dict[str, dict[str, Fraction]]:
    table = check_schema_table(raw, key, problems)
    _require_levels(table, names, key, "measures nothing; give it the shares of its queries", problems)
    by_level = {}
    for level, item in table.items():
        where = f"{key}.{level}"
        by_level[level] = _check_shares(item, where, problems)
        if not by_level[level]:
            problems.add(where, "the level measures nothing; give it the shares of its queries")
        for query in by_level[level]:
            check_query(schema, query, f"{where}.{query}", problems)
        for count in Counter(query_meaning(schema, query) for query in by_level[level]).values():
            if count > 1:
                problems.add(where, "a query is there twice, its names in another order; measure it once")
    return by_level


def _refuse_repeated(names: Sequence[str], key: str, problems: Problems) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        problems.add(key, f"{listed(repeated)} named more than once; name each once")
