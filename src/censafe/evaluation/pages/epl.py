"""CONFIDENTIAL. Exhibits on how far empirical privacy loss can be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from censafe.evaluation.loss.epl import CAUTION
from censafe.evaluation.outputs import number_text
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
                _loss_lines([row for row in rows if row["size_class"] == "all"], document),
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


def _loss_lines(rows: _Rows, document: Mapping[str, Any]) -> list[list[str]]:
    """The reported measure of each level and characteristic beside the largest value."""
    largest = {_place(row): row for row in rows if (row["estimator"], row["statistic"]) == ("kernel", "max")}
    lines = []
    for row in rows:
        if row["reported"]:
            top = largest.get(_place(row), {})
            lines.append(
                [
                    row["level"].replace("_", " "),
                    document["words"].get(row["characteristic"], row["characteristic"]),
                    f"{row['n']:,}",
                    f"{row['estimator']} {row['statistic']}",
                    *(number_text(row[name], 3) for name in ("value", "lo", "hi")),
                    *(number_text(top.get(name), 3) for name in ("value", "lo", "hi", "bias")),
                ]
            )
    return lines


def _place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["level"], row["area_class"], row["characteristic"]


def noise_exhibit(rows: _Rows, document: Mapping[str, Any]) -> Exhibit:
    """Measured loss beside that of pure noise."""
    lines, groups = _noise_lines(rows, document)
    return Exhibit(
        name="epl-noise",
        question="What would the same measures say of pure noise?",
        answer=(
            "Where a measure is off on noise whose loss is known, it is off by about as much here. The largest value is too high, the "
            "more the fewer errors there are; a measured value above that of pure noise means that errors of neighboring size differ "
            "more in number than noise alone would make them."
        ),
        tables=[
            PageTable(
                "Empirical privacy loss of as many draws of pure noise, beside the measured one",
                ("Measure; noise", "True value", "Of pure noise", "90% interval", "Bias", "Measured here"),
                lines,
                numbers=5,
                groups=groups,
            )
        ]
        if lines
        else [],
        how=(
            "Two-sided geometric noise whose loss is the loss reported above, and discrete Gaussian noise of the same variance, were drawn "
            "ten times, as many values as there are errors. The true value is the loss of the geometric noise, which is the same at all "
            "errors; that of Gaussian noise grows with the error, so there it is the value that the measure has for the exact law.",
            CAUTION,
        ),
        files=["epl_noise.csv", "codebook.csv"],
    )


def _noise_lines(rows: _Rows, document: Mapping[str, Any]) -> tuple[list[list[str]], list[tuple[str, int]]]:
    """What the measures say of each law, and how many lines each level and characteristic has."""
    lines: list[list[str]] = []
    groups: dict[str, int] = {}
    for row in rows:
        words = _SHOWN.get((row["estimator"], row["statistic"]), "")
        if not words or row["mean"] is None or row["mean"] != row["mean"]:
            continue
        name: str = document["words"].get(row["characteristic"], row["characteristic"])
        title = f"{row['level'].replace('_', ' ')}: {name}, {row['n']:,} errors"
        groups[title] = groups.get(title, 0) + 1
        lines.append(
            [
                f"{words}; {_LAWS[row['law']]}",
                number_text(row["truth"], 3),
                number_text(row["mean"], 3),
                f"{number_text(row['lo'], 3)} to {number_text(row['hi'], 3)}",
                number_text(row["bias"], 3),
                number_text(row["measured_epl"], 3),
            ]
        )
    return lines, list(groups.items())


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
