"""The page of an evaluation: one self-contained HTML file, question first, then figure, table, and how it was computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from censafe.evaluation.confidential import COMPARED, Standing
from censafe.publication.exhibits import Exhibit, PageTable, Sheet, sheet_html, svg_text

__all__ = ["Exhibit", "Page", "PageTable", "page_html", "svg_text"]

_FOOTERS: Final = {
    Standing.COMPARED: COMPARED,
    Standing.PUBLISHED: "Public, by the word of its operator: what stands for the truth on this page was published before.",
    Standing.PUBLIC: "Public: everything on this page follows from published figures and the published noise laws; no true count was used.",
}


@dataclass(frozen=True, eq=False)
class Page:
    """A whole evaluation.

    Args:
        title: what was evaluated.
        kicker: kind of evaluation.
        answer: the main finding in plain sentences.
        facts: name, value and small print of the most important numbers.
        exhibits: questions in the order in which they are answered.
        settings: how the evaluation was made, by name.
        standing: who may see it.
    """

    title: str
    kicker: str
    answer: Sequence[str]
    facts: Sequence[tuple[str, str, str]]
    exhibits: Sequence[Exhibit]
    settings: Sequence[tuple[str, str]] = field(default_factory=tuple)
    standing: Standing = Standing.COMPARED


def page_html(page: Page) -> str:
    """The page as HTML; nothing on it is loaded from elsewhere and nothing is a script."""
    sheet = Sheet(
        page.title,
        page.kicker,
        page.answer,
        page.facts,
        page.exhibits,
        page.settings,
        footer=_FOOTERS[page.standing],
        banner=_banner(page),
    )
    mark = "CONFIDENTIAL: " if page.standing.confidential else ""
    return sheet_html(sheet, mark, "How this evaluation was made")


def _banner(page: Page) -> str:
    if not page.standing.confidential:
        return ""
    return (
        '<div class="banner" role="alert"><strong>CONFIDENTIAL: compares with the truth</strong>'
        "<p>Errors reveal true counts: whoever has the published files can subtract. Do not publish or copy.</p></div>"
    )
