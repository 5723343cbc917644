"""The page of ``evaluate uncertainty``, from its files alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from censafe.evaluation.confidential import Confidentiality
from censafe.evaluation.outputs import number_text, read_evaluation, read_frame
from censafe.evaluation.pages.page import (
    Page,
    Rows,
    exhibit,
    geounits_text,
    loss_fact,
    one_panel,
    plain_log,
    quiet,
    settings_text,
    shade,
    spaced,
)
from censafe.publication.pages import Exhibit


def uncertainty_page(folder: Path) -> Page:
    """The page of a folder that ``evaluate uncertainty`` wrote."""
    document = read_evaluation(folder)
    rows = read_frame(folder, "uncertainty", ("histogram", "size_class")).to_pylist()
    exhibits = [
        _exhibit(document, histogram, query, words, rows)
        for histogram, named in document["histograms"].items()
        for query, words in named.items()
    ]
    stamp = "" if document["private"] else "NOT PRIVATE: the run used a test key. "
    return Page(
        title=f"How far may the published counts be from the truth? {document['configuration']}",
        kicker="Uncertainty of a published run",
        answer=[
            f"{stamp}Every published count has an expected error and an interval here, made without looking at any confidential "
            "record."
        ],
        facts=[
            loss_fact(document, "of the published run"),
            ("Further runs", str(document["runs"]), "on the published file"),
            ("Intervals", f"{100 * document['confidence']:g}%", "of the true count"),
        ],
        exhibits=[one for one in exhibits if one is not None],
        settings=[
            ("Configuration", document["configuration"]),
            ("Choices", settings_text(document["choices"], "")),
            ("Geounits", geounits_text(document)),
            ("Seed", str(document["seed"])),
        ],
        standing=Confidentiality.PUBLIC,
    )


def _exhibit(
    document: Mapping[str, Any], histogram: str, query: str, words: str, rows: Rows
) -> Exhibit | None:
    own = [row for row in rows if (row["histogram"], row["characteristic"]) == (histogram, query)]
    if not any(row["rmse"] > 0 for row in own):
        return None
    levels = [level for level in document["levels"] if any(row["level"] == level for row in own)]
    sections = [
        (
            spaced(level),
            [
                [
                    f"{int(row['size_class']):,} or more" if int(row["size_class"]) else "0",
                    f"{row['n_cells'] // document['runs']:,}",
                    *(number_text(row[name], 2) for name in ("rmse", "bias")),
                    f"{number_text(row['lo'], 0)} to {number_text(row['hi'], 0)}",
                ]
                for row in own
                if row["level"] == level
            ],
        )
        for level in levels
    ]
    return exhibit(
        "uncertainty.counts",
        name=f"{histogram}-{query.replace(' * ', '-')}",
        answer=_answer(own, levels),
        figure=_figure(own, levels),
        sections=sections,
        histogram=histogram.capitalize(),
        words=words,
    )


def _answer(rows: Rows, levels: Sequence[str]) -> str:
    parts = []
    for level in (levels[0], levels[-1]) if len(levels) > 1 else levels:
        own = [row for row in rows if row["level"] == level]
        weights = np.array([row["n_cells"] for row in own], float)
        mean = float((np.array([row["rmse"] for row in own]) ** 2 * weights).sum() / weights.sum()) ** 0.5
        parts.append(f"{number_text(mean, 1)} records at level {level.replace('_', ' ')}")
    return f"Published counts are expected to be off by {' and '.join(parts)} (root mean square)."


def _figure(rows: Rows, levels: Sequence[str]) -> Figure:
    figure, axes = one_panel(8, 4)
    for place, level in enumerate(levels):
        own = [row for row in rows if row["level"] == level and row["rmse"] > 0]
        if own:
            color = shade(place, len(levels))
            x = [max(int(row["size_class"]), 0.5) for row in own]
            axes.plot(
                x, [row["rmse"] for row in own], marker="o", color=color, markersize=5, linewidth=1.3,
                label=spaced(level),
            )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain_log(axes.yaxis)
    axes.set_xticks(
        [0.5, 1, 10, 100, 1000, 10000, 100000], ["0", "1", "10", "100", "1,000", "10,000", "100,000"]
    )
    quiet(axes, x="published count, this or more", y="RMSE, records")
    axes.legend(frameon=False, fontsize=8)
    return figure
