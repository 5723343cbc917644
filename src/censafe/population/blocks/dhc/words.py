"""What findings say of the records of the DHC: by rule of the kernels, column, rule, problem, what is allowed, and the fix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.population.blocks.dhc.kernels import PERSON_DOUBTS, PERSON_RULES, UNIT_RULES
from censafe.population.blocks.dhc.tables import household_rules, person_recodes, relgq_label
from censafe.population.files.fixed_width import field_words, fixed_layout
from censafe.population.findings import Finding
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
_Words = tuple[str, str, str, str]
PERSON_WORDS: Final[dict[str, _Words]] = field_words(fixed_layout("cef_per")) | {
    "unit": ("MAFID", "unmatched", "persons whose unit is not in the unit file", "a MAFID of the unit file"),
    "vacant": ("MAFID", "vacant", "persons in vacant units", "no persons where VACS is 1 to 7"),
    "other-quarters": ("QGQTYP", "other-quarters", "persons in another kind of quarters than their unit is", "the kind of the unit"),
    "inside": ("RELSHIP, QGQTYP", "quarters", "persons of group quarters without a kind, or of housing units with one",
               "RELSHIP 37 or 38 with a code of QGQTYP, RELSHIP 20 to 36 with blank or 000"),
}  # fmt: skip
UNIT_WORDS: Final[dict[str, _Words]] = field_words(fixed_layout("cef_unit")) | {
    "OIDTB": ("OIDTB", "unmatched", "units whose block is not in GRF-C", "an OIDTABBLK of GRF-C"),
    "quarters": ("RTYPE, QGQTYP", "quarters", "housing units with a kind of group quarters, or group quarters without one",
                 "RTYPE 2 with blank or 000, RTYPE 4 with a code"),
    "vacant-quarters": ("RTYPE, VACS", "vacant-quarters", "group quarters that are vacant", "VACS 0 with RTYPE 4"),
    "vacant-persons": ("VACS, FINAL_POP", "vacant", "vacant housing units with persons", "FINAL_POP 0 with VACS 1 to 7"),
    "no-persons": ("VACS, FINAL_POP", "no-persons", "facilities without persons, or housing units without persons that are not vacant",
                   "FINAL_POP 1 or more with VACS 0"),
    "type": ("FINAL_POP, CPLT, PAOC, PAC, MULTG, HHT, P18", "household-type", "households of a type that cannot be",
             "one of the 522 household types of the 2020 DHC"),
}  # fmt: skip


def _findings(file: str, words: Mapping[str, _Words], rules: tuple[str, ...], rows: _Ints) -> list[Finding]:
    return [
        Finding(file, *words[name][:2], "stop", count, *words[name][2:], "correct the file")
        for name, count in zip(rules, rows.tolist(), strict=True)
        if count
    ]


def unit_findings(file: str, bad: _Ints, edits: _Ints) -> list[Finding]:
    """Rules and edit rules that units of a file break."""
    findings = _findings(file, UNIT_WORDS, UNIT_RULES, bad)
    return findings + [
        Finding(file, "HHSEX, HHLDRAGE, P60, P65, P75, household type", f"edit {name}", "stop", rows,
                f"households that break the edit rule {name} ({meaning})", "no such household", "correct the records, or edit them again")
        for (name, meaning), rows in zip(household_rules(), edits.tolist(), strict=True)
        if rows
    ]  # fmt: skip


def person_findings(file: str, bad: _Ints, edits: _Ints) -> list[Finding]:
    """Rules and edit rules that persons of a file break."""
    recodes = person_recodes()
    return _findings(file, PERSON_WORDS, PERSON_RULES, bad) + [
        Finding(file, "RELSHIP, QGQTYP, QAGE", f"edit relgq {level}", "stop", rows,
                f"persons ({relgq_label(level)}) of an age that the edit rules forbid",
                f"ages {recodes.youngest[level]} to {recodes.oldest[level]}", "correct the records, or edit them again")
        for level, rows in enumerate(edits.tolist())
        if rows
    ]  # fmt: skip


_RULE_WORDS: Final = {rule.name: rule for rule in RULES}
_DOUBT_WORDS: Final[Mapping[str, _Words]] = {
    "RTYPE": ("RTYPE", "C1", _RULE_WORDS["C1"].problem, "RTYPE 3 in housing units, 5 in group quarters"),
    "LIVE_ALONE": ("LIVE_ALONE", "alone", "persons whose LIVE_ALONE contradicts the number of persons of their unit",
                   "1 in a housing unit of one person, 2 in one of several, 0 in group quarters"),
    "HHLDRAGE": ("HHLDRAGE", "householder-age", "householders whose age is not HHLDRAGE of their unit", "the QAGE of the householder"),
    "HHSEX": ("HHSEX", "householder-sex", "householders whose sex is not HHSEX of their unit", "the QSEX of the householder"),
    "C10": ("HHRACE, HHSPAN", "C10", "householders whose race or origin is not that of their unit", _RULE_WORDS["C10"].allowed),
}  # fmt: skip
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
    findings += [
        Finding(persons if name in ("RTYPE", "LIVE_ALONE") else units, column, rule, "warn", rows, problem, allowed, _CONTRADICTED)
        for name, rows in zip(PERSON_DOUBTS, [] if doubts is None else doubts.tolist(), strict=False)
        for column, rule, problem, allowed in (_DOUBT_WORDS[name],)
    ]  # fmt: skip
    findings.append(
        Finding(
            units, "BCUSTATEFP, OIDTB", "state", "warn", foreign, "units whose state is not that of their block",
            "BCUSTATEFP equal to TABBLKST of the block OIDTB", "correct the records; the block decides where a unit is counted",
        )
    )  # fmt: skip
    return [one for one in findings if one.rows]
