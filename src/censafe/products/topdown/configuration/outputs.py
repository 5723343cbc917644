"""What is made of a histogram: the entries of ``outputs.toml``, found by the attributes of its schema."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from censafe.errors import ConfigError
from censafe.model.cells.levels import LevelSets, integer
from censafe.model.cells.lines import CensusTable, parse_table
from censafe.model.entries import Problems
from censafe.model.topdown.histograms import (
    CellGroups,
    GeoLevel,
    HistogramSchema,
    MeasuredHistogram,
    OutputLayout,
)
from censafe.products.configuration.document import Document
from censafe.products.configuration.source import check_choice
from censafe.products.topdown.configuration.schema_checks import (
    check_entry,
    check_query,
    check_schema_table,
    named_table,
    schema_text,
)
from censafe.products.topdown.configuration.shipped import shipped_schemas
from censafe.publication.microdata.layouts import (
    UNIT,
    CompanionRows,
    MicrodataColumn,
    MicrodataLayout,
    SplitLevel,
)

_KEYS: Final = (
    "added", "beside", "columns", "dealt", "file", "kinds", "records", "schema", "split", "total",
)  # fmt: skip
_SOURCES: Final = ("constant", "geocode", "number", "of", "cases")
_EXTRA: Final = {
    "of": ("codes", "first", "width", "column", "added", "beside"),
    "cases": ("added", "beside"),
}
_SPLIT_KEYS: Final = ("attribute", "level", "by", "answers")
_Schemas = Mapping[str, HistogramSchema]


def microdata_layout(name: str, entry: Mapping[str, Any], schemas: _Schemas) -> MicrodataLayout:
    """A layout from an entry of a TOML file."""
    _require_known(name, entry, _KEYS)
    schema = _schema(f"{name}, schema", entry.get("schema"), schemas)
    companion = None
    if "beside" in entry:
        place, rows = f"{name}, beside", entry["beside"]
        _require_known(place, rows, ("schema", "rows"))
        counted = _schema(f"{place}.schema", rows.get("schema"), schemas)
        companion = CompanionRows(counted, _when(f"{place}.rows", rows.get("rows"), counted))
    split = _split(f"{name}, split", entry["split"], schema, companion) if "split" in entry else None
    if companion is not None and {"dealt", "kinds", "added"} & set(entry):
        raise ConfigError(f"{name}, beside: not allowed with dealt, kinds or added")
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in entry.items()
        if key not in ("schema", "columns", "beside", "split")
    }
    layout = MicrodataLayout(name, schema, columns=(), companion=companion, split=split, **values)
    layout = replace(layout, columns=tuple(_column(layout, one) for one in entry["columns"]))
    allowed = (("unit", "held") if layout.kinds else ("record", "unit")) if layout.dealt else ("record",)
    for column in layout.columns:
        if column.number is not None and column.number not in allowed:
            raise ConfigError(f"{name}, {column.name}, number: allowed here is {' or '.join(allowed)}")
    return layout


def _require_known(place: str, entry: Mapping[str, Any], allowed: Sequence[str]) -> None:
    if unknown := sorted(set(entry) - set(allowed)):
        raise ConfigError(
            f"{place}: unknown keys {', '.join(unknown)}; allowed: {', '.join(sorted(allowed))}"
        )


def _schema(place: str, name: object, schemas: _Schemas) -> HistogramSchema:
    if not isinstance(name, str) or name not in schemas:
        raise ConfigError(f"{place}: allowed is one of {', '.join(schemas)}")
    return schemas[name]


def _split(
    place: str, entry: Mapping[str, Any], schema: HistogramSchema, companion: CompanionRows | None
) -> SplitLevel:
    _require_known(place, entry, _SPLIT_KEYS)
    if companion is None or set(entry) != set(_SPLIT_KEYS):
        raise ConfigError(f"{place}: give {', '.join(_SPLIT_KEYS)}, and the histogram beside that counts")
    attribute, level = entry["attribute"], entry["level"]
    _when(place, {attribute: [level]}, schema)
    try:
        answers = companion.schema.grouped(CellGroups(entry["by"])).answers
    except ValueError as error:
        raise ConfigError(f"{place}.by: {error}") from None
    problems = Problems()
    chosen = LevelSets(answers, {}).read(entry["answers"], "answers", problems)
    problems.raise_if_any(place)
    return SplitLevel(attribute, level, entry["by"], chosen)


def _when(place: str, raw: object, schema: HistogramSchema) -> dict[str, tuple[int, ...]]:
    """Levels by attribute."""
    if not isinstance(raw, Mapping) or not set(raw) <= set(schema.schema.names):
        raise ConfigError(f"{place}: give levels of {', '.join(schema.schema.names)}")
    problems = Problems()
    by_attribute = {
        name: LevelSets(schema.schema.shape[schema.schema.position(name)], schema.tables.get(name, {})).read(
            levels, name, problems
        )
        for name, levels in raw.items()
    }
    problems.raise_if_any(place)
    return by_attribute


def _column(layout: MicrodataLayout, entry: Mapping[str, Any]) -> MicrodataColumn:
    place = f"{layout.name}, {entry.get('name')}"
    source = _source(place, entry, extra=("name",))
    if source not in _EXTRA:
        return MicrodataColumn(**entry)
    added = [entry["added"]] if "added" in entry else []
    if bool(added) != bool(layout.added) or ("beside" in entry) != (layout.companion is not None):
        raise ConfigError(f"{place}: added and beside stand where the file has such rows, in every column")
    if layout.kinds and entry.get("of") == UNIT:
        codes, answers = [*_codes(place, entry, layout.kinds), *added], layout.kinds + len(added)
        return MicrodataColumn(entry["name"], of=UNIT, codes=_even(place, codes, answers))
    own, answers = _values_column(place, entry, layout.row_schema)
    column = replace(own, name=entry["name"])
    if layout.companion is None:
        return replace(column, codes=_even(place, [*own.codes, *added], answers + len(added)))
    other = entry["beside"]
    if isinstance(other, str):
        other = {"of": "total", "codes": [other]}
    _source(f"{place}, beside", other)
    companion, more = _values_column(f"{place}, beside", other, layout.companion.schema)
    both = _even(place, [*own.codes, *companion.codes], answers + more)
    return replace(column, codes=both, companion=companion)


def _source(place: str, entry: Mapping[str, Any], extra: tuple[str, ...] = ()) -> str:
    """The one key that says what a column shows."""
    sources = [source for source in _SOURCES if source in entry]
    if len(sources) != 1 or (not extra and sources[0] not in _EXTRA):
        raise ConfigError(f"{place}: allowed is exactly one of {', '.join(_SOURCES if extra else _EXTRA)}")
    if unknown := sorted(set(entry) - {*extra, *sources, *_EXTRA.get(sources[0], ())}):
        raise ConfigError(f"{place}: unknown keys {', '.join(unknown)}")
    return sources[0]


def _values_column(
    place: str, entry: Mapping[str, Any], schema: HistogramSchema
) -> tuple[MicrodataColumn, int]:
    """What a column shows of the cells of one histogram, and how many codes that takes."""
    if "cases" in entry:
        cases = entry["cases"]
        whens = [_when(f"{place}, when", case.get("when", {}), schema) for case in cases]
        if not all(whens[:-1]) or not whens or whens[-1]:
            raise ConfigError(f"{place}, cases: the last case, and no other, is without when")
        for case in cases:
            _require_known(f"{place}, cases", case, ("when", "code"))
        return MicrodataColumn("", cases=tuple(whens), codes=tuple(case["code"] for case in cases)), len(
            cases
        )
    try:
        answers = schema.query(entry["of"]).answers
    except ValueError as error:
        raise ConfigError(f"{place}, of: {error}") from None
    codes = _table_codes(place, entry, schema) if "column" in entry else _codes(place, entry, answers)
    return MicrodataColumn("", of=entry["of"], codes=tuple(codes)), answers


def _even(place: str, codes: Sequence[str], answers: int) -> tuple[str, ...]:
    if len(codes) != answers or len({len(code) for code in codes}) != 1:
        raise ConfigError(f"{place}, codes: {answers} texts of one length are needed")
    return tuple(codes)


def _table_codes(place: str, entry: Mapping[str, Any], schema: HistogramSchema) -> list[str]:
    """The code of every level: a value of its table, or the code of that value."""
    table = schema.tables.get(entry["of"], {})
    if entry["column"] not in table:
        raise ConfigError(f"{place}, column: allowed is one of {', '.join(table) or 'no column: no table'}")
    values = table[entry["column"]]
    if "codes" not in entry:
        return list(values)
    code_of = {
        value: code
        for code, codes in entry["codes"].items()
        for value in (codes if isinstance(codes, list) else [codes])
    }
    if set(code_of) != set(values):
        raise ConfigError(f"{place}, codes: give one code for each of {', '.join(sorted(set(values)))}")
    return [code_of[value] for value in values]


def _codes(place: str, entry: Mapping[str, Any], answers: int) -> Sequence[str]:
    """The code of every answer."""
    if "first" in entry:
        first, width = entry["first"], entry.get("width", 1)
        return [f"{number:0{width}d}" for number in range(first, first + answers)]
    raw = entry.get("codes", ())
    if not isinstance(raw, Mapping):
        return list(raw)
    codes: list[str] = [""] * answers
    for code, text in raw.items():
        for part in text.split(","):
            low, _, high = part.strip().partition("-")
            for answer in range(int(low), int(high or low) + 1):
                if answer >= answers or codes[answer]:
                    raise ConfigError(
                        f"{place}, codes: {answer} stands twice or is not an answer of {entry['of']}"
                    )
                codes[answer] = code
    return codes


@lru_cache(maxsize=1)
def output_layouts() -> Mapping[str, OutputLayout]:
    """The shipped layouts by name of the schema, in the order in which they give a certificate its title.

    Example:
        >>> list(output_layouts()), output_layouts()["pl94-units"].tables
        (['pl94-persons', 'pl94-units', 'dhc-persons', 'dhc-households', 'e2e-1940', 'dhc-units'], ('H1',))
    """
    return {name: _layout(entry) for name, entry in tomllib.loads(schema_text("outputs.toml")).items()}


@lru_cache(maxsize=1)
def microdata_layouts() -> Mapping[str, MicrodataLayout]:
    """The shipped layouts of microdata by name.

    Example:
        >>> [(name, len(layout.columns)) for name, layout in microdata_layouts().items()]
        [('pl94-persons', 13), ('pl94-units', 9), ('dhc-persons', 16), ('dhc-units', 27), ('e2e-persons', 23), ('e2e-units', 25)]
    """
    schemas = shipped_schemas()
    return {
        name: microdata_layout(name, entry, schemas)
        for name, entry in tomllib.loads(schema_text("microdata.toml")).items()
    }


def check_outputs(
    document: Document, histograms: Sequence[MeasuredHistogram], levels: Sequence[GeoLevel]
) -> tuple[tuple[MeasuredHistogram, ...], dict[str, MicrodataLayout]]:
    """The histograms with what the configuration publishes of them, and its layouts of microdata by name."""
    own = {one.schema.name: one.schema for one in histograms}
    layouts = {}
    for name, entry in named_table(document, "microdata").items():
        try:
            layouts[name] = microdata_layout(name, _plain(entry), own)
        except ConfigError as error:
            document.add("microdata", str(error))
        except (AttributeError, KeyError, TypeError, ValueError):
            document.add(
                f"microdata.{name}",
                "it is not written like the layouts of data/microdata.toml, which say what a column has",
            )
    for name, layout in layouts.items():
        for column in layout.columns:
            if not all(code.isdigit() and code.isascii() for code in column.codes):
                document.add(
                    f"microdata.{name}, {column.name}",
                    "give codes of digits: rows are compared with their histogram by them",
                )
    names = tuple(named_table(document, "histograms"))
    entries = check_entry(document.values.get("outputs", {}), "outputs", names, document)
    lowest = (levels[-1].prefix if levels else None) or 0
    updated = [
        replace(
            histogram, outputs=_own_outputs(histogram, entries[histogram.name], layouts, lowest, document)
        )
        if histogram.name in entries
        else histogram
        for histogram in histograms
    ]
    return tuple(updated), layouts


def check_own_tables(document: Document, histograms: Sequence[MeasuredHistogram]) -> dict[str, CensusTable]:
    """Tables of the configuration, by name."""
    by_name, tables = {one.name: one for one in histograms}, {}
    entries = named_table(document, "tables")
    if entries and any(outputs_of(one).tables for one in histograms):
        document.add("tables", "the run writes the tables of the redistricting data; leave out one of both")
    for name, raw in entries.items():
        entry = check_schema_table(raw, f"tables.{name}", document)
        of = check_choice(entry.get("histogram"), f"tables.{name}.histogram", tuple(by_name), document)
        try:
            tables.update({} if of is None else {name: parse_table(name, entry, by_name[of].schema)})
        except ConfigError as error:
            document.add(f"tables.{name}", str(error))
    return tables


def _plain(raw: Any) -> Any:
    """The same with whole numbers for exact ones that are whole."""
    if isinstance(raw, Mapping):
        return {key: _plain(value) for key, value in raw.items()}
    if isinstance(raw, list):
        return [_plain(value) for value in raw]
    number = integer(raw)
    return raw if number is None else number


_OWN_KEYS: Final = ("title", "microdata", "intervals", "report")


def _own_outputs(
    histogram: MeasuredHistogram,
    raw: object,
    layouts: Mapping[str, MicrodataLayout],
    lowest: int,
    problems: Problems,
) -> OutputLayout | None:
    key = f"outputs.{histogram.name}"
    entry, before = check_entry(raw, key, _OWN_KEYS, problems), len(problems.messages)
    files, report, queries = (entry.get(noun, []) for noun in ("microdata", "report", "intervals"))
    title = entry.get("title", OutputLayout.title)
    pairs = isinstance(report, list) and all(isinstance(one, list) and len(one) == 2 for one in report)
    texts = [title, *(text for one in report for text in one)] if pairs else [None]
    lists = isinstance(files, list) and isinstance(queries, list)
    if not lists or not all(isinstance(text, str) for text in (*texts, *files, *queries)):
        problems.add(
            key, 'give a title, lists of names and queries, and report = [["age * sex", "age by sex"]]'
        )
        return None
    for name in files:
        known = tuple(one for one, layout in layouts.items() if layout.schema is histogram.schema)
        check_choice(name, f"{key}.microdata", known, problems)
    for query in (*queries, *(one for one, _ in report)):
        check_query(histogram.schema, query, key, problems)
    if len(problems.messages) > before:
        return None
    layout = {name: entry[name] for name in ("microdata", "intervals", "report", "title") if name in entry}
    return replace(_layout(layout), digits=lowest if files else 0)


def _layout(entry: dict[str, Any]) -> OutputLayout:
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in entry.items()
        if key != "report"
    }
    fields["report"] = tuple((query, words) for query, words in entry.get("report", []))
    return OutputLayout(**fields)


def outputs_of(histogram: MeasuredHistogram) -> OutputLayout:
    """What a configuration says of a histogram; otherwise the layout of the shipped schema whose attributes it has, or one without files."""
    if histogram.outputs is not None:
        return histogram.outputs
    attributes = histogram.schema.schema.attributes
    schemas = shipped_schemas()
    known = (
        layout for name, layout in output_layouts().items() if schemas[name].schema.attributes == attributes
    )
    return next(known, OutputLayout())


def interval_queries(histogram: MeasuredHistogram) -> tuple[str, ...]:
    """Queries of a histogram that have intervals when none are named: those of the configuration, or the total and all attributes."""
    schema = histogram.schema.schema
    usual = ("total", *(name for name in schema.names if schema.cells > 1))
    return outputs_of(histogram).intervals or usual


def title_of(histograms: Iterable[MeasuredHistogram]) -> str:
    """Title of a run's certificate.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> title_of(load_config("e2e-1940").histograms)
        '1940 census: microdata by TopDown'
    """
    layouts = [outputs_of(one) for one in histograms]
    shipped = (layout.title for layout in output_layouts().values() if layout in layouts)
    own = (layout.title for layout in layouts if layout.title != OutputLayout.title)
    return next(shipped, next(own, OutputLayout.title))
