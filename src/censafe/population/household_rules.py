"""Rules of households: what the record of a unit and the records of its persons must say together.

The rules stand in household_rules.toml. The same expressions are evaluated by the relational engine for PHSafe (Ibis) and on arrays for the DHC
(:class:`Column`), so that there is one list of rules.

Source: specification of the PHSafe input, section 8.2; layout of the 2020 Census Edited File.
"""

from __future__ import annotations

import operator
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

import numpy as np

from censafe.population.files.layout import TableName

# Bits of what the persons of a household are to its householder.
SPOUSE_OPPOSITE, PARTNER_OPPOSITE, SPOUSE_SAME, PARTNER_SAME, OWN_CHILD_UNDER_18 = 1, 2, 4, 8, 16
CHILD, CHILD_IN_LAW, GRANDCHILD, PARENT = 512, 1024, 2048, 4096  # of the DHC; a parent also of the spouse
_FLAGS: Final[Mapping[str, int]] = {
    "SPOUSE_OPPOSITE": SPOUSE_OPPOSITE, "PARTNER_OPPOSITE": PARTNER_OPPOSITE, "SPOUSE_SAME": SPOUSE_SAME, "PARTNER_SAME": PARTNER_SAME,
    "OWN_CHILD_UNDER_18": OWN_CHILD_UNDER_18, "CHILD": CHILD, "CHILD_IN_LAW": CHILD_IN_LAW, "GRANDCHILD": GRANDCHILD, "PARENT": PARENT,
}  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """One consistency rule.

    Args:
        sql: number of rows that break it, or a condition (household_rules.toml).
    """

    name: str
    table: TableName
    columns: str
    problem: str
    allowed: str
    sql: str

    def broken(self, rows: Any) -> Any:
        """How many rows of each household break the rule: 0 or 1, or persons for C1.

        Args:
            rows: households by name of their columns, a table of an engine or arrays.
        """
        return _value(_parsed(self.sql), rows).cast("int64")


@cache
def _parsed(sql: str) -> Any:
    from sqlglot import parse_one

    return parse_one(sql)


_OPERATORS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "eq": operator.eq, "neq": operator.ne, "lt": operator.lt, "lte": operator.le, "gt": operator.gt, "gte": operator.ge,
    "and": operator.and_, "or": operator.or_, "add": operator.add, "mul": operator.mul,
}  # fmt: skip
_TYPES: Final = {"TINYINT": "int8", "SMALLINT": "int16"}


def _value(node: Any, rows: Any) -> Any:
    """The value of a part of an expression."""
    match node.key:
        case "column":
            return (rows["FLAGS"] & _FLAGS[node.name]) != 0 if node.name in _FLAGS else rows[node.name]
        case "literal":
            return int(node.name)
        case "paren":
            return _value(node.this, rows)
        case "not":
            return ~_value(node.this, rows)
        case "cast":
            return _value(node.this, rows).cast(_TYPES[node.to.sql()])
        case "in":
            return _value(node.this, rows).isin([int(one.name) for one in node.expressions])
        case "case":
            value = _value(node.args["default"], rows)
            for branch in reversed(node.args["ifs"]):
                value = _value(branch.this, rows).ifelse(_value(branch.args["true"], rows), value)
            return value
        case kind:
            return _OPERATORS[kind](_value(node.left, rows), _value(node.right, rows))


class Column(np.ndarray[Any, Any]):
    """An array with the operations of an engine's column that rules of the DHC use."""

    def cast(self, kind: str) -> Any:
        """The same values of another type."""
        return self.astype(kind)

    def isin(self, values: list[int]) -> Any:
        """Which values are in a list."""
        return np.isin(self, values).view(Column)


def _rules(product: str) -> tuple[Rule, ...]:
    text = files("censafe.population").joinpath("household_rules.toml").read_text(encoding="utf-8")
    return tuple(
        Rule(*(entry[name] for name in ("name", "table", "columns", "problem", "allowed", "broken")))
        for entry in tomllib.loads(text)["rules"]
        if product in entry["used_by"]
    )


RULES: Final = _rules("phsafe")
(SEVERAL_HOUSEHOLDERS,) = _rules("several")
"""Always stops: one person who leaves may then change the counts of two persons alike (`sensitivity.proof.md`)."""
(DHC_EMPTY_UNITS,) = _rules("empty")
"""In occupied housing units a field that is 0 always stops."""
DHC_RULES: Final = _rules("dhc")
"""Rules of occupied housing units of the DHC, in whose records CPLT 0 counts as 5, as in its household types."""
