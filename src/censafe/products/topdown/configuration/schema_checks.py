"""Rules for schemas and passes in a TOML document; every breach is noted with its key."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from importlib import resources
from typing import Any, Final

from censafe.model import Attribute, ProtectedUnit, Recode, Schema
from censafe.model.cells.levels import LevelSets, LevelTable, column_values, integer
from censafe.model.entries import Problems, nearest
from censafe.model.topdown.histograms import EmptyCells, Facilities, HistogramSchema, Passes, PassList
from censafe.products.configuration.document import Document
from censafe.products.configuration.source import check_choice, listed, value_text

DATA: Final = resources.files("censafe.products.topdown.configuration").joinpath("data")
_KEYS: Final = ("record", "attributes", "recodes", "zeros", "facilities")
_FACILITY_KEYS: Final = ("attribute", "minimum", "largest", "largest_beside_total", "other_kinds")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}", re.ASCII)
_MOST_CELLS: Final = 2**31 - 1
_LEVEL_FILE: Final = re.compile(r"[A-Za-z0-9_-]+\.csv", re.ASCII)


def schema_text(name: str) -> str:
    """Text of a shipped file of schemas or levels; raises OSError where there is none."""
    return DATA.joinpath(name).read_text(encoding="utf-8")


def check_schemas(raw: object, key: str, problems: Problems) -> dict[str, HistogramSchema]:
    """Schemas by name; those that break a rule are left out."""
    schemas = {}
    for name, value in check_schema_table(raw, key, problems).items():
        _check_name(name, f"{key}.{name}", "schema", problems)
        schema = _check_schema(name, value, f"{key}.{name}", problems)
        if schema is not None:
            schemas[name] = schema
    return schemas


def check_schema_table(raw: object, key: str, problems: Problems) -> Mapping[str, Any]:
    """A table of keys; anything else is a problem and reads as empty."""
    if isinstance(raw, Mapping):
        return raw
    problems.add(key, f"{value_text(raw)} is not a table of keys")
    return {}


def named_table(document: Document, noun: str) -> Mapping[str, Any]:
    """The table of keys that a document has under a noun; empty without."""
    return check_schema_table(document.values.get(noun, {}), noun, document)


def check_entry(raw: object, key: str, allowed: Sequence[str], problems: Problems) -> Mapping[str, Any]:
    """A table of keys as :func:`check_schema_table` reads it; its unknown keys are problems."""
    table = check_schema_table(raw, key, problems)
    for name in table:
        if name not in allowed:
            problems.add(
                f"{key}.{name}",
                f"unknown key.{nearest(name, allowed)} Allowed are {listed(allowed)}",
            )
    return table


def _check_schema(name: str, raw: object, key: str, problems: Problems) -> HistogramSchema | None:
    before = len(problems.messages)
    table = check_entry(raw, key, _KEYS, problems)
    record = check_choice(table.get("record", "person"), f"{key}.record", ("person", "household"), problems)
    attributes = _check_attributes(table.get("attributes"), f"{key}.attributes", problems)
    if len(problems.messages) > before or record is None:
        return None
    schema = Schema(name, attributes)
    if schema.cells > _MOST_CELLS:
        problems.add(
            f"{key}.attributes", f"the schema has {schema.cells} cells; at most {_MOST_CELLS} are allowed"
        )
        return None
    tables: dict[str, LevelTable] = {}  # empty ones for attributes that name none
    for place, (item, attribute) in enumerate(zip(table["attributes"], attributes, strict=True)):
        where = f"{key}.attributes[{place}].table"
        tables[attribute.name] = (
            read_level_table(item["table"], where, attribute.levels, problems) if "table" in item else {}
        )
    sets = {item.name: LevelSets(item.levels, tables[item.name]) for item in attributes}
    recodes = _check_recodes(table.get("recodes", {}), f"{key}.recodes", schema, sets, problems)
    zeros = _check_zeros(table.get("zeros", []), f"{key}.zeros", schema, sets, problems)
    facilities = None
    if "facilities" in table:
        facilities = _check_facilities(table["facilities"], f"{key}.facilities", schema, recodes, problems)
    if len(problems.messages) > before:
        return None
    labels = _check_labels(table, key, schema, recodes, tables, problems)
    if len(problems.messages) > before:
        return None
    return HistogramSchema(schema, ProtectedUnit(record), recodes, zeros, facilities, labels, tables)


def read_level_table(raw: object, key: str, levels: int, problems: Problems) -> LevelTable:
    """The table of an attribute: columns with one value for every level, or a shipped CSV file with one row for every level."""
    columns: LevelTable = {}
    if isinstance(raw, Mapping):
        columns = {title: column_values(values) for title, values in raw.items()}
    elif not isinstance(raw, str) or not _LEVEL_FILE.fullmatch(raw):
        problems.add(
            key,
            f"{value_text(raw)} is neither columns, such as {{ size = [1, 2] }}, nor the name of a shipped table",
        )
    else:
        try:
            titles, *rows = csv.reader(schema_text(raw).splitlines())
            columns = dict(zip(titles, zip(*rows, strict=True), strict=True))
        except OSError:
            problems.add(key, f"there is no shipped table {raw}; give columns, such as {{ size = [1, 2] }}")
    counted = tuple(map(str, range(levels)))
    for title, values in columns.items():
        if len(values) != levels:
            problems.add(f"{key}.{title}", f"give {levels} values, one for each level")
        elif title == "level" and values != counted:
            problems.add(f"{key}.{title}", f"the column level must count from 0 to {levels - 1}")
    return columns


def _check_labels(
    table: Mapping[str, Any],
    key: str,
    schema: Schema,
    recodes: Mapping[str, Recode],
    tables: Mapping[str, LevelTable],
    problems: Problems,
) -> dict[str, tuple[str, ...]]:
    """Words for the levels of attributes, which may stand in their tables, and for the groups of recodes that have any."""
    named = [
        (
            item["name"],
            f"{key}.attributes[{place}].labels",
            item.get("labels", list(columns["label"]) if "label" in columns else None),
            size,
        )
        for place, (item, size) in enumerate(zip(table["attributes"], schema.shape, strict=True))
        for columns in [tables[item["name"]]]
    ]
    named += [
        (name, f"{key}.recodes.{name}.labels", table["recodes"][name].get("labels"), len(recode.groups))
        for name, recode in recodes.items()
    ]
    by_attribute = {}
    for name, where, labels, size in named:
        if labels is None:
            continue
        texts = (
            [text for text in labels if isinstance(text, str) and text] if isinstance(labels, list) else []
        )
        if len(texts) != size or len(set(texts)) < size or texts != labels:
            problems.add(where, f"give {size} different texts in quotes, one for every level or group")
            continue
        by_attribute[name] = tuple(texts)
    return by_attribute


def _check_name(name: str, key: str, what: str, problems: Problems) -> None:
    """Names stand in names of files and columns."""
    if not _NAME.fullmatch(name):
        problems.add(
            key, f"the name of {what} {value_text(name)} is not allowed; give letters, digits, - and _"
        )


def _check_attributes(raw: object, key: str, problems: Problems) -> tuple[Attribute, ...]:
    if not isinstance(raw, list) or not raw:
        problems.add(key, 'give a list of attributes such as { name = "votingage", levels = 2 }')
        return ()
    attributes: list[Attribute] = []
    for position, item in enumerate(raw):
        where = f"{key}[{position}]"
        table = check_entry(item, where, ("name", "levels", "labels", "table"), problems)
        name, levels = table.get("name"), integer(table.get("levels"))
        if not isinstance(name, str) or not levels:
            problems.add(where, "give a name in quotes and a whole number of levels, 1 or more")
            continue
        _check_name(name, where, "attribute", problems)
        try:
            attributes.append(Attribute(name, levels))
        except ValueError as error:
            problems.add(where, str(error))
    names = [attribute.name for attribute in attributes]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        problems.add(key, f"{listed(repeated)} named more than once; name every attribute once")
    return tuple(attributes)


def _check_recodes(
    raw: object, key: str, schema: Schema, sets: Mapping[str, LevelSets], problems: Problems
) -> dict[str, Recode]:
    recodes = {}
    for name, item in check_schema_table(raw, key, problems).items():
        where = f"{key}.{name}"
        table = check_entry(item, where, ("attribute", "groups", "by", "labels"), problems)
        attribute = check_choice(table.get("attribute"), f"{where}.attribute", schema.names, problems)
        _check_name(name, where, "recode", problems)
        if name in schema.names or name in ("total", "detailed"):
            problems.add(
                where, "a recode needs a name of its own, not that of an attribute, total or detailed"
            )
            continue
        if attribute is None:
            continue
        levels = schema.shape[schema.position(attribute)]
        if "by" in table and "groups" in table:
            problems.add(where, "give groups or by, not both")
        if "by" in table:
            groups = sets[attribute].read_by(table["by"], f"{where}.by", problems)
        else:
            groups = sets[attribute].read_groups(table.get("groups"), f"{where}.groups", problems)
        if groups:
            recode = Recode(name, attribute, groups, partition=True)
            covers = recode.covers(levels)
            recodes[name] = recode if covers else Recode(name, attribute, groups, partition=False)
    return recodes


def _check_zeros(
    raw: object, key: str, schema: Schema, sets: Mapping[str, LevelSets], problems: Problems
) -> tuple[EmptyCells, ...]:
    if not isinstance(raw, list):
        problems.add(key, f"{value_text(raw)} is not a list of rules")
        return ()
    rules = []
    for position, item in enumerate(raw):
        where = f"{key}[{position}]"
        table = check_entry(item, where, ("name", "when"), problems)
        name = table.get("name")
        when = check_entry(table.get("when", {}), f"{where}.when", schema.names, problems)
        if not isinstance(name, str) or not when:
            problems.add(where, "give a name in quotes and the levels, such as when = { hhgq = [3] }")
            continue
        levels = {
            attribute: sets[attribute].read(when[attribute], f"{where}.when.{attribute}", problems)
            for attribute in when
            if attribute in schema.names
        }
        rules.append(EmptyCells(name, levels))
    return tuple(rules)


def _check_facilities(
    raw: object, key: str, schema: Schema, recodes: Mapping[str, Recode], problems: Problems
) -> Facilities | None:
    """Bounds by kind of unit: by the levels of an attribute, or by the groups of a recode that leaves no level out."""
    table = check_entry(raw, key, _FACILITY_KEYS, problems)
    partitions = tuple(name for name, recode in recodes.items() if recode.partition)
    attribute = check_choice(
        table.get("attribute"), f"{key}.attribute", (*schema.names, *partitions), problems
    )
    if attribute is None:
        return None
    recode = recodes.get(attribute)
    levels = len(recode.groups) if recode is not None else schema.shape[schema.position(attribute)]
    minimum = _check_numbers(table.get("minimum"), f"{key}.minimum", levels, problems)
    largest = _check_numbers(table.get("largest"), f"{key}.largest", levels, problems)
    if any(low > high for low, high in zip(minimum, largest, strict=False)):
        problems.add(f"{key}.minimum", "the fewest persons of a unit cannot be above the most")
    total_limits = table.get("largest_beside_total", True)
    if not isinstance(total_limits, bool):
        problems.add(
            f"{key}.largest_beside_total", f"{value_text(total_limits)} is not allowed; give true or false"
        )
        return None
    others = table.get("other_kinds", [])
    if not isinstance(others, list) or not all(isinstance(name, str) for name in others):
        problems.add(f"{key}.other_kinds", 'give a list of names in quotes, such as ["vacant"]')
        return None
    return Facilities(attribute, minimum, largest, total_limits, tuple(others))


def _check_numbers(raw: object, key: str, levels: int, problems: Problems) -> tuple[int, ...]:
    numbers = [integer(item) for item in raw] if isinstance(raw, list) else []
    read = tuple(number for number in numbers if number is not None)
    if len(read) != levels or len(numbers) != levels:
        problems.add(key, f"give {levels} whole numbers of 0 or more, one for every level")
        return ()
    return read


def check_query(schema: HistogramSchema, text: str, key: str, problems: Problems) -> None:
    """Note a query that cannot be measured."""
    try:
        schema.query(text)
    except ValueError as error:
        problems.add(key, str(error))


def query_meaning(schema: HistogramSchema, text: str) -> frozenset[str]:
    """What a query keeps, however it is written."""
    names = frozenset(name.strip() for name in text.split("*"))
    return frozenset(schema.schema.names) if names == {"detailed"} else names


def check_passes(
    raw: object,
    key: str,
    names: tuple[str, ...],
    shares: Mapping[str, Mapping[str, Fraction]],
    schema: HistogramSchema,
    problems: Problems,
) -> dict[str, Passes]:
    """Passes by level; a level that no entry names gets one pass with all its queries."""
    if not isinstance(raw, list):
        problems.add(key, f"{value_text(raw)} is not a list of passes")
        return {}
    passes: dict[str, Passes] = {}
    for position, item in enumerate(raw):
        where = f"{key}[{position}]"
        table = check_entry(item, where, ("levels", "l2", "rounding"), problems)
        l2 = _check_pass_list(table.get("l2"), f"{where}.l2", schema, problems)
        rounding = _check_pass_list(table.get("rounding"), f"{where}.rounding", schema, problems)
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
            # a measured query that is in no pass would be paid for and never used
            named = {query_meaning(schema, text) for inner in l2 for group in inner for text in group}
            own = shares.get(name, {}).items()
            missing = [query for query, share in own if share and query_meaning(schema, query) not in named]
            if missing and l2:
                problems.add(
                    f"{where}.l2", f"{listed(missing)} is measured at {name} and in no pass; add it to one"
                )
    single = (("detailed",),)
    return {
        level: passes.get(level)
        or Passes(((tuple(q for q, s in shares.get(level, {}).items() if s),),), (single,))
        for level in names
    }


def _check_pass_list(raw: object, key: str, schema: HistogramSchema, problems: Problems) -> PassList:
    good = isinstance(raw, list) and bool(raw)
    outer = raw if isinstance(raw, list) else []
    good &= all(isinstance(inner, list) and inner for inner in outer)
    queries = [query for inner in outer if isinstance(inner, list) for query in inner]
    good &= all(isinstance(group, list) and group for group in queries)
    if not good or not all(isinstance(text, str) for group in queries for text in group):
        problems.add(key, 'give outer passes of inner passes of queries, such as [[["total"], ["detailed"]]]')
        return ()
    for text in dict.fromkeys(text for group in queries for text in group):
        check_query(schema, text, key, problems)
    return tuple(tuple(tuple(group) for group in inner) for inner in outer)
