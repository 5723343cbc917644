"""The page of ``evaluate sweep``, from its files alone, with figures 1 to 3 of Petti & Flaxman on any population."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from censafe.evaluation.outputs import confidentiality_of, number_text, read_evaluation, read_frame
from censafe.evaluation.pages.page import (
    COLORS,
    EPSILON,
    Page,
    Rows,
    exhibit,
    grouped,
    known,
    number,
    one_panel,
    plain_log,
    quiet,
    run_settings,
    shade,
    spaced,
)
from censafe.model.bounds import upper
from censafe.publication.pages import Exhibit


def draw_curves(curves: Mapping[float, Rows], symbol: str) -> Figure:
    """Figure 1: residuals of stratified counts on the unit grid, and their empirical privacy loss."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for place, (budget, rows) in enumerate(curves.items()):
        color = shade(place, len(curves), 0.1)
        label = f"{symbol} = {budget:g}"
        x = [row["x"] for row in rows]
        left.step(x, [row["hist"] for row in rows], where="mid", color=color, linewidth=1.3, label=label)
        right.plot(x, [number(row["smooth_epl"]) for row in rows], color=color, linewidth=1.3, label=label)
    for axes, title, words in (
        (left, "(a) residuals", "counts with this residual"),
        (right, "(b) empirical privacy loss", "log ratio of neighboring densities"),
    ):
        axes.set_xlim(-50, 50)
        quiet(axes, title=title, x="published less true count, records", y=words)
    right.axhline(0, color="#555555", linewidth=0.8)
    left.legend(frameon=False, fontsize=9)
    return figure


def draw_trade(topdown: Rows, srs: Rows, symbol: str) -> Figure:
    """Figure 2: error against empirical privacy loss, TopDown by budget and samples by rate."""
    figure, axes = one_panel(8, 5)
    named: list[tuple[float, float, str, str]] = []
    for rows, method, words, key, unit in (
        (topdown, "topdown", "TopDown", "epsilon", ""),
        (srs, "srs", "simple random sample (not differentially private)", "sample_pct", "%"),
    ):
        known = [row for row in rows if np.isfinite(number(row["epl"])) and number(row["epl"]) > 0]
        if not known:
            continue
        x, y = [row["epl"] for row in known], [row["median_ae"] for row in known]
        form = "o-" if method == "topdown" else "s"
        axes.plot(x, y, form, color=COLORS[method], markersize=6, linewidth=1.3, label=words)
        for row, left, up in zip(known, x, y, strict=True):
            text = f"{symbol} {row[key]:g}" if not unit else f"{row[key]:g}{unit}"
            named.append((left, up, text, COLORS[method]))
    axes.set_xscale("log")
    plain_log(axes.xaxis)
    axes.set_ylim(bottom=0)
    _name_points(axes, named)
    axes.legend(frameon=False, fontsize=9)
    quiet(
        axes,
        x="empirical privacy loss (to the left: more private)",
        y="median absolute error of stratified counts, records",
    )
    return figure


_SIZE = 7.0  # of a name, in points
_ROOM = 5.0  # between a point and its name


def _name_points(axes: Axes, named: Sequence[tuple[float, float, str, str]]) -> None:
    """Write names beside points, each on the first side where it covers no point and no name before it."""
    dots = 72 / axes.figure.dpi
    points = axes.transData.transform([(x, y) for x, y, _, _ in named]).reshape(-1, 2) * dots
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in points.tolist()]
    for place, (x, y, text, color) in enumerate(named):
        width = 0.6 * _SIZE * len(text)
        middle = taken[place][0] + 4, taken[place][1] + 4
        sides = [
            (right * _ROOM - (width if right < 0 else 0), up * _ROOM - (0 if up > 0 else _SIZE))
            for right, up in ((1, 1), (1, -1), (-1, -1), (-1, 1))
        ]
        sides += [(_ROOM + 2, -_SIZE / 2), (-_ROOM - 2 - width, -_SIZE / 2)]
        boxes = [
            (middle[0] + left, middle[1] + low, middle[0] + left + width, middle[1] + low + _SIZE)
            for left, low in sides
        ]
        covered = [
            sum(
                left < box[2] and box[0] < right and low < box[3] and box[1] < high
                for box in taken[:place] + taken[place + 1 :]
            )
            for left, low, right, high in boxes
        ]
        chosen = covered.index(min(covered))
        taken.append(boxes[chosen])
        axes.annotate(text, (x, y), sides[chosen], textcoords="offset points", fontsize=_SIZE, color=color)


