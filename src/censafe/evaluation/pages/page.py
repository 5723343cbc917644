"""The page of an evaluation, one self-contained HTML file, and figures of errors by level and number of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, TypeVar

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator

from censafe.evaluation.confidential import COMPARED, Confidentiality
from censafe.evaluation.shipped import shipped_document
from censafe.model.bounds import upper
from censafe.publication.certificate.tables import SYMBOLS
from censafe.publication.pages import Exhibit, ExhibitSheet, PageTable, sheet_html

NAN: Final = float("nan")
Rows = Sequence[Mapping[str, Any]]
"""Rows of a frame, each by column."""
Row = TypeVar("Row")
Key = TypeVar("Key")
EPSILON: Final = "\N{GREEK SMALL LETTER EPSILON}"
Triple = tuple[float, float, float]
"""A number and the ends of its interval; NaN for what is missing."""

_FOOTERS: Final = {
    Confidentiality.COMPARED: COMPARED,
    Confidentiality.PUBLISHED: "Public, by the word of its operator: what stands for the truth on this page was published before.",
    Confidentiality.PUBLIC: "Public: everything on this page follows from published figures and the published noise laws; no true count was used.",
}


_BANNER: Final = (
    '<div class="banner" role="alert"><strong>CONFIDENTIAL: compares with the truth</strong>'
    "<p>Errors reveal true counts: anyone who has the published files can subtract. Do not publish or copy.</p></div>"
)


@dataclass(frozen=True, eq=False)
class Page(ExhibitSheet):
    """A whole evaluation; banner and footer follow from its confidentiality."""

    confidentiality: Confidentiality = Confidentiality.COMPARED


def page_html(page: Page) -> str:
    """The page as HTML; nothing on it is loaded from elsewhere and nothing is a script."""
    confidential = page.confidentiality.confidential
    sheet = replace(page, footer=_FOOTERS[page.confidentiality], banner=_BANNER if confidential else "")
    return sheet_html(sheet, "CONFIDENTIAL: " if confidential else "", "How this evaluation was made")


def number(value: float | None) -> float:
    """A number of a frame that was read back; NaN where it is missing."""
    return NAN if value is None else float(value)


def known(value: float | None) -> bool:
    """Whether a frame has a number, and not NaN."""
    return value is not None and value == value


def shade(
    place: int, places: int, first: float = 0.0, last: float = 0.7
) -> tuple[float, float, float, float]:
    """Color of one of several lines in an order."""
    return colormaps["viridis"](first + (last - first) * place / max(1, places - 1))


def grouped(rows: Iterable[Row], key: Callable[[Row], Key]) -> dict[Key, list[Row]]:
    """Rows by a key, keys in the order of the rows."""
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def spaced(name: str) -> str:
    """The name of a level in words."""
    return name.replace("_", " ")


def interval(row: Mapping[str, Any] | None) -> Triple:
    """``value``, ``lo`` and ``hi`` of a row of a frame."""
    if row is None:
        return NAN, NAN, NAN
    return number(row["value"]), number(row["lo"]), number(row["hi"])


def capital(text: str) -> str:
    """A text with its first letter in upper case, the others as they are."""
    return text[:1].upper() + text[1:]


@cache
def _exhibit_texts() -> dict[str, Any]:
    """Texts of every exhibit, by page and name."""
    return shipped_document("exhibits.toml")


def exhibit(
    key: str,
    *,
    rows: Sequence[Sequence[str]] | None = None,
    sections: Iterable[tuple[str, Sequence[Sequence[str]]]] | None = None,
    more: Sequence[PageTable] = (),
    figure: Figure | None = None,
    name: str = "",
    columns: Sequence[str] | None = None,
    files: Sequence[str] | None = None,
    **words: object,
) -> Exhibit:
    """An exhibit with the question, answer, table heads and explanations of ``data/exhibits.toml``.

    Args:
        key: page and exhibit, such as ``sweep.findings``.
        rows: of its table; no table without rows and sections.
        sections: rows of its table below their headings.
        words: what stands for words in braces; ``question``, ``answer``, ``alt`` and ``caption`` where the file has none.
    """
    page, place = key.split(".")
    texts = _exhibit_texts()[page][place]
    words["caution"] = _exhibit_texts()["caution"]

    def filled(part: str) -> str:
        return str(words.get(part) or texts.get(part, "").format(**words))

    tables = list(more)
    parts = None if sections is None else list(sections)
    lines = rows if parts is None else [row for _, own in parts for row in own]
    if lines is not None:
        heads = columns or [head.format(**words) for head in texts["columns"]]
        groups = [(heading, len(own)) for heading, own in parts or ()]
        tables.insert(
            0, PageTable(filled("caption"), heads, lines, texts.get("numbers", len(heads) - 1), groups)
        )
    how = [paragraph.format(**words) for paragraph in texts.get("how", ())]
    files = texts["files"] if files is None else files
    return Exhibit(
        name or place, filled("question"), filled("answer"), figure, filled("alt"), tables, how, files
    )


def loss_fact(document: Mapping[str, Any], words: str) -> tuple[str, str, str]:
    """The privacy loss that a document states, rounded up, among the facts of its page."""
    return f"Privacy loss {SYMBOLS[document['symbol']]}", f"{upper(document['loss'], 4):,.4f}", words


def lowest_level(document: Mapping[str, Any]) -> tuple[str, str, str]:
    """How many geounits the lowest level has, among the facts of a page."""
    name, number = list(document["geounits"].items())[-1]
    return "Lowest level", f"{number:,}", f"{spaced(name)} geounits"


def settings_text(settings: Mapping[str, Any], nothing: str = "none") -> str:
    """Names and values of settings on one line."""
    return "; ".join(f"{name} = {value}" for name, value in settings.items()) or nothing


def run_settings(document: Mapping[str, Any], seed: str = "Seed") -> list[tuple[str, str]]:
    """Configuration, choices, geography and seed of an evaluation of TopDown."""
    return [
        ("Configuration", document["configuration"]),
        ("Changed settings", settings_text(document["overrides"])),
        ("Choices", settings_text(document["choices"], "")),
        ("Geounits", geounits_text(document)),
        (seed, str(document["seed"])),
    ]


def geounits_text(document: Mapping[str, Any]) -> str:
    """How many geounits every level has."""
    return ", ".join(f"{count:,} {name}" for name, count in document["geounits"].items())


COLORS: Final = {
    "topdown": "#0b5c7a",
    "noisy": "#d1762a",
    "blocks": "#6b4c9a",
    "blocks_noise": "#9aa5b1",
    "srs": "#4d7c2f",
}
MARKERS: Final = {"topdown": "o", "noisy": "s", "blocks": "^", "blocks_noise": "v", "srs": "s"}


PANEL_ROOM: Final = 0.12
"""Inches above and below a panel, so that a title stands apart from the words under the panel above it."""


def panel_grid(panels: int, height: float) -> tuple[Figure, list[Axes]]:
    """A figure of panels of one height, two beside each other, and the panels."""
    columns = min(2, panels)
    rows = -(-panels // columns)
    figure = Figure(figsize=(10, height * rows + 0.6), layout=ConstrainedLayoutEngine(h_pad=PANEL_ROOM))
    grid = np.atleast_1d(figure.subplots(rows, columns)).reshape(-1)
    for axes in grid[panels:]:
        axes.set_visible(False)
    return figure, list(grid[:panels])


def draw_levels(
    errors: Mapping[str, Mapping[str, Sequence[Triple]]], levels: Sequence[str], words: Mapping[str, str]
) -> Figure:
    """Mean absolute error at every level, a panel for each characteristic and a line for each method."""
    figure, grid = panel_grid(len(errors), 3.3)
    lines: dict[str, Any] = {}
    for axes, (title, methods) in zip(grid, errors.items(), strict=True):
        for method, values in methods.items():
            table = np.array(values, float).reshape(-1, 3)
            positive = np.isfinite(table[:, 0]) & (table[:, 0] > 0)
            if not positive.any():
                continue
            middle, low, high = table[positive].T
            bars = np.nan_to_num(np.vstack([middle - low, high - middle])).clip(min=0)
            bars[0] = np.minimum(bars[0], middle * 0.999)
            axes.errorbar(
                np.arange(len(levels))[positive], middle, yerr=bars, color=COLORS[method], marker=MARKERS[method],
                markersize=5, linewidth=1.4, capsize=2, label=method,
            )  # fmt: skip
        axes.set_yscale("log")
        plain_log(axes.yaxis)
        axes.set_xticks(range(len(levels)), [spaced(name) for name in levels], fontsize=8)
        axes.set_xlim(-0.4, len(levels) - 0.6)
        quiet(axes, title=title, y="mean absolute error, records")
        lines.update(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    seen = [name for name in words if name in lines]
    figure.legend(
        [lines[name] for name in seen], [words[name] for name in seen], loc="outside lower center", ncols=4,
        frameon=False, fontsize=9,
    )  # fmt: skip
    return figure


def draw_growth(rows: Sequence[Mapping[str, Any]], words: Mapping[str, str]) -> Figure:
    """Root mean square error of totals against the number of blocks, a panel for each level."""
    levels = list(dict.fromkeys(row["level"] for row in rows))
    figure = Figure(figsize=(max(3.6 * len(levels), 6), 3.9), layout="constrained")
    grid = np.atleast_1d(figure.subplots(1, len(levels), sharey=True))
    seen: dict[str, Any] = {}
    for axes, level in zip(grid, levels, strict=True):
        for method in words:
            chosen = [
                row for row in rows if row["level"] == level and row["method"] == method and row["rmse"] > 0
            ]
            if chosen:
                line = axes.plot(
                    [row["blocks_mean"] for row in chosen], [row["rmse"] for row in chosen],
                    color=COLORS[method], marker=MARKERS[method], markersize=5, linewidth=1.2,
                )  # fmt: skip
                seen[method] = line[0]
        axes.set_xscale("log")
        axes.set_yscale("log")
        plain_log(axes.xaxis)
        plain_log(axes.yaxis)
        quiet(axes, title=spaced(level), x="blocks in the area")
    grid[0].set_ylabel("RMSE of the total, records", fontsize=9)
    figure.legend(
        list(seen.values()), [words[name] for name in seen], loc="outside lower center", ncols=2 if len(levels) < 3 else 4,
        frameon=False, fontsize=9,
    )  # fmt: skip
    return figure


def plain_log(axis: Any) -> None:
    """Ticks of a logarithmic axis at 1, 2, 5 times powers of ten, as plain numbers."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=9))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(FuncFormatter(lambda _value, _: ""))


def one_panel(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure of one panel."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def quiet(axes: Axes, *, title: str = "", x: str = "", y: str = "") -> None:
    """Title and words of the axes; a grid behind what is drawn, no frame above and at the right, small labels."""
    if title:
        axes.set_title(title, fontsize=10)
    if x:
        axes.set_xlabel(x, fontsize=9)
    if y:
        axes.set_ylabel(y, fontsize=9)
    axes.grid(color="#e3e7ec", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
