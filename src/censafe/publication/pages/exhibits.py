"""Questions with their answers, figures and tables on one self-contained HTML page."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import Final

from matplotlib import rc_context
from matplotlib.figure import Figure

from censafe.publication.pages.document import document_html, drawing
from censafe.publication.pages.markup import details, grouped_table, listing, paragraphs, section, table

_SMALLEST: Final = 0.75  # of its own size; text of 8 points is then 8 pixels high
_LARGEST: Final = 1.2
_PIXELS: Final = 96  # an inch of CSS
_XML_HEAD: Final = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_METADATA: Final = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)


@dataclass(frozen=True)
class PageTable:
    """A table of the page.

    Args:
        groups: heading and number of rows of each group of rows, in order; empty where there are none.
    """

    caption: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: int = 0
    groups: Sequence[tuple[str, int]] = ()

    def html(self) -> str:
        """The table as HTML."""
        if not self.groups:
            return table(self.caption, self.headers, self.rows, numbers=self.numbers, compact=True)
        parts, first = [], 0
        for name, count in self.groups:
            parts.append((name, self.rows[first : first + count]))
            first += count
        return grouped_table(self.caption, self.headers, parts, numbers=self.numbers, compact=True)


@dataclass(frozen=True, eq=False)
class Exhibit:
    """One question and its answer.

    Args:
        name: short, unique on the page; also the name of its figure file.
    """

    name: str
    question: str
    answer: str
    figure: Figure | None = None
    alt: str = ""
    tables: Sequence[PageTable] = ()
    how: Sequence[str] = ()
    files: Sequence[str] = ()

    @cached_property
    def svg(self) -> str:
        """The figure as SVG, drawn once; empty without one."""
        return "" if self.figure is None else svg_text(self.figure, self.name)


@dataclass(frozen=True, eq=False)
class ExhibitSheet:
    """A whole page."""

    title: str
    kicker: str
    answer: Sequence[str]
    facts: Sequence[tuple[str, str, str]]
    exhibits: Sequence[Exhibit]
    settings: Sequence[tuple[str, str]] = field(default_factory=tuple)
    footer: str = ""
    banner: str = ""


def sheet_html(sheet: ExhibitSheet, mark: str = "", heading: str = "How this was made") -> str:
    """The page as HTML; nothing on it is loaded from elsewhere and nothing is a script."""
    settings = section("settings", heading, listing(sheet.settings)) if sheet.settings else ""
    parts = [sheet.banner, _head(sheet), *(_exhibit(one) for one in sheet.exhibits), settings]
    body = "\n".join(part for part in parts if part)
    return document_html(mark + sheet.title, body, sheet.footer)


def svg_text(figure: Figure, name: str) -> str:
    """A figure as SVG to stand inside a page: the same bytes for the same figure."""
    buffer = io.StringIO()
    with rc_context({"svg.hashsalt": f"censafe {name}"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return _METADATA.sub("", _XML_HEAD.sub("", buffer.getvalue(), count=1)).replace(
        'id="figure_1"', f'id="figure-{escape(name)}"'
    )


def _head(page: ExhibitSheet) -> str:
    cards = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(words)}</small></dd></div>"
        for name, value, words in page.facts
    )
    listed = "".join(
        f'<li><a href="#{escape(exhibit.name)}">{escape(exhibit.question)}</a></li>'
        for exhibit in page.exhibits
    )
    return (
        f'<header><p class="kicker">{escape(page.kicker)}</p><h1>{escape(page.title)}</h1>'
        f'{paragraphs(*page.answer, kind="answer")}<dl class="facts">{cards}</dl>'
        f'<nav aria-label="Questions"><ol>{listed}</ol></nav></header>'
    )


def _exhibit(exhibit: Exhibit) -> str:
    figure = ""
    if exhibit.figure is not None:
        width = exhibit.figure.get_figwidth() * _PIXELS
        drawn = drawing(exhibit.svg, exhibit.alt, _SMALLEST * width, _LARGEST * width)
        figure = f"<figure>{drawn}<figcaption>{escape(exhibit.alt)}</figcaption></figure>"
    how = [paragraphs(*exhibit.how)]
    if exhibit.files:
        how.append(paragraphs(f"The same numbers: {', '.join(exhibit.files)}.", kind="note"))
    return section(
        exhibit.name,
        exhibit.question,
        paragraphs(exhibit.answer, kind="answer"),
        figure,
        *(table.html() for table in exhibit.tables),
        details("How it was computed", *how) if exhibit.how or exhibit.files else "",
    )
