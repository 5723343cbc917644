"""The consistency rules C1 to C12, what columns and tables must say together, and rules of keys between the three files.

All rules of a household are answered from one row a unit: the unit, its geo record type, and one summary of its persons.

Source: specification of the PHSafe input, section 8.2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from censafe.model.fetching import engine_of, fetch
from censafe.population.files.layout import TableName
from censafe.population.files.relation import engine_errors
from censafe.population.findings import Finding, Severity

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from censafe.population.households.source import Population

__all__ = [
    "OWN_CHILD_UNDER_18",
    "PARTNER_OPPOSITE",
    "PARTNER_SAME",
    "RULES",
    "SPOUSE_OPPOSITE",
    "SPOUSE_SAME",
    "Check",
    "KeyLinks",
    "Rule",
    "cross_file_checks",
    "find_links",
    "households",
]


@dataclass(frozen=True)
class Check:
    """A finding and, lazily, the rows that caused it (a table with MAFID), when they can be named."""

    finding: Finding
    offenders: ir.Table | None


@dataclass(frozen=True)
class KeyLinks:
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
    links = population.links
    checks = _kind_check(population, units, geo, links.kinds_differ, severity)
    if not links.unique:
        checks.append(_duplicates(population, "units", units))
        checks.append(_duplicates(population, "geo", geo))
    checks.append(_unmatched(population, "units", "geo", units.anti_join(geo, "MAFID"), links.units_only))
    checks.append(_unmatched(population, "geo", "units", geo.anti_join(units, "MAFID"), links.geo_only))
    if links.unique and _keys(population.persons) == attached:
        return checks
    others: tuple[tuple[TableName, ir.Table], ...] = (("units", units), ("geo", geo))
    for other, rows in others:
        orphans = persons.anti_join(rows, "MAFID")
        checks.append(_unmatched(population, "persons", other, orphans, _count(orphans)))
    return checks


def _count(table: ir.Table) -> int:
    with engine_errors("cross-file checks"):
        return int(fetch(table.count())[0][0].as_py())


def _keys(table: ir.Table) -> int:
    with engine_errors("cross-file checks"):
        return int(fetch(table.MAFID.count())[0][0].as_py())


def find_links(units: ir.Table, geo: ir.Table) -> KeyLinks:
    """How the rows of units and geo match.

    Args:
        units: typed units.
        geo: typed geo.
    """
    engine = engine_of(units)
    left, right = units.select("MAFID", "RTYPE"), geo.select("MAFID", "GEO_RTYPE")
    rows = {"units": _keys(units), "geo": _keys(geo)}
    with engine_errors("cross-file checks"):
        if not (engine.unique(left, "MAFID") and engine.unique(right, "MAFID")):
            return KeyLinks(**rows, **_links_by_join(left, right))
        joined = engine.joined("linked", left, right, "MAFID")
        found = fetch(
            joined.aggregate(
                pairs=joined.count(), kinds_differ=joined.count(where=joined.RTYPE != joined.GEO_RTYPE)
            )
        ).to_pylist()[0]
        engine.drop("linked")
    unmatched = {f"{name}_only": count - found["pairs"] for name, count in rows.items()}
    return KeyLinks(**rows, **unmatched, **found)


def _links_by_join(units: ir.Table, geo: ir.Table) -> dict[str, int]:
    """Pairs and unmatched rows where keys may repeat."""
    left = units.filter(units.MAFID.notnull())
    right = geo.filter(geo.MAFID.notnull()).rename(GEO_MAFID="MAFID")
    joined = left.outer_join(right, left.MAFID == right.GEO_MAFID)
    counts = joined.aggregate(
        pairs=joined.count(where=joined.MAFID.notnull() & joined.GEO_MAFID.notnull()),
        units_only=joined.count(where=joined.GEO_MAFID.isnull()),
        geo_only=joined.count(where=joined.MAFID.isnull()),
        kinds_differ=joined.count(where=joined.RTYPE != joined.GEO_RTYPE),
    )
    found: dict[str, int] = fetch(counts).to_pylist()[0]
    return found


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


# Bits of what the persons of a household are to its householder.
SPOUSE_OPPOSITE, PARTNER_OPPOSITE, SPOUSE_SAME, PARTNER_SAME, OWN_CHILD_UNDER_18 = 1, 2, 4, 8, 16


@dataclass(frozen=True)
class Rule:
    """One consistency rule.

    Args:
        name: C1 to C12.
        table: the input that a message names first.
        columns: columns that must agree.
        problem: what is wrong, saying what the number of rows counts.
        allowed: the rule in words.
        broken: how many rows of a household break the rule (0 or 1, or persons for C1), as an expression
            over a row of :func:`households`.
    """

    name: str
    table: TableName
    columns: str
    problem: str
    allowed: str
    broken: Callable[[Any], Any]


def households(rows: ir.Table) -> ir.Table:
    """Rows of units with the summary of their persons, zeros where they have none.

    Args:
        rows: result of :func:`censafe.population.households.summaries.with_persons`.
    """
    counted = ("PERSONS", "NOT_HOUSEHOLD", "NOT_GQ", "HOUSEHOLDERS", "PARTNERS", "FAMILY", "FLAGS")
    return rows.mutate(**{name: rows[name].fill_null(0) for name in counted})


def _one(condition: Any) -> Any:
    return condition.cast("int8")


def _flag(h: Any, bit: int) -> Any:
    return (h.FLAGS & bit) != 0


def _zeros(h: Any) -> Any:
    return sum(_one(h[name] == 0) for name in ("HHT", "HHT2", "CPLT", "TEN", "HHSPAN", "HHRACE"))


def _c1(h: Any) -> Any:
    return (h.RTYPE == 2).ifelse(h.NOT_HOUSEHOLD, (h.RTYPE == 4).ifelse(h.NOT_GQ, 0))


def _c4(h: Any) -> Any:
    occupied = (h.RTYPE == 2) & (h.FINAL_POP > 0)
    return _one(_one(occupied) != h.HOUSEHOLDERS)


def _c5(h: Any) -> Any:
    empty = (h.RTYPE == 4) | (h.FINAL_POP == 0)
    return _one(_zeros(h) != empty.ifelse(6, 0))


def _c6(h: Any) -> Any:
    married = h.HHT == 1
    return _one(
        (married != h.HHT2.isin([1, 2]))
        | (married != h.CPLT.isin([1, 2]))
        | (h.HHT2.isin([3, 4]) != h.CPLT.isin([3, 4]))
        | ((h.HHT2 >= 5) & (h.CPLT != 5))
    )


def _c7(h: Any) -> Any:
    return _one(
        ((h.HHT2 == 5) != (h.HHT == 6))
        | ((h.HHT2 == 9) != (h.HHT == 4))
        | (h.HHT2.isin([6, 7]) & (h.HHT != 3))
        | (h.HHT2.isin([10, 11]) & (h.HHT != 2))
        | ((h.HHT2 == 8) & (h.HHT != 7))
        | ((h.HHT2 == 12) & (h.HHT != 5))
        | (h.HHT2.isin([3, 4]) & ~h.HHT.isin([2, 3, 5, 7]))
    )


def _c8(h: Any) -> Any:
    return _one(
        (h.PARTNERS > 1)
        | (_flag(h, SPOUSE_OPPOSITE) != (h.CPLT == 1))
        | (_flag(h, SPOUSE_SAME) != (h.CPLT == 2))
        | (_flag(h, PARTNER_OPPOSITE) != (h.CPLT == 3))
        | (_flag(h, PARTNER_SAME) != (h.CPLT == 4))
    )


def _c9(h: Any) -> Any:
    return _one(_flag(h, OWN_CHILD_UNDER_18) != h.HHT2.isin([1, 3, 6, 10]))


def _c10(h: Any) -> Any:
    return _one((h.HOUSEHOLDERS == 1) & (h.HHRACE.cast("int16") * 4 + h.HHSPAN != h.HEAD))


def _c12(h: Any) -> Any:
    return _one((h.FAMILY >= 2).ifelse(h.FAMILY, 0) != h.NPF)


RULES: tuple[Rule, ...] = (
    Rule(
        "C1",
        "persons",
        "RTYPE, RELSHIP",
        "persons whose record type or relationship does not fit the kind of their unit",
        "in housing units RTYPE 3 with RELSHIP 20 to 36; in group quarters RTYPE 5 with RELSHIP 37 or 38",
        _c1,
    ),
    Rule(
        "C3",
        "units",
        "FINAL_POP",
        "units whose FINAL_POP is not the number of their person rows",
        "FINAL_POP equal to the number of rows of that MAFID in persons",
        lambda h: _one(h.FINAL_POP != h.PERSONS),
    ),
    Rule(
        "C4",
        "units",
        "MAFID",
        "units with a wrong number of householders",
        "one RELSHIP 20 in an occupied housing unit, none in vacant units and group quarters",
        _c4,
    ),
    Rule(
        "C5",
        "units",
        "HHT, HHT2, CPLT, TEN, HHSPAN, HHRACE",
        "units where these columns are not all zero together, or are zero in an occupied housing unit",
        "all zero in vacant units and group quarters, none zero elsewhere",
        _c5,
    ),
    Rule(
        "C6",
        "units",
        "HHT, HHT2, CPLT",
        "units whose household types and couple type contradict each other",
        "HHT 1 with HHT2 01-02 with CPLT 1-2; HHT2 03-04 with CPLT 3-4; HHT2 05-12 with CPLT 5",
        _c6,
    ),
    Rule(
        "C7",
        "units",
        "HHT, HHT2",
        "units whose two household types contradict each other",
        "HHT2 05 with HHT 6, 09 with 4, 06-07 with 3, 10-11 with 2, 08 with 7, 12 with 5, 03-04 with 2, 3, 5 or 7",
        _c7,
    ),
    Rule(
        "C8",
        "units",
        "CPLT",
        "units whose couple type contradicts the spouses and partners among the persons",
        "at most one of RELSHIP 21-24; 21 with CPLT 1, 23 with 2, 22 with 3, 24 with 4",
        _c8,
    ),
    Rule(
        "C9",
        "units",
        "HHT2",
        "units whose HHT2 contradicts the presence of own children under 18",
        "an own child under 18 (RELSHIP 25-27) exactly in HHT2 01, 03, 06 and 10",
        _c9,
    ),
    Rule(
        "C10",
        "units",
        "HHRACE, HHSPAN",
        "units whose race or origin is not the householder's",
        "HHRACE and HHSPAN equal to the householder's CENRACE and CENHISP",
        _c10,
    ),
    Rule(
        "C11",
        "units",
        "HHT, FINAL_POP",
        "one-person household types with another number of persons",
        "FINAL_POP 1 where HHT is 4 or 6",
        lambda h: _one(h.HHT.isin([4, 6]) & (h.FINAL_POP != 1)),
    ),
    Rule(
        "C12",
        "units",
        "NPF",
        "units whose NPF is not the number of persons in the family",
        "the number of persons with RELSHIP 20, 21, 23 or 25-33 when it is 2 or more, otherwise 0",
        _c12,
    ),
)
