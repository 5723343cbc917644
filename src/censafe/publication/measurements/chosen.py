"""Some answers of public noisy measurement files that are too many to be held: those that an estimate asks for, in one pass over the files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Final

import numpy as np
from numba import int16, int32, int64, types, void
from numpy.typing import NDArray

from censafe.model.arrays import Integers
from censafe.model.compiled import compiled
from censafe.publication.measurements.layout import DPQUERY, LevelFiles
from censafe.publication.measurements.level import ANOTHER_NUMBER, AnswerRules, kernel_values
from censafe.publication.measurements.rows import Faults, Rows, opened, read_answer_rows

_THREADS: Final = 2
_Spans = Mapping[Path, Integers]


@dataclass(frozen=True, eq=False)
class AnswerIndex:
    """Which geounits of a level are measured, how exactly, and where their rows are.

    Args:
        codes: letters of the geounits, sorted, uint8, shape (n, width).
        variances: float64, shape (n, queries), infinite where nothing was measured.
        spans: of every file, first and last geounit of every row group, shape (row groups, 2); -1 where it has no rows.
    """

    files: LevelFiles
    codes: NDArray[np.uint8] = field(repr=False)
    queries: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    variances: NDArray[np.float64] = field(repr=False)
    spans: _Spans = field(repr=False)

    def rules(self) -> AnswerRules:
        """The rules of its rows."""
        faults = Faults(self.files.name, self.files.folder / DPQUERY)
        return AnswerRules(faults, self.codes, self.queries, self.shapes)


@dataclass(frozen=True, eq=False)
class ChosenAnswers:
    """Which answers of consecutive geounits are read; those of one group, such as the children of a parent, are the same ones.

    Args:
        group: of every geounit, rising from 0, shape (m,).
        pointer: of every query, shape (groups + 1,); group i asks for answer[pointer[i]] .. answer[pointer[i + 1] - 1].
    """

    first: int
    group: Integers = field(repr=False)
    pointer: tuple[Integers, ...] = field(repr=False)
    answer: tuple[Integers, ...] = field(repr=False)

    @property
    def last(self) -> int:
        """One past the last geounit."""
        return self.first + len(self.group)

    def starts(self, query: int) -> Integers:
        """Where the answers of every geounit start among those that are read of a query, and their end, shape (m + 1,)."""
        found = np.zeros(len(self.group) + 1, np.int64)
        np.cumsum(np.diff(self.pointer[query])[self.group], out=found[1:])
        return found


def index_answers(
    files: LevelFiles,
    places: Collection[str],
    codes: NDArray[np.uint8],
    queries: Sequence[str],
    shapes: Sequence[tuple[int, ...]],
) -> AnswerIndex:
    """Read everything of the measurements in some folders of a level but their answers.

    Args:
        codes: letters of these geounits, sorted, shape (n, width).
    """
    found = AnswerIndex(files, codes, tuple(queries), tuple(shapes), np.zeros((0, 0)), {})
    rules, spans = found.rules(), {}
    for path in (one for place in files.measured if place in places for one in files.measured[place]):
        groups = opened(path).metadata.num_row_groups
        spans[path] = np.array([_span(rules, path, group) for group in range(groups)], np.int64).reshape(
            -1, 2
        )
    rules.require_complete()
    return AnswerIndex(files, rules.codes, rules.queries, rules.shapes, rules.variances, spans)


def _span(rules: AnswerRules, path: Path, group: int) -> tuple[int, int]:
    """First and last geounit of a row group."""
    nodes = []
    for rows in read_answer_rows(path, [group], answers=False):
        for query, own, node in rules.groups(rows, path):
            rules.claim(rows, own, node, query, 0)
            nodes += [int(node[own].min()), int(node[own].max())] if len(own) else []
    return (min(nodes), max(nodes)) if nodes else (-1, -1)


def _signature(number: types.Type) -> types.Type:
    return void(types.Array(number, 1, "C", readonly=True), *(int64[::1],) * 7)


@compiled([_signature(int16), _signature(int32), _signature(int64)])
def _pick(values, begin, node, group, pointer, answer, target, found):  # type: ignore[no-untyped-def]
    """Copy the chosen answers of rows: found[target[m] + j] = values[begin + answer[pointer[g] + j]], m a row's geounit, g its group.

    Args:
        begin: where the answers of every row start, shape (k,).
        node: geounit of every row among those wanted, shape (k,).
    """
    for row in range(begin.shape[0]):
        first, last = pointer[group[node[row]]], pointer[group[node[row]] + 1]
        for at in range(first, last):
            found[target[node[row]] + at - first] = values[begin[row] + answer[at]]


def read_chosen(index: AnswerIndex, chosen: ChosenAnswers) -> tuple[Integers, ...]:
    """Read some answers of consecutive geounits; row groups without any of these are passed over."""
    rules = index.rules()
    target = [chosen.starts(query) for query in range(len(index.queries))]
    found = tuple(np.zeros(int(one[-1]), np.int64) for one in target)

    def read(path: Path, groups: list[int]) -> None:
        for rows in read_answer_rows(path, groups):
            for query, own, nodes in rules.groups(rows, path):
                inside = own[(nodes[own] >= chosen.first) & (nodes[own] < chosen.last)]
                if len(chosen.answer[query]) and len(inside):
                    require_width(rules, rows, inside, query)
                    _pick(
                        kernel_values(rows), rows.starts[inside], nodes[inside] - chosen.first, chosen.group,
                        chosen.pointer[query], chosen.answer[query], target[query], found[query],
                    )  # fmt: skip

    with ThreadPoolExecutor(_THREADS) as pool:
        waiting = []
        for path, spans in index.spans.items():
            groups = np.flatnonzero((spans[:, 1] >= chosen.first) & (spans[:, 0] < chosen.last)).tolist()
            if groups:
                waiting.append(pool.submit(read, path, groups))
        for one in waiting:
            one.result()
    return found


def require_width(rules: AnswerRules, rows: Rows, own: NDArray[np.int64], query: int) -> None:
    """Refuse rows of a query with another number of answers than it has."""
    wrong = own[np.diff(rows.starts)[own] != prod(rules.shapes[query])]
    if len(wrong):
        with rules.lock:
            rules.faults.add(
                f"{rules.queries[query]}: {ANOTHER_NUMBER}", rows.codes(wrong), "get the files again"
            )
        rules.faults.raise_if_any()
