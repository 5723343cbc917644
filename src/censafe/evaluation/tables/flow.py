"""CONFIDENTIAL. The evaluation and the true tables of a table product: one flow, whatever the product counts.

    evaluation: configuration -> plan -> count once -> draw with test keys -> frames, figures, page
    true tables: configuration -> count once, without noise -> files in the Bureau's layout

What differs between products is a :class:`TableProduct`: how it draws (:class:`Trials`), what the draws show
(:class:`DrawFindings`), and how it counts without noise (:class:`TrueTables`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from censafe.evaluation.confidential import confidential_run, confidential_tables, write_report_rows
from censafe.evaluation.outputs import Evaluated, write_document
from censafe.evaluation.pages.registry import write_report
from censafe.evaluation.tables.document import TableConfig, table_document
from censafe.model import ReleasePlan
from censafe.products.run.options import ReadOptions
from censafe.products.run.scratch import private_scratch, scratch_place
from censafe.publication.sums import require_confidence

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True)
class TableRequest:
    """Which records are evaluated under which configuration."""

    config: str
    settings: Mapping[str, str]
    data: Path
    out: Path
    reading: ReadOptions


@dataclass(frozen=True)
class Drawing:
    """How often noise is drawn, and what the errors are compared with."""

    trials: int
    seed: int
    confidence: Fraction


class DrawFindings(Protocol):
    """CONFIDENTIAL. What the draws of a product showed."""

    def frames(self) -> Mapping[str, tuple[type[DataclassInstance], Sequence[Any]]]:
        """Frames to write by the name of their file, each with the class of its rows."""

    def draw(self, path: Path, title: str) -> None:
        """Draw the figure of the folder; the ending of the path names the format."""

    def lines(self) -> Sequence[str]:
        """A summary in a few lines."""


class Trials(Protocol):
    """A checked configuration of a product and its plan, ready to be drawn."""

    @property
    def config(self) -> TableConfig:
        """The configuration."""

    @property
    def plan(self) -> ReleasePlan:
        """What one release measures."""

    def run(self, data: Path, scratch: Path, reading: ReadOptions, drawing: Drawing) -> DrawFindings:
        """CONFIDENTIAL. Count the records once, draw their noise with test keys, and compare with the truth."""


class TrueTables(Protocol):
    """A checked configuration of a product, ready to be counted without noise."""

    def write(self, data: Path, scratch: Path, reading: ReadOptions, folder: Path) -> Sequence[str]:
        """CONFIDENTIAL. Count the records and write the tables; returns the paths of the files below the folder."""


@dataclass(frozen=True)
class TableProduct:
    """What is a product's own in its evaluation and its true tables."""

    name: str
    title: str
    trials: Callable[[str, Mapping[str, str]], Trials]
    truth: Callable[[str, Mapping[str, str], bool], TrueTables]


def evaluate_product(product: TableProduct, request: TableRequest, drawing: Drawing) -> Evaluated:
    """Count once, draw noise many times with test keys, and compare with the truth."""
    require_confidence(drawing.confidence)
    trials = product.trials(request.config, request.settings)
    out, reading = request.out, request.reading
    with confidential_run(out, "evaluation") as folder:
        earlier = folder.note_scratch(scratch_place(request.data, reading.scratch))
        with private_scratch(request.data, reading.scratch, out=out, earlier=earlier) as scratch:
            found = trials.run(request.data, scratch, reading, drawing)
        with reading.observer.stage("report"):
            files = _write_findings(out, found, f"{product.title}, {trials.config.origin}: {_words(drawing)}")
            write_document(
                out,
                table_document(
                    product.name,
                    trials.config,
                    trials.plan,
                    trials=drawing.trials,
                    seed=drawing.seed,
                    confidence=drawing.confidence,
                ),
            )
            files += [out / name for name in write_report(out)]
    return Evaluated((f"CONFIDENTIAL. {_words(drawing)}.", *found.lines()), tuple(files))


def write_truth(product: TableProduct, request: TableRequest, *, private_path: bool) -> tuple[Path, ...]:
    """Count without noise and write the tables to ``OUT/tables``, every folder stamped CONFIDENTIAL."""
    tables = product.truth(request.config, request.settings, private_path)
    out, reading = request.out, request.reading
    with confidential_run(out, "truth") as run:
        earlier = run.note_scratch(scratch_place(request.data, reading.scratch))
        with (
            private_scratch(request.data, reading.scratch, out=out, earlier=earlier) as scratch,
            confidential_tables(out / "tables") as folder,
        ):
            names = tables.write(request.data, scratch, reading, folder)
    return tuple(out / "tables" / name for name in names)


def _words(drawing: Drawing) -> str:
    return f"{drawing.trials} noise draws against the truth"


def _write_findings(out: Path, found: DrawFindings, title: str) -> list[Path]:
    files = []
    for name, (kind, rows) in found.frames().items():
        files.append(out / f"{name}.csv")
        write_report_rows(files[-1], kind, rows)
    for ending in ("svg", "png"):
        files.append(out / f"accuracy.{ending}")
        found.draw(files[-1], title)
    return files
