"""Named sets of cells, such as ``female`` or ``age 65-74``, for every schema that distinguishes them, and characteristics and areas that a user defines in a TOML file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import ConfigError, DataError, UsageError
from censafe.evaluation.areas import ComparedAreas
from censafe.evaluation.shipped import shipped_document
from censafe.geography.spines.tree import Spine
from censafe.model import ProtectedUnit
from censafe.model.cells.levels import LevelSets
from censafe.model.cells.lines import ConditionReader
from censafe.model.entries import Problems, is_texts, nearest, refuse_unknown_keys
from censafe.model.parsing import read_toml
from censafe.model.topdown.histograms import HistogramSchema

_ALL: Final = "all"
_NOT: Final = "not "
_OR: Final = "|"
_IS: Final = "="
_AGE: Final = re.compile(r"^(?P<word>.*age) (?P<low>\d+)(?:-(?P<high>\d+)|(?P<open>\+))?$")
_KEYS: Final = ("names", "levels", "record", "beside", "sets", "ages", "age_word")


@dataclass(frozen=True)
class AttributeSets:
    """What the levels of one attribute mean.

    Args:
        requires: an attribute that the schema must have as well; empty for none.
        age_word: first words of sets of ages, such as ``age`` in ``age 65+``.
    """

    names: tuple[str, ...]
    levels: int
    record: ProtectedUnit = ProtectedUnit.PERSON
    requires: str = ""
    sets: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    ages: tuple[int, ...] = ()
    age_word: str = "age"

    def fits(self, schema: HistogramSchema) -> str:
        """Name of the attribute of the schema that this describes; empty for none."""
        if schema.record is not self.record or (self.requires and self.requires not in schema.schema.names):
            return ""
        known = schema.schema
        return next(
            (
                name
                for name in self.names
                if name in known.names and known.shape[known.position(name)] == self.levels
            ),
            "",
        )

    def levels_in(self, name: str) -> tuple[int, ...] | None:
        """Levels in a set; None where this attribute does not distinguish them."""
        if name in self.sets:
            return self.sets[name]
        ages = _AGE.match(name)
        if ages is None or not self.ages or ages["word"] != self.age_word:
            return None
        low = int(ages["low"])
        above = None if ages["open"] else int(ages["high"] or low) + 1
        if low not in self.ages or (above is not None and above not in self.ages):
            return None
        return tuple(range(self.ages.index(low), self.levels if above is None else self.ages.index(above)))


@dataclass(frozen=True)
class CellSets:
    """Meanings of attributes, the first that fits a schema first."""

    attributes: tuple[AttributeSets, ...]
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def cells(self, schema: HistogramSchema, sets: Sequence[str]) -> NDArray[np.bool_] | None:
        """Cells that lie in every one of some sets, shape (cells,); None where the schema does not distinguish them.

        Example:
            >>> from censafe.products.topdown.configuration.shipped import shipped_schemas
            >>> persons = shipped_schemas()["pl94-persons"]
            >>> int(shipped_cell_sets().cells(persons, ["age 18+", "two or more races"]).sum())
            912
            >>> shipped_cell_sets().cells(persons, ["female"]) is None
            True
        """
        inside = np.ones(schema.schema.cells, np.bool_)
        for term in sets:
            part = self._term(schema, term)
            if part is None:
                return None
            inside &= part
        return inside

    def unmeasured(self, schema: HistogramSchema, sets: Sequence[str]) -> tuple[str, ...]:
        """Those of some sets that a schema does not distinguish."""
        return tuple(term for term in sets if self._term(schema, term) is None)

    def _term(self, schema: HistogramSchema, term: str) -> NDArray[np.bool_] | None:
        inside = np.zeros(schema.schema.cells, np.bool_)
        for name in term.split(_OR):
            part = self._set(schema, name.strip())
            if part is None:
                return None
            inside |= part
        return inside

    def _set(self, schema: HistogramSchema, name: str) -> NDArray[np.bool_] | None:
        if name == _ALL:
            return np.ones(schema.schema.cells, np.bool_)
        if _IS in name and not name.startswith(_NOT):
            reader = ConditionReader(f"set {name}", schema.schema, schema.tables, schema.labels)
            named = reader.attribute(name.partition(_IS)[0])
            return None if named is None else schema.schema.cells_in(reader.read(name, {}))
        self._known(name)
        described: set[str] = set()
        for described_sets in self.attributes:
            attribute = described_sets.fits(schema)
            levels = described_sets.levels_in(name) if attribute and attribute not in described else None
            described.add(attribute)
            if levels is not None:
                return schema.schema.cells_in({attribute: levels})
        if name in self.aliases:
            return self.cells(schema, self.aliases[name])
        if name.startswith(_NOT):
            other = self._set(schema, name.removeprefix(_NOT))
            return None if other is None else ~other
        return None

    def _known(self, name: str) -> None:
        bare = name.removeprefix(_NOT)
        if _IS in bare:
            return
        known = {_ALL, *self.aliases, *(one for item in self.attributes for one in item.sets)}
        ages = _AGE.match(bare)
        words = {item.age_word for item in self.attributes if item.ages}
        if not {name, bare} & known and (ages is None or ages["word"] not in words):
            raise UsageError(
                f"{name!r} names no set of cells.{nearest(bare, sorted(known))} Allowed are the names of the attributes, "
                "'age 18+', 'age 5-9', 'not x', 'x | y', and levels of an attribute of the schema, such as 'sex=0'"
            )


@lru_cache(maxsize=1)
def shipped_cell_sets() -> CellSets:
    """The meanings of the attributes of the Bureau's schemas."""
    return read_cell_sets(shipped_document("cell_sets.toml"), "cell_sets.toml")


