"""Expressions over the columns of a row: one scalar expression of the embedded engine, checked on its own parse tree."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import duckdb

from censafe.population.records.layout import Expression

_CLASSES: Final = frozenset(
    {"FUNCTION", "COLUMN_REF", "CONSTANT", "COMPARISON", "CONJUNCTION", "OPERATOR", "CASE", "CAST", "BETWEEN", "COLLATE"}
)  # fmt: skip
_WORDS: Final = {
    "SUBQUERY": "a subquery",
    "WINDOW": "a window function, which joins rows",
    "STAR": "*",
    "LAMBDA": "a lambda",
    "PARAMETER": "a parameter",
    "POSITIONAL_REFERENCE": "a column by its position",
}
_REFUSED: Final = frozenset({"current_setting", "getvariable", "in_search_path", "getenv"})
"""Functions of the session, not of the row."""
_MACROS: Final = frozenset({"nullif", "ifnull"})
_SCHEMAS: Final = ("", "main", "pg_catalog")
_NODE: Final = frozenset({"type", "modifiers", "cte_map", "select_list", "sample", "qualify"})


def check_expression(text: str) -> Expression:
    """The expression with the columns that it reads; ValueError with what is not allowed in it.

    Example:
        >>> check_expression("upper(sex) || '-' || left(birth_date, 4)").columns
        ('sex', 'birth_date')
        >>> check_expression("(SELECT 1)")
        Traceback (most recent call last):
        ValueError: a subquery
    """
    tree = _tree(text)
    columns: dict[str, None] = {}
    for node in _nodes(tree):
        kind = node["class"]
        if kind not in _CLASSES:
            raise ValueError(_WORDS.get(kind, f"an expression of kind {kind.lower()}"))
        if kind == "COLUMN_REF":
            names = node["column_names"]
            if len(names) != 1:
                raise ValueError(f"the name {'.'.join(names)}; name the column alone")
            columns[names[0]] = None
        if kind == "FUNCTION":
            _check_function(node)
    if not columns:
        raise ValueError("no column")
    return Expression(text, tuple(columns))


def _tree(text: str) -> Mapping[str, Any]:
    """The one expression of a select list without anything else."""
    with _engine() as con:
        row = con.execute("SELECT json_serialize_sql(?::VARCHAR)", [f"SELECT (\n{text}\n)"]).fetchone()
    parsed: Mapping[str, Any] = json.loads(row[0]) if row else {"error": True}
    if parsed["error"] or len(parsed["statements"]) != 1:
        raise ValueError("what is not one expression")
    node = parsed["statements"][0]["node"]
    plain = node["type"] == "SELECT_NODE" and len(node["select_list"]) == 1 and not node["cte_map"]["map"]
    used = {name for name, value in node.items() if name not in _NODE and value not in (None, [], "", {})}
    empty = node.get("from_table", {}).get("type") == "EMPTY"
    used -= {"from_table", "group_expressions", "group_sets", "aggregate_handling", "query_location"}
    if not plain or not empty or node["modifiers"] or used or node.get("group_expressions"):
        raise ValueError("what is not one expression")
    expression: Mapping[str, Any] = node["select_list"][0]
    return expression


def _nodes(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every expression of a tree; values of constants and types of casts have none."""
    if isinstance(value, list):
        for part in value:
            yield from _nodes(part)
    elif isinstance(value, dict):
        if "class" in value:
            yield value
            if value["class"] == "CONSTANT":
                return
        for name, part in value.items():
            if name != "cast_type":
                yield from _nodes(part)


def _check_function(node: Mapping[str, Any]) -> None:
    name = str(node["function_name"]).lower()
    if node["schema"] not in _SCHEMAS or node["catalog"]:
        raise ValueError(f"a function of another schema, {name}")
    if name not in scalar_functions():
        raise ValueError(f"{name}, which is not a function of one row")
    if node.get("filter") or node.get("distinct") or node["order_bys"].get("orders"):
        raise ValueError(f"{name} over several rows")


@cache
def scalar_functions() -> frozenset[str]:
    """Names of functions whose result depends on their arguments alone.

    Example:
        >>> {"upper", "date_diff"} <= scalar_functions(), {"random", "count", "read_csv", "current_setting", "error"} & scalar_functions()
        (True, set())
    """
    with _engine() as con:
        rows = con.execute(
            "SELECT function_name, bool_and(function_type = 'scalar' AND stability = 'CONSISTENT') FROM duckdb_functions() GROUP BY 1"
        ).fetchall()
    return (frozenset(name for name, fits in rows if fits) - _REFUSED) | _MACROS


def _engine() -> duckdb.DuckDBPyConnection:
    """An engine that opens no file and no network."""
    return duckdb.connect(":memory:", config={"enable_external_access": "false"})
