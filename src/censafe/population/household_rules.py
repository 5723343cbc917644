"""Rules of households: what the record of a unit and the records of its persons must say together.

A rule is an expression over a unit and a summary of its persons. The same expressions are evaluated by the relational engine for PHSafe
(Ibis) and on arrays for the DHC (:class:`Column`), so that there is one list of rules.

Source: specification of the PHSafe input, section 8.2; layout of the 2020 Census Edited File.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from censafe.population.files.layout import TableName

# Bits of what the persons of a household are to its householder.
SPOUSE_OPPOSITE, PARTNER_OPPOSITE, SPOUSE_SAME, PARTNER_SAME, OWN_CHILD_UNDER_18 = 1, 2, 4, 8, 16
CHILD, CHILD_IN_LAW, GRANDCHILD, PARENT = 512, 1024, 2048, 4096  # of the DHC; a parent also of the spouse


@dataclass(frozen=True)
class Rule:
    """One consistency rule.

    Args:
        broken: how many rows of a household break the rule (0 or 1, or persons for C1), as an expression
            over a row of :func:`households`.
    """

    name: str
    table: TableName
    columns: str
    problem: str
    allowed: str
    broken: Callable[[Any], Any]


def _one(condition: Any) -> Any:
    return condition.cast("int8")


def _flag(h: Any, bit: int) -> Any:
    return (h.FLAGS & bit) != 0


def _c5(h: Any) -> Any:
    zeros = sum(_one(h[name] == 0) for name in ("HHT", "HHT2", "CPLT", "TEN", "HHSPAN", "HHRACE"))
    empty = (h.RTYPE == 4) | (h.FINAL_POP == 0)
    return _one(zeros != empty.ifelse(6, 0))


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


RULES: tuple[Rule, ...] = (
    Rule(
        "C1",
        "persons",
        "RTYPE, RELSHIP",
        "persons whose record type or relationship does not fit the kind of their unit",
        "in housing units RTYPE 3 with RELSHIP 20 to 36; in group quarters RTYPE 5 with RELSHIP 37 or 38",
        lambda h: (h.RTYPE == 2).ifelse(h.NOT_HOUSEHOLD, (h.RTYPE == 4).ifelse(h.NOT_GQ, 0)),
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
        lambda h: _one(_one((h.RTYPE == 2) & (h.FINAL_POP > 0)) != h.HOUSEHOLDERS),
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
        lambda h: _one(_flag(h, OWN_CHILD_UNDER_18) != h.HHT2.isin([1, 3, 6, 10])),
    ),
    Rule(
        "C10",
        "units",
        "HHRACE, HHSPAN",
        "units whose race or origin is not the householder's",
        "HHRACE and HHSPAN equal to the householder's CENRACE and CENHISP",
        lambda h: _one((h.HOUSEHOLDERS == 1) & (h.HHRACE.cast("int16") * 4 + h.HHSPAN != h.HEAD)),
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
        lambda h: _one((h.FAMILY >= 2).ifelse(h.FAMILY, 0) != h.NPF),
    ),
)


class Column(np.ndarray[Any, Any]):
    """An array with the operations of an engine's column that rules use."""

    def cast(self, kind: str) -> Any:
        """The same values of another type."""
        return self.astype(kind)

    def isin(self, values: list[int]) -> Any:
        """Which values are in a list."""
        return np.isin(self, values).view(Column)

    def ifelse(self, then: Any, other: Any) -> Any:
        """Elements of one array where this one is true, of the other elsewhere."""
        return np.where(self, then, other).view(Column)


SEVERAL_HOUSEHOLDERS: Final = Rule(
    "several-householders",
    "persons",
    "RELSHIP",
    "units with two householders or more",
    "one RELSHIP 20 in a unit, since the loss that is stated for one person counts on it",
    lambda h: _one(h.HOUSEHOLDERS > 1),
)
"""Always stops: one person who leaves may then change the counts of two persons alike (`sensitivity.proof.md`)."""


