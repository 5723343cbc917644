"""What findings say of the records of the DHC: by rule of the kernels, column, rule, problem, what is allowed, and the fix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.population.blocks.dhc.kernels import PERSON_DOUBTS, PERSON_RULES, UNIT_RULES
from censafe.population.blocks.dhc.tables import household_rules, person_recodes, relgq_label
from censafe.population.files.fixed_width import LayoutName, fixed_layout, rule_findings
from censafe.population.findings import Finding, stated
from censafe.population.household_rules import RULES, SEVERAL_HOUSEHOLDERS, Rule

PERSON_COLUMNS: Final[Mapping[str, str]] = {
    "mafid": "MAFID", "sex": "QSEX", "age": "QAGE", "hispanic": "CENHISP", "race": "CENRACE", "relship": "RELSHIP",
    "quarters": "QGQTYP",
}  # fmt: skip
"""Columns of persons by name of their field in the kernels."""

UNIT_COLUMNS: Final[Mapping[str, str]] = {
    "rtype": "RTYPE", "mafid": "MAFID", "pop": "FINAL_POP", "age": "HHLDRAGE", "hispanic": "HHSPAN", "race": "HHRACE",
    "tenure": "TEN", "vacs": "VACS", "quarters": "QGQTYP", "hht": "HHT", "cplt": "CPLT", "multg": "MULTG", "paoc": "PAOC",
    "p18": "P18", "p60": "P60", "p65": "P65", "p75": "P75", "pac": "PAC", "sex": "HHSEX",
}  # fmt: skip
"""Columns of units by name of their field in the kernels; beside them OIDTB, the block."""

_Ints = NDArray[np.int64]


def unit_findings(file: str, bad: _Ints, edits: _Ints) -> list[Finding]:
    """Rules and edit rules that units of a file break."""
    findings = _broken(file, "cef_unit", UNIT_RULES, bad)
    return findings + [
        Finding(file, "HHSEX, HHLDRAGE, P60, P65, P75, household type", f"edit {name}", "stop", rows,
                f"households that break the edit rule {name} ({meaning})", "no such household", "correct the records, or edit them again")
        for (name, meaning), rows in zip(household_rules(), edits.tolist(), strict=True)
        if rows
    ]  # fmt: skip


def person_findings(file: str, bad: _Ints, edits: _Ints) -> list[Finding]:
    """Rules and edit rules that persons of a file break."""
    recodes = person_recodes()
    return _broken(file, "cef_per", PERSON_RULES, bad) + [
        Finding(file, "RELSHIP, QGQTYP, QAGE", f"edit relgq {level}", "stop", rows,
                f"persons ({relgq_label(level)}) of an age that the edit rules forbid",
                f"ages {recodes.youngest[level]} to {recodes.oldest[level]}", "correct the records, or edit them again")
        for level, rows in enumerate(edits.tolist())
        if rows
    ]  # fmt: skip


def _broken(file: str, layout: LayoutName, rules: tuple[str, ...], rows: _Ints) -> list[Finding]:
    return rule_findings(file, fixed_layout(layout).words, dict(zip(rules, rows.tolist(), strict=True)))


_CONTRADICTED: Final = "correct the records; where this only warns, each record is counted as it stands"


def contradiction_findings(
    files: tuple[str, str], rules: Sequence[tuple[Rule, int]], doubts: _Ints | None = None, foreign: int = 0
) -> list[Finding]:
    """Records of persons and units that contradict each other: they warn, but for units with several householders."""
    persons, units = files
    several = next((rows for rule, rows in rules if rule is SEVERAL_HOUSEHOLDERS), 0)
    findings = [
        Finding(
            persons if rule.table == "persons" else units, rule.columns, rule.name, "stop" if rule is SEVERAL_HOUSEHOLDERS else "warn",
            rows - (several if rule.name == "C4" else 0), rule.problem, rule.allowed, _CONTRADICTED,
        )
        for rule, rows in rules
    ]  # fmt: skip
    named = {rule.name: rule for rule in RULES}
    for name, rows in zip(PERSON_DOUBTS, [] if doubts is None else doubts.tolist(), strict=False):
        file = persons if name in ("C1", "alone") else units
        findings += stated(f"contradiction.{name}", file, rows, of=named.get(name))
    return [one for one in findings if one.rows] + stated("contradiction.state", units, foreign)
