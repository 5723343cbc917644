"""Written microdata read back and compared with the histograms that they stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.csv as pc
from numpy.typing import NDArray

from censafe.errors import CheckError, StorageError
from censafe.model.sparse import SparseLevel
from censafe.publication.microdata import E2E_PERSON_HEADER, PL94_PERSON_HEADER, PL94_UNIT_HEADER

__all__ = ["check_e2e_persons", "check_pl94_persons", "check_pl94_units"]

_BLOCK_BYTES = 1 << 24
_Ints = NDArray[np.int64]


@dataclass(frozen=True)
class _Layout:
    """What is read of a file.

    Args:
        header: all columns.
        geocode: columns that make up the geocode, with their digits.
        levels: columns that make up the cell, with the level of every text.
    """

    header: tuple[str, ...]
    geocode: Mapping[str, int]
    levels: Mapping[str, Mapping[str, int]]

    @property
    def cells(self) -> int:
        """Number of cells."""
        return int(np.prod([len(texts) for texts in self.levels.values()]))


def _from(first: int, levels: int, width: int = 1) -> dict[str, int]:
    return {f"{first + level:0{width}d}": level for level in range(levels)}


_BLOCK = {"TABBLKST": 2, "TABBLKCOU": 3, "TABTRACTCE": 6, "TABBLKGRPCE": 1, "TABBLK": 4}
_PL94_PERSONS = _Layout(
    PL94_PERSON_HEADER,
    _BLOCK,
    {
        "GQTYPE_PL": _from(0, 8),
        "VOTING_AGE": _from(1, 2),
        "CENHISP": _from(1, 2),
        "CENRACE": _from(1, 63, 2),
    },
)
_PL94_UNITS = _Layout(PL94_UNIT_HEADER, _BLOCK, {"HH_STATUS": {"2": 0, "1": 1, "0": 2}})
_E2E_PERSONS = _Layout(
    E2E_PERSON_HEADER,
    {"TABBLKST": 2, "TABBLKCOU": 4, "ENUMDIST": 4},
    {"RTYPE": {"3": 0, "5": 1}, "QAGE": _from(17, 2), "CENHISP": _from(1, 2), "CENRACE": _from(1, 6)},
)


def check_pl94_persons(path: Path, blocks: SparseLevel) -> None:
    """Prove that a file of redistricting persons holds the histograms, person by person.

    Args:
        path: the file.
        blocks: the histograms that it was written from.

    Raises:
        CheckError: the file is of another layout, or does not hold exactly these persons.
        StorageError: the file cannot be opened.
    """
    _compare(path, _PL94_PERSONS, blocks.geounits, *_entries(blocks, _PL94_PERSONS.cells))


def check_pl94_units(path: Path, occupancy: SparseLevel, facilities: NDArray[np.integer]) -> None:
    """Prove that a file of redistricting units holds the housing units by occupancy, and all group quarters.

    Args:
        path: the file.
        occupancy: cell 0 vacant, 1 occupied.
        facilities: shape (blocks, 8): housing units, and facilities by kind.

    Raises:
        CheckError: the file is of another layout, or does not hold exactly these units.
        StorageError: the file cannot be opened.
    """
    keys, counts = _entries(occupancy, _PL94_UNITS.cells)
    quarters = np.asarray(facilities[:, 1:8], np.int64).sum(axis=1)
    (node,) = np.nonzero(quarters)
    keys = np.concatenate([keys, node * _PL94_UNITS.cells + 2])
    counts = np.concatenate([counts, quarters[node]])
    _compare(path, _PL94_UNITS, occupancy.geounits, *_merged(keys, counts))


def check_e2e_persons(path: Path, districts: SparseLevel) -> None:
    """Prove that a file of the persons of 1940 holds the histograms, with kinds of quarters as household or group.

    Args:
        path: the file.
        districts: the histograms that it was written from.

    Raises:
        CheckError: the file is of another layout, or does not hold exactly these persons.
        StorageError: the file cannot be opened.
    """
    cells = _E2E_PERSONS.cells
    node = np.repeat(np.arange(districts.nodes), np.diff(districts.node_ptr))
    kind, rest = np.divmod(districts.cell.astype(np.int64), cells // 2)
    keys = node * cells + (kind > 0) * (cells // 2) + rest
    _compare(path, _E2E_PERSONS, districts.geounits, *_merged(keys, districts.count.astype(np.int64)))


def _entries(level: SparseLevel, cells: int) -> tuple[_Ints, _Ints]:
    node = np.repeat(np.arange(level.nodes), np.diff(level.node_ptr))
    return node * cells + level.cell, level.count.astype(np.int64)


def _merged(keys: _Ints, counts: _Ints) -> tuple[_Ints, _Ints]:
    """Counts of equal keys added up, keys rising."""
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[starts], np.add.reduceat(counts, starts) if len(starts) else counts


def _compare(path: Path, layout: _Layout, geounits: NDArray[np.str_], keys: _Ints, counts: _Ints) -> None:
    found = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
    codes = geounits.astype(np.int64)
    for batch in _batches(path, layout):
        code = np.zeros(batch.num_rows, np.int64)
        for column, digits in layout.geocode.items():
            code = code * 10**digits + _numbers(batch.column(column), digits, path)
        node = np.minimum(np.searchsorted(codes, code), len(codes) - 1)
        _require(path, codes[node] == code, "with a geounit that there is not")
        cell = np.zeros(batch.num_rows, np.int64)
        for column, texts in layout.levels.items():
            cell = cell * len(texts) + _levels(batch.column(column), texts, path)
        found.append(np.unique(node * layout.cells + cell, return_counts=True))
    actual = _merged(*(np.concatenate(part) for part in zip(*found, strict=True)))
    if not (np.array_equal(keys, actual[0]) and np.array_equal(counts, actual[1])):
        raise CheckError(
            f"{path.name}: the rows are not those of the histograms that they were written from; fix: write the file again"
        )


def _batches(path: Path, layout: _Layout) -> Iterator[pa.RecordBatch]:
    wanted = [*layout.geocode, *layout.levels]
    try:
        with pc.open_csv(
            path,
            read_options=pc.ReadOptions(block_size=_BLOCK_BYTES),
            parse_options=pc.ParseOptions(delimiter="|", quote_char=False),
            convert_options=pc.ConvertOptions(column_types=dict.fromkeys(layout.header, pa.string())),
        ) as stream:
            if tuple(stream.schema.names) != layout.header:
                raise CheckError(f"{path.name}: the header must be {'|'.join(layout.header)}")
            for batch in stream:
                yield batch.select(wanted)
    except OSError:
        raise StorageError(f"{path.name}: the file cannot be read; check that it exists") from None
    except pa.ArrowInvalid:
        raise CheckError(f"{path.name}: rows without exactly {len(layout.header)} fields") from None


def _numbers(column: pa.Array, digits: int, path: Path) -> _Ints:
    encoded = column.dictionary_encode()
    texts = encoded.dictionary
    good = compute.match_substring_regex(texts, f"^[0-9]{{{digits}}}$").to_numpy(zero_copy_only=False)
    rows = encoded.indices.to_numpy()
    _require(path, good.astype(np.bool_)[rows], f"with a code that is not {digits} digits")
    return np.asarray(texts.cast(pa.int64()).to_numpy()[rows], np.int64)


def _levels(column: pa.Array, texts: Mapping[str, int], path: Path) -> _Ints:
    encoded = column.dictionary_encode()
    level = np.array([texts.get(text, -1) for text in encoded.dictionary.to_pylist()], np.int64)
    found = level[encoded.indices.to_numpy()]
    _require(path, found >= 0, "with a code outside the layout")
    return found


def _require(path: Path, good: NDArray[np.bool_], what: str) -> None:
    wrong = int(np.count_nonzero(~good))
    if wrong:
        raise CheckError(f"{path.name}: rows {what} ({wrong} rows); fix: write the file again")
