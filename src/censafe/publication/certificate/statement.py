"""What a certificate states, as JSON values; the page is made from these and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

from censafe.errors import CheckError
from censafe.model import Definition, Neighbors, ReleasePlan
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
from censafe.publication.manifest import LedgerRecord
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
        ledger: ledger file and head after the last commit, None for a test key; folders are not stated.
        ledger_total: what the ledger's entries say this run spent; None for a test key.
    """

    title: str
    plan: ReleasePlan
    contents: CertificateContents
    dataset: str
    input_commitment: str
    ledger: LedgerRecord | None
    ledger_total: Fraction | None
    configuration: str
    created: str
    checks: Sequence[CheckGroup] = ()
    rows_checked: int = 0
    configuration_title: str = ""
    overrides: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    file_commitments: Sequence[str] = ()
    measurement_files: Mapping[str, str] = field(default_factory=dict)
    delta: Fraction = Fraction(1, 10**10)
    confidence: Fraction = Fraction(9, 10)

    def __post_init__(self) -> None:
        require_confidence(self.confidence)


def certificate_document(source: CertificateInput, *, stamp: Stamp | None = None) -> dict[str, Any]:
    """Collect everything the certificate states."""
    contents = source.contents
    require_publishable(contents.stamped, stamp)
    _check_agreement(source, stamp)
    plan = source.plan
    return {
        "format": "censafe certificate 1",
        "title": source.title,
        "product": plan.product,
        "stamp": stamp,
        "private": stamp is None,
        "created": source.created,
        "promise": {
            "unit": plan.unit.value,
            "unit_words": _unit_words(plan),
            "records": list(plan.records),
            "definition": plan.definition.value,
            **_relation(plan, plan.neighbors),
            "group_words": group_words(plan.definition),
        },
        "noise_words": contents.noise_words(),
        "loss": _loss(plan.total, source),
        **_reader(plan),
        "other_losses": [
            {**_relation(plan, relation), **_loss(loss, source)}
            for relation, loss in plan.other_losses.items()
        ],
        "calibration": _calibration(plan),
        "confidence": float(source.confidence),
        "tables": list(contents.tables(plan.total, source.confidence)),
        **contents.more(),
        "not_promised": [{"what": what, "words": words} for what, words in NOT_PROMISED],
        "checks": [asdict(group) for group in source.checks],
        "rows_checked": source.rows_checked,
        **_evidence(source),
    }


def _reader(plan: ReleasePlan) -> dict[str, Any]:
    """What the loss means for a test of one record, and for a belief about one."""
    attacker = {
        "false_alarm": float(_FALSE_ALARM),
        "power": largest_power(plan.total, plan.definition, _FALSE_ALARM),
        "neighbors": plan.neighbors.value,
    }
    return {"attacker": attacker, "odds": odds_rows(plan)}


def _evidence(source: CertificateInput) -> dict[str, Any]:
    ledger = source.ledger
    return {
        "inputs": {
            "dataset": source.dataset,
            "keyed_commitment": source.input_commitment,
            "file_commitments": list(source.file_commitments),
        },
        "ledger": {"file": Path(ledger.file).name, "head": ledger.head} if ledger else None,
        "plan_digest": source.plan.digest(),
        "measurement_files": dict(source.measurement_files),
        "configuration": {
            "name": Path(source.configuration).name,
            **({"title": source.configuration_title} if source.configuration_title else {}),
            "overrides": dict(source.overrides),
            "settings": dict(source.plan.settings),
        },
        "versions": dict(source.versions),
    }


def _check_agreement(source: CertificateInput, stamp: Stamp | None) -> None:
    plan = source.plan
    if stamp != STAMP and (source.ledger is None or source.ledger_total is None):
        raise CheckError("a release needs its ledger entries for the certificate, and none were given")
    if stamp != STAMP and source.ledger_total != plan.total:
        raise CheckError(
            f"the ledger holds {plan.definition.symbol} = {source.ledger_total} for this run, its plan costs "
            f"{plan.total}; run `censafe ledger verify` and do not publish before they agree"
        )
    source.contents.check_costs(plan)


def _unit_words(plan: ReleasePlan) -> str:
    if "records" not in plan.settings:
        return UNITS[plan.unit]
    return " and ".join(f"every single {name}'s record" for name in plan.records)


def _relation(plan: ReleasePlan, relation: Neighbors) -> dict[str, str]:
    """A relation by name, in general words, and in the product's own exact words where the plan has them."""
    general = NEIGHBORS[relation].format(unit="'s and one ".join(plan.records))
    return {
        "neighbors": relation.value,
        "neighbors_words": general,
        "neighbors_exact": plan.settings.get(f"neighbors.{relation.value}", general),
    }


def _loss(loss: Fraction, source: CertificateInput) -> dict[str, Any]:
    definition = source.plan.definition
    stated: dict[str, Any] = {
        "kind": definition.symbol,
        "exact": f"{loss.numerator}/{loss.denominator}",
        "decimal": float(loss),
    }
    if definition is Definition.ZCDP:
        found = epsilons(loss, source.delta)
        stated["delta"] = f"{source.delta.numerator}/{source.delta.denominator}"
        stated["delta_decimal"] = float(source.delta)
        stated["epsilon"] = [
            {"conversion": key, "name": name, "words": words, "value": getattr(found, key)}
            for key, (name, words) in CONVERSIONS.items()
        ]
    return stated


def _calibration(plan: ReleasePlan) -> dict[str, str]:
    name = plan.settings.get("sensitivity", "")
    return {"name": name, "words": CALIBRATIONS.get(name, "")}
