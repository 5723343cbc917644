"""What the page of a table product's evaluation needs in addition to its frames, and how sure its shares are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from statistics import NormalDist
from typing import Any

from censafe.model import NoiseLaw
from censafe.model.bounds import upper
from censafe.privacy.loss.margins import exact_coverage
from censafe.publication.certificate.tables import SYMBOLS

_SMOOTH = 4  # from this sigma2 on, a sum of discrete Gaussians is one to 1e-15


def table_facts(document: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The most important numbers of the page of a table product."""
    return [
        (
            f"Privacy loss {SYMBOLS[document['symbol']]}",
            f"{upper(document['loss'], digits=6):,.6g}",
            "of one release",
        ),
        ("Noise draws", f"{document['trials']:,}", "of every noisy answer, with test keys"),
        ("Intervals", f"{100 * document['confidence']:g}%", "of them promise to hold the true count"),
    ]


def short_name(document: Mapping[str, Any]) -> str:
    """Name of the configuration: of a file its last folder and name.

    Example:
        >>> short_name({"configuration": "/data/production/config.json"})
        'production/config.json'
    """
    return "/".join(PurePath(document["configuration"]).parts[-2:])


def table_settings(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How the evaluation was made, by name."""
    changed = "; ".join(f"{name} = {value}" for name, value in document["settings"].items())
    return [
        ("Product", document["kind"]),
        ("Configuration", document["configuration"]),
        ("Settings", changed or "as the configuration has them"),
        ("States", ", ".join(document["states"])),
        ("Seed", str(document["seed"])),
    ]


def chance_within(law: NoiseLaw, draws: int, margin: int) -> float:
    """P(abs(X_1 + ... + X_draws) <= margin), or NaN where the sum has no law of its kind.

    Example:
        >>> from fractions import Fraction
        >>> round(chance_within(NoiseLaw.gaussian(Fraction(4)), 4, 7), 4)
        0.9399
        >>> chance_within(NoiseLaw.laplace(Fraction(4)), 2, 7)
        nan
    """
    if draws == 1:
        return exact_coverage(law, margin)
    if law.kind == "gaussian" and law.parameter >= _SMOOTH:
        return exact_coverage(NoiseLaw.gaussian(draws * law.parameter), margin)
    return math.nan


def pooled_share(numbers: Sequence[int], shares: Iterable[float | None]) -> float:
    """Share of all cells together; NaN without cells or where a share is unknown.

    Example:
        >>> pooled_share([1, 3], [1.0, 0.0])
        0.25
    """
    total = sum(numbers)
    parts = [
        n * (math.nan if share is None else share) for n, share in zip(numbers, shares, strict=True) if n
    ]
    return sum(parts) / total if total else math.nan


def share_doubt(share: float, number: int) -> float:
    """Two standard errors of a share of independent cells.

    Example:
        >>> share_doubt(0.5, 100)
        0.1
    """
    return 2.0 * math.sqrt(max(0.0, share * (1.0 - share)) / number) if number else math.nan


def percent_text(share: float, places: int) -> str:
    """A share in percent.

    Example:
        >>> percent_text(0.95, 1), percent_text(math.nan, 2)
        ('95.0%', 'n/a')
    """
    return "n/a" if math.isnan(share) else f"{100 * share:.{places}f}%"


def coverage_words(number: int, share: float, exact: float, places: int) -> str:
    """Whether noisy counts are within their margins as often as was promised, in a sentence.

    Example:
        >>> coverage_words(100, 0.93, 0.95, 0)
        'Of 100 noisy counts 93% are within their margin of error; by the exact noise laws it should be 95% give or take 4 points: as promised.'
    """
    doubt = share_doubt(exact, number)
    verdict = "as promised" if abs(share - exact) <= doubt else "which chance alone would seldom show"
    return (
        f"Of {number:,} noisy counts {percent_text(share, places)} are within their margin of error; by the exact noise laws it "
        f"should be {percent_text(exact, places)} give or take {100 * doubt:.{places}f} points: {verdict}."
    )


def bias_doubt(document: Mapping[str, Any], numbers: Sequence[int], margins: Sequence[float]) -> float:
    """Two standard errors of the mean of independent noise, from its margins of error.

    Example:
        >>> round(bias_doubt({"symbol": "rho", "confidence": 0.95}, [100], [1.96]), 3)
        0.2
    """
    level = document["confidence"]
    if document["symbol"] == "rho":
        deviation = 1.0 / NormalDist().inv_cdf((1.0 + level) / 2.0)
    else:
        deviation = math.sqrt(2.0) / -math.log(1.0 - level)
    total = sum(numbers)
    squares = sum(number * margin**2 for number, margin in zip(numbers, margins, strict=True))
    return 2.0 * deviation * math.sqrt(squares) / total if total else math.nan


def few_draws(document: Mapping[str, Any], number: int) -> float:
    """Typical margin measured in a number of draws of right noise, over the true margin: below 1 where draws are few.

    The measured margin is the k-th smallest of n errors; the middle of the law of its rank is (k - 1/3) / (n + 1/3) up to 0.01.

    Example:
        >>> round(few_draws({"symbol": "rho", "confidence": 0.9}, 20), 2), round(few_draws({"symbol": "rho", "confidence": 0.9}, 10**6), 2)
        (0.92, 1.0)
    """
    level = document["confidence"]
    rank = (math.ceil(level * number - 1e-9) - 1.0 / 3.0) / (number + 1.0 / 3.0)
    if document["symbol"] == "rho":
        normal = NormalDist()
        return normal.inv_cdf((1.0 + rank) / 2.0) / normal.inv_cdf((1.0 + level) / 2.0)
    return math.log(1.0 - rank) / math.log(1.0 - level)


def signed_text(value: float, doubt: float, places: int = 1) -> str:
    """A number near zero with its doubt, never a minus zero.

    Example:
        >>> signed_text(-0.01, 0.25), signed_text(3.0, 1.0)
        ('0.0 ±0.2', '3.0 ±1.0')
    """
    rounded = round(value, places) + 0.0
    return f"{rounded:,.{places}f} \N{PLUS-MINUS SIGN}{doubt:,.{places}f}"
