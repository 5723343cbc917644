"""Characteristics and areas that a user defines in a TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from censafe.errors import ConfigError, DataError
from censafe.evaluation.areas.areas import ComparedAreas
from censafe.evaluation.counts.cell_sets import CellSets, read_cell_sets, shipped_cell_sets
from censafe.geography.spines.tree import Spine
from censafe.model import ProtectedUnit
from censafe.model.entries import is_texts, refuse_unknown_keys
from censafe.model.parsing import read_toml
from censafe.model.topdown.histograms import HistogramSchema

_KEYS: Final = ("characteristics", "queries", "areas", "attributes", "aliases")
_CHARACTERISTIC: Final = ("name", "label", "sets", "universe", "record")
_AREAS: Final = ("kind", "codes")
_RECORDS: Final = ("person", "household")


@dataclass(frozen=True)
class Characteristic:
    """Records that are counted: those in every one of some sets of cells."""

    name: str
    label: str
    sets: tuple[str, ...] = ()
    universe: str = "Total population"
    record: ProtectedUnit = ProtectedUnit.PERSON

    def why_unmeasured(self, schema: HistogramSchema, sets: CellSets) -> str:
        """Why a schema cannot count it; empty where it can."""
        if self.record is not schema.record:
            return f"{schema.name} holds no {self.record.value} records"
        missing = sets.unmeasured(schema, self.sets)
        return f"{schema.name} does not tell: {', '.join(missing)}" if missing else ""


@dataclass(frozen=True)
class DefinedAreas:
    """Areas as unions of geounits.

    Args:
        codes: by name of the area, first digits of the geocodes of its blocks, such as those of a county.
    """

    kind: str
    codes: Mapping[str, tuple[str, ...]]

    def areas(self, spine: Spine) -> ComparedAreas:
        """The areas over the blocks of a spine."""
        texts = spine.leaf.geounits
        of_block = np.full(len(texts), -1, np.int32)
        for place, (name, starts) in enumerate(self.codes.items()):
            inside = np.zeros(len(texts), np.bool_)
            for start in starts:
                inside |= np.char.startswith(texts, start)
            taken = int((inside & (of_block >= 0)).sum())
            if taken or not inside.any():
                what = f"{taken} blocks are in another area as well" if taken else "no block has such a code"
                raise DataError(
                    f"areas {self.kind}, {name}: {what}; allowed: first digits of geocodes, each block once"
                )
            of_block[inside] = place
        return ComparedAreas(self.kind, self.kind, np.array(list(self.codes), np.str_), of_block)


@dataclass(frozen=True)
class Definitions:
    """What a file defines."""

    characteristics: tuple[Characteristic, ...] = ()
    queries: tuple[str, ...] = ()
    areas: tuple[DefinedAreas, ...] = ()
    sets: CellSets = field(default_factory=shipped_cell_sets)


def read_definitions(path: Path) -> Definitions:
    """Read characteristics, queries, areas and meanings of attributes."""
    document = read_toml(path)
    refuse_unknown_keys(document, path.name, _KEYS)
    queries = document.get("queries", [])
    if queries and not is_texts(queries):
        raise ConfigError(f'{path.name}, queries: give a list of queries such as "votingage * hispanic"')
    return Definitions(
        tuple(_characteristic(one, where) for one, where in _tables(document, "characteristics", path.name)),
        tuple(queries),
        tuple(_areas(one, where) for one, where in _tables(document, "areas", path.name)),
        read_cell_sets(document, path.name, shipped_cell_sets()),
    )


def _tables(document: Mapping[str, Any], key: str, file: str) -> list[tuple[Mapping[str, Any], str]]:
    tables = document.get(key, [])
    if not isinstance(tables, list) or not all(isinstance(one, Mapping) for one in tables):
        raise ConfigError(f"{file}, {key}: allowed are tables [[{key}]]")
    return [(one, f"{file}, {key}[{place}]") for place, one in enumerate(tables)]


def _characteristic(raw: Mapping[str, Any], where: str) -> Characteristic:
    refuse_unknown_keys(raw, where, _CHARACTERISTIC)
    name, label, sets = raw.get("name"), raw.get("label"), raw.get("sets", [])
    if not isinstance(name, str) or not name or (sets and not is_texts(sets)):
        raise ConfigError(
            f'{where}: give a name, and sets as a list of texts such as ["hispanic", "age 65+"]'
        )
    record = raw.get("record", "person")
    if record not in _RECORDS:
        raise ConfigError(f"{where}.record: allowed: {', '.join(_RECORDS)}")
    universe = str(raw.get("universe", "Total population" if record == "person" else "Housing units"))
    return Characteristic(name, str(label or name), tuple(sets), universe, ProtectedUnit(record))


def _areas(raw: Mapping[str, Any], where: str) -> DefinedAreas:
    refuse_unknown_keys(raw, where, _AREAS)
    kind, codes = raw.get("kind"), raw.get("codes")
    good = isinstance(codes, Mapping) and all(
        is_texts(starts) and all(text.isdigit() for text in starts) for starts in codes.values()
    )
    if not isinstance(kind, str) or not kind or not codes or not good:
        raise ConfigError(f'{where}: give a kind, and codes such as {{ north = ["44001", "440070101"] }}')
    return DefinedAreas(kind, {str(name): tuple(one) for name, one in codes.items()})
