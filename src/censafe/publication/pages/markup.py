"""Small pieces of HTML with everything escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Final

from censafe.model.bounds import upper

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
