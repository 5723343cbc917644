"""Layouts of microdata as a TOML file writes them; whatever cannot be written is refused with its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from censafe.errors import ConfigError
from censafe.model.topdown.constraints import CellGroups
from censafe.model.topdown.histograms import HistogramSchema
from censafe.products.configuration.source import Problems
from censafe.products.topdown.configuration.level_sets import LevelSets
from censafe.publication.microdata.layouts import (
    UNIT,
    MicrodataColumn,
    MicrodataLayout,
    RowsBeside,
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
    beside = _beside(f"{name}, beside", entry["beside"], schemas) if "beside" in entry else None
    split = _split(f"{name}, split", entry["split"], schema, beside) if "split" in entry else None
    if beside is not None and {"dealt", "kinds", "added"} & set(entry):
        raise ConfigError(f"{name}, beside: not allowed with dealt, kinds or added")
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in entry.items()
        if key not in ("schema", "columns", "beside", "split")
    }
    layout = MicrodataLayout(name, schema, columns=(), beside=beside, split=split, **values)
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


def _beside(place: str, entry: Mapping[str, Any], schemas: _Schemas) -> RowsBeside:
    _require_known(place, entry, ("schema", "rows"))
    schema = _schema(f"{place}.schema", entry.get("schema"), schemas)
    return RowsBeside(schema, _when(f"{place}.rows", entry.get("rows"), schema))


def _split(
    place: str, entry: Mapping[str, Any], schema: HistogramSchema, beside: RowsBeside | None
) -> SplitLevel:
    _require_known(place, entry, _SPLIT_KEYS)
    if beside is None or set(entry) != set(_SPLIT_KEYS):
        raise ConfigError(f"{place}: give {', '.join(_SPLIT_KEYS)}, and the histogram beside that counts")
    attribute, level = entry["attribute"], entry["level"]
    _when(place, {attribute: [level]}, schema)
    try:
        answers = beside.schema.grouped(CellGroups(entry["by"])).answers
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
    found = {
        name: LevelSets(schema.schema.shape[schema.schema.position(name)], schema.tables.get(name, {})).read(
            levels, name, problems
        )
        for name, levels in raw.items()
    }
    problems.raise_if_any(place)
    return found


def _column(layout: MicrodataLayout, entry: Mapping[str, Any]) -> MicrodataColumn:
    place = f"{layout.name}, {entry.get('name')}"
    source = _source(place, entry, extra=("name",))
    if source not in _EXTRA:
        return MicrodataColumn(**entry)
    added = [entry["added"]] if "added" in entry else []
    if bool(added) != bool(layout.added) or ("beside" in entry) != (layout.beside is not None):
        raise ConfigError(f"{place}: added and beside stand where the file has such rows, in every column")
    if layout.kinds and entry.get("of") == UNIT:
        codes, answers = [*_codes(place, entry, layout.kinds), *added], layout.kinds + len(added)
        return MicrodataColumn(entry["name"], of=UNIT, codes=_even(place, codes, answers))
    own, answers = _shown(place, entry, layout.shown)
    column = replace(own, name=entry["name"])
    if layout.beside is None:
        return replace(column, codes=_even(place, [*own.codes, *added], answers + len(added)))
    other = entry["beside"]
    if isinstance(other, str):
        other = {"of": "total", "codes": [other]}
    _source(f"{place}, beside", other)
    theirs, more = _shown(f"{place}, beside", other, layout.beside.schema)
    both = _even(place, [*own.codes, *theirs.codes], answers + more)
    return replace(column, codes=both, beside=theirs)


def _source(place: str, entry: Mapping[str, Any], extra: tuple[str, ...] = ()) -> str:
    """The one key that says what a column shows."""
    found = [source for source in _SOURCES if source in entry]
    if len(found) != 1 or (not extra and found[0] not in _EXTRA):
        raise ConfigError(f"{place}: allowed is exactly one of {', '.join(_SOURCES if extra else _EXTRA)}")
    if unknown := sorted(set(entry) - {*extra, *found, *_EXTRA.get(found[0], ())}):
        raise ConfigError(f"{place}: unknown keys {', '.join(unknown)}")
    return found[0]


def _shown(place: str, entry: Mapping[str, Any], schema: HistogramSchema) -> tuple[MicrodataColumn, int]:
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
        for code, given in entry["codes"].items()
        for value in (given if isinstance(given, list) else [given])
    }
    if set(code_of) != set(values):
        raise ConfigError(f"{place}, codes: give one code for each of {', '.join(sorted(set(values)))}")
    return [code_of[value] for value in values]


def _codes(place: str, entry: Mapping[str, Any], answers: int) -> Sequence[str]:
    """The code of every answer."""
    if "first" in entry:
        first, width = entry["first"], entry.get("width", 1)
        return [f"{number:0{width}d}" for number in range(first, first + answers)]
    given = entry.get("codes", ())
    if not isinstance(given, Mapping):
        return list(given)
    codes: list[str] = [""] * answers
    for code, text in given.items():
        for part in text.split(","):
            low, _, high = part.strip().partition("-")
            for answer in range(int(low), int(high or low) + 1):
                if answer >= answers or codes[answer]:
                    raise ConfigError(
                        f"{place}, codes: {answer} stands twice or is not an answer of {entry['of']}"
                    )
                codes[answer] = code
    return codes
