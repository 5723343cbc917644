"""What is wrong with the records of a SafeTab input, as findings.

Source: specification of SafeTab, section 3.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from censafe.geography import state_codes
from censafe.geography.grfc import AreaProblem, Areas
from censafe.geography.regions import PR_REGION_TYPES, PUERTO_RICO, US_REGION_TYPES, RegionType
from censafe.population.detailed.kernels import AFTER_NULL, BLOCK_ABSENT, FIRST_UNKNOWN, RACES, TOO_MANY
from censafe.population.detailed.load import LoadedRecords
from censafe.population.detailed.public_data import PopGroupTotals
from censafe.population.files.layout import Column
from censafe.population.findings import Finding, stated

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
        Finding(label, one.column, one.rule, "stop", one.rows, one.problem, one.allowed, one.fix)
        for one in problems
    ]


def fault_columns(fields: Sequence[Column]) -> dict[int, tuple[str, str]]:
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
    fields: Sequence[Column],
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
    left_out = " are left out" if missing == "drop" else ""
    for bit, (column, rule) in fault_columns(fields).items():
        findings += stated(
            "records.domain" if rule == "domain" else f"safetab.{rule}", label, int(loaded.faults[bit]), column=column,
            warn=rule == "missing-block" and missing == "drop", most=most, blocks=blocks, left_out=left_out,
            field=fields[bit] if rule == "domain" else None,
        )  # fmt: skip
    faulty = int(loaded.faults[[field.typed for field in fields].index("state")])
    return findings + _state_findings(label, loaded, faulty, states, strict)


def _state_findings(
    label: str, loaded: LoadedRecords, faulty: int, states: tuple[str, ...], strict: bool
) -> list[Finding]:
    known = np.zeros(100, bool)
    known[[int(code) for code in state_codes()]] = True
    counts = loaded.outside.copy()
    counts[0] -= faulty  # a faulty state is read as 0
    known_rows, unknown_rows, listed = int(counts[known].sum()), int(counts[~known].sum()), ", ".join(states)
    return [
        *stated("safetab.state-filter", label, known_rows, states=listed),
        *stated("safetab.unknown-state", label, unknown_rows, warn=not strict, states=listed),
    ]


def mismatch_findings(
    label: str, areas: Areas, loaded: LoadedRecords, totals: PopGroupTotals | None, totals_label: str
) -> list[Finding]:
    """Findings when a run has no records, no totals, or records and totals of different areas."""
    findings: list[Finding] = []
    seen = loaded.seen
    runs = [("US", US_REGION_TYPES)] if any(state != PUERTO_RICO for state in areas.states) else []
    runs += [("PR", PR_REGION_TYPES)] if PUERTO_RICO in areas.states else []
    for run, kinds in runs:
        if not (seen & (areas.ordinals(kinds[0].name) >= 0)).any():
            findings += stated("safetab.no-records", label, run=run)
        elif totals is not None and (problem := _totals_problem(areas, loaded, totals, kinds)):
            file = totals_label if problem == "no-totals" else label
            findings += stated(f"safetab.{problem}", file, run=run)
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


def without_checks(findings: Iterable[Finding], label: str, blocks: str, unusable: int) -> list[Finding]:
    """What is reported with the checks off: what always stops, and how many records are left out."""
    remaining = [one for one in findings if one.rule in ALWAYS_STOP or one.file == blocks]
    return remaining + stated("safetab.unusable", label, unusable)
