"""CONFIDENTIAL. Persons from the files that users have: a table of persons, a folder of DHC records, or published DHC microdata."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from censafe.attack.people import OLDEST, RACE_BITS, RACES, People
from censafe.errors import DataError, StorageError
from censafe.geography.files import TEXT, PackedFile, packed_files, read_table, read_validated
from censafe.geography.grfc import BLOCK_NUMBER, read_grfc
from censafe.geography.identifiers import later_names
from censafe.model.folders import matching_files
from censafe.results.microdata import text_header

_NEEDED: Final = ("block", "sex", "age", "race", "hispanic")
_RACE_FLAGS: Final = ("white", "black", "aian", "asian", "nhpi", "sor")
_SEXES: Final = {"1": 0, "M": 0, "MALE": 0, "2": 1, "F": 1, "FEMALE": 1}
_YES: Final = {"0": 0, "N": 0, "NO": 0, "1": 1, "Y": 1, "YES": 1}
_DIGITS: Final = 18  # of a number that fits 64 bits
_MOST_MAFID: Final = 999_999_999
_DHC_OLDEST: Final = 115  # of the DHC's records; ages over 110 are one class in its tables
_MICRODATA: Final = ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK", "QSEX", "QAGE", "CENHISP", "CENRACE")
_DISTRICTS: Final = (*_MICRODATA[:4], "VOTING_AGE", "CENHISP", "CENRACE")
_PERSON: Final = ("QSEX", "QAGE")
_WORDS: Final = (
    "allowed: a CSV or Parquet file with the columns block, sex, age, race (or white, black, aian, asian, nhpi, sor) and hispanic, and if known person_id and "
    "household_id; a folder with persons.parquet, units.parquet and GRF-C*.txt as `censafe synth` writes it with the layout dhc; a finished run of "
    "the DHC; its microdata persons.txt; or, to reconstruct records, published tables of blocks"
)


def read_people(path: Path) -> People:
    """Persons of a file or folder.

    Race is a code 1 to 63 in the order of the Bureau's CENRACE, or six columns of yes and no; Hispanic is no or yes; sex is 1 (male) or 2 (female), or M or F;
    yes and no are 1 and 0, Y and N.
    """
    if (path / "units.parquet").exists():
        return _records(path)
    file = _microdata_file(path, _PERSON)
    if file is None and _microdata_file(path, ("VOTING_AGE",)) is not None:
        raise DataError(
            f"{path}: columns missing: {', '.join(_PERSON)}; microdata without sex and age, as those of the redistricting data, cannot be attacked; {_WORDS}"
        )
    if file is None and path.is_dir():
        raise DataError(f"{path}: there are no persons in this folder; {_WORDS}")
    table = read_table_file(file or path)
    missing = [name for name in _MICRODATA if name not in table.column_names]
    if file is not None and missing:
        raise DataError(f"{file}: columns missing: {', '.join(missing)}; {_WORDS}")
    if not missing:
        return People.of(_block_codes(table), **_codes(table, file or path))
    return _persons(table, path, _race(table, path))


def _microdata_file(path: Path, columns: tuple[str, ...]) -> PackedFile | None:
    """The file of microdata with some columns, of a file, folder or archive, or of a run folder; None without one."""
    place = path / "microdata" if (path / "microdata").is_dir() else path
    texts = [one for one in packed_files(place) if one.suffix in TEXT and (one.suffix or place.is_file())]
    files = [one for one in texts if {*_MICRODATA[:4], *columns} <= set(text_header(one).names)]
    if len(files) > 1:
        raise DataError(
            f"{path}: {len(files)} files of persons ({', '.join(map(str, files[:3]))}); allowed: one, such as that of a state; fix: give this file"
        )
    return files[0] if files else None


def read_voting_age(path: Path) -> People | None:
    """Persons of the microdata of the redistricting data: children as 0 and adults as 18 years old, without sex; None where the path holds something else."""
    file = _microdata_file(path, ("VOTING_AGE",))
    if file is None or "QAGE" in text_header(file).names:
        return None
    table = read_table_file(file)
    missing = [name for name in _DISTRICTS if name not in table.column_names]
    if missing:
        raise DataError(f"{file}: columns missing: {', '.join(missing)}; fix: give microdata with them")
    columns = {
        "sex": np.zeros(len(table), np.int64),
        "age": 18 * _coded(table, "VOTING_AGE", {"1": 0, "2": 1}, file),
        "race": _numbers(table, "CENRACE", file, RACES) - 1,
        "hispanic": _coded(table, "CENHISP", {"1": 0, "2": 1}, file),
    }
    return People.of(_block_codes(table), **columns)


def read_attacker(path: Path) -> People:
    """An attacker's file: the columns person_id, block, sex and age. Its races and origins are 0 and mean nothing."""
    table = read_table_file(path)
    if "person_id" not in table.column_names:
        raise DataError(
            f"{path}: an attacker's file needs the columns person_id, block, sex and age; column missing: person_id"
        )
    if "hispanic" not in table.column_names:
        table = table.append_column("hispanic", pa.array(["0"] * len(table)))
    return _persons(table, path, np.zeros(len(table), np.int8))