def read_cell_sets(document: Mapping[str, Any], where: str, base: CellSets | None = None) -> CellSets:
    """Meanings of attributes from the keys ``attributes`` and ``aliases`` of a TOML document."""
    listed = document.get("attributes", [])
    if not isinstance(listed, list) or not all(isinstance(one, Mapping) for one in listed):
        raise ConfigError(f"{where}, attributes: allowed are tables [[attributes]]")
    own = tuple(_attribute(one, f"{where}, attributes[{place}]") for place, one in enumerate(listed))
    aliases = document.get("aliases", {})
    if not isinstance(aliases, Mapping) or not all(is_texts(value) for value in aliases.values()):
        raise ConfigError(f"{where}, aliases: allowed are lists of names of sets")
    read = {str(name): tuple(value) for name, value in aliases.items()}
    if base is None:
        return CellSets(own, read)
    return CellSets((*own, *base.attributes), {**base.aliases, **read})


def _attribute(raw: Mapping[str, Any], where: str) -> AttributeSets:
    refuse_unknown_keys(raw, where, _KEYS)
    levels, names = raw.get("levels"), raw.get("names")
    if not isinstance(levels, int) or levels < 1 or not is_texts(names):
        raise ConfigError(f"{where}: give names (a list of texts) and levels (a whole number)")
    sets = raw.get("sets", {})
    if not isinstance(sets, Mapping):
        raise ConfigError(f"{where}.sets: allowed are lists of levels by name")
    ages = list(range(levels)) if raw.get("ages") == "single" else raw.get("ages", [])
    rising = (
        isinstance(ages, list) and all(isinstance(one, int) for one in ages) and ages == sorted(set(ages))
    )
    if not rising or len(ages) not in (0, levels):
        raise ConfigError(
            f"{where}.ages: give the youngest age of each of {levels} levels, rising, or 'single'"
        )
    if raw.get("record", "person") not in ("person", "household"):
        raise ConfigError(f"{where}.record: allowed: person, household")
    problems = Problems()
    read_sets = {
        str(name): LevelSets(levels, {}).read(items, f"sets.{name}", problems) for name, items in sets.items()
    }
    problems.raise_if_any(where)
    return AttributeSets(
        tuple(names),
        levels,
        ProtectedUnit(raw.get("record", "person")),
        str(raw.get("beside", "")),
        read_sets,
        tuple(ages),
        str(raw.get("age_word", "age")),
    )


_DEFINITION_KEYS: Final = ("characteristics", "queries", "areas", "attributes", "aliases")
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
    refuse_unknown_keys(document, path.name, _DEFINITION_KEYS)
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