def draw_bias(violins: Rows, symbol: str, largest: float) -> Figure:
    """Figure 3: distribution of the residual of the total by homogeneity index, three budgets beside each other."""
    settings = sorted({row["setting"] for row in violins})
    indices = sorted({row["index"] for row in violins})
    figure, axes = one_panel(max(8.0, 0.62 * len(indices) + 2), 4.6)
    for place, setting in enumerate(settings):
        color = shade(place, len(settings), 0.1)
        offset = (place - (len(settings) - 1) / 2) * 0.27
        for at, index in enumerate(indices):
            own = [row for row in violins if (row["setting"], row["index"]) == (setting, index)]
            if not own:
                continue
            values = np.repeat([row["residual"] for row in own], [row["n"] for row in own]).astype(float)
            inside = values[np.abs(values) <= largest]
            if len(np.unique(inside)) > 1:
                parts = axes.violinplot(inside, [at + offset], widths=0.25, showextrema=False)
                bodies: Any = parts["bodies"]
                for body in bodies:
                    body.set(facecolor=color, alpha=0.45, linewidth=0)
            axes.plot(at + offset, float(values.mean()), marker="D", color=color, markersize=4)
        axes.plot(
            [], [], marker="D", color=color, linestyle="", markersize=5, label=f"{symbol} = {setting:g}"
        )
    axes.axhline(0, color="#555555", linewidth=0.8)
    axes.set_xticks(range(len(indices)), [str(index) for index in indices], fontsize=8)
    axes.set_ylim(-largest, largest)
    axes.legend(frameon=False, fontsize=9, title="diamonds: means", title_fontsize=8)
    quiet(
        axes,
        x="homogeneity index: left diverse areas, right homogeneous ones",
        y="published less true total, records",
    )
    return figure


