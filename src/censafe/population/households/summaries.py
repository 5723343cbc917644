"""What the persons of every household say, for all consistency rules at once: one row a household, made once for a part of the input.

The numbers of persons of five kinds are digits of one integer, which the engine adds up once: a household needs no digit above
4,095 unless it has more persons than that. The few that do are counted apart.

Source: specification of the PHSafe input, section 8.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from censafe.model.fetching import engine_of, fetch
from censafe.population.household_rules import (
    OWN_CHILD_UNDER_18,
    PARTNER_OPPOSITE,
    PARTNER_SAME,
    SPOUSE_OPPOSITE,
    SPOUSE_SAME,
)

if TYPE_CHECKING:
    import ibis.expr.types as ir


_KINDS: Final = ("NOT_HOUSEHOLD", "NOT_GQ", "HOUSEHOLDERS", "PARTNERS", "FAMILY")
_DIGIT: Final = 12  # bits
_LARGE: Final = 1 << _DIGIT
_HEAD: Final = 5  # bits below it are flags
_NO_HEAD: Final = 255  # no race and origin have this number


def packed_summary(persons: ir.Table, name: str) -> ir.Table:
    """One row a household."""
    return engine_of(persons).summed(
        name, persons, "MAFID", rows="PERSONS", sums={"COUNTS": _digits}, marks={"MARKS": _marks}
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


def _digits(rows: Any) -> Any:
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
