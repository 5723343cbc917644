"""The table ``[read]`` of a configuration: files of records of anyone, how columns become levels, and where areas stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final, cast

from censafe.geography.spines.tree import LevelRule
from censafe.model import ProtectedUnit, Recode
from censafe.model.cells.levels import integer
from censafe.model.topdown.histograms import GeoLevel, HistogramSchema, MeasuredHistogram
from censafe.population.records.layout import (
    ENCODINGS,
    RECORDS,
    TABLES,
    AreaRule,
    AttributeRule,
    Expression,
    RecordHistogram,
    RecordLayout,
    Table,
    TextForm,
    UnitRule,
)
from censafe.products.configuration.document import Document
from censafe.products.configuration.source import check_choice, listed, value_text
from censafe.products.topdown.configuration.checks import LEVEL_NAME
from censafe.products.topdown.configuration.schema_checks import check_entry, check_schema_table

_KEYS: Final = (
    "persons", "households", "key", "delimiter", "encoding", "missing", "decimal", "geography", "lengths", "areas", "attributes", "units", "where",
)  # fmt: skip
_RULE_KEYS: Final = ("column", "expression", "as", "dates", "bands", "values", "other")
_LEVEL_KEYS: Final = ("name", "prefix", "code", "digits")
_AGE: Final = "age_on:"
_USUAL_DIGITS: Final = 4
_MOST_DIGITS: Final = 18
_AREAS: Final = (
    f'the list of the lowest areas is public input: give areas = "areas.csv", a file with the columns of geography and a row for every area, those without '
    f'records included; or areas = "{RECORDS}", which publishes exactly which areas have records'
)


def check_own_levels(document: Document) -> tuple[GeoLevel, ...]:
    """Levels of which each below the root is a column of ``read.geography``; prefixes follow from the digits of their numbers."""
    raw = document.values.get("levels")
    if not isinstance(raw, list) or not raw:
        document.add(
            "levels",
            'give a list of levels, the widest first, such as { name = "Country", prefix = 0, code = "X" }, { name = "Region" }',
        )
        return ()
    tables = [check_entry(item, f"levels[{place}]", _LEVEL_KEYS, document) for place, item in enumerate(raw)]
    first = 1 if "prefix" in tables[0] else 0
    usual = level_digits(len(tables) - first)
    levels: list[GeoLevel] = []
    length = 0
    for place, table in enumerate(tables):
        where, name = f"levels[{place}]", table.get("name")
        if not isinstance(name, str) or not LEVEL_NAME.fullmatch(name):
            document.add(where, "give a name of letters, digits, - and _")
            continue
        if name in [level.name for level in levels]:
            document.add(where, f"{name} named more than once; name each once")
            continue
        if place < first:
            if integer(table["prefix"]) != 0 or "digits" in table:
                document.add(
                    where,
                    "the root has prefix = 0; with [read] no other level has a prefix, since geography names its column",
                )
            code = table.get("code", "")
            levels.append(GeoLevel(name, 0, code if isinstance(code, str) else ""))
            continue
        digits = integer(table.get("digits", Fraction(usual[place - first])))
        if "prefix" in table or "code" in table or not digits:
            document.add(
                where,
                "a level of a column of geography has a name, and digits of the numbers of its areas, 1 or more, where the usual ones do not do",
            )
            continue
        length += digits
        levels.append(GeoLevel(name, length))
    if length > _MOST_DIGITS:
        document.add("levels", f"geocodes of {length} digits; at most {_MOST_DIGITS} are allowed for them")
    return tuple(levels)


def level_digits(levels: int) -> list[int]:
    """Digits of the numbers of areas by level: four, six at the lowest, fewer where many levels share 18.

    Example:
        >>> [level_digits(levels) for levels in (1, 3, 5)]
        [[6], [4, 4, 6], [3, 3, 3, 3, 6]]
    """
    if levels < 1:
        return []
    upper = min(_USUAL_DIGITS, (_MOST_DIGITS - 6) // max(levels - 1, 1))
    return [upper] * (levels - 1) + [6] if upper > 1 else [max(1, _MOST_DIGITS // levels)] * levels


def _digits(levels: Sequence[GeoLevel]) -> tuple[int, ...]:
    """Digits of the number of an area of each level below the root."""
    return tuple(below - above for above, below in pairwise([0, *(level.prefix or 0 for level in levels)]))


def _lists_of_texts(value: object) -> list[list[str]]:
    """A list of lists of texts; empty where it is something else."""
    lists = value if isinstance(value, list) else []
    if not all(isinstance(one, list) and all(isinstance(text, str) for text in one) for one in lists):
        return []
    return lists


class ReadTable:
    """Reads the table once levels and histograms are known."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._table = check_entry(document.values.get("read", {}), "read", _KEYS, document)
        if "reader" in document.values:
            document.add("reader", "leave it out: [read] says what is read")

    def layout(
        self, levels: Sequence[GeoLevel], root: str | None, histograms: Sequence[MeasuredHistogram]
    ) -> RecordLayout | None:
        """The layout of the files; None where a rule is broken."""
        document, before = self._document, len(self._document.messages)
        files: dict[Table, str] = {}
        for table in TABLES:
            if table in self._table and (pattern := self._text(table)):
                files[table] = pattern
        tables: list[Table] = []
        for histogram in histograms:
            tables.append("persons" if histogram.schema.record is ProtectedUnit.PERSON else "households")
            if tables[-1] not in files:
                document.add(
                    f"read.{tables[-1]}",
                    f'give the file with the records of histograms.{histogram.name}, such as {tables[-1]} = "{tables[-1]}.csv"',
                )
        key = self._text("key") if "key" in self._table else ""
        form, geography = self._form(), self._geography(levels)
        attributes, where = self._named(histograms)
        records = []
        for histogram, table in zip(histograms, tables, strict=True):
            if histogram.name in where and table == "persons":
                document.add(
                    f"read.where.{histogram.name}",
                    "only histograms of households are counted by a condition; every person is counted: give those who do not matter a level of their own (other)",
                )
            condition = (
                self._expression(where[histogram.name], f"read.where.{histogram.name}")
                if histogram.name in where
                else None
            )
            rules = tuple(
                replace(
                    self._attribute(histogram.schema, attribute.name, attributes.get(attribute.name, {})),
                    where=condition,
                )
                for attribute in histogram.schema.schema.attributes
            )
            empty = ~histogram.schema.allowed()
            records.append(
                RecordHistogram(
                    histogram.name,
                    table,
                    histogram.schema.schema,
                    rules,
                    histogram.schema.kind_attribute or "",
                    empty,
                )
            )
        units = self._units(histograms, files, key, attributes)
        if len(document.messages) > before or geography is None:
            return None
        names = [level.name for level in levels]
        rules_of_levels = tuple(
            LevelRule(level.name, level.prefix or 0, level.code)
            for level in levels[names.index(root) if root in names else 0 :]
        )
        used: set[str] = {
            *tables,
            *([units.table] if units else []),
            *(["households"] if key and "households" in files else []),
        }
        unused = [name for name in files if name not in used]
        if unused and "measure" not in self._document.values:
            document.add(
                f"read.{unused[0]}",
                "no histogram counts these records, and no key joins them; leave the file out, or give key",
            )
        return RecordLayout(
            {name: pattern for name, pattern in files.items() if name in used},
            key,
            form,
            geography,
            tuple(records),
            units,
            rules_of_levels,
        )

    def _named(self, histograms: Sequence[MeasuredHistogram]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Tables by attribute, and conditions by histogram; other names are problems."""
        document = self._document
        attributes, where = (
            check_schema_table(self._table.get(name, {}), f"read.{name}", document)
            for name in ("attributes", "where")
        )
        for name in where:
            if name not in (all_names := list(self._document.values.get("histograms", {}))):
                document.add(
                    f"read.where.{name}", f"there is no such histogram; histograms are {listed(all_names)}"
                )
        known = {attribute for one in histograms for attribute in one.schema.schema.names}
        known |= set(_attribute_names(self._document.values.get("schemas")))
        for name in attributes:
            if name not in known:
                document.add(
                    f"read.attributes.{name}",
                    f"no histogram has this attribute; attributes are {listed(sorted(known))}",
                )
        return attributes, where

    def _text(self, name: str) -> str:
        value = self._table.get(name)
        if not isinstance(value, str) or not value.strip():
            self._document.add(f"read.{name}", f"{value_text(value)} is not allowed; give text in quotes")
            return ""
        return value.strip()

    def _form(self) -> TextForm:
        document, table = self._document, self._table
        delimiter = table.get("delimiter")
        if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1):
            document.add(
                "read.delimiter",
                f'{value_text(delimiter)} is not one character in quotes, such as ";"; leave it out and it is found',
            )
            delimiter = None
        encoding = (
            check_choice(table.get("encoding", ENCODINGS[0]), "read.encoding", ENCODINGS, document)
            or ENCODINGS[0]
        )
        decimal = check_choice(table.get("decimal", "."), "read.decimal", (".", ","), document) or "."
        missing = table.get("missing", [""])
        if not isinstance(missing, list) or not all(isinstance(text, str) for text in missing):
            document.add(
                "read.missing", f'{value_text(missing)} is not a list of texts in quotes, such as ["", "NA"]'
            )
            missing = [""]
        return TextForm(delimiter, encoding, tuple(dict.fromkeys(["", *missing])), decimal)

    def _geography(self, levels: Sequence[GeoLevel]) -> AreaRule | None:
        document, table = self._document, self._table
        own = [level for level in levels if level.prefix]
        raw = table.get("geography")
        if isinstance(raw, Mapping):
            return self._two_trees(own, raw)
        columns = [raw] if isinstance(raw, str) else raw
        if (
            not isinstance(columns, list)
            or not columns
            or not all(isinstance(one, str) and one for one in columns)
            or len(set(columns)) < len(columns)
        ):
            document.add(
                "read.geography",
                'give the columns with the codes of areas, from coarse to fine, such as ["region", "municipality"]',
            )
            return None
        lengths: tuple[int, ...] = ()
        if "lengths" in table:
            raw_lengths = table["lengths"] if isinstance(table["lengths"], list) else []
            lengths = tuple(number for item in raw_lengths if (number := integer(item)))
            if (
                len(columns) != 1
                or len(lengths) != len(own)
                or len(raw_lengths) != len(lengths)
                or any(below <= above for above, below in pairwise(lengths))
            ):
                document.add(
                    "read.lengths",
                    f"give the growing lengths of the codes of {listed([level.name for level in own])} in the one column of geography, such as [2, 5, 8]",
                )
                return None
        elif len(columns) != len(own):
            document.add(
                "read.geography",
                f"{len(columns)} columns for {len(own)} levels below the root ({listed([level.name for level in own])}); give one for each, or one and lengths",
            )
            return None
        areas = table.get("areas")
        if not isinstance(areas, str) or not areas.strip():
            document.add("read.areas", _AREAS)
            return None
        return AreaRule(
            tuple(level.name for level in own), tuple(columns), _digits(own), (areas.strip(),), lengths
        )

    def _two_trees(self, own: Sequence[GeoLevel], raw: Mapping[str, Any]) -> AreaRule | None:
        """Areas of two trees that do not nest: the first is the spine, and its lowest areas are cut by those of the other."""
        document, table = self._document, self._table
        trees = _lists_of_texts(check_entry(raw, "read.geography", ("trees",), document).get("trees"))
        columns = [name for tree in trees for name in tree]
        if len(trees) != 2 or not all((*trees, *columns)) or len(set(columns)) < len(columns):
            document.add(
                "read.geography.trees",
                'give two lists of columns, each from coarse to fine, such as [["region", "municipality"], ["grid10", "grid1"]]; the first is the spine. '
                "Areas of a third geography are a list for --areas",
            )
            return None
        spine, other = trees
        names = [level.name for level in own]
        if len(names) != len(spine) + 1:
            document.add(
                "levels",
                f"{len(names)} levels below the root ({listed(names)}) for the columns {listed(spine)}; give one for each, and a lowest one for the parts "
                f"of {spine[-1]} in one area of {other[-1]}",
            )
            return None
        if taken := sorted({*names} & {*other}):
            document.add(
                "read.geography.trees",
                f"{taken[0]} is the name of a level; areas off the spine have the names of their columns: give the level another name",
            )
            return None
        if "lengths" in table:
            document.add("read.lengths", "codes of two trees stand in a column each; leave lengths out")
        areas = table.get("areas")
        (lists,) = _lists_of_texts([areas if isinstance(areas, list) else [areas]]) or [[]]
        if len(lists) not in (1, len(trees)) or not all(one.strip() for one in lists):
            document.add(
                "read.areas",
                f'{_AREAS}; or a list for each tree, areas = ["municipalities.csv", "grid.csv"], whose areas all may lie in each other',
            )
            return None
        return AreaRule(
            tuple(names),
            (*spine, other[-1]),
            _digits(own),
            tuple(one.strip() for one in lists),
            (),
            tuple(other),
        )

    def _expression(self, raw: object, key: str) -> Expression | None:
        from censafe.population.records.expressions import check_expression

        if not isinstance(raw, str) or not raw.strip():
            self._document.add(key, f"{value_text(raw)} is not an expression in quotes")
            return None
        try:
            return check_expression(raw)
        except ValueError as error:
            self._document.add(
                key,
                f"the expression has {error}; allowed: one expression of functions of the columns of the row, such as upper(sex) or income::DOUBLE / 12",
            )
            return None

    def _attribute(self, schema: HistogramSchema, name: str, raw: object) -> AttributeRule:
        levels = schema.schema.shape[schema.schema.position(name)]
        return self._rule(name, f"read.attributes.{name}", raw, levels, schema.labels.get(name, ()))

    def _rule(self, name: str, key: str, raw: object, levels: int, labels: Sequence[str]) -> AttributeRule:
        """How a column becomes one of some levels, each by its label or number."""
        document = self._document
        table = check_entry(raw, key, _RULE_KEYS, document)
        column = table.get("column", name)
        source: str | Expression = column if isinstance(column, str) and column else name
        if source is not column or ("column" in table and "expression" in table):
            document.add(key, "give the name of a column, or an expression, not both")
        if "expression" in table:
            source = self._expression(table["expression"], f"{key}.expression") or name
        known = dict(zip(labels, range(levels), strict=False))
        if not any(label.isdecimal() for label in labels):  # a number would be taken for another level
            known |= {str(level): level for level in range(levels) if str(level) not in known}
        born = self._day(table, key)
        bands = self._bands(table, key, levels)
        values = {} if bands or born is not None else dict(known)
        for text, level in check_schema_table(table.get("values", {}), f"{key}.values", document).items():
            if (number := self._level(level, known, f"{key}.values.{text}")) is not None:
                values[text.strip()] = number
        other = self._level(table["other"], known, f"{key}.other") if "other" in table else None
        without = set(range(len(bands), levels)) - {*values.values(), other} if bands else set()
        if without:
            document.add(
                f"{key}.bands",
                f"give {levels} rising numbers, the least of each level; or name the {len(without)} levels after the last in values or other",
            )
        dates = table.get("dates", "")
        if not isinstance(dates, str) or (dates and (born is None or "%" not in dates)):
            document.add(
                f"{key}.dates",
                'give the form of the dates as strptime has it, such as "%d/%m/%Y", beside as = "age_on:..."',
            )
            dates = ""
        return AttributeRule(name, source, levels, tuple(values.items()), born, dates, bands, other)

    def _level(self, raw: object, known: Mapping[str, int], key: str) -> int | None:
        number = integer(raw)
        text = str(number) if number is not None else raw
        if isinstance(text, str) and text in known:
            return known[text]
        self._document.add(
            key, f"{value_text(raw)} is no level; give a label or number of one: {listed(list(known))}"
        )
        return None

    def _day(self, table: Mapping[str, Any], key: str) -> date | None:
        if "as" not in table:
            return None
        text = table["as"]
        try:
            if isinstance(text, str) and text.startswith(_AGE):
                return date.fromisoformat(text.removeprefix(_AGE))
        except ValueError:
            pass
        self._document.add(
            f"{key}.as",
            f'{value_text(text)} is not allowed; give completed years on a day, such as as = "{_AGE}2025-12-31"',
        )
        return None

    def _bands(self, table: Mapping[str, Any], key: str, levels: int) -> tuple[Fraction, ...]:
        if "bands" not in table:
            return ()
        raw = table["bands"] if isinstance(table["bands"], list) else []
        numbers = tuple(
            Fraction(item) for item in raw if isinstance(item, Fraction | int) and not isinstance(item, bool)
        )
        if (
            not numbers
            or len(numbers) != len(raw)
            or any(above >= below for above, below in pairwise(numbers))
        ):
            self._document.add(
                f"{key}.bands",
                f"give {levels} rising numbers, the least of each level, such as [0, 15, 25]; what is smaller than the first is a finding",
            )
            return ()
        if len(numbers) > levels:
            self._document.add(f"{key}.bands", f"give {levels} rising numbers, the least of each level")
            return ()
        return numbers

    def _units(
        self,
        histograms: Sequence[MeasuredHistogram],
        files: Mapping[Table, str],
        key: str,
        attributes: Mapping[str, Any],
    ) -> UnitRule | None:
        """Counts of units of the kinds that bound records: rows of households, or the keys of the persons."""
        document = self._document
        bounded = next((one.schema for one in histograms if one.schema.facilities is not None), None)
        if bounded is None or bounded.facilities is None:
            if "units" in self._table:
                document.add(
                    "read.units", "no schema has facilities, so that no units are counted; leave it out"
                )
            return None
        table = check_entry(self._table.get("units", {}), "read.units", ("of", *_RULE_KEYS), document)
        usual = "households" if "households" in files else "persons"
        of = (
            check_choice(table.get("of", usual), "read.units.of", ("households", "persons"), document)
            or usual
        )
        if (of == "persons" and not key) or of not in files:
            document.add(
                "read.units", "the schema has facilities, whose numbers are counted: give households, a file with one row a unit, or key, a column that all persons of "
                "a unit share; or take facilities out of the schema"
            )  # fmt: skip
            return None
        facilities, kind = bounded.facilities, bounded.kind_attribute or ""
        recode = bounded.recodes.get(facilities.attribute)
        own = {name: value for name, value in table.items() if name != "of"}
        kinds = len(facilities.minimum) + len(facilities.other_kinds)
        if of == "persons" and own:
            document.add(
                "read.units",
                "units that are counted from persons have the kind of their persons; leave out all but of",
            )
        if of == "households" and "column" not in own and "expression" not in own and recode is not None:
            document.add(
                "read.units",
                f"give the column of households with the kind of each, a group of {facilities.attribute}",
            )
        if of == "persons" or not own:
            rule = self._attribute(bounded, kind, attributes.get(kind, {}))
            if recode is not None:
                rule = self._grouped(rule, recode, facilities.attribute)
            others = (
                {name: len(facilities.minimum) + place for place, name in enumerate(facilities.other_kinds)}
                if of == "households"
                else {}
            )
            rule = replace(rule, values=(*rule.values, *others.items()), levels=kinds)
        else:
            labels = bounded.labels.get(facilities.attribute, tuple(map(str, range(len(facilities.minimum)))))
            rule = self._rule(
                facilities.attribute, "read.units", own, kinds, (*labels, *facilities.other_kinds)
            )
        return UnitRule(cast(Table, of), rule, kinds)

    def _grouped(self, rule: AttributeRule, recode: Recode, name: str) -> AttributeRule:
        """The rule with groups of levels in the place of levels."""
        group = {level: place for place, own in enumerate(recode.groups) for level in own}
        if rule.bands or rule.born is not None:
            self._document.add(
                "read.units",
                f"kinds of units ({name}) are groups of levels of {rule.name}, which cannot be cut from numbers",
            )
            return rule
        values = tuple((text, group[level]) for text, level in rule.values)
        return replace(rule, values=values, other=None if rule.other is None else group[rule.other])


def _attribute_names(schemas: object) -> Iterator[str]:
    """Names of the attributes of all schemas of a document, as far as they can be read."""
    for schema in schemas.values() if isinstance(schemas, Mapping) else ():
        attributes = schema.get("attributes") if isinstance(schema, Mapping) else None
        for item in attributes if isinstance(attributes, list) else ():
            if isinstance(item, Mapping) and isinstance(item.get("name"), str):
                yield item["name"]
