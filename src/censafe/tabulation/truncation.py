"""Truncation: at most tau records of one household, by an order that depends on the record alone.

Proof of stability: ``truncation.proof.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

import ibis
from ibis.expr import types as ir

from censafe.model.proven import proven
from censafe.tabulation.tables.definitions import CanonicalColumn


def canonical_text(table: ir.Table, canonical: Sequence[CanonicalColumn]) -> ir.StringValue:
    """Text of a record: its columns in the order of the file, zero-padded, joined by ``|``.

    A missing value is the empty text. Example: ``3|100000001|25|1|01|20``.
    """
    texts = [
        table[entry.column].cast("string").lpad(entry.width, "0").fill_null("")
        if entry.width > 1
        else table[entry.column].cast("string").fill_null("")
        for entry in canonical
    ]
    return ibis.literal("|").join(texts)


@proven("truncation.proof.md", digest="fca30d5814b64241")
def ranked(records: ir.Table, household: str, canonical: Sequence[CanonicalColumn], into: str) -> ir.Table:
    """Number the records of every household from 1 in the canonical order.

    The order is that of SHA-256, in hexadecimal, of the canonical text followed by ``|`` and the record's
    index among equal records of the household, counted from 1. It needs no key and depends neither on the
    order of the file nor on the engine; equal records are told apart by their index, and which of them
    carries which index makes no difference.

    Args:
        records: the records of one universe.
        household: name of the household key.
        canonical: columns of the text.
        into: name of the new column.
    """
    texts = records.mutate(_text=canonical_text(records, canonical))
    equal = ibis.window(group_by=[household, "_text"])
    indexed = texts.mutate(_index=ibis.row_number().over(equal) + 1)
    hashed = indexed.mutate(
        _digest=(indexed["_text"] + "|" + indexed["_index"].cast("string")).hexdigest("sha256")
    )
    order = ibis.window(group_by=household, order_by=["_digest", "_text", "_index"])
    return hashed.mutate(**{into: ibis.row_number().over(order) + 1}).drop("_text", "_index", "_digest")


@proven("truncation.proof.md", digest="8438ace1a83adec2")
def truncate(
    records: ir.Table, household: str, canonical: Sequence[CanonicalColumn], tau: int
) -> tuple[ir.Table, ir.Table]:
    """Split records into the first ``tau`` of every household and the rest.

    Args:
        records: the records of one universe; the universe is applied first.
        household: name of the household key.
        canonical: columns of the text that orders the records.
        tau: largest number of records of one household that are retained.

    Returns:
        The retained and the dropped records; together they are ``records``. One record more or less in
        ``records`` changes the retained ones by at most two.
    """
    numbered = ranked(records, household, canonical, "_rank")
    retained = numbered.filter(numbered["_rank"] <= tau).drop("_rank")
    dropped = numbered.filter(numbered["_rank"] > tau).drop("_rank")
    return retained, dropped


def over_threshold(records: ir.Table, household: str, tau: int) -> ir.Table:
    """Keys of the households with more than ``tau`` records, each once."""
    counted = records.group_by(household).aggregate(rows=records.count())
    return counted.filter(counted["rows"] > tau).select(household)
