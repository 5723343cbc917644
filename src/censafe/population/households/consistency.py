"""The rules of households for the relational engine, and rules of keys between the three files.

All rules of a household are answered from one row a unit: the unit, its geo record type, and one summary of its persons.

Source: specification of the PHSafe input, section 8.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from censafe.population.files.layout import TableName
from censafe.population.findings import Finding, Severity, stated
from censafe.population.households.load import Population, count_value

if TYPE_CHECKING:
    import ibis.expr.types as ir


@dataclass(frozen=True)
class Check:
    """A finding and, lazily, the rows that caused it (a table with MAFID), when they can be named."""

    finding: Finding
    offenders: ir.Table | None


def cross_file_checks(population: Population, *, attached: int, severity: Severity) -> list[Check]:
    """Check keys between persons, units and geo, and C2.

    Args:
        attached: person rows found by joining persons to units, once for every row of units.
    """
    units = population.units.filter(population.units.MAFID.notnull())
    geo = population.geo.filter(population.geo.MAFID.notnull())
    persons = population.persons.filter(population.persons.MAFID.notnull())
    links = population.links
    joined, labels = units.join(geo, "MAFID"), population.labels
    differ = stated(
        "phsafe.C2", labels["geo"], links.kinds_differ, warn=severity == "warn", units=labels["units"]
    )
    checks = [Check(one, joined.filter(joined.RTYPE != joined.GEO_RTYPE)) for one in differ]
    if not links.unique:
        checks += _duplicates(labels["units"], units)
        checks += _duplicates(labels["geo"], geo)
    checks += _unmatched(labels, "units", "geo", units.anti_join(geo, "MAFID"), links.units_only)
    checks += _unmatched(labels, "geo", "units", geo.anti_join(units, "MAFID"), links.geo_only)
    if links.unique and count_value(population.persons.MAFID.count()) == attached:
        return checks
    others: tuple[tuple[TableName, ir.Table], ...] = (("units", units), ("geo", geo))
    for other, rows in others:
        orphans = persons.anti_join(rows, "MAFID")
        checks += _unmatched(labels, "persons", other, orphans, count_value(orphans.count()))
    return checks


def _duplicates(label: str, rows: ir.Table) -> list[Check]:
    repeated = rows.group_by("MAFID").aggregate(N=rows.count())
    repeated = repeated.filter(repeated.N > 1)
    total = count_value(repeated.N.sum())
    return [Check(one, repeated) for one in stated("phsafe.duplicate-mafid", label, total)]


def _unmatched(
    labels: Mapping[TableName, str], table: TableName, other: TableName, offenders: ir.Table, rows: int
) -> list[Check]:
    findings = stated(f"phsafe.no-{other}", labels[table], rows, other=labels[other])
    return [Check(one, offenders) for one in findings]


def households(rows: ir.Table) -> ir.Table:
    """Rows of units with the summary of their persons, zeros where they have none."""
    counted = ("PERSONS", "NOT_HOUSEHOLD", "NOT_GQ", "HOUSEHOLDERS", "PARTNERS", "FAMILY", "FLAGS")
    return rows.mutate(**{name: rows[name].fill_null(0) for name in counted})
