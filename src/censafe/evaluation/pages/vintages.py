"""Exhibits of several vintages beside each other, from the files of ``evaluate pair`` alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from censafe.evaluation.outputs import number_text, read_frame
from censafe.evaluation.pages.figures_vintages import Triple, draw_bars
from censafe.evaluation.pages.page import Exhibit, PageTable
from censafe.evaluation.pairs.vintages import MAIN

__all__ = ["MAIN", "vintage_exhibits"]

_NAN: Final = float("nan")
_MISSING: Final[Triple] = (_NAN, _NAN, _NAN)
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

Values = Mapping[tuple[str, str, str, str], Triple]


def vintage_exhibits(folder: Path, document: Mapping[str, Any]) -> list[Exhibit]:
    """Errors by characteristic, and every measure of the first characteristic, a bar and a column for each vintage.

    Args:
        folder: of the evaluation.
        document: of the evaluation, with the names of the vintages.

    Returns:
        Nothing where neither errors nor empirical privacy loss were measured.
    """
    values = _values(folder)
    words: Mapping[str, str] = document["words"]
    places = [*document["levels"], *document.get("lists", [])]
    vintages: Sequence[str] = document["vintages"]
    errors = [(query, "mean_ae", text) for query, text in words.items()]
    first = next(iter(words))
    measures = [(first, metric, text) for metric, text in _MEASURES.items()]
    files = [name for name in ("metrics_long.csv", "epl.csv", "codebook.csv") if (folder / name).exists()]
    made = (
        _exhibit(
            "vintages", "Which vintage is nearer to the truth?", "Mean absolute error in records", errors,
            values, vintages, places, files,
        ),
        _exhibit(
            "vintage-measures", f"And by other measures? Vintages by the {words[first]}",
            f"Measures of the {words[first]}", measures, values, vintages, places, files,
        ),
    )  # fmt: skip
    return [one for one in made if one is not None]


def _values(folder: Path) -> Values:
    """Values with their intervals by vintage, characteristic, level and measure, of all areas of a level."""
    found: dict[tuple[str, str, str, str], Triple] = {}
    if (folder / "metrics_long.csv").exists():
        rows = read_frame(folder, "metrics_long", ("vintage",)).to_pylist()
        rows = [row for row in rows if row["suite"] == "accuracy" and row["size_class"] == "all"]
        for row in sorted(rows, key=lambda row: row["run_id"] == "pooled"):  # several runs: all together
            found[row["vintage"], row["characteristic"], row["level"], row["metric"]] = _triple(row)
    if (folder / "epl.csv").exists():
        for row in read_frame(folder, "epl", ("vintage", "estimator", "statistic")).to_pylist():
            if row["size_class"] == "all" and row["reported"]:
                found[row["vintage"], row["characteristic"], row["level"], "epl"] = _triple(row)
    return found


def _triple(row: Mapping[str, Any]) -> Triple:
    value, low, high = (_NAN if row[name] is None else float(row[name]) for name in ("value", "lo", "hi"))
    return value, low, high


def _exhibit(
    name: str,
    question: str,
    caption: str,
    wanted: Sequence[tuple[str, str, str]],
    values: Values,
    vintages: Sequence[str],
    places: Sequence[str],
    files: Sequence[str],
) -> Exhibit | None:
    """One panel of bars and one group of rows for each (characteristic, measure, words)."""
    panels: dict[str, dict[str, list[Triple]]] = {}
    lines: list[list[str]] = []
    groups: list[tuple[str, int]] = []
    for query, metric, words in wanted:
        known = [at for at in places if any((one, query, at, metric) in values for one in vintages)]
        if not known:
            continue
        lines += [
            [at.replace("_", " "), *(number_text(values.get((one, query, at, metric), _MISSING)[0], 2) for one in vintages)]
            for at in known
        ]  # fmt: skip
        groups.append((words[:1].upper() + words[1:], len(known)))
        panels[words] = {
            one: [values.get((one, query, at, metric), _MISSING) for at in places] for one in vintages
        }
    if not lines:
        return None
    return Exhibit(
        name=name,
        question=question,
        answer=f"Every vintage was measured against the truth by itself: {', '.join(vintages)}.",
        figure=draw_bars(panels, places) if len(places) <= _PLACES else None,
        alt=f"{caption} by level and list of areas: one bar a vintage, in this order: {', '.join(vintages)}.",
        tables=[PageTable(caption, ("Level", *vintages), lines, numbers=len(vintages), groups=groups)],
        how=(
            f"The vintage {MAIN} holds the files without a name of their own, several runs together. Vertical lines are 90% intervals "
            "with areas as clusters, where they are known. The axis is logarithmic where the tallest bar is more than 20 times the lowest one.",
        ),
        files=files,
    )
