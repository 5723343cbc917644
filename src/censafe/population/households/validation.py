"""Validation: every failure of the input in one report, with numbers of rows and never a value.

Schema, domain and cross-file failures stop. The consistency rules warn, and stop under ``strict``. All rules of a household are answered
from one row a unit: the unit, its geo record type, and one summary of its persons.

Source: specification of the PHSafe input, section 8.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from censafe.model.engine import fetch
from censafe.model.observer import unheard
from censafe.population.files.layout import TABLES, TableName, layout
from censafe.population.files.relation import engine_errors
from censafe.population.findings import Finding, Severity, merge_findings, raise_if_fatal, stated
from censafe.population.households.load import FAULTS, Population, count_value

if TYPE_CHECKING:
    import ibis.expr.types as ir


VALIDATION_STEPS: Final = 3
"""Fields and filters; rules between files; numbers of persons."""


@dataclass(frozen=True)
class Check:
    """A finding and, lazily, the rows that caused it (a table with MAFID), when they can be named."""

    finding: Finding
    offenders: ir.Table | None


@dataclass(frozen=True)
class ValidationReport:
    """What validation found in some parts of an input.

    Args:
        regions: states of the filter that have a housing unit in these parts.
        persons: person rows of these parts.
        inhabited: units that say that they hold persons.
    """

    rows: tuple[Finding, ...]
    states: tuple[str, ...]
    regions: frozenset[str]
    seen: frozenset[int]
    parts: int
    labels: Mapping[TableName, str] = field(default_factory=lambda: {name: name for name in TABLES})
    persons: int = 0
    inhabited: int = 0

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings; those about the input as a whole appear once every part was seen."""
        if len(self.seen) < self.parts:
            return self.rows
        findings = list(self.rows)
        absent = [state for state in self.states if state not in self.regions]
        if not self.regions:
            findings += stated("phsafe.no-region", self.labels["geo"])
        elif absent:
            findings += stated("phsafe.absent-state", self.labels["geo"], states=", ".join(absent))
        if self.inhabited and not self.persons:  # the file of persons is not the whole one
            findings += stated("phsafe.no-persons", self.labels["persons"], units=self.labels["units"])
        return tuple(findings)

    @property
    def fatal(self) -> bool:
        """Whether a finding stops the run."""
        return any(finding.severity == "stop" for finding in self.findings)

    def merge(self, other: ValidationReport) -> ValidationReport:
        """The report of both reports' parts together."""
        if self.seen & other.seen or (self.states, self.parts) != (other.states, other.parts):
            raise ValueError("reports to be merged must be of different parts of one input")
        return ValidationReport(
            merge_findings(self.rows + other.rows),
            self.states,
            self.regions | other.regions,
            self.seen | other.seen,
            self.parts,
            self.labels,
            self.persons + other.persons,
            self.inhabited + other.inhabited,
        )

    def require_valid(self) -> None:
        """Raise one DataError with every finding that stops, when there is one."""
        raise_if_fatal(self.findings, "input data")


def validate(
    population: Population,
    *,
    strict: bool = False,
    checks: Literal["full", "off"] = "full",
    examples: Path | None = None,
    done: Callable[[int], None] = unheard,
) -> ValidationReport:
    """Check one part of the input against every rule.

    Args:
        population: the part.
        strict: whether consistency rules stop instead of warn.
        checks: ``off`` reports only unreadable lines, an empty result and a file without persons, which always stop.
        examples: private file (mode 0600) for the MAFIDs of offending rows, at most 1,000 a rule; made
            with the first part, and never written over another file.
        done: takes how many of the :data:`VALIDATION_STEPS` are done.

    Returns:
        The report of this part; merge the reports of all parts before judging.

    Raises:
        StorageError: memory or disk ran out.
    """
    findings = list(population.structure)
    if checks == "full":
        results = _domain_checks(population)
        label, loaded = population.labels["geo"], population.loaded
        filtered = stated("phsafe.state-filter", label, loaded.outside_rows)
        filtered += stated("phsafe.unknown-state", label, loaded.unknown_rows, warn=not strict)
        results += [Check(one, None) for one in filtered]
        done(1)
        results += _relational_checks(population, "stop" if strict else "warn", examples is not None)
        results = [check for check in results if check.finding.rows]
        if examples is not None:
            from censafe.population.examples import write_examples

            write_examples(examples, results, first=population.part == 0)
        findings += [check.finding for check in results]
    done(2)
    units, what = population.units, "numbers of persons"
    return ValidationReport(
        rows=merge_findings(findings),
        states=population.states,
        regions=frozenset(population.regions),
        seen=frozenset({population.part}),
        parts=population.parts,
        labels=population.labels,
        persons=count_value(population.persons.count(), what),
        inhabited=count_value(units.count(where=units.FINAL_POP > 0), what),
    )


def _domain_checks(population: Population) -> list[Check]:
    checks: list[Check] = []
    tables: Mapping[TableName, ir.Table] = {
        "persons": population.persons,
        "units": population.units,
        "geo": population.geo,
    }
    for name in TABLES:
        table, schema = tables[name], layout(name)
        filled = {str(column.typed): table[str(column.typed)].count() for column in schema.stored}
        with engine_errors(population.labels[name]):
            counts = fetch(table.aggregate(**filled, ROWS=table.count())).to_pylist()[0]
            faults = (
                fetch(table.group_by(FAULTS).aggregate(n=table.count())).to_pylist() if schema.checked else []
            )
        for column in schema.columns:
            if column.typed:
                rows, bad = int(counts["ROWS"] - counts[column.typed]), table[column.typed].isnull()
            else:
                bit = 1 << schema.checked.index(column)
                rows = sum(int(one["n"]) for one in faults if one[FAULTS] & bit)
                bad = (table[FAULTS] & bit) != 0
            findings = stated(
                "records.domain", population.labels[name], rows, column=column.name, field=column
            )
            checks += [Check(one, table.filter(bad)) for one in findings]
    return checks


def _relational_checks(population: Population, severity: Severity, keep: bool) -> list[Check]:
    """Cross-file and consistency rules; ``keep`` stores the household rows so that examples are cheap."""
    from censafe.population.household_rules import RULES
    from censafe.population.households.load import with_persons

    with engine_errors("consistency checks"):
        name = population.name_of("with_persons")
        rows = with_persons(population.units, population.persons, population.sizes, name)
        zeros = ("PERSONS", "NOT_HOUSEHOLD", "NOT_GQ", "HOUSEHOLDERS", "PARTNERS", "FAMILY", "FLAGS")
        rows = rows.mutate(**{name: rows[name].fill_null(0) for name in zeros})  # of units without persons
        if keep:
            rows = population.engine.store(population.name_of("households"), rows)
        totals: dict[str, Any] = {rule.name: rule.broken(rows).sum() for rule in RULES}
        totals["ATTACHED"] = rows.PERSONS.sum()
        counts = fetch(rows.aggregate(**totals)).to_pylist()[0]
    checks = _cross_file_checks(population, attached=int(counts["ATTACHED"] or 0), severity=severity)
    fix = (
        "correct the records; when this only warns, records that match no cell of a table are left out of it"
    )
    for rule in RULES:
        if number := int(counts[rule.name] or 0):
            words = rule.columns, rule.name, severity, number, rule.problem, rule.allowed, fix
            one = Finding(population.labels[rule.table], *words)
            checks.append(Check(one, rows.filter(rule.broken(rows) > 0)))
    return checks


def _cross_file_checks(population: Population, *, attached: int, severity: Severity) -> list[Check]:
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
