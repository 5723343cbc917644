"""Questions with their answers, figures and tables on one self-contained HTML page."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from importlib import resources
from typing import Final

from matplotlib import rc_context
from matplotlib.figure import Figure

from censafe.publication.pages.markup import details, grouped_table, listing, paragraphs, section, table

__all__ = ["Exhibit", "ExhibitSheet", "PageTable", "sheet_html", "svg_text"]

_STYLE: Final = """
figure { margin: .8rem 0 1rem; background: #ffffff; border: 1px solid var(--line); border-radius: .5rem; padding: .6rem; }
figure svg { display: block; width: 100%; height: auto; }
figcaption { color: #4a5868; font-size: .9rem; padding: .3rem .4rem 0; }
h1, dd { overflow-wrap: anywhere; }
.answer { font-size: 1.1rem; font-weight: 550; }
nav ol { margin: .4rem 0 0; padding-left: 1.3rem; }
a { color: var(--accent); }
table { font-size: .875rem; }
th, td { padding-right: .45rem; }
td.n, th.n { padding-left: .4rem; }
tbody th { min-width: 6rem; }
"""
_XML_HEAD: Final = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_METADATA: Final = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)


@dataclass(frozen=True)
class PageTable:
    """A table of the page.

    Args:
        caption: what it shows, in one sentence.
        headers: of the columns.
        rows: cells as text; the first of a row is its header.
        numbers: how many of the last columns hold numbers.
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
            return table(self.caption, self.headers, self.rows, numbers=self.numbers)
        parts, first = [], 0
        for name, count in self.groups:
            parts.append((name, self.rows[first : first + count]))
            first += count
        return grouped_table(self.caption, self.headers, parts, numbers=self.numbers)


@dataclass(frozen=True, eq=False)
class Exhibit:
    """One question and its answer.

    Args:
        name: short, unique on the page; also the name of its figure file.
        question: as a reader would ask it.
        answer: in one or two plain sentences.
        figure: what shows it; None without.
        alt: what the figure shows, for readers who cannot see it.
        tables: numbers behind it.
        how: how it was computed, and what it does not say.
        files: files beside the page with the same numbers.
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
    """A whole page.

    Args:
        title: what it is about.
        kicker: what kind of page it is.
        answer: the main finding in plain sentences.
        facts: name, value and small print of the most important numbers.
        exhibits: questions in the order in which they are answered.
        settings: how it was made, by name.
        footer: last line.
        banner: HTML above everything else; empty without.
    """

    title: str
    kicker: str
    answer: Sequence[str]
    facts: Sequence[tuple[str, str, str]]
    exhibits: Sequence[Exhibit]
    settings: Sequence[tuple[str, str]] = field(default_factory=tuple)
    footer: str = ""
    banner: str = ""


def sheet_html(sheet: ExhibitSheet, mark: str = "", made: str = "How this was made") -> str:
    """The page as HTML; nothing on it is loaded from elsewhere and nothing is a script.

    Args:
        sheet: the page.
        mark: stands before the title of the document.
        made: heading of the settings.
    """
    style = (
        resources.files("censafe.publication.pages").joinpath("certificate.css").read_text(encoding="utf-8")
    )
    settings = section("settings", made, listing(sheet.settings)) if sheet.settings else ""
    parts = [sheet.banner, _head(sheet), *(_exhibit(one) for one in sheet.exhibits), settings]
    body = "\n".join(part for part in parts if part)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(mark + sheet.title)}</title>\n<style>\n{style}{_STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n"
        f"<footer>{escape(sheet.footer)}</footer>\n</main>\n</body>\n</html>\n"
    )


def svg_text(figure: Figure, name: str) -> str:
    """A figure as SVG to stand inside a page: the same bytes for the same figure.

    Args:
        figure: what was drawn.
        name: of the figure; keeps the identifiers of several figures of a page apart.
    """
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
        f'<li><a href="#{escape(one.name)}">{escape(one.question)}</a></li>' for one in page.exhibits
    )
    return (
        f'<header><p class="kicker">{escape(page.kicker)}</p><h1>{escape(page.title)}</h1>'
        f'{paragraphs(*page.answer, kind="answer")}<dl class="facts">{cards}</dl>'
        f'<nav aria-label="Questions"><ol>{listed}</ol></nav></header>'
    )


def _exhibit(one: Exhibit) -> str:
    figure = ""
    if one.figure is not None:
        drawn = one.svg.replace("<svg ", f'<svg role="img" aria-label="{escape(one.alt)}" ', 1)
        figure = f"<figure>{drawn}<figcaption>{escape(one.alt)}</figcaption></figure>"
    how = [paragraphs(*one.how)]
    if one.files:
        how.append(paragraphs(f"The same numbers: {', '.join(one.files)}.", kind="note"))
    return section(
        one.name,
        one.question,
        paragraphs(one.answer, kind="answer"),
        figure,
        *(shown.html() for shown in one.tables),
        details("How it was computed", *how) if one.how or one.files else "",
    )
