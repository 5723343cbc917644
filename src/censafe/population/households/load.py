"""Typed load: the state filter and the domain checks happen in the one scan of every table.

A value outside its domain becomes NULL in a stored column, or a bit of FAULTS for a column that is checked
and not stored; validation counts them. Everything here is the same on every engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from censafe.geography import state_codes
from censafe.model.engine import engine_of, fetch
from censafe.population.files.delimited import reject_findings
from censafe.population.files.layout import Column, TableName, layout
from censafe.population.files.relation import Relation, engine_errors
from censafe.population.findings import Finding
from censafe.population.household_rules import (
    OWN_CHILD_UNDER_18,
    PARTNER_OPPOSITE,
    PARTNER_SAME,
    SPOUSE_OPPOSITE,
    SPOUSE_SAME,
)

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from censafe.model.engine import Engine


_KINDS: Final = ("NOT_HOUSEHOLD", "NOT_GQ", "HOUSEHOLDERS", "PARTNERS", "FAMILY")
_DIGIT: Final = 12  # bits
_LARGE: Final = 1 << _DIGIT
_HEAD: Final = 5  # bits below it are flags
_NO_HEAD: Final = 255  # no race and origin have this number


def packed_summary(persons: ir.Table, name: str) -> ir.Table:
    """One row a household."""
    return engine_of(persons).summed(
        name, persons, "MAFID", rows="PERSONS", sums={"COUNTS": _kind_digits}, marks={"MARKS": _marks}
    )


def with_persons(units: ir.Table, persons: ir.Table, packed: ir.Table, name: str) -> ir.Table:
    """Every row of a unit with what its persons say; missing values where it has none.

    Args:
        units: typed units; those without a key are left out.
    """
    import ibis

    joined = engine_of(units).joined
    if not fetch(packed.count(where=packed.PERSONS >= _LARGE))[0][0].as_py():
        return _unpacked(joined(name, units, packed, "MAFID", outer=True))
    large = packed.filter(packed.PERSONS >= _LARGE).select("MAFID")
    small = _unpacked(packed.filter(packed.PERSONS < _LARGE))
    summary = ibis.union(small, _counted(persons.semi_join(large, "MAFID")).select(small.columns))
    return joined(name, units, summary, "MAFID", outer=True)


def _conditions(rows: Any) -> dict[str, Any]:
    relation = rows.RELSHIP
    in_household = relation <= 36
    return {
        "NOT_HOUSEHOLD": (rows.P_RTYPE != 3) | ~in_household,
        "NOT_GQ": (rows.P_RTYPE != 5) | in_household,
        "HOUSEHOLDERS": relation == 20,
        "PARTNERS": relation.between(21, 24),
        "FAMILY": relation.isin([20, 21, 23]) | relation.between(25, 33),
    }


def _kind_digits(rows: Any) -> Any:
    conditions = _conditions(rows)
    return sum(conditions[kind].ifelse(_weight(kind), 0) for kind in _KINDS)


def _marks(rows: Any) -> Any:
    head = (rows.CENRACE.cast("int32") * 4 + rows.CENHISP).fill_null(_NO_HEAD)
    return _flags(rows) + (rows.RELSHIP == 20).ifelse(head * (1 << _HEAD), 0)


def _weight(kind: str) -> Any:
    import ibis

    return ibis.literal(1 << (_DIGIT * _KINDS.index(kind)), "int64")


def _flags(rows: Any) -> Any:
    import ibis

    relation, age = rows.RELSHIP, rows.QAGE
    return ibis.cases(
        (relation == 21, SPOUSE_OPPOSITE),
        (relation == 22, PARTNER_OPPOSITE),
        (relation == 23, SPOUSE_SAME),
        (relation == 24, PARTNER_SAME),
        (relation.between(25, 27) & (age < 18), OWN_CHILD_UNDER_18),
        else_=0,
    ).cast("int32")


def _unpacked(packed: ir.Table) -> ir.Table:
    """The digits and marks of a table as columns."""
    head = (packed.MARKS >> _HEAD).nullif(_NO_HEAD)
    counts = {kind: (packed.COUNTS >> (_DIGIT * place)) & (_LARGE - 1) for place, kind in enumerate(_KINDS)}
    flags = packed.MARKS & ((1 << _HEAD) - 1)
    return packed.mutate(**counts, FLAGS=flags.cast("int32"), HEAD=head.cast("int32")).drop("COUNTS", "MARKS")


def _counted(rows: ir.Table) -> ir.Table:
    """The same for households of any size, each kind counted by itself."""
    head = (rows.CENRACE.cast("int32") * 4 + rows.CENHISP).max(where=rows.RELSHIP == 20)
    summary = rows.group_by("MAFID").aggregate(
        PERSONS=rows.count(),
        **{kind: rows.count(where=condition) for kind, condition in _conditions(rows).items()},
        FLAGS=_flags(rows).bit_or(),
        HEAD=head,
    )
    return summary.cast({"FLAGS": "int32", "HEAD": "int32"})


FAULTS = "FAULTS"


@dataclass(frozen=True, eq=False)
class Scanned:
    """CONFIDENTIAL. A table of the input that an engine scans whenever it is asked."""

    relation: Relation
    rows: ir.Table

    def typed(self, column: Column) -> ir.Column:
        """The typed value of a column, NULL where the value is not allowed."""
        import ibis

        raw: Any = self.rows[column.name]
        integer = column.name in self.relation.integers
        if column.kind == "digits":
            return _digits(column, raw, integer=integer)
        kind, values = column.dtype or "int32", column.values()
        if values is not None and not integer:
            return engine_of(raw).coded(raw, values).cast(kind)
        number = raw if integer else raw.try_cast("int32")
        inside = ibis.or_(*(number.between(low, high) for low, high in column.ranges))
        if not integer:
            inside &= number.cast("string") == raw
        return inside.ifelse(number.try_cast(kind), None)


@dataclass(frozen=True)
class MafidRange:
    """One part: the MAFIDs low <= MAFID < high; rows without a valid MAFID go to the first or last part."""

    index: int
    count: int
    low: int
    high: int

    def of(self, scanned: Scanned) -> ir.Table:
        """The rows of this part.

        It compares the column itself, too, so that the engine can skip what lies outside; valid MAFIDs have
        nine digits, so texts compare like numbers.
        """
        rows = scanned.rows
        if self.count == 1:
            return rows
        integer = "MAFID" in scanned.relation.integers
        value: Any = rows.MAFID if integer else typed_mafid(scanned)
        if self.index == 0:
            return rows.filter((value < self.high) | value.isnull())
        conditions = [value >= self.low]
        if self.index < self.count - 1:
            conditions.append(value < self.high)
        if not integer:
            conditions.append(rows.MAFID.between(str(self.low), str(self.high)))
        return rows.filter(*conditions)


@dataclass(frozen=True)
class PartTables:
    """What one part was loaded into.

    Args:
        regions: states of the filter with a housing unit, in order.
        outside_rows: rows of geo of states outside the filter.
        unknown_rows: rows of geo whose TABBLKST is not a state code.
    """

    names: Mapping[TableName, str]
    regions: tuple[str, ...]
    outside_rows: int
    unknown_rows: int
    findings: tuple[Finding, ...]


def typed_mafid(scanned: Scanned) -> ir.Column:
    """The typed MAFID of a table."""
    columns = layout(scanned.relation.table).columns
    return scanned.typed(next(column for column in columns if column.name == "MAFID"))


def load_part(
    engine: Engine,
    tables: Mapping[TableName, Scanned],
    states: tuple[str, ...],
    part: MafidRange,
    prefix: str,
) -> PartTables:
    """Load one part of the three tables, keeping the rows that belong to the states of the filter.

    A person or unit vanishes when its MAFID occurs in geo outside the filter and not inside it; one whose
    MAFID occurs nowhere in geo stays, so that validation can report it.
    """
    geo = tables["geo"]
    with engine_errors(geo.relation.label):
        everything = engine.store(f"{prefix}_geo_all", _stored_columns(geo, part))
    counts = _count_states(everything, states)
    filtered = counts["outside"] + counts["unknown"] > 0
    names: dict[TableName, str] = {
        name: f"{prefix}_geo_all" if name == "geo" and not filtered else f"{prefix}_{name}" for name in tables
    }
    outside = _split_geo(engine, everything, prefix, states) if filtered else None
    malformed = _malformed(engine, geo, prefix, states) if counts["malformed"] else None
    for name in ("units", "persons"):
        rows = _stored_columns(tables[name], part, malformed)
        with engine_errors(tables[name].relation.label):
            engine.store(names[name], rows if outside is None else rows.anti_join(outside, "MAFID"))
    findings: list[Finding] = []
    for scanned in tables.values():
        findings += reject_findings(engine.embedded.con, scanned.relation)
    with engine_errors("working tables"):
        engine.drop(f"{prefix}_outside", f"{prefix}_malformed")
    return PartTables(
        names=names,
        regions=tuple(sorted(state for state in states if counts.get(state))),
        outside_rows=counts["outside"],
        unknown_rows=counts["unknown"],
        findings=tuple(findings),
    )


def _digits(column: Column, raw: Any, *, integer: bool) -> Any:
    if integer:
        inside = raw.between(0, 10**column.width - 1)
        return inside.ifelse(raw.cast("string").lpad(column.width, "0"), None)
    if column.name == "TABBLKST":
        return engine_of(raw).coded(raw, state_codes()).notnull().ifelse(raw, None)
    return engine_of(raw).digits(raw, column.width).ifelse(raw, None)


def _stored_columns(scanned: Scanned, part: MafidRange, malformed: ir.Table | None = None) -> ir.Table:
    """The typed columns of a part, without rows whose malformed MAFID is listed."""
    import ibis

    schema = layout(scanned.relation.table)
    rows = part.of(scanned)
    if malformed is not None:
        text = typed_mafid(scanned).isnull().ifelse(rows.MAFID.cast("string").fill_null(""), None)
        rows = rows.mutate(_text=text).anti_join(malformed, [("_text", "T")]).drop("_text")
    here = Scanned(scanned.relation, rows)
    columns = {str(column.typed): here.typed(column) for column in schema.stored}
    if schema.checked:
        bits = (
            here.typed(column).isnull().ifelse(1 << bit, 0).cast("int32")
            for bit, column in enumerate(schema.checked)
        )
        columns[FAULTS] = sum(bits, start=ibis.literal(0, "int32")).cast("int32")
    return rows.select(**columns)


def _count_states(geo: ir.Table, states: tuple[str, ...]) -> dict[str, int]:
    """Housing units by state of the filter; rows of other states, of none, and of these with a malformed MAFID."""
    counts = {"outside": 0, "unknown": 0, "malformed": 0}
    with engine_errors("geo"):
        query = geo.group_by("TABBLKST").aggregate(
            rows=geo.count(),
            housing=geo.count(where=geo.GEO_RTYPE == 2),
            malformed=geo.count(where=geo.MAFID.isnull()),
        )
        rows = fetch(query).to_pylist()
    for row in rows:
        state = row["TABBLKST"]
        if state in states:
            counts[state] = row["housing"]
        else:
            counts["unknown" if state is None else "outside"] += row["rows"]
            counts["malformed"] += row["malformed"]
    return counts


def _split_geo(engine: Engine, everything: ir.Table, prefix: str, states: tuple[str, ...]) -> ir.Table:
    """Hold the rows of the filter, and the MAFIDs that occur outside it alone, which are returned."""
    inside = everything.TABBLKST.isin(states).fill_null(False)
    with engine_errors("geo"):
        ours = engine.store(f"{prefix}_geo", everything.filter(inside))
        others = everything.filter(everything.MAFID.notnull() & ~inside).select("MAFID").distinct()
        outside = engine.store(f"{prefix}_outside", others.anti_join(ours, "MAFID"))
        engine.drop(f"{prefix}_geo_all")
    return outside


def _malformed(engine: Engine, geo: Scanned, prefix: str, states: tuple[str, ...]) -> ir.Table:
    """Texts of malformed MAFIDs of other states: their units and persons vanish too."""
    state = next(column for column in layout("geo").columns if column.name == "TABBLKST")
    bad = geo.rows.filter(typed_mafid(geo).isnull())
    here = Scanned(geo.relation, bad)
    inside = here.typed(state).isin(states).fill_null(False)
    texts = bad.select(T=bad.MAFID.cast("string").fill_null(""), INSIDE=inside.cast("int8"))
    listed = texts.group_by("T").aggregate(INSIDE=texts.INSIDE.max())
    with engine_errors(geo.relation.label):
        return engine.store(f"{prefix}_malformed", listed.filter(listed.INSIDE == 0).select("T"))


@dataclass(frozen=True)
class KeyLinks:
    """Numbers of rows with a valid MAFID, and how units and geo match."""

    units: int
    geo: int
    pairs: int
    units_only: int
    geo_only: int
    kinds_differ: int

    @property
    def unique(self) -> bool:
        """Whether no MAFID repeats.

        With nothing unmatched every MAFID has u >= 1 rows in units and g >= 1 in geo, and the sum of u * g
        equals the sum of u and the sum of g only when all are 1.
        """
        return not self.units_only and not self.geo_only and self.pairs == self.units == self.geo


def count_value(number: ir.IntegerScalar, what: str = "cross-file checks") -> int:
    """A number that the engine counts; 0 where it has none."""
    with engine_errors(what):
        return int(fetch(number)[0][0].as_py() or 0)


def find_links(units: ir.Table, geo: ir.Table) -> KeyLinks:
    """How the rows of units and geo match.

    Args:
        units: typed units.
    """
    engine = engine_of(units)
    left, right = units.select("MAFID", "RTYPE"), geo.select("MAFID", "GEO_RTYPE")
    rows = {"units": count_value(units.MAFID.count()), "geo": count_value(geo.MAFID.count())}
    with engine_errors("cross-file checks"):
        if not (engine.unique(left, "MAFID") and engine.unique(right, "MAFID")):
            return KeyLinks(**rows, **_links_by_join(left, right))
        joined = engine.joined("linked", left, right, "MAFID")
        counts = fetch(
            joined.aggregate(
                pairs=joined.count(), kinds_differ=joined.count(where=joined.RTYPE != joined.GEO_RTYPE)
            )
        ).to_pylist()[0]
        engine.drop("linked")
    unmatched = {f"{name}_only": count - counts["pairs"] for name, count in rows.items()}
    return KeyLinks(**rows, **unmatched, **counts)


def _links_by_join(units: ir.Table, geo: ir.Table) -> dict[str, int]:
    """Pairs and unmatched rows where keys may repeat."""
    left = units.filter(units.MAFID.notnull())
    right = geo.filter(geo.MAFID.notnull()).rename(GEO_MAFID="MAFID")
    joined = left.outer_join(right, left.MAFID == right.GEO_MAFID)
    counts = joined.aggregate(
        pairs=joined.count(where=joined.MAFID.notnull() & joined.GEO_MAFID.notnull()),
        units_only=joined.count(where=joined.GEO_MAFID.isnull()),
        geo_only=joined.count(where=joined.MAFID.isnull()),
        kinds_differ=joined.count(where=joined.RTYPE != joined.GEO_RTYPE),
    )
    links: dict[str, int] = fetch(counts).to_pylist()[0]
    return links


EXTRA_TABLES = ("households", "with_persons", "summary")


@dataclass(frozen=True, eq=False)
class Population:
    """CONFIDENTIAL. One part of the state-filtered input as compact typed tables in the engine.

    The tables are replaced when the next part is loaded. Values outside their domain are NULL.

    Args:
        units: RTYPE, MAFID, FINAL_POP, NPF, HHSPAN, HHRACE, TEN, HHT, HHT2, CPLT; duplicates included.
        geo: GEO_RTYPE, MAFID, TABBLKST, FAULTS (bit set of the other columns that break their domain).
    """

    persons: ir.Table = field(repr=False)
    units: ir.Table = field(repr=False)
    geo: ir.Table = field(repr=False)
    part: int
    parts: int
    states: tuple[str, ...]
    labels: Mapping[TableName, str]
    loaded: PartTables = field(repr=False)
    engine: Engine = field(repr=False)
    structure: tuple[Finding, ...] = ()

    @cached_property
    def links(self) -> KeyLinks:
        """How units and geo match."""
        return find_links(self.units, self.geo)

    @property
    def unique(self) -> bool:
        """Whether every key of units and of geo occurs once in each of them."""
        return self.links.unique

    @cached_property
    def sizes(self) -> ir.Table:
        """Households with their number of persons, as :func:`packed_summary` gives them, made once."""
        with engine_errors("numbers of persons"):
            return packed_summary(self.persons, self.name_of("summary"))

    @property
    def regions(self) -> tuple[str, ...]:
        """States of the filter with at least one housing unit in this part, in order."""
        return self.loaded.regions

    def name_of(self, name: str) -> str:
        """The name in the engine of a table that is held beside the part's tables; it goes when they go."""
        return self.loaded.names["persons"].removesuffix("persons") + name
