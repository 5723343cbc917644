"""A small release for the writers: two regions, an iterated table, a plain one and a derived one."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from censafe.model import (
    Axis,
    Definition,
    KeyDomain,
    Measurements,
    Neighbors,
    NoiseLaw,
    PartPlan,
    ProtectedUnit,
    QueryPlan,
    ReleasePlan,
)
from censafe.model.measurements import PublishedQuery
from censafe.model.plan import NoiseSource
from censafe.publication.certificate.page import CertificateInput, CheckGroup, write_certificate
from censafe.publication.certificate.tables import TableContents
from censafe.publication.manifest import ConfigRecord, LedgerRecord, Manifest, PartRecord
from censafe.publication.tables.bureau import DerivedTable, TableLayout
from censafe.publication.tables.tidy import CodebookInput, TableLabel

Source = NoiseSource

LAYOUTS = (
    TableLayout("PH2", "PH2_DATA_CELL", iterated=False),
    TableLayout("PH7", "PH7_DATA_CELL", iterated=True),
    TableLayout("PH8_num", "PH8_NUM_DATA_CELL", iterated=True),
)
DERIVED = (DerivedTable("PH8_num", "PH7", {"2": 2, "3": 1}),)
CELLS = {"PH2": ("3", "4", "10"), "PH7": ("2", "3", "4"), "PH8_num": ("2", "3")}
REGIONS = {"usa": ("1",), "state": ("09", "72")}
ITERATIONS = {"A-G": ("A", "B"), "*": ("*",)}


def law(sensitivity: int, cost: Fraction, definition: Definition) -> NoiseLaw:
    if definition is Definition.ZCDP:
        return NoiseLaw.gaussian(Fraction(sensitivity**2) / (2 * cost))
    return NoiseLaw.laplace(sensitivity / cost)


def make_plan(definition: Definition = Definition.ZCDP, tau: int = 10) -> ReleasePlan:
    def query(table: str, level: str, cost: str) -> QueryPlan:
        return QueryPlan(table, level, law(2 * tau + 2, Fraction(cost), definition), Fraction(cost))

    parts = (
        PartPlan("PH2", (query("PH2", "usa_*", "1/10"), query("PH2", "state_*", "1/5"))),
        PartPlan("PH7", (query("PH7", "usa_A-G", "1/7"), query("PH7", "state_*", "3/10"))),
    )
    total = sum((part.cost for part in parts), Fraction(0))
    return ReleasePlan(
        product="phsafe",
        definition=definition,
        neighbors=Neighbors.ADD_REMOVE,
        unit=ProtectedUnit.PERSON,
        other_losses={Neighbors.REPLACE: 2 * total},
        parts=parts,
        settings={"sensitivity": "bureau"},
    )


def domain(table: str, level: str) -> KeyDomain:
    kind, iteration = level.split("_")
    return KeyDomain(
        (
            Axis("REGION_ID", REGIONS[kind]),
            Axis("ITERATION_CODE", ITERATIONS[iteration]),
            Axis("CELL", CELLS[table]),
        )
    )


def make_measurements(plan: ReleasePlan, source: Source = "system") -> list[Measurements]:
    rng = np.random.default_rng(5)
    queries = [query for part in plan.parts for query in part.queries]
    return [
        Measurements(query, keys, rng.integers(-50, 5000, keys.size, dtype=np.int64), source)
        for query in queries
        for keys in [domain(query.table, query.level)]
    ]


def make_published(plan: ReleasePlan, source: Source = "system") -> list[PublishedQuery]:
    measured = make_measurements(plan, source)
    published = [PublishedQuery.measured(m) for m in measured]
    for m in measured:
        if m.query.table == "PH7":
            answers = m.values.reshape(m.domain.shape)
            keys = domain("PH8_num", m.query.level)
            values = np.stack([answers[..., 0] + answers[..., 1], answers[..., 2]], axis=-1)
            published.append(
                PublishedQuery(
                    table="PH8_num",
                    level=m.query.level,
                    domain=keys,
                    values=values.reshape(-1).astype(np.int64),
                    terms=np.tile(np.array([2, 1], dtype=np.int64), keys.size // 2),
                    law=m.query.law,
                    cost=Fraction(0),
                    source=source,
                )
            )
    return published


CODEBOOK = CodebookInput(
    tables={
        "PH2": TableLabel(
            "Household type", "Persons in households", {"3": "Married", "10": "Alone & <other>"}
        ),
        "PH7": TableLabel("Tenure", "Persons in occupied units", {"2": "Mortgage", "3": "Free", "4": "Rent"}),
    },
    iterations={"A": "White alone", "B": "Black alone", "*": "Everyone"},
    regions={("STATE", "72"): "Puerto Rico"},
    levels={"usa_*": "Nation, everyone"},
)


def certificate_input(
    plan: ReleasePlan, contents: Any, source: Source = "system", **fields: Any
) -> CertificateInput:
    """What a certificate states of a run with these contents."""
    private = source == "system"
    manifest = Manifest(
        plan=plan,
        config=ConfigRecord("/home/somebody/config.json", {"tau.PH2": "10"}, {}),
        dataset="data & more",
        input_commitment="c0" * 32,
        ledger=LedgerRecord("/home/somebody/ledger.jsonl", "1e" * 32) if private else None,
        test_key=not private,
        created="2026-01-02T03:04:05Z",
        parts=(PartRecord("PH2", "measurements/PH2.parquet", "77" * 32),),
        versions={"python": "3.11"},
    )
    stated = {
        "title": "A <small> release",
        "checks": (),
        "ledger_total": plan.total if private else None,
    }
    return CertificateInput(manifest=manifest, contents=contents, **stated | fields)


def written_certificate(
    folder: Path, source: CertificateInput, stamp: Any = None
) -> tuple[str, dict[str, Any]]:
    """The page of a certificate, and its values."""
    page, values = write_certificate(folder, source, stamp=stamp)
    return page.read_text(encoding="utf-8"), json.loads(values.read_text(encoding="utf-8"))


def make_certificate_input(plan: ReleasePlan, source: Source = "system") -> CertificateInput:
    return certificate_input(
        plan,
        TableContents(make_published(plan, source), CODEBOOK),
        source,
        checks=(CheckGroup("Codes", 3, stops=True), CheckGroup("Households", 12, stops=False)),
        rows_checked=40,
    )
