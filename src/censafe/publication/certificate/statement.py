"""What a certificate states, as JSON values, and how far a release moves anybody's odds; the page is made from these and nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

from censafe.errors import CheckError
from censafe.model import Definition, Neighbors, ReleasePlan
from censafe.model.bounds import factor_text
from censafe.model.parsing import exact_text
from censafe.privacy.loss.attack import largest_power
from censafe.privacy.loss.conversions import ODDS_DELTAS, epsilons, odds_bound
from censafe.publication.certificate.tables import (
    CALIBRATIONS,
    CONVERSIONS,
    NEIGHBORS,
    NOT_PROMISED,
    UNITS,
    Document,
    group_words,
)
from censafe.publication.manifest import Manifest
from censafe.publication.pages import HtmlCell, drawing, fixed, paragraphs, table
from censafe.publication.stamps import STAMP, Stamp, Stamped, require_publishable
from censafe.publication.sums import require_confidence

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


_FALSE_ALARM = Fraction(5, 100)


class CertificateContents(Protocol):
    """What a release measured and published: its tables, their noise and budgets, and how a page shows them."""

    @property
    def stamped(self) -> Sequence[Stamped]:
        """Everything whose noise came from a key."""

    def check_costs(self, plan: ReleasePlan) -> None:
        """Compare laws and losses with the plan's; CheckError where they differ."""

    def noise_words(self) -> list[str]:
        """How the noise was drawn, in words."""

    def tables(self, total: Fraction, confidence: Fraction) -> Iterable[Mapping[str, Any]]:
        """One entry for each table, with budget, share of the total loss, and accuracy by level."""

    def more(self) -> Mapping[str, Any]:
        """Further entries of the document."""

    def published(self, document: Mapping[str, Any]) -> tuple[str, str]:
        """What is published, as a figure and a few words."""

    def sections(self, document: Mapping[str, Any]) -> str:
        """The part of the page that shows the tables, HTML."""


@dataclass(frozen=True)
class CheckGroup:
    """Rules that the input was checked against, and what a breach does.

    The certificate says which rules were applied, not what they found: numbers of records that broke a
    rule are exact facts about confidential records, and they are told to the operator only.
    """

    name: str
    rules: int
    stops: bool


@dataclass(frozen=True)
class CertificateInput:
    """What the certificate of a run is made of.

    Args:
        manifest: of the run; its ledger is None for a test key, and folders are not stated.
        ledger_total: what the ledger's entries say this run spent; None for a test key.
    """

    manifest: Manifest
    contents: CertificateContents
    checks: Sequence[CheckGroup]
    title: str
    ledger_total: Fraction | None
    rows_checked: int = 0
    delta: Fraction = Fraction(1, 10**10)
    confidence: Fraction = Fraction(9, 10)

    def __post_init__(self) -> None:
        require_confidence(self.confidence)


def certificate_document(source: CertificateInput, *, stamp: Stamp | None = None) -> dict[str, Any]:
    """Collect everything the certificate states."""
    contents, manifest = source.contents, source.manifest
    plan, ledger, config = manifest.plan, manifest.ledger, manifest.config
    require_publishable(contents.stamped, stamp)
    if stamp != STAMP and (ledger is None or source.ledger_total is None):
        raise CheckError("a release needs its ledger entries for the certificate, and none were given")
    if stamp != STAMP and source.ledger_total != plan.total:
        raise CheckError(
            f"the ledger holds {plan.definition.symbol} = {source.ledger_total} for this run, its plan costs "
            f"{plan.total}; run `censafe ledger verify` and do not publish before they agree"
        )
    contents.check_costs(plan)
    calibration, title = plan.settings.get("sensitivity", ""), str(config.settings.get("title", ""))
    return {
        "format": "censafe certificate 1",
        "title": source.title,
        "product": plan.product,
        "stamp": stamp,
        "private": stamp is None,
        "created": manifest.created,
        "promise": {
            "unit": plan.unit.value,
            "unit_words": " and ".join(f"every single {name}'s record" for name in plan.records)
            if "records" in plan.settings
            else UNITS[plan.unit],
            "records": list(plan.records),
            "definition": plan.definition.value,
            **_relation(plan, plan.neighbors),
            "group_words": group_words(plan.definition),
        },
        "noise_words": contents.noise_words(),
        "loss": _loss(plan.total, source),
        "attacker": {
            "false_alarm": float(_FALSE_ALARM),
            "power": largest_power(plan.total, plan.definition, _FALSE_ALARM),
            "neighbors": plan.neighbors.value,
        },
        "odds": odds_rows(plan),
        "other_losses": [
            {**_relation(plan, relation), **_loss(loss, source)}
            for relation, loss in plan.other_losses.items()
        ],
        "calibration": {"name": calibration, "words": CALIBRATIONS.get(calibration, "")},
        "confidence": float(source.confidence),
        "tables": list(contents.tables(plan.total, source.confidence)),
        **contents.more(),
        "not_promised": [{"what": what, "words": words} for what, words in NOT_PROMISED],
        "checks": [asdict(group) for group in source.checks],
        "rows_checked": source.rows_checked,
        "inputs": {
            "dataset": manifest.dataset,
            "keyed_commitment": manifest.input_commitment,
            "file_commitments": list(manifest.file_commitments),
        },
        "ledger": {"file": Path(ledger.file).name, "head": ledger.head} if ledger else None,
        "plan_digest": plan.digest(),
        "measurement_files": {part.file: part.sha256 for part in manifest.parts},
        "configuration": {
            "name": Path(config.origin).name,
            **({"title": title} if title else {}),
            "overrides": dict(config.overrides),
            "settings": dict(plan.settings),
        },
        "versions": dict(manifest.versions),
    }


def _relation(plan: ReleasePlan, relation: Neighbors) -> dict[str, str]:
    """A relation by name, in general words, and in the product's own exact words where the plan has them."""
    general = NEIGHBORS[relation].format(unit="'s and one ".join(plan.records))
    return {
        "neighbors": relation.value,
        "neighbors_words": general,
        "neighbors_exact": plan.settings.get(f"neighbors.{relation.value}", general),
    }


def _loss(loss: Fraction, source: CertificateInput) -> dict[str, Any]:
    definition = source.manifest.plan.definition
    stated: dict[str, Any] = {
        "kind": definition.symbol,
        "exact": exact_text(loss),
        "decimal": float(loss),
    }
    if definition is Definition.ZCDP:
        converted = epsilons(loss, source.delta)
        stated["delta"] = exact_text(source.delta)
        stated["delta_decimal"] = float(source.delta)
        stated["epsilon"] = [
            {"conversion": key, "name": name, "words": words, "value": getattr(converted, key)}
            for key, (name, words) in CONVERSIONS.items()
        ]
    return stated
