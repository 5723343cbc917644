"""Summary files of the Census Bureau: for every state a geographic header of 97 fields and numbered segments, joined on LOGRECNO.

Source: 2020 Census P.L. 94-171 and DHC technical documentation (legacy format).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as pa_csv

from censafe.errors import DataError, StorageError
from censafe.geography.files import PackedFile

GEO_FIELDS: Final = 97
STUSAB, SUMLEV, GEOCOMP, LOGRECNO, GEOCODE, NAME = 1, 2, 4, 7, 9, 87
"""Fields of the header, from 0; STUSAB is that of a segment as well."""
AIANHH: Final = 35
SEGMENT_KEYS, SEGMENT_FILE, SEGMENT_LOGRECNO = 5, 3, 4
"""Fields of a segment before its cells, and of these the number of the file and LOGRECNO, from 0."""
_NAME: Final = re.compile(
    r"(?P<state>[a-z]{2})(?P<part>geo|[0-9]{5})(?P<year>20[0-9]{2})[^.]*\.(?P<product>pl|dhc)", re.IGNORECASE
)
_BLOCK: Final = 1 << 22  # bytes
_FIXED_WIDTH: Final = ("2000", "2010")


@dataclass(frozen=True)
class StateFiles:
    """The files of one state.

    Args:
        state: postal code in small letters.
        product: ending of the files: ``pl`` or ``dhc``.
        segments: by their numbers, from 1.
    """

    state: str
    product: str
    header: PackedFile | None = None
    segments: Mapping[int, PackedFile] = field(default_factory=dict)


def state_files(files: Iterable[PackedFile]) -> tuple[StateFiles, ...]:
    """The summary files among some files, by state; the names are those of the Bureau, in letters of any case.

    Raises:
        DataError: files of a vintage whose header has fixed widths, or two files of one part.
    """
    by_state: dict[tuple[str, str], dict[int, PackedFile]] = {}
    for file in files:
        name = _NAME.fullmatch(file.name)
        if name is None:
            continue
        if name["year"] in _FIXED_WIDTH:
            raise DataError(
                f"{file} is of the vintage {name['year']}, whose header has fixed widths and whose tables are other ones; allowed: the files of 2020"
            )
        number = 0 if name["part"].lower() == "geo" else int(name["part"])
        own = by_state.setdefault((name["state"].lower(), name["product"].lower()), {})
        if number in own:
            raise DataError(
                f"{own[number]}, {file}: two files of one part; fix: keep the files of one release"
            )
        own[number] = file
    return tuple(
        StateFiles(state, product, own.get(0), {number: file for number, file in own.items() if number})
        for (state, product), own in sorted(by_state.items())
    )


def read_fields(
    file: PackedFile, fields: int, types: Mapping[int, pa.DataType], *, empty: bool = False
) -> Any:
    """Some fields, named f0, f1, ..., of a pipe-delimited file without a line of names; see :func:`read_batches`."""
    return pa.Table.from_batches(list(read_batches(file, fields, types, empty=empty)))


def read_batches(
    file: PackedFile, fields: int, types: Mapping[int, pa.DataType], *, empty: bool = False
) -> Iterator[Any]:
    """The same, some lines at a time.

    Args:
        fields: of every line.
        types: of the fields that are read, by their places from 0.
        empty: whether a number may be missing.
    """
    rows = 0
    names = [f"f{place}" for place in range(fields)]
    try:
        with file.open() as stream:
            if not stream.read(1):
                raise DataError(f"{file.name}: the file is empty; fix: copy it again")
            stream.seek(0)
            for batch in pa_csv.open_csv(
                pa.BufferReader(stream.read()) if file.packing else file.path,
                read_options=pa_csv.ReadOptions(column_names=names, encoding="latin1", block_size=_BLOCK),
                parse_options=pa_csv.ParseOptions(delimiter="|", quote_char=False),
                convert_options=pa_csv.ConvertOptions(
                    include_columns=[f"f{place}" for place in types],
                    column_types={f"f{place}": kind for place, kind in types.items()},
                    null_values=[""] if empty else [],
                    strings_can_be_null=False,
                ),
            ):
                rows += batch.num_rows
                yield batch
    except OSError:
        raise StorageError(f"{file.name}: the file cannot be read; check that it exists") from None
    except pa.ArrowInvalid:
        raise DataError(
            f"{file.name}: lines without exactly {fields} fields, or items that are not {'numbers' if empty else 'whole numbers'}; allowed: {fields} pipe-separated fields a line, no header "
            "line; fix: copy the file again"
        ) from None
    if not rows:
        raise DataError(f"{file.name}: the file has blank lines only; fix: copy it again")
