"""Block histograms from a state's published P.L. 94-171 files in the legacy layout."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.files import PackedFile
from censafe.geography.geocodes import pack_geocodes
from censafe.geography.spines.tree import build_spine
from censafe.geography.summary_files import (
    GEO_FIELDS,
    GEOCODE,
    LOGRECNO,
    NAME,
    SEGMENT_FILE,
    SEGMENT_KEYS,
    SEGMENT_LOGRECNO,
    STUSAB,
    SUMLEV,
    read_fields,
)
from censafe.model.folders import matching_files
from censafe.model.topdown.pl94 import GQ_ITEMS, RACE_ITEMS, TABLE_ITEMS
from censafe.population.blocks.areas import area_numbers, doubt_findings, in_order
from censafe.population.blocks.imputation import CHUNK, RULE, block_cells, imputed_cells
from censafe.population.blocks.layout import (
    BlockData,
    HistogramLayout,
    facility_findings,
    histograms_of,
    no_persons,
    occupancy_of,
)
from censafe.population.findings import Finding, raise_if_fatal, stated

_Ints = NDArray[np.int64]


_FILE = 6
_NAMED = (
    "040",
    "050",
    "060",
    "140",
    "150",
    "160",
)  # summary levels whose names are read; those of blocks repeat their codes
_BLOCK_PARTS = (
    (12, 2),
    (14, 3),
    (32, 6),
    (33, 1),
    (34, 4),
)  # field (from 0) and digits of the parts of a geocode
_AREA_FIELDS = {"aiannhce": (35, "AIANHH"), "placefp": (29, "PLACE"), "cousubfp": (17, "COUSUB")}
_SEGMENTS: tuple[tuple[str, ...], ...] = (("P1", "P2"), ("P3", "P4", "H1"), ("P5",))
_SHAPE = (8, 2, 2, 63)
_FACILITIES = "number of facilities: one for each kind of group quarters that has persons in a block"
_Tables = dict[str, NDArray[np.int32]]


@dataclass(frozen=True, eq=False)
class _Header:
    """What the header says.

    Args:
        records: logical record numbers of all summary levels, sorted.
    """

    state: str
    records: _Ints
    blocks: _Ints
    codes: _Ints
    areas: dict[str, NDArray[np.int32]]
    names: dict[str, str]


def find_legacy(folder: Path) -> tuple[Path, ...]:
    """The header and the three segments in a folder, or nothing."""
    names = ("geo", "00001", "00002", "00003")
    matches = [matching_files(folder, f"??{name}*.pl") for name in names]
    if not any(matches):
        return ()
    older = [
        path.name
        for files in matches
        for path in files
        if re.search(r"20[01]0\.pl$", path.name, re.IGNORECASE)
    ]
    if older:
        raise DataError(
            f"{folder}: {older[0]} is of the vintage {older[0][-7:-3]}, whose header has fixed widths and whose tables are other ones; allowed: the P.L. 94-171 "
            "files of 2020 (??geo2020.pl, ??000012020.pl, ??000022020.pl, ??000032020.pl)"
        )
    if any(len(files) != 1 for files in matches):
        raise DataError(
            f"{folder}: {', '.join(str(len(files)) for files in matches)} files named ??geo*.pl, ??00001*.pl, ??00002*.pl and "
            "??00003*.pl; allowed: one of each; fix: keep one state's header and three segments in the folder"
        )
    return tuple(files[0] for files in matches)


def read_legacy(places: tuple[Path | PackedFile, ...], layout: HistogramLayout) -> BlockData:
    """Read the block records (summary level 750) of a state, from its header and its three segments.

    Source:
        2020 Census P.L. 94-171 technical documentation, legacy format; tables P1 to P5 and H1.
    """
    files = tuple(one if isinstance(one, PackedFile) else PackedFile(one) for one in places)
    if layout.schema is not None and layout.schema.shape != _SHAPE:
        raise DataError(
            f"{files[0].path.parent}: P.L. 94-171 files hold hhgq x votingage x hispanic x cenrace (8 x 2 x 2 x 63), which is not the "
            f"schema {layout.schema.name}; fix: give a histogram file"
        )
    header = _header(files[0])
    order = np.argsort(header.codes)
    tables = {
        table: values
        for number, path in enumerate(files[1:])
        for table, values in _segment(path, number, header, header.blocks[order]).items()
    }
    spine = build_spine(header.codes, layout.rules)
    raise_if_fatal(
        [*_sum_findings(tables, files), *no_persons(files[1].name, int(tables["P1"][:, 0].sum()))],
        "P.L. 94-171 tables",
    )
    housing, occupied = tables["H1"][:, 0].astype(np.int64), tables["H1"][:, 1].astype(np.int64)
    present = (tables["P5"][:, list(GQ_ITEMS)] > 0).astype(np.int64)
    facilities = np.column_stack([housing, present])[:, : len(layout.unit_columns)].astype(np.int32)
    persons, imputed = None, [_FACILITIES] if len(layout.unit_columns) > 1 else []
    if layout.schema is not None:
        keys, counts, failed = imputed_cells(tables)
        raise_if_fatal(stated("tables.quarters", files[3].name, failed), "P.L. 94-171 tables")
        persons = histograms_of(spine, keys, counts, layout.schema.cells)[0]
        imputed.insert(0, RULE)
        names = (files[1].name, files[2].name)
        raise_if_fatal(facility_findings(persons, facilities, layout, names), "P.L. 94-171 tables")
    occupancy = occupancy_of(spine, housing, occupied) if layout.occupied else None
    areas = in_order({kind: column[order] for kind, column in header.areas.items()}, spine.leaf.codes)
    paths = tuple(dict.fromkeys(one.path for one in files))
    return BlockData(spine, persons, facilities, occupancy, tuple(imputed), paths, areas, names=header.names)


def _header(path: PackedFile) -> _Header:
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = (field for field, _ in _BLOCK_PARTS)
    fields = (
        STUSAB,
        SUMLEV,
        _FILE,
        LOGRECNO,
        GEOCODE,
        NAME,
        *parts,
        *(field for field, _ in _AREA_FIELDS.values()),
    )
    table = read_fields(path, GEO_FIELDS, dict.fromkeys(fields, pa.string()))
    all_records = np.sort(_numbers(_texts(table, LOGRECNO)))
    state = str(table.column(f"f{STUSAB}")[0]) if table.num_rows else ""
    wrong = _marker_findings(path.name, table, state, _FILE, "00")
    named = table.filter(pc.is_in(table.column(f"f{SUMLEV}"), pa.array(_NAMED)))
    names = dict(zip(_texts(named, GEOCODE).tolist(), _texts(named, NAME).tolist(), strict=True))
    table = table.filter(pc.equal(table.column(f"f{SUMLEV}"), "750"))
    if not table.num_rows:
        raise DataError(f"{path.name}: no block records; allowed: records of summary level 750")
    codes = np.zeros(table.num_rows, np.int64)
    bad = np.zeros(table.num_rows, np.bool_)
    for field, digits in _BLOCK_PARTS:
        part = pack_geocodes(_texts(table, field), digits)
        bad |= part < 0
        codes = codes * 10**digits + np.maximum(part, 0)
    records = _numbers(_texts(table, LOGRECNO))
    repeated = int(np.count_nonzero((np.diff(all_records) == 0) & (all_records[1:] >= 0)))
    findings = wrong
    areas = {
        kind: area_numbers(table.column(f"f{field}").combine_chunks(), kind, (path.name, name), findings)
        for kind, (field, name) in _AREA_FIELDS.items()
    }
    findings += stated("header.form", path.name, int(bad.sum()))
    findings += doubt_findings(
        path.name, "STATE, COUNTY, BLKGRP, BLOCK", np.where(bad, -1, codes), fix="copy the file again"
    )
    findings += stated("header.duplicate", path.name, repeated)
    findings += stated("record.form", path.name, int((all_records < 0).sum()))
    raise_if_fatal(findings, "P.L. 94-171 header")
    return _Header(state, all_records, records, codes, areas, names)


def _marker_findings(name: str, table: Any, state: str, field: int, number: str) -> list[Finding]:
    """Records of another state than that of the header, or of another file than the name says."""
    others = int(np.count_nonzero(_texts(table, STUSAB) != state))
    files = int(np.count_nonzero(np.char.zfill(_texts(table, field), 2) != number))
    return stated("segment.state", name, others) + stated("segment.file-number", name, files, number=number)


def _texts(table: Any, field: int) -> NDArray[np.str_]:
    return np.array(table.column(f"f{field}").to_pylist(), np.str_)


def _numbers(texts: NDArray[np.str_]) -> _Ints:
    digits = 7
    return pack_geocodes(np.char.zfill(texts, digits), digits)


def _segment(path: PackedFile, number: int, header: _Header, records: _Ints) -> _Tables:
    """Tables of a segment, from 0, with rows in the order of the records asked for."""
    import pyarrow as pa

    names = _SEGMENTS[number]
    items = [TABLE_ITEMS[name] for name in names]
    fields = SEGMENT_KEYS + sum(items)
    keys = dict.fromkeys((STUSAB, SEGMENT_FILE, SEGMENT_LOGRECNO), pa.string())
    types = {**keys, **dict.fromkeys(range(SEGMENT_KEYS, fields), pa.int32())}
    table = read_fields(path, fields, types)
    numbers = _numbers(_texts(table, SEGMENT_LOGRECNO))
    unknown = int(np.count_nonzero(~np.isin(numbers, header.records)))
    order = np.argsort(numbers, kind="stable")
    place = np.minimum(np.searchsorted(numbers[order], records), len(order) - 1)
    rows = order[place]
    missing = int((numbers[rows] != records).sum())
    twice = int((np.searchsorted(numbers[order], records, side="right") - place > 1).sum())
    findings = _marker_findings(path.name, table, header.state, SEGMENT_FILE, f"{number + 1:02}")
    findings += stated("segment.no-header", path.name, unknown)
    findings += stated("segment.missing", path.name, missing)
    findings += stated("segment.duplicate", path.name, twice)
    raise_if_fatal(findings, "P.L. 94-171 segment")
    tables = {}
    start = SEGMENT_KEYS
    for name, width in zip(names, items, strict=True):
        columns = [table.column(f"f{field}").to_numpy()[rows] for field in range(start, start + width)]
        tables[name] = np.stack(columns, axis=1)
        start += width
    return tables


def _sum_findings(tables: _Tables, files: tuple[PackedFile, ...]) -> list[Finding]:
    """Totals that are not the sums of their items, and negative items."""
    findings: list[Finding] = []
    place = {name: path.name for path, names in zip(files[1:], _SEGMENTS, strict=True) for name in names}
    for name, values in tables.items():
        findings += stated("tables.negative", place[name], int((values < 0).any(axis=1).sum()), column=name)
    for name, wrong in _wrong_sums(tables).items():
        findings += stated("tables.sums", place[name], int(wrong.sum()), column=name)
    blocks = len(tables["P1"])
    negative = sum(
        int((block_cells(tables, slice(first, first + CHUNK)) < 0).any(axis=(1, 2)).sum())
        for first in range(0, blocks, CHUNK)
    )
    return findings + stated("tables.cells", place["P4"], negative)


def _wrong_sums(tables: _Tables) -> dict[str, NDArray[np.bool_]]:
    """By table, the blocks whose total is not the sum of the items below it, or not that of the table it repeats."""
    races, kinds = np.array(RACE_ITEMS), list(GQ_ITEMS)
    p1, p2, p3, p4 = (tables[name] for name in ("P1", "P2", "P3", "P4"))
    wrong = {name: tables[name][:, 0] != tables[name][:, races].sum(axis=1) for name in ("P1", "P3")}
    for name, table, base in (("P2", p2, p1), ("P4", p4, p3)):
        parts = table[:, 1] + table[:, races + 2].sum(axis=1)
        wrong[name] = (table[:, 0] != parts) | (table[:, 0] != base[:, 0])
    wrong["P5"] = tables["P5"][:, 0] != tables["P5"][:, kinds].sum(axis=1)
    wrong["H1"] = tables["H1"][:, 0] != tables["H1"][:, 1:].sum(axis=1)
    return wrong
