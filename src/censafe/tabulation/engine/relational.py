"""Operations on rows with keys, in Ibis; an engine may have a faster way for some of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from censafe.tabulation.engine.operations import count_by

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from censafe.model.engine import Answer


class Relational:
    """What an engine does with rows by their keys; part of an engine."""

    store: Callable[..., ir.Table]
    total_or_missing: Callable[..., Any]

    def unique(self, table: ir.Table, key: str) -> bool:
        """Nothing is known without counting."""
        del table, key
        return False

    def joined(
        self, name: str, left: ir.Table, right: ir.Table, key: str, *, outer: bool = False
    ) -> ir.Table:
        """A join, computed when it is asked for."""
        del name
        if not outer:
            return left.join(right, key)
        return left.filter(left[key].notnull()).left_join(right, key).drop(f"{key}_right")

    def summed(
        self,
        name: str,
        table: ir.Table,
        key: str,
        *,
        rows: str,
        sums: Mapping[str, Answer],
        marks: Mapping[str, Answer],
    ) -> ir.Table:
        """Groups by key."""
        keyed = table.filter(table[key].notnull())
        asked = {column: answer(keyed) for column, answer in {**sums, **marks}.items()}
        answered = keyed.select(key, **asked)
        found = {column: self.total_or_missing(answered[column]) for column in sums}
        found |= {column: answered[column].bit_or() for column in marks}
        return self.store(
            name, answered.group_by(key).aggregate(**{rows: answered.count().cast("int64")}, **found)
        )

    def counted(
        self, table: ir.Table, key: str, own: Answer, other: ir.Table, code: str, size: int
    ) -> pa.Table:
        """A join, and groups by both codes."""
        both = table.select(key, _own=own(table)).join(other.select(key, code), key)
        return count_by(both.select(_key=both[code] * size + both["_own"]), ["_key"])
