"""CONFIDENTIAL. Exhibits on how far empirical privacy loss can be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

from censafe.evaluation.outputs import number_text
from censafe.evaluation.pages.page import exhibit
from censafe.publication.pages.exhibits import Exhibit

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
    return exhibit("pair.epl", rows=lines)


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
    return exhibit("pair.epl-noise", sections=sections.items() if sections else None)


def examples_exhibit(rows: _Rows, document: Mapping[str, Any]) -> Exhibit:
    """Three mechanisms whose loss is known."""
    return exhibit("pair.epl-examples", rows=[
                    [
                        _MECHANISMS[row["mechanism"]], f"{row['epsilon']:g}",
                        number_text(row["epl"], 3), number_text(row["ratio"], 2),
                    ]
                    for row in rows
                ])  # fmt: skip
