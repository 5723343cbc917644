"""What linear estimates of census tables draw, take and write in a run that stores no answers, before it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from censafe.errors import UsageError
from censafe.planning.numbers import bytes_text, duration_text


@dataclass(frozen=True)
class EstimatedTables:
    """Which tables a planned run would estimate.

    Args:
        areas: list of blocks with a column for each kind of further areas; None for none.
        data: folder whose blocks and facilities say how many answers are drawn; None where only numbers of geounits are known.
    """

    tables: tuple[str, ...] | None = None
    areas: Path | None = None
    data: Path | None = None


def refuse_tables(tables: EstimatedTables | None, product: str) -> None:
    """Refuse estimates of census tables of a product that measures its tables."""
    if tables is not None:
        raise UsageError(
            f"`tables`, `areas` and data: {product} publishes its tables as they are measured, and its plan opens no data; leave them out."
        )


@dataclass(frozen=True)
class LinearWork:
    """What a run draws for linear estimates of tables, how long that takes and what it fills.

    Args:
        scratch_bytes: of what a stopped run needs to resume with the same estimates; None where that is not known.
        stored: whether the run stores all answers, so that those of all geounits are used.
        known: whether geounits and answers are those of the data; otherwise the most that so many geounits need.
        below: answers of one geounit of the lower levels, which areas of a list need where they divide geounits; 0 where `known`.
        lower_geounits: of these, about as many as a list of areas needs; 0 without a list, and where `known`.
    """

    tables: tuple[str, ...]
    areas: str
    geounits: int
    answers: Mapping[str, int]
    seconds: float
    benchmark: str
    estimates: int
    file_bytes: int
    scratch_bytes: int | None
    stored: bool = False
    known: bool = False
    below: int = 0
    lower_geounits: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    size: int | None = None
    remarks: tuple[str, ...] = ()

    @property
    def drawn(self) -> int:
        """Answers of all parts."""
        return sum(self.answers.values())

    def sentences(self) -> tuple[str, ...]:
        """What is drawn, how long that takes, what is written, and what could not be known."""
        verb, most = ("read" if self.stored else "draw"), ("" if self.known else " at most")
        fate = "" if self.stored else f"; answers are drawn and not stored ({bytes_text(8 * self.drawn)})"
        scratch = (
            f"; scratch, with which a stopped run resumes: {bytes_text(self.scratch_bytes)}"
            if self.scratch_bytes
            else ""
        )
        lines = [
            f"Linear estimates of {', '.join(self.tables)} for {self.areas} {verb}{most} {self.drawn:,} answers of {self.geounits:,} geounits: "
            f"about {duration_text(self.seconds)} on two cores beside the rest ({self.benchmark}){fate}.",
            f"Their file: {self.estimates:,} estimates, about {bytes_text(self.file_bytes)}{scratch}.",
            *self.remarks,
        ]
        if self.left_out:
            words = ", ".join(f"{number:,} of {kind}" for kind, number in self.left_out.items())
            lines.append(
                f"Areas without a linear estimate, since they divide geounits whose parts are not drawn: {words}; name them in --areas for one."
            )
        if not self.known:
            lower = ""
            if not self.stored:
                needed = (
                    f"; the list needs about {self.lower_geounits:,} of them, which are in the figures above"
                    if self.lower_geounits
                    else ""
                )
                lower = f"Each geounit below these levels that an area of a list needs adds {self.below:,} answers{needed}. "
            lines.append(
                f"{lower}Name other tables and areas (--tables, --areas), and the data for their own numbers (DATA)."
            )
        return tuple(lines)

    def document(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return {
            "tables": list(self.tables),
            "areas": self.areas,
            "from_data": self.known,
            "stored": self.stored,
            "geounits": self.geounits,
            "answers": dict(self.answers),
            "answers_drawn": self.drawn,
            "answers_of_a_lower_geounit": self.below,
            "lower_geounits_of_the_list": self.lower_geounits,
            "seconds": self.seconds,
            "estimates": self.estimates,
            "file_bytes": self.file_bytes,
            "scratch_bytes": self.scratch_bytes,
            "left_out": dict(self.left_out),
            "remarks": list(self.remarks),
            "benchmark": self.benchmark,
        }
