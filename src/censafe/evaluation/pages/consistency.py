"""Exhibits of bias by class of areas and of areas that contradict themselves, from the files of an evaluation alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from censafe.evaluation.outputs import number_text, read_frame
from censafe.evaluation.pages.page import Rows, capital, exhibit, spaced
from censafe.evaluation.pairs.inconsistencies import COUNTED, NOT_MEASURED
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