def read_table_file(path: Path | PackedFile, words: str = _WORDS) -> pa.Table:
    """Rows of a text file, as text, or of a Parquet file; also packed."""
    try:
        table = read_table(path, "the table")
    except (DataError, StorageError) as error:
        raise type(error)(f"{error}; {words}") from error
    return _flat(table.rename_columns(later_names(table.column_names)), path)


def _flat(table: pa.Table, path: Path | PackedFile) -> pa.Table:
    """A table whose columns hold one text or number a row, none of them twice."""
    names = table.column_names
    kinds = zip(names, table.schema.types, strict=True)
    odd = [name for name, kind in kinds if pa.types.is_nested(kind) or pa.types.is_binary(kind)]
    odd += sorted({name for name in names if names.count(name) > 1})
    if odd:
        raise DataError(
            f"{path}: columns that are there twice, or hold lists or bytes: {', '.join(odd)}; allowed: texts and numbers; fix: correct the columns"
        )
    return table


def _persons(table: pa.Table, path: Path, race: NDArray[np.int64]) -> People:
    missing = [name for name in _NEEDED if name not in table.column_names and name != "race"]
    if missing:
        raise DataError(f"{path}: columns missing: {', '.join(missing)}; {_WORDS}")
    columns = {
        "sex": _coded(table, "sex", _SEXES, path),
        "age": _numbers(table, "age", path, OLDEST),
        "race": race,
        "hispanic": _coded(table, "hispanic", _YES, path),
    }
    for name, column in (("person", "person_id"), ("household", "household_id")):
        if column in table.column_names:
            columns[name] = _names(table[column])
    return People.of(column_texts(table["block"]), **columns)


def _race(table: pa.Table, path: Path) -> NDArray[np.int64]:
    if "race" in table.column_names:
        return _numbers(table, "race", path, RACES) - 1
    missing = [name for name in _RACE_FLAGS if name not in table.column_names]
    if missing:
        raise DataError(f"{path}: columns missing: race, or else {', '.join(missing)}; {_WORDS}")
    flags = np.stack([_coded(table, name, _YES, path) for name in _RACE_FLAGS], axis=1)
    number = np.full(64, -1)
    number[RACE_BITS @ (1 << np.arange(6))] = np.arange(RACES)
    return np.asarray(number[flags @ (1 << np.arange(6))])


def column_texts(column: pa.ChunkedArray) -> NDArray[np.str_]:
    """A column as text; empty where it is null."""
    return np.asarray(pc.cast(column, pa.string()).fill_null("").to_numpy(zero_copy_only=False), np.str_)


