"""The blocks of files GRF-C, their tree and identifiers, and the areas of blocks.

Areas are American Indian areas, places and county subdivisions, from columns of text or from GRF-C.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.geography.geocodes import pack_geocodes
from censafe.geography.grfc import BLOCK_AREA_COLUMNS, BLOCK_NUMBER, BlockAreas, block_codes, read_grfc
from censafe.geography.identifiers import NO_AREA_WORDS, doubtful_blocks, no_area
from censafe.geography.spines.tree import LevelRule, Spine, build_spine
from censafe.population.blocks.lookup import BlockTable, block_table
from censafe.population.files.fixed_width import fixed_layout
from censafe.population.files.parquet import readable_texts
from censafe.population.findings import Finding, finding, merge_findings, raise_if_fatal, stated


def area_numbers(
    column: Any, kind: str, place: tuple[str, str], findings: list[Finding]
) -> NDArray[np.int32]:
    """Area codes as numbers, int32; those that say so are the code of none."""
    import pyarrow as pa

    digits, none = BLOCK_AREA_COLUMNS[kind]
    file, name = place
    allowed = f"{digits} digits as text; for none {none}, or {NO_AREA_WORDS}"
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        findings += stated("area.type", file, max(len(column), 1), column=name, allowed=allowed)
        return np.full(len(column), none, np.int32)
    encoded = column.fill_null("").dictionary_encode()
    texts = np.char.strip(np.array(readable_texts(encoded.dictionary), np.str_))
    numbers = np.where(no_area(texts), none, pack_geocodes(texts, digits))
    rows = encoded.indices.to_numpy()
    findings += stated("area.form", file, int((numbers < 0)[rows].sum()), column=name, allowed=allowed)
    return np.where(numbers < 0, none, numbers).astype(np.int32)[rows]


def in_order(columns: Mapping[str, NDArray[np.int32]], codes: NDArray[np.int64]) -> BlockAreas | None:
    """Areas from columns in the order of the blocks; kinds without a column are none everywhere.

    Args:
        columns: by kind, shape (blocks,).

    Example:
        >>> areas = in_order({"placefp": np.array([59000], np.int32)}, np.array([4400100010011000]))
        >>> areas.place.tolist(), areas.aiannh.tolist()
        ([59000], [9999])
    """
    if not columns:
        return None
    aiannh, place, cousub = (
        columns.get(kind, np.full(len(codes), none, np.int32))
        for kind, (_, none) in BLOCK_AREA_COLUMNS.items()
    )
    return BlockAreas(codes, aiannh, place, cousub)


def block_numbers(table: Any, file: str, findings: list[Finding]) -> NDArray[np.int64]:
    """Geocodes of 16 digits of the rows of GRF-C, as numbers; -1 where they are wrong."""
    codes = block_codes(table)
    findings += stated("grfc.form", file, int((codes < 0).sum()))
    findings += doubt_findings(file, ", ".join(BLOCK_NUMBER), codes)
    return codes


def doubt_findings(
    file: str,
    column: str,
    codes: NDArray[np.int64],
    short: NDArray[np.bool_] | None = None,
    rows: Any = slice(None),
    fix: str = "",
) -> list[Finding]:
    """Geocodes of blocks that are likely those of other ones.

    Args:
        codes: different geocodes, -1 for none, shape (n,).
        short: which of them had 15 digits, shape (n,); None for none.
        rows: place in `codes` of the geocode of each row.
    """
    short = np.zeros(len(codes), np.bool_) if short is None else short
    return [
        one
        for doubt in doubtful_blocks(codes, short)
        for one in finding(
            file,
            column,
            doubt.rule,
            int(doubt.rows[rows].sum()),
            doubt.problem,
            doubt.allowed,
            fix or doubt.fix,
        )
    ]


def areas_from_grfc(paths: tuple[Path, ...], codes: NDArray[np.int64], findings: list[Finding]) -> BlockAreas:
    """Areas of some blocks from GRF-C, which may have more blocks."""
    known, columns, _ = _read_blocks(paths, findings)
    order = np.argsort(known, kind="stable")
    known = known[order]
    name = paths[0].name
    repeated = int(np.count_nonzero((np.diff(known) == 0) & (known[1:] >= 0)))
    findings += stated("grfc.duplicate", name, repeated)
    place = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    missing = int(np.count_nonzero(known[place] != codes))
    findings += stated("grfc.missing", name, missing)
    rows = order[place]
    areas = in_order({kind: column[rows] for kind, column in columns.items()}, codes)
    if areas is None:
        raise ValueError("GRF-C has columns of areas")
    return areas


_BLOCK_TEXT: Final = fixed_layout("cef_unit").fields["OIDTB"].width


@dataclass(frozen=True, eq=False)
class BlockList:
    """Public. Blocks in geographic order."""

    spine: Spine
    table: BlockTable
    areas: Mapping[str, NDArray[np.int32]]


def read_grfc_blocks(paths: tuple[Path, ...], rules: Sequence[LevelRule]) -> BlockList:
    """Read the blocks of some files GRF-C."""
    findings: list[Finding] = []
    known, areas, texts = _read_blocks(paths, findings, ("OIDTABBLK",))
    name = paths[0].name
    findings += stated("grfc.duplicate", name, len(known) - len(np.unique(known)))
    raise_if_fatal(merge_findings(findings), "block file GRF-C")
    spine = build_spine(known, rules)
    table, repeated = block_table(
        np.concatenate(texts), np.searchsorted(spine.leaf.codes, known).astype(np.int32)
    )
    raise_if_fatal(stated("identifier.duplicate", name, repeated), "block file GRF-C")
    order = np.argsort(known)
    return BlockList(spine, table, {kind: column[order] for kind, column in areas.items()})


def _read_blocks(
    paths: tuple[Path, ...], findings: list[Finding], identifier: tuple[str, ...] = ()
) -> tuple[NDArray[np.int64], dict[str, NDArray[np.int32]], list[NDArray[np.uint8]]]:
    """Geocodes of the rows of some files GRF-C, their areas by kind, and their identifiers where these are read."""
    codes, texts = [], []
    areas: dict[str, list[NDArray[np.int32]]] = {kind: [] for kind in BLOCK_AREA_COLUMNS}
    for path in paths:
        table = read_grfc(path, (*identifier, *BLOCK_NUMBER, *map(str.upper, BLOCK_AREA_COLUMNS)))
        codes.append(block_numbers(table, path.name, findings))
        texts += [_texts(table.column(name), path.name, findings) for name in identifier]
        for kind, parts in areas.items():
            name = kind.upper()
            column = table.column(name).combine_chunks()
            parts.append(area_numbers(column, kind, (path.name, name), findings))
    return np.concatenate(codes), {kind: np.concatenate(parts) for kind, parts in areas.items()}, texts


def _texts(column: Any, name: str, findings: list[Finding]) -> NDArray[np.uint8]:
    """Identifiers without blanks around them as bytes, shape (rows, characters of OIDTB), zeros behind."""
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(column).fill_null("")
    texts = np.array(pc.if_else(pc.string_is_ascii(trimmed), trimmed, "").to_pylist(), np.bytes_)
    width = texts.dtype.itemsize
    lengths = np.char.str_len(texts)
    wrong = int(np.count_nonzero((lengths == 0) | (lengths > _BLOCK_TEXT)))
    findings += stated("identifier.form", name, wrong, width=_BLOCK_TEXT)
    out = np.zeros((len(texts), _BLOCK_TEXT), np.uint8)
    used = min(width, _BLOCK_TEXT)
    out[:, :used] = texts.view(np.uint8).reshape(len(texts), width)[:, :used]
    return out
