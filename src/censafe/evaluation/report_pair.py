"""The page of ``evaluate pair``, from its files alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from censafe.evaluation.figures_accuracy import draw_levels
from censafe.evaluation.histograms.epl import CAUTION
from censafe.evaluation.histograms.impossible import KINDS
from censafe.evaluation.outputs import number_text, read_document, read_frame
from censafe.evaluation.page import Exhibit, Page, PageTable

__all__ = ["pair_page"]

Rows = Sequence[Mapping[str, Any]]
_NAN = float("nan")


def pair_page(folder: Path) -> Page:
    """The page of a folder that ``evaluate pair`` wrote.

    Raises:
        UsageError: a file is missing.
    """
    document = read_document(folder)
    builders = {
        "metrics_long": _accuracy, "epl": _epl, "bias": _homogeneity, "diversity": _diversity, "reliability": _reliability,
        "impossible": _impossible,
    }  # fmt: skip
    texts = ("characteristic", "estimator", "statistic", "kind", "answer", "answer_alone")
    if (folder / "impossible_untold.csv").exists():
        document["untold"] = read_frame(folder, "impossible_untold", texts).to_pylist()
    exhibits = [
        build(read_frame(folder, name, texts).to_pylist(), document)
        for name, build in builders.items()
        if (folder / f"{name}.csv").exists()
    ]
    facts = [("Published runs", str(document["runs"]), "compared with one truth")]
    facts += [
        (
            "Rows on one side only" if "only" in name else name,
            f"{count:,}",
            f"{name.replace('_', ' ')}, counted as 0",
        )
        for name, count in document["facts"].items()
    ]
    return Page(
        title="How far are the published counts from the true ones?",
        kicker="Two files compared",
        answer=[f"{document['sources']['published']} against {document['sources']['truth']}."],
        facts=facts,
        exhibits=exhibits,
        settings=[
            ("Truth", document["sources"]["truth"]),
            ("Published", document["sources"]["published"]),
            ("Arithmetic", str(document["mode"]).replace("_", " ")),
        ],
    )


def _accuracy(rows: Rows, document: Mapping[str, Any]) -> Exhibit:
    several = any(row["run_id"] == "pooled" for row in rows)
    rows = [row for row in rows if row["suite"] == "accuracy"]
    kept = [row for row in rows if row["size_class"] == "all" and (row["run_id"] == "pooled" or not several)]
    values = {(row["characteristic"], row["level"], row["metric"]): row for row in kept}
    panels = {}
    lines: list[list[str]] = []
    groups: list[tuple[str, int]] = []
    for query, words in document["words"].items():
        found = [values.get((query, level, "mean_ae")) for level in document["levels"]]
        everywhere = [*document["levels"], *document.get("lists", [])]
        shown = [level for level in everywhere if (query, level, "mean_ae") in values]
        lines += [
            [
                level.replace("_", " "),
                f"{values[query, level, 'mean_ae']['n_units']:,}",
                *(
                    number_text(_value(values.get((query, level, metric))), 2)
                    for metric in ("count_mean", "mean_ae", "rmse", "me", "pct95_ae", "max_ae")
                ),
            ]
            for level in shown
        ]
        groups.append((words[:1].upper() + words[1:], len(shown)))
        if any(_value(row) > 0 for row in found):
            panels[words] = {"topdown": [_triple(row) for row in found]}
    few = len(document["levels"]) <= 8 and panels
    return Exhibit(
        name="accuracy",
        question="How wrong are the published counts?",
        answer=_worst(values, document),
        figure=draw_levels(panels, document["levels"], {"topdown": "published"}) if few else None,
        alt="Mean absolute error by level, one panel a characteristic; bars are 90% intervals.",
        tables=[
            PageTable(
                "Errors in records",
                ("Level", "Areas", "Mean count", "Mean error", "RMSE", "Bias", "95th pct.", "Largest"),
                lines,
                numbers=7,
                groups=groups,
            )
        ],
        how=(
            "Error is the published count less the true one. The mean error is that of its size; the bias is the mean with its sign. "
            "Cells that are empty on both sides are counted, unless the arithmetic is that of the study.",
        ),
        files=["metrics_long.csv", "metrics_wide.csv", "codebook.csv"],
    )


def _worst(values: Mapping[tuple[str, str, str], Mapping[str, Any]], document: Mapping[str, Any]) -> str:
    query, words = next(iter(document["words"].items()))
    parts = [
        f"{number_text(_value(values.get((query, level, 'mean_ae'))), 1)} at {level.replace('_', ' ')}"
        for level in document["levels"]
    ]
    return f"Mean absolute error of the {words}: {', '.join(parts[:6])}."


def _value(row: Mapping[str, Any] | None) -> float:
    return _NAN if row is None or row["value"] is None else float(row["value"])


def _triple(row: Mapping[str, Any] | None) -> tuple[float, float, float]:
    if row is None:
        return _NAN, _NAN, _NAN
    low, high = (_NAN if row[name] is None else float(row[name]) for name in ("lo", "hi"))
    return _value(row), low, high


def _epl(rows: Rows, document: Mapping[str, Any]) -> Exhibit:
    own = [row for row in rows if row["reported"]]
    return Exhibit(
        name="epl",
        question="How well do the errors hide one record?",
        answer="Empirical privacy loss is the log ratio of how often neighbouring errors occur: small is private.",
        tables=[
            PageTable(
                "Empirical privacy loss by level and characteristic, with a 90% interval",
                ("Level", "Characteristic", "Estimator", "Loss", "Interval", "Errors"),
                [
                    [
                        row["level"], document["words"].get(row["characteristic"], row["characteristic"]),
                        f"{row['estimator']} {row['statistic']}", number_text(row["value"], 3),
                        f"{number_text(row['lo'], 3)} to {number_text(row['hi'], 3)}", f"{row['n']:,}",
                    ]
                    for row in own
                ],
                numbers=3,
            )
        ],
        how=(CAUTION,),
        files=["epl.csv"],
    )  # fmt: skip


def _homogeneity(rows: Rows, document: Mapping[str, Any]) -> Exhibit:
    return _classes(
        rows, "index", "bias", "Who gains and who loses? Totals by homogeneity of the area",
        "The index counts empty cells of voting age, race and origin: a high index is a homogeneous area.", "bias.csv",
    )  # fmt: skip


def _diversity(rows: Rows, document: Mapping[str, Any]) -> Exhibit:
    return _classes(
        rows, "quintile", "diversity", "Do diverse areas lose people?",
        "Quintile 0 holds the least diverse fifth of the areas of a level, quintile 4 the most diverse one.", "diversity.csv",
    )  # fmt: skip


def _classes(rows: Rows, column: str, name: str, question: str, how: str, file: str) -> Exhibit:
    levels = list(dict.fromkeys(row["level"] for row in rows))
    lines: list[list[str]] = []
    groups: list[tuple[str, int]] = []
    for level in levels:
        own = [row for row in rows if row["level"] == level]
        lines += [
            [str(row[column]), f"{row['n_areas']:,}", number_text(row["bias"], 2), number_text(row["se"], 2)]
            for row in own
        ]
        groups.append((level.replace("_", " "), len(own)))
    extremes = [
        f"{level.replace('_', ' ')}: {number_text(own[0]['bias'], 1)} to {number_text(own[-1]['bias'], 1)}"
        for level in levels
        for own in [[row for row in rows if row["level"] == level]]
    ]
    return Exhibit(
        name=name,
        question=question,
        answer=f"Mean error of the total from the first class to the last, {'; '.join(extremes)}.",
        tables=[
            PageTable(
                "Mean error of the total, in records",
                (column.capitalize(), "Areas", "Bias", "Standard error"),
                lines,
                numbers=3,
                groups=groups,
            )
        ],
        how=(how,),
        files=[file],
    )


def _reliability(rows: Rows, document: Mapping[str, Any]) -> Exhibit:
    return Exhibit(
        name="reliability",
        question="From which population on can the share of the largest group be trusted?",
        answer="; ".join(f"{row['level'].replace('_', ' ')}: {row['answer']}" for row in rows) + ".",
        tables=[
            PageTable(
                "Smallest class of population in which 95% of areas are within 5 points",
                ("Level", "It and all larger ones", "It alone"),
                [[row["level"].replace("_", " "), row["answer"], row["answer_alone"]] for row in rows],
                numbers=2,
            )
        ],
        how=(
            "The largest race or ethnic group of the true file is fixed; its share may differ by at most 5 points (Wright & Irimata).",
        ),
        files=["reliability.csv", "reliability_bins.csv"],
    )


def _impossible(rows: Rows, document: Mapping[str, Any]) -> Exhibit:
    return Exhibit(
        name="impossible",
        question="How many areas cannot exist as published?",
        answer="Areas whose published figures contradict each other, or common sense, beside how many there are in truth.",
        tables=[
            PageTable(
                "Areas by kind of contradiction",
                ("Kind", "Level", "File", "Areas concerned", "Number", "Percent"),
                [
                    [
                        KINDS[row["kind"]], row["level"].replace("_", " "), row["run_id"], f"{row['universe']:,}", f"{row['n']:,}",
                        number_text(row["percent"], 1),
                    ]
                    for row in rows
                ],
                numbers=3,
            ),
            PageTable(
                "Further kinds of the Bureau's lists that these files cannot tell",
                ("Kind", "Reason"),
                [[row["kind"], row["reason"]] for row in document.get("untold", [])],
            ),
        ],
        how=(
            "Each kind is counted among the areas that its first words name, in the truth and in every published file. An area "
            "has no group quarters when the list of facilities says so, or, without such a list, when nobody lives in one on the "
            "side that is looked at.",
        ),
        files=["impossible.csv", "impossible_untold.csv"],
    )  # fmt: skip
