"""The rules of households for the relational engine, and rules of keys between the three files.

All rules of a household are answered from one row a unit: the unit, its geo record type, and one summary of its persons.

Source: specification of the PHSafe input, section 8.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from censafe.model.fetching import fetch
from censafe.population.files.layout import TableName
from censafe.population.files.relation import engine_errors
from censafe.population.findings import Finding, Severity
from censafe.population.households.load import Population, count_keys, count_rows

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
    checks = _kind_check(population, units, geo, links.kinds_differ, severity)
    if not links.unique:
        checks.append(_duplicates(population, "units", units))
        checks.append(_duplicates(population, "geo", geo))
    checks.append(_unmatched(population, "units", "geo", units.anti_join(geo, "MAFID"), links.units_only))
    checks.append(_unmatched(population, "geo", "units", geo.anti_join(units, "MAFID"), links.geo_only))
    if links.unique and count_keys(population.persons) == attached:
        return checks
    others: tuple[tuple[TableName, ir.Table], ...] = (("units", units), ("geo", geo))
    for other, rows in others:
        orphans = persons.anti_join(rows, "MAFID")
        checks.append(_unmatched(population, "persons", other, orphans, count_rows(orphans)))
    return checks


def _kind_check(
    population: Population, units: ir.Table, geo: ir.Table, rows: int, severity: Severity
) -> list[Check]:
    joined = units.join(geo, "MAFID")
    finding = Finding(
        population.labels["geo"],
        "RTYPE",
        "C2",
        severity,
        rows,
        f"rows whose RTYPE is not that of {population.labels['units']}",
        "the same RTYPE for a MAFID in both files; geo's decides",
        "correct RTYPE",
    )
    return [Check(finding, joined.filter(joined.RTYPE != joined.GEO_RTYPE))]


def _duplicates(population: Population, table: TableName, rows: ir.Table) -> Check:
    repeated = rows.group_by("MAFID").aggregate(N=rows.count())
    repeated = repeated.filter(repeated.N > 1)
    with engine_errors("cross-file checks"):
        total = int(fetch(repeated.N.sum())[0][0].as_py() or 0)
    finding = Finding(
        population.labels[table],
        "MAFID",
        "duplicate-mafid",
        "stop",
        total,
        "rows that share their MAFID with another row",
        "every MAFID once",
        "remove the repeated rows",
    )
    return Check(finding, repeated)


def _unmatched(
    population: Population, table: TableName, other: TableName, offenders: ir.Table, rows: int
) -> Check:
    finding = Finding(
        population.labels[table],
        "MAFID",
        f"no-{other}",
        "stop",
        rows,
        f"rows whose MAFID is not in {population.labels[other]}",
        f"MAFIDs that {population.labels[other]} has",
        f"add the missing rows to {population.labels[other]}, or remove these rows",
    )
    return Check(finding, offenders)


def households(rows: ir.Table) -> ir.Table:
    """Rows of units with the summary of their persons, zeros where they have none."""
    counted = ("PERSONS", "NOT_HOUSEHOLD", "NOT_GQ", "HOUSEHOLDERS", "PARTNERS", "FAMILY", "FLAGS")
    return rows.mutate(**{name: rows[name].fill_null(0) for name in counted})
