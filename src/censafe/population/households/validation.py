"""Validation: every failure of the input in one report, with numbers of rows and never a value.

Schema, domain and cross-file failures stop. The consistency rules warn, and stop under ``strict``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from censafe.model.fetching import fetch
from censafe.model.observer import unheard
from censafe.population.files.layout import TABLES, TableName, layout
from censafe.population.files.relation import engine_errors
from censafe.population.findings import Finding, Severity, merge_findings, raise_if_fatal, stated
from censafe.population.households.consistency import Check, cross_file_checks, households
from censafe.population.households.load import FAULTS, count_value

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from censafe.population.households.load import Population


VALIDATION_STEPS: Final = 3
"""Fields and filters; rules between files; numbers of persons."""


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
        results += [Check(one, None) for one in _filter_findings(population, strict)]
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
        faults = _fault_counts(population) if schema.checked else {}
        for column in schema.columns:
            filled_rows = (
                counts[column.typed] if column.typed else counts["ROWS"] - faults.get(column.name, 0)
            )
            rows = int(counts["ROWS"] - filled_rows)
            bit = None if column.typed else 1 << schema.checked.index(column)
            bad = table[str(column.typed)].isnull() if bit is None else (table[FAULTS] & bit) != 0
            findings = stated(
                "records.domain", population.labels[name], rows, column=column.name, field=column
            )
            checks += [Check(one, table.filter(bad)) for one in findings]
    return checks


def _fault_counts(population: Population) -> dict[str, int]:
    geo = population.geo
    with engine_errors(population.labels["geo"]):
        rows = fetch(geo.group_by(FAULTS).aggregate(n=geo.count())).to_pylist()
    return {
        column.name: sum(int(row["n"]) for row in rows if row[FAULTS] & (1 << bit))
        for bit, column in enumerate(layout("geo").checked)
    }


def _filter_findings(population: Population, strict: bool) -> list[Finding]:
    label, loaded = population.labels["geo"], population.loaded
    return [
        *stated("phsafe.state-filter", label, loaded.outside_rows),
        *stated("phsafe.unknown-state", label, loaded.unknown_rows, warn=not strict),
    ]


def _relational_checks(population: Population, severity: Severity, keep: bool) -> list[Check]:
    """Cross-file and consistency rules; ``keep`` stores the household rows so that examples are cheap."""
    from censafe.population.household_rules import RULES
    from censafe.population.households.summaries import with_persons

    with engine_errors("consistency checks"):
        name = population.name_of("with_persons")
        rows = households(with_persons(population.units, population.persons, population.sizes, name))
        if keep:
            rows = population.engine.store(population.name_of("households"), rows)
        totals: dict[str, Any] = {rule.name: rule.broken(rows).sum() for rule in RULES}
        totals["ATTACHED"] = rows.PERSONS.sum()
        counts = fetch(rows.aggregate(**totals)).to_pylist()[0]
    checks = cross_file_checks(population, attached=int(counts["ATTACHED"] or 0), severity=severity)
    fix = (
        "correct the records; when this only warns, records that match no cell of a table are left out of it"
    )
    for rule in RULES:
        if number := int(counts[rule.name] or 0):
            words = rule.columns, rule.name, severity, number, rule.problem, rule.allowed, fix
            one = Finding(population.labels[rule.table], *words)
            checks.append(Check(one, rows.filter(rule.broken(rows) > 0)))
    return checks
