"""The page of ``evaluate pair``, from its files alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from censafe.evaluation.counts.reliability import Tolerance
from censafe.evaluation.outputs import number_text, read_evaluation, read_frame, standing_of
from censafe.evaluation.pages.consistency import inconsistency_exhibit
from censafe.evaluation.pages.epl import examples_exhibit, loss_exhibit, noise_exhibit
from censafe.evaluation.pages.page import NAN, Page, capital, draw_levels, exhibit, interval
from censafe.evaluation.pages.vintages import vintage_exhibits
from censafe.evaluation.pairs.vintages import MAIN
from censafe.publication.pages.exhibits import Exhibit

_Rows = Sequence[Mapping[str, Any]]
_Values = Mapping[tuple[str, str, str], Mapping[str, Any]]  # by characteristic, level and measure
_BANDS = 12


def pair_page(folder: Path) -> Page:
    """The page of a folder that ``evaluate pair`` wrote."""
    document = read_evaluation(folder)
    builders: dict[str, Sequence[Callable[[_Rows, Mapping[str, Any]], Exhibit]]] = {
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
        standing=standing_of(document),
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


def _accuracy(rows: _Rows, document: Mapping[str, Any]) -> Exhibit:
    overall = [row for row in _one_run(rows) if row["size_class"] == "all"]
    values = {(row["characteristic"], row["level"], row["metric"]): row for row in overall}

    def text(query: str, level: str, metric: str, places: int = 2) -> str:
        return number_text(interval(values.get((query, level, metric)))[0], places)

    panels, sections = {}, []
    for query, words in document["words"].items():
        lines = [
            [
                level.replace("_", " "),
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


def _one_run(rows: _Rows) -> _Rows:
    """Rows of the errors of all runs together, or of the only run."""
    own = [row for row in rows if row["suite"] == "accuracy"]
    several = any(row["run_id"] == "pooled" for row in own)
    return [row for row in own if row["run_id"] == "pooled" or not several]


def _sizes(rows: _Rows, document: Mapping[str, Any]) -> Exhibit:
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
        sections.append((level.replace("_", " "), lines))
    filled = any(lines for _, lines in sections)
    return exhibit("pair.sizes", sections=sections if filled else None, words=words)


def _classes(column: str, rows: _Rows, document: Mapping[str, Any]) -> Exhibit:
    """Bias of the total by class of areas."""
    rows = [
        row
        for row in rows
        if row["size_class"] == "all"
        and row["characteristic"] == "total"
        and row.get("mode") != "as_published"
    ]
    by_level: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_level.setdefault(row["level"].replace("_", " "), []).append(row)
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


def _bands(rows: _Rows, column: str) -> list[list[str]]:
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


def _reliability(rows: _Rows, document: Mapping[str, Any]) -> Exhibit:
    first = [row for row in rows if row["run_id"] == rows[0]["run_id"]]
    chosen = document.get("choices", {})
    tolerance = Tolerance(
        **{name: chosen[name] for name in ("alpha", "beta") if name in chosen}
    )  # older ones lack them
    return exhibit(
        "pair.reliability",
        answer="; ".join(f"{row['level'].replace('_', ' ')}: {row['answer']}" for row in first) + ".",
        rows=[
            [row["level"].replace("_", " "), row["run_id"], row["answer"], row["answer_alone"]]
            for row in rows
        ],
        points=tolerance.points,
        areas=tolerance.areas,
    )


def _unmeasured(rows: _Rows, document: Mapping[str, Any]) -> Exhibit:
    return exhibit("pair.unmeasured", rows=[[row["label"], row["reason"]] for row in rows], number=len(rows))


def _left_out(rows: _Rows, document: Mapping[str, Any]) -> Exhibit:
    return exhibit(
        "pair.left-out",
        rows=[[row["measure"], row["reason"]] for row in rows],
        measures=", ".join(row["measure"] for row in rows),
    )