def draw_error_by_budget(rows: Rows, levels: Sequence[str], symbol: str) -> Figure:
    """Mean absolute error of totals and of stratified counts against the budget, a line for each level."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    grid = figure.subplots(1, 2)
    for axes, stat, title in zip(grid, ("TC", "SC"), ("total", "stratified counts"), strict=True):
        for place, level in enumerate(levels):
            own = [row for row in rows if (row["stat"], row["level"]) == (stat, level) and row["mean_ae"] > 0]
            if own:
                color = shade(place, len(levels))
                axes.plot(
                    [row["epsilon"] for row in own], [row["mean_ae"] for row in own],
                    marker="o", color=color, markersize=4, linewidth=1.3, label=spaced(level),
                )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        plain_log(axes.yaxis)
        budgets = sorted({row["epsilon"] for row in rows})
        axes.set_xticks(budgets, [f"{budget:g}" for budget in budgets])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_title(title, fontsize=10)
        axes.set_xlabel(symbol, fontsize=9)
        if axes.lines:
            axes.legend(frameon=False, fontsize=8)
        quiet(axes)
    grid[0].set_ylabel("mean absolute error, records", fontsize=9)
    return figure


_MEAN_OF: Final = 10  # areas of a class whose mean figure 3 has room for, however large it is
_TEXTS: Final = ("method", "stat", "epl_estimator", "epl_reason")


def sweep_page(folder: Path) -> Page:
    """The page of a folder that ``evaluate sweep`` wrote."""
    document = read_evaluation(folder)
    full = read_frame(folder, "full_table", _TEXTS).to_pylist()
    exhibits = [
        _findings(folder),
        _budget(full, document),
        _curves(folder),
        _hidden(full, document),
        _trade(folder, full, document),
        *_bias(folder, document),
        _full(full),
    ]
    return Page(
        title=f"What does a budget buy? TopDown with {document['configuration']}",
        kicker="Sweep over budgets",
        answer=_answer(full, document),
        facts=_facts(document),
        exhibits=[one for one in exhibits if one is not None],
        settings=run_settings(document),
        confidentiality=confidentiality_of(document),
    )


def _facts(document: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    epsilons = document["epsilons"]
    runs = document.get("runs_of") or [document["runs"]] * len(epsilons)
    few, many = min(runs), max(runs)
    kind = "published files, " if document.get("published") else ""
    words = "of the whole run"
    if document["definition"] == "zcdp":
        words += "; tight conversion at delta 10⁻¹⁰"
    return [
        (f"Budgets {EPSILON}", f"{epsilons[0]:g} to {epsilons[-1]:g}", words),
        ("Runs", str(sum(runs)), f"{kind}{few if few == many else f'{few} to {many}'} for each budget"),
        ("Lowest level", f"{list(document['geounits'].values())[-1]:,}", document["levels"][-1]),
    ]


def _answer(full: Rows, document: Mapping[str, Any]) -> list[str]:
    own = [row for row in _chosen(full, "topdown", "corrected", "TC") if row["level"] == document["middle"]]
    if not own:
        return []
    first, last = own[0], own[-1]
    return [
        f"The total of an area of level {document['middle']} is off by {number_text(first['mean_ae'])} records on average at "
        f"{EPSILON}\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{first['epsilon']:g}, and by {number_text(last['mean_ae'])} at "
        f"{EPSILON}\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{last['epsilon']:g}."
    ]


def _chosen(full: Rows, method: str, mode: str, stat: str | None = None) -> list[Mapping[str, Any]]:
    chosen = [
        row for row in full if (row["method"], row["mode"]) == (method, mode) and stat in (None, row["stat"])
    ]
    return sorted(chosen, key=lambda row: row["epsilon"] if method == "topdown" else row["sample_pct"])


def _findings(folder: Path) -> Exhibit:
    rows = read_frame(folder, "findings").to_pylist()
    yes, partly = (sum(row["verdict"] == word for row in rows) for word in ("yes", "partly"))
    return exhibit(
        "sweep.findings",
        rows=[
            [row["finding"], row["verdict"], row["measured"], row["published"], row["why"]] for row in rows
        ],
        yes=yes,
        number=len(rows),
        partly=partly,
    )


def _budget(full: Rows, document: Mapping[str, Any]) -> Exhibit:
    rows = _chosen(full, "topdown", "corrected")
    errors = {(row["stat"], row["level"], row["epsilon"]): row["mean_ae"] for row in rows}
    epsilons, levels = document["epsilons"], document["levels"]
    sections = [
        (
            words,
            [
                [level, *(number_text(errors.get((stat, level, one)), 2) for one in epsilons)]
                for level in levels
            ],
        )
        for stat, words in (("TC", "Total"), ("SC", "Stratified counts"))
    ]
    return exhibit(
        "sweep.budget",
        figure=draw_error_by_budget(rows, levels, EPSILON),
        columns=("Level", *(f"{EPSILON} {one:g}" for one in epsilons)),
        sections=sections,
    )


def _curves(folder: Path) -> Exhibit | None:
    rows = read_frame(folder, "epl_curves", ("method",)).to_pylist()
    own = [row for row in rows if row["method"] == "topdown"]
    curves = grouped(own, lambda row: float(row["setting"]))
    return exhibit("sweep.figure-1", figure=draw_curves(curves, EPSILON)) if curves else None


def _hidden(full: Rows, document: Mapping[str, Any]) -> Exhibit | None:
    """Measured empirical loss and that of the level's noise alone."""
    compared = [
        (stat, level, _losses(full, stat, level))
        for stat, level in dict.fromkeys((row["stat"], row["level"]) for row in full)
    ]
    pairs_of_rows = [pair for _, _, pairs in compared for pair in pairs]
    if not pairs_of_rows:
        return None
    comparable = [middle for _, middle in pairs_of_rows if known(middle["epl"])]
    below = sum(middle["epl"] <= middle["noise_epl"] for middle in comparable)
    return exhibit(
        "sweep.noise-loss",
        sections=[
            (f"{stat}, {level.replace('_', ' ')}", [_loss_line(*pair) for pair in pairs])
            for stat, level, pairs in compared
            if pairs
        ],
        below=below,
        comparable=len(comparable),
    )


def _losses(full: Rows, stat: str, level: str) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """For each budget with a loss of the noise alone, the row of the largest value and that of the median."""
    published, corrected = (
        {row["epsilon"]: row for row in _chosen(full, "topdown", mode, stat) if row["level"] == level}
        for mode in ("as_published", "corrected")
    )
    return [(published[epsilon], row) for epsilon, row in corrected.items() if known(row.get("noise_epl"))]


