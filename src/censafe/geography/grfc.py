"""The Bureau's tabulation block file GRF-C, and the areas off the standard spine that it puts blocks in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError
from censafe.geography.geocodes import pack_geocodes

if TYPE_CHECKING:
    import pyarrow as pa


NO_AIANNH: Final = 9999
NO_PLACE: Final = 99999

BLOCK_AREA_COLUMNS: Final[Mapping[str, tuple[int, int]]] = {
    "aiannhce": (4, NO_AIANNH),
    "placefp": (5, NO_PLACE),
    "cousubfp": (5, NO_PLACE),
}
"""Digits of the codes of every kind of area, and the code of none."""

BLOCK_NUMBER: Final = ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK")
"""Columns of GRF-C that make the number of a block; the block group is the first digit of the last one."""

_BLOCK_DIGITS: Final = (2, 3, 6, 4)


@dataclass(frozen=True, eq=False)
class BlockAreas:
    """Areas of every block, in the order of the blocks of the standard spine.

    Args:
        codes: geocodes of 16 digits as numbers, rising; int64, shape (blocks,).
        aiannh: American Indian, Alaska Native or Hawaiian area, 9999 for none; int32, shape (blocks,).
        place: place, 99999 for none; int32, shape (blocks,).
        cousub: county subdivision, 99999 for none; int32, shape (blocks,).
        keys: by name of a crosswalk, a number for every block that is the same for all blocks of an area; int64, shape
            (blocks,). ``prim`` and ``districts`` (school districts) serve the spine of the DHC.
    """

    codes: NDArray[np.int64] = field(repr=False)
    aiannh: NDArray[np.int32] = field(repr=False)
    place: NDArray[np.int32] = field(repr=False)
    cousub: NDArray[np.int32] = field(repr=False)
    keys: Mapping[str, NDArray[np.int64]] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        columns: tuple[NDArray[Any], ...] = (self.aiannh, self.place, self.cousub, *self.keys.values())
        if any(len(column) != len(self.codes) for column in columns):
            raise ValueError("areas must have one value a block")


def read_grfc(
    path: Path, columns: tuple[str, ...], *, coded: bool = False, in_order: bool = False
) -> pa.Table:
    """Read some columns of a GRF-C file as text.

    Returns:
        Arrow table of text columns in the order of `columns`, one row a block.

    Source: layout of the 2020 tabulation geography (GRF-C), as DHC-A and S-DHC use it.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    names = column_names(path)
    _require_columns(path, names, columns, in_order=in_order)
    kind = pa.dictionary(pa.int32(), pa.string()) if coded else pa.string()
    try:
        table = arrow_csv.read_csv(
            path,
            parse_options=arrow_csv.ParseOptions(delimiter="|", quote_char=False),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=list(columns), column_types=dict.fromkeys(columns, kind)
            ),
        )
    except OSError:
        raise StorageError(f"{path.name}: the file cannot be read; check its permissions") from None
    except (pa.ArrowInvalid, pa.ArrowKeyError):  # the second where a line ends otherwise than the header
        raise DataError(
            f"{path.name}: rows differ from the header in their number of values, or are not UTF-8; allowed: "
            f"{len(names)} pipe-separated values a row; fix: copy the file again"
        ) from None
    if not table.num_rows:
        raise DataError(f"{path.name}: the file has no blocks; allowed: one row a block; fix: copy it again")
    return table


def _require_columns(path: Path, names: Sequence[str], columns: tuple[str, ...], *, in_order: bool) -> None:
    missing = [name for name in columns if name not in names]
    if missing:
        raise DataError(
            f"{path.name}: columns missing: {', '.join(missing)}; allowed: a pipe-delimited file with at least "
            f"{', '.join(columns)}; fix: use the GRF-C file of the 2020 tabulation geography"
        )
    repeated = [name for name in columns if names.count(name) > 1]
    if repeated:
        raise DataError(
            f"{path.name}: columns repeated: {', '.join(repeated)}; allowed: each column once; fix: use the GRF-C file of the "
            "2020 tabulation geography"
        )
    if in_order and [name for name in names if name in columns] != list(columns):
        raise DataError(
            f"{path.name}: columns in another order; allowed: in this order, "
            f"{', '.join(columns)}; fix: use the GRF-C file of the 2020 tabulation geography"
        )


def block_codes(table: pa.Table) -> NDArray[np.int64]:
    """Geocodes of 16 digits of the rows of GRF-C, as numbers.

    Returns:
        int64, shape (rows,); -1 where one of the columns has another form.

    Example:
        >>> import pyarrow as pa
        >>> columns = {"TABBLKST": ["44", "4"], "TABBLKCOU": ["001"] * 2, "TABTRACTCE": ["000100"] * 2, "TABBLK": ["2001"] * 2}
        >>> block_codes(pa.table(columns)).tolist()
        [4400100010022001, -1]
    """
    import pyarrow as pa

    codes = np.zeros(table.num_rows, np.int64)
    bad = np.zeros(table.num_rows, np.bool_)
    for name, digits in zip(BLOCK_NUMBER, _BLOCK_DIGITS, strict=True):
        column = table.column(name).combine_chunks()
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        texts = np.array([*encoded.dictionary.to_pylist(), ""], np.str_)
        part = pack_geocodes(texts, digits)[encoded.indices.fill_null(len(texts) - 1).to_numpy()]
        bad |= part < 0
        if name == "TABBLK":
            codes = codes * 10 + part // 1000
        codes = codes * 10**digits + part
    return np.where(bad, -1, codes)


def column_names(path: Path) -> list[str]:
    """Names of the columns of a GRF-C file, in their order."""
    try:
        with path.open("rb") as stream:
            line = stream.readline()
        if not line:
            raise DataError(f"{path.name}: the file is empty; fix: copy it again")
        return line.decode("utf-8-sig").strip().split("|")
    except OSError:
        raise StorageError(f"{path.name}: the file cannot be opened; check that it exists") from None
    except UnicodeDecodeError:
        raise DataError(f"{path.name}: the header is not UTF-8 text; fix: copy the file again") from None
