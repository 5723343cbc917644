"""Typed record tables in the shapes that readers give, built from plain rows."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

PERSON_COLUMNS = ("P_RTYPE", "MAFID", "QAGE", "CENHISP", "CENRACE", "RELSHIP")
UNIT_COLUMNS = ("RTYPE", "MAFID", "FINAL_POP", "NPF", "HHSPAN", "HHRACE", "TEN", "HHT", "HHT2", "CPLT")
GEO_COLUMNS = ("GEO_RTYPE", "MAFID", "TABBLKST")

_WIDTHS = {
    "MAFID": pa.int64(),
    "QAGE": pa.int16(),
    "FINAL_POP": pa.int32(),
    "NPF": pa.int16(),
    "TABBLKST": pa.string(),
}

_NUMBERS = itertools.count()

Row = Sequence[Any]


@dataclass(frozen=True)
class Records:
    """Plain rows: what the reference counts from."""

    persons: Sequence[Row]
    units: Sequence[Row]
    geo: Sequence[Row]


@dataclass(frozen=True)
class Tables:
    persons: Any
    units: Any
    geo: Any
    unique: bool = False
    sizes: Any = None


def typed(records: Records, backend: Any) -> Tables:
    pairs = zip(
        (records.persons, records.units, records.geo),
        (PERSON_COLUMNS, UNIT_COLUMNS, GEO_COLUMNS),
        strict=True,
    )
    return Tables(*(_store(_table(rows, columns), backend) for rows, columns in pairs))


def with_facts(tables: Tables, records: Records) -> Tables:
    """The same tables with what a population of PHSafe knows of them: whether keys repeat, and the sizes of households."""
    keys = [[row[1] for row in rows if row[1] is not None] for rows in (records.units, records.geo)]
    unique = all(len(found) == len(set(found)) for found in keys)
    persons = tables.persons.filter(tables.persons.MAFID.notnull())
    return replace(tables, unique=unique, sizes=persons.group_by("MAFID").aggregate(PERSONS=persons.count()))


def _store(table: pa.Table, backend: Any) -> Any:
    name = f"typed_{next(_NUMBERS)}"
    backend.con.register("incoming", table)
    backend.raw_sql(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM incoming")
    backend.con.unregister("incoming")
    return backend.table(name)


def _table(rows: Sequence[Row], columns: Sequence[str]) -> pa.Table:
    by_column = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    return pa.table(
        {
            name: pa.array(values, _WIDTHS.get(name, pa.int8()))
            for name, values in zip(columns, by_column, strict=True)
        }
    )
