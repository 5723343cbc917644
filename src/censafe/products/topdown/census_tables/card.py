"""The card of one area: its main numbers with intervals, what can be used, and the areas beside it, on one page. All of it is public."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from censafe.products.topdown.census_tables.card_values import CardTable, CardValues, Use, use_of
from censafe.products.topdown.census_tables.shapes import AreaShapes
from censafe.publication.atomic import atomic_text
from censafe.publication.pages import Exhibit, ExhibitSheet, PageTable, sheet_html
from censafe.publication.stamps import STAMP_REASONS

_PROPER: Final = ("hispanic", "latino")
_MOST_NEIGHBORS: Final = 24
_MOST_TICKS: Final = 4
_OWN: Final = "#0b5c7a"
_OTHER: Final = "#9aa5b1"
_RULE: Final = (
    "The interval of a number reaches at most a tenth of it to either side: use it. At most half: use it with care, and say how sure it is. Further: do not use it "
    "alone; add areas or cells together first, or take the same number of a larger area. Exact is what is published "
    "as it was counted, or follows from that. A number that is not, and whose interval has no width, did not change in any of the further runs; it may be wrong all the same."
)
_FOOTER: Final = "Public: everything on this page follows from published counts, and from further runs on them or published estimates. Nothing confidential was read."


def write_card(path: Path, values: CardValues, code: str, shapes: AreaShapes | None) -> None:
    """Write the card of an area: one HTML file that loads nothing."""
    place = values.codes.index(code)
    words = values.kind
    title = values.names[place] or f"{words[:1].upper()}{words[1:]} {code}"
    stamp = f"{values.stamp}: {STAMP_REASONS[values.stamp]}. " if values.stamp else ""
    exhibits = [
        *_sections(values, place),
        *_neighbors(values, code),
        _usable(values, place),
        *_map(values, code, shapes),
    ]
    sheet = ExhibitSheet(
        title=title,
        kicker=f"{'Census' if values.contents.census else 'Counts'} of one {words}",
        answer=[f"{stamp}{_headline(values, place)}"],
        facts=list(_facts(values, place)),
        exhibits=exhibits,
        settings=[
            ("Area", f"{words} {code}"),
            ("Intervals", f"{values.level}, from {_sources(values)}"),
        ],
        footer=_FOOTER,
    )
    atomic_text(path, sheet_html(sheet, f"{values.stamp}: " if values.stamp else ""))


def _cell(table: CardTable, place: int, line: int = 0) -> tuple[float, float, float]:
    return table.values[place, line], table.low[place, line], table.high[place, line]


def _use(table: CardTable, place: int, line: int) -> Use | Literal[""]:
    """Whether a number can be used; nothing where there is none."""
    value, low, high = _cell(table, place, line)
    return "" if np.isnan(value) else use_of(value, low, high, exact=bool(table.exact[place, line]))


def _ends(values: CardValues, table: CardTable, place: int, line: int = 0) -> str:
    """An interval in words."""
    low, high = table.low[place, line], table.high[place, line]
    if low != high:
        return f"between {_text(table, low)} and {_text(table, high)}"
    return "exact" if table.exact[place, line] else f"did not change in {values.replicates} runs"


def _text(table: CardTable, value: float) -> str:
    if np.isnan(value):
        return ""
    return f"{value:,.1f}" if table.definition.median else f"{value:,.0f}"


def _headline(values: CardValues, place: int) -> str:
    parts = []
    for name in values.contents.totals:
        if name in values.tables:
            table, words = values.tables[name], values.contents.nouns[name]
            parts.append(f"{_text(table, table.values[place, 0])} {words} ({_ends(values, table, place)})")
    totals = f"{' and '.join(parts)}. " if parts else ""
    return f"{totals}Intervals hold the true number in about {values.level} of cases."


def _facts(values: CardValues, place: int) -> Iterator[tuple[str, str, str]]:
    for name, words in values.contents.nouns.items():
        if name in values.tables:
            table = values.tables[name]
            yield words, _text(table, table.values[place, 0]) or "none", _ends(values, table, place)


def _sections(values: CardValues, place: int) -> Iterator[Exhibit]:
    """The tables, with a pyramid of ages where there is one."""
    for section in values.contents.sections:
        tables = [values.tables[name] for name in section.tables if name in values.tables]
        if tables:
            ages = values.tables.get(section.ages)
            leading = [one for one in tables if one.definition.name == section.leading]
            yield Exhibit(
                section.key,
                section.title,
                _most(leading or tables, place),
                _pyramid(ages, place, values.level) if ages else None,
                f"Women and men by age, with the {values.level} interval of each number as a line."
                if ages
                else "",
                [_table(values, one, place) for one in tables],
            )


def _most(tables: Sequence[CardTable], place: int) -> str:
    """The largest number below a total, in words."""
    entries = [
        (table.values[place, line], table.definition.lines[line].label, table, line)
        for table in tables
        if not table.definition.median
        for line in _groups(table)
    ]
    if not entries:
        return f"{_text(tables[0], tables[0].values[place, 0])} in all."
    value, label, table, line = max(entries, key=lambda entry: entry[0])
    low, high = _text(table, table.low[place, line]), _text(table, table.high[place, line])
    total = table.values[place, _groups(table)].sum() if _has_no_total(table) else table.values[place, 0]
    share = f", {100 * value / total:.0f}% of {_text(table, total)}" if total > 0 else ""
    return f"The largest group is {label.rstrip(':')}: {_text(table, value)} ({low} to {high}){share}."


def _has_no_total(table: CardTable) -> bool:
    """Whether all lines stand beside each other."""
    return len(table.definition.lines) > 1 and not any(line.depth for line in table.definition.lines)


def _groups(table: CardTable) -> list[int]:
    """Lines below the total, or all where there is none."""
    lines = table.definition.lines
    depth = 0 if _has_no_total(table) else 1
    return [number for number, line in enumerate(lines) if line.depth == depth]


def _table(values: CardValues, table: CardTable, place: int) -> PageTable:
    rows = []
    for line, cell in enumerate(table.definition.lines):
        number, low, high = _cell(table, place, line)
        use: str = _use(table, place, line)
        if use == "did not change":
            use = _ends(values, table, place, line)
        indent = "\u2003" * cell.depth
        rows.append(
            [
                f"{indent}{cell.label.rstrip(':')}",
                _text(table, number),
                _text(table, low),
                _text(table, high),
                use,
            ]
        )
    return PageTable(_caption(table), ("", "Number", f"{values.level} from", "to", "Use it?"), rows, 4)


def _caption(table: CardTable) -> str:
    """The name of a table, and its title in sentence case, proper names kept."""
    name = table.definition.name
    if not table.definition.title:
        return f"{name[:1].upper()}{name[1:]}"
    words = table.definition.title.capitalize().split(" ")
    title = " ".join(word.capitalize() if word.rstrip(",") in _PROPER else word for word in words)
    return f"{name}: {title}"


def _pyramid(ages: CardTable, place: int, level: str) -> Figure:
    """Women and men by age side by side."""
    lines = ages.definition.lines
    half = (len(lines) - 1) // 2
    figure = Figure(figsize=(8.5, 6.0), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    labels = [cell.label for cell in lines[2 : half + 1]]
    rows = np.arange(len(labels))
    for axes, first, title in ((left, 2, "Men"), (right, half + 2, "Women")):
        span = slice(first, first + len(labels))
        value, low, high = (array[place, span] for array in (ages.values, ages.low, ages.high))
        axes.barh(rows, value, color=_OTHER, height=0.8)
        axes.hlines(rows, low, high, color=_OWN, linewidth=2)
        axes.set_title(title, fontsize=10, loc="left")
        _quiet(axes)
    cells = [line for line, cell in enumerate(lines) if cell.depth == 2]
    widest = max(float(ages.high[place, cells].max()), 1.0)
    left.set_xlim(widest, 0)
    right.set_xlim(0, widest)
    left.set_yticks(rows, labels)
    figure.supxlabel(f"people; lines are {level} intervals", fontsize=9)
    return figure


def _quiet(axes: Axes) -> None:
    axes.grid(axis="x", color="#e3e7ec", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(_MOST_TICKS))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.tick_params(labelsize=8)


def _neighbors(values: CardValues, code: str) -> Iterator[Exhibit]:
    """The areas of the same parent, those of most similar size where there are many."""
    total = next((values.tables[name] for name in values.contents.totals if name in values.tables), None)
    own = values.codes.index(code)
    places = [place for place in values.neighbors(code) if place != own]
    if total is None or not places:
        return
    size = total.values[:, 0]
    near = sorted(places, key=lambda place: abs(size[place] - size[own]))[:_MOST_NEIGHBORS]
    compared = sorted([own, *near], key=lambda place: -size[place])
    larger = sum(bool(size[place] > size[own]) for place in places)
    names = [values.names[place] or values.codes[place] for place in compared]
    columns = [values.tables[name] for name in values.contents.compared if name in values.tables]
    rows = []
    for name, place in zip(names, compared, strict=True):
        cells = [[_text(one, number) for number in _cell(one, place)] for one in columns]
        rows.append(
            [name, *(value if low == high else f"{value} ({low} to {high})" for value, low, high in cells)]
        )
    words = {name: f"{noun[:1].upper()}{noun[1:]}" for name, noun in values.contents.nouns.items()}
    headers = ("Area", *(f"{words[one.definition.name]} ({values.level} interval)" for one in columns))
    drawn = next((one for one in columns if one.definition.median), total)
    title = "median age" if drawn.definition.median else words[drawn.definition.name].lower()
    yield Exhibit(
        "neighbors",
        "How does it compare with the areas beside it?",
        f"{larger} of the {len(places)} other areas beside it have more {words[total.definition.name].lower()}.",
        _dots(drawn, compared, names, compared.index(own), f"{title}, with {values.level} intervals"),
        f"The {title} of the area and of up to {_MOST_NEIGHBORS} areas of similar size beside it, with {values.level} intervals.",
        [PageTable("Areas beside it, the largest first", headers, rows, len(columns))],
    )


def _dots(table: CardTable, places: Sequence[int], names: Sequence[str], own: int, title: str) -> Figure:
    figure = Figure(figsize=(8.5, 0.26 * len(places) + 1.0), layout="constrained")
    axes = figure.subplots()
    rows = np.arange(len(places))[::-1]
    colors = [_OWN if place == own else _OTHER for place in range(len(places))]
    value, low, high = (array[list(places), 0] for array in (table.values, table.low, table.high))
    axes.hlines(rows, low, high, color=colors, linewidth=3, alpha=0.8)
    axes.scatter(value, rows, color=colors, s=22, zorder=3)
    axes.set_yticks(rows, names)
    axes.set_xlabel(title, fontsize=9)
    _quiet(axes)
    return figure


def _usable(values: CardValues, place: int) -> Exhibit:
    """How many numbers of each table are exact, sure, to be used with care, and not to be used."""
    kinds: tuple[Use, ...] = ("exact", "did not change", "yes", "with care", "no")
    rows, sums = [], dict.fromkeys(kinds, 0)
    for table in values.tables.values():
        lines = range(len(table.definition.lines))
        uses = [_use(table, place, line) for line in lines]
        for kind in kinds:
            sums[kind] += uses.count(kind)
        rows.append([_caption(table), *(str(uses.count(kind)) for kind in kinds)])
    number = sum(sums.values())
    return Exhibit(
        "use",
        "Which of these numbers can be used?",
        f"Of {number} numbers {sums['exact']} are exact, {sums['did not change']} did not change in the further runs, and {sums['yes']} can be used; {sums['with care']} need care, and {sums['no']} are too uncertain to be "
        "used alone.",
        tables=[
            PageTable(
                "Numbers of each table",
                ("Table", "Exact", "Did not change", "Yes", "With care", "No"),
                rows,
                5,
            )
        ],
        how=[_RULE, *_how(values)],
    )


def _sources(values: CardValues) -> str:
    """What the intervals come from, and of which tables where there are two kinds."""
    kinds = {one.linear for one in values.tables.values()}
    sources = []
    if True in kinds:
        sources.append(f"linear estimates of the noisy answers{_of_tables(values, linear=True)}")
    if False in kinds:
        sources.append(
            f"{values.replicates} replicates by the Census Bureau's rule{_of_tables(values, linear=False)}"
        )
    return ", and from ".join(sources)


def _of_tables(values: CardValues, *, linear: bool) -> str:
    names = [name for name, one in values.tables.items() if one.linear == linear]
    return "" if len(names) == len(values.tables) else f" ({', '.join(names)})"


def _how(values: CardValues) -> Iterator[str]:
    if any(one.linear for one in values.tables.values()):
        yield (
            f"Linear estimates{_of_tables(values, linear=True)} follow from the noisy answers alone, before these were made whole and not negative, with standard "
            f"deviations that follow from the noise. Their {values.level} interval is shown in whole numbers, not below 0, and reaches to the published number where "
            "that lies outside of it."
        )
    if not all(one.linear for one in values.tables.values()):
        yield (
            f"Each of {values.replicates} replicates{_of_tables(values, linear=False)} is a further run of the same computation with new noise on the published counts. How far replicates lie from "
            f"what was published shows how far this may lie from the truth; intervals of {values.level} follow by the Census Bureau's rule. A published "
            "count that is far off itself has an interval that is a little too short."
        )


def _map(values: CardValues, code: str, shapes: AreaShapes | None) -> Iterator[Exhibit]:
    if shapes is None:
        return
    neighbors = [values.codes[place] for place in values.neighbors(code)]
    if not shapes.outlines(code):
        return
    figure = Figure(figsize=(6.5, 6.0), layout="constrained")
    axes = figure.subplots()
    for other in sorted(neighbors, key=lambda one: one == code):
        for ring in shapes.outlines(other):
            axes.fill(
                ring[:, 0],
                ring[:, 1],
                facecolor=_OWN if other == code else "#eef1f4",
                edgecolor="#4a5868",
                linewidth=0.6,
            )
    axes.set_aspect(1 / np.cos(np.deg2rad(np.concatenate(shapes.outlines(code))[:, 1].mean())))
    axes.axis("off")
    alt = "Outline of the area among the areas beside it."
    yield Exhibit("map", "Where is it?", "The area is filled; those beside it are outlined.", figure, alt)
