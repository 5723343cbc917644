"""What the explorer page knows about one configuration: rows that can be measured, and what their noise depends on."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any, Final, Literal

_CHECKED: Final = (4, 7, 23)


@dataclass(frozen=True)
class SheetSetting:
    """A number besides the budgets that the noise depends on."""

    key: str
    label: str
    help: str
    kind: Literal["integer", "fraction"]
    low: int
    high: int
    value: Fraction
    toml: tuple[str, str]
    json: tuple[str, ...]


@dataclass(frozen=True)
class Choice:
    """A word of the configuration that decides laws, bounds or relations."""

    key: str
    label: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class SheetBound:
    """How far one record moves the answers: squared L2 for Gaussian noise, L1 for geometric noise.

    Args:
        coefficients: of 1, x and x squared in the value x of the setting.
        values: by value of the setting from 1 on, in place of coefficients.
    """

    setting: str = ""
    coefficients: tuple[Fraction, ...] = ()
    values: tuple[Fraction, ...] = ()


@dataclass(frozen=True)
class Share:
    """The part of a row's budget that answers get: ``constant + factor`` times the value of a setting."""

    constant: Fraction = Fraction(1)
    factor: Fraction = Fraction(0)
    setting: str = ""


@dataclass(frozen=True)
class MovedAnswers:
    """Answers of a row that a protected change moves: how many cells, by how much each, and what share of the budget they get."""

    cells: SheetBound
    step: SheetBound
    share: Share = Share()


@dataclass(frozen=True)
class Question:
    """One question about one record.

    Args:
        rows: identifiers of the rows that the change moves, as often as their cells move.
        alternatives: in place of rows, changes one of which is the most expensive one: each has, by row, how many cells move by how much.
    """

    name: str
    words: str
    rows: tuple[str, ...] = ()
    alternatives: tuple[tuple[tuple[str, int, int], ...], ...] = ()


@dataclass(frozen=True)
class Extra:
    """Other answers of a row whose margin is worth knowing."""

    label: str
    share: Share


@dataclass(frozen=True)
class Derived:
    """Answers that are summed from a measured row, at no further loss."""

    row: str
    terms: int


@dataclass(frozen=True)
class Facet:
    """One way to sort the rows: its name, and what may be switched on and off."""

    label: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """One budget.

    Args:
        share: of the budget that goes to the answers whose margin is shown.
        target: margin of error that the budget was chosen for, where it is stored.
        derived: from which row it is summed; such a row has no budget.
        toml: section and key of our TOML; empty for shares of one total.
        shares: histogram, level and query, where the budget is a share of one total.
        moved: answers that a protected change moves; empty for derived rows and under pure DP.
    """

    id: str
    section: str
    label: str
    name: str
    facets: tuple[int, ...]
    budget: Fraction
    bound: SheetBound
    share: Share = Share()
    extras: tuple[Extra, ...] = ()
    suppression: Fraction | None = None
    target: Fraction | None = None
    places: int | None = None
    cells: int | None = None
    derived: Derived | None = None
    toml: tuple[str, ...] = ()
    json: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()
    moved: tuple[MovedAnswers, ...] = ()


@dataclass(frozen=True)
class SheetRelation:
    """A neighbor relation, and how many times the sum of the budgets is lost under it."""

    name: str
    label: str
    factor: Fraction
    text: str


@dataclass(frozen=True)
class PaperLine:
    """A line of a paper's table: what stands before its target, the target, and the rows whose losses follow."""

    cells: tuple[str, ...]
    target: Fraction
    places: int
    rows: tuple[str, ...]


@dataclass(frozen=True)
class PaperTable:
    """A table of a product's paper, recomputed on the page from its targets."""

    title: str
    columns: tuple[str, ...]
    lines: tuple[PaperLine, ...]


@dataclass(frozen=True)
class Shares:
    """Where the shares of one total stand in our TOML.

    Args:
        outside: by histogram and level, loss of levels that a run leaves out.
        exact: by histogram, lowest level whose totals are published exactly, where there is one.
    """

    losses: Mapping[str, tuple[str, str]]
    outside: Mapping[str, Mapping[str, Fraction]]
    order: tuple[str, ...]
    root: str
    exact: Mapping[str, str]
    together: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class ExplorerSheet:
    """One configuration on the page.

    Args:
        unit: whose record is protected.
        json: the Bureau's configuration, where there is such a form, with text such as ``=0.5`` for exact numbers.
        questions: about one record under the first relation, whose noise is composed; none under pure DP.
    """

    key: str
    product: str
    title: str
    symbol: str
    law: Literal["gaussian", "geometric"]
    unit: str
    counted: str
    confidence: Fraction
    relations: tuple[SheetRelation, ...]
    settings: tuple[SheetSetting, ...]
    facets: tuple[Facet, ...]
    totals: tuple[int, ...]
    rows: tuple[Row, ...]
    toml: str
    json: Mapping[str, Any] | None = None
    paper: PaperTable | None = None
    shares: Shares | None = None
    notes: tuple[str, ...] = field(default=())
    questions: tuple[Question, ...] = ()
    choices: tuple[Choice, ...] = ()
    chosen: Mapping[str, str] = field(default_factory=dict)
    variants: tuple[ExplorerSheet, ...] = ()

    def record(self) -> dict[str, Any]:
        """Plain values for the page; fractions are text."""
        return {name: _plain(value) for name, value in asdict(self).items()}


def with_variants(
    build: Callable[[Mapping[str, str]], ExplorerSheet], choices: tuple[Choice, ...]
) -> ExplorerSheet:
    """A configuration with all combinations of some words of it."""
    base, others = build({}), []
    for words in itertools.product(*(choice.values for choice in choices)):
        chosen = {choice.key: word for choice, word in zip(choices, words, strict=True)}
        if chosen != base.chosen:
            key = "~".join((base.key, *words))
            others.append(replace(build(chosen), key=key, toml="", paper=None))
    return replace(base, choices=choices, variants=tuple(others))


def quadratic(at: Callable[[int], Fraction]) -> tuple[Fraction, ...]:
    """Coefficients of 1, x and x squared of a polynomial of degree 2 or less.

    Example:
        >>> [int(c) for c in quadratic(lambda tau: Fraction(2 * tau + 2) ** 2)]
        [4, 8, 4]
    """
    first, second, third = at(1), at(2), at(3)
    square = (third - 2 * second + first) / 2
    slope = second - first - 3 * square
    coefficients = (first - slope - square, slope, square)
    if any(coefficients[0] + coefficients[1] * x + coefficients[2] * x**2 != at(x) for x in _CHECKED):
        raise ValueError("the bound is not a polynomial of degree 2 in the setting")
    return coefficients


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value
