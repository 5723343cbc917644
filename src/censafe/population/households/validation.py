"""Validation: every failure of the input in one report, with numbers of rows and never a value.

Schema, domain and cross-file failures stop. The consistency rules warn, and stop under ``strict``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from censafe.model.fetching import fetch
from censafe.model.observer import unheard
from censafe.population.files.layout import TABLES, TableName, layout
from censafe.population.files.relation import engine_errors
from censafe.population.findings import Finding, Severity, merge_findings, raise_if_fatal
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
        return self.rows + self._region_findings() + self._person_findings()

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

    def _person_findings(self) -> tuple[Finding, ...]:
        """No person at all, though units hold some: the file of persons is not the whole one."""
        if self.persons or not self.inhabited:
            return ()
        return (
            Finding(
                self.labels["persons"],
                "",
                "no-persons",
                "stop",
                0,
                f"there is no person at all, and units in {self.labels['units']} have a FINAL_POP above 0",
                "the persons of all units",
                "check that the file was written completely, and copy it again",
            ),
        )

    def _region_findings(self) -> tuple[Finding, ...]:
        absent = [state for state in self.states if state not in self.regions]
        if not self.regions:
            return (
                Finding(
                    self.labels["geo"],
                    "TABBLKST",
                    "no-region",
                    "stop",
                    0,
                    "no region is left after filtering: no housing unit lies in a state of the filter",
                    "at least one row with RTYPE 2 and TABBLKST in the state filter",
                    "correct state_filter, or check that the right files were given",
                ),
            )
        if not absent:
            return ()
        names = ", ".join(absent)
        return (
            Finding(
                self.labels["geo"],
                "TABBLKST",
                "absent-state",
                "warn",
                0,
                f"states of the filter without any housing unit: {names}",
                "a housing unit in every state of the filter",
                "correct state_filter, or add the files of these states",
            ),
        )


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
        results = [*_domain_checks(population), *_filter_checks(population, strict)]
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
            if not rows:
                continue
            bit = None if column.typed else 1 << schema.checked.index(column)
            bad = table[str(column.typed)].isnull() if bit is None else (table[FAULTS] & bit) != 0
            finding = Finding(
                file=population.labels[name],
                column=column.name,
                rule="domain",
                severity="stop",
                rows=rows,
                problem="values outside the allowed set, or empty",
                allowed=f"{column.allowed} ({column.meaning})",
                fix="correct the column; codes are written with all their digits",
            )
            checks.append(Check(finding, table.filter(bad)))
    return checks


def _fault_counts(population: Population) -> dict[str, int]:
    geo = population.geo
    with engine_errors(population.labels["geo"]):
        rows = fetch(geo.group_by(FAULTS).aggregate(n=geo.count())).to_pylist()
    return {
        column.name: sum(int(row["n"]) for row in rows if row[FAULTS] & (1 << bit))
        for bit, column in enumerate(layout("geo").checked)
    }


def _filter_checks(population: Population, strict: bool) -> Iterable[Check]:
    fix = "none needed if intended; otherwise correct state_filter or TABBLKST"
    outside = Finding(
        population.labels["geo"],
        "TABBLKST",
        "state-filter",
        "warn",
        population.loaded.outside_rows,
        "rows of states outside the filter are left out, with their units and persons",
        "any",
        fix,
    )
    unknown = Finding(
        population.labels["geo"],
        "TABBLKST",
        "unknown-state",
        "stop" if strict else "warn",
        population.loaded.unknown_rows,
        "rows whose TABBLKST is not a state code are left out, with their units and persons",
        "two-digit state codes",
        "correct TABBLKST",
    )
    return (Check(outside, None), Check(unknown, None))


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
    for rule in RULES:
        if not counts[rule.name]:
            continue
        finding = Finding(
            file=population.labels[rule.table],
            column=rule.columns,
            rule=rule.name,
            severity=severity,
            rows=int(counts[rule.name]),
            problem=rule.problem,
            allowed=rule.allowed,
            fix="correct the records; when this only warns, records that match no cell of a table are left out of it",
        )
        checks.append(Check(finding, rows.filter(rule.broken(rows) > 0)))
    return checks
