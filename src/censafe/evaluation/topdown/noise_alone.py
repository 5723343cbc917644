"""Public. What the noise laws of a configuration imply, from the configuration and the number of areas alone, as frames and a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from censafe.errors import UsageError
from censafe.evaluation.confidential import Confidentiality, evaluation_folder
from censafe.evaluation.loss import calibrate, noise_law_masses
from censafe.evaluation.outputs import Evaluated, read_evaluation
from censafe.evaluation.pages.registry import write_evaluation
from censafe.evaluation.topdown.noise import BestQuery, best_query, leaf_loss, level_loss
from censafe.evaluation.topdown.runs import compared_characteristics, described_histograms
from censafe.model import Definition
from censafe.model.parsing import parse_fraction
from censafe.model.topdown.histograms import MeasuredHistogram
from censafe.planning.prices.meaning import meaning_of
from censafe.privacy.loss.conversions import tight_epsilon
from censafe.products.registry import product_of
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.plan import exact_levels, plan_release
from censafe.products.topdown.rehearsal import at_loss
from censafe.publication.atomic import atomic_text

DELTA: Final = Fraction(1, 10**10)
_SHARE: Final = 0.95
_TRIALS: Final = 10
_FEWEST: Final = 100  # errors, below which no estimator says anything
_WIDEST: Final = 40_000  # values of a law, beyond which its empirical loss is too small to be worth the time

_LOSS: Final = pa.schema(
    [
        ("loss", pa.float64()),
        ("epsilon", pa.float64()),
        *((name, pa.string()) for name in ("histogram", "level", "characteristic")),
        ("added", pa.int64()),
        ("law", pa.string()),
        ("parameter", pa.float64()),
        ("n", pa.int64()),
        *((name, pa.string()) for name in ("estimator", "statistic")),
        *((name, pa.float64()) for name in ("truth", "mean", "lo", "hi", "bias")),
    ]
)


@dataclass(frozen=True)
class Budget:
    """The loss of a whole run.

    Args:
        epsilon: the same as epsilon; under zCDP by the tight conversion at delta 1e-10.
    """

    loss: Fraction
    epsilon: float


def budget_of(definition: Definition, loss: Fraction) -> Budget:
    """A loss with its epsilon.

    Example:
        >>> budget_of(Definition.PURE, Fraction(1, 4)).epsilon
        0.25
    """
    return Budget(
        loss, float(loss) if definition is Definition.PURE else round(tight_epsilon(loss, DELTA), 4)
    )


def expected_errors(
    config: TopdownConfig, areas: Mapping[str, int], budgets: Sequence[Budget] = ()
) -> pa.Table:
    """Errors of noisy counts, of every level and of blocks added up, as the laws have them; no record is used."""
    rows = []
    blocks = list(areas.values())[-1]
    for about, own, leaf, exact in _sources(config, areas, budgets):
        units = areas[about["level"]]
        about = {**about, "n_units": units}
        if own is not None:
            rows.append({**about, "method": "noisy", **_sizes(own, 0 if exact else _added(own))})
        if leaf is not None:
            added = round(_added(leaf) * blocks / units)
            rows.append({**about, "method": "blocks_noise", **_sizes(leaf, added)})
    return pa.Table.from_pylist(rows)


def noise_loss_frame(
    config: TopdownConfig, areas: Mapping[str, int], budgets: Sequence[Budget] = ()
) -> pa.Table:
    """What the estimators of empirical privacy loss say of the noise alone, for as many errors as one run has."""
    rows: list[dict[str, Any]] = []
    for about, own, _, exact in _sources(config, areas, budgets):
        if own is not None and not exact:
            estimates = _calibrated(own, areas[about["level"]] * len(own.variances))
            rows += [{**about, "added": _added(own), **row} for row in estimates]
    return pa.Table.from_pylist(rows, schema=_LOSS)


def noise_of_level(
    config: TopdownConfig, loss: Fraction, level: str, characteristic: str, errors: int
) -> dict[tuple[str, str], Mapping[str, float]]:
    """What the estimators say of the noise of one level, for any number of errors."""
    chosen = at_loss(config, loss)
    histogram = chosen.histograms[0]
    query = histogram.schema.query(characteristic)
    own = best_query(chosen, histogram, level, query, level_loss(histogram, level))
    if own is None or _exact(histogram, characteristic, level):
        return {}
    rows = _calibrated(own, errors)
    return {(row["estimator"], row["statistic"]): row for row in rows}


def _calibrated(own: BestQuery, errors: int) -> list[dict[str, Any]]:
    added = _added(own)
    if errors < _FEWEST or len(noise_law_masses(own.law, added)[0]) > _WIDEST:
        return []
    estimates: list[dict[str, Any]] = calibrate(own.law, [errors], added=added, trials=_TRIALS).to_pylist()
    return estimates


def attack_frame(config: TopdownConfig, budgets: Sequence[Budget] = ()) -> pa.Table:
    """How often the best attack finds a fact about one record, at three chances of a false alarm."""
    planner, rows = product_of("topdown").planner, []
    for budget, chosen in _configs(config, budgets):
        for reach in planner.questions(chosen):
            rows += [
                {
                    "loss": float(budget.loss),
                    "epsilon": budget.epsilon,
                    "question": reach.name,
                    "words": reach.words,
                    "question_loss": float(reach.loss),
                    "false_alarm": float(row.alarm),
                    "best_attack": np.nan if row.best is None else row.best,
                    "bound": row.bound,
                }
                for row in meaning_of(reach, ()).attacks
            ]
    return pa.Table.from_pylist(rows)


def _configs(config: TopdownConfig, budgets: Sequence[Budget]) -> Iterator[tuple[Budget, TopdownConfig]]:
    own = plan_release(config).total
    for budget in budgets or (budget_of(config.definition, own),):
        yield budget, config if budget.loss == own else at_loss(config, budget.loss)


def _sources(
    config: TopdownConfig, areas: Mapping[str, int], budgets: Sequence[Budget]
) -> Iterator[tuple[dict[str, Any], BestQuery | None, BestQuery | None, bool]]:
    """Every budget, characteristic and level; where its noisy count comes from, the level itself and the blocks with the whole budget.

    The last item is whether the level publishes the count exactly.
    """
    lowest = list(areas)[-1]
    for budget, chosen in _configs(config, budgets):
        for histogram in chosen.histograms:
            for compared in compared_characteristics(histogram):
                query = histogram.schema.query(compared.query)
                leaf = best_query(chosen, histogram, lowest, query, leaf_loss(chosen, histogram))
                for level in areas:
                    about = {
                        "loss": float(budget.loss),
                        "epsilon": budget.epsilon,
                        "histogram": histogram.name,
                        "level": level,
                        "characteristic": compared.query,
                    }
                    own = best_query(chosen, histogram, level, query)
                    yield about, own, leaf, _exact(histogram, compared.query, level)


def _exact(histogram: MeasuredHistogram, characteristic: str, level: str) -> bool:
    return histogram.schema.query(characteristic).answers == 1 and level in exact_levels(histogram)


def _added(source: BestQuery) -> int:
    """Draws of noise in the answer that has most of them."""
    return int(np.bincount(source.target).max())


def _sizes(source: BestQuery, added: int) -> dict[str, float]:
    """Sizes of the sum of so many draws; none for a count that is exact."""
    if not added:
        return {"expected_rmse": 0.0, "expected_mean_ae": 0.0, "within_95": 0.0}
    k, mass = noise_law_masses(source.law, added)
    size = np.abs(k).astype(float)
    order = np.argsort(size, kind="stable")
    reached = np.searchsorted(np.cumsum(mass[order]), _SHARE)
    return {
        "expected_rmse": float(np.sqrt((mass * size**2).sum())),
        "expected_mean_ae": float((mass * size).sum()),
        "within_95": float(size[order][min(int(reached), len(size) - 1)]),
    }


CONFIGURATION: Final = "configuration.toml"
_PUBLIC: Final = ("noise", "semantics", "uncertainty")


def evaluate_noise(
    config: TopdownConfig,
    areas: Mapping[str, int],
    out: Path,
    reading: ReadOptions,
    budgets: Sequence[Budget] = (),
) -> Evaluated:
    """Write what the noise laws of a configuration imply; it takes no record, so that nothing of one can be in it."""
    chosen = tuple(budgets) or (budget_of(config.definition, plan_release(config).total),)
    identity = {
        "kind": "noise laws",
        "configuration": config.digest,
        "areas": ", ".join(f"{level} {number}" for level, number in areas.items()),
        "losses": ", ".join(str(one.loss) for one in chosen),
    }
    with evaluation_folder(out, identity, confidentiality=Confidentiality.PUBLIC):
        with reading.observer.stage("noise laws"):
            frames = {
                "expected": expected_errors(config, areas, chosen),
                "noise_loss": noise_loss_frame(config, areas, chosen),
                "attack": attack_frame(config, chosen),
            }
        document = {
            "kind": "noise",
            "configuration": config.origin,
            "overrides": dict(config.overrides),
            "definition": config.definition.value,
            "symbol": config.definition.symbol,
            "budgets": [{"loss": float(one.loss), "epsilon": one.epsilon} for one in chosen],
            "geounits": dict(areas),
            "histograms": described_histograms(config),
        }
        lines = ["Public: only what the noise laws imply."]
        return write_evaluation(out, frames, document, lines, reading, Confidentiality.PUBLIC)


def keep_configuration(
    folder: Path, config: TopdownConfig, losses: Sequence[Fraction] = ()
) -> dict[str, Any]:
    """Keep the configuration in the folder of an evaluation; returns its entries of the document."""
    atomic_text(folder / CONFIGURATION, config.text)
    return {
        "configuration": config.origin,
        "overrides": dict(config.overrides),
        "exact_losses": [str(one) for one in losses],
    }


def public_report(folder: Path, out: Path, reading: ReadOptions) -> Evaluated:
    """What the noise laws imply for the configuration, budgets and geography of a confidential evaluation.

    Args:
        folder: of an evaluation of TopDown: ``topdown``, ``sweep``, ``pair`` or ``epl`` with a configuration. Of its files only
            the configuration and the names and numbers of levels are read.
        out: a new or empty folder.
        reading: receives stages.

    Raises:
        UsageError: the evaluation is public already, or has no noise law.
    """
    document = read_evaluation(folder)
    if document.get("kind") in _PUBLIC:
        raise UsageError(f"{folder} is public already: it compares with no true count.")
    if not (folder / CONFIGURATION).exists() or "geounits" not in document:
        raise UsageError(
            f"{folder} did not keep a configuration of topdown, so nothing is known of its noise; make the evaluation again "
            "with `configuration`, or see 'censafe plan' for the noise of another product."
        )
    config = load_config(folder / CONFIGURATION, document["overrides"])
    config = replace(config, origin=document["configuration"])
    budgets = [
        budget_of(config.definition, parse_fraction(text)) for text in document.get("exact_losses", [])
    ]
    return evaluate_noise(config, document["geounits"], out, reading, budgets)