def _loss_line(largest: Mapping[str, Any], middle: Mapping[str, Any]) -> list[str]:
    return [
        f"{EPSILON} {middle['epsilon']:g}",
        number_text(upper(middle["noise_loss"], 3), 3),
        *(number_text(middle[name], 3) for name in ("noise_epl", "epl")),
        f"{number_text(middle['epl_lo'], 3)} to {number_text(middle['epl_hi'], 3)}",
        *(number_text(largest[name], 3) for name in ("noise_epl", "epl")),
    ]


def _trade(folder: Path, full: Rows, document: Mapping[str, Any]) -> Exhibit:
    middle = document["middle"]
    topdown, srs = (
        [row for row in _chosen(full, method, "as_published", "SC") if row["level"] == middle]
        for method in ("topdown", "srs")
    )
    matched = read_frame(folder, "table_one").to_pylist()
    return exhibit(
        "sweep.figure-2",
        figure=draw_trade(topdown, srs, EPSILON),
        rows=[
            [
                f"{row['epsilon']:g}",
                number_text(row["sample_pct"], 0),
                number_text(row["distance"], 2),
            ]
            for row in matched
        ],
        middle=middle,
        epsilon=EPSILON,
    )


def _bias(folder: Path, document: Mapping[str, Any]) -> list[Exhibit]:
    if not (folder / "bias.csv").exists():
        return []
    bias = read_frame(folder, "bias", ("method",)).to_pylist()
    violins = (
        read_frame(folder, "violins", ("method",)).to_pylist() if (folder / "violins.csv").exists() else []
    )
    exhibits = []
    for level in dict.fromkeys((document["levels"][-1], document["middle"])):
        own = [row for row in bias if (row["level"], row["mode"]) == (level, "as_published")]
        drawn = [row for row in violins if row["level"] == level]
        if own and any(row["bias"] for row in own):
            exhibits.append(_bias_exhibit(level, own, drawn))
    return exhibits


def _bias_exhibit(level: str, bias: Rows, violins: Rows) -> Exhibit:
    settings = sorted({row["setting"] for row in bias})
    indices = sorted({row["index"] for row in bias})
    by_place = {(row["index"], row["setting"]): row for row in bias}
    texts = {
        place: number_text(row["bias"]) + (f" ±{2 * row['se']:.1f}" if known(row["se"]) else "")
        for place, row in by_place.items()
    }
    lines = []
    for index in indices:
        areas = next(by_place[index, one]["n_areas"] for one in settings if (index, one) in by_place)
        lines.append([str(index), f"{areas:,}", *(texts.get((index, one), "n/a") for one in settings)])
    sizes = np.abs([row["residual"] for row in violins for _ in range(row["n"])])
    drawn = {row["setting"] for row in violins}
    means = [abs(row["bias"]) for row in bias if row["setting"] in drawn and row["n_areas"] >= _MEAN_OF]
    largest = max(
        5.0, 1.05 * max(means, default=0.0), float(np.quantile(sizes, 0.98)) if len(sizes) else 75.0
    )
    return exhibit(
        "sweep.figure-3",
        name=f"figure-3-{level}",
        figure=draw_bias(violins, EPSILON, largest) if violins else None,
        columns=("Index", "Areas", *(f"{EPSILON} {one:g}" for one in settings)),
        rows=lines,
        level=level,
    )


def _full(full: Rows) -> Exhibit:
    """The lines of every count at every level: budgets, then samples."""
    metrics = ("count_median", "count_pct95", "median_ae", "pct95_ae", "max_ae")
    sections = []
    for stat, level in dict.fromkeys((row["stat"], row["level"]) for row in full):
        lines = [
            [
                f"{EPSILON} {row['epsilon']:g}" if method == "topdown" else f"sample {row['sample_pct']:g}%",
                *(number_text(row[metric], 0) for metric in metrics),
                number_text(row["epl"], 3),
            ]
            for method in ("topdown", "srs")
            for row in _chosen(full, method, "as_published", stat)
            if row["level"] == level
        ]
        sections.append((f"{stat}, {level}", lines))
    return exhibit("sweep.full-table", sections=sections)
