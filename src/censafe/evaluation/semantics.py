"""What a budget means to an attacker, as curves of power by false-alarm rate; opens no data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Final

import pyarrow as pa
from scipy.special import ndtr

from censafe.evaluation.confidential import Confidentiality, evaluation_folder
from censafe.evaluation.counts.frames import labeled, stacked
from censafe.evaluation.outputs import Evaluated
from censafe.evaluation.pages.registry import write_evaluation
from censafe.model import Definition
from censafe.model.bounds import upper
from censafe.planning.prices.meaning import ALARMS, RecordQuestion
from censafe.privacy.loss.attack import (
    MovedQuery,
    best_attack,
    gaussian_power,
    largest_power,
    zcdp_power,
)
from censafe.privacy.loss.conversions import epsilons
from censafe.privacy.loss.loss_law import gathered
from censafe.products.registry import product_of
from censafe.products.run.options import ReadOptions


def gaussian_loss_tail(rho: Fraction, epsilon: float) -> float:
    """Chance that the privacy loss of continuous Gaussian noise exceeds epsilon.

    The loss is normal with mean rho and variance 2 rho.

    Source: Bun & Steinke (2016), "Concentrated Differential Privacy", for the law of the loss.

    Example:
        >>> gaussian_loss_tail(Fraction(1, 2), 0.5), round(gaussian_loss_tail(Fraction(263, 100), 16.742) * 1e10, 2)
        (0.5, 3.8)
    """
    return float(ndtr((float(rho) - epsilon) / math.sqrt(2 * float(rho))))


def power_curve(rho: Fraction, queries: Sequence[MovedQuery], levels: Sequence[float]) -> pa.Table:
    """Power by level of the three: the figure and the table of the slides."""
    attack = best_attack(gathered(queries))
    return pa.table(
        {
            "false_alarm": list(levels),
            "gaussian": [gaussian_power(rho, level) for level in levels],
            "discrete_gaussian": attack.powers(levels, randomized=False),
            "discrete_gaussian_randomized": attack.powers(levels),
            "bound": [zcdp_power(rho, level) for level in levels],
        }
    )


_LEVELS: Final = (
    *(Fraction(one, 1000) for one in (1, 2, 5, 10, 20, 30, 40, 60, 70, 80, 90)),
    *(Fraction(one, 20) for one in range(1, 20)),
    *(Fraction(one, 1000) for one in (980, 990, 995, 999)),
)
_DELTAS: Final = tuple(Fraction(1, 10**power) for power in range(3, 16))


def evaluate_semantics(
    product: str, source: str, settings: Mapping[str, str], out: Path, reading: ReadOptions
) -> Evaluated:
    """Write the power of the best attack on one record, and epsilon by delta, for every question about a record."""
    planner = product_of(product).planner
    questions = planner.questions(planner.load(source, dict(settings), {}, planner.CONFIDENCE))
    powers, conversions = [], []
    for question in questions:
        about = {
            "question": question.name,
            "symbol": question.definition.symbol,
            "loss": float(question.loss),
        }
        with reading.observer.stage(f"attack on {question.name}"):
            powers.append(labeled(_power(question), about))
        if question.definition is Definition.ZCDP:
            readings = [epsilons(question.loss, delta) for delta in _DELTAS]
            names = ("slide", "prefactor", "tight", "gaussian")
            columns = {f"epsilon_{name}": [getattr(one, name) for one in readings] for name in names}
            tails = [gaussian_loss_tail(question.loss, epsilon) for epsilon in columns["epsilon_tight"]]
            deltas = [float(one) for one in _DELTAS]
            conversions.append(labeled(pa.table({"delta": deltas, **columns, "loss_tail": tails}), about))
    frames = {"power": stacked(powers)} | ({"epsilon": stacked(conversions)} if conversions else {})
    document = {
        "kind": "semantics",
        "product": product,
        "configuration": source,
        "settings": dict(settings),
        "questions": [
            {
                "name": question.name,
                "words": question.words,
                "symbol": question.definition.symbol,
                "loss": float(question.loss),
                "cells": sum(query.cells for query in question.queries),
            }
            for question in questions
        ],
    }
    identity = {"kind": "semantics", "product": product, "configuration": source, **settings}
    with evaluation_folder(out, identity, confidentiality=Confidentiality.PUBLIC):
        return write_evaluation(
            out, frames, document, _summary(frames["power"]), reading, Confidentiality.PUBLIC
        )


def _power(question: RecordQuestion) -> pa.Table:
    """Power by chance of a false alarm; under pure differential privacy the bound alone."""
    levels = sorted({*_LEVELS, *ALARMS})
    if question.definition is Definition.ZCDP:
        return power_curve(question.loss, question.queries, [float(one) for one in levels])
    none = [float("nan")] * len(levels)
    return pa.table(
        {
            "false_alarm": [float(one) for one in levels],
            "gaussian": none,
            "discrete_gaussian": none,
            "discrete_gaussian_randomized": none,
            "bound": [largest_power(question.loss, question.definition, one) for one in levels],
        }
    )


def _summary(power: pa.Table) -> Sequence[str]:
    alarms = {float(one) for one in ALARMS}
    lines = [
        "Public: from the configuration alone. Chance that the best attack finds one record:",
        f"{'question':<44}{'false alarms':>13}{'best attack':>13}{'at most':>9}",
    ]
    for row in power.to_pylist():
        if row["false_alarm"] in alarms:
            best = row["discrete_gaussian_randomized"]
            text = f"{upper(best, 4):.4f}" if best == best else ""
            lines.append(
                f"{row['question'][:43]:<44}{row['false_alarm']:>13g}{text:>13}{upper(row['bound'], 4):>9.4f}"
            )
    return lines