def _names(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Identifiers as numbers; -1 where there is none."""
    texts = column_texts(column)
    numbers = np.unique(texts, return_inverse=True)[1].ravel().astype(np.int64)
    if np.char.isdecimal(texts).all() and np.char.str_len(texts).max(initial=0) <= _DIGITS:
        numbers = texts.astype(np.int64)
    return np.where(texts == "", -1, numbers)


def _coded(
    table: pa.Table, name: str, codes: Mapping[str, int], path: Path | PackedFile
) -> NDArray[np.int64]:
    texts, place = np.unique(np.char.upper(column_texts(table[name])), return_inverse=True)
    values = np.array([codes.get(text, -1) for text in texts.tolist()])
    wrong = int((values[place.ravel()] < 0).sum())
    if wrong:
        raise DataError(
            f"{path}: {wrong:,} persons without a valid {name}; allowed: {', '.join(codes)}; fix: correct or leave out these records"
        )
    return values[place.ravel()]


def _numbers(
    table: pa.Table, name: str, path: Path | PackedFile, most: int, least: int = 0
) -> NDArray[np.int64]:
    texts = column_texts(table[name])
    valid = np.char.isdecimal(texts) & (np.char.str_len(texts) <= _DIGITS)
    numbers = np.where(valid, texts, "-1").astype(np.int64)
    wrong = int(((numbers < least) | (numbers > most)).sum())
    if wrong:
        allowed = f"whole numbers up to {most}" if not least else f"whole numbers from {least} to {most}"
        raise DataError(
            f"{path}: {wrong:,} persons without a valid {name}; allowed: {allowed}; fix: correct or leave out these records"
        )
    return numbers


def _block_codes(table: pa.Table) -> NDArray[np.str_]:
    """State, county, tract and block of every row of microdata."""
    block = column_texts(table["TABBLKST"])
    for name in _MICRODATA[1:4]:
        block = np.char.add(block, column_texts(table[name]))
    return block


def _codes(table: pa.Table, path: Path | PackedFile) -> dict[str, NDArray[Any]]:
    """Sex, age, race and origin from the Bureau's codes."""
    return {
        "sex": _numbers(table, "QSEX", path, 2, 1) - 1,
        "age": np.minimum(_numbers(table, "QAGE", path, _DHC_OLDEST), OLDEST),
        "race": _numbers(table, "CENRACE", path, RACES, 1) - 1,
        "hispanic": _numbers(table, "CENHISP", path, 2, 1) - 1,
    }


def _records(folder: Path) -> People:
    """Persons of DHC records; the units and GRF-C say in which block they live."""
    grfc = matching_files(folder, "GRF-C*.txt")
    if not grfc:
        raise DataError(f"{folder}: GRF-C*.txt is missing, which names the blocks; {_WORDS}")
    try:
        persons = read_validated(folder / "persons.parquet", columns=["MAFID", "RTYPE", *_MICRODATA[4:]])
        units = read_validated(folder / "units.parquet", columns=["MAFID", "OIDTB"])
        persons, units = _flat(persons, folder / "persons.parquet"), _flat(units, folder / "units.parquet")
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise DataError(
            f"{folder}: persons.parquet and units.parquet cannot be read with the columns of DHC records; {_WORDS}"
        ) from error
    blocks = pa.concat_tables([read_grfc(one, ("OIDTABBLK", *BLOCK_NUMBER)) for one in grfc])
    code = column_texts(blocks[BLOCK_NUMBER[0]])
    for name in BLOCK_NUMBER[1:]:
        code = np.char.add(code, column_texts(blocks[name]))
    place = _places(column_texts(blocks["OIDTABBLK"]), column_texts(units["OIDTB"]))
    of_units, of_persons = (
        _numbers(table, "MAFID", folder / f"{name}.parquet", _MOST_MAFID)
        for table, name in ((units, "units"), (persons, "persons"))
    )
    own = _places(of_units, of_persons)
    household = np.where(column_texts(persons["RTYPE"]) == "3", of_persons, -1)
    codes = _codes(persons, folder / "persons.parquet")
    return People.of(code[place[own]], **codes, person=np.arange(len(persons)), household=household)


def _places(names: NDArray[Any], references: NDArray[Any]) -> NDArray[np.int64]:
    if not len(names):
        raise DataError("there are no units or blocks in the files; fix: copy the files again")
    order = np.argsort(names, kind="stable")
    places = order[np.minimum(np.searchsorted(names[order], references), len(names) - 1)]
    missing = int((names[places] != references).sum())
    if missing:
        raise DataError(
            f"{missing:,} records name a unit or block that is not in the files; fix: give the files of one delivery"
        )
    return np.asarray(places)
