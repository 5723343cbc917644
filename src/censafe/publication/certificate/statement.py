"""What a certificate states, as JSON values; the page is made from these and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from censafe.errors import CheckError
from censafe.model import Definition, Neighbours, ReleasePlan
from censafe.model.groups.cells import ProductTables
from censafe.model.groups.estimates import GroupEstimates
from censafe.model.measurements import PublishedQuery
from censafe.privacy.loss.attack import largest_power
from censafe.privacy.loss.conversions import epsilons
from censafe.publication.certificate.levels import (
    LevelEstimates,
    check_level_costs,
    estimates_document,
    level_tables,
)
from censafe.publication.certificate.words import (
    CALIBRATIONS,
    CONVERSIONS,
    ESTIMATED,
    NEIGHBOURS,
    NOISE,
    NOT_PROMISED,
    UNITS,
    group_words,
)
from censafe.publication.groups.statement import check_group_costs, group_tables, noise_kinds
from censafe.publication.manifest import LedgerRecord
from censafe.publication.stamps import STAMP, Stamp, require_publishable
from censafe.publication.sums import accuracy_of_sum, require_confidence
from censafe.publication.tables.bureau import key_columns, region_type_of
from censafe.publication.tables.codebook import CodebookInput, TableLabel

__all__ = ["CertificateInput", "CheckGroup", "certificate_document"]

_FALSE_ALARM = Fraction(5, 100)


@dataclass(frozen=True)
class CheckGroup:
    """Rules that the input was checked against, and what a breach does.

    The certificate says which rules were applied, not what they found: numbers of records that broke a
    rule are exact facts about confidential records, and they are told to the operator only.

    Args:
        name: of the group, for example ``Columns, types and codes``.
        rules: how many rules.
        stops: whether a breach stops the run; otherwise the operator is told.
    """

    name: str
    rules: int
    stops: bool


@dataclass(frozen=True)
class CertificateInput:
    """What the certificate of a run is made of.

    Args:
        title: of the release, in words.
        plan: the plan of the run.
        queries: everything published over complete key domains, derived tables included.
        codebook: words for tables, cells and levels.
        dataset: label of the input.
        input_commitment: of all record files together.
        ledger: ledger file and head after the last commit, None for a test key; folders are not stated.
        ledger_total: what the ledger's entries say this run spent; None for a test key.
        checks: rules that the input was checked against.
        rows_checked: published rows that were read back and compared with the plan.
        configuration: name or path of the configuration; folders are not stated.
        configuration_title: what the configuration is for, in its own words; empty without.
        overrides: settings changed on the command line.
        versions: of Python and packages.
        created: UTC, ISO 8601.
        file_commitments: keyed commitment to every record file.
        measurement_files: SHA-256 of the committed measurement files, by file.
        groups: everything published about population groups.
        group_tables: files and cells of their tables; needed where there are groups.
        notes: what was done after the measurements, in words.
        estimates: microdata and tables estimated from measurements of every level; None for other products.
        delta: at which epsilons are stated.
        confidence: of the margins of error, 9/10 or 19/20.
    """

    title: str
    plan: ReleasePlan
    queries: Sequence[PublishedQuery]
    codebook: CodebookInput
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
    groups: Sequence[GroupEstimates] = ()
    group_tables: ProductTables | None = None
    notes: Sequence[str] = ()
    estimates: LevelEstimates | None = None
    delta: Fraction = Fraction(1, 10**10)
    confidence: Fraction = Fraction(9, 10)

    def __post_init__(self) -> None:
        require_confidence(self.confidence)
        if self.groups and self.group_tables is None:
            raise ValueError("a certificate of population groups needs their tables")


def certificate_document(source: CertificateInput, *, stamp: Stamp | None = None) -> dict[str, Any]:
    """Collect everything the certificate states.

    Raises:
        ReleaseError: the stamp does not fit the source of the noise.
        CheckError: ledger, plan and published tables disagree.
    """
    levels = source.estimates.facts if source.estimates else ()
    require_publishable([*source.queries, *source.groups, *levels], stamp)
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
            **_relation(plan, plan.neighbours),
            "group_words": group_words(plan.definition),
        },
        "noise_words": _noise_words(source),
        "loss": _loss(plan.total, source),
        "attacker": {
            "false_alarm": float(_FALSE_ALARM),
            "power": largest_power(plan.total, plan.definition, _FALSE_ALARM),
            "neighbours": plan.neighbours.value,
        },
        "other_losses": [
            {**_relation(plan, relation), **_loss(loss, source)}
            for relation, loss in plan.other_losses.items()
        ],
        "calibration": _calibration(plan),
        "confidence": float(source.confidence),
        "tables": [
            *_tables(source),
            *_group_tables(source),
            *level_tables(levels, plan.total, source.confidence),
        ],
        **({"estimated": estimates_document(source.estimates)} if source.estimates else {}),
        **({"notes": list(source.notes)} if source.notes else {}),
        "not_promised": [{"what": what, "words": words} for what, words in NOT_PROMISED],
        "checks": [asdict(group) for group in source.checks],
        "rows_checked": source.rows_checked,
        **_evidence(source),
    }


def _group_tables(source: CertificateInput) -> Iterator[dict[str, Any]]:
    if source.group_tables is not None:
        yield from group_tables(
            source.groups, source.group_tables, source.plan.total, source.confidence, source.codebook.levels
        )


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
    planned = {(q.table, q.level): (q.law, q.cost) for part in plan.parts for q in part.queries}
    for query in source.queries:
        if query.cost and planned.get((query.table, query.level)) != (query.law, query.cost):
            raise CheckError(
                f"table {query.table}, level {query.level}: noise law or budget differ from the plan; "
                "do not publish the tables"
            )
    if source.group_tables is not None:
        check_group_costs(source.groups, plan, source.group_tables)
    if source.estimates:
        check_level_costs(source.estimates, plan)


def _noise_words(source: CertificateInput) -> list[str]:
    if source.estimates:
        words = {NOISE[fact.law.kind].partition(" The number may be")[0] for fact in source.estimates.facts}
        return [*sorted(words), ESTIMATED]
    kinds = {query.law.kind for query in source.queries} | noise_kinds(source.groups)
    return sorted(NOISE[kind] for kind in kinds)


def _unit_words(plan: ReleasePlan) -> str:
    if "records" not in plan.settings:
        return UNITS[plan.unit]
    return " and ".join(f"every single {name}'s record" for name in plan.records)


def _relation(plan: ReleasePlan, relation: Neighbours) -> dict[str, str]:
    """A relation by name, in general words, and in the product's own exact words where the plan has them."""
    general = NEIGHBOURS[relation].format(unit="'s and one ".join(plan.records))
    return {
        "neighbours": relation.value,
        "neighbours_words": general,
        "neighbours_exact": plan.settings.get(f"neighbours.{relation.value}", general),
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


def _tables(source: CertificateInput) -> Iterator[dict[str, Any]]:
    total = source.plan.total
    for table in dict.fromkeys(query.table for query in source.queries):
        queries = [query for query in source.queries if query.table == table]
        cost = sum((query.cost for query in queries), Fraction(0))
        label = source.codebook.tables.get(table, TableLabel("", "", {}))
        yield {
            "table": table,
            "title": label.title,
            "universe": label.universe,
            "derived": cost == 0,
            "budget": f"{cost.numerator}/{cost.denominator}",
            "budget_decimal": float(cost),
            "share": float(cost / total) if total else 0.0,
            "rows": sum(query.domain.size for query in queries),
            "levels": [level for query in queries for level in _levels(query, source)],
        }


def _levels(query: PublishedQuery, source: CertificateInput) -> Iterator[dict[str, Any]]:
    """One entry a level, or one for each number of noise draws where cells differ in it."""
    cells = key_columns(query).cell
    draws = list(dict.fromkeys(query.terms.tolist()))
    for terms in draws:
        accuracy = accuracy_of_sum(query.law, terms, source.confidence)
        chosen = query.terms == terms
        yield {
            "level": query.level,
            "words": source.codebook.levels.get(query.level, query.level),
            "region_type": region_type_of(query.level),
            "regions": len(query.domain.axes[0].values),
            "rows": int(chosen.sum()),
            "cells": sorted(set(cells[chosen].tolist()), key=lambda cell: (len(cell), cell))
            if len(draws) > 1
            else [],
            "law": query.law.bureau_name,
            "parameter": f"{query.law.parameter.numerator}/{query.law.parameter.denominator}",
            "noise_draws": terms,
            "budget": f"{query.cost.numerator}/{query.cost.denominator}",
            "budget_decimal": float(query.cost),
            "variance": accuracy.variance,
            "variance_reference": accuracy.variance_reference,
            "margin_of_error": accuracy.margin,
            "margin_of_error_exact": accuracy.margin_exact,
        }
