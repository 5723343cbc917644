"""Results of the relational layer as Arrow tables, without what the caller does not need."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

__all__ = ["fetch"]


def fetch(expression: ir.Expr) -> pa.Table:
    """Run a query and return its rows.

    On DuckDB the rows come straight from the engine: the general way of Ibis loads pandas first, which takes
    longer than most of our queries.

    Args:
        expression: a table, column or scalar of stored tables.

    Returns:
        Arrow table with the columns and types of the expression.
    """
    table = expression.as_table()
    backend = table.get_backend()
    if backend.name != "duckdb":
        return table.to_pyarrow()
    found = backend.con.sql(backend.compile(table)).to_arrow_table()
    return found.cast(table.schema().to_pyarrow())
