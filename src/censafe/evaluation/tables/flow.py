"""CONFIDENTIAL. The evaluation and the true tables of a table product: one flow, whatever the product counts.

    evaluation: configuration -> plan -> count once -> draw with test keys -> frames, figures, page
    true tables: configuration -> count once, without noise -> files in the Bureau's layout

What differs between products is a :class:`TableProduct`: how it draws and what the draws show (:data:`Trials`), and how it
counts without noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from censafe.evaluation.confidential import STAMP, STAMP_FILE, confidential_run, write_report_rows
from censafe.evaluation.outputs import Evaluated, write_document
from censafe.evaluation.pages.registry import write_report
from censafe.model import ReleasePlan
from censafe.products.detailed.config import SafetabConfig
from censafe.products.phsafe.config import PhsafeConfig
from censafe.products.run.options import ReadOptions
from censafe.products.run.scratch import private_scratch, scratch_place
from censafe.publication.atomic import atomic_folder
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


DrawFindings = tuple[
    Mapping[str, tuple[type["DataclassInstance"], Sequence[Any]]], Callable[[Path, str], None], Sequence[str]
]
"""CONFIDENTIAL. What draws showed: frames by the name of their file, each with the class of its rows; what draws the figure of the folder
under a title (the ending of the path names the format); and a summary in a few lines."""
Trials = tuple[
    PhsafeConfig | SafetabConfig, ReleasePlan, Callable[[Path, Path, ReadOptions, Drawing], DrawFindings]
]
"""A checked configuration, its plan, and what counts the records once, draws their noise with test keys and compares with the truth."""
TrueTables = Callable[[Path, Path, ReadOptions, Path], Sequence[str]]
"""Counts the records of a folder without noise, with room for scratch files, and writes the tables to a folder; their paths."""


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
    config, plan, run = product.trials(request.config, request.settings)
    out, reading = request.out, request.reading
    with confidential_run(out, "evaluation") as folder:
        earlier = folder.note_scratch(scratch_place(request.data, reading.scratch))
        with private_scratch(request.data, reading.scratch, out=out, earlier=earlier) as scratch:
            frames, draw, lines = run(request.data, scratch, reading, drawing)
        with reading.observer.stage("report"):
            words = f"{drawing.trials} noise draws against the truth"
            files = []
            for name, (kind, rows) in frames.items():
                files.append(out / f"{name}.csv")
                write_report_rows(files[-1], kind, rows)
            for ending in ("svg", "png"):
                files.append(out / f"accuracy.{ending}")
                draw(files[-1], f"{product.title}, {config.origin}: {words}")
            document = {
                "kind": product.name,
                "configuration": config.origin,
                "settings": dict(config.overrides),
                "states": list(config.states),
                "symbol": plan.definition.symbol,
                "loss": float(plan.total),
                "trials": drawing.trials,
                "seed": drawing.seed,
                "confidence": float(drawing.confidence),
            }
            write_document(out, document)
            files += [out / name for name in write_report(out)]
    return Evaluated((f"CONFIDENTIAL. {words}.", *lines), tuple(files))


def write_truth(product: TableProduct, request: TableRequest, *, private_path: bool) -> tuple[Path, ...]:
    """Count without noise and write the tables to ``OUT/tables``, every folder stamped CONFIDENTIAL."""
    tables = product.truth(request.config, request.settings, private_path)
    out, reading = request.out, request.reading
    with confidential_run(out, "truth") as run:
        earlier = run.note_scratch(scratch_place(request.data, reading.scratch))
        with (
            private_scratch(request.data, reading.scratch, out=out, earlier=earlier) as scratch,
            atomic_folder(out / "tables") as folder,
        ):
            names = tables(request.data, scratch, reading, folder)
            for place in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
                (place / STAMP_FILE).write_text(STAMP, encoding="utf-8")
    return tuple(out / "tables" / name for name in names)
