"""What a certificate states, as JSON values; the page is made from these and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

from censafe.errors import CheckError
from censafe.model import Definition, Neighbors, ReleasePlan
from censafe.model.parsing import exact_text
from censafe.privacy.loss.attack import largest_power
from censafe.privacy.loss.conversions import epsilons
from censafe.publication.certificate.odds import odds_rows
from censafe.publication.certificate.words import (
    CALIBRATIONS,
    CONVERSIONS,
    NEIGHBORS,
    NOT_PROMISED,
    UNITS,
    group_words,
)
from censafe.publication.manifest import Manifest
from censafe.publication.stamps import STAMP, Stamp, Stamped, require_publishable
from censafe.publication.sums import require_confidence

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
