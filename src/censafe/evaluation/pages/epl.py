"""CONFIDENTIAL. Exhibits on how far empirical privacy loss can be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

from censafe.evaluation.loss.epl import CAUTION
from censafe.evaluation.outputs import number_text
from censafe.evaluation.pages.page import sectioned
from censafe.publication.pages.exhibits import Exhibit, PageTable

_Rows = Sequence[Mapping[str, Any]]
_LAWS: Final = {"laplace": "geometric", "gaussian": "Gaussian"}
_SHOWN: Final = {
    ("discrete", "median"): "median of whole errors",
    ("kernel", "median"): "median of the kernel",
    ("kernel", "max"): "largest of the kernel",
}
_MECHANISMS: Final[Mapping[str, str]] = {
    "noise at leaves": "noise on every smallest area, with all of the budget",
    "mean of four draws": "mean of four noisy counts, each with a quarter of the budget",
    "raked from the root": "a quarter of the budget on each of four levels, areas scaled to the level above",
}


def loss_exhibit(rows: _Rows, document: Mapping[str, Any]) -> Exhibit:
    """The reported loss and the largest one, with intervals and the bias that the bootstrap shows."""
    place = itemgetter("level", "area_class", "characteristic")
    overall = [row for row in rows if row["size_class"] == "all"]
    largest = {
        place(row): row for row in overall if (row["estimator"], row["statistic"]) == ("kernel", "max")
    }
    lines = [
        [
            row["level"].replace("_", " "),
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
    return Exhibit(
        name="epl",
        question="How well do the errors hide one record?",
        answer="Empirical privacy loss is the log ratio of how often neighboring errors occur: small is private.",
        tables=[
            PageTable(
                "Empirical privacy loss by level and characteristic, with 90% intervals over areas",
                (
                    "Level",
                    "Characteristic",
                    "Errors",
                    "Measure",
                    "Loss",
                    "from",
                    "to",
                    "Largest",
                    "from",
                    "to",
                    "its bias",
                ),
                lines,
                numbers=7,
            )
        ],
        how=(
            "Areas were resampled with replacement 200 times. The bias of the largest value is how much higher these repetitions are on "
            "average: the largest value itself is too high by about as much, so its interval lies lower.",
            CAUTION,
        ),
        files=["epl.csv", "codebook.csv"],
    )


def noise_exhibit(rows: _Rows, document: Mapping[str, Any]) -> Exhibit:
    """Measured loss beside that of pure noise."""
    sections: dict[str, list[list[str]]] = {}
    for row in rows:
        measure = _SHOWN.get((row["estimator"], row["statistic"]))
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
    return Exhibit(
        name="epl-noise",
        question="What would the same measures say of pure noise?",
        answer=(
            "Where a measure is off on noise whose loss is known, it is off by about as much here. The largest value is too high, the "
            "more the fewer errors there are; a measured value above that of pure noise means that errors of neighboring size differ "
            "more in number than noise alone would make them."
        ),
        tables=[
            sectioned(
                "Empirical privacy loss of as many draws of pure noise, beside the measured one",
                ("Measure; noise", "True value", "Of pure noise", "90% interval", "Bias", "Measured here"),
                sections.items(),
            )
        ]
        if sections
        else [],
        how=(
            "Two-sided geometric noise whose loss is the loss reported above, and discrete Gaussian noise of the same variance, were drawn "
            "ten times, as many values as there are errors. The true value is the loss of the geometric noise, which is the same at all "
            "errors; that of Gaussian noise grows with the error, so there it is the value that the measure has for the exact law.",
            CAUTION,
        ),
        files=["epl_noise.csv", "codebook.csv"],
    )


def examples_exhibit(rows: _Rows, document: Mapping[str, Any]) -> Exhibit:
    """Three mechanisms whose loss is known."""
    return Exhibit(
        name="epl-examples",
        question="Does the measure find the loss of mechanisms where it is known?",
        answer=(
            "Three ways to spend the same budget lose, to someone who sees only the smallest areas, all of it, half of it, and a quarter "
            "of it: what depends on many noisy counts tells less about each record."
        ),
        tables=[
            PageTable(
                "Empirical privacy loss of three mechanisms on made-up counts: 9,261 areas of 108 persons on average",
                ("Mechanism", "Budget", "Empirical loss", "Share of the budget"),
                [
                    [
                        _MECHANISMS[row["mechanism"]], f"{row['epsilon']:g}",
                        number_text(row["epl"], 3), number_text(row["ratio"], 2),
                    ]
                    for row in rows
                ],
                numbers=3,
            )
        ],
        how=(
            "Counts are drawn anew for this table; nothing of the compared files is in it. Median of the kernel with 0.15 standard "
            "deviations, over one and a half times the middle 90% of the errors.",
        ),
        files=["epl_examples.csv", "codebook.csv"],
    )  # fmt: skip
