"""Values of rows as levels of attributes, in the language of the engine: a small number for each row, negative where a rule is broken."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Final

from censafe.population.files.relation import quote_list, quote_text
from censafe.population.findings import Finding, finding
from censafe.population.records.layout import AttributeRule, TextForm
from censafe.population.records.sources import identifier

MISSING, OTHER, NO_DATE, BELOW, AFTER, NO_NUMBER, DECIMAL, OLD, NO_ANSWER, LEFT_OUT = range(-1, -11, -1)
"""States of rows without a level; those that a histogram leaves out break no rule."""
_OLDEST: Final = 130
FORMS: Final = (
    ("[0-9]{4}-[0-9]{2}-[0-9]{2}([ T].*)?", "%Y-%m-%d", 10),
    (r"[0-9]{1,2}[.][0-9]{1,2}[.][0-9]{4}", "%d.%m.%Y", 10),
    ("[0-9]{8}", "%Y%m%d", 8),
)
"""Usual dates: pattern, form, and how many first characters are the date."""
DATE_WORDS: Final = "YYYY-MM-DD, DD.MM.YYYY or YYYYMMDD"


def text_sql(rule: AttributeRule) -> str:
    """The value of a row as text without blanks around it, of columns under their names."""
    source = identifier(rule.source) if isinstance(rule.source, str) else f"TRY((\n{rule.source.text}\n))"
    return f"trim(CAST({source} AS VARCHAR))"


def level_sql(rule: AttributeRule, form: TextForm, text: str, known: str) -> str:
    """The level of a row, or a negative number.

    Args:
        text: name of the column with the text.
        known: the level of the text in :func:`value_rows`, NULL for none.
    """
    missing = f"{text} IS NULL OR {text} IN ({quote_list(form.missing) or quote_text('')})"
    if rule.born is not None:
        computed = _age(rule, text)
    elif rule.bands:
        number = text if form.decimal == "." else f"replace({text}, '{form.decimal}', '.')"
        computed = _banded(rule, f"try_cast({number} AS DOUBLE)", NO_NUMBER)
    else:
        computed = f"CASE WHEN regexp_full_match({text}, '[0-9]+[.]0+') THEN {DECIMAL} ELSE {OTHER} END"
    level = f"coalesce({known}, CASE WHEN {missing} THEN {MISSING} ELSE {computed} END)"
    if rule.other is not None:
        level = f"CASE WHEN {level} < 0 THEN {rule.other} ELSE {level} END"
    if rule.where is not None:
        level = f"CASE WHEN r.{known_where(text)} IS NULL THEN {NO_ANSWER} WHEN r.{known_where(text)} THEN {level} ELSE {LEFT_OUT} END"
    return f"CAST({level} AS {_integer(rule.levels)})"


def _integer(levels: int) -> str:
    """The smallest type of the engine for levels and states: coded rows are as many as the records."""
    return "TINYINT" if levels <= 1 << 7 else "SMALLINT" if levels <= 1 << 15 else "INTEGER"


def where_sql(rule: AttributeRule, text: str) -> list[str]:
    """The condition of the rows of a rule as a column, where it has one."""
    if rule.where is None:
        return []
    return [f"TRY(CAST((\n{rule.where.text}\n) AS BOOLEAN)) AS {known_where(text)}"]


def known_where(text: str) -> str:
    """Name of the column with the condition of a rule, by that of its text."""
    return f"where_{text.rpartition('_')[2]}"


def _age(rule: AttributeRule, text: str) -> str:
    day = rule.born or date.min
    if rule.dates:
        when = f"try_strptime({text}, {quote_text(rule.dates)})"
    else:
        cases = " ".join(
            f"WHEN regexp_full_match({text}, '{pattern}') THEN try_strptime(left({text}, {length}), '{form}')"
            for pattern, form, length in FORMS
        )
        when = f"CASE {cases} ELSE NULL END"
    years = f"date_sub('year', CAST({when} AS DATE), DATE '{day.isoformat()}')"
    after = f"CAST({when} AS DATE) > DATE '{day.isoformat()}'"
    level = _banded(rule, years, NO_DATE) if rule.bands else _counted(rule, years)
    return f"CASE WHEN {when} IS NULL THEN {NO_DATE} WHEN {after} THEN {AFTER} WHEN {years} > {_OLDEST} THEN {OLD} ELSE {level} END"


def _counted(rule: AttributeRule, number: str) -> str:
    return f"CASE WHEN {number} < {rule.levels} THEN {number} ELSE {OTHER} END"


def _banded(rule: AttributeRule, number: str, none: int) -> str:
    bounds = [f"CAST({bound.numerator} AS DOUBLE) / {bound.denominator}" for bound in rule.bands]
    cases = " ".join(
        f"WHEN {number} < {bound} THEN {level - 1}" for level, bound in enumerate(bounds) if level
    )
    return (
        f"CASE WHEN {number} IS NULL OR isnan(CAST({number} AS DOUBLE)) THEN {none} WHEN {number} < {bounds[0]} THEN {BELOW} {cases} "
        f"ELSE {len(bounds) - 1} END"
    )


def value_rows(rule: AttributeRule) -> str:
    """The levels of all known texts as a table (text, level)."""
    rows = ", ".join(f"({quote_text(text)}, {level})" for text, level in rule.values)
    return f"(VALUES {rows})" if rows else "(SELECT NULL::VARCHAR, NULL::INTEGER WHERE false)"


STATES: Final = {
    MISSING: ("missing", "values missing"),
    OTHER: ("domain", "values that are no level"),
    NO_DATE: ("date", "values that are no date of the stated form"),
    BELOW: ("below", "numbers below the first band"),
    AFTER: ("after", "dates after the day on which ages are counted"),
    NO_NUMBER: ("number", "values that are not numbers"),
    DECIMAL: (
        "decimal",
        "whole numbers with decimals, as spreadsheets and data frames write columns with missing values",
    ),
    OLD: ("age", f"ages above {_OLDEST}"),
    NO_ANSWER: ("where", "rows for which the condition of [read.where] has no answer"),
}
"""Broken rules and what they say, by state."""


def attribute_findings(
    rule: AttributeRule, label: str, counts: Mapping[int, int], form: TextForm
) -> list[Finding]:
    """What breaks the rules of an attribute.

    Args:
        counts: rows by level, negative numbers for broken rules.
    """
    column = ", ".join(rule.columns)
    table = f"[read.attributes.{rule.name}]"
    other = f'correct the file, or give {table} other = "..."'
    known = f"{len(rule.values)} values: the labels and numbers of its levels, and values of {table}"
    if rule.born is not None:
        known = f"dates as {rule.dates or DATE_WORDS}, from {_OLDEST} years before {rule.born.isoformat()} to that day"
        other = (
            f'correct the file, give {table} dates = "%d/%m/%Y" for dates of another form, or other = "..."'
        )
    elif rule.bands:
        known = f"numbers from {_number(rule)} on, decimals with {form.decimal!r}"
    if not isinstance(rule.source, str):
        other = f'correct the expression, which gives no value where it fails; or give {table} other = "..."'
    findings: list[Finding] = []
    for state, (name, problem) in STATES.items():
        findings += finding(label, column, name, counts.get(state, 0), problem, known, other)
    return findings


def _number(rule: AttributeRule) -> str:
    first = rule.bands[0]
    return str(first.numerator) if first.denominator == 1 else f"{float(first):g}"
