"""What is made of a histogram: the entries of ``outputs.toml``, found by the attributes of its schema."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib import resources
from typing import Any, Final

from censafe.errors import ConfigError
from censafe.model.topdown.histograms import GeoLevel, MeasuredHistogram
from censafe.model.topdown.outputs import OutputLayout
from censafe.products.configuration.document import Document
from censafe.products.configuration.source import Problems, check_choice
from censafe.products.topdown.census_tables.definitions import CensusTable, parse_table
from censafe.products.topdown.configuration.level_sets import whole
from censafe.products.topdown.configuration.microdata import microdata_layout
from censafe.products.topdown.configuration.schema_checks import Queries, check_entry, check_schema_table
from censafe.products.topdown.configuration.shipped import shipped_schemas
from censafe.publication.microdata.layouts import MicrodataLayout


@lru_cache(maxsize=1)
def output_layouts() -> Mapping[str, OutputLayout]:
    """The shipped layouts by name of the schema, in the order in which they give a certificate its title.

    Example:
        >>> list(output_layouts()), output_layouts()["pl94-units"].tables
        (['pl94-persons', 'pl94-units', 'dhc-persons', 'dhc-households', 'e2e-1940', 'dhc-units'], ('H1',))
    """
    return {name: _layout(entry) for name, entry in _entries("outputs.toml").items()}


@lru_cache(maxsize=1)
def microdata_layouts() -> Mapping[str, MicrodataLayout]:
    """The shipped layouts of microdata by name.

    Example:
        >>> [(name, len(layout.columns)) for name, layout in microdata_layouts().items()]
        [('pl94-persons', 13), ('pl94-units', 9), ('dhc-persons', 16), ('dhc-units', 27), ('e2e-persons', 23), ('e2e-units', 25)]
    """
    schemas = shipped_schemas()
    return {
        name: microdata_layout(name, entry, schemas) for name, entry in _entries("microdata.toml").items()
    }


def check_outputs(
    document: Document,
    histograms: Sequence[MeasuredHistogram],
    levels: Sequence[GeoLevel],
    problems: Problems,
) -> tuple[tuple[MeasuredHistogram, ...], dict[str, MicrodataLayout]]:
    """The histograms with what the configuration publishes of them, and its layouts of microdata by name."""
    layouts = _own_layouts(document, histograms, problems)
    entries = check_entry(
        document.values.get("outputs", {}),
        "outputs",
        tuple(check_schema_table(document.values.get("histograms", {}), "histograms", problems)),
        problems,
    )
    lowest = levels[-1].prefix if levels else None
    found = [
        replace(one, outputs=_own_outputs(one, entries[one.name], layouts, lowest or 0, problems))
        if one.name in entries
        else one
        for one in histograms
    ]
    return tuple(found), layouts


def check_own_tables(
    document: Document, histograms: Sequence[MeasuredHistogram], problems: Problems
) -> dict[str, CensusTable]:
    """Tables of the configuration, by name."""
    by_name, found = {one.name: one for one in histograms}, {}
    entries = check_schema_table(document.values.get("tables", {}), "tables", problems)
    if entries and any(outputs_of(one).tables for one in histograms):
        problems.add("tables", "the run writes the tables of the redistricting data; leave out one of both")
    for name, raw in entries.items():
        entry = check_schema_table(raw, f"tables.{name}", problems)
        of = check_choice(entry.get("histogram"), f"tables.{name}.histogram", tuple(by_name), problems)
        try:
            found.update({} if of is None else {name: parse_table(name, entry, by_name[of].schema)})
        except ConfigError as error:
            problems.add(f"tables.{name}", str(error))
    return found


def _own_layouts(
    document: Document, histograms: Sequence[MeasuredHistogram], problems: Problems
) -> dict[str, MicrodataLayout]:
    """Layouts of microdata of the configuration, by name."""
    own = {one.schema.name: one.schema for one in histograms}
    layouts = {}
    for name, entry in check_schema_table(
        document.values.get("microdata", {}), "microdata", problems
    ).items():
        try:
            layouts[name] = microdata_layout(name, _plain(entry), own)
        except ConfigError as error:
            problems.add("microdata", str(error))
        except (AttributeError, KeyError, TypeError, ValueError):
            problems.add(
                f"microdata.{name}",
                "it is not written like the layouts of data/microdata.toml, which say what a column has",
            )
    for name, layout in layouts.items():
        for column in layout.columns:
            if not all(code.isdigit() and code.isascii() for code in column.codes):
                problems.add(
                    f"microdata.{name}, {column.name}",
                    "give codes of digits: rows are compared with their histogram by them",
                )
    return layouts


def _plain(raw: Any) -> Any:
    """The same with whole numbers for exact ones that are whole."""
    if isinstance(raw, Mapping):
        return {key: _plain(value) for key, value in raw.items()}
    if isinstance(raw, list):
        return [_plain(value) for value in raw]
    number = whole(raw)
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
    words = Queries(histogram.schema)
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
        words.check(query, key, problems)
    if len(problems.messages) > before:
        return None
    layout = {name: entry[name] for name in ("microdata", "intervals", "report", "title") if name in entry}
    return replace(_layout(layout), digits=lowest if files else 0)


def _entries(file: str) -> dict[str, dict[str, Any]]:
    place = resources.files("censafe.products.topdown.configuration").joinpath("data", file)
    return tomllib.loads(place.read_text(encoding="utf-8"))


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


def title_of(histograms: Iterable[MeasuredHistogram]) -> str:
    """Title of a run's certificate.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> title_of(load_config("e2e-1940").histograms)
        '1940 census: microdata by TopDown'
    """
    found = [outputs_of(one) for one in histograms]
    shipped = (layout.title for layout in output_layouts().values() if layout in found)
    own = (layout.title for layout in found if layout.title != OutputLayout.title)
    return next(shipped, next(own, OutputLayout.title))
