"""Pages that stand alone: their frame and style, pieces of HTML with everything escaped, and questions with their answers, figures and tables."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Final

from censafe.model.bounds import upper

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_COLOR: Final = re.compile(r"\b(fill|stroke|stop-color): ?(#[0-9a-fA-F]{6})\b")
_PAPER: Final = "#171e26"  # --paper and --ink of the dark page in page.css
_INK: Final = "#e8edf2"
_LINEAR: Final = 0.04045
_COLORFUL: Final = 0.2
_SEEN: Final = 3.0


def document_html(title: str, body: str, footer: str, *, language: str = "en") -> str:
    """A page of HTML; nothing on it is loaded from elsewhere and nothing is a script."""
    style = resources.files("censafe.publication").joinpath("page.css").read_text(encoding="utf-8")
    return (
        f'<!DOCTYPE html>\n<html lang="{escape(language)}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}{_figure_colors(body)}</style>\n</head>\n<body>\n<main>\n{body}\n"
        f"<footer>{escape(footer)}</footer>\n</main>\n</body>\n</html>\n"
    )


def drawing(svg: str, words: str, least: float, most: float) -> str:
    """A drawing that becomes narrower with the page until its text is hard to read, and scrolls from there on."""
    colored = _COLOR.sub(lambda match: f"{match[1]}: var(--drawn-{match[2][1:].lower()})", svg)
    named = colored.replace(
        "<svg ",
        f'<svg role="img" aria-label="{escape(words)}" style="min-width: {least:.0f}px; max-width: {most:.0f}px" ',
        1,
    )
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(words)}">{named}</div>'


def dark_color(color: str) -> str:
    """The color that has on the dark page the contrast which a color has on white; at least 3 where it is not a shade of grey.

    Example:
        >>> dark_color("#ffffff"), dark_color("#0b5c7a"), dark_color("#000000")
        ('#171e26', '#21b9f1', '#e8edf2')
    """
    channels = _channels(color)
    own, paper, ink = (_luminance(one) for one in (channels, _channels(_PAPER), _channels(_INK)))
    ratio = 1.05 / (own + 0.05)
    if max(channels) - min(channels) > _COLORFUL:
        ratio = max(ratio, _SEEN)
    aim = ratio * (paper + 0.05) - 0.05
    if own >= 1:
        return _PAPER
    if aim >= ink:
        return _INK
    scale = min(aim / own, 1 / max(channels))
    scaled = [channel * scale for channel in channels]
    bright = _luminance(scaled)
    white = (aim - bright) / (1 - bright)
    return "#" + "".join(f"{_coded(channel + white * (1 - channel)):02x}" for channel in scaled)


def _figure_colors(body: str) -> str:
    """The values of the variables that the drawings on a page use, for light and dark."""
    colors = sorted(set(re.findall(r"var\(--drawn-([0-9a-f]{6})\)", body)))
    if not colors:
        return ""
    light = " ".join(f"--drawn-{one}: #{one};" for one in colors)
    dark = " ".join(f"--drawn-{one}: {dark_color(f'#{one}')};" for one in colors)
    return f":root {{ {light} }}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"


def _channels(color: str) -> list[float]:
    """Linear red, green and blue, from 0 to 1."""
    coded = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    return [one / 12.92 if one <= _LINEAR else ((one + 0.055) / 1.055) ** 2.4 for one in coded]


def _coded(linear: float) -> int:
    value = linear * 12.92 if linear <= _LINEAR / 12.92 else 1.055 * linear ** (1 / 2.4) - 0.055
    return round(255 * value)


def _luminance(channels: list[float]) -> float:
    red, green, blue = channels
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


_BREAKS: Final = re.compile(r"(?<=[_/])(?=\w)|(?<=[a-z])(?=[A-Z])")


class HtmlCell(str):
    """A table cell that is HTML already; plain text becomes one by escaping."""

    __slots__ = ()


def breakable(text: str) -> HtmlCell:
    """A long name or fraction that may go on in the next line after ``_`` and ``/`` and before a capital letter.

    Example:
        >>> breakable("popSehsd_x/2")
        'pop<wbr>Sehsd_<wbr>x/<wbr>2'
    """
    return HtmlCell(_BREAKS.sub("<wbr>", escape(text)))


def table(
    caption: str,
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: int = 0,
    total: bool = False,
    compact: bool = False,
) -> str:
    """A table with a caption, column headers and row headers."""
    kinds = _kinds(headers, numbers)
    lines = [_row(row, kinds, mark=total and position == len(rows) - 1) for position, row in enumerate(rows)]
    return _frame(caption, headers, kinds, "<tbody>" + "\n".join(lines) + "</tbody>", compact=compact)


def grouped_table(
    caption: str,
    headers: Sequence[str],
    groups: Sequence[tuple[str, Sequence[Sequence[str]]]],
    *,
    numbers: int = 0,
    compact: bool = False,
) -> str:
    """A table whose rows stand in groups, each under a header of its own; otherwise as :func:`table`."""
    kinds = _kinds(headers, numbers)
    bodies = []
    for name, rows in groups:
        lines = "\n".join(_row(row, kinds, mark=False) for row in rows)
        head = f'<tr class="group"><th scope="rowgroup" colspan="{len(headers)}"><div class="stay">{_html(name)}</div></th></tr>'
        bodies.append(f"<tbody>{head}\n{lines}</tbody>")
    return _frame(caption, headers, kinds, "\n".join(bodies), compact=compact)


def section(name: str, title: str, *content: str) -> str:
    """A section with a heading that its landmark is named after."""
    inner = "\n".join(content)
    return f'<section aria-labelledby="{escape(name)}"><h2 id="{escape(name)}">{escape(title)}</h2>\n{inner}</section>'


def paragraphs(*texts: str, kind: str = "") -> str:
    """Paragraphs of plain text; empty ones are left out."""
    mark = f' class="{escape(kind)}"' if kind else ""
    return "\n".join(f"<p{mark}>{_html(text)}</p>" for text in texts if text)


def listing(pairs: Sequence[tuple[str, str]]) -> str:
    """Names and what belongs to them."""
    items = "\n".join(f"<dt>{_html(name)}</dt><dd>{_html(text)}</dd>" for name, text in pairs if text)
    return f'<dl class="list">{items}</dl>'


def details(summary: str, *content: str) -> str:
    """A part that can be folded away; it is open at first, so that print shows it."""
    inner = "\n".join(content)
    return f"<details open><summary>{_html(summary)}</summary>\n{inner}</details>"


def integer(value: int) -> str:
    """A whole number with separators.

    Example:
        >>> integer(1234567)
        '1,234,567'
    """
    return f"{value:,}"


def count_of(value: int, noun: str) -> str:
    """A number with its noun in the right form.

    Example:
        >>> count_of(1, "region"), count_of(51, "region")
        ('1 region', '51 regions')
    """
    return f"{integer(value)} {noun}{'' if value == 1 else 's'}"


def number(value: float, digits: int = 6) -> str:
    """A loss, bound or level with separators and a fixed number of significant digits, rounded up, without an exponent where readable.

    Example:
        >>> number(92401.68003), number(1.2572810), number(2.2e-05), number(0.5), number(1e-10)
        ('92,401.7', '1.257281', '0.000022', '0.5', '1e-10')
    """
    if value and abs(value) < 1e-6:
        return f"{upper(value, digits=3):.3g}"
    places = max(0, digits - len(str(int(abs(value)))))
    text = fixed(value, min(places, 6) if abs(value) >= 10 else 6)
    return text.rstrip("0").rstrip(".") if "." in text else text


def fixed(value: float, places: int) -> str:
    """A loss, margin or variance with separators and fixed decimal places, rounded up.

    Example:
        >>> fixed(1234.5, 2), fixed(0.1201, 2)
        ('1,234.50', '0.13')
    """
    return f"{upper(value, places):,.{places}f}"


def _kinds(headers: Sequence[str], numbers: int) -> list[str]:
    first_number = len(headers) - numbers
    return [' class="n"' if column >= first_number else "" for column in range(len(headers))]


def _frame(caption: str, headers: Sequence[str], kinds: Sequence[str], body: str, *, compact: bool) -> str:
    head = "".join(
        f'<th scope="col"{kind}>{_html(text)}</th>' for text, kind in zip(headers, kinds, strict=True)
    )
    kind = ' class="compact"' if compact else ""
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}"><table{kind}>'
        f'<caption><div class="stay">{escape(caption)}</div></caption><thead><tr>{head}</tr></thead>\n{body}</table></div>'
    )


def _row(row: Sequence[str], kinds: Sequence[str], *, mark: bool) -> str:
    cells = "".join(f"<td{kind}>{_html(text)}</td>" for text, kind in zip(row[1:], kinds[1:], strict=True))
    kind = ' class="total"' if mark else ""
    return f'<tr{kind}><th scope="row">{_html(row[0])}</th>{cells}</tr>'


def _html(text: str) -> str:
    return text if isinstance(text, HtmlCell) else escape(text)


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
    from matplotlib import rc_context

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
