"""Tables of summary metrics, the Bureau's 183 and others of the same form, read from TOML: what every row and column is."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from censafe.errors import ConfigError
from censafe.evaluation.shipped import CODEBOOK, shipped_document
from censafe.model.entries import nearest, refuse_unknown_keys
from censafe.model.parsing import read_toml

Record = Literal["person", "household"]
Measure = Literal["counts", "rate", "shares", "ages and sexes", "largest", "condition"]


class SummaryRequest(NamedTuple):
    """Records that are counted: whose they are, and the sets of cells that all of them lie in."""

    record: Record = "person"
    terms: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The sets in words."""
        return " & ".join(self.terms) or "total"

    def within(self, terms: Sequence[str]) -> SummaryRequest:
        """Those that lie in further sets as well."""
        return SummaryRequest(self.record, (*self.terms, *terms))


@dataclass(frozen=True)
class SummaryAreas:
    """A kind of areas, of the spine or of a list.

    Args:
        lists: names of lists, any of which will do. With a level, the list selects the blocks that count.
        within: codes of the list that count: first letters, or from and to; none for all.
    """

    name: str
    level: str = ""
    lists: tuple[str, ...] = ()
    within: tuple[tuple[str, ...], ...] = ()
    only_in: tuple[int, ...] = ()
    not_in: tuple[int, ...] = ()


@dataclass(frozen=True)
class SizeClass:
    """A class of areas by a true count, closed on the left.

    Args:
        by: whose count it is: persons (empty), the row's own count (``own``), or the records of a set.
    """

    label: str
    by: str = ""
    low: int | None = None
    high: int | None = None

    @property
    def name(self) -> str:
        """Short name, such as ``1000-4999`` or ``own 10-99``.

        Example:
            >>> SizeClass("Tracts with population 10 to 99", "own", 10, 100).name
            'own 10-99'
        """
        if self.low is None:
            return "all"
        ends = f"{self.low}+" if self.high is None else f"{self.low}-{self.high - 1}"
        return f"{self.by} {ends}".strip()


@dataclass(frozen=True)
class SummaryColumn:
    """Words of a column and its metric."""

    label: str
    metric: str


@dataclass(frozen=True)
class ErrorRate:
    """A ratio of two counts.

    Args:
        empty_is_zero: whether a rate of nothing is 0; otherwise such areas are left out and counted.
    """

    of: SummaryRequest
    to: SummaryRequest
    scale: int
    empty_is_zero: bool


_EVERYBODY: Final = SummaryRequest()
_EVERYWHERE: Final = SizeClass("")


@dataclass(frozen=True)
class Line:
    """A row of a table, or a heading.

    Args:
        options: names of conditions, or of the rate, or the code of a state.
    """

    label: str
    areas: str = ""
    request: SummaryRequest = _EVERYBODY
    measure: Measure = "counts"
    size: SizeClass = _EVERYWHERE
    options: tuple[str, ...] = ()
    among: tuple[SummaryRequest, ...] = ()

    @property
    def subject(self) -> str:
        """What is measured, for the column ``characteristic``."""
        if self.measure in ("counts", "shares"):
            share = " as a share of the nation"
            if self.measure == "shares":
                return self.request.text + (
                    f" as a share of state {self.options[0]}" if self.options else share
                )
            return self.request.text
        words = " and ".join(self.options) or self.measure
        return f"{words}: {self.request.text}" if self.request.terms else words


