"""The blocks of files GRF-C: their tree, their identifiers, their areas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.geography.grfc import BLOCK_NUMBER, read_grfc
from censafe.geography.spines.tree import LevelRule, Spine, build_spine
from censafe.population.blocks.areas import AREA_COLUMNS, area_numbers, block_numbers
from censafe.population.blocks.cef_kernels import BlockTable, block_table
from censafe.population.blocks.layout import finding
from censafe.population.files.fixed_width import fixed_layout
from censafe.population.findings import Finding, merge_findings, raise_if_fatal

__all__ = ["BlockList", "read_grfc_blocks"]

_AREAS: Final = {kind: kind.upper() for kind in AREA_COLUMNS}
_BLOCK_TEXT: Final = fixed_layout("cef_unit").fields["OIDTB"].width


@dataclass(frozen=True, eq=False)
class BlockList:
    """Public. Blocks in geographic order.

    Args:
        spine: the tree over them.
        table: of their identifiers OIDTABBLK.
        areas: codes of areas by kind, in the order of the spine.
    """

    spine: Spine
    table: BlockTable
    areas: Mapping[str, NDArray[np.int32]]


def read_grfc_blocks(paths: tuple[Path, ...], rules: Sequence[LevelRule]) -> BlockList:
    """Read the blocks of some files GRF-C.

    Args:
        paths: the files, at least one.
        rules: levels of the spine, root first.

    Raises:
        DataError: everything that is wrong with the files.
        StorageError: a file cannot be opened.
    """
    found: list[Finding] = []
    codes, texts = [], []
    areas: dict[str, list[NDArray[np.int32]]] = {kind: [] for kind in _AREAS}
    for path in paths:
        table = read_grfc(path, ("OIDTABBLK", *BLOCK_NUMBER, *_AREAS.values()))
        codes.append(block_numbers(table, path.name, found))
        texts.append(_texts(table.column("OIDTABBLK"), path.name, found))
        for kind, name in _AREAS.items():
            column = table.column(name).combine_chunks()
            areas[kind].append(area_numbers(column, kind, (path.name, name), found))
    known, name = np.concatenate(codes), paths[0].name
    fix = "use the GRF-C file of the 2020 tabulation geography"
    found += finding(name, ", ".join(BLOCK_NUMBER), "duplicate", len(known) - len(np.unique(known)),
                     "blocks given twice", "one row a block", fix)  # fmt: skip
    raise_if_fatal(merge_findings(found), "block file GRF-C")
    spine = build_spine(known, rules)
    table, repeated = block_table(
        np.concatenate(texts), np.searchsorted(spine.leaf.codes, known).astype(np.int32)
    )
    raise_if_fatal(
        finding(name, "OIDTABBLK", "duplicate", repeated, "identifiers of blocks given twice", "one block an identifier", fix),
        "block file GRF-C",
    )  # fmt: skip
    order = np.argsort(known)
    return BlockList(spine, table, {kind: np.concatenate(parts)[order] for kind, parts in areas.items()})


def _texts(column: Any, name: str, found: list[Finding]) -> NDArray[np.uint8]:
    """Identifiers without blanks around them as bytes, shape (rows, characters of OIDTB), zeros behind."""
    import pyarrow.compute as pc

    texts = np.array(pc.utf8_trim_whitespace(column).fill_null("").to_pylist(), np.bytes_)
    width = texts.dtype.itemsize
    lengths = np.char.str_len(texts)
    wrong = int(np.count_nonzero((lengths == 0) | (lengths > _BLOCK_TEXT)))
    found += finding(name, "OIDTABBLK", "form", wrong, "identifiers that are empty or too long",
                     f"1 to {_BLOCK_TEXT} characters", "use the GRF-C file of the 2020 tabulation geography")  # fmt: skip
    out = np.zeros((len(texts), _BLOCK_TEXT), np.uint8)
    used = min(width, _BLOCK_TEXT)
    out[:, :used] = texts.view(np.uint8).reshape(len(texts), width)[:, :used]
    return out
