"""Constraints in the compact form that dense parents are estimated with: a total, and bounds of sums that part the cells by kind.

A constraint is recognized by its groups of cells and its right side alone. Whatever is not recognized belongs to the operator form, which takes
exact sums of any groups (`estimation.topdown.operator`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from censafe.model import CellQuery
from censafe.model.topdown.constraints import CellGroups, FacilityCounts, LinearConstraint, OwnAnswers
from censafe.model.topdown.histograms import HistogramSchema


@dataclass(frozen=True, eq=False)
class CompactForm:
    """What the constraints of a histogram say, geounit by geounit.

    Args:
        kinds: the query by whose answers, the kinds, counts of units bound the records; None where they bound nothing.
        exact: lowest level at which the total is exact, with all above it; None where it is at none.
    """

    kinds: CellQuery | None = None
    fewest: tuple[int, ...] = ()
    most: tuple[int, ...] = ()
    exact: str | None = None

    def exact_levels(self, names: Sequence[str]) -> tuple[str, ...]:
        """Those of some levels, root first, at which the total is exact.

        Example:
            >>> CompactForm(exact="State").exact_levels(("US", "State", "County"))
            ('US', 'State')
        """
        return () if self.exact not in names else tuple(names[: names.index(self.exact) + 1])


def compact_form(schema: HistogramSchema, constraints: Sequence[LinearConstraint]) -> CompactForm | None:
    """The compact form of some constraints; None where one of them has none.

    Compact are the total of all cells that is published exactly, and one lower and one upper bound by counts of units, on
    groups that part the cells.

    Example:
        >>> from censafe.model.topdown.histograms import constraints_on
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> persons, held = (load_config(name).histogram("persons") for name in ("pl94-us", "dhc-us"))
        >>> form = compact_form(persons.schema, constraints_on(persons))
        >>> form.kinds.name, form.fewest, form.exact
        ('hhgq', (0, 1, 1, 1, 1, 1, 1, 1), 'State')
        >>> compact_form(held.schema, constraints_on(held)) is None
        True
    """
    found: dict[str, LinearConstraint] = {}
    for one in constraints:
        if isinstance(one.right, OwnAnswers) and one.relation == "=" and one.groups == CellGroups("total"):
            role = "total"
        elif isinstance(one.right, FacilityCounts) and one.relation != "=" and one.lowest is None:
            role = one.relation
        else:
            return None
        if role in found:
            return None
        found[role] = one
    exact = found["total"].lowest if "total" in found else None
    if not found.keys() - {"total"}:
        return CompactForm(exact=exact)
    return _bounded(schema, found, exact)


def _bounded(
    schema: HistogramSchema, found: dict[str, LinearConstraint], exact: str | None
) -> CompactForm | None:
    """With bounds: both are there, on the same groups, and every cell is in one of them."""
    if not {"<=", ">="} <= found.keys() or found["<="].groups != found[">="].groups:
        return None
    kinds = schema.grouped(found["<="].groups)
    fewest, most = (_each(found[relation]) for relation in (">=", "<="))
    if (kinds.label < 0).any() or {len(fewest), len(most)} != {kinds.answers}:
        return None
    return CompactForm(kinds, fewest, most, exact)


def _each(one: LinearConstraint) -> tuple[int, ...]:
    return one.right.each if isinstance(one.right, FacilityCounts) else ()
