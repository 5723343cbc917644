"""Prims and school districts of blocks, from a crosswalk and the block file GRF-C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.crosswalk import read_crosswalk, rows_of_blocks
from censafe.geography.geocodes import pack_geocodes, unpack_geocodes
from censafe.geography.grfc import BLOCK_NUMBER, NO_PLACE, BlockAreas, block_codes, column_names, read_grfc
from censafe.geography.identifiers import NO_AREA_WORDS, no_area
from censafe.geography.spines.prim import prim_keys
from censafe.model.arrays import Integers

_STATUS: Final = ("PLACEFP", "PLACEFS", "COUSUBFP", "COUSUBFS")
_DISTRICTS: Final = ("SDUNILEA", "SDSECLEA", "SDELMLEA")
_FIVE: Final = 100_000
_NAMED: Final = 5


def with_prim_keys(areas: BlockAreas, grfc: Sequence[Path], crosswalk: Path | None = None) -> BlockAreas:
    """The areas of blocks with the keys of the spine of the DHC, and sentences on where they come from.

    The Prim of a block is that of the crosswalk. Without one, it follows from county subdivision and place with their functional
    status (:func:`censafe.geography.spines.prim.prim_keys`), where all files GRF-C have PLACEFP, PLACEFS, COUSUBFP and COUSUBFS;
    the rule sees all blocks of the files. Where they do not, there is no key, and the spine guesses. School districts are
    there where all files have SDUNILEA, SDSECLEA and SDELMLEA; blank ones are 99999.
    """
    headers = [frozenset(column_names(path)) for path in grfc]
    columns = frozenset.intersection(*headers) if headers else frozenset()
    keys: dict[str, Integers] = {}
    notes = []
    if crosswalk is not None:
        keys |= read_crosswalk(crosswalk, ("prim",), areas.codes)
        notes.append(f"Prims are those of the crosswalk {crosswalk.name}.")
    elif set(_STATUS) <= columns:
        notes.append(
            "No crosswalk of blocks to Prims was given: Prims were computed from GRF-C by the rule of the 2020 production (county, "
            "county subdivision, place, functional status)."
        )
    status = _STATUS if crosswalk is None and set(_STATUS) <= columns else ()
    districts = _DISTRICTS if set(_DISTRICTS) <= columns else ()
    if status or districts:
        keys |= _keys_of_files(grfc, (*status, *districts), areas.codes)
    return replace(areas, keys={**areas.keys, **keys}, notes=(*areas.notes, *notes))


def district_codes(areas: BlockAreas) -> tuple[Integers, Integers, Integers]:
    """Unified, secondary and elementary school district of every block, by its state; 99999 for none.

    Example:
        >>> none = np.full(1, 9999, np.int32)
        >>> key = {"districts": np.array([(601 * 100_000 + 99_999) * 100_000 + 99_999])}
        >>> district_codes(BlockAreas(np.array([2100004400100010]), none, none, none, key))
        (array([601]), array([99999]), array([99999]))
    """
    key = areas.keys["districts"]
    return key // _FIVE**2, key // _FIVE % _FIVE, key % _FIVE


def _keys_of_files(grfc: Sequence[Path], columns: tuple[str, ...], codes: Integers) -> dict[str, Integers]:
    files = [_keys_of_file(path, columns) for path in grfc]
    rows, repeated, missing = rows_of_blocks(np.concatenate([own for own, _ in files]), codes)
    _refuse(grfc[0], repeated, "blocks are given twice; allowed: one row a block")
    _refuse(grfc[0], missing, "blocks of the data are not here; allowed: every block of the data")
    return {name: np.concatenate([keys[name] for _, keys in files])[rows] for name in files[0][1]}


def _keys_of_file(path: Path, columns: tuple[str, ...]) -> tuple[Integers, dict[str, Integers]]:
    """Blocks of one file in the order of its rows, and their keys by the rule: a county is whole in one file."""
    table = read_grfc(path, (*BLOCK_NUMBER, *columns), coded=True).unify_dictionaries()
    codes = block_codes(table)
    if (codes < 0).any():
        raise DataError(
            f"{path.name}: {', '.join(BLOCK_NUMBER)}: {int((codes < 0).sum())} codes of another form; allowed: 2, 3, 6 and 4 digits; "
            "fix: use the GRF-C file of the 2020 tabulation geography"
        )
    keys = {}
    if set(_STATUS) <= set(columns):
        place_status, cousub_status = (_letters(table, name, path) for name in ("PLACEFS", "COUSUBFS"))
        place, cousub = (_five(table, name, path) for name in ("PLACEFP", "COUSUBFP"))
        keys["prim"] = prim_keys(codes, place, place_status, cousub, cousub_status)
    if set(_DISTRICTS) <= set(columns):
        unified, secondary, elementary = (_five(table, name, path) for name in _DISTRICTS)
        keys["districts"] = (unified * _FIVE + secondary) * _FIVE + elementary
    return codes, keys


def _coded(table: Any, name: str) -> tuple[NDArray[np.str_], NDArray[np.integer]]:
    """Different texts of a column without blanks around them, and which of them every row has."""
    column = table.column(name).combine_chunks()
    texts = np.char.strip(np.array([*column.dictionary.to_pylist(), ""], np.str_))
    return texts, column.indices.fill_null(len(texts) - 1).to_numpy()


def _five(table: Any, name: str, path: Path) -> Integers:
    """Codes of five digits as numbers; 99999 for none."""
    texts, row = _coded(table, name)
    numbers = np.where(no_area(texts), NO_PLACE, pack_geocodes(texts, 5))
    _check(path, name, int((numbers < 0)[row].sum()), f"5 digits; for none {NO_AREA_WORDS}")
    codes: Integers = numbers[row]
    return codes


def _letters(table: Any, name: str, path: Path) -> NDArray[np.str_]:
    """Functional status: one letter or none."""
    texts, row = _coded(table, name)
    wrong = (np.char.str_len(texts) > 1) | ((texts != "") & ~np.char.isupper(texts))
    _check(path, name, int(wrong[row].sum()), "one capital letter, blank for none")
    return texts.astype("U1")[row]


def _check(path: Path, name: str, rows: int, allowed: str) -> None:
    if rows:
        raise DataError(
            f"{path.name}: {name}: {rows} rows have codes of another form; allowed: {allowed}; fix: use the GRF-C file of the 2020 "
            "tabulation geography"
        )


def _refuse(path: Path, wrong: Integers, what: str) -> None:
    if len(wrong):
        some = ", ".join(unpack_geocodes(wrong[:_NAMED], 16).tolist())
        raise DataError(
            f"{path.name}: {len(wrong)} {what}; such as {some}; fix: use the GRF-C file of the 2020 tabulation geography"
        )
