"""CONFIDENTIAL. Records of an own schema read as the ``[read]`` of a configuration says, for an attack with named attributes and areas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.attack.own.records import NamedLevels, OwnAreas, OwnLines, OwnRecords, crossed_table
from censafe.attack.tables import read_line_tables
from censafe.errors import ConfigError, DataError, UsageError
from censafe.geography.own_codes import AreaCodes
from censafe.model.cells.lines import query_table
from censafe.model.entries import nearest
from censafe.model.observer import Observer
from censafe.model.topdown.histograms import HistogramSchema
from censafe.population.records.layout import RecordHistogram, RecordLayout
from censafe.population.records.reader import require_readable
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.intake.intake import OwnIntake

MOST_VALUES: Final = 50_000_000
"""Lines of the table times areas, of one level."""
MOST_TYPES: Final = 200_000
_Ints = NDArray[np.int64]


@dataclass(frozen=True)
class AttackNames:
    """What the user names: quasi-identifiers and target by attribute or recode, and the level of the areas."""

    quasi: tuple[str, ...]
    target: str
    area: str


@dataclass(frozen=True, eq=False)
class OwnSchema:
    """The attacked table in the words of a configuration.

    Args:
        type_of_cell: type of every cell of the histogram, shape (cells,).
        housed: cells of persons in households, and not in quarters, shape (cells,).
        above: levels above the attacked one, from near to far, the root last.
    """

    config: TopdownConfig
    layout: RecordLayout
    histogram: RecordHistogram
    schema: HistogramSchema
    lines: OwnLines
    type_of_cell: _Ints
    housed: NDArray[np.bool_]
    above: tuple[str, ...]

    @staticmethod
    def of(
        config: TopdownConfig, names: AttackNames, queries: Sequence[str] = (), file: Path | None = None
    ) -> OwnSchema:
        """Check what the user named against a configuration, before anything is read.

        Args:
            queries: of which tables are attacked; without these and a file, the table of quasi-identifiers by target.
            file: TOML of further tables; None for none.
        """
        layout = config.read
        if layout is None:
            raise UsageError(
                f"{config.origin} has no table [read], by which records of an own schema are read; fix: add it, or leave out `configuration` for records "
                "in the layouts of the U.S. census"
            )
        _require_names(names)
        histogram = _histogram(config, layout, names)
        schema = config.histogram(histogram.name).schema
        quasi = tuple(_levels(schema, name) for name in names.quasi)
        target = _levels(schema, names.target)
        if len(target.labels) < 2:
            raise UsageError(
                f"target {target.name!r} has one level, so that there is nothing to infer; allowed: an attribute or recode of two levels and more"
            )
        attributes = [_attribute(schema, name) for name in (*names.quasi, names.target)]
        if len(set(attributes)) < len(attributes):
            twice = next(one for one in attributes if attributes.count(one) > 1)
            raise UsageError(
                f"target and quasi-identifiers: two of them are of the attribute {twice!r}, so that one follows from the other; fix: name it once"
            )
        below = layout.geography.levels
        place = _place_of_level(layout, names.area)
        above = (*reversed(below[:place]), config.levels[0].name)
        tables = [
            query_table(f"Q{number}", query, histogram.name, schema)
            for number, query in enumerate(queries, 1)
        ]
        if file is not None:
            tables += read_line_tables(file, histogram.name, lambda _: schema).values()
        types = prod(len(one.labels) for one in (*quasi, target))
        _require_types(types)
        tables = tables or [crossed_table(quasi, target, histogram.name)]
        levels = {
            one.name: schema.labels.get(one.name, tuple(map(str, range(one.levels))))
            for one in schema.schema.attributes
        }
        lines = OwnLines.of(below[place], quasi, target, tables, levels)
        _require_types(prod(lines.shape))
        combination = np.zeros((1,) * len(schema.schema.shape), np.int64)
        for name, class_of in lines.classes.items():
            along = [-1 if one == name else 1 for one in schema.schema.names]
            combination = combination * (int(class_of.max()) + 1) + class_of.reshape(along)
        types_of_cells = np.broadcast_to(combination, schema.schema.shape).reshape(-1)
        impossible = np.setdiff1d(np.arange(prod(lines.shape)), types_of_cells[schema.allowed()])
        lines = replace(lines, impossible=tuple(impossible.tolist()))
        return OwnSchema(config, layout, histogram, schema, lines, types_of_cells, _housed(schema), above)


def _require_names(names: AttackNames) -> None:
    if not names.quasi or not names.target or not names.area:
        missing = [word for word in ("quasi", "target", "area") if not getattr(names, word)]
        raise UsageError(
            f"{' and '.join(missing)}: missing; with a configuration name the quasi-identifiers that an attacker knows, the target that is looked for, "
            "and the level of the areas, such as sex and age, citizenship, and municipality"
        )
    if names.target in names.quasi:
        raise UsageError(
            f"target {names.target!r} is among the quasi-identifiers: what the attacker knows need not be inferred; fix: leave it out of one of them"
        )
    if len(set(names.quasi)) < len(names.quasi):
        raise UsageError("quasi: an attribute is named twice; fix: name each once")


def _known(schema: HistogramSchema) -> list[str]:
    """Attributes, and recodes that leave no level out."""
    return [*schema.schema.names, *(name for name, recode in schema.recodes.items() if recode.partition)]


def _histogram(config: TopdownConfig, layout: RecordLayout, names: AttackNames) -> RecordHistogram:
    """The first histogram of persons that has all attributes."""
    persons = [one for one in layout.histograms if one.table == "persons"]
    if not persons:
        raise UsageError(
            f"{config.origin} counts no persons, and persons are attacked; fix: give it a histogram of persons"
        )
    attributes = (*names.quasi, names.target)
    known = {one.name: _known(config.histogram(one.name).schema) for one in persons}
    for one in persons:
        if set(attributes) <= set(known[one.name]):
            return one
    every = list(dict.fromkeys(name for own in known.values() for name in own))
    unknown = [name for name in attributes if name not in every]
    if not unknown:
        raise UsageError(
            f"no histogram of persons has all of {', '.join(attributes)}; allowed: attributes of one histogram: "
            + "; ".join(f"{name}: {', '.join(own)}" for name, own in known.items())
        )
    for one in layout.histograms:
        if one.table == "households" and unknown[0] in _known(config.histogram(one.name).schema):
            raise UsageError(
                f"{unknown[0]!r} is an attribute of {one.name}, which counts households, and persons are attacked; allowed: {', '.join(every)}"
            )
    raise ConfigError(
        f"there is no attribute {unknown[0]!r} of persons.{nearest(unknown[0], every)} Allowed: {', '.join(every)}"
    )


def _attribute(schema: HistogramSchema, name: str) -> str:
    return schema.recodes[name].attribute if name in schema.recodes else name


def _require_types(types: int) -> None:
    if types > MOST_TYPES:
        raise UsageError(
            f"{types:,} types of persons are told apart by quasi-identifiers, target and tables; allowed: {MOST_TYPES:,}; fix: name fewer quasi-identifiers, "
            "recodes of them with fewer levels, or fewer queries"
        )


def _levels(schema: HistogramSchema, name: str) -> NamedLevels:
    attribute = _attribute(schema, name)
    factor = schema.query(name).factors[schema.schema.position(attribute)]
    labels = schema.labels.get(name, tuple(map(str, range(factor.groups))))
    return NamedLevels(name, labels, attribute, np.asarray(factor.of_level, np.int64))


def _place_of_level(layout: RecordLayout, word: str) -> int:
    """Place of a level below the root, by its name or the column of its codes."""
    rule = layout.geography
    names = [name.lower() for name in rule.levels]
    columns = [] if rule.lengths else [column.lower() for column in rule.columns]
    for known in (names, columns):
        if word.lower() in known:
            return known.index(word.lower())
    raise UsageError(
        f"area {word!r}: there is no such level.{nearest(word, rule.levels)} Allowed: {', '.join(rule.levels)}"
    )


def _housed(schema: HistogramSchema) -> NDArray[np.bool_]:
    """Cells of persons in units of a kind that may be empty, which are those of households; all cells where kinds are not known."""
    facilities = schema.facilities
    if facilities is None:
        return np.ones(schema.schema.cells, np.bool_)
    kind = schema.query(facilities.attribute).label
    return np.asarray(np.array(facilities.minimum)[kind] == 0)


def read_own_records(schema: OwnSchema, data: Path, observer: Observer) -> tuple[OwnRecords, AreaCodes]:
    """Records as the attack has them, and the codes of all areas."""
    with OwnIntake(data, schema.config, ReadOptions(observer=observer), schema.layout) as intake:
        read = intake.inspect(rows_of=schema.histogram.name)
    require_readable(read)
    if read.codes is None or read.rows is None:
        raise ValueError("a reading without findings that stop has areas and rows")
    leaves, geography = areas_of_codes(schema, read.codes)
    lines = schema.lines
    if len(lines.lines) * max(map(len, geography.codes.values())) > MOST_VALUES:
        raise DataError(
            f"the table {lines.names[0]} has {len(lines.lines):,} lines in {len(geography.geocodes):,} areas; allowed: {MOST_VALUES:,} values in all; "
            "fix: name a wider level as area, fewer quasi-identifiers, or recodes of them with fewer levels"
        )
    rows = read.rows
    household = np.where(schema.housed[rows.cell], rows.household, -1)
    return OwnRecords(
        lines, geography, leaves[rows.area], schema.type_of_cell[rows.cell], household
    ), read.codes


def areas_of_codes(schema: OwnSchema, codes: AreaCodes) -> tuple[_Ints, OwnAreas]:
    """Attacked area of every lowest one, and the areas of all levels from the attacked one up."""
    depth = [level.name for level in codes.levels].index(schema.lines.area)
    chosen = codes.levels[: depth + 1]
    texts, order = {}, {}
    for level in chosen:
        own = np.array(_codes(level.codes))
        order[level.name] = np.argsort(own)
        texts[level.name] = own[order[level.name]]
    root = schema.above[-1]
    lowest = chosen[-1]
    place = {root: np.zeros(len(lowest.geocodes), np.int64)}
    for level in chosen:
        length = len(level.geocodes[0])
        above = np.searchsorted(level.geocodes, lowest.geocodes[order[lowest.name]].astype(f"U{length}"))
        rank = np.empty(len(level.geocodes), np.int64)
        rank[order[level.name]] = np.arange(len(rank))
        place[level.name] = rank[above]
    texts[root] = np.array([root])
    rank = np.empty(len(lowest.geocodes), np.int64)
    rank[order[lowest.name]] = np.arange(len(rank))
    leaves = codes.levels[-1].geocodes.astype(f"U{len(lowest.geocodes[0])}")
    levels = (lowest.name, *schema.above)
    geography = OwnAreas(levels, texts, place, lowest.geocodes[order[lowest.name]])
    return rank[np.searchsorted(lowest.geocodes, leaves)], geography


def _codes(paths: Sequence[tuple[str, ...]]) -> list[str]:
    """The last code of every area where these differ, otherwise all codes from the widest level on.

    Example:
        >>> _codes([("a", "1"), ("b", "2")]), _codes([("a", "1"), ("b", "1")])
        (['1', '2'], ['a/1', 'b/1'])
    """
    last = [path[-1] for path in paths]
    if len(set(last)) == len(last):
        return last
    joined = ["/".join(path) for path in paths]
    repeated = [one for one, other in pairwise(sorted(joined)) if one == other]
    if repeated:
        raise DataError(
            f"{len(repeated):,} areas have equal codes once those above them are put in front with '/'; fix: leave '/' out of the codes"
        )
    return joined