@dataclass(frozen=True)
class SummaryTable:
    """One table."""

    number: str
    sheet: str
    section: str
    title: str
    universe: str
    geography: str
    columns: tuple[SummaryColumn, ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class SummaryBook:
    """Tables, and the kinds of areas and rates that their rows name."""

    tables: tuple[SummaryTable, ...]
    areas: Mapping[str, SummaryAreas]
    rates: Mapping[str, ErrorRate] = field(default_factory=dict)

    @property
    def sheets(self) -> tuple[str, ...]:
        """Names of the sheets in order."""
        return tuple(dict.fromkeys(table.sheet for table in self.tables))


_SHIPPED: Final = "summary_tables.toml"
_SHEET: Final = re.compile(r"[^\[\]:*?/\\]{1,31}")  # what a workbook allows
_MEASURES: Final = ("counts", "rate", "shares", "ages and sexes", "largest", "condition")
_TOP: Final = ("areas", "states", "rates", "columns", "rows", "groups", "classes", "tables")
_TABLE: Final = ("number", "sheet", "section", "title", "universe", "geography", "columns", "parts")
_PART: Final = (
    "areas", "record", "of", "measure", "rate", "condition", "among", "states", "label", "headings", "classes", "groups",
    "rows",
)  # fmt: skip


@lru_cache(maxsize=1)
def shipped_book() -> SummaryBook:
    """The 183 tables of the Bureau's detailed summary metrics.

    Example:
        >>> book = shipped_book()
        >>> len(book.tables), book.tables[0].number, book.tables[0].lines[1].size.name
        (183, 'Table 1.a', '0-999')
    """
    return _book(shipped_document(_SHIPPED), _SHIPPED)


def read_book(path: Path) -> SummaryBook:
    """The shipped tables and those of a TOML file of the same form, on sheets of their own names."""
    own = read_toml(path)
    refuse_unknown_keys(own, path.name, _TOP)
    base = shipped_document(_SHIPPED)
    try:
        merged = {name: {**base[name], **own.get(name, {})} for name in _TOP if name != "tables"}
        return _book({**merged, "tables": [*base["tables"], *own.get("tables", [])]}, path.name)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(
            f"{path.name}: not of the form of summary_tables.toml ({error}); fix: write it as that file, which ships with censafe"
        ) from None


def _book(document: Mapping[str, Any], where: str) -> SummaryBook:
    areas = {
        name: SummaryAreas(
            name,
            str(raw.get("level", "")),
            tuple(raw.get("lists", ())),
            tuple(tuple(ends) for ends in raw.get("within", ())),
            tuple(int(code) for code in raw.get("only_in", ())),
            tuple(int(code) for code in raw.get("not_in", ())),
        )
        for name, raw in document["areas"].items()
    }
    rates = {}
    for name, raw in document["rates"].items():
        above, below = (SummaryRequest(raw[f"{side}_record"], _terms(raw[side])) for side in ("of", "to"))
        rates[name] = ErrorRate(above, below, int(raw["scale"]), bool(raw["empty_is_zero"]))
    tables = tuple(
        _table(document, raw, f"{where}, {raw.get('number', 'table')}") for raw in document.get("tables", ())
    )
    for table in tables:
        place = f"{where}, {table.number}"
        _allowed([column.metric for column in table.columns], CODEBOOK, "metric", place)
        _allowed([line.areas for line in table.lines if line.areas], areas, "areas", place)
        rows = [line for line in table.lines if line.measure == "rate"]
        _allowed([name for line in rows for name in line.options], rates, "rate", place)
    if len({table.number for table in tables}) < len(tables):
        raise ConfigError(f"{where}: two tables have one number; give each its own")
    return SummaryBook(tables, areas, rates)


def _allowed(names: Sequence[str], known: Collection[str], what: str, where: str) -> None:
    unknown = [name for name in dict.fromkeys(names) if name not in known]
    if unknown:
        raise ConfigError(f"{where}: no {what} {unknown[0]!r}.{nearest(unknown[0], sorted(known))}")


def _table(document: Mapping[str, Any], raw: Mapping[str, Any], where: str) -> SummaryTable:
    refuse_unknown_keys(raw, where, _TABLE)
    missing = [name for name in _TABLE if name not in raw and name != "section"]
    if missing:
        raise ConfigError(f"{where}: no key {', '.join(missing)}")
    if not _SHEET.fullmatch(str(raw["sheet"])):
        raise ConfigError(
            f"{where}: sheet {raw['sheet']!r} cannot be a name; allowed: 1 to 31 characters, none of []:*?/\\"
        )
    columns = tuple(SummaryColumn(*one) for one in _named(document, "columns", raw["columns"], where))
    lines = [line for part in raw["parts"] for line in _lines(document, part, where)]
    words = {
        name: str(raw.get(name, ""))
        for name in ("number", "sheet", "section", "title", "universe", "geography")
    }
    return SummaryTable(**words, columns=columns, lines=tuple(lines))


def _lines(document: Mapping[str, Any], part: Mapping[str, Any], where: str) -> Iterator[Line]:
    """Rows of one kind of areas: a row a class, or under the heading of each class its groups and rows."""
    refuse_unknown_keys(part, where, _PART)
    yield from (Line(text) for text in part.get("headings", ()))
    common = _line(document, part, where)
    if "states" in part:
        for code, name in _states(document, part["areas"]).items():
            yield replace(common, label=part["states"].format(name), options=(code,))
        return
    sizes = _classes(document, part.get("classes"), where)
    if "rows" not in part:
        for size in sizes:
            yield replace(common, label=size.label or str(part.get("label", "")), size=size)
        return
    rows = _named(document, "rows", part["rows"], where)
    groups = _named(document, "groups", part["groups"], where) if "groups" in part else [("", "")]
    for size in sizes:
        if size.label:
            yield Line(size.label)
        for heading, inside in groups:
            if heading:
                yield Line(heading)
            for label, terms in rows:
                request = common.request.within([*_terms(inside), *_terms(terms)])
                yield replace(common, label=label, size=size, request=request)


def _line(document: Mapping[str, Any], part: Mapping[str, Any], where: str) -> Line:
    """What the rows of a part have in common."""
    measure = part.get("measure", "counts")
    if measure not in _MEASURES:
        raise ConfigError(f"{where}: no measure {measure!r}; allowed: {', '.join(_MEASURES)}")
    request = SummaryRequest(part.get("record", "person"), _terms(part.get("of", "")))
    options = part.get("condition", part.get("rate", ()))
    among = _named(document, "rows", part["among"], where) if "among" in part else ()
    return Line(
        label="",
        areas=str(part["areas"]),
        request=request,
        measure=measure,
        options=(options,) if isinstance(options, str) else tuple(options),
        among=tuple(request.within(_terms(terms)) for _, terms in among),
    )


def _states(document: Mapping[str, Any], areas: str) -> Mapping[str, str]:
    kind = document["areas"][areas]
    only, out = kind.get("only_in", document["states"]), kind.get("not_in", ())
    return {code: name for code, name in document["states"].items() if code in only and code not in out}


def _classes(document: Mapping[str, Any], name: str | None, where: str) -> Sequence[SizeClass]:
    if name is None:
        return (SizeClass(""),)
    classes = _named(document, "classes", name, where)
    return [SizeClass(item[0], str(classes.get("by", "")), *item[1:]) for item in classes["items"]]


def _named(document: Mapping[str, Any], kind: str, name: str, where: str) -> Any:
    if name not in document[kind]:
        raise ConfigError(f"{where}: no {kind} {name!r}; allowed: {', '.join(document[kind])}")
    return document[kind][name]


def _terms(text: str) -> tuple[str, ...]:
    return tuple(term.strip() for term in text.split("&") if term.strip())
