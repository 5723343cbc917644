"""Public data that SafeTab reads beside records.

The totals of population groups (T1) choose the tables of SafeTab-H. Areas without housing units, from a list, get no statistics of
households.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError
from censafe.geography.grfc import Areas
from censafe.geography.regions import PUERTO_RICO, REGION_TYPES
from censafe.population.detailed.encode import encoded_texts
from censafe.population.files.layout import layout
from censafe.population.findings import Finding, stated

if TYPE_CHECKING:
    import pyarrow as pa

    from censafe.population.detailed.files import Batches


LIST_NAME: Final = "areas-without-units.csv"
_COLUMN: Final = "GEOID"
_BLOCK: Final = 15
_LENGTHS: Final = {2: "state", 5: "county", 11: "tract", 12: "block group", _BLOCK: "block"}


def without_listed(areas: Areas, path: Path) -> Areas:
    """The areas without the blocks that a list names, alone or by an area that holds them."""
    included = np.ones(areas.blocks, bool)
    codes = _codes(path)
    for length in _LENGTHS:
        listed = [int(code) for code in codes if len(code) == length]
        if listed:
            included &= ~np.isin(areas.keys // 10 ** (_BLOCK - length), np.array(listed, np.int64))
    return areas.restrict(included)


def _codes(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            if _COLUMN not in (reader.fieldnames or ()):
                raise DataError(
                    f"{path.name}: no column {_COLUMN}; allowed: comma-separated, with a header; fix: name the column {_COLUMN}"
                )
            codes = [(row[_COLUMN] or "").strip() for row in reader]
    except OSError as problem:
        raise StorageError(f"{path}: cannot be read ({problem.strerror})") from None
    except (UnicodeDecodeError, csv.Error):
        raise DataError(f"{path.name}: not a comma-separated file in UTF-8; fix: write it again") from None
    wrong = sum(not (code.isascii() and code.isdecimal() and len(code) in _LENGTHS) for code in codes)
    if wrong:
        allowed = ", ".join(f"{length} digits ({name})" for length, name in _LENGTHS.items())
        raise DataError(
            f"{path.name}: {_COLUMN}: {wrong} rows with codes of another form; allowed: {allowed}; fix: give leading zeros"
        )
    return codes


_TYPES = tuple(kind.name for kind in REGION_TYPES)
_USA, _AIANNH = _TYPES.index("USA"), _TYPES.index("AIANNH")
_WIDTHS = frozenset(kind.width for kind in REGION_TYPES)


@dataclass(frozen=True, eq=False)
class PopGroupTotals:
    """Totals of population groups, in the order of the file.

    Args:
        region_type: position in :data:`censafe.geography.regions.REGION_TYPES`, ``int8[groups]``.
        region: position in ``Areas.regions`` of that type, ``int32[groups]``.
        iteration: iteration code as a number, ``int32[groups]``.
        count: noisy number of persons, ``int64[groups]``.
    """

    region_type: NDArray[np.int8]
    region: NDArray[np.int32]
    iteration: NDArray[np.int32]
    count: NDArray[np.int64]

    def of_type(self, name: str) -> PopGroupTotals:
        """The totals of one REGION_TYPE."""
        return self._take(self.region_type == _TYPES.index(name))

    def _take(self, rows: NDArray[Any]) -> PopGroupTotals:
        return PopGroupTotals(
            self.region_type[rows], self.region[rows], self.iteration[rows], self.count[rows]
        )


def load_totals(
    batches: Batches, areas: Areas, label: str, *, all_regions: bool = True
) -> tuple[PopGroupTotals, list[Finding]]:
    """Read T1 and keep the regions of the run.

    Source: specification of SafeTab, sections 3.2 and 3.5.
    """
    faults = dict.fromkeys((field.name for field in layout("safetab-totals").columns), 0)
    parts = [_raw(batch, faults, batches.null_text) for task in batches.tasks for batch in task()]
    raw = np.concatenate([np.empty((6, 0), np.int64), *parts], axis=1)
    kind, number, _, _, iteration, count = raw
    findings = list(batches.findings)
    for field in layout("safetab-totals").columns:
        findings += stated("totals.domain", label, faults[field.name], column=field.name, field=field)
    valid = (kind >= 0) & (number >= 0) & (iteration >= 0)
    findings += stated("totals.duplicate-group", label, _repeated(raw[:, valid]))
    region, inside = _regions(raw, areas, valid)
    outside, unknown = (
        int(np.count_nonzero(rows)) for rows in (valid & ~inside, valid & inside & (region < 0))
    )
    findings += stated("totals.state-filter", label, outside, states=", ".join(areas.states))
    left_out = "" if all_regions else " are left out"
    findings += stated("totals.unknown-region", label, unknown, warn=not all_regions, left_out=left_out)
    totals = PopGroupTotals(kind.astype(np.int8), region, iteration.astype(np.int32), count)
    return totals._take(valid & inside & (region >= 0)), findings


def _raw(batch: pa.RecordBatch, faults: dict[str, int], null_text: str) -> NDArray[np.int64]:
    """Rows as numbers: type, number, width and state of the region, iteration, count; negative ones are faulty."""
    region, region_type, group, total = layout("safetab-totals").columns
    ids, id_of = encoded_texts(batch.column(region.name), null_text, 0)
    kinds, kind_of = encoded_texts(batch.column(region_type.name), null_text, 0)
    groups, group_of = encoded_texts(batch.column(group.name), null_text, group.width)
    totals, total_of = encoded_texts(batch.column(total.name), null_text, 0)
    kind = np.array([_TYPES.index(text) if text in _TYPES else -1 for text in kinds])[kind_of]
    number = np.array([int(text) if _is_region(text) else -1 for text in ids])[id_of]
    number[(kind == _USA) & (number != 1)] = -1
    iteration = np.array([group.number(text) for text in groups])[group_of]
    integral = np.array([_is_integer(text) for text in totals])[total_of]
    for name, bad in zip(faults, (number < 0, kind < 0, iteration < 0, ~integral), strict=True):
        faults[name] += int(np.count_nonzero(bad))
    width = np.array([len(text) for text in ids])[id_of]
    state = np.array([int(text[:2]) if _is_region(text) else 0 for text in ids])[id_of]
    count = np.array([int(text) if _is_integer(text) else 0 for text in totals], np.int64)[total_of]
    return np.stack([kind, number, width, state, iteration, count])


def _is_region(text: str) -> bool:
    return len(text) in _WIDTHS and text.isascii() and text.isdecimal()


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and len(digits) <= 15


def _repeated(raw: NDArray[np.int64]) -> int:
    kind, number, width, _, iteration, _ = raw
    region = (kind << 4 | width) << 37 | number  # at most 11 digits
    keys = np.sort(region << 14 | iteration)
    return int(np.count_nonzero(keys[1:] == keys[:-1]))


def _regions(
    raw: NDArray[np.int64], areas: Areas, valid: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Positions of the regions, and whether the state filter keeps them."""
    kinds, number, width, state, _, _ = raw
    region = np.full(len(kinds), -1, np.int32)
    for position, kind in enumerate(REGION_TYPES):
        rows = np.flatnonzero(valid & (kinds == position) & (width == kind.width))
        region[rows] = areas.find_regions(kind.name, number[rows])
    included = np.zeros(100, bool)
    included[[int(state) for state in areas.states]] = True
    us_run = any(state != PUERTO_RICO for state in areas.states)
    inside = np.where(kinds == _USA, us_run, included[state])
    return region, np.where(kinds == _AIANNH, region >= 0, inside)
