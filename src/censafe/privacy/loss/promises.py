"""How a loss under one promise reads under another, and losses kept by definition, relation and unit of protection."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from censafe.model import Definition, Neighbors, ProtectedUnit, ReleasePlan
from censafe.model.bounds import upper
from censafe.model.proven import proven
from censafe.privacy.loss.budget import exact


@proven("composition.proof.md", digest="ff41fbf7634fd73a")
def implied_rho(definition: Definition, cost: Fraction) -> Fraction:
    """The zCDP loss of a mechanism with the given loss: rho itself, or epsilon^2 / 2 for epsilon-DP.

    Source: Bun & Steinke (2016), Proposition 1.4. The other direction does not exist: zCDP bounds no pure epsilon.

    Example:
        >>> implied_rho(Definition.PURE, Fraction(1))
        Fraction(1, 2)
    """
    loss = exact(cost, "cost")
    return loss if definition is Definition.ZCDP else loss * loss / 2


@proven("composition.proof.md", digest="3c3ecdc9c8a5f758")
def group_loss(definition: Definition, cost: Fraction, changes: int) -> Fraction:
    """Loss between datasets that are ``changes`` neighbor steps apart: k epsilon, or k^2 rho.

    A replacement is one removal and one addition, so a loss under ``add_remove`` bounds the loss under ``replace``
    with two changes. A product that knows its sensitivities may state less.

    Source: Bun & Steinke (2016), Proposition 1.9; Dwork & Roth (2014), Theorem 2.2.

    Example:
        >>> group_loss(Definition.ZCDP, Fraction(1, 2), 2)
        Fraction(2, 1)
    """
    if isinstance(changes, bool) or not isinstance(changes, int) or changes < 0:
        raise ValueError("the number of changes must be an int, 0 or more")
    loss = exact(cost, "cost")
    return loss * changes * changes if definition is Definition.ZCDP else loss * changes


@dataclass(frozen=True, order=True)
class Promise:
    """Under what a loss is stated, by the values of the three terms.

    Args:
        unit: ``person`` or ``household``.
    """

    definition: str
    neighbors: str
    unit: str

    @property
    def symbol(self) -> str:
        """Name of the loss parameter, ``rho`` or ``epsilon``."""
        return Definition(self.definition).symbol

    @property
    def relation(self) -> str:
        """The change that is hidden, for people.

        Example:
            >>> Promise("zcdp", "add_remove", "person").relation
            'add/remove one person'
        """
        return self.relation_of(self.unit)

    def relation_of(self, record: str) -> str:
        """The change of a record of another kind that is hidden in the same way, for people.

        Example:
            >>> Promise("zcdp", "replace", "person").relation_of("housing unit")
            'replace one housing unit'
        """
        return f"{self.neighbors.replace('_', '/')} one {record}"

    @property
    def text(self) -> str:
        """The promise as a ledger line names it.

        Example:
            >>> Promise("zcdp", "add_remove", "person").text
            'zcdp add_remove person'
        """
        return f"{self.definition} {self.neighbors} {self.unit}"

    def amount(self, value: Fraction) -> str:
        """A loss under this promise, for people.

        Example:
            >>> Promise("zcdp", "replace", "person").amount(Fraction(1, 3))
            'rho = 1/3 (about 0.333334; replace one person)'
        """
        about = "" if value.denominator == 1 else f"about {upper(value, digits=6):.6g}; "
        return f"{self.symbol} = {value} ({about}{self.relation})"


PROMISES: tuple[Promise, ...] = tuple(
    Promise(definition.value, neighbors.value, unit.value)
    for definition, neighbors, unit in itertools.product(Definition, Neighbors, ProtectedUnit)
)
"""Every promise that a total can be stated under."""


@dataclass(frozen=True)
class Loss:
    """What a charge costs.

    Args:
        by_relation: loss under every relation for which the plan states one, its own among them.
    """

    promise: Promise
    by_relation: Mapping[str, Fraction]

    @property
    def cost(self) -> Fraction:
        """The loss under the plan's own relation."""
        return self.by_relation[self.promise.neighbors]


def promise_of(plan: ReleasePlan) -> Promise:
    """The promise that a plan's costs are stated under."""
    return Promise(plan.definition.value, plan.neighbors.value, plan.unit.value)


def part_loss(plan: ReleasePlan, cost: Fraction) -> Loss:
    """The loss of a part of a plan under every relation: its cost, and the same share of the plan's other losses."""
    others = {relation.value: cost * loss / plan.total for relation, loss in plan.other_losses.items()}
    return Loss(promise_of(plan), {**others, plan.neighbors.value: cost})


@proven("composition.proof.md", digest="3889f38b697f7453")
def loss_under(loss: Loss, promise: Promise) -> Fraction | None:
    """A loss read under a promise; None where no finite bound follows from what its plan states.

    Rho bounds no epsilon, and the loss of a person's record bounds none of a household's. A person stands in one
    household: added or removed, the person changes, adds or removes its record; replaced, the records of up to two.

    Example:
        >>> plain = Loss(Promise("puredp", "add_remove", "person"), {"add_remove": Fraction(2)})
        >>> loss_under(plain, Promise("zcdp", "add_remove", "person"))
        Fraction(2, 1)
        >>> loss_under(plain, Promise("puredp", "replace", "person")) is None
        True
    """
    own = Definition(loss.promise.definition)
    value = _same_definition(loss, promise, own)
    if value is None or promise.definition == own.value:
        return value
    return implied_rho(own, value) if own is Definition.PURE else None


def _same_definition(loss: Loss, promise: Promise, definition: Definition) -> Fraction | None:
    """The loss under relation and unit of ``promise``, in the definition that it is stated in."""
    if promise.unit == loss.promise.unit:
        return loss.by_relation.get(promise.neighbors)
    if promise.unit != ProtectedUnit.PERSON.value or Neighbors.REPLACE.value not in loss.by_relation:
        return None
    step = max(loss.by_relation.values())
    if promise.neighbors == Neighbors.REPLACE.value:
        return group_loss(definition, step, 2)
    return step if Neighbors.ADD_REMOVE.value in loss.by_relation else None


def common_promises(loss: Loss, others: Collection[Loss]) -> Iterator[Promise]:
    """Promises under which a loss and all others are finite, the loss's own and those nearest to it first.

    Example:
        >>> first = Loss(Promise("zcdp", "add_remove", "person"), {"add_remove": Fraction(1), "replace": Fraction(2)})
        >>> second = Loss(Promise("zcdp", "replace", "person"), {"replace": Fraction(3)})
        >>> next(common_promises(first, [second])).relation
        'replace one person'
    """

    def distance(promise: Promise) -> tuple[bool, bool, bool]:
        own = loss.promise
        return (
            promise.definition != own.definition,
            promise.unit != own.unit,
            promise.neighbors != own.neighbors,
        )

    for promise in sorted(PROMISES, key=distance):
        if all(loss_under(other, promise) is not None for other in (loss, *others)):
            yield promise