def _differs(*names: str) -> Callable[[Any], Any]:
    """Units whose column of one of the names is not that of its persons, MEMBERS_name."""

    def broken(h: Any) -> Any:
        wrong = h[names[0]] != h[f"MEMBERS_{names[0]}"]
        for name in names[1:]:
            wrong = wrong | (h[name] != h[f"MEMBERS_{name}"])
        return _one(wrong)

    return broken


def _upart(h: Any) -> Any:
    """One way: UPART 1 to 4 is a couple by the sex of both, and every unmarried couple has one of them."""
    same, opposite, male = h.CPLT == 4, h.CPLT == 3, h.HHSEX == 1
    named = ((h.UPART == 1) & same & male) | ((h.UPART == 3) & same & ~male)
    named = named | ((h.UPART == 2) & opposite & male) | ((h.UPART == 4) & opposite & ~male)
    return _one((h.UPART.isin([1, 2, 3, 4]) | same | opposite) & ~named)


def _multg(h: Any) -> Any:
    """Two generations beside the householder's are three in any case where one of them is a child; one or none never are."""
    children, grandchildren, parents = _flag(h, CHILD), _flag(h, GRANDCHILD), _flag(h, PARENT)
    certain = children & (grandchildren | parents)
    generations = _one(children | _flag(h, CHILD_IN_LAW)) + _one(grandchildren) + _one(parents)
    return _one((certain & (h.MULTG != 2)) | ((h.MULTG == 2) & (generations < 2)))


DHC_EMPTY_UNITS: Final = Rule(
    "C5",
    "units",
    "HHT, HHT2, CPLT, TEN, HHSPAN, HHRACE, UPART, MULTG, PAOC, PAC, HHSEX",
    "vacant units and group quarters with fields of a household",
    "0 or blank in vacant units and group quarters",
    lambda h: _one(h.FIELDS != 0),
)
"""In occupied housing units a field that is 0 always stops."""


DHC_RULES: Final = (
    *(rule for rule in RULES if rule.name in ("C4", "C6", "C7", "C8", "C9", "C11")),
    Rule(
        "family",
        "units",
        "HHT",
        "units whose household type contradicts the presence of relatives",
        "HHT 1 to 3 exactly where a person with RELSHIP 21, 23 or 25 to 33 lives with the householder",
        lambda h: _one((h.HHT <= 3) != (h.FAMILY >= 2)),
    ),
    Rule(
        "type-sex",
        "units",
        "HHT, HHSEX",
        "units whose household type is that of a householder of the other sex",
        "HHSEX 1 with HHT 2, 4 or 5; HHSEX 2 with HHT 3, 6 or 7",
        lambda h: _one((h.HHT.isin([2, 4, 5]) & (h.HHSEX != 1)) | (h.HHT.isin([3, 6, 7]) & (h.HHSEX != 2))),
    ),
    Rule(
        "ages",
        "units",
        "P18, P60, P65, P75",
        "units whose numbers of persons by age are not those of their persons",
        "the numbers of persons under 18 and from 60, 65 and 75 years on",
        _differs("P18", "P60", "P65", "P75"),
    ),
    Rule(
        "children",
        "units",
        "PAOC, PAC",
        "units whose classes of children are not those of their persons",
        "PAOC of RELSHIP 25 to 27, PAC of all but householder, spouse and partner: 1 under 6 only, 2 aged 6 to 17 only, 3 both, 4 none",
        _differs("PAOC", "PAC"),
    ),
    Rule(
        "UPART",
        "units",
        "UPART, CPLT, HHSEX",
        "units whose unmarried couple contradicts couple type or sex of the householder",
        "UPART 1 with CPLT 4 and HHSEX 1, 3 with CPLT 4 and HHSEX 2, 2 with CPLT 3 and HHSEX 1, 4 with CPLT 3 and HHSEX 2, 0 or 5 with other couple types",
        _upart,
    ),
    Rule(
        "MULTG",
        "units",
        "MULTG",
        "units whose generations are not those of their persons",
        "MULTG 2 where a child (RELSHIP 25 to 27) lives with a grandchild (30) or a parent (29, 31) of the householder, and nowhere but where two of "
        "children (also 32), grandchildren and parents do",
        _multg,
    ),
)
"""Rules of occupied housing units of the DHC, in whose records CPLT 0 counts as 5, as in its household types."""
