"""Public. What the noise laws alone imply, as frames and a page: of a configuration, or in the place of a confidential evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from censafe.errors import UsageError
from censafe.evaluation.confidential import Standing, evaluation_folder
from censafe.evaluation.evaluated import TopdownEvaluation
from censafe.evaluation.noise_alone import (
    Budget,
    attack_frame,
    budget_of,
    expected_errors,
    noise_loss_frame,
)
from censafe.evaluation.outputs import read_document, write_codebook, write_document, write_frame
from censafe.evaluation.reporting import write_report
from censafe.evaluation.topdown_population import compared_characteristics
from censafe.products.options import ReadOptions
from censafe.products.topdown.config import TopdownConfig, load_config
from censafe.products.topdown.plan import plan_release
from censafe.publication.atomic import atomic_text

__all__ = ["CONFIGURATION", "evaluate_noise", "keep_configuration", "public_report"]

CONFIGURATION: Final = "configuration.toml"
_PUBLIC: Final = ("noise", "semantics", "uncertainty")


def evaluate_noise(
    config: TopdownConfig,
    areas: Mapping[str, int],
    out: Path,
    reading: ReadOptions,
    budgets: Sequence[Budget] = (),
) -> TopdownEvaluation:
    """Write what the noise laws of a configuration imply; it takes no record, so that nothing of one can be in it.

    Args:
        config: its budgets and queries.
        areas: published number of areas of every level, the widest first.
        out: a new or empty folder, or that of the same.
        reading: who is told of stages.
        budgets: of whole runs; the configuration's own where there are none.

    Raises:
        UsageError: the folder holds something else.
    """
    chosen = tuple(budgets) or (budget_of(config.definition, plan_release(config).total),)
    identity = {
        "kind": "noise laws",
        "configuration": config.digest,
        "areas": ", ".join(f"{level} {number}" for level, number in areas.items()),
        "losses": ", ".join(str(one.loss) for one in chosen),
    }
    with evaluation_folder(out, identity, standing=Standing.PUBLIC):
        with reading.observer.stage("noise laws"):
            frames = {
                "expected": expected_errors(config, areas, chosen),
                "noise_loss": noise_loss_frame(config, areas, chosen),
                "attack": attack_frame(config, chosen),
            }
        written = {
            write_frame(out, name, frame, standing=Standing.PUBLIC): frame.column_names
            for name, frame in frames.items()
        }
        write_document(out, _document(config, areas, chosen))
        files = [*written, write_codebook(out, written)]
        with reading.observer.stage("report"):
            files += write_report(out)
    return TopdownEvaluation(
        ("Public: only what the noise laws imply.",), tuple(out / name for name in files)
    )


def _document(
    config: TopdownConfig, areas: Mapping[str, int], budgets: Sequence[Budget]
) -> Mapping[str, Any]:
    return {
        "kind": "noise",
        "configuration": config.origin,
        "overrides": dict(config.overrides),
        "definition": config.definition.value,
        "symbol": config.definition.symbol,
        "budgets": [{"loss": float(one.loss), "epsilon": one.epsilon} for one in budgets],
        "geounits": dict(areas),
        "histograms": {
            histogram.name: {one.query: one.words for one in compared_characteristics(histogram)}
            for histogram in config.histograms
        },
    }


def keep_configuration(
    folder: Path, config: TopdownConfig, losses: Sequence[Fraction] = ()
) -> dict[str, Any]:
    """Keep the configuration in the folder of an evaluation; returns what the document says of it.

    Args:
        folder: of the evaluation.
        config: as it was read.
        losses: of whole runs, where they are not the configuration's own.
    """
    atomic_text(folder / CONFIGURATION, config.text)
    return {
        "configuration": config.origin,
        "overrides": dict(config.overrides),
        "exact_losses": [str(one) for one in losses],
    }


def public_report(folder: Path, out: Path, reading: ReadOptions) -> TopdownEvaluation:
    """What the noise laws imply for the configuration, budgets and geography of a confidential evaluation.

    Args:
        folder: of an evaluation of TopDown: ``topdown``, ``sweep``, ``pair`` or ``epl`` with a configuration. Of its files only
            the configuration and the names and numbers of levels are read.
        out: a new or empty folder.
        reading: who is told of stages.

    Raises:
        UsageError: the evaluation is public already, or knows no noise law.
    """
    document = read_document(folder)
    if document.get("kind") in _PUBLIC:
        raise UsageError(f"{folder} is public already: it compares with no true count.")
    if not (folder / CONFIGURATION).exists() or "geounits" not in document:
        raise UsageError(
            f"{folder} did not keep a configuration of topdown, so nothing is known of its noise; make the evaluation again "
            "with --config, or see 'censafe plan' for the noise of another product."
        )
    config = load_config(folder / CONFIGURATION, document["overrides"])
    config = replace(config, origin=document["configuration"])
    budgets = [budget_of(config.definition, Fraction(text)) for text in document.get("exact_losses", [])]
    return evaluate_noise(config, document["geounits"], out, reading, budgets)
