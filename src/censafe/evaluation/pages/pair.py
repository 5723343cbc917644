"""The page of ``evaluate pair``, from its files alone, with exhibits of bias by class of areas and of areas that contradict themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from censafe.evaluation.confidential import legend_below
from censafe.evaluation.counts.accuracy import Tolerance
from censafe.evaluation.outputs import confidentiality_of, number_text, read_evaluation, read_frame
from censafe.evaluation.pages.page import (
    NAN,
    Page,
    Rows,
    Triple,
    capital,
    draw_levels,
    exhibit,
    grouped,
    interval,
    panel_grid,
    plain_log,
    quiet,
    spaced,
)
from censafe.evaluation.pairs.inconsistencies import COUNTED, NOT_MEASURED
from censafe.evaluation.pairs.inputs import MAIN
from censafe.publication.pages import Exhibit, PageTable

_MOST_ANSWERS = 12  # answers of a characteristic
_TEXTS = ("kind", "group", "status", "words", "relation", "label", "classes", "class")


def consistency_exhibits(folder: Path, document: Mapping[str, Any]) -> list[Exhibit]:
    """Bias by size and diversity, contradictions of persons and households, and the Bureau's kinds; those that have files."""
    exhibits = []
    for name, build in (
        ("bias_classes", _bias),
        ("contradictions", _contradictions),
        ("inconsistency", inconsistency_exhibit),
    ):
        if (folder / f"{name}.csv").exists():
            exhibits.append(build(read_frame(folder, name, _TEXTS).to_pylist(), document))
    return [one for one in exhibits if one.tables]


def _bias(rows: list[dict[str, Any]], document: Mapping[str, Any]) -> Exhibit:
    sections = []
    for histogram, characteristics in document["histograms"].items():
        for query, words in characteristics.items():
            own = [row for row in rows if (row["histogram"], row["characteristic"]) == (histogram, query)]
            if own and max(row["answer"] for row in own) < _MOST_ANSWERS:
                lines = [
                    [
                        spaced(row["level"]),
                        *(row[name] for name in ("label", "classes", "class")),
                        f"{row['n_areas']:,}",
                        *(number_text(row[name], 2) for name in ("count_mean", "bias", "se")),
                    ]
                    for row in own
                    if row["n_areas"] > 1
                ]
                sections.append((f"{histogram.capitalize()}: {words}", lines))
    filled = any(lines for _, lines in sections)
    return exhibit("consistency.bias-classes", sections=sections if filled else None, most=_MOST_ANSWERS)


def _contradictions(rows: list[dict[str, Any]], _: Mapping[str, Any]) -> Exhibit:
    places: dict[str, dict[str, dict[str, dict[str, Any]]]] = {}
    for row in rows:
        places.setdefault(row["words"], {}).setdefault(row["level"], {})[row["run_id"]] = row
    sections = []
    for words, levels in places.items():
        lines = []
        for level, runs in levels.items():
            true, public = _truth_and_first_run(runs)
            counts = [f"{count:,}" for count in (public["universe"], true["n"], public["n"])]
            percent = number_text(public["percent"], 1)
            lines.append([spaced(level), *counts, percent, f"{public['records']:,}"])
        sections.append((capital(words), lines))
    return exhibit("consistency.contradictions", sections=sections)


