"""Rules between the three files: every key once in units and geo, and every person in both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from censafe.model.fetching import fetch
from censafe.population.files.layout import TableName
from censafe.population.files.relation import engine_errors
from censafe.population.findings import Finding, Severity

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from censafe.population.households.source import Population

__all__ = ["Check", "cross_file_checks"]


@dataclass(frozen=True)
class Check:
    """A finding and, lazily, the rows that caused it (a table with MAFID), when they can be named."""

    finding: Finding
    offenders: ir.Table | None


@dataclass(frozen=True)
class _Links:
    """Numbers of rows with a valid MAFID, and how units and geo match."""

    units: int
    geo: int
    pairs: int
    units_only: int
    geo_only: int
    kinds_differ: int

    @property
    def unique(self) -> bool:
        """Whether no MAFID repeats.

        With nothing unmatched every MAFID has u >= 1 rows in units and g >= 1 in geo, and the sum of u * g
        equals the sum of u and the sum of g only when all are 1.
        """
        return not self.units_only and not self.geo_only and self.pairs == self.units == self.geo


def cross_file_checks(population: Population, *, attached: int, severity: Severity) -> list[Check]:
    """Check keys between persons, units and geo, and C2.

    Args:
        population: the part.
        attached: person rows found by joining persons to units, once for every row of units.
        severity: of C2.

    Returns:
        All checks, those that hold with zero rows.
    """
    units = population.units.filter(population.units.MAFID.notnull())
    geo = population.geo.filter(population.geo.MAFID.notnull())
    persons = population.persons.filter(population.persons.MAFID.notnull())
    links = _links(population, units, geo)
    checks = _kind_check(population, units, geo, links.kinds_differ, severity)
    if not links.unique:
        checks.append(_duplicates(population, "units", units))
        checks.append(_duplicates(population, "geo", geo))
    checks.append(_unmatched(population, "units", "geo", units.anti_join(geo, "MAFID"), links.units_only))
    checks.append(_unmatched(population, "geo", "units", geo.anti_join(units, "MAFID"), links.geo_only))
    if links.unique and _count(population, persons) == attached:
        return checks
    others: tuple[tuple[TableName, ir.Table], ...] = (("units", units), ("geo", geo))
    for other, rows in others:
        orphans = persons.anti_join(rows, "MAFID")
        checks.append(_unmatched(population, "persons", other, orphans, _count(population, orphans)))
    return checks


def _count(population: Population, table: ir.Table) -> int:
    with engine_errors("cross-file checks"):
        return int(fetch(table.count())[0][0].as_py())


def _links(population: Population, units: ir.Table, geo: ir.Table) -> _Links:
    left = units.select("MAFID", "RTYPE")
    right = geo.select(GEO_MAFID=geo.MAFID, GEO_RTYPE=geo.GEO_RTYPE)
    joined = left.outer_join(right, left.MAFID == right.GEO_MAFID)
    with engine_errors("cross-file checks"):
        counts = joined.aggregate(
            pairs=joined.count(where=joined.MAFID.notnull() & joined.GEO_MAFID.notnull()),
            units_only=joined.count(where=joined.GEO_MAFID.isnull()),
            geo_only=joined.count(where=joined.MAFID.isnull()),
            kinds_differ=joined.count(where=joined.RTYPE != joined.GEO_RTYPE),
        )
        found = fetch(counts).to_pylist()[0]
    return _Links(units=_count(population, units), geo=_count(population, geo), **found)


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
