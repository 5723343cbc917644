"""The part of a certificate that says how far a release moves anybody's odds about one record, with its curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from censafe.model import ReleasePlan
from censafe.model.bounds import factor_text
from censafe.model.parsing import exact_text
from censafe.privacy.loss.conversions import ODDS_DELTAS, odds_bound
from censafe.publication.certificate.tables import Document
from censafe.publication.pages.document import drawing
from censafe.publication.pages.markup import HtmlCell, fixed, paragraphs, table

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 560, 300, 62, 20, 16, 48
_LEAST, _MOST = 430, 620


def odds_rows(plan: ReleasePlan) -> list[dict[str, Any]]:
    """The curve as the certificate states it: the factor is e^epsilon, with probability at least 1 - delta over the release."""
    return [
        {
            "delta": exact_text(delta),
            "delta_decimal": float(delta),
            "epsilon": odds_bound(plan.total, plan.definition, delta),
        }
        for delta in ODDS_DELTAS
    ]


def odds_part(rows: Sequence[Document], *, pure: bool) -> str:
    """Words, curve and table."""
    if pure:
        return "<h3>An attacker's odds</h3>" + paragraphs(
            "Whatever an attacker believed about one record before, the release changes their odds between two values of it by a "
            f"factor of at most {factor_text(rows[0]['epsilon'])}, always."
        )
    cells = [
        (f"{float(Fraction(row['delta'])):.3g}", fixed(row["epsilon"], 3), factor_text(row["epsilon"]))
        for row in rows
    ]
    return (
        "<h3>An attacker's odds</h3>"
        + paragraphs(
            "Suppose an attacker has some prior belief about one record, and therefore odds between two values of it. With "
            "probability at least 1 minus delta over the noise, all published files together change these odds by a factor of at "
            "most e^epsilon, up or down. This holds for every prior belief about the record, and also if the other records are "
            "not known, provided the beliefs about them do not depend on this record. It is a statement about the posterior odds, "
            "and differs from (epsilon, delta)-differential privacy."
        )
        + _curve(rows)
        + table(
            "Largest change of the odds about one record",
            ("delta", "epsilon", HtmlCell("factor e<sup>epsilon</sup>")),
            cells,
            numbers=3,
        )
    )


def _curve(rows: Sequence[Document]) -> str:
    """Epsilon by delta, delta on a logarithmic axis."""
    powers = [math.log10(row["delta_decimal"]) for row in rows]
    top = max(row["epsilon"] for row in rows) * 1.05 or 1.0

    def place(power: float, epsilon: float) -> tuple[float, float]:
        across = (power - powers[-1]) / (powers[0] - powers[-1])
        x = _LEFT + across * (_WIDTH - _LEFT - _RIGHT)
        return x, _HEIGHT - _BOTTOM - epsilon / top * (_HEIGHT - _TOP - _BOTTOM)

    points = [place(power, row["epsilon"]) for power, row in zip(powers, rows, strict=True)]
    path = "".join(f"{'L' if i else 'M'}{x:.1f} {y:.1f}" for i, (x, y) in enumerate(points))
    floor = place(powers[-1], 0.0)[1]
    labels = "".join(
        f'<text x="{place(power, 0)[0]:.1f}" y="{floor + 18:.1f}" text-anchor="middle">1e{power}</text>'
        for power in (-10, -8, -6, -4, -2)
    ) + "".join(
        f'<text x="{_LEFT - 8}" y="{place(0, share * top)[1] + 4:.1f}" text-anchor="end">{share * top:.1f}</text>'
        for share in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    ends = f"from {fixed(rows[0]['epsilon'], 2)} at delta {rows[0]['delta_decimal']:g} to {fixed(rows[-1]['epsilon'], 2)} at {rows[-1]['delta_decimal']:g}"
    svg = (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" font-size="13">'
        f'<path d="M{_LEFT} {_TOP}V{floor:.1f}H{_WIDTH - _RIGHT}" fill="none" stroke="currentColor" stroke-opacity="0.4"/>'
        f'<path d="{path}" fill="none" stroke="currentColor" stroke-width="3"/>{labels}'
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{_HEIGHT - 8}" text-anchor="middle">delta</text></svg>'
    )
    return f"<figure>{drawing(svg, f'Epsilon of the odds by delta: {ends}', _LEAST, _MOST)}</figure>"