def _truth_and_first_run(
    runs: Mapping[str, Mapping[str, Any]],
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Of the rows of one place by run, that of the truth and that of the first published run."""
    true = runs["truth"]
    return true, next((row for name, row in runs.items() if name != "truth"), true)


def inconsistency_exhibit(rows: Rows, document: Mapping[str, Any]) -> Exhibit:
    """Areas by kind of contradiction."""
    words = document["inconsistencies"]
    overall = [row for row in rows if row["size_class"] == "all"]
    unmeasured = [
        [f"{row['number']}. {words[str(row['number']) + ' ' + row['kind']]}", row["reason"]]
        for row in overall if row["status"] not in (COUNTED, NOT_MEASURED)
    ]  # fmt: skip
    sections = [
        (f"{name.split()[0]}. {capital(words[name])}", lines) for name, lines in _counted(overall).items()
    ]
    missing = PageTable("Kinds that this product cannot tell", ("Kind", "Reason"), unmeasured)
    return exhibit(
        "consistency.inconsistency", sections=sections or None, more=[missing] if unmeasured else []
    )


def _counted(rows: Rows) -> dict[str, list[list[str]]]:
    """By kind, its lines where there is any inconsistency; the last one where there is none."""
    places: dict[tuple[str, str, str], dict[str, Mapping[str, Any]]] = {}
    for row in rows:
        if row["status"] == COUNTED:
            key = (f"{row['number']} {row['kind']}", row["group"], row["level"])
            places.setdefault(key, {})[row["run_id"]] = row
    by_kind: dict[str, list[list[str]]] = {}
    for (name, group, level), runs in places.items():
        true, public = _truth_and_first_run(runs)
        counts = [f"{count:,}" for count in (public["universe"], true["n"], public["n"])]
        line = [spaced(level), group or "all", *counts, number_text(public["percent"], 1)]
        by_kind.setdefault(name, []).append(line)
    return {
        name: [line for line in lines if line[2:5] != ["0", "0", "0"]] or lines[-1:]
        for name, lines in by_kind.items()
    }


_LAWS: Final = {"laplace": "geometric", "gaussian": "Gaussian"}
_LOSS_MEASURES: Final = {
    ("discrete", "median"): "median of whole errors",
    ("kernel", "median"): "median of the kernel",
    ("kernel", "max"): "largest of the kernel",
}
_MECHANISMS: Final[Mapping[str, str]] = {
    "noise at leaves": "noise on every smallest area, with all of the budget",
    "mean of four draws": "mean of four noisy counts, each with a quarter of the budget",
    "raked from the root": "a quarter of the budget on each of four levels, areas scaled to the level above",
}


def loss_exhibit(rows: Rows, document: Mapping[str, Any]) -> Exhibit:
    """The reported loss and the largest one, with intervals and the bias that the bootstrap shows."""
    place = itemgetter("level", "area_class", "characteristic")
    overall = [row for row in rows if row["size_class"] == "all"]
    largest = {
        place(row): row for row in overall if (row["estimator"], row["statistic"]) == ("kernel", "max")
    }
    lines = [
        [
            spaced(row["level"]),
            document["words"].get(row["characteristic"], row["characteristic"]),
            f"{row['n']:,}",
            f"{row['estimator']} {row['statistic']}",
            *(number_text(row[name], 3) for name in ("value", "lo", "hi")),
            *(
                number_text(largest.get(place(row), {}).get(name), 3)
                for name in ("value", "lo", "hi", "bias")
            ),
        ]
        for row in overall
        if row["reported"]
    ]
    return exhibit("pair.epl", rows=lines)


def noise_exhibit(rows: Rows, document: Mapping[str, Any]) -> Exhibit:
    """Measured loss and that of pure noise."""
    sections: dict[str, list[list[str]]] = {}
    for row in rows:
        measure = _LOSS_MEASURES.get((row["estimator"], row["statistic"]))
        if measure is None or row["mean"] is None or row["mean"] != row["mean"]:
            continue
        name = document["words"].get(row["characteristic"], row["characteristic"])
        title = f"{row['level'].replace('_', ' ')}: {name}, {row['n']:,} errors"
        sections.setdefault(title, []).append(
            [
                f"{measure}; {_LAWS[row['law']]}",
                *(number_text(row[column], 3) for column in ("truth", "mean")),
                f"{number_text(row['lo'], 3)} to {number_text(row['hi'], 3)}",
                *(number_text(row[column], 3) for column in ("bias", "measured_epl")),
            ]
        )
    return exhibit("pair.epl-noise", sections=sections.items() if sections else None)


def examples_exhibit(rows: Rows, document: Mapping[str, Any]) -> Exhibit:
    """Three mechanisms whose loss is known."""
    return exhibit("pair.epl-examples", rows=[
                    [
                        _MECHANISMS[row["mechanism"]], f"{row['epsilon']:g}",
                        number_text(row["epl"], 3), number_text(row["ratio"], 2),
                    ]
                    for row in rows
                ])  # fmt: skip


_COLORS: Final = ("#0b5c7a", "#d1762a", "#6b4c9a", "#4d7c2f", "#b0413e", "#9aa5b1")
_HATCHES: Final = ("", "//", "..", "xx")
_LINEAR: Final = 20  # ratio of the tallest bar to the lowest one beyond which heights are logarithmic
_LABELED: Final = 18  # bars of a panel that have room for their value


def draw_bars(panels: Mapping[str, Mapping[str, Sequence[Triple]]], places: Sequence[str]) -> Figure:
    """A panel for each measure, at each place one bar for each vintage."""
    figure, grid = panel_grid(len(panels), 2.9)
    for axes, (title, vintages) in zip(grid, panels.items(), strict=True):
        _panel(axes, title, vintages, places)
    legend_below(figure, grid[0], columns=4)
    return figure


def _panel(axes: Axes, title: str, vintages: Mapping[str, Sequence[Triple]], places: Sequence[str]) -> None:
    width = 0.8 / len(vintages)
    at = np.arange(len(places))
    for place, (name, values) in enumerate(vintages.items()):
        table = np.array(values, float).reshape(-1, 3)
        middle, low, high = np.where(np.isfinite(table), table, np.nan).T
        ends = np.nan_to_num(np.vstack([middle - low, high - middle])).clip(min=0)
        offset = (place - (len(vintages) - 1) / 2) * width
        axes.bar(
            at + offset, np.nan_to_num(middle), width * 0.92, label=name, color=_COLORS[place % len(_COLORS)],
            hatch=_HATCHES[place // len(_COLORS) % len(_HATCHES)], edgecolor="white", linewidth=0,
        )  # fmt: skip
        sure = ends.max(axis=0) > 0
        axes.errorbar(
            (at + offset)[sure], middle[sure], yerr=ends[:, sure], fmt="none", ecolor="#333333",
            elinewidth=0.8, capsize=1.5,
        )  # fmt: skip
        if len(vintages) * len(places) <= _LABELED:
            for x, value, top in zip(at + offset, middle, np.fmax(middle, high), strict=True):
                if np.isfinite(value):
                    text = f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
                    axes.annotate(
                        text,
                        (x, max(top, 0.0)),
                        (0, 2),
                        textcoords="offset points",
                        fontsize=6.5,
                        ha="center",
                    )
    heights = np.array([value for values in vintages.values() for value, _, _ in values], float)
    heights = heights[np.isfinite(heights)]
    if len(heights) and heights.min() > 0 and heights.max() > _LINEAR * heights.min():
        axes.set_yscale("log")
        axes.set_ylabel("logarithmic", fontsize=8)
        axes.set_ylim(heights.min() / 2)
        plain_log(axes.yaxis)
    else:
        axes.axhline(0, color="#555555", linewidth=0.8)
    axes.set_xticks(at, [spaced(name) for name in places], fontsize=8)
    axes.margins(y=0.12)
    quiet(axes, title=title)
    axes.grid(visible=False, axis="x")


_MEASURES: Final[Mapping[str, str]] = {
    "mean_ae": "mean error, records",
    "rmse": "root mean square error, records",
    "me": "bias, records",
    "pct95_ae": "95th percentile of the error, records",
    "max_ae": "largest error, records",
    "mape": "mean error, percent (MAPE)",
    "epl": "empirical privacy loss",
}
_PLACES: Final = 8  # levels and lists that a figure has room for


def vintage_exhibits(folder: Path, document: Mapping[str, Any]) -> list[Exhibit]:
    """Errors by characteristic, and every measure of the first characteristic, a bar and a column for each vintage."""
    values = _values(folder)
    words: Mapping[str, str] = document["words"]
    places = [*document["levels"], *document.get("lists", [])]
    vintages: Sequence[str] = document["vintages"]
    files = [name for name in ("metrics_long.csv", "epl.csv", "codebook.csv") if (folder / name).exists()]
    first = next(iter(words))
    exhibits = []
    for name, question, caption, measures in (
        (
            "vintages", "Which vintage is nearer to the truth?", "Mean absolute error in records",
            [(query, "mean_ae", text) for query, text in words.items()],
        ),
        (
            "vintage-measures", f"And by other measures? Vintages by the {words[first]}", f"Measures of the {words[first]}",
            [(first, metric, text) for metric, text in _MEASURES.items()],
        ),
    ):  # fmt: skip
        panels: dict[str, dict[str, list[Triple]]] = {}
        sections = []
        for query, metric, text in measures:
            keys = {vintage: [(vintage, query, at, metric) for at in places] for vintage in vintages}
            bars = {
                vintage: [values.get(key, interval(None)) for key in own] for vintage, own in keys.items()
            }
            known = [at for at in range(len(places)) if any(own[at] in values for own in keys.values())]
            if known:
                panels[text] = bars
                lines = [
                    [spaced(places[at]), *(number_text(own[at][0], 2) for own in bars.values())]
                    for at in known
                ]
                sections.append((capital(text), lines))
        if sections:
            figure = draw_bars(panels, places) if len(places) <= _PLACES else None
            exhibits.append(
                exhibit(
                    "pair.vintages",
                    name=name,
                    question=question,
                    files=files,
                    figure=figure,
                    caption=caption,
                    columns=("Level", *vintages),
                    sections=sections,
                    vintages=", ".join(vintages),
                    main=MAIN,
                )
            )
    return exhibits


def _values(folder: Path) -> dict[tuple[str, str, str, str], Triple]:
    """Values with their intervals by vintage, characteristic, level and measure, of all areas of a level."""
    values: dict[tuple[str, str, str, str], Triple] = {}
    if (folder / "metrics_long.csv").exists():
        rows = read_frame(folder, "metrics_long", ("vintage",)).to_pylist()
        rows = [row for row in rows if row["suite"] == "accuracy" and row["size_class"] == "all"]
        for row in sorted(rows, key=lambda row: row["run_id"] == "pooled"):  # several runs: all together
            values[row["vintage"], row["characteristic"], row["level"], row["metric"]] = interval(row)
    if (folder / "epl.csv").exists():
        for row in read_frame(folder, "epl", ("vintage", "estimator", "statistic")).to_pylist():
            if row["size_class"] == "all" and row["reported"]:
                values[row["vintage"], row["characteristic"], row["level"], "epl"] = interval(row)
    return values


_BANDS = 12


def pair_page(folder: Path) -> Page:
    """The page of a folder that ``evaluate pair`` wrote."""
    document = read_evaluation(folder)
    builders: dict[str, Sequence[Callable[[Rows, Mapping[str, Any]], Exhibit]]] = {
        "metrics_long": (_accuracy, _sizes), "epl": (loss_exhibit,), "epl_noise": (noise_exhibit,),
        "epl_examples": (examples_exhibit,), "bias": (partial(_classes, "index"),), "diversity": (partial(_classes, "quintile"),),
        "reliability": (_reliability,), "inconsistency": (inconsistency_exhibit,), "characteristics_unmeasured": (_unmeasured,),
        "left_out": (_left_out,),
    }  # fmt: skip
    texts = (
        "mechanism", "law", "estimator", "statistic", "kind", "group", "status", "answer", "answer_alone", "label", "measure", "vintage",
    )  # fmt: skip
    vintages = document.get("vintages", [])
    answer = [f"{document['sources']['published']} against {document['sources']['truth']}."]
    if len(vintages) > 1:
        answer.append(
            f"Beside it, against the same truth: {', '.join(vintages[1:])}. Where nothing else is said, the tables below are of the first."
        )
    exhibits = vintage_exhibits(folder, document) if len(vintages) > 1 else []
    for name, build in builders.items():
        if (folder / f"{name}.csv").exists():
            rows = read_frame(folder, name, texts).to_pylist()
            if name != "reliability":  # the other exhibits are about the files without a name of their own
                rows = [row for row in rows if row.get("vintage", MAIN) == MAIN]
            exhibits += [exhibit for one in build if (exhibit := one(rows, document)).tables]
    return Page(
        title="How far are the published counts from the true ones?",
        kicker="Two files compared",
        answer=answer,
        facts=_facts(document, vintages),
        exhibits=exhibits,
        settings=_settings(document, vintages),
        confidentiality=confidentiality_of(document),
    )


def _facts(document: Mapping[str, Any], vintages: Sequence[str]) -> list[tuple[str, str, str]]:
    facts = [("Published runs", str(document["runs"]), "compared with one truth")]
    if len(vintages) > 1:
        facts.append(("Further vintages", str(len(vintages) - 1), "each compared with the same truth"))
    return facts + [
        (
            "Rows on one side only" if "only" in name else name,
            f"{count:,}",
            f"{name.replace('_', ' ')}, counted as 0",
        )
        for name, count in document["facts"].items()
    ]


def _settings(document: Mapping[str, Any], vintages: Sequence[str]) -> list[tuple[str, str]]:
    return [
        ("Truth", document["sources"]["truth"]),
        ("Published", document["sources"]["published"]),
        *((f"Vintage {name}", document["sources"][f"vintage {name}"]) for name in vintages[1:]),
        ("Arithmetic", str(document["mode"]).replace("_", " ")),
        *((("Areas off the spine", ", ".join(document["lists"])),) if document.get("lists") else ()),
        *(("As it was read", note) for note in document.get("notes", [])),
    ]


def _accuracy(rows: Rows, document: Mapping[str, Any]) -> Exhibit:
    overall = [row for row in _one_run(rows) if row["size_class"] == "all"]
    values = {(row["characteristic"], row["level"], row["metric"]): row for row in overall}

    def text(query: str, level: str, metric: str, places: int = 2) -> str:
        return number_text(interval(values.get((query, level, metric)))[0], places)

    panels, sections = {}, []
    for query, words in document["words"].items():
        lines = [
            [
                spaced(level),
                f"{values[query, level, 'mean_ae']['n_units']:,}",
                *(
                    text(query, level, metric)
                    for metric in ("count_mean", "mean_ae", "rmse", "me", "pct95_ae", "max_ae")
                ),
            ]
            for level in (*document["levels"], *document.get("lists", []))
            if (query, level, "mean_ae") in values
        ]
        sections.append((capital(words), lines))
        errors = [interval(values.get((query, level, "mean_ae"))) for level in document["levels"]]
        if any(error > 0 for error, _, _ in errors):
            panels[words] = {"topdown": errors}
    few = len(document["levels"]) <= 8 and panels
    first, first_words = next(iter(document["words"].items()))
    worst = [
        f"{text(first, level, 'mean_ae', 1)} "
        + ("over all rows" if level == "all" else f"at {level.replace('_', ' ')}")
        for level in document["levels"][:6]
    ]
    return exhibit(
        "pair.accuracy",
        figure=draw_levels(panels, document["levels"], {"topdown": "published"}) if few else None,
        sections=sections,
        words=first_words,
        errors=", ".join(worst),
    )


def _one_run(rows: Rows) -> Rows:
    """Rows of the errors of all runs together, or of the only run."""
    own = [row for row in rows if row["suite"] == "accuracy"]
    several = any(row["run_id"] == "pooled" for row in own)
    return [row for row in own if row["run_id"] == "pooled" or not several]


def _sizes(rows: Rows, document: Mapping[str, Any]) -> Exhibit:
    query, words = next(iter(document["words"].items()))
    levels: dict[str, dict[str, dict[str, Mapping[str, Any]]]] = {}
    for row in _one_run(rows):
        if row["size_class"] != "all" and row["characteristic"] == query:
            classes = levels.setdefault(row["level"], {})
            classes.setdefault(row["size_class"], {})[row["metric"]] = row
    sections = []
    for level, classes in levels.items():
        lines = [
            [size, f"{own['mean_ae']['n_units']:,}", *(
                number_text(interval(own.get(metric))[0], 2) for metric in ("mean_ae", "rmse", "me", "mape", "malpe", "cv")
            )]
            for size, own in classes.items() if own["mean_ae"]["n_units"]
        ]  # fmt: skip
        sections.append((spaced(level), lines))
    filled = any(lines for _, lines in sections)
    return exhibit("pair.sizes", sections=sections if filled else None, words=words)


def _classes(column: str, rows: Rows, document: Mapping[str, Any]) -> Exhibit:
    """Bias of the total by class of areas."""
    rows = [
        row
        for row in rows
        if row["size_class"] == "all"
        and row["characteristic"] == "total"
        and row.get("mode") != "as_published"
    ]
    by_level = grouped(rows, lambda row: spaced(row["level"]))
    extremes = [
        f"{level}: {number_text(own[0]['bias'], 1)} to {number_text(own[-1]['bias'], 1)}"
        for level, own in by_level.items()
    ]
    sections = [(level, _bands(own, column)) for level, own in by_level.items()]
    return exhibit(
        "pair.bias" if column == "index" else "pair.diversity",
        sections=sections,
        extremes="; ".join(extremes),
    )


def _bands(rows: Rows, column: str) -> list[list[str]]:
    """A line for each class; neighboring classes together where there are many, each line with about as many areas."""
    total = sum(row["n_areas"] for row in rows)
    bands: list[list[Mapping[str, Any]]] = []
    before = 0
    for row in rows:
        place = before * _BANDS // total
        if (
            len(rows) <= 2 * _BANDS
            or not bands
            or place != (before - bands[-1][-1]["n_areas"]) * _BANDS // total
        ):
            bands.append([])
        bands[-1].append(row)
        before += row["n_areas"]
    lines = []
    for band in bands:
        number = sum(row["n_areas"] for row in band)
        bias = sum(row["n_areas"] * row["bias"] for row in band) / number
        first, last = band[0][column], band[-1][column]
        error = band[0]["se"] if len(band) == 1 else NAN
        name = str(first) if first == last else f"{first} to {last}"
        lines.append([name, f"{number:,}", number_text(bias, 2), number_text(error, 2)])
    return lines


def _reliability(rows: Rows, document: Mapping[str, Any]) -> Exhibit:
    first = [row for row in rows if row["run_id"] == rows[0]["run_id"]]
    chosen = document.get("choices", {})
    tolerance = Tolerance(
        **{name: chosen[name] for name in ("alpha", "beta") if name in chosen}
    )  # older ones lack them
    return exhibit(
        "pair.reliability",
        answer="; ".join(f"{row['level'].replace('_', ' ')}: {row['answer']}" for row in first) + ".",
        rows=[[spaced(row["level"]), row["run_id"], row["answer"], row["answer_alone"]] for row in rows],
        points=tolerance.points,
        areas=tolerance.areas,
    )


def _unmeasured(rows: Rows, document: Mapping[str, Any]) -> Exhibit:
    return exhibit("pair.unmeasured", rows=[[row["label"], row["reason"]] for row in rows], number=len(rows))


def _left_out(rows: Rows, document: Mapping[str, Any]) -> Exhibit:
    return exhibit(
        "pair.left-out",
        rows=[[row["measure"], row["reason"]] for row in rows],
        measures=", ".join(row["measure"] for row in rows),
    )
