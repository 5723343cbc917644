"""What is wrong with the records of a SafeTab input, as findings.

Source: specification of SafeTab, section 3.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from censafe.geography import state_codes
from censafe.geography.areas import AreaProblem, Areas
from censafe.geography.regions import PR_REGION_TYPES, PUERTO_RICO, US_REGION_TYPES, RegionType
from censafe.population.detailed.kernels import AFTER_NULL, BLOCK_ABSENT, FIRST_UNKNOWN, TOO_MANY
from censafe.population.detailed.layout import RACES, Field
from censafe.population.detailed.load import LoadedRecords
from censafe.population.detailed.public_data import PopGroupTotals
from censafe.population.findings import Finding, Severity, finding

Checks = Literal["full", "strict", "off"]
UnknownBlocks = Literal["fail", "drop"]
ALWAYS_STOP = frozenset(
    {"duplicate-block", "duplicate-group", "duplicate-mafid", "too-many-codes", "rows", "header", "no-block",
     "no-records", "no-totals", "no-common-area"}
)  # fmt: skip
_RACE_COLUMNS = "QRACE1 to QRACE8"
_BLOCK_COLUMNS = "TABBLKST, TABBLKCOU, TABTRACTCE, TABBLK"


def area_findings(label: str, problems: Iterable[AreaProblem]) -> list[Finding]:
    """Problems of GRF-C as findings that stop."""
    return [
        Finding(
            label,
            problem.column,
            problem.rule,
            "stop",
            problem.rows,
            problem.problem,
            problem.allowed,
            problem.fix,
        )
        for problem in problems
    ]


def fault_columns(fields: Sequence[Field]) -> dict[int, tuple[str, str]]:
    """Column and rule of every fault bit."""
    named = {bit: (field.name, "domain") for bit, field in enumerate(fields)}
    codes = [*(f"QRACE{k}" for k in range(1, RACES + 1)), "QSPAN"]
    named |= {FIRST_UNKNOWN + k: (name, "unknown-code") for k, name in enumerate(codes)}
    return named | {
        AFTER_NULL: (_RACE_COLUMNS, "after-null"),
        TOO_MANY: (_RACE_COLUMNS, "too-many-codes"),
        BLOCK_ABSENT: (_BLOCK_COLUMNS, "missing-block"),
    }


def record_findings(
    label: str,
    fields: Sequence[Field],
    loaded: LoadedRecords,
    most: int,
    missing: UnknownBlocks,
    states: tuple[str, ...],
    *,
    strict: bool = False,
    blocks: str = "GRF-C",
) -> list[Finding]:
    """Rules that some records break, in the order of the columns."""
    findings: list[Finding] = []
    for bit, (column, rule) in fault_columns(fields).items():
        field = fields[bit] if bit < len(fields) else None
        severity: Severity = "warn" if rule == "missing-block" and missing == "drop" else "stop"
        words = _words(rule, field, most, missing, blocks)
        findings += finding(label, column, rule, int(loaded.faults[bit]), *words, severity)
    faulty = int(loaded.faults[[field.use for field in fields].index("state")])
    return findings + _state_findings(label, loaded, faulty, states, strict)


def _words(
    rule: str, field: Field | None, most: int, missing: UnknownBlocks, blocks: str
) -> tuple[str, str, str]:
    if field is not None:
        return (
            "values outside the allowed set, or empty",
            f"{field.allowed} ({field.meaning})",
            "correct the column; codes are written with all their digits",
        )
    return {
        "unknown-code": (
            "codes that the codes file lacks",
            "codes of race-and-ethnicity-codes.txt",
            "correct the codes, or use the parameter files they were coded with",
        ),
        "after-null": (
            "a code after the first Null",
            "codes first, then only Null",
            "move the codes forward",
        ),
        "too-many-codes": (
            f"more race codes than max_race_codes, on which the noise is based, allows: {most}",
            f"at most {most} codes",
            "raise max_race_codes, or correct the records",
        ),
        "missing-block": (
            f"records whose block is not in {blocks}" + (" are left out" if missing == "drop" else ""),
            f"blocks of {blocks}",
            "use the GRF-C of the records; missing_blocks = drop leaves them out, as the Bureau's program does",
        ),
    }[rule]


def _state_findings(
    label: str, loaded: LoadedRecords, faulty: int, states: tuple[str, ...], strict: bool
) -> list[Finding]:
    known = np.zeros(100, bool)
    known[[int(code) for code in state_codes()]] = True
    counts = loaded.outside.copy()
    counts[0] -= faulty  # a faulty state is read as 0
    words = (f"any; kept are {', '.join(states)}", "none needed if intended; otherwise correct the state filter or TABBLKST")  # fmt: skip
    return [
        *finding(label, "TABBLKST", "state-filter", int(counts[known].sum()), "rows of states outside the filter are left out",
                 *words, "warn"),
        *finding(label, "TABBLKST", "unknown-state", int(counts[~known].sum()),
                 "rows whose TABBLKST is not a state code are left out", *words, "stop" if strict else "warn"),
    ]  # fmt: skip


def mismatch_findings(
    label: str, areas: Areas, loaded: LoadedRecords, totals: PopGroupTotals | None, totals_label: str
) -> list[Finding]:
    """Findings when a run has no records, no totals, or records and totals of different areas."""
    findings = []
    seen = loaded.seen
    runs = [("US", US_REGION_TYPES)] if any(state != PUERTO_RICO for state in areas.states) else []
    runs += [("PR", PR_REGION_TYPES)] if PUERTO_RICO in areas.states else []
    for run, kinds in runs:
        if not (seen & (areas.ordinals(kinds[0].name) >= 0)).any():
            findings.append(
                Finding(label, "TABBLKST", "no-records", "stop", 0, f"no record is left for the {run} run",
                        "at least one record in the states of every run",
                        "correct run_us, run_pr and the state filter: are these files of the US or of Puerto Rico?")
            )  # fmt: skip
        elif totals is not None:
            problem = _totals_problem(areas, loaded, totals, kinds)
            if problem == "no-totals":
                findings.append(
                    Finding(totals_label, "REGION_TYPE", "no-totals", "stop", 0,
                            f"no total of a population group is left for the {run} run", "totals of regions of every run",
                            "use the T1 of a SafeTab-P run with the same run_us, run_pr and states")
                )  # fmt: skip
            elif problem:
                findings.append(no_group_finding(label, run))
    return findings


def _totals_problem(
    areas: Areas, loaded: LoadedRecords, totals: PopGroupTotals, kinds: tuple[RegionType, ...]
) -> str:
    of_run = [totals.of_type(kind.name).region for kind in kinds]
    if not any(len(regions) for regions in of_run):
        return "no-totals"
    for kind, regions in zip(kinds, of_run, strict=True):
        with_totals = np.zeros(len(areas.numbers(kind.name)) + 1, bool)
        with_totals[regions] = True
        with_totals[-1] = False
        if with_totals[areas.ordinals(kind.name)[loaded.seen]].any():
            return ""
    return "no-common-area"


def no_group_finding(label: str, run: str) -> Finding:
    """The finding that no household of a run falls in any population group of T1."""
    return Finding(
        label, "", "no-common-area", "stop", 0,
        f"no household of the {run} run falls in any population group of T1",
        "households and T1 of the same areas", "use the T1 of the same states: is one of them of Puerto Rico?",
    )  # fmt: skip


def without_checks(findings: Iterable[Finding], label: str, blocks: str, unusable: int) -> list[Finding]:
    """What is reported with the checks off: what always stops, and how many records are left out."""
    remaining = [one for one in findings if one.rule in ALWAYS_STOP or one.file == blocks]
    return remaining + finding(label, "", "unusable", unusable, "records that cannot be counted are left out",
                               "records that pass the checks", "run validate to see why", "warn")  # fmt: skip
